//! The data of the templates of account pages.

use serde::Serialize;

use crate::template_data::{FormView, PageLink, SessionView};

/// `sign.html`: a page with one form about an account; `sign` in the template.
#[derive(Debug, Default, Serialize)]
pub struct SignView {
    pub heading: String,
    /// What went wrong, if it is about no field of the form.
    pub alert: Option<String>,
    /// Paragraphs.
    pub texts: Vec<String>,
    /// A link for a password, shown this once.
    pub secret: Option<String>,
    /// Opens in another window, so that this one stays.
    pub window: Option<PageLink>,
    pub form: Option<FormView>,
    /// Providers to sign in with instead.
    pub providers: Vec<PageLink>,
    pub links: Vec<PageLink>,
}

/// `account.html`: one's own account; `account` in the template.
#[derive(Debug, Serialize)]
pub struct AccountView {
    pub name: String,
    /// The page of the record.
    pub record: Option<PageLink>,
    pub roles: Vec<String>,
    /// Those that a provider gave this session alone.
    pub session_roles: Vec<String>,
    /// What was just done.
    pub notice: Option<String>,
    /// The last used first.
    pub sessions: Vec<SessionView>,
    /// The address that ends all others.
    pub end_others: Option<String>,
    /// The form that changes the password.
    pub password: Option<FormView>,
}
