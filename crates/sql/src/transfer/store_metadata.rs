//! The metadata that is copied with a store: its model, the epochs of its change log, and its counters.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::accounts::{ACCOUNT_TABLES, SIGN_IN_KEY};
use crate::api_keys::API_KEYS_TABLE;
use crate::audit::AUDIT_TABLE;
use crate::migrate::{MigrateError, STORE_FORMAT, StoredModel};
use crate::move_record::{ARRIVING_KEY, MOVE_TOKEN_KEY, MOVED_KEY, random_tag};
use crate::transfer::copied_table::CredentialTables;
use crate::transfer::store_handle::StoreHandle;
use crate::transfer::{StoreLocation, TransferError};

/// Keys of `trefoil_meta` that belong to a store in one location and are not copied.
const LOCAL_KEYS: [&str; 9] = [
    "numbering",
    "seeding",
    "pruning",
    "seeded",
    MOVED_KEY,
    ARRIVING_KEY,
    MOVE_TOKEN_KEY,
    BACKUP_KEY,
    SIGN_IN_KEY,
];
/// Key with the id of the store.
pub const STORE_KEY: &str = "store";
/// Key with the id of the store from which it was first restored.
const LINEAGE_KEY: &str = "line";
/// Key with the label of a backup.
pub const BACKUP_KEY: &str = "backup";

pub struct StoreMetadata {
    pub stored_model: StoredModel,
    pub meta: BTreeMap<String, String>,
    /// The last id of each table of records.
    pub id_counters: Vec<(String, i64)>,
    /// The number of the last change.
    pub last_change: i64,
    pub credentials: CredentialTables,
    /// True if the store ever had data.
    pub is_used: bool,
}

/// An epoch as stored in `trefoil_meta`.
#[derive(Serialize, Deserialize)]
struct EpochRecord {
    tag: String,
    after: i64,
}

impl StoreMetadata {
    /// Reads the metadata; `None` if there is no store.
    pub async fn read(store: &StoreHandle) -> Result<Option<StoreMetadata>, TransferError> {
        if !store.is_store().await? {
            return Ok(None);
        }
        let meta = store.read_meta().await?;
        let format = meta.get("format").and_then(|text| text.parse::<u32>().ok());
        let damaged = |what: &str| TransferError(format!("the store is damaged: {what}"));
        match format {
            None => return Err(damaged("trefoil_meta has no format")),
            Some(found) if found > STORE_FORMAT => {
                return Err(MigrateError::NewerStore { found }.into());
            }
            Some(_) => {}
        }
        let model = meta.get("model").ok_or_else(|| damaged("trefoil_meta has no model"))?;
        let stored_model: StoredModel = serde_json::from_str(model)
            .map_err(|error| damaged(&format!("the stored model cannot be read ({error})")))?;
        let (id_counters, last_change) =
            (store.id_counters(&stored_model).await?, store.last_change().await?);
        let has_values = store.has_list_values().await?;
        let credentials = CredentialTables {
            api_keys: store.has_table(API_KEYS_TABLE).await?,
            accounts: store.has_table(ACCOUNT_TABLES[0]).await?,
            audit: store.has_table(AUDIT_TABLE).await?,
        };
        let is_used = has_values
            || last_change > 0
            || meta.contains_key("seeded")
            || id_counters.iter().any(|(_, last)| *last > 0)
            || store.has_uncounted_records(&stored_model).await?;
        Ok(Some(StoreMetadata { stored_model, meta, id_counters, last_change, credentials, is_used }))
    }

    /// The id of the store, which a move does not change.
    pub fn store_id(&self) -> &str {
        self.meta.get(STORE_KEY).map_or("", String::as_str)
    }

    /// The id of the store from which it was first restored, over any number of restores.
    fn lineage_id(&self) -> &str {
        self.meta.get(LINEAGE_KEY).map_or(self.store_id(), String::as_str)
    }

    /// Begins a new epoch of change ids after `sure`. Ids up to it stay valid.
    pub fn begin_epoch(&mut self, sure: i64) -> Result<(), TransferError> {
        let text = self.meta.get("epochs").map_or("[]", String::as_str);
        let epochs = serde_json::from_str::<Vec<EpochRecord>>(text);
        let mut epochs =
            epochs.map_err(|error| TransferError(format!("cannot read the epochs of the store: {error}")))?;
        epochs.retain(|epoch| epoch.after <= sure);
        epochs.push(EpochRecord { tag: random_tag(), after: sure });
        let json = serde_json::to_string(&epochs).map_err(|error| TransferError(error.to_string()))?;
        self.meta.insert("epochs".to_owned(), json);
        Ok(())
    }

    /// Adapts the metadata of a backup to the store that it replaces. If that has the same lineage, the backup continues
    /// it: it keeps its id, and ids assigned since the backup are not assigned again. If it does not, or was moved and is
    /// in use elsewhere, the backup becomes a new store with backups of its own.
    pub fn replace_store(&mut self, replaced: Option<&StoreMetadata>) {
        let lineage = self.lineage_id().to_owned();
        let replaced = replaced.filter(|replaced| replaced.lineage_id() == lineage);
        let continued = replaced
            .filter(|replaced| ![MOVED_KEY, ARRIVING_KEY].iter().any(|key| replaced.meta.contains_key(*key)));
        let new_id = || uuid::Uuid::new_v4().simple().to_string();
        self.meta.insert(
            STORE_KEY.to_owned(),
            continued.map_or_else(new_id, |replaced| replaced.store_id().to_owned()),
        );
        self.meta.insert(LINEAGE_KEY.to_owned(), lineage);
        let Some(replaced) = replaced else { return };
        for (table, last) in &mut self.id_counters {
            let assigned = replaced.id_counters.iter().find(|(name, _)| name == table);
            *last = assigned.map_or(*last, |(_, assigned)| (*last).max(*assigned));
        }
    }

    /// Writes the metadata into a store that already has the rows.
    pub async fn write(&self, store: &StoreHandle) -> Result<(), TransferError> {
        for (key, value) in self.meta.iter().filter(|(key, _)| !LOCAL_KEYS.contains(&key.as_str())) {
            store.put_meta(key, value).await?;
        }
        if self.is_used {
            store.put_meta("seeded", "yes").await?;
        }
        store.set_counters(&self.id_counters, self.last_change).await
    }
}

/// The last id of each table of records.
pub async fn last_ids(location: &StoreLocation) -> Result<Vec<(String, i64)>, TransferError> {
    let metadata = StoreMetadata::read(&StoreHandle::open(location).await?).await?;
    metadata
        .map(|metadata| metadata.id_counters)
        .ok_or_else(|| TransferError(format!("{location}: no store found")))
}
