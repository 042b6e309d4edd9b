//! The list of a record type: search, filters, sorting and paging.

use axum::response::Response;

use super::Served;
use crate::faces::problem::Problem;
use crate::faces::resources::ask::Ask;
use crate::faces::resources::collection::Nested;

impl Served {
    pub async fn list(&self, _ask: &Ask<'_>) -> Result<Response, Problem> {
        Err(crate::faces::resources::negotiate::RECORD.no_page())
    }

    pub async fn list_below(
        &self,
        _ask: &Ask<'_>,
        _above: i64,
        _nested: &Nested,
    ) -> Result<Response, Problem> {
        Err(crate::faces::resources::negotiate::RECORD.no_page())
    }
}
