//! A list that was found, as its page shows it: search, table, pager, and why there are no rows.

use axum::response::Response;
use http::StatusCode;

use trefoil_engine::cursor::CursorFormat;
use trefoil_engine::{ListSlice, OwnedRow};
use trefoil_http::errors::problem::Problem;
use trefoil_resources::request::ResourceRequest;

use crate::examples::page::PageSubject;
use crate::list::downloads::{PageCoverage, download_links};
use crate::list::filters::ListFilters;
use crate::list::query::{ListRows, ListTarget};
use crate::list::table::{TableColumns, table_caption};
use crate::multi_read::FoundRows;
use crate::phrases::MAX_COUNT;
use crate::record_reading::record_name;
use crate::view::{DownloadLinks, EmptyView, ListView, PageHead, PageLink, PagerView, TableRow, TableView};
use crate::{Pages, flash};

pub struct ListPage<'l> {
    pub pages: &'l Pages,
    pub request: &'l ResourceRequest<'l>,
    pub target: &'l ListTarget,
    pub filters: &'l ListFilters<'l>,
    /// The record that this is a part of.
    pub parent_row: Option<OwnedRow>,
    /// What the filters offer.
    pub filter_choices: Vec<FoundRows>,
    pub rows: ListRows,
}

impl ListPage<'_> {
    pub fn response(&self) -> Result<Response, Problem> {
        let (pages, headers) = (self.pages, self.request.headers());
        let is_plain = self.filters_are_valid() && flash::cookie_for_page(headers).is_none();
        if is_plain && pages.views().has_frames() {
            return self.cached_response();
        }
        let status = if self.filters_are_valid() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
        let columns = self.table_columns();
        let rows =
            self.rows.rows.iter().map(|row| pages.table_row(self.request.resources, &columns, row)).collect();
        let list = self.list_view(rows);
        pages.page_response(headers, status, self.page_head(&list), "list", &list)
    }

    fn filters_are_valid(&self) -> bool {
        self.filters.errors.is_empty()
    }

    pub fn table_columns(&self) -> TableColumns<'_> {
        TableColumns {
            record: self.target.record,
            hidden_field: self.filters.hidden_field,
            path: &self.target.path,
        }
    }

    /// What the template is given, with these rows.
    pub fn list_view(&self, rows: Vec<TableRow>) -> ListView {
        let (pages, resources, place) = (self.pages, self.request.resources, self.target);
        let search = self.filters.search_view(pages, resources, &place.path, &self.filter_choices);
        ListView {
            resource: pages.labels_of(place.record).resource.clone(),
            new: pages.new_record_url(resources, place.record, place.parent),
            empty: self.empty_view(&search.clear),
            table: self.table_view(rows),
            downloads: self.download_links(),
            pager: self.pager_view(),
            search,
            parent: self.parent_row.as_ref().map(|above| self.parent_link(above)),
        }
    }

    fn download_links(&self) -> Vec<DownloadLinks> {
        let (query, found) = (self.filters.query, &self.rows);
        let is_part = found.has_more || query.page > 1 || query.param("after").is_some();
        let on_page = match (found.rows.is_empty(), is_part) {
            (true, _) => PageCoverage::Nothing,
            (false, true) => PageCoverage::Part,
            (false, false) => PageCoverage::All,
        };
        let record = self.request.resources.engine.model().record(self.target.record);
        download_links(record, &self.target.path, query, on_page)
    }

    fn parent_link(&self, above: &OwnedRow) -> PageLink {
        let labels = self.pages.labels_of(self.request.collection.record);
        let (id, label) = record_name(labels, above, labels.title_field.is_some());
        PageLink { label, href: format!("{}/{id}", labels.resource.path) }
    }

    fn table_view(&self, rows: Vec<TableRow>) -> TableView {
        let (pages, resources, record) = (self.pages, self.request.resources, self.target.record);
        let (query, labels) = (self.filters.query, pages.labels_of(record));
        let nouns = (labels.resource.noun.as_str(), labels.plural_noun.as_str());
        let is_live = !resources.collection(record).subscribed_changes.is_empty();
        let (shown, total) = (self.rows.rows.len(), self.rows.total);
        TableView {
            caption: table_caption(resources.engine.model().record(record), nouns, query, shown, total),
            columns: pages.column_views(resources, &self.table_columns(), Some(query)),
            rows,
            live: is_live.then(|| format!("{}?fields=id", labels.resource.path)),
        }
    }

    /// Why there are no rows, and the way out.
    fn empty_view(&self, clear: &str) -> Option<EmptyView> {
        if !self.rows.rows.is_empty() {
            return None;
        }
        let (place, query) = (self.target, self.filters.query);
        let is_beyond = self.rows.total > 0;
        let way_out = |text: String, label: &str, href: String| {
            Some(EmptyView { text, link: Some(PageLink { label: label.to_owned(), href }), is_beyond })
        };
        let is_filtered = query.listing.search.is_some() || !query.listing.conditions.is_empty();
        if !self.filters_are_valid() {
            let text = "Nothing is listed: a filter cannot be read.";
            way_out(text.to_owned(), "Clear filters", clear.to_owned())
        } else if is_beyond {
            let text = match query.page_number() {
                Some(page) => format!("There is nothing on page {page}: the list ends before it."),
                None => "There is nothing more: the list ends before this.".to_owned(),
            };
            let (label, page) = match self.rows.total.div_ceil(self.page_size()) {
                1 => ("To the list", None),
                _ if self.rows.total > u64::from(MAX_COUNT) => ("To the first page", None),
                last => ("To the last page", Some(("page", last.to_string()))),
            };
            way_out(text, label, query.url_with(&place.path, page.as_slice()))
        } else if is_filtered {
            let is_search = query.listing.conditions.is_empty();
            let label = if is_search { "Clear search" } else { "Clear filters" };
            way_out("Nothing matches.".to_owned(), label, clear.to_owned())
        } else {
            let new = self.pages.new_record_url(self.request.resources, place.record, place.parent);
            way_out(
                format!("No {} yet.", self.pages.labels_of(place.record).plural_noun),
                "Create the first",
                new,
            )
        }
    }

    /// How many rows a page has.
    fn page_size(&self) -> u64 {
        match self.filters.query.listing.slice {
            ListSlice::Page { size, .. } | ListSlice::First { first: size, .. } => size.unsigned_abs().max(1),
            ListSlice::All => 1,
        }
    }

    pub fn page_head(&self, list: &ListView) -> PageHead {
        let above = &self.pages.labels_of(self.request.collection.record).resource;
        let section = PageLink { label: above.plural.clone(), href: above.path.clone() };
        let crumbs = list.parent.iter().flat_map(|parent| [section.clone(), parent.clone()]).collect();
        let mut head = PageHead::new(list.resource.plural.clone(), &above.path, crumbs);
        let about = match self.filters_are_valid() {
            true => PageSubject::List { record: self.target.record, address: self.address() },
            false => PageSubject::Rejected,
        };
        head.ways = Some(self.pages.api_examples(self.request.resources, self.request.head, about));
        head
    }

    /// As it was asked for, with its query.
    pub fn address(&self) -> &str {
        let asked = self.request.head.uri.path_and_query();
        asked.map_or(self.target.path.as_str(), |address| address.as_str())
    }

    /// On by cursor, so that nothing is skipped or seen twice and the last page costs what the first does; back by number.
    fn pager_view(&self) -> PagerView {
        let (query, path, found) = (self.filters.query, self.target.path.as_str(), &self.rows);
        if found.rows.is_empty() {
            return PagerView::default();
        }
        let (page, order) = (query.page, &query.listing.sort_keys);
        let last = found.rows.last().filter(|_| found.has_more);
        let next = last.map(|row| {
            let record = self.request.resources.engine.model().record(self.target.record);
            let format = CursorFormat::of(record, order);
            let after = format.encode(row, row.cells.len() - order.len() - 1);
            let on = query.page_number().map(|page| ("page", page.saturating_add(1).to_string()));
            let on: Vec<_> = on.into_iter().chain([("after", after)]).collect();
            query.url_with(path, &on)
        });
        let previous = (page > 1).then(|| match page - 1 {
            1 => query.url_with(path, &[]),
            before => query.url_with(path, &[("page", before.to_string())]),
        });
        let text = query.page_number().map_or_else(|| "Further on".to_owned(), |page| format!("Page {page}"));
        PagerView { previous, next, text }
    }
}
