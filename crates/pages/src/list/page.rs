//! A list that was found, as its page shows it: search, table, pager, and why there are no rows.

use axum::response::Response;
use http::StatusCode;

use crate::Served;
use crate::examples::page::About;
use crate::flash;
use crate::list::downloads::{OnPage, downloads};
use crate::list::filters::Filters;
use crate::list::query::{Place, Rows};
use crate::list::table::{Columns, caption};
use crate::multi_read::Found;
use crate::phrases::MOST_COUNTED;
use crate::record_reading::name;
use crate::view::{Download, Empty, Head, Link, List, Pager, Table, TableRow};
use trefoil_engine::cursor::CursorFormat;
use trefoil_engine::{OwnedRow, Slice};
use trefoil_http::errors::problem::Problem;
use trefoil_resources::request::Ask;

pub struct Listed<'l> {
    pub served: &'l Served,
    pub ask: &'l Ask<'l>,
    pub place: &'l Place,
    pub filters: &'l Filters<'l>,
    /// The record that this is a part of.
    pub above: Option<OwnedRow>,
    /// What the filters offer.
    pub choices: Vec<Found>,
    pub rows: Rows,
}

impl Listed<'_> {
    pub fn response(&self) -> Result<Response, Problem> {
        let (served, headers) = (self.served, self.ask.headers());
        let is_plain = self.is_readable() && flash::given(headers).is_none();
        if is_plain && served.views().has_frames() {
            return self.put_together();
        }
        let status = if self.is_readable() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
        let columns = self.columns();
        let rows = self.rows.rows.iter().map(|row| served.row(self.ask.site, &columns, row)).collect();
        let list = self.view(rows);
        served.show(headers, status, self.head(&list), "list", &list)
    }

    fn is_readable(&self) -> bool {
        self.filters.wrong.is_empty()
    }

    pub fn columns(&self) -> Columns<'_> {
        Columns { record: self.place.record, hidden: self.filters.hidden, path: &self.place.path }
    }

    /// What the template is given, with these rows.
    pub fn view(&self, rows: Vec<TableRow>) -> List {
        let (served, site, place) = (self.served, self.ask.site, self.place);
        let search = self.filters.search(served, site, &place.path, &self.choices);
        List {
            resource: served.subject(place.record).resource.clone(),
            new: served.new_address(site, place.record, place.above),
            empty: self.empty(&search.clear),
            table: self.table(rows),
            downloads: self.downloads(),
            pager: self.pager(),
            search,
            parent: self.above.as_ref().map(|above| self.parent(above)),
        }
    }

    fn downloads(&self) -> Vec<Download> {
        let (query, found) = (self.filters.query, &self.rows);
        let is_part = found.more || query.page > 1 || query.word("after").is_some();
        let on_page = match (found.rows.is_empty(), is_part) {
            (true, _) => OnPage::Nothing,
            (false, true) => OnPage::Part,
            (false, false) => OnPage::All,
        };
        let record = self.ask.site.engine.model().record(self.place.record);
        downloads(record, &self.place.path, query, on_page)
    }

    fn parent(&self, above: &OwnedRow) -> Link {
        let subject = self.served.subject(self.ask.collection.record);
        let (id, label) = name(subject, above, subject.title.is_some());
        Link { label, href: format!("{}/{id}", subject.resource.path) }
    }

    fn table(&self, rows: Vec<TableRow>) -> Table {
        let (served, site, record) = (self.served, self.ask.site, self.place.record);
        let (query, subject) = (self.filters.query, served.subject(record));
        let nouns = (subject.resource.noun.as_str(), subject.nouns.as_str());
        let is_live = !site.collection(record).deeds.is_empty();
        let (shown, total) = (self.rows.rows.len(), self.rows.total);
        Table {
            caption: caption(site.engine.model().record(record), nouns, query, shown, total),
            columns: served.columns(site, &self.columns(), Some(query)),
            rows,
            live: is_live.then(|| format!("{}?fields=id", subject.resource.path)),
        }
    }

    /// Why there are no rows, and the way out.
    fn empty(&self, clear: &str) -> Option<Empty> {
        if !self.rows.rows.is_empty() {
            return None;
        }
        let (place, query) = (self.place, self.filters.query);
        let is_beyond = self.rows.total > 0;
        let way_out = |text: String, label: &str, href: String| {
            Some(Empty { text, link: Some(Link { label: label.to_owned(), href }), is_beyond })
        };
        let is_filtered = query.listing.search.is_some() || !query.listing.conditions.is_empty();
        if !self.is_readable() {
            let text = "Nothing is listed: a filter cannot be read.";
            way_out(text.to_owned(), "Clear filters", clear.to_owned())
        } else if is_beyond {
            let text = match query.numbered() {
                Some(page) => format!("There is nothing on page {page}: the list ends before it."),
                None => "There is nothing more: the list ends before this.".to_owned(),
            };
            let (label, page) = match self.rows.total.div_ceil(self.size()) {
                1 => ("To the list", None),
                _ if self.rows.total > u64::from(MOST_COUNTED) => ("To the first page", None),
                last => ("To the last page", Some(("page", last.to_string()))),
            };
            way_out(text, label, query.elsewhere(&place.path, page.as_slice()))
        } else if is_filtered {
            let is_search = query.listing.conditions.is_empty();
            let label = if is_search { "Clear search" } else { "Clear filters" };
            way_out("Nothing matches.".to_owned(), label, clear.to_owned())
        } else {
            let new = self.served.new_address(self.ask.site, place.record, place.above);
            way_out(format!("No {} yet.", self.served.subject(place.record).nouns), "Create the first", new)
        }
    }

    /// How many rows a page has.
    fn size(&self) -> u64 {
        match self.filters.query.listing.slice {
            Slice::Page { size, .. } | Slice::First { first: size, .. } => size.unsigned_abs().max(1),
            Slice::All => 1,
        }
    }

    pub fn head(&self, list: &List) -> Head {
        let above = &self.served.subject(self.ask.collection.record).resource;
        let section = Link { label: above.plural.clone(), href: above.path.clone() };
        let crumbs = list.parent.iter().flat_map(|parent| [section.clone(), parent.clone()]).collect();
        let mut head = Head::new(list.resource.plural.clone(), &above.path, crumbs);
        let about = match self.is_readable() {
            true => About::List { record: self.place.record, address: self.address() },
            false => About::Refused,
        };
        head.ways = Some(self.served.ways(self.ask.site, self.ask.head, about));
        head
    }

    /// As it was asked for, with its query.
    pub fn address(&self) -> &str {
        let asked = self.ask.head.uri.path_and_query();
        asked.map_or(self.place.path.as_str(), |address| address.as_str())
    }

    /// On by cursor, so that nothing is skipped or seen twice and the last page costs what the first does; back by number.
    fn pager(&self) -> Pager {
        let (query, path, found) = (self.filters.query, self.place.path.as_str(), &self.rows);
        if found.rows.is_empty() {
            return Pager::default();
        }
        let (page, order) = (query.page, &query.listing.order);
        let last = found.rows.last().filter(|_| found.more);
        let next = last.map(|row| {
            let record = self.ask.site.engine.model().record(self.place.record);
            let format = CursorFormat::of(record, order);
            let after = format.encode(row, row.cells.len() - order.len() - 1);
            let on = query.numbered().map(|page| ("page", page.saturating_add(1).to_string()));
            let on: Vec<_> = on.into_iter().chain([("after", after)]).collect();
            query.elsewhere(path, &on)
        });
        let previous = (page > 1).then(|| match page - 1 {
            1 => query.elsewhere(path, &[]),
            before => query.elsewhere(path, &[("page", before.to_string())]),
        });
        let text = query.numbered().map_or_else(|| "Further on".to_owned(), |page| format!("Page {page}"));
        Pager { previous, next, text }
    }
}
