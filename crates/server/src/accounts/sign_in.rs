//! Signing in and out, and who is signed in.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Request, StatusCode};
use serde_json::{Value, json};

use trefoil_credentials::{AccountRefusal, OpenedSession};
use trefoil_engine::ActorIdentity;
use trefoil_engine::changes::KEY_IDENTITY;
use trefoil_http::client_info::ClientInfo;
use trefoil_http::errors::problem::Problem;
use trefoil_model::Scalar;
use trefoil_model::naming::names::display_label;
use trefoil_pages::account::sign_pages::SignInForm;
use trefoil_resources::collection::record_path;

use crate::accounts::account_call::{AccountCall, refusal_problem, shown_refusal, with_headers_of};

const CLEAR_SITE_DATA: HeaderName = HeaderName::from_static("clear-site-data");

/// The parameter that says that a password was just set.
pub const PASSWORD_SET: &str = "set";

/// What the page of the form shows, apart from what was typed.
async fn form<'f>(call: &AccountCall, next: &'f str) -> Result<SignInForm<'f>, Problem> {
    let model = call.resources.engine.model();
    let login = model.record(call.desk.account.record).field(call.desk.account.login);
    Ok(SignInForm {
        next,
        login_label: display_label(&login.name),
        is_email: login.kind.scalar() == Some(Scalar::Email) || login.name == "email",
        has_sign_up: call.desk.account.has_sign_up,
        notices: notices(call).await?,
        ..SignInForm::default()
    })
}

/// Where nobody can sign in yet: how that is changed.
async fn notices(call: &AccountCall) -> Result<Vec<String>, Problem> {
    let service = &call.desk.service;
    if call.parameter(PASSWORD_SET) == "1" {
        return Ok(vec!["Your password is set. Sign in with it.".to_owned()]);
    }
    if service.has_passwords().await? {
        return Ok(Vec::new());
    }
    let notice = match service.is_without_accounts().await? {
        true => {
            "Nobody can sign in yet, because there is no account. A link that makes the first one is in the log of the server, since its last start."
        }
        false if call.desk.account.has_sign_up => return Ok(Vec::new()),
        false => {
            "Nobody can sign in yet, because no account has a password. Whoever runs the server makes a link for one: trefoil user link LOGIN."
        }
    };
    Ok(vec![notice.to_owned()])
}

pub async fn show_form(call: &AccountCall) -> Result<Response, Problem> {
    call.refuse_open()?;
    let next = call.next(&call.parameter("next"));
    let form = form(call, &next).await?;
    call.pages.sign_in_page(&call.head.headers, StatusCode::OK, form)
}

pub async fn sign_in(call: &AccountCall) -> Result<Response, Problem> {
    call.refuse_unsafe()?;
    let sent = call.sent_fields()?;
    let (login, password) = (sent.get("login"), sent.get("password"));
    let signed_in = call.desk.service.sign_in(login, password, &call.origin(), call.presented()).await;
    call.desk.metrics.count_sign_in(outcome(&signed_in));
    if call.is_json() {
        let session = signed_in.map_err(refusal_problem)?;
        return tell_session(call, &session).await;
    }
    let next = call.next(if sent.get("next").is_empty() { "/" } else { sent.get("next") });
    let refusal = match signed_in {
        Ok(session) => return Ok(call.signed_in(&next, &session)),
        Err(refusal) => refusal,
    };
    let (problem, sentence) = shown_refusal(refusal)?;
    let form = SignInForm { login, refusal: Some(sentence), ..form(call, &next).await? };
    let page = call.pages.sign_in_page(&call.head.headers, problem.status, form)?;
    Ok(with_headers_of(&problem, page))
}

/// How a try to sign in ended, for the metrics.
fn outcome(signed_in: &Result<OpenedSession, AccountRefusal>) -> &'static str {
    match signed_in {
        Ok(_) => "signed-in",
        Err(AccountRefusal::Wrong | AccountRefusal::Mistake(_)) => "wrong",
        Err(AccountRefusal::Later { .. }) => "limited",
        Err(AccountRefusal::Busy { .. }) => "busy",
        Err(AccountRefusal::Failed(_)) => "failed",
    }
}

/// The token of a session, for a program.
async fn tell_session(call: &AccountCall, session: &OpenedSession) -> Result<Response, Problem> {
    let account = call.desk.service.find_usable(&session.account).await?;
    let identity = account.map(|account| Arc::new(account.into_identity()));
    let me = match &identity {
        Some(identity) => own_record(call, identity).await?,
        None => Value::Null,
    };
    let body = json!({ "token": session.token.reveal(), "expires": session.expires.to_string(), "me": me });
    Ok(json_response(StatusCode::CREATED, &body))
}

pub async fn sign_out(call: &AccountCall) -> Result<Response, Problem> {
    let session = call.client.session.clone();
    if let Some(session) = &session {
        call.desk.service.end_session(&session.token).await?;
    }
    let is_program = call.is_json() || session.as_ref().is_some_and(|session| !session.is_cookie);
    if is_program {
        return Ok(call.without_cookie(StatusCode::NO_CONTENT.into_response()));
    }
    let mut response = call.without_cookie(call.see_other("/"));
    response.headers_mut().insert(CLEAR_SITE_DATA, HeaderValue::from_static("\"cache\", \"storage\""));
    Ok(response)
}

pub async fn tell_me(call: &AccountCall) -> Result<Response, Problem> {
    let Some(identity) = &call.client.identity else {
        return Ok(json_response(StatusCode::OK, &json!({ "kind": "anonymous", "roles": [] })));
    };
    let kind = if identity.name.starts_with(KEY_IDENTITY) {
        "key"
    } else if identity.name.starts_with("token:") {
        "token"
    } else {
        "account"
    };
    let me = own_record(call, identity).await?;
    let expires = identity.expires.map(|expires| expires.to_string());
    let body = json!({ "kind": kind, "me": me, "roles": identity.roles, "expires": expires });
    Ok(json_response(StatusCode::OK, &body))
}

/// The record of the account, as its own rules show it: what a request for it is answered.
async fn own_record(call: &AccountCall, identity: &Arc<ActorIdentity>) -> Result<Value, Problem> {
    let Some(account) = &identity.account else { return Ok(Value::Null) };
    let collection = call.resources.collection(call.desk.account.record);
    let request = Request::get(record_path(&collection.path, &account.id));
    let request = request.header(ACCEPT, "application/json").body(()).map_err(Problem::internal)?;
    let (head, ()) = request.into_parts();
    let mut client: ClientInfo = call.client.clone();
    (client.identity, client.check) = (Some(identity.clone()), None);
    let response = Box::pin(call.state.respond(head, None, client)).await;
    if response.status().is_server_error() {
        return Err(Problem::from_status(response.status()));
    }
    // Who may not read their own record.
    if !response.status().is_success() {
        return Ok(Value::Null);
    }
    let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.map_err(Problem::internal)?;
    serde_json::from_slice(&bytes).map_err(Problem::internal)
}

pub fn json_response(status: StatusCode, body: &Value) -> Response {
    let headers = [(CONTENT_TYPE, "application/json; charset=utf-8"), (CACHE_CONTROL, "no-store")];
    (status, headers, body.to_string()).into_response()
}
