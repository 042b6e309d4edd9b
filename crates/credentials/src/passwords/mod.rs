//! Passwords: which may be chosen, and how they are hashed.

mod chosen_password;
mod hashing_threads;
mod password_hasher;

pub use crate::passwords::chosen_password::{ChosenPassword, MAX_PASSWORD_LENGTH, PasswordMistake};
pub use crate::passwords::password_hasher::{HashingBusy, PasswordHasher, PasswordVerdict};
