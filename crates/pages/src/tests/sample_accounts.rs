//! Sample data for the templates of account pages.

use crate::account::account_views::{AccountView, SessionView, SignView};
use crate::tests::sample_forms::form;
use crate::tests::samples::link;

pub fn sign() -> SignView {
    SignView {
        heading: "Sign in".to_owned(),
        texts: vec!["Nobody can sign in yet.".to_owned()],
        secret: Some("https://shop.example/_/link?token=tfl_x".to_owned()),
        window: Some(link("Sign in, in another window", "/_/sign-in")),
        form: Some(form()),
        links: vec![link("Make an account", "/_/sign-up")],
    }
}

pub fn account() -> AccountView {
    let session = |is_current| SessionView {
        created: "14 Nov 2026, 09:30 UTC".to_owned(),
        created_at: "2026-11-14T09:30:00Z".to_owned(),
        seen: "15 Nov 2026, 09:30 UTC".to_owned(),
        seen_at: "2026-11-15T09:30:00Z".to_owned(),
        address: "192.0.2.1".to_owned(),
        browser: "Firefox on Linux".to_owned(),
        is_current,
        end: "/_/account/sessions/1/end".to_owned(),
    };
    AccountView {
        name: "Ada Lovelace".to_owned(),
        record: Some(link("Ada Lovelace", "/users/1")),
        roles: vec!["ADMIN".to_owned()],
        notice: Some("The session is ended.".to_owned()),
        sessions: vec![session(true), session(false)],
        end_others: Some("/_/account/sessions/end-others".to_owned()),
        password: Some(form()),
    }
}
