//! People who sign in: sessions, links, new accounts and providers.

mod account_notes;
mod account_service;
mod failed_sign_ins;
mod known_networks;
mod new_accounts;
mod password_change;
mod password_links;
mod pending_sign_in;
mod provider_refusal;
mod provider_sign_in;
mod sign_in_throttle;

pub use crate::accounts::account_service::{
    AccountRefusal, AccountService, ListedSession, OpenedSession, SignInOrigin, SignInState,
};
pub use crate::accounts::new_accounts::NewAccountMaker;
pub use crate::accounts::password_links::GoodLink;
pub use crate::accounts::pending_sign_in::PENDING_SECONDS;
pub use crate::accounts::provider_refusal::ProviderRefusal;
pub use crate::accounts::provider_sign_in::{BegunSignIn, ProvenPerson, ReturnedSignIn};
