//! Idempotency keys on PostgreSQL. A key in use is locked across all nodes.

use tokio_postgres::types::ToSql;
use xxhash_rust::xxh3::xxh3_64;

use trefoil_engine::IdempotencyKey;

use crate::idempotency_key::{IdempotencyKeyStatus, KEY_LIFETIME_SECONDS, fingerprint_text, unix_seconds};
use crate::postgres::error::PostgresError;
use crate::postgres::session::PostgresSession;
use crate::statements::sql_parameter::SqlParameter;

/// Locks the key for this transaction; false if another transaction holds it. If two keys share a hash, one of them is
/// asked to retry at worst.
pub async fn try_lock_key(session: PostgresSession<'_>, key: &IdempotencyKey) -> Result<bool, PostgresError> {
    let hash = xxh3_64(key.key.as_bytes()).cast_signed();
    let locked =
        session.query_integer("SELECT pg_try_advisory_xact_lock($1)", &[SqlParameter::integer(hash)]).await?;
    Ok(locked == Some(1))
}

/// Looks up the stored answer of a key.
pub async fn find_key(
    session: PostgresSession<'_>,
    key: &IdempotencyKey,
) -> Result<IdempotencyKeyStatus, PostgresError> {
    let sql = "SELECT fingerprint, answer FROM trefoil_keys WHERE key = $1 AND at > $2";
    let statement = session.prepare(sql).await?;
    let parameters: [&(dyn ToSql + Sync); 2] = [&key.key, &(unix_seconds() - KEY_LIFETIME_SECONDS)];
    let found = session.connection.client().query_opt(&statement, &parameters).await;
    let Some(row) = found.map_err(|error| session.classify_error(error))? else {
        return Ok(IdempotencyKeyStatus::New);
    };
    let fingerprint: &str = row.try_get(0)?;
    Ok(if fingerprint == fingerprint_text(key) {
        IdempotencyKeyStatus::Answered(row.try_get(1)?)
    } else {
        IdempotencyKeyStatus::UsedByOther
    })
}

/// Stores the answer of a key, replacing an expired one.
pub async fn store_answer(
    session: PostgresSession<'_>,
    key: &IdempotencyKey,
    answer: &[u8],
) -> Result<(), PostgresError> {
    let sql = "INSERT INTO trefoil_keys (key, fingerprint, answer, at) VALUES ($1, $2, $3, $4) \
               ON CONFLICT (key) DO UPDATE SET fingerprint = excluded.fingerprint, \
               answer = excluded.answer, at = excluded.at";
    let statement = session.prepare(sql).await?;
    let parameters: [&(dyn ToSql + Sync); 4] = [&key.key, &fingerprint_text(key), &answer, &unix_seconds()];
    let result = session.connection.client().execute(&statement, &parameters).await;
    result.map(drop).map_err(|error| session.classify_error(error))
}
