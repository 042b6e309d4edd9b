//! What the application that a command was given expects of a store, and whether it could be served from one.

use std::sync::Arc;

use trefoil_engine::ChangeKind;
use trefoil_model::{Model, RecordTypeId};

use crate::migrate::{StoredModel, transfer_tables};
use crate::transfer::TransferError;
use crate::transfer::store_handle::StoreHandle;

pub struct ExpectedSchema {
    model: Arc<Model>,
    stored_model: StoredModel,
    name: String,
    /// Its folder as a command takes it.
    folder: Option<String>,
}

impl ExpectedSchema {
    /// `logged` says which deeds go to the change log.
    pub fn new(model: Arc<Model>, logged: &[(RecordTypeId, ChangeKind)]) -> ExpectedSchema {
        let shape = StoredModel::from_model(&model, logged);
        ExpectedSchema { model, stored_model: shape, name: String::new(), folder: None }
    }

    /// What messages call it, and the folder that stands in the commands they tell of.
    pub fn called(self, name: &str, folder: Option<String>) -> ExpectedSchema {
        ExpectedSchema { name: name.to_owned(), folder, ..self }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// What a start would refuse to do to the store, a line each.
    pub async fn unfit(&self, end: &StoreHandle) -> Result<String, TransferError> {
        let ExpectedSchema { model, stored_model: shape, .. } = self;
        let unfit = match end {
            StoreHandle::Sqlite(connection) => {
                transfer_tables::unsafe_sqlite_steps(connection, model, shape)?
            }
            StoreHandle::Postgres(client) => {
                transfer_tables::unsafe_postgres_steps(client, model, shape).await?
            }
        };
        Ok(unfit.iter().map(|step| format!("  {step}\n")).collect())
    }

    /// As a start would judge the store; whatever does not fit is named, and then `way_on`, which is given the command
    /// that tells more.
    pub async fn refuse_unfit_store(
        &self,
        end: &StoreHandle,
        way_on: fn(&str) -> String,
    ) -> Result<(), TransferError> {
        let steps = self.unfit(end).await?;
        if steps.is_empty() {
            return Ok(());
        }
        let folder = self.folder.as_ref().map(|folder| format!(" {folder}")).unwrap_or_default();
        let way_on = way_on(&format!("trefoil migrate{folder} --plan"));
        Err(TransferError(format!(
            "this application cannot be served from this store, and nothing was changed:\n{steps}{way_on}"
        )))
    }
}
