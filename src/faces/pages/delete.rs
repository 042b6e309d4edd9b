//! Deleting: a page that says what else is affected, and the deed.

use axum::response::Response;

use super::Served;
use crate::faces::problem::Problem;
use crate::faces::resources::ask::Ask;
use crate::faces::resources::query::Takes;
use crate::faces::resources::write::see_other;

impl Served {
    pub async fn delete_form(&self, _ask: &Ask<'_>, _id: i64) -> Result<Response, Problem> {
        Err(crate::faces::resources::negotiate::RECORD.no_page())
    }

    /// DELETE from a client that takes more than JSON.
    pub async fn remove(&self, ask: &Ask<'_>, id: i64) -> Result<Response, Problem> {
        ask.query(ask.collection.record, Takes::Nothing)?;
        self.removed(ask, id, b"").await
    }

    pub async fn remove_by_form(&self, ask: &Ask<'_>, id: i64, bytes: &[u8]) -> Result<Response, Problem> {
        self.removed(ask, id, bytes).await
    }

    async fn removed(&self, ask: &Ask<'_>, id: i64, bytes: &[u8]) -> Result<Response, Problem> {
        let expected = ask.expected(id).await?;
        let done = ask.erase(id, expected, ask.key(bytes)?).await;
        let done = done.map_err(|error| ask.refusal(id, error))?;
        Ok(done.marked(see_other(&ask.collection.path)))
    }
}
