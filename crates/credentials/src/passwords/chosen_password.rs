//! [`ChosenPassword`]: a new password that may be chosen.

use std::fmt;

/// Longer ones are refused: hashing reads them whole.
pub const MAX_PASSWORD_LENGTH: usize = 1_024;

/// Sorted, in lower case.
const COMMON_PASSWORDS: &str = include_str!("common.txt");

/// A password that may be chosen. Nothing of it is ever changed: it is compared exactly as it was typed.
pub struct ChosenPassword(String);

/// Why a password may not be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PasswordMistake {
    TooShort {
        least: usize,
    },
    TooLong,
    Common,
    /// It is the login, or a name.
    Name,
    /// It was typed differently the second time.
    Different,
}

impl ChosenPassword {
    /// Checks a password that was typed twice. `names` are those of the account and of the application.
    pub fn check(
        password: &str,
        again: &str,
        least: usize,
        names: &[&str],
    ) -> Result<ChosenPassword, PasswordMistake> {
        let length = password.chars().count();
        let folded = password.to_lowercase();
        let is_name = |name: &&str| name.trim().to_lowercase() == folded.trim();
        if length < least {
            return Err(PasswordMistake::TooShort { least });
        }
        if length > MAX_PASSWORD_LENGTH {
            return Err(PasswordMistake::TooLong);
        }
        if names.iter().any(is_name) {
            return Err(PasswordMistake::Name);
        }
        if COMMON_PASSWORDS.lines().any(|common| common == folded) {
            return Err(PasswordMistake::Common);
        }
        if password != again {
            return Err(PasswordMistake::Different);
        }
        Ok(ChosenPassword(password.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ChosenPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChosenPassword(***)")
    }
}

impl fmt::Display for PasswordMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PasswordMistake::TooShort { least } => write!(f, "use at least {least} characters"),
            PasswordMistake::TooLong => write!(f, "use at most {MAX_PASSWORD_LENGTH} characters"),
            PasswordMistake::Common => f.write_str("many people use this password: choose another one"),
            PasswordMistake::Name => f.write_str("choose one that is not a name or the login"),
            PasswordMistake::Different => f.write_str("type the same password twice"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_passwords_that_are_hard_to_guess_may_be_chosen() {
        let check = |password: &str| {
            ChosenPassword::check(password, password, 12, &["Ada Lovelace", "ada@example.org", "My library"])
                .map(|chosen| chosen.as_str().to_owned())
        };
        for good in ["a long password", "ääääääääääää", "            ", &"x".repeat(1_024), " Ada Lovelace's"]
        {
            assert_eq!(check(good).as_deref(), Ok(good));
        }
        assert_eq!(check("elevenchars"), Err(PasswordMistake::TooShort { least: 12 }));
        assert_eq!(check("äääääääääää"), Err(PasswordMistake::TooShort { least: 12 }));
        assert_eq!(check(&"x".repeat(1_025)), Err(PasswordMistake::TooLong));
        assert_eq!(check("ADA lovelace"), Err(PasswordMistake::Name));
        assert_eq!(check("Ada@example.org"), Err(PasswordMistake::Name));
        let common = |password| ChosenPassword::check(password, password, 8, &[]).err();
        for password in ["password", "PassWord", "qwertyuiop", "1q2w3e4r5t6y"] {
            assert_eq!(common(password), Some(PasswordMistake::Common), "{password}");
        }
        let different = ChosenPassword::check("a long password", "a long passw0rd", 12, &[]).err();
        assert_eq!(different, Some(PasswordMistake::Different));
    }

    #[test]
    fn the_list_has_the_commonest() {
        let words: Vec<&str> = COMMON_PASSWORDS.lines().collect();
        assert!(words.len() >= 3_000, "{}", words.len());
        assert!(
            words.is_sorted() && words.iter().all(|word| word.len() >= 8 && *word == word.to_lowercase())
        );
    }
}
