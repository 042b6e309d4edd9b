//! One's own account: its sessions and its password.

use axum::response::{IntoResponse, Response};
use http::StatusCode;

use trefoil_credentials::{AccountRefusal, ListedSession, OpenedSession};
use trefoil_http::errors::problem::{Problem, not_found};
use trefoil_model::access::AccessAction;
use trefoil_pages::account::own_account::{OwnAccount, SessionView};
use trefoil_resources::collection::record_path;

use crate::accounts::account_call::{AccountCall, refusal_problem, with_headers_of};
use crate::accounts::links::{RefusalTexts, refusal_texts};
use crate::accounts::sign_in::tell_session;

const ACCOUNT_PATH: &str = "/_/account";

pub async fn show_account(call: &AccountCall) -> Result<Response, Problem> {
    let notice = match call.parameter("done").as_str() {
        "password" => Some("Your password is changed, and all other sessions are ended."),
        "session" => Some("The session is ended."),
        "others" => Some("All other sessions are ended."),
        _ => None,
    };
    page(call, RefusalTexts::default(), notice).await
}

async fn page(call: &AccountCall, texts: RefusalTexts, notice: Option<&str>) -> Result<Response, Problem> {
    let (id, identity) = call.account()?;
    let service = &call.accounts.service;
    let usable = service.find_usable(&id).await?;
    let sessions = service.sessions(&id, call.presented()).await?;
    let collection = call.resources.collection(call.accounts.account.record);
    let is_read = call.resources.engine.may(AccessAction::Read, call.accounts.account.record);
    // What a provider said when this session began, beside what the record says.
    let session_roles: Vec<String> = match (sessions.iter().find(|listed| listed.is_current), &usable) {
        (Some(listed), Some(account)) => {
            let given = listed.session.roles.iter();
            given.filter(|role| !account.roles.contains(role)).cloned().collect()
        }
        (_, _) => Vec::new(),
    };
    let own_roles = identity.roles.iter().filter(|role| !session_roles.contains(role));
    let page = OwnAccount {
        name: identity.account.as_ref().map(|account| account.label.clone()).unwrap_or_default(),
        login: usable.as_ref().map_or("", |account| &account.login),
        record: is_read.then(|| record_path(&collection.path, &id)),
        roles: own_roles.cloned().collect(),
        session_roles,
        sessions: sessions.iter().map(session_view).collect(),
        least_length: call.accounts.settings.password_length,
        has_password: service.has_password(&id).await?,
        mistake: texts.mistake,
        refusal: texts.refusal,
        notice: notice.map(str::to_owned),
    };
    let status = texts.problem.as_ref().map_or(StatusCode::OK, |problem| problem.status);
    let response = call.pages.account_page(&call.head.headers, status, page)?;
    Ok(match &texts.problem {
        Some(problem) => with_headers_of(problem, response),
        None => response,
    })
}

/// A form of this page that was sent after the session had ended. A password in it is not shown.
pub fn tell_signed_out(call: &AccountCall) -> Result<Response, Problem> {
    call.pages.signed_out_page(&call.head.headers)
}

fn session_view(listed: &ListedSession) -> SessionView {
    let end = format!("{ACCOUNT_PATH}/sessions/{}/end", listed.number);
    SessionView::new(&listed.session, listed.is_current, Some(end))
}

pub async fn change_password(call: &AccountCall) -> Result<Response, Problem> {
    call.refuse_unsafe()?;
    let (id, _) = call.account()?;
    let sent = call.sent_fields()?;
    let passwords = (sent.get("current"), sent.get("password"), sent.get("again"));
    let changed =
        call.accounts.service.change_password(&id, passwords, &call.origin(), call.presented()).await;
    match changed {
        Ok(session) => answer_changed(call, session).await,
        Err(refusal) if call.is_json() => Err(refusal_problem(refusal)),
        Err(AccountRefusal::Wrong) => {
            let problem = refusal_problem(AccountRefusal::Wrong);
            let refusal = Some("The current password is wrong".to_owned());
            page(call, RefusalTexts { problem: Some(problem), refusal, mistake: None }, None).await
        }
        Err(refusal) => page(call, refusal_texts(Some(refusal))?, None).await,
    }
}

/// The token that the session goes on under: for a browser its cookie, for a program JSON. Whoever presented no session, but a
/// key that acts as the account, has none.
async fn answer_changed(call: &AccountCall, session: Option<OpenedSession>) -> Result<Response, Problem> {
    let is_cookie = call.client.session.as_ref().is_some_and(|presented| presented.is_cookie);
    match session {
        Some(session) if !is_cookie => tell_session(call, StatusCode::OK, &session).await,
        Some(session) if call.is_json() => {
            Ok(call.with_cookie(StatusCode::NO_CONTENT.into_response(), &session))
        }
        Some(session) => Ok(call.signed_in(&format!("{ACCOUNT_PATH}?done=password"), &session)),
        None => Ok(done(call, "password")),
    }
}

pub async fn end_session(call: &AccountCall) -> Result<Response, Problem> {
    let (id, _) = call.account()?;
    let number = call.path_part("/_/account/sessions/");
    if !call.accounts.service.end_numbered(&id, &number).await? {
        return Err(not_found());
    }
    Ok(done(call, "session"))
}

pub async fn end_others(call: &AccountCall) -> Result<Response, Problem> {
    let (id, _) = call.account()?;
    call.accounts.service.end_sessions(&id, call.presented()).await?;
    Ok(done(call, "others"))
}

fn done(call: &AccountCall, what: &str) -> Response {
    if call.is_json() {
        return StatusCode::NO_CONTENT.into_response();
    }
    call.see_other(&format!("{ACCOUNT_PATH}?done={what}"))
}
