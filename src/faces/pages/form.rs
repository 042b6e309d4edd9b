//! Forms for new and changed records, and what becomes of them when they are sent.

use axum::response::Response;

use super::Served;
use crate::faces::problem::Problem;
use crate::faces::resources::ask::Ask;
use crate::faces::resources::fields;
use crate::faces::resources::pairs::Pairs;
use crate::faces::resources::write::{refusal, see_other};

impl Served {
    pub async fn new_form(&self, _ask: &Ask<'_>) -> Result<Response, Problem> {
        Err(crate::faces::resources::negotiate::RECORD.no_page())
    }

    pub async fn edit_form(&self, _ask: &Ask<'_>, _id: i64) -> Result<Response, Problem> {
        Err(crate::faces::resources::negotiate::RECORD.no_page())
    }

    pub async fn create(&self, ask: &Ask<'_>, pairs: &Pairs, bytes: &[u8]) -> Result<Response, Problem> {
        let fields = fields::of_form(ask.record(), pairs);
        let done = ask.add(fields, ask.key(bytes)?).await.map_err(refusal)?;
        Ok(done.marked(see_other(&ask.collection.path)))
    }

    pub async fn replace(
        &self,
        ask: &Ask<'_>,
        id: i64,
        pairs: &Pairs,
        bytes: &[u8],
    ) -> Result<Response, Problem> {
        let (fields, expected) = (fields::of_form(ask.record(), pairs), ask.expected(id).await?);
        let done = ask.overwrite(id, fields, expected, ask.key(bytes)?).await;
        let done = done.map_err(|error| ask.refusal(id, error))?;
        Ok(done.marked(see_other(&format!("{}/{id}", ask.collection.path))))
    }
}
