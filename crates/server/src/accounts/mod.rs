//! Pages and requests about accounts: signing in and out, by passwords and providers, links for passwords, sessions.

mod account_call;
pub mod application_accounts;
pub mod audit_keeping;
mod audit_page;
mod links;
mod managed_accounts;
mod own_account;
mod provider_sign_in;
mod sign_in;
mod sign_in_page;
mod sign_up;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};

use http::header::{AUTHORIZATION, REFERRER_POLICY};
use http::{HeaderValue, Method, StatusCode};

use trefoil_http::client_info::ClientInfo;
use trefoil_http::cross_origin;
use trefoil_http::errors::problem::{Problem, not_found};
use trefoil_http::routing::RouteTable;
use trefoil_resources::body_text;

use crate::accounts::account_call::AccountCall;
use crate::routes::ResourceRouter;

/// The longest body, in bytes, except that of a new account: room for the longest password three times, where each of its
/// characters takes twelve bytes in a form.
const MAX_BODY_BYTES: usize = 40 << 10;

/// What is asked of accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AccountRoute {
    SignInForm,
    SignIn,
    SignOut,
    Me,
    LinkForm,
    UseLink,
    SignUpForm,
    SignUp,
    BeginAtProvider,
    ReturnFromProvider,
    Account,
    ChangePassword,
    EndSession,
    EndOthers,
    MakeLink,
    EndSessions,
}

/// A handler of one route: axum needs a function of its own for each.
macro_rules! handler {
    ($name:ident, $route:ident) => {
        async fn $name(State(router): State<ResourceRouter>, request: Request) -> Response {
            answer(router, request, AccountRoute::$route).await
        }
    };
}

handler!(sign_in_form, SignInForm);
handler!(sign_in, SignIn);
handler!(sign_out, SignOut);
handler!(me, Me);
handler!(link_form, LinkForm);
handler!(use_link, UseLink);
handler!(sign_up_form, SignUpForm);
handler!(sign_up, SignUp);
handler!(begin_at_provider, BeginAtProvider);
handler!(return_from_provider, ReturnFromProvider);
handler!(account, Account);
handler!(change_password, ChangePassword);
handler!(end_session, EndSession);
handler!(end_others, EndOthers);
handler!(make_link, MakeLink);
handler!(end_sessions, EndSessions);

/// The routes, which are there in every application: one without accounts answers that there is nothing.
pub fn account_routes() -> RouteTable<ResourceRouter> {
    RouteTable::default()
        .get("/_/me", me)
        .get("/_/sign-in", sign_in_form)
        .post("/_/sign-in", sign_in)
        .post("/_/sign-out", sign_out)
        .get("/_/sign-up", sign_up_form)
        .post("/_/sign-up", sign_up)
        .get("/_/oidc/{n}", begin_at_provider)
        .get("/_/oidc/{n}/callback", return_from_provider)
        .get("/_/link", link_form)
        .post("/_/link", use_link)
        .get("/_/account", account)
        .get("/_/audit", audit_page::serve_audit)
        .post("/_/account/password", change_password)
        .post("/_/account/sessions/end-others", end_others)
        .post("/_/account/sessions/{n}/end", end_session)
        .post("/_/accounts/{id}/link", make_link)
        .post("/_/accounts/{id}/end-sessions", end_sessions)
}

async fn answer(router: ResourceRouter, request: Request, route: AccountRoute) -> Response {
    let client = ClientInfo::of(request.extensions());
    let (head, body) = request.into_parts();
    // Read before the gate is entered, so that a reload does not wait for slow senders.
    let body = match body_text::read_body(body).await {
        Ok(body) => body,
        Err(problem) => return problem.into_response(),
    };
    if body.len() > MAX_BODY_BYTES && route != AccountRoute::SignUp {
        return too_long().into_response();
    }
    let _lease = router.gate().enter().await;
    let state = router.current();
    let Some(accounts) = &state.accounts else { return not_found().into_response() };
    let accounts = Arc::new(accounts.for_actor(&client.actor()));
    let resources = state.catalog.for_actor(|| client.actor()).into_owned();
    let pages = state.pages.of_actor(&resources);
    let call = AccountCall { state, accounts, resources, pages, head, body, client };
    Box::pin(run(&call, route)).await.unwrap_or_else(|problem| refuse(&call, route, problem))
}

fn refuse(call: &AccountCall, route: AccountRoute, problem: Problem) -> Response {
    let is_own =
        [AccountRoute::ChangePassword, AccountRoute::EndSession, AccountRoute::EndOthers].contains(&route);
    if is_own
        && call.client.identity.is_none()
        && call.is_form_of_page()
        && problem.status == StatusCode::UNAUTHORIZED
    {
        return own_account::tell_signed_out(call).unwrap_or_else(IntoResponse::into_response);
    }
    // The address of a link is a secret, whatever it is answered.
    let is_link = [AccountRoute::LinkForm, AccountRoute::UseLink].contains(&route);
    let problem = match is_link {
        true => problem.with_header(REFERRER_POLICY, HeaderValue::from_static("strict-origin")),
        false => problem,
    };
    call.problem(problem).into_response()
}

fn too_long() -> Problem {
    let detail = format!("the body is longer than {MAX_BODY_BYTES} bytes");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "BODY_TOO_LARGE", detail)
}

async fn run(call: &AccountCall, route: AccountRoute) -> Result<Response, Problem> {
    // A browser takes the answer for one of this server, whatever page sent the form: it would lose its cookie.
    if call.head.method == Method::POST && !call.head.headers.contains_key(AUTHORIZATION) {
        cross_origin::refuse_other_sites(&call.head.headers)?;
    }
    // What is done here is not undone by throwing the answer away.
    call.resources.engine.confirm_actor().await?;
    match route {
        AccountRoute::SignInForm => sign_in::show_form(call).await,
        AccountRoute::SignIn => sign_in::sign_in(call).await,
        AccountRoute::SignOut => sign_in::sign_out(call).await,
        AccountRoute::Me => sign_in::tell_me(call).await,
        AccountRoute::LinkForm => links::show_link(call).await,
        AccountRoute::UseLink => links::use_link(call).await,
        AccountRoute::SignUpForm => sign_up::show_form(call).await,
        AccountRoute::SignUp => sign_up::sign_up(call).await,
        AccountRoute::BeginAtProvider => provider_sign_in::begin(call).await,
        AccountRoute::ReturnFromProvider => provider_sign_in::return_from(call).await,
        AccountRoute::Account => own_account::show_account(call).await,
        AccountRoute::ChangePassword => own_account::change_password(call).await,
        AccountRoute::EndSession => own_account::end_session(call).await,
        AccountRoute::EndOthers => own_account::end_others(call).await,
        AccountRoute::MakeLink => managed_accounts::make_link(call).await,
        AccountRoute::EndSessions => managed_accounts::end_sessions(call).await,
    }
}
