//! What both stores write in their change log as text, read back.

use trefoil_engine::{Deed, Epoch};
use trefoil_model::error::{Error, Result};

#[derive(serde::Deserialize)]
struct Written {
    tag: String,
    after: i64,
}

/// The epochs that `trefoil_meta` tells of.
pub fn epochs(text: Option<&str>) -> Result<Vec<Epoch>> {
    let text = text.ok_or_else(|| Error::internal("trefoil_meta has no epochs"))?;
    let written: Vec<Written> = serde_json::from_str(text).map_err(Error::internal)?;
    Ok(written.into_iter().map(|Written { tag, after }| Epoch { tag, after }).collect())
}

/// What is none of the three words was not written by a trigger of ours; the number counts all the same.
pub fn deed(name: &str) -> Deed {
    let all = [Deed::Created, Deed::Updated, Deed::Deleted];
    all.into_iter().find(|deed| deed.name() == name).unwrap_or(Deed::Updated)
}
