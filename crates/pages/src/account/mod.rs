//! Pages of accounts: signing in and up, links for passwords, one's own account.

// What the templates get.
pub(crate) mod account_views;

// One form with its heading and what is said above it.
pub mod sign_pages;

// The fields of a new account.
pub mod new_account;

// One's own account, and the sessions of an account.
mod account_sessions;
pub mod own_account;

// Who did what.
pub mod audit_page;

// A form that was sent after the session had ended.
pub mod unsent_form;
