//! What both stores write in their change log as text, read back.

use trefoil_engine::{ChangeKind, LogEpoch};
use trefoil_model::error::{Error, Result};

#[derive(serde::Deserialize)]
struct StoredEpoch {
    tag: String,
    after: i64,
}

/// The epochs that `trefoil_meta` tells of.
pub fn parse_epochs(text: Option<&str>) -> Result<Vec<LogEpoch>> {
    let text = text.ok_or_else(|| Error::internal("trefoil_meta has no epochs"))?;
    let written: Vec<StoredEpoch> = serde_json::from_str(text).map_err(Error::internal)?;
    Ok(written.into_iter().map(|StoredEpoch { tag, after }| LogEpoch { tag, after }).collect())
}

/// What is none of the three words was not written by a trigger of ours; the number counts all the same.
pub fn parse_change_kind(name: &str) -> ChangeKind {
    let all = [ChangeKind::Created, ChangeKind::Updated, ChangeKind::Deleted];
    all.into_iter().find(|deed| deed.name() == name).unwrap_or(ChangeKind::Updated)
}
