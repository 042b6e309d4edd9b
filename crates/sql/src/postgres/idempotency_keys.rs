//! Idempotency keys on PostgreSQL: one that is being worked on is locked, on whichever node that is.

use tokio_postgres::types::ToSql;
use xxhash_rust::xxh3::xxh3_64;

use crate::postgres::error::Fault;
use crate::postgres::session::Session;
use crate::sqlite::idempotency_keys::{KEPT_FOR, Known, now, spell};
use crate::statements::select::Parameter;
use trefoil_engine::Key;

/// Takes the key for this transaction, or says that another has it. Two keys with one hash would at worst be told
/// to try again later.
pub async fn enter(session: Session<'_>, key: &Key) -> Result<bool, Fault> {
    let hash = xxh3_64(key.key.as_bytes()).cast_signed();
    let entered = session.number("SELECT pg_try_advisory_xact_lock($1)", &[Parameter::integer(hash)]).await?;
    Ok(entered == Some(1))
}

pub async fn look_up(session: Session<'_>, key: &Key) -> Result<Known, Fault> {
    let sql = "SELECT fingerprint, answer FROM trefoil_keys WHERE key = $1 AND at > $2";
    let statement = session.prepare(sql).await?;
    let bound: [&(dyn ToSql + Sync); 2] = [&key.key, &(now() - KEPT_FOR)];
    let found = session.link.client().query_opt(&statement, &bound).await;
    let Some(row) = found.map_err(|error| session.fault(error))? else { return Ok(Known::New) };
    let fingerprint: &str = row.try_get(0)?;
    Ok(if fingerprint == spell(key) { Known::Answered(row.try_get(1)?) } else { Known::Taken })
}

/// An expired answer under the same key gives way.
pub async fn keep(session: Session<'_>, key: &Key, answer: &[u8]) -> Result<(), Fault> {
    let sql = "INSERT INTO trefoil_keys (key, fingerprint, answer, at) VALUES ($1, $2, $3, $4) \
               ON CONFLICT (key) DO UPDATE SET fingerprint = excluded.fingerprint, \
               answer = excluded.answer, at = excluded.at";
    let statement = session.prepare(sql).await?;
    let bound: [&(dyn ToSql + Sync); 4] = [&key.key, &spell(key), &answer, &now()];
    let kept = session.link.client().execute(&statement, &bound).await;
    kept.map(drop).map_err(|error| session.fault(error))
}
