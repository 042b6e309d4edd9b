//! What the application that a command was given expects of a store, and whether it could be served from one.

use std::sync::Arc;

use super::Failed;
use super::end::End;
use crate::engine::Deed;
use crate::model::{Model, TypeId};
use crate::sql::migrate::{StoredModel, copying};

pub struct Application {
    model: Arc<Model>,
    shape: StoredModel,
}

impl Application {
    /// `logged` says which deeds go to the change log.
    pub fn new(model: Arc<Model>, logged: &[(TypeId, Deed)]) -> Application {
        let shape = StoredModel::of(&model, logged);
        Application { model, shape }
    }

    /// As a start would judge the store; whatever does not fit is named, and then `way_on`.
    pub async fn refuse_unfit(&self, end: &End, way_on: &str) -> Result<(), Failed> {
        let Application { model, shape } = self;
        let unfit = match end {
            End::Sqlite(connection) => copying::unfit_sqlite(connection, model, shape)?,
            End::Postgres(client) => copying::unfit_postgres(client, model, shape).await?,
        };
        if unfit.is_empty() {
            return Ok(());
        }
        let steps: String = unfit.iter().map(|step| format!("  {step}\n")).collect();
        Err(Failed(format!(
            "this application cannot be served from this store, and nothing was changed:\n{steps}{way_on}"
        )))
    }
}
