//! The page of one's own account: who you are, your sessions, your password.

use axum::response::Response;
use http::{HeaderMap, StatusCode};

use trefoil_http::errors::problem::Problem;

use crate::Pages;
use crate::account::account_views::{AccountView, SessionView};
use crate::account::sign_pages::{form_view, hidden_control, keep_private, new_passwords, password_control};
use crate::pages::ACCOUNT_PATH;
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
    pub sessions: Vec<SessionRow>,
    pub least_length: usize,
    /// Without a password there is none to change.
    pub has_password: bool,
    /// What is wrong with the new password, or why nothing was changed.
    pub mistake: Option<String>,
    pub refusal: Option<String>,
    /// What was done.
    pub notice: Option<String>,
}

/// A session of the account.
pub struct SessionRow {
    pub number: String,
    /// ISO and for people.
    pub created: (String, String),
    pub seen: (String, String),
    pub address: Option<String>,
    pub browser: Option<String>,
    pub is_current: bool,
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
        let session = |row: SessionRow| SessionView {
            created: row.created.1,
            created_at: row.created.0,
            seen: row.seen.1,
            seen_at: row.seen.0,
            address: row.address.unwrap_or_default(),
            browser: row.browser.map(|name| browser_name(&name)).unwrap_or_default(),
            is_current: row.is_current,
            end: format!("{ACCOUNT_PATH}/sessions/{}/end", row.number),
        };
        let view = AccountView {
            name: page.name.clone(),
            record: page.record.map(|href| PageLink { label: page.name.clone(), href }),
            roles: page.roles,
            session_roles: page.session_roles,
            notice: page.notice,
            sessions: page.sessions.into_iter().map(session).collect(),
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

/// Browser and system of a `User-Agent`, as far as they are well known: "Firefox on Linux".
fn browser_name(text: &str) -> String {
    // Each names those before it, to be taken for them.
    let browsers = [
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ];
    let systems = [
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Windows", "Windows"),
        ("Mac OS", "macOS"),
        ("Linux", "Linux"),
    ];
    let find = |known: &[(&str, &'static str)]| {
        known.iter().find(|(part, _)| text.contains(part)).map(|(_, name)| *name)
    };
    match (find(&browsers), find(&systems)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(browser), None) => browser.to_owned(),
        (None, _) => text.chars().take(60).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_named_by_what_they_are() {
        for (text, expected) in [
            ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"),
            (
                "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36 Edg/140.0",
                "Edge on Windows",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1 Version/19.0 Safari/604.1",
                "Safari on iPhone",
            ),
            ("curl/8.5.0", "curl/8.5.0"),
        ] {
            assert_eq!(browser_name(text), expected);
        }
    }
}
