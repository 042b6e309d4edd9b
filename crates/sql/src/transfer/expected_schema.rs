//! What the application that a command was given expects of a store, and whether it could be served from one.

use std::sync::Arc;

use crate::migrate::{StoredModel, transfer_tables};
use crate::transfer::Failed;
use crate::transfer::store_handle::End;
use trefoil_engine::Deed;
use trefoil_model::{Model, TypeId};

pub struct Application {
    model: Arc<Model>,
    shape: StoredModel,
    name: String,
    /// Its folder as a command takes it.
    folder: Option<String>,
}

impl Application {
    /// `logged` says which deeds go to the change log.
    pub fn new(model: Arc<Model>, logged: &[(TypeId, Deed)]) -> Application {
        let shape = StoredModel::of(&model, logged);
        Application { model, shape, name: String::new(), folder: None }
    }

    /// What messages call it, and the folder that stands in the commands they tell of.
    pub fn called(self, name: &str, folder: Option<String>) -> Application {
        Application { name: name.to_owned(), folder, ..self }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// What a start would refuse to do to the store, a line each.
    pub async fn unfit(&self, end: &End) -> Result<String, Failed> {
        let Application { model, shape, .. } = self;
        let unfit = match end {
            End::Sqlite(connection) => transfer_tables::unfit_sqlite(connection, model, shape)?,
            End::Postgres(client) => transfer_tables::unfit_postgres(client, model, shape).await?,
        };
        Ok(unfit.iter().map(|step| format!("  {step}\n")).collect())
    }

    /// As a start would judge the store; whatever does not fit is named, and then `way_on`, which is given the command
    /// that tells more.
    pub async fn refuse_unfit(&self, end: &End, way_on: fn(&str) -> String) -> Result<(), Failed> {
        let steps = self.unfit(end).await?;
        if steps.is_empty() {
            return Ok(());
        }
        let folder = self.folder.as_ref().map(|folder| format!(" {folder}")).unwrap_or_default();
        let way_on = way_on(&format!("trefoil migrate{folder} --plan"));
        Err(Failed(format!(
            "this application cannot be served from this store, and nothing was changed:\n{steps}{way_on}"
        )))
    }
}
