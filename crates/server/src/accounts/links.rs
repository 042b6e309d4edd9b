//! Links for a first or a new password, and the one that makes the first account.

use axum::response::Response;
use http::StatusCode;

use trefoil_credentials::{AccountRefusal, GoodLink, NewAccountMaker, UsableAccount};
use trefoil_engine::Engine;
use trefoil_http::errors::problem::{Problem, error_status};
use trefoil_model::error::{Error, Violation};
use trefoil_model::{FieldId, Value};
use trefoil_pages::account::new_account::NewAccountForm;
use trefoil_pages::account::sign_pages::{LINK_PATH, PasswordForm};
use trefoil_resources::ServedResources;
use trefoil_resources::forms::form_input::FormInput;

use crate::accounts::account_call::{AccountCall, SentFields, shown_refusal, with_headers_of};
use crate::accounts::sign_in_page::PASSWORD_SET;

/// Opening a link changes nothing.
pub async fn show_link(call: &AccountCall) -> Result<Response, Problem> {
    call.refuse_open()?;
    if call.is_loaded_by_others() {
        return bad_link(call, AccountRefusal::Wrong);
    }
    let token = call.parameter("token");
    match call.accounts.service.find_link(&token, call.client.address).await {
        Ok(GoodLink::Password(account)) => password_page(call, &token, &account, None),
        Ok(GoodLink::First) => first_account_page(call, &token, NewAccountState::default()).await,
        Err(refusal) => bad_link(call, refusal),
    }
}

pub async fn use_link(call: &AccountCall) -> Result<Response, Problem> {
    call.refuse_unsafe()?;
    let sent = call.sent_fields()?;
    let (token, password, again) = (sent.get("token"), sent.get("password"), sent.get("again"));
    let service = &call.accounts.service;
    match service.find_link(token, call.client.address).await {
        Ok(GoodLink::Password(account)) => match service.use_link(token, &account, password, again).await {
            Ok(()) => Ok(to_sign_in(call)),
            Err(AccountRefusal::Wrong) => bad_link(call, AccountRefusal::Wrong),
            Err(refusal) => password_page(call, token, &account, Some(refusal)),
        },
        Ok(GoodLink::First) => make_first_account(call, &sent).await,
        Err(refusal) => bad_link(call, refusal),
    }
}

fn to_sign_in(call: &AccountCall) -> Response {
    call.see_other(&format!("/_/sign-in?{PASSWORD_SET}=1"))
}

fn bad_link(call: &AccountCall, refusal: AccountRefusal) -> Result<Response, Problem> {
    match refusal {
        AccountRefusal::Wrong => call.pages.bad_link_page(&call.head.headers),
        refusal @ (AccountRefusal::Later { .. }
        | AccountRefusal::Busy { .. }
        | AccountRefusal::Mistake(_)
        | AccountRefusal::Failed(_)) => Err(super::account_call::refusal_problem(refusal)),
    }
}

fn password_page(
    call: &AccountCall,
    token: &str,
    account: &UsableAccount,
    refusal: Option<AccountRefusal>,
) -> Result<Response, Problem> {
    let shown = refusal_texts(refusal)?;
    let form = PasswordForm {
        token,
        login: &account.login,
        mistake: shown.mistake,
        refusal: shown.refusal,
        least_length: call.accounts.settings.password_length,
    };
    let status = shown.problem.as_ref().map_or(StatusCode::OK, |problem| problem.status);
    let page = call.pages.password_page(&call.head.headers, status, form)?;
    Ok(match &shown.problem {
        Some(problem) => with_headers_of(problem, page),
        None => page,
    })
}

/// What is said of a refusal: a mistake in the password beside it, anything else above the form.
#[derive(Default)]
pub struct RefusalTexts {
    pub problem: Option<Problem>,
    pub mistake: Option<String>,
    pub refusal: Option<String>,
}

pub fn refusal_texts(refusal: Option<AccountRefusal>) -> Result<RefusalTexts, Problem> {
    let Some(refusal) = refusal else { return Ok(RefusalTexts::default()) };
    let is_mistake = matches!(refusal, AccountRefusal::Mistake(_));
    let (problem, sentence) = shown_refusal(refusal)?;
    let (mistake, refusal) = if is_mistake { (Some(sentence), None) } else { (None, Some(sentence)) };
    Ok(RefusalTexts { problem: Some(problem), mistake, refusal })
}

/// What the form of a new account has in it.
#[derive(Default)]
pub struct NewAccountState {
    pub input: FormInput,
    pub violations: Vec<Violation>,
    pub texts: RefusalTexts,
    pub status: Option<StatusCode>,
}

async fn first_account_page(
    call: &AccountCall,
    token: &str,
    state: NewAccountState,
) -> Result<Response, Problem> {
    let status = state.status.unwrap_or(StatusCode::OK);
    let form = NewAccountForm {
        heading: "The first account",
        texts: vec![
            "There is no account yet. This one can be given any role; it makes the others.".to_owned(),
        ],
        action: LINK_PATH,
        token: Some(token),
        record: call.accounts.account.record,
        login: call.accounts.account.login,
        input: state.input,
        violations: state.violations,
        mistake: state.texts.mistake,
        refusal: state.texts.refusal,
        least_length: call.accounts.settings.password_length,
    };
    let resources = operator(call);
    call.pages.new_account_page(&call.head.headers, &resources, status, form).await
}

fn operator(call: &AccountCall) -> ServedResources {
    call.resources.with_engine(call.resources.engine.as_operator())
}

async fn make_first_account(call: &AccountCall, sent: &SentFields) -> Result<Response, Problem> {
    let token = sent.get("token");
    let engine = call.resources.engine.as_operator();
    match create_account(call, &engine, NewAccountMaker::FirstLink(token), sent, &[]).await {
        Ok(_) => Ok(to_sign_in(call)),
        Err(NewAccountFailure::Gone) => bad_link(call, AccountRefusal::Wrong),
        Err(NewAccountFailure::Form(state)) => first_account_page(call, token, *state).await,
        Err(NewAccountFailure::Problem(problem)) => Err(*problem),
    }
}

/// Why there is no new account.
pub enum NewAccountFailure {
    /// The link is not good.
    Gone,
    /// The form is shown again.
    Form(Box<NewAccountState>),
    Problem(Box<Problem>),
}

/// Makes an account of the fields of a form, on behalf of whom the engine is. Fields that were closed, and were not sent, are left
/// as they are.
pub async fn create_account(
    call: &AccountCall,
    engine: &Engine,
    maker: NewAccountMaker<'_>,
    sent: &SentFields,
    closed: &[FieldId],
) -> Result<trefoil_model::RecordId, NewAccountFailure> {
    let model = call.resources.engine.model();
    let record = model.record(call.accounts.account.record);
    let mut input = FormInput::from_pairs(record, sent.pairs());
    let is_sent = |field: &FieldId| {
        let name = &record.field(*field).input_name;
        sent.pairs().iter().any(|(own, _)| own == name)
    };
    let unsent: Vec<FieldId> = closed.iter().copied().filter(|field| !is_sent(field)).collect();
    input.close_fields(unsent.clone());
    let values = input.read_values(model, record);
    let again = |violations: Vec<Violation>, status| {
        NewAccountFailure::Form(Box::new(NewAccountState {
            input: input.clone(),
            violations,
            status: Some(status),
            ..NewAccountState::default()
        }))
    };
    if !values.violations.is_empty() {
        return Err(again(values.violations, StatusCode::BAD_REQUEST));
    }
    let fields = values.fields.into_iter().filter(|(field, _)| !unsent.contains(field));
    let fields = fields.map(|(field, value)| (record.field(field).input_name.clone(), value));
    let passwords = (sent.get("password"), sent.get("again"));
    let fields = Value::Object(fields.collect());
    let made = call.accounts.service.create_account(engine, maker, fields, passwords).await;
    made.map_err(|refusal| match refusal {
        AccountRefusal::Wrong => NewAccountFailure::Gone,
        AccountRefusal::Failed(error @ (Error::Invalid(_) | Error::Conflict(_))) => {
            again(error.violations().to_vec(), error_status(&error))
        }
        refusal @ (AccountRefusal::Later { .. }
        | AccountRefusal::Busy { .. }
        | AccountRefusal::Mistake(_)
        | AccountRefusal::Failed(_)) => match refusal_texts(Some(refusal)) {
            Ok(texts) => NewAccountFailure::Form(Box::new(NewAccountState {
                input: input.clone(),
                status: texts.problem.as_ref().map(|problem| problem.status),
                texts,
                ..NewAccountState::default()
            })),
            Err(problem) => NewAccountFailure::Problem(Box::new(problem)),
        },
    })
}
