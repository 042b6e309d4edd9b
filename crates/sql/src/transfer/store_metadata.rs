//! What a store knows of itself and takes along: its shape, its epochs, and how far ids and numbers have come.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::migrate::{STORE_FORMAT, StoredModel};
use crate::transfer::move_record::{ARRIVING_KEY, CAME_KEY, MOVED_KEY};
use crate::transfer::store_handle::StoreHandle;
use crate::transfer::{StoreLocation, TransferError};

/// On record about one store in one place, and so not taken along.
const LOCAL_KEYS: [&str; 8] =
    ["numbering", "seeding", "pruning", "seeded", MOVED_KEY, ARRIVING_KEY, CAME_KEY, BACKUP_KEY];
/// Which store it is, and the one at the beginning of those that it was restored from.
pub const STORE_KEY: &str = "store";
const LINEAGE_KEY: &str = "line";
/// What a backup says about itself.
pub const BACKUP_KEY: &str = "backup";

pub struct StoreMetadata {
    pub stored_model: StoredModel,
    pub meta: BTreeMap<String, String>,
    /// The last id of each table of records.
    pub id_counters: Vec<(String, i64)>,
    /// The number of the last change.
    pub last_change: i64,
    /// Something was ever kept.
    pub is_used: bool,
}

/// As `trefoil_meta` has it.
#[derive(Serialize, Deserialize)]
struct EpochRecord {
    tag: String,
    after: i64,
}

impl StoreMetadata {
    /// None where there is no store.
    pub async fn read(end: &StoreHandle) -> Result<Option<StoreMetadata>, TransferError> {
        if !end.is_store().await? {
            return Ok(None);
        }
        let meta = end.read_meta().await?;
        let format = meta.get("format").and_then(|text| text.parse::<u32>().ok());
        let damaged = |what: &str| TransferError(format!("the store is damaged: {what}"));
        match format {
            None => return Err(damaged("trefoil_meta tells no format")),
            Some(found) if found > STORE_FORMAT => {
                return Err(crate::migrate::MigrateError::NewerStore { found }.into());
            }
            Some(_) => {}
        }
        let model = meta.get("model").ok_or_else(|| damaged("trefoil_meta has no model"))?;
        let shape: StoredModel = serde_json::from_str(model)
            .map_err(|error| damaged(&format!("the shape on record cannot be read ({error})")))?;
        let (counters, last_change) = (end.id_counters(&shape).await?, end.last_change().await?);
        let has_values = end.has_list_values().await?;
        let is_used = has_values
            || last_change > 0
            || meta.contains_key("seeded")
            || counters.iter().any(|(_, last)| *last > 0);
        Ok(Some(StoreMetadata { stored_model: shape, meta, id_counters: counters, last_change, is_used }))
    }

    /// Which store it is, wherever it moves.
    pub fn store_id(&self) -> &str {
        self.meta.get(STORE_KEY).map_or("", String::as_str)
    }

    /// Which store it was once restored from, by however many steps.
    fn lineage_id(&self) -> &str {
        self.meta.get(LINEAGE_KEY).map_or(self.store_id(), String::as_str)
    }

    /// From the next change on, ids carry a new name. Those up to `sure` lead where they led.
    pub fn begin_epoch(&mut self, sure: i64) -> Result<(), TransferError> {
        let text = self.meta.get("epochs").map_or("[]", String::as_str);
        let epochs = serde_json::from_str::<Vec<EpochRecord>>(text);
        let mut epochs =
            epochs.map_err(|error| TransferError(format!("the store's epochs cannot be read: {error}")))?;
        epochs.retain(|epoch| epoch.after <= sure);
        epochs.push(EpochRecord { tag: random_tag(), after: sure });
        let json = serde_json::to_string(&epochs).map_err(|error| TransferError(error.to_string()))?;
        self.meta.insert("epochs".to_owned(), json);
        Ok(())
    }

    /// Of a backup that is restored. In the place of a store of the same line it goes on as that one, and ids that were
    /// given since are given to nobody else. Elsewhere, and where that one lives on elsewhere, it is another store than
    /// the one that was put aside, with backups of its own.
    pub fn replace_store(&mut self, gone: Option<&StoreMetadata>) {
        let line = self.lineage_id().to_owned();
        let gone = gone.filter(|gone| gone.lineage_id() == line);
        let ended =
            gone.filter(|gone| ![MOVED_KEY, ARRIVING_KEY].iter().any(|mark| gone.meta.contains_key(*mark)));
        let new = || uuid::Uuid::new_v4().simple().to_string();
        self.meta.insert(STORE_KEY.to_owned(), ended.map_or_else(new, |gone| gone.store_id().to_owned()));
        self.meta.insert(LINEAGE_KEY.to_owned(), line);
        let Some(gone) = gone else { return };
        for (table, last) in &mut self.id_counters {
            let given = gone.id_counters.iter().find(|(name, _)| name == table);
            *last = given.map_or(*last, |(_, given)| (*last).max(*given));
        }
    }

    /// Puts them on record in a store that has the rows already.
    pub async fn write(&self, end: &StoreHandle) -> Result<(), TransferError> {
        for (key, value) in self.meta.iter().filter(|(key, _)| !LOCAL_KEYS.contains(&key.as_str())) {
            end.put_meta(key, value).await?;
        }
        if let (StoreHandle::Postgres(_), true) = (end, self.is_used) {
            end.put_meta("seeded", "yes").await?;
        }
        end.set_counters(&self.id_counters, self.last_change).await
    }
}

/// The last id of each table of records.
pub async fn last_ids(place: &StoreLocation) -> Result<Vec<(String, i64)>, TransferError> {
    let facts = StoreMetadata::read(&StoreHandle::open(place).await?).await?;
    facts
        .map(|facts| facts.id_counters)
        .ok_or_else(|| TransferError(format!("{place}: there is no store yet")))
}

/// Eight characters that nobody had before.
pub fn random_tag() -> String {
    uuid::Uuid::new_v4().simple().to_string()[..8].to_owned()
}
