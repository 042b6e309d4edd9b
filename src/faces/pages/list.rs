//! The list of a record type: search, filters, sorting and paging.

use std::sync::Arc;

use axum::response::Response;
use http::StatusCode;

use super::Served;
use super::filters::Filters;
use super::look::{Found, PART, look};
use super::reading::name;
use super::table::{Columns, caption};
use super::view::{Empty, Head, Link, List, Pager, Table};
use super::ways::About;
use super::words::MOST_COUNTED;
use crate::engine::{Condition, Count, Listing, Op, Operation, Outcome, Slice, cursor};
use crate::error::Error;
use crate::faces::problem::Problem;
use crate::faces::resources::Site;
use crate::faces::resources::ask::Ask;
use crate::faces::resources::collection::Nested;
use crate::faces::resources::query::{Query, Takes, refused};
use crate::model::{FieldId, TypeId, Value};

/// Which list a page is of.
struct Place {
    record: TypeId,
    path: String,
    /// The record that it is a part of, and the field that says so.
    above: Option<(i64, FieldId)>,
}

/// What a list found.
#[derive(Default)]
struct Rows {
    rows: Vec<crate::engine::OwnedRow>,
    more: bool,
    total: u64,
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
        let mut found = look(&site.engine, operations, PART).await.map_err(refused)?;
        let rows = if filters.wrong.is_empty() { rows(found.pop())? } else { Rows::default() };
        let parent = match place.above {
            Some((id, _)) => Some(self.parent(ask, id, found.remove(0))?),
            None => None,
        };
        let search = filters.search(self, site, &place.path, &found);
        let status = if filters.wrong.is_empty() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
        let list = List {
            resource: self.subject(place.record).resource.clone(),
            new: self.new_address(site, place.record, place.above),
            empty: self.empty(site, &place, &query, &rows, &search.clear, status),
            table: self.table(ask, &place, &query, &rows),
            pager: pager(&place.path, &query, &rows),
            search,
            parent,
        };
        let mut head = self.list_head(ask, &place, &list);
        if status != StatusCode::OK {
            head.ways = self.ways(site, ask.head, About::Refused);
        }
        Ok(ask.kept(self.show(ask.headers(), status, head, "list", &list)?))
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

    fn parent(&self, ask: &Ask<'_>, id: i64, found: Found) -> Result<Link, Problem> {
        let record = ask.collection.record;
        let row = found.rows.first().ok_or_else(|| ask.missing(record, id))?;
        let subject = self.subject(record);
        let (id, label) = name(subject, row, subject.title.is_some());
        Ok(Link { label, href: format!("{}/{id}", subject.resource.path) })
    }

    fn table(&self, ask: &Ask<'_>, place: &Place, query: &Query, found: &Rows) -> Table {
        let hidden = place.above.map(|(_, field)| field);
        let columns = Columns { record: place.record, hidden, path: &place.path };
        let (record, subject) = (ask.site.engine.model().record(place.record), self.subject(place.record));
        let nouns = (subject.resource.noun.as_str(), subject.nouns.as_str());
        let is_live = !ask.site.collection(place.record).deeds.is_empty();
        Table {
            caption: caption(record, nouns, query, found.rows.len(), found.total),
            columns: self.columns(ask.site, &columns, Some(query)),
            rows: found.rows.iter().map(|row| self.row(ask.site, &columns, row)).collect(),
            live: is_live.then(|| format!("{}?fields=id", subject.resource.path)),
        }
    }

    /// Why there are no rows, and the way out.
    fn empty(
        &self,
        site: &Site,
        place: &Place,
        query: &Query,
        found: &Rows,
        clear: &str,
        status: StatusCode,
    ) -> Option<Empty> {
        if !found.rows.is_empty() {
            return None;
        }
        let subject = self.subject(place.record);
        let way_out = |text: String, label: &str, href: String| {
            Some(Empty { text, link: Link { label: label.to_owned(), href } })
        };
        let is_filtered = query.listing.search.is_some() || !query.listing.conditions.is_empty();
        if status != StatusCode::OK {
            way_out(
                "Nothing is listed: a filter cannot be read.".to_owned(),
                "Clear filters",
                clear.to_owned(),
            )
        } else if found.total > 0 {
            let text = format!("There is nothing on page {}: the list ends before it.", query.page);
            way_out(text, "To the first page", query.elsewhere(&place.path, &[]))
        } else if is_filtered {
            way_out("Nothing matches.".to_owned(), "Clear filters", clear.to_owned())
        } else {
            let new = self.new_address(site, place.record, place.above);
            way_out(format!("No {} yet.", subject.nouns), "Create the first", new)
        }
    }

    fn list_head(&self, ask: &Ask<'_>, place: &Place, list: &List) -> Head {
        let above = &self.subject(ask.collection.record).resource;
        let section = Link { label: above.plural.clone(), href: above.path.clone() };
        let crumbs = list.parent.iter().flat_map(|parent| [section.clone(), parent.clone()]).collect();
        let mut head = Head::new(list.resource.plural.clone(), &above.path, crumbs);
        let address = ask.head.uri.path_and_query().map_or(place.path.as_str(), |address| address.as_str());
        head.ways = self.ways(ask.site, ask.head, About::List { record: place.record, address });
        head
    }
}

fn rows(found: Option<Found>) -> Result<Rows, Problem> {
    match found {
        Some(Found { rows, outcome: Outcome::Listed { more, total } }) => {
            Ok(Rows { rows, more, total: total.unwrap_or_default() })
        }
        other => Err(Error::internal(format!("a list ended as {other:?}")).into()),
    }
}

pub fn is(field: FieldId, id: i64) -> Condition {
    Condition { field, op: Op::Eq, value: Value::Int(id) }
}

/// On by cursor, so that nothing is skipped or seen twice and the last page costs what the first does; back by number.
fn pager(path: &str, query: &Query, found: &Rows) -> Pager {
    let (page, order) = (query.page, &query.listing.order);
    let size = match query.listing.slice {
        Slice::Page { size, .. } | Slice::First { first: size, .. } => size.unsigned_abs().max(1),
        Slice::All => 1,
    };
    let last = found.rows.last().filter(|_| found.more);
    let next = last.map(|row| {
        let after = cursor::encode(order, row, row.cells.len() - order.len() - 1);
        let on = query.numbered().map(|page| ("page", page.saturating_add(1).to_string()));
        let on: Vec<_> = on.into_iter().chain([("after", after)]).collect();
        query.elsewhere(path, &on)
    });
    // From beyond the end back to where it is, as far as that was counted.
    let end = match found.rows.is_empty() && found.total <= u64::from(MOST_COUNTED) {
        true => found.total.div_ceil(size).max(1) as i64,
        false => i64::MAX,
    };
    let before = page.saturating_sub(1).min(end);
    let previous = (page > 1).then(|| match before {
        1 => query.elsewhere(path, &[]),
        before => query.elsewhere(path, &[("page", before.to_string())]),
    });
    let text = query.numbered().map_or_else(|| "Further on".to_owned(), |page| format!("Page {page}"));
    Pager { previous, next, text }
}
