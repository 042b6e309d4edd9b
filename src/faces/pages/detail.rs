//! One record with everything it says and what refers to it.

use axum::response::Response;

use super::Served;
use crate::faces::problem::Problem;
use crate::faces::resources::ask::Ask;
use crate::faces::resources::collection::Nested;

impl Served {
    pub async fn one(&self, _ask: &Ask<'_>, _id: i64) -> Result<Response, Problem> {
        Err(crate::faces::resources::negotiate::RECORD.no_page())
    }

    pub async fn one_below(
        &self,
        _ask: &Ask<'_>,
        _above: i64,
        _nested: &Nested,
        _id: i64,
    ) -> Result<Response, Problem> {
        Err(crate::faces::resources::negotiate::RECORD.no_page())
    }
}
