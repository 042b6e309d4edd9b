//! Pages with one form: sign in, choose a password, and what came of it.

use axum::response::Response;
use http::header::{CACHE_CONTROL, REFERRER_POLICY};
use http::{HeaderMap, HeaderValue, StatusCode};

use trefoil_http::errors::problem::Problem;

use crate::Pages;
use crate::account::account_views::SignView;
use crate::pages::SIGN_IN_PATH;
use crate::template_data::{ControlKind, ControlView, FormView, PageHead, PageLink};

/// Where a link for a password leads, without its token.
pub const LINK_PATH: &str = "/_/link";

const SIGN_UP_PATH: &str = "/_/sign-up";

/// The form to sign in.
#[derive(Debug, Default)]
pub struct SignInForm<'f> {
    /// Where to go afterwards.
    pub next: &'f str,
    /// As it was typed.
    pub login: &'f str,
    /// The name of the field with the login.
    pub login_label: String,
    /// Browsers offer email addresses for it.
    pub is_email: bool,
    /// Why it was refused.
    pub refusal: Option<String>,
    /// What is said above the form.
    pub notices: Vec<String>,
    pub has_sign_up: bool,
    /// What went wrong elsewhere.
    pub alert: Option<String>,
    /// The providers that people sign in with: words and addresses.
    pub providers: Vec<(String, String)>,
    /// Whether anybody has a password. If nobody has and there are providers, none is asked for.
    pub has_passwords: bool,
}

/// The form for a new password of an account.
#[derive(Debug)]
pub struct PasswordForm<'f> {
    /// The one-time link that it uses up.
    pub token: &'f str,
    pub login: &'f str,
    /// What is wrong with the password.
    pub mistake: Option<String>,
    pub refusal: Option<String>,
    pub least_length: usize,
}

impl Pages {
    pub fn sign_in_page(
        &self,
        headers: &HeaderMap,
        status: StatusCode,
        form: SignInForm<'_>,
    ) -> Result<Response, Problem> {
        let mut login = ControlView {
            name: "login".to_owned(),
            id: "f-login".to_owned(),
            label: form.login_label,
            value: form.login.to_owned(),
            kind: if form.is_email { ControlKind::Email } else { ControlKind::Text },
            autocomplete: Some("username"),
            ..ControlView::default()
        };
        let mut password = password_control("password", "Password", "current-password");
        let complaints = match form.refusal {
            Some(refusal) => vec![PageLink { label: refusal, href: "#f-login".to_owned() }],
            None => Vec::new(),
        };
        let is_calm = complaints.is_empty() && form.alert.is_none();
        login.focus = is_calm && form.login.is_empty();
        password.focus = is_calm && !form.login.is_empty();
        let asks_password = form.has_passwords || form.providers.is_empty() || !complaints.is_empty();
        let controls = vec![hidden_control("next", form.next), login, password];
        let links = match form.has_sign_up {
            true => vec![PageLink { label: "Make an account".to_owned(), href: SIGN_UP_PATH.to_owned() }],
            false => Vec::new(),
        };
        let view = SignView {
            heading: "Sign in".to_owned(),
            alert: form.alert,
            texts: form.notices,
            form: asks_password.then(|| form_view("Sign in", SIGN_IN_PATH, controls, complaints)),
            providers: form.providers.into_iter().map(|(label, href)| PageLink { label, href }).collect(),
            links,
            ..SignView::default()
        };
        self.sign_page(headers, status, view)
    }

    pub fn password_page(
        &self,
        headers: &HeaderMap,
        status: StatusCode,
        form: PasswordForm<'_>,
    ) -> Result<Response, Problem> {
        let login = ControlView { kind: ControlKind::Username, ..hidden_control("login", form.login) };
        let mut controls = vec![hidden_control("token", form.token), login];
        let (passwords, complaints) = new_passwords(form.least_length, form.mistake, form.refusal);
        controls.extend(passwords);
        let view = SignView {
            heading: "Choose a password".to_owned(),
            texts: vec![format!("For {}. You sign in with it from now on.", form.login)],
            form: Some(form_view("Set password", LINK_PATH, controls, complaints)),
            ..SignView::default()
        };
        self.sign_page(headers, status, view)
    }

    /// The page of a link that is not good, the same for every reason.
    pub fn bad_link_page(&self, headers: &HeaderMap) -> Result<Response, Problem> {
        let view = SignView {
            heading: "This link is not good".to_owned(),
            texts: vec![
                "It was used already, is too old, or a newer one was made. Ask for another link.".to_owned(),
            ],
            links: vec![PageLink { label: "Sign in".to_owned(), href: SIGN_IN_PATH.to_owned() }],
            ..SignView::default()
        };
        self.sign_page(headers, StatusCode::NOT_FOUND, view)
    }

    /// A link that was just made, shown this once.
    pub fn made_link_page(
        &self,
        headers: &HeaderMap,
        name: &str,
        link: String,
        back: Option<String>,
    ) -> Result<Response, Problem> {
        let back = back.map(|href| PageLink { label: format!("Back to {name}"), href });
        let view = SignView {
            heading: format!("Link for {name}"),
            texts: vec![
                "Give it to them, and to nobody else: whoever opens it chooses the password. It is good once, and not shown again."
                    .to_owned(),
            ],
            secret: Some(link),
            links: back.into_iter().collect(),
            ..SignView::default()
        };
        self.sign_page(headers, StatusCode::OK, view)
    }

    pub(crate) fn sign_page(
        &self,
        headers: &HeaderMap,
        status: StatusCode,
        view: SignView,
    ) -> Result<Response, Problem> {
        let head = PageHead::new(view.heading.clone(), "", Vec::new());
        let mut response = self.page_response(headers, status, head, "sign", &view)?;
        keep_private(&mut response);
        Ok(response)
    }
}

/// Such a page is not kept, and its address goes to nobody: only its origin does, without which browsers would send the forms
/// as if from another site.
pub(crate) fn keep_private(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("strict-origin"));
    headers.remove(http::header::ETAG);
}

pub(crate) fn form_view(
    submit: &str,
    action: &str,
    controls: Vec<ControlView>,
    complaints: Vec<PageLink>,
) -> FormView {
    FormView {
        heading: String::new(),
        action: action.to_owned(),
        submit: submit.to_owned(),
        cancel: String::new(),
        key: String::new(),
        version: None,
        base: None,
        controls,
        complaints,
        conflict: None,
    }
}

pub(crate) fn hidden_control(name: &str, value: &str) -> ControlView {
    ControlView {
        kind: ControlKind::Hidden,
        name: name.to_owned(),
        id: format!("f-{name}"),
        value: value.to_owned(),
        ..ControlView::default()
    }
}

pub(crate) fn password_control(name: &str, label: &str, autocomplete: &'static str) -> ControlView {
    ControlView {
        kind: ControlKind::Password,
        name: name.to_owned(),
        id: format!("f-{name}"),
        label: label.to_owned(),
        autocomplete: Some(autocomplete),
        ..ControlView::default()
    }
}

/// The controls for a new password, typed twice, with what is wrong; a refusal is about neither of them.
pub(crate) fn new_passwords(
    least_length: usize,
    mistake: Option<String>,
    refusal: Option<String>,
) -> (Vec<ControlView>, Vec<PageLink>) {
    let mut password = password_control("password", "New password", "new-password");
    password.hint = Some(format!("At least {least_length} characters, any you like. Longer is better."));
    let again = password_control("again", "The same again", "new-password");
    let mut complaints = Vec::new();
    if let Some(mistake) = mistake {
        complaints.push(PageLink { label: mistake.clone(), href: "#f-password".to_owned() });
        password.errors.push(mistake);
    }
    complaints.extend(refusal.map(|label| PageLink { label, href: "#f-password".to_owned() }));
    (vec![password, again], complaints)
}
