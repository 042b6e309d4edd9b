//! The page of one's own account: who you are, your sessions, your password.

use axum::response::Response;
use http::{HeaderMap, StatusCode};

use trefoil_http::errors::problem::Problem;

use crate::Pages;
use crate::account::account_views::AccountView;
use crate::account::sign_pages::{form_view, hidden_control, keep_private, new_passwords, password_control};
use crate::pages::ACCOUNT_PATH;
pub use crate::template_data::SessionView;
use crate::template_data::{ControlKind, ControlView, PageHead, PageLink};

/// What the page shows.
pub struct OwnAccount<'a> {
    /// Of whom the page is.
    pub name: String,
    pub login: &'a str,
    /// The record, if there is a page of it.
    pub record: Option<String>,
    pub roles: Vec<String>,
    /// Those that a provider gave this session alone.
    pub session_roles: Vec<String>,
    pub sessions: Vec<SessionView>,
    pub least_length: usize,
    /// Without a password there is none to change.
    pub has_password: bool,
    /// What is wrong with the new password, or why nothing was changed.
    pub mistake: Option<String>,
    pub refusal: Option<String>,
    /// What was done.
    pub notice: Option<String>,
}

impl Pages {
    pub fn account_page(
        &self,
        headers: &HeaderMap,
        status: StatusCode,
        page: OwnAccount<'_>,
    ) -> Result<Response, Problem> {
        let login = ControlView { kind: ControlKind::Username, ..hidden_control("login", page.login) };
        let current = password_control("current", "Current password", "current-password");
        let (passwords, mut complaints) = new_passwords(page.least_length, page.mistake, None);
        complaints.extend(page.refusal.map(|label| PageLink { label, href: "#f-current".to_owned() }));
        let controls = [vec![login, current], passwords].concat();
        let action = format!("{ACCOUNT_PATH}/password");
        let others = page.sessions.iter().any(|session| !session.is_current);
        let view = AccountView {
            name: page.name.clone(),
            record: page.record.map(|href| PageLink { label: page.name.clone(), href }),
            roles: page.roles,
            session_roles: page.session_roles,
            notice: page.notice,
            sessions: page.sessions,
            end_others: others.then(|| format!("{ACCOUNT_PATH}/sessions/end-others")),
            password: page.has_password.then(|| form_view("Change password", &action, controls, complaints)),
        };
        let mut head = PageHead::new("Account", ACCOUNT_PATH, Vec::new());
        head.title = format!("Account of {}", page.name);
        let mut response = self.page_response(headers, status, head, "account", &view)?;
        keep_private(&mut response);
        Ok(response)
    }
}
