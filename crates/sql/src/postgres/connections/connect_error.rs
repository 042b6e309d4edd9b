//! Errors of connecting to PostgreSQL: their messages and whether a retry can help.

use std::error::Error as _;
use std::time::Duration;

use rustls::CertificateError;
use tokio_postgres::Error as PgError;
use tokio_postgres::error::SqlState;

use trefoil_model::error::Error;

/// Why a connection could not be opened.
#[derive(Debug, Clone)]
pub struct ConnectError {
    /// For the operator: may contain addresses, never the password.
    pub message: String,
    /// A retry does not help: the password, the database name or a certificate is wrong.
    pub is_permanent: bool,
    /// The error came from the server, which is therefore reachable.
    pub is_server_reply: bool,
}

impl ConnectError {
    pub fn transient(message: impl Into<String>) -> ConnectError {
        ConnectError { message: message.into(), is_permanent: false, is_server_reply: false }
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
    // The driver does not expose the kind of its errors, only their text.
    let text = error.to_string();
    let is_tls = text == "error performing TLS handshake" && !is_io_error(error);
    is_tls || text == "authentication error" || text == "invalid configuration"
}

/// True if the connection broke, false if TLS was refused.
fn is_io_error(error: &PgError) -> bool {
    let io = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    io.is_some_and(|io| io.get_ref().is_none_or(|inner| !inner.is::<rustls::Error>()))
}

/// The error as one line: the server's message or the cause of the lost connection.
pub fn error_message(error: &PgError) -> String {
    if let Some(error) = error.as_db_error() {
        return error.message().to_owned();
    }
    if let Some(cause) = certificate_error(error) {
        return format!("the server's certificate is not trusted: {cause}");
    }
    match error.source() {
        Some(cause) => cause.to_string(),
        None => error.to_string(),
    }
}

fn certificate_error(error: &PgError) -> Option<String> {
    let io = error.source()?.downcast_ref::<std::io::Error>()?;
    let rustls::Error::InvalidCertificate(cause) = io.get_ref()?.downcast_ref()? else { return None };
    // BadSignature: another authority has the same name.
    if matches!(cause, CertificateError::UnknownIssuer | CertificateError::BadSignature) {
        return Some("unknown issuer (add its certificate with sslrootcert=FILE)".to_owned());
    }
    Some(cause.to_string())
}

/// The error for callers, without addresses or users.
pub fn database_unreachable() -> Error {
    unavailable("cannot connect to the database".to_owned())
}

pub fn unavailable(reason: String) -> Error {
    Error::Unavailable { reason, retry_after: Duration::from_secs(1) }
}
