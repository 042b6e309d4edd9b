//! The schema of the application that a command was given, and whether a store fits it.

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
    /// The folder of the application, as a command-line argument.
    folder: Option<String>,
}

impl ExpectedSchema {
    /// `logged` lists the changes that go to the change log.
    pub fn new(model: Arc<Model>, logged: &[(RecordTypeId, ChangeKind)]) -> ExpectedSchema {
        let stored_model = StoredModel::from_model(&model, logged);
        ExpectedSchema { model, stored_model, name: String::new(), folder: None }
    }

    /// Sets the name for messages, and the folder for the commands that messages suggest.
    pub fn with_name(self, name: &str, folder: Option<String>) -> ExpectedSchema {
        ExpectedSchema { name: name.to_owned(), folder, ..self }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The migration steps that a server would refuse at its start, one per line.
    pub async fn refused_steps(&self, store: &StoreHandle) -> Result<String, TransferError> {
        let ExpectedSchema { model, stored_model, .. } = self;
        let steps = match store {
            StoreHandle::Sqlite(connection) => {
                transfer_tables::unsafe_sqlite_steps(connection, model, stored_model)?
            }
            StoreHandle::Postgres(client) => {
                transfer_tables::unsafe_postgres_steps(client, model, stored_model).await?
            }
        };
        Ok(steps.iter().map(|step| format!("  {step}\n")).collect())
    }

    /// Fails if a server would refuse to start on the store. The message lists the refused steps and ends with the
    /// `advice`, a function of the command that shows more.
    pub async fn refuse_unfit_store(
        &self,
        store: &StoreHandle,
        advice: fn(&str) -> String,
    ) -> Result<(), TransferError> {
        let steps = self.refused_steps(store).await?;
        if steps.is_empty() {
            return Ok(());
        }
        let folder = self.folder.as_ref().map(|folder| format!(" {folder}")).unwrap_or_default();
        let advice = advice(&format!("trefoil migrate{folder} --plan"));
        Err(TransferError(format!(
            "this store does not match the application; nothing was changed:\n{steps}{advice}"
        )))
    }
}
