//! Sample data for the templates of account pages.

use crate::account::account_views::{AccountView, SignView};
use crate::account::audit_page::{AuditChoice, AuditLine, AuditView};
use crate::template_data::SessionView;
use crate::tests::sample_forms::form;
use crate::tests::samples::link;

pub fn sign() -> SignView {
    SignView {
        heading: "Sign in".to_owned(),
        alert: Some("Company login does not answer.".to_owned()),
        texts: vec!["Nobody can sign in yet.".to_owned()],
        secret: Some("https://shop.example/_/link?token=tfl_x".to_owned()),
        window: Some(link("Sign in, in another window", "/_/sign-in")),
        form: Some(form()),
        providers: vec![link("Company login", "/_/oidc/1?next=%2Fposts")],
        links: vec![link("Make an account", "/_/sign-up")],
    }
}

pub fn managed_session() -> SessionView {
    SessionView {
        created: "14 Nov 2026, 09:30 UTC".to_owned(),
        created_at: "2026-11-14T09:30:00Z".to_owned(),
        seen: "15 Nov 2026, 09:30 UTC".to_owned(),
        seen_at: "2026-11-15T09:30:00Z".to_owned(),
        address: "192.0.2.1".to_owned(),
        browser: "Firefox on Linux".to_owned(),
        is_current: false,
        end: None,
    }
}

pub fn account() -> AccountView {
    let session = |is_current| SessionView {
        is_current,
        end: Some("/_/account/sessions/1/end".to_owned()),
        ..managed_session()
    };
    AccountView {
        name: "Ada Lovelace".to_owned(),
        record: Some(link("Ada Lovelace", "/users/1")),
        roles: vec!["ADMIN".to_owned()],
        session_roles: vec!["EDITOR".to_owned()],
        notice: Some("The session is ended.".to_owned()),
        sessions: vec![session(true), session(false)],
        end_others: Some("/_/account/sessions/end-others".to_owned()),
        password: Some(form()),
    }
}

pub fn bare_account() -> AccountView {
    AccountView {
        record: None,
        roles: Vec::new(),
        notice: None,
        sessions: Vec::new(),
        end_others: None,
        password: None,
        ..account()
    }
}

pub fn audit() -> AuditView {
    let line = |actor: Option<&str>| AuditLine {
        time: "14 Nov 2026, 09:30:00 UTC".to_owned(),
        at: "2026-11-14T09:30:00Z".to_owned(),
        actor: actor.map(|name| link(name, "/_/audit?actor=account%3A7")),
        action: "Update".to_owned(),
        subject: "Order 3, version 2".to_owned(),
        href: actor.map(|_| "/orders/3".to_owned()),
        fields: "item, quantity".to_owned(),
        address: "192.0.2.1".to_owned(),
        request: "0123456789abcdef-1".to_owned(),
    };
    let choice = |name: &str, is_chosen| AuditChoice { name: name.to_owned(), is_chosen };
    AuditView {
        action: "/_/audit".to_owned(),
        actor: "account:7".to_owned(),
        since: "2026-11-14T09:30".to_owned(),
        until: "yesterday".to_owned(),
        types: vec![choice("User", false), choice("Order", true)],
        is_filtered: true,
        complaints: vec![link("Until is not a time", "#since")],
        notice: Some("The audit is off.".to_owned()),
        entries: vec![line(Some("account:7")), line(None)],
        newest: Some("/_/audit".to_owned()),
        older: Some("/_/audit?before=5.6".to_owned()),
    }
}
