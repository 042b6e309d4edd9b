//! Why a connection to PostgreSQL was not had or was lost, in words, and whether trying again can help.

use std::error::Error as _;
use std::time::Duration;

use rustls::CertificateError;
use tokio_postgres::Error as PgError;
use tokio_postgres::error::SqlState;

use trefoil_model::error::Error;

/// Why a connection was not had.
#[derive(Debug, Clone)]
pub struct ConnectError {
    /// For the operator: addresses may be in it, the password never is.
    pub message: String,
    /// Waiting does not help: the password, the name of the database or a certificate is wrong.
    pub is_permanent: bool,
    /// The server itself said so: it is there.
    pub is_server_reply: bool,
}

impl ConnectError {
    pub fn transient(words: impl Into<String>) -> ConnectError {
        ConnectError { message: words.into(), is_permanent: false, is_server_reply: false }
    }
}

impl From<&PgError> for ConnectError {
    fn from(error: &PgError) -> Self {
        ConnectError {
            message: error_message(error),
            is_permanent: is_permanent_error(error),
            is_server_reply: error.as_db_error().is_some(),
        }
    }
}

fn is_permanent_error(error: &PgError) -> bool {
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
    let is_tls = kind == "error performing TLS handshake" && !is_io_error(error);
    is_tls || kind == "authentication error" || kind == "invalid configuration"
}

/// The connection broke, rather than that somebody refused something.
fn is_io_error(error: &PgError) -> bool {
    let io = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    io.is_some_and(|io| io.get_ref().is_none_or(|inner| !inner.is::<rustls::Error>()))
}

/// The error as one line: what the server said, or what became of the connection.
pub fn error_message(error: &PgError) -> String {
    if let Some(error) = error.as_db_error() {
        return error.message().to_owned();
    }
    if let Some(refused) = certificate_error(error) {
        return format!("the server's certificate is refused: {refused}");
    }
    match error.source() {
        Some(cause) => cause.to_string(),
        None => error.to_string(),
    }
}

fn certificate_error(error: &PgError) -> Option<String> {
    let io = error.source()?.downcast_ref::<std::io::Error>()?;
    let rustls::Error::InvalidCertificate(why) = io.get_ref()?.downcast_ref()? else { return None };
    // The latter when another authority goes by the same name.
    if matches!(why, CertificateError::UnknownIssuer | CertificateError::BadSignature) {
        return Some("nobody who is trusted has signed it (sslrootcert=FILE names others)".to_owned());
    }
    Some(why.to_string())
}

/// What a caller is told: nothing of addresses or users.
pub fn database_unreachable() -> Error {
    unavailable("the database cannot be reached".to_owned())
}

pub fn unavailable(reason: String) -> Error {
    Error::Unavailable { reason, retry_after: Duration::from_secs(1) }
}
