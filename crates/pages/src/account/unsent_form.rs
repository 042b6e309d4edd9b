//! A form that was sent after the session had ended: it comes back with all that was typed.

use axum::response::Response;
use http::{HeaderMap, StatusCode};

use trefoil_http::errors::problem::Problem;
use trefoil_http::form_pairs::{FormPairs, percent_encode};
use trefoil_model::naming::names::display_label;

use crate::Pages;
use crate::account::account_views::SignView;
use crate::account::sign_pages::{form_view, hidden_control};
use crate::pages::{ACCOUNT_PATH, SIGN_IN_PATH};
use crate::template_data::{ControlKind, ControlView, PageLink};

impl Pages {
    /// The page with the form, to be sent again once somebody is signed in.
    pub fn unsent_form_page(
        &self,
        headers: &HeaderMap,
        path: &str,
        pairs: &FormPairs,
    ) -> Result<Response, Problem> {
        let texts = vec![
            "Your session had ended, so nothing was saved. All that you typed is below.".to_owned(),
            "Sign in, in another window; then come back to this one and send the form again.".to_owned(),
        ];
        let control = |(position, (name, value)): (usize, &(String, String))| {
            // What the form itself needs, and what nobody typed.
            if name.starts_with('-') || value.is_empty() {
                return hidden_control(name, value);
            }
            let is_long = value.len() > 60 || value.contains('\n');
            ControlView {
                kind: if is_long { ControlKind::Textarea } else { ControlKind::Text },
                name: name.clone(),
                id: format!("f-{position}"),
                label: display_label(name.rsplit('.').next().unwrap_or(name)),
                value: value.clone(),
                optional: true,
                ..ControlView::default()
            }
        };
        let controls = pairs.iter().enumerate().map(control).collect();
        let view = SignView {
            heading: "You are not signed in".to_owned(),
            texts,
            form: Some(form_view("Send again", path, controls, Vec::new())),
            window: Some(PageLink { label: "Sign in, in another window".to_owned(), href: to_account() }),
            ..SignView::default()
        };
        self.sign_page(headers, StatusCode::UNAUTHORIZED, view)
    }

    /// The page for a form of one's own account that is not shown again: it may have a password in it.
    pub fn signed_out_page(&self, headers: &HeaderMap) -> Result<Response, Problem> {
        let view = SignView {
            heading: "You are not signed in".to_owned(),
            texts: vec![
                "Your session had ended, so nothing was changed. Sign in, then do it again.".to_owned(),
            ],
            links: vec![PageLink { label: "Sign in".to_owned(), href: to_account() }],
            ..SignView::default()
        };
        self.sign_page(headers, StatusCode::UNAUTHORIZED, view)
    }
}

/// The sign-in that leads to one's own account.
fn to_account() -> String {
    format!("{SIGN_IN_PATH}?next={}", percent_encode(ACCOUNT_PATH))
}
