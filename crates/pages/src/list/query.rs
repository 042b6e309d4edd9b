//! The list of a record type: what its page asks the store for.

use std::sync::Arc;

use axum::response::Response;

use crate::Served;
use crate::list::filters::Filters;
use crate::list::page::Listed;
use crate::multi_read::{Found, PART, look};
use crate::phrases::MOST_COUNTED;
use trefoil_engine::{Count, Listing, Operation, Outcome, OwnedRow};
use trefoil_http::errors::problem::Problem;
use trefoil_http::response_cache::Made;
use trefoil_model::error::Error;
use trefoil_model::{FieldId, TypeId};
use trefoil_resources::collection::{Nested, is};
use trefoil_resources::list_query::{Query, Takes, refused};
use trefoil_resources::request::Ask;

/// Which list a page is of.
pub struct Place {
    pub record: TypeId,
    pub path: String,
    /// The record that it is a part of, and the field that says so.
    pub above: Option<(i64, FieldId)>,
}

/// What a list found.
#[derive(Default)]
pub struct Rows {
    pub rows: Vec<OwnedRow>,
    pub more: bool,
    pub total: u64,
}

impl Served {
    pub async fn list(&self, ask: &Ask<'_>) -> Result<Response, Problem> {
        let (record, path) = (ask.collection.record, ask.collection.path.clone());
        self.list_at(ask, Place { record, path, above: None }).await
    }

    /// The records that refer to one record, which must be there.
    pub async fn list_below(&self, ask: &Ask<'_>, above: i64, nested: &Nested) -> Result<Response, Problem> {
        let path = format!("{}/{above}/{}", ask.collection.path, nested.segment);
        let above = Some((above, nested.reference));
        self.list_at(ask, Place { record: nested.record, path, above }).await
    }

    async fn list_at(&self, ask: &Ask<'_>, place: Place) -> Result<Response, Problem> {
        let (site, query) = (ask.site, ask.query(place.record, Takes::Page)?);
        let wrong = Filters::judge(site, place.record, &query);
        let hidden = place.above.map(|(_, field)| field);
        let filters = Filters { record: place.record, hidden, query: &query, wrong };
        let mut operations: Vec<Operation> = self.above(ask, &place).into_iter().collect();
        operations.extend(filters.choices(self, site));
        operations.extend(filters.wrong.is_empty().then(|| self.asked(&place, &query)));
        let before = site.answers.state();
        let mut found = look(&site.engine, operations, PART).await.map_err(refused)?;
        let rows = if filters.wrong.is_empty() { rows(found.pop())? } else { Rows::default() };
        let above = match place.above {
            Some((id, _)) => Some(present(ask, id, found.remove(0))?),
            None => None,
        };
        let listed =
            Listed { served: self, ask, place: &place, filters: &filters, above, choices: found, rows };
        Ok(Made::mark(before, ask.kept(listed.response()?)))
    }

    /// The record above is asked for with the list: that it is there, and what it is called.
    fn above(&self, ask: &Ask<'_>, place: &Place) -> Option<Operation> {
        let record = ask.collection.record;
        place.above.map(|(id, _)| Operation::Get { record, id, selection: self.names[record.0].clone() })
    }

    fn asked(&self, place: &Place, query: &Query) -> Operation {
        let mut listing =
            Listing { cursors: true, count: Count::UpTo(MOST_COUNTED), ..query.listing.clone() };
        listing.conditions.extend(place.above.map(|(id, field)| is(field, id)));
        let selection = Arc::clone(&self.readings[place.record.0].selection);
        Operation::List { record: place.record, listing, selection }
    }
}

fn present(ask: &Ask<'_>, id: i64, found: Found) -> Result<OwnedRow, Problem> {
    found.rows.into_iter().next().ok_or_else(|| ask.missing(ask.collection.record, id))
}

fn rows(found: Option<Found>) -> Result<Rows, Problem> {
    match found {
        Some(Found { rows, outcome: Outcome::Listed { more, total } }) => {
            Ok(Rows { rows, more, total: total.unwrap_or_default() })
        }
        other => Err(Error::internal(format!("a list ended as {other:?}")).into()),
    }
}
