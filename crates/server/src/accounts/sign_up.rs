//! Signing up: a new account that people make for themselves.

use axum::response::Response;
use http::StatusCode;

use trefoil_credentials::{AccountRefusal, NewAccountMaker};
use trefoil_http::errors::problem::{Problem, not_found};
use trefoil_model::FieldId;
use trefoil_pages::account::new_account::{NewAccountForm, closed_to_sign_up};
use trefoil_resources::ServedResources;

use crate::accounts::account_call::{AccountCall, refusal_problem};
use crate::accounts::links::{NewAccountFailure, NewAccountState, create_account};

const SIGN_UP_PATH: &str = "/_/sign-up";

/// What anybody sees who makes an account, whoever asks, and the fields that not anybody may give.
pub fn newcomer(call: &AccountCall) -> (ServedResources, Vec<FieldId>) {
    let record = call.accounts.account.record;
    let engine = call.resources.engine.for_sign_up(record);
    let closed = closed_to_sign_up(&engine, record);
    (call.resources.with_engine(engine), closed)
}

fn require_open(call: &AccountCall) -> Result<(), Problem> {
    if call.accounts.account.has_sign_up { Ok(()) } else { Err(not_found()) }
}

pub async fn show_form(call: &AccountCall) -> Result<Response, Problem> {
    require_open(call)?;
    call.refuse_open()?;
    page(call, NewAccountState::default()).await
}

pub async fn sign_up(call: &AccountCall) -> Result<Response, Problem> {
    require_open(call)?;
    call.refuse_unsafe()?;
    let sent = call.sent_fields()?;
    let (resources, closed) = newcomer(call);
    call.accounts.service.count_sign_up(call.client.address).map_err(refusal_problem)?;
    match create_account(call, &resources.engine, NewAccountMaker::SignUp, &sent, &closed).await {
        Ok(id) => {
            let service = &call.accounts.service;
            let session = service.open_first_session(&id, &call.origin(), call.presented()).await;
            match session {
                Ok(session) => Ok(call.signed_in("/", &session)),
                // `if` of `@account` does not hold yet.
                Err(AccountRefusal::Wrong) => Ok(call.see_other("/_/sign-in")),
                Err(refusal) => Err(refusal_problem(refusal)),
            }
        }
        Err(NewAccountFailure::Gone) => Err(not_found()),
        Err(NewAccountFailure::Form(state)) => page(call, *state).await,
        Err(NewAccountFailure::Problem(problem)) => Err(*problem),
    }
}

async fn page(call: &AccountCall, mut state: NewAccountState) -> Result<Response, Problem> {
    let (resources, closed) = newcomer(call);
    state.input.close_fields(closed);
    let form = NewAccountForm {
        heading: "Make an account",
        texts: Vec::new(),
        action: SIGN_UP_PATH,
        token: None,
        record: call.accounts.account.record,
        login: call.accounts.account.login,
        input: state.input,
        violations: state.violations,
        mistake: state.texts.mistake,
        refusal: state.texts.refusal,
        least_length: call.accounts.settings.password_length,
    };
    let status = state.status.unwrap_or(StatusCode::OK);
    call.pages.new_account_page(&call.head.headers, &resources, status, form).await
}
