//! What a store knows of itself and takes along: its shape, its epochs, and how far ids and numbers have come.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::migrate::{FORMAT, StoredModel};
use crate::transfer::move_record::{ARRIVING, CAME, MOVED};
use crate::transfer::store_handle::End;
use crate::transfer::{Failed, Place};

/// On record about one store in one place, and so not taken along.
const STAYS: [&str; 8] = ["numbering", "seeding", "pruning", "seeded", MOVED, ARRIVING, CAME, BACKUP];
/// Which store it is, and the one at the beginning of those that it was restored from.
pub const STORE: &str = "store";
const LINE: &str = "line";
/// What a backup says about itself.
pub const BACKUP: &str = "backup";

pub struct Facts {
    pub shape: StoredModel,
    pub meta: BTreeMap<String, String>,
    /// The last id of each table of records.
    pub counters: Vec<(String, i64)>,
    /// The number of the last change.
    pub last_change: i64,
    /// Something was ever kept.
    pub is_used: bool,
}

/// As `trefoil_meta` has it.
#[derive(Serialize, Deserialize)]
struct Epoch {
    tag: String,
    after: i64,
}

impl Facts {
    /// None where there is no store.
    pub async fn of(end: &End) -> Result<Option<Facts>, Failed> {
        if !end.is_store().await? {
            return Ok(None);
        }
        let meta = end.meta().await?;
        let format = meta.get("format").and_then(|text| text.parse::<u32>().ok());
        let damaged = |what: &str| Failed(format!("the store is damaged: {what}"));
        match format {
            None => return Err(damaged("trefoil_meta tells no format")),
            Some(found) if found > FORMAT => {
                return Err(crate::migrate::MigrateError::NewerStore { found }.into());
            }
            Some(_) => {}
        }
        let model = meta.get("model").ok_or_else(|| damaged("trefoil_meta has no model"))?;
        let shape: StoredModel = serde_json::from_str(model)
            .map_err(|error| damaged(&format!("the shape on record cannot be read ({error})")))?;
        let (counters, last_change) = (end.counters(&shape).await?, end.last_change().await?);
        let has_values = end.has_list_values().await?;
        let is_used = has_values
            || last_change > 0
            || meta.contains_key("seeded")
            || counters.iter().any(|(_, last)| *last > 0);
        Ok(Some(Facts { shape, meta, counters, last_change, is_used }))
    }

    /// Which store it is, wherever it moves.
    pub fn store(&self) -> &str {
        self.meta.get(STORE).map_or("", String::as_str)
    }

    /// Which store it was once restored from, by however many steps.
    fn line(&self) -> &str {
        self.meta.get(LINE).map_or(self.store(), String::as_str)
    }

    /// From the next change on, ids carry a new name. Those up to `sure` lead where they led.
    pub fn begin_epoch(&mut self, sure: i64) -> Result<(), Failed> {
        let text = self.meta.get("epochs").map_or("[]", String::as_str);
        let epochs = serde_json::from_str::<Vec<Epoch>>(text);
        let mut epochs =
            epochs.map_err(|error| Failed(format!("the store's epochs cannot be read: {error}")))?;
        epochs.retain(|epoch| epoch.after <= sure);
        epochs.push(Epoch { tag: random(), after: sure });
        let json = serde_json::to_string(&epochs).map_err(|error| Failed(error.to_string()))?;
        self.meta.insert("epochs".to_owned(), json);
        Ok(())
    }

    /// Of a backup that is restored. In the place of a store of the same line it goes on as that one, and ids that were
    /// given since are given to nobody else. Elsewhere, and where that one lives on elsewhere, it is another store than
    /// the one that was put aside, with backups of its own.
    pub fn take_place_of(&mut self, gone: Option<&Facts>) {
        let line = self.line().to_owned();
        let gone = gone.filter(|gone| gone.line() == line);
        let ended = gone.filter(|gone| ![MOVED, ARRIVING].iter().any(|mark| gone.meta.contains_key(*mark)));
        let new = || uuid::Uuid::new_v4().simple().to_string();
        self.meta.insert(STORE.to_owned(), ended.map_or_else(new, |gone| gone.store().to_owned()));
        self.meta.insert(LINE.to_owned(), line);
        let Some(gone) = gone else { return };
        for (table, last) in &mut self.counters {
            let given = gone.counters.iter().find(|(name, _)| name == table);
            *last = given.map_or(*last, |(_, given)| (*last).max(*given));
        }
    }

    /// Puts them on record in a store that has the rows already.
    pub async fn write(&self, end: &End) -> Result<(), Failed> {
        for (key, value) in self.meta.iter().filter(|(key, _)| !STAYS.contains(&key.as_str())) {
            end.put_meta(key, value).await?;
        }
        if let (End::Postgres(_), true) = (end, self.is_used) {
            end.put_meta("seeded", "yes").await?;
        }
        end.set_counters(&self.counters, self.last_change).await
    }
}

/// The last id of each table of records.
pub async fn last_ids(place: &Place) -> Result<Vec<(String, i64)>, Failed> {
    let facts = Facts::of(&End::open(place).await?).await?;
    facts.map(|facts| facts.counters).ok_or_else(|| Failed(format!("{place}: there is no store yet")))
}

/// Eight characters that nobody had before.
pub fn random() -> String {
    uuid::Uuid::new_v4().simple().to_string()[..8].to_owned()
}
