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
use trefoil_pages::account::sign_pages::SignInForm;
use trefoil_resources::collection::record_path;

use crate::accounts::account_call::{AccountCall, refusal_problem, shown_refusal, with_headers_of};
use crate::accounts::sign_in_page::form;

const CLEAR_SITE_DATA: HeaderName = HeaderName::from_static("clear-site-data");

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
    let signed_in = call.accounts.service.sign_in(login, password, &call.origin(), call.presented()).await;
    call.accounts.metrics.count_sign_in(outcome(&signed_in));
    if call.is_json() {
        let session = signed_in.map_err(refusal_problem)?;
        return tell_session(call, StatusCode::CREATED, &session).await;
    }
    let next = call.next(sent.get("next"));
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
pub async fn tell_session(
    call: &AccountCall,
    status: StatusCode,
    session: &OpenedSession,
) -> Result<Response, Problem> {
    let account = call.accounts.service.find_usable(&session.account).await?;
    let identity = account.map(|account| Arc::new(account.into_identity()));
    let me = match &identity {
        Some(identity) => own_record(call, identity).await?,
        None => Value::Null,
    };
    let body = json!({ "token": session.token.reveal(), "expires": session.expires.to_string(), "me": me });
    Ok(json_response(status, &body))
}

pub async fn sign_out(call: &AccountCall) -> Result<Response, Problem> {
    let session = call.client.session.clone();
    if let Some(session) = &session {
        call.accounts.service.end_session(&session.token).await?;
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
    let collection = call.resources.collection(call.accounts.account.record);
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
