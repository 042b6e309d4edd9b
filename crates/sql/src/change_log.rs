//! Parses the texts of the change log that are the same in both stores: epochs and kinds of change.

use trefoil_engine::changes::image_cell;
use trefoil_engine::{ChangeKind, LogEpoch, RecordImage};
use trefoil_model::error::{Error, Result};
use trefoil_model::naming::names::KEY_COLUMN;
use trefoil_model::{CellValue, RecordId};

#[derive(serde::Deserialize)]
struct StoredEpoch {
    tag: String,
    after: i64,
}

/// Parses the `epochs` entry of `trefoil_meta`.
pub fn parse_epochs(text: Option<&str>) -> Result<Vec<LogEpoch>> {
    let text = text.ok_or_else(|| Error::internal("trefoil_meta has no epochs"))?;
    let stored: Vec<StoredEpoch> = serde_json::from_str(text).map_err(Error::internal)?;
    Ok(stored.into_iter().map(|StoredEpoch { tag, after }| LogEpoch { tag, after }).collect())
}

/// The id of the changed record. The column `record` has only integers; other ids are in the image alone.
pub fn changed_record(image: &RecordImage, record: i64) -> RecordId {
    match image_cell(image, KEY_COLUMN) {
        CellValue::Text(id) => RecordId::from(id),
        CellValue::Null | CellValue::Int(_) | CellValue::Real(_) | CellValue::Unreadable => {
            RecordId::Number(record)
        }
    }
}

/// An unknown name was not written by our triggers; the change still counts, as an update.
pub fn parse_change_kind(name: &str) -> ChangeKind {
    let kinds = [ChangeKind::Created, ChangeKind::Updated, ChangeKind::Deleted];
    kinds.into_iter().find(|kind| kind.name() == name).unwrap_or(ChangeKind::Updated)
}
