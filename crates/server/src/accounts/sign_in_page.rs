//! The sign-in page: what is said above its form, and the buttons of providers.

use axum::response::Response;
use http::StatusCode;

use trefoil_http::errors::problem::Problem;
use trefoil_http::form_pairs;
use trefoil_model::Scalar;
use trefoil_model::naming::names::display_label;
use trefoil_pages::account::sign_pages::SignInForm;

use crate::accounts::account_call::AccountCall;

/// Where the sign-ins by providers are.
pub const PROVIDERS_PATH: &str = "/_/oidc/";

/// The parameter that says that a password was just set.
pub const PASSWORD_SET: &str = "set";

/// What the page of the form shows, apart from what was typed.
pub async fn form<'f>(call: &AccountCall, next: &'f str) -> Result<SignInForm<'f>, Problem> {
    let model = call.resources.engine.model();
    let has_passwords = call.accounts.service.has_passwords().await?;
    let login = model.record(call.accounts.account.record).field(call.accounts.account.login);
    Ok(SignInForm {
        next,
        login_label: display_label(&login.name),
        is_email: login.kind.scalar() == Some(Scalar::Email) || login.name == "email",
        has_sign_up: call.accounts.account.has_sign_up,
        notices: notices(call, has_passwords).await?,
        providers: buttons(call, next),
        has_passwords,
        ..SignInForm::default()
    })
}

/// Where nobody can sign in yet: how that is changed.
async fn notices(call: &AccountCall, has_passwords: bool) -> Result<Vec<String>, Problem> {
    let service = &call.accounts.service;
    if call.parameter(PASSWORD_SET) == "1" {
        return Ok(vec!["Your password is set. Sign in with it.".to_owned()]);
    }
    if has_passwords {
        return Ok(Vec::new());
    }
    let notice = match service.is_without_accounts().await? {
        true => {
            "Nobody can sign in yet, because there is no account. A link that makes the first one is in the log of the server, since its last start."
        }
        false if call.accounts.account.has_sign_up || !call.accounts.providers.is_empty() => {
            return Ok(Vec::new());
        }
        false => {
            "Nobody can sign in yet, because no account has a password. Whoever runs the server makes a link for one: trefoil user link LOGIN."
        }
    };
    Ok(vec![notice.to_owned()])
}

/// The page with what went wrong elsewhere.
pub async fn sign_in_page(
    call: &AccountCall,
    next: &str,
    status: StatusCode,
    alert: String,
) -> Result<Response, Problem> {
    let form = SignInForm { alert: Some(alert), ..form(call, next).await? };
    call.pages.sign_in_page(&call.head.headers, status, form)
}

/// The buttons of the sign-in page: words and addresses.
fn buttons(call: &AccountCall, next: &str) -> Vec<(String, String)> {
    let query = match next {
        "/" => String::new(),
        next => format!("?next={}", form_pairs::percent_encode(next)),
    };
    let address = |number: usize| format!("{PROVIDERS_PATH}{number}{query}");
    let providers = call.accounts.providers.iter().zip(1..);
    providers.map(|(provider, number)| (provider.settings.name.clone(), address(number))).collect()
}
