//! People who sign in: sessions, links and new accounts.

mod account_notes;
mod account_service;
mod failed_sign_ins;
mod new_accounts;
mod password_links;
mod sign_in_throttle;

pub use crate::accounts::account_service::{
    AccountRefusal, AccountService, ListedSession, OpenedSession, SignInOrigin, SignInState,
};
pub use crate::accounts::password_links::GoodLink;
