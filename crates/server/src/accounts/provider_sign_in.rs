//! Signing in by an OpenID provider: leading there, and coming back.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use http::StatusCode;
use http::header::{HOST, SET_COOKIE};

use trefoil_credentials::{OpenedSession, PENDING_SECONDS, ProvenPerson, ProviderRefusal, ReturnedSignIn};
use trefoil_http::authentication::{find_pending_sign_in, pending_cookie};
use trefoil_http::errors::problem::{Problem, not_found};
use trefoil_http::form_pairs;
use trefoil_http::response_headers::RequestId;

use crate::accounts::account_call::{AccountCall, refusal_problem, with_headers_of};
use crate::accounts::sign_in_page::{PROVIDERS_PATH, sign_in_page};
use crate::accounts::sign_up::newcomer;
use crate::authentication::provider_client::{ProviderClient, plain_code};

/// What a person is told to wait for a provider that does not answer.
const RETRY: Duration = Duration::from_secs(5);

/// The provider in the path, and its number: its place in `trefoil.toml`, from 1.
fn provider(call: &AccountCall) -> Result<(usize, Arc<ProviderClient>), Problem> {
    let number: usize = call.path_part(PROVIDERS_PATH).parse().map_err(|_| not_found())?;
    let found = number.checked_sub(1).and_then(|place| call.accounts.providers.get(place));
    found.map(|provider| (number, provider.clone())).ok_or_else(not_found)
}

/// Where the provider sends the browser back to: at the origin that the browser knows.
fn redirect_uri(call: &AccountCall, number: usize) -> String {
    let origin = call.client.origin(call.head.headers.get(HOST));
    format!("{origin}{PROVIDERS_PATH}{number}/callback")
}

pub async fn begin(call: &AccountCall) -> Result<Response, Problem> {
    let (number, provider) = provider(call)?;
    call.refuse_open()?;
    let next = call.next(&call.parameter("next"));
    let begun = async {
        provider.require_answer().await?;
        let begun = call.accounts.service.begin_sign_in(&provider.settings.issuer, &next).await?;
        let address = provider.authorization_address(&begun, &redirect_uri(call, number))?;
        Ok((begun, address))
    };
    match begun.await {
        Ok((begun, address)) => {
            let mut response = call.see_other(&address);
            let cookie = pending_cookie(&begun.cookie, PENDING_SECONDS, call.client.secure);
            response.headers_mut().append(SET_COOKIE, cookie);
            Ok(response)
        }
        Err(refusal) => refused(call, (number, &provider), &next, refusal).await,
    }
}

/// What the provider sends along with the browser.
struct ProviderAnswer {
    state: String,
    code: Option<String>,
    error: Option<String>,
    issuer: Option<String>,
}

impl ProviderAnswer {
    fn of(call: &AccountCall) -> Result<ProviderAnswer, ProviderRefusal> {
        let query = call.head.uri.query().unwrap_or_default();
        let pairs = form_pairs::parse_urlencoded(query, "the query").unwrap_or_default();
        let find = |name: &str| {
            let mut values = pairs.iter().filter(|(own, _)| own == name).map(|(_, value)| value.clone());
            match (values.next(), values.next()) {
                (value, None) => Ok(value),
                (_, Some(_)) => Err(ProviderRefusal::Stale("a parameter of the answer is there twice")),
            }
        };
        Ok(ProviderAnswer {
            state: find("state")?.unwrap_or_default(),
            code: find("code")?,
            error: find("error")?,
            issuer: find("iss")?,
        })
    }
}

pub async fn return_from(call: &AccountCall) -> Result<Response, Problem> {
    let (number, provider) = provider(call)?;
    call.refuse_open()?;
    let mut next = "/".to_owned();
    let opened = open_session(call, (number, &provider), &mut next).await;
    let outcome = outcome(&opened);
    call.accounts.metrics.count_sign_in(outcome);
    if outcome == WRONG {
        call.accounts.service.count_failure(&call.origin());
    }
    let response = match opened {
        Ok(session) => call.signed_in(&next, &session),
        // Whoever leads a browser here with a state that is not its own ends nothing that it has begun.
        Err(refusal @ ProviderRefusal::Stale(_)) => {
            return refused(call, (number, &provider), &next, refusal).await;
        }
        Err(refusal) => refused(call, (number, &provider), &next, refusal).await?,
    };
    let mut response = response;
    response.headers_mut().append(SET_COOKIE, pending_cookie("", 0, call.client.secure));
    Ok(response)
}

/// The outcome of a sign-in that somebody tried in vain.
const WRONG: &str = "wrong";

/// How a sign-in ended, for the metrics.
fn outcome(opened: &Result<OpenedSession, ProviderRefusal>) -> &'static str {
    match opened {
        Ok(_) => "signed-in",
        Err(
            ProviderRefusal::Stale(_)
            | ProviderRefusal::Denied
            | ProviderRefusal::Rejected(_)
            | ProviderRefusal::NoAccount(_),
        ) => WRONG,
        Err(ProviderRefusal::Later { .. }) => "limited",
        Err(ProviderRefusal::Unreachable(_) | ProviderRefusal::Failed(_)) => "failed",
    }
}

/// Signs in whom the provider proves; `next` is where they wanted to go.
async fn open_session(
    call: &AccountCall,
    (number, provider): (usize, &ProviderClient),
    next: &mut String,
) -> Result<OpenedSession, ProviderRefusal> {
    let service = &call.accounts.service;
    let answer = ProviderAnswer::of(call)?;
    let cookie = find_pending_sign_in(&call.head.headers, call.client.secure);
    let returned = service.return_sign_in(&provider.settings.issuer, cookie, &answer.state).await?;
    *next = call.next(&returned.next);
    // Only what this browser has begun: a page of another site could lead it here again and again.
    let counted = service.count_return(call.client.address)?;
    provider.check_issuer(answer.issuer.as_deref())?;
    let person = find_person(call, (number, provider), &answer, &returned).await?;
    let session = service.sign_in_person(&person, &call.origin(), call.presented()).await?;
    service.forgive_return(call.client.address, counted);
    Ok(session)
}

async fn find_person(
    call: &AccountCall,
    (number, provider): (usize, &ProviderClient),
    answer: &ProviderAnswer,
    returned: &ReturnedSignIn,
) -> Result<ProvenPerson, ProviderRefusal> {
    match (answer.error.as_deref(), answer.code.as_deref()) {
        (Some("access_denied"), _) => Err(ProviderRefusal::Denied),
        (Some(error), _) => Err(ProviderRefusal::Rejected(format!("it answered {}", plain_code(error)))),
        (None, None) => Err(ProviderRefusal::Rejected("its answer has no code".to_owned())),
        (None, Some(code)) => {
            let mut person = provider.find_person(code, &redirect_uri(call, number), returned).await?;
            keep_open_fields(call, &mut person);
            Ok(person)
        }
    }
}

/// Claims fill what anybody may give who signs up. The field that finds the account is filled by what the provider verified.
fn keep_open_fields(call: &AccountCall, person: &mut ProvenPerson) {
    let (_, closed) = newcomer(call);
    let record = call.resources.engine.model().record(call.accounts.account.record);
    let is_open = |name: &str| record.find_field(name).is_some_and(|field| !closed.contains(&field));
    person.fields.retain(|(name, _)| is_open(name));
}

/// The sign-in page, which says in one sentence why nobody is signed in. The log says what it was.
async fn refused(
    call: &AccountCall,
    (number, provider): (usize, &ProviderClient),
    next: &str,
    refusal: ProviderRefusal,
) -> Result<Response, Problem> {
    let request_id = call.client.request.as_ref().map(RequestId::as_str);
    tracing::warn!(request_id, provider = number, reason = %refusal, "a provider signs nobody in");
    let name = &provider.settings.name;
    let (status, sentence) = match refusal {
        ProviderRefusal::Stale(_) => (
            StatusCode::BAD_REQUEST,
            "This sign-in was begun in another browser or too long ago, or it is done already. Please begin again.".to_owned(),
        ),
        ProviderRefusal::Denied => {
            (StatusCode::UNAUTHORIZED, format!("You are not signed in: it was cancelled or refused at {name}."))
        }
        ProviderRefusal::Rejected(_) => (
            StatusCode::UNAUTHORIZED,
            format!("You are not signed in: the answer of {name} was not good. Please try again."),
        ),
        ProviderRefusal::NoAccount(_) => (
            StatusCode::UNAUTHORIZED,
            format!("You are not signed in: no account here can be used with {name}."),
        ),
        ProviderRefusal::Unreachable(_) => {
            let sentence = format!("{name} does not answer at the moment. Please try again later, or sign in another way.");
            let problem = Problem::unavailable(sentence, RETRY);
            let page = sign_in_page(call, next, problem.status, problem.detail.clone()).await?;
            return Ok(with_headers_of(&problem, page));
        }
        ProviderRefusal::Later { retry_after } => {
            let refusal = trefoil_credentials::AccountRefusal::Later { retry_after };
            return Err(refusal_problem(refusal));
        }
        ProviderRefusal::Failed(error) => return Err(error.into()),
    };
    sign_in_page(call, next, status, sentence).await
}
