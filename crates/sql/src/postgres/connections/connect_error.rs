//! Why a connection to PostgreSQL was not had or was lost, in words, and whether trying again can help.

use std::error::Error as _;
use std::time::Duration;

use rustls::CertificateError;
use tokio_postgres::Error as PgError;
use tokio_postgres::error::SqlState;

use trefoil_model::error::Error;

/// Why a connection was not had.
#[derive(Debug, Clone)]
pub struct Trouble {
    /// For the operator: addresses may be in it, the password never is.
    pub words: String,
    /// Waiting does not help: the password, the name of the database or a certificate is wrong.
    pub is_lasting: bool,
    /// The server itself said so: it is there.
    pub is_answer: bool,
}

impl Trouble {
    pub fn passing(words: impl Into<String>) -> Trouble {
        Trouble { words: words.into(), is_lasting: false, is_answer: false }
    }
}

impl From<&PgError> for Trouble {
    fn from(error: &PgError) -> Self {
        Trouble {
            words: words(error),
            is_lasting: is_lasting(error),
            is_answer: error.as_db_error().is_some(),
        }
    }
}

fn is_lasting(error: &PgError) -> bool {
    if let Some(code) = error.code() {
        return [
            SqlState::INVALID_PASSWORD,
            SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
            SqlState::INVALID_CATALOG_NAME,
            SqlState::INSUFFICIENT_PRIVILEGE,
        ]
        .contains(code);
    }
    // The driver keeps the kind of its errors to itself; their first words are all there is to go by.
    let kind = error.to_string();
    let is_tls = kind == "error performing TLS handshake" && !is_io(error);
    is_tls || kind == "authentication error" || kind == "invalid configuration"
}

/// The connection broke, rather than that somebody refused something.
fn is_io(error: &PgError) -> bool {
    let io = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    io.is_some_and(|io| io.get_ref().is_none_or(|inner| !inner.is::<rustls::Error>()))
}

/// The error as one line: what the server said, or what became of the connection.
pub fn words(error: &PgError) -> String {
    if let Some(error) = error.as_db_error() {
        return error.message().to_owned();
    }
    if let Some(refused) = certificate(error) {
        return format!("the server's certificate is refused: {refused}");
    }
    match error.source() {
        Some(cause) => cause.to_string(),
        None => error.to_string(),
    }
}

fn certificate(error: &PgError) -> Option<String> {
    let io = error.source()?.downcast_ref::<std::io::Error>()?;
    let rustls::Error::InvalidCertificate(why) = io.get_ref()?.downcast_ref()? else { return None };
    // The latter when another authority goes by the same name.
    if matches!(why, CertificateError::UnknownIssuer | CertificateError::BadSignature) {
        return Some("nobody who is trusted has signed it (sslrootcert=FILE names others)".to_owned());
    }
    Some(why.to_string())
}

/// What a caller is told: nothing of addresses or users.
pub fn away() -> Error {
    unavailable("the database cannot be reached".to_owned())
}

pub fn unavailable(reason: String) -> Error {
    Error::Unavailable { reason, retry_after: Duration::from_secs(1) }
}
