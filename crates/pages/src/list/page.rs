//! `ListPage`: the view of a list from the rows that were read.

use axum::response::Response;
use http::StatusCode;

use trefoil_engine::cursor::CursorFormat;
use trefoil_engine::{AllowedRecords, ListSlice, OwnedRow};
use trefoil_http::errors::problem::Problem;
use trefoil_http::form_pairs::{FormPairs, percent_encode};
use trefoil_model::{FieldId, Model, RecordId, RecordTypeId, Relation};
use trefoil_resources::aggregate_query::is_group_param;
use trefoil_resources::collection::{NestedCollection, NestedRelation, record_path};
use trefoil_resources::list_query::query_url;
use trefoil_resources::request::ResourceRequest;

use crate::detail::display::ValueDisplay;
use crate::examples::page::PageSubject;
use crate::list::downloads::{PageCoverage, download_links};
use crate::list::filters::ListFilters;
use crate::list::sums::sum_values;
use crate::list::table::{TableColumns, table_caption};
use crate::phrases::MAX_COUNT;
use crate::record_reading::record_name;
use crate::snapshot_reads::FoundRows;
use crate::template_data::{
    DownloadLinks, EmptyView, LabelledValue, ListView, PageHead, PageLink, PageNumber, PagerView, TableRow,
    TableView,
};
use crate::{Pages, flash};

/// The list that a page shows.
pub struct ListTarget {
    pub record: RecordTypeId,
    pub path: String,
    /// The parent record, and its list.
    pub parent: Option<(RecordId, NestedCollection)>,
}

impl ListTarget {
    /// Id of the parent record, and the field that refers to it.
    pub fn parent_reference(&self) -> Option<(&RecordId, FieldId)> {
        self.parent.as_ref().and_then(|(id, nested)| Some((id, nested.reference()?)))
    }
}

/// The rows of a list.
#[derive(Default)]
pub struct ListRows {
    pub rows: Vec<OwnedRow>,
    pub has_more: bool,
    pub total: u64,
}

/// Everything that a list page is made of.
pub struct ListPage<'l> {
    pub pages: &'l Pages,
    pub request: &'l ResourceRequest<'l>,
    pub target: &'l ListTarget,
    pub filters: &'l ListFilters<'l>,
    /// The parent record of a nested list.
    pub parent_row: Option<OwnedRow>,
    /// The records offered by reference filters.
    pub filter_choices: Vec<FoundRows>,
    /// The sums of the fields that ask for one.
    pub sums: Option<OwnedRow>,
    pub rows: ListRows,
    /// Those of them that the actor may change.
    pub editable: AllowedRecords,
}

impl ListPage<'_> {
    pub fn response(&self) -> Result<Response, Problem> {
        let (pages, headers) = (self.pages, self.request.headers());
        let is_cacheable = self.filters_are_valid() && flash::cookie_for_page(headers).is_none();
        if is_cacheable && pages.views().has_frames() {
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
            editable: &self.editable,
        }
    }

    /// The template data with these rows.
    pub fn list_view(&self, rows: Vec<TableRow>) -> ListView {
        let (pages, resources, target) = (self.pages, self.request.resources, self.target);
        let search = self.filters.search_view(pages, resources, &target.path, &self.filter_choices);
        ListView {
            resource: pages.labels_of(target.record).resource.clone(),
            new: pages.new_record_url(resources, target.record, target.parent_reference()),
            empty: self.empty_view(&search.clear),
            table: self.table_view(rows),
            downloads: self.download_links(),
            sums: self.sum_values(),
            summary: self.summary_url(),
            pager: self.pager_view(),
            search,
            parent: self.parent_row.as_ref().map(|row| self.parent_link(row)),
        }
    }

    /// True if the list has other pages.
    fn is_part(&self) -> bool {
        let query = self.filters.query;
        self.rows.has_more || query.page > 1 || query.param("after").is_some()
    }

    fn sum_values(&self) -> Vec<LabelledValue> {
        let sums = self.sums.as_ref().filter(|_| !self.rows.rows.is_empty());
        let engine = &self.request.resources.engine;
        sums.map(|sums| sum_values(engine, self.target.record, sums, self.is_part())).unwrap_or_default()
    }

    fn download_links(&self) -> Vec<DownloadLinks> {
        let (query, found) = (self.filters.query, &self.rows);
        let coverage = match (found.rows.is_empty(), self.is_part()) {
            (true, _) => PageCoverage::Nothing,
            (false, true) => PageCoverage::Part,
            (false, false) => PageCoverage::All,
        };
        let model = self.request.resources.engine.model();
        download_links(model, model.record(self.target.record), &self.target.path, query, coverage)
    }

    /// The summary of the records in this list. Below a record, it is that of all records with a filter.
    fn summary_url(&self) -> Option<String> {
        let (resources, target) = (self.request.resources, self.target);
        self.pages.group_choices[target.record.0].as_ref()?;
        let parent = match &target.parent {
            Some((id, nested)) => {
                Some((parent_filter(resources.engine.model(), self.request, nested)?, id.to_string()))
            }
            None => None,
        };
        let filters = self.filters.query.filter_pairs().map(|(name, value)| {
            // If a field has the name of a grouping parameter, its filter is written with an operator.
            let name = if is_group_param(name) { format!("{name}.eq") } else { name.clone() };
            (name, value.clone())
        });
        let pairs: FormPairs = parent.into_iter().chain(filters).collect();
        let pairs = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        Some(query_url(&resources.collection(target.record).summary_path(), pairs))
    }

    fn parent_link(&self, parent_row: &OwnedRow) -> PageLink {
        let labels = self.pages.labels_of(self.request.collection.record);
        let (id, label) = record_name(ValueDisplay::of(&self.request.resources.engine), labels, parent_row);
        PageLink { label, href: record_path(&labels.resource.path, &id) }
    }

    fn table_view(&self, rows: Vec<TableRow>) -> TableView {
        let (pages, resources, record) = (self.pages, self.request.resources, self.target.record);
        let (query, labels) = (self.filters.query, pages.labels_of(record));
        let is_live = !resources.collection(record).subscribed_changes.is_empty();
        let (shown, total) = (self.rows.rows.len(), self.rows.total);
        TableView {
            caption: table_caption(resources.engine.model(), (labels, &pages.labels), query, shown, total),
            columns: pages.column_views(resources, &self.table_columns(), Some(query)),
            rows,
            live: is_live.then(|| format!("{}?fields=id", labels.resource.path)),
        }
    }

    /// Explains why there are no rows, with a link elsewhere.
    fn empty_view(&self, clear: &str) -> Option<EmptyView> {
        if !self.rows.rows.is_empty() {
            return None;
        }
        let (target, query) = (self.target, self.filters.query);
        let is_beyond = self.rows.total > 0;
        let with_link = |text: String, label: &str, href: String| {
            Some(EmptyView { text, link: Some(PageLink { label: label.to_owned(), href }), is_beyond })
        };
        let is_filtered = query.listing.search.is_some() || !query.listing.conditions.is_empty();
        if !self.filters_are_valid() {
            let text = "The list is not shown because a filter is invalid.";
            with_link(text.to_owned(), "Clear filters", clear.to_owned())
        } else if is_beyond {
            let text = match query.page_number() {
                Some(page) => format!("Page {page} is past the end of the list."),
                None => "This is past the end of the list.".to_owned(),
            };
            let (label, page) = match self.rows.total.div_ceil(self.page_size()) {
                1 => ("Go to the list", None),
                _ if self.rows.total > u64::from(MAX_COUNT) => ("Go to the first page", None),
                last => ("Go to the last page", Some(("page", last.to_string()))),
            };
            with_link(text, label, query.url_with(&target.path, page.as_slice()))
        } else if is_filtered {
            let is_search = query.listing.conditions.is_empty();
            let label = if is_search { "Clear search" } else { "Clear filters" };
            with_link("No records match.".to_owned(), label, clear.to_owned())
        } else {
            let new =
                self.pages.new_record_url(self.request.resources, target.record, target.parent_reference());
            let text = format!("No {} yet.", self.pages.labels_of(target.record).plural_noun);
            let link = new.map(|href| PageLink { label: "Create the first".to_owned(), href });
            Some(EmptyView { text, link, is_beyond })
        }
    }

    /// Rows per page.
    fn page_size(&self) -> u64 {
        match self.filters.query.listing.slice {
            ListSlice::Page { size, .. }
            | ListSlice::First { first: size, .. }
            | ListSlice::Between { count: size, .. } => size.unsigned_abs().max(1),
            ListSlice::All | ListSlice::Range { .. } => 1,
        }
    }

    pub fn page_head(&self, list: &ListView) -> PageHead {
        let collection = &self.pages.labels_of(self.request.collection.record).resource;
        let section = PageLink { label: collection.plural.clone(), href: collection.path.clone() };
        let crumbs = list.parent.iter().flat_map(|parent| [section.clone(), parent.clone()]).collect();
        let mut head = PageHead::new(list.resource.plural.clone(), &collection.path, crumbs);
        let address = self.ordered_address();
        let subject = match self.filters_are_valid() {
            true => PageSubject::List { record: self.target.record, address: &address },
            false => PageSubject::Rejected,
        };
        head.ways = Some(self.pages.api_examples(self.request.resources, self.request.head, subject));
        head
    }

    /// Path and query, with the order that the type asks for.
    fn ordered_address(&self) -> String {
        let (address, model) = (self.address(), self.request.resources.engine.model());
        let order = self.filters.query.filled_order(model, model.record(self.target.record));
        let Some((name, words)) = order else { return address.to_owned() };
        let separator = if address.contains('?') { '&' } else { '?' };
        format!("{address}{separator}{name}={}", percent_encode(&words))
    }

    /// Path and query of the request.
    pub fn address(&self) -> &str {
        let path_and_query = self.request.head.uri.path_and_query();
        path_and_query.map_or(self.target.path.as_str(), |address| address.as_str())
    }

    /// Next page by cursor, so that no row is skipped or repeated and the last page costs as much as the first; previous
    /// page by number.
    fn pager_view(&self) -> PagerView {
        let (query, path, found) = (self.filters.query, self.target.path.as_str(), &self.rows);
        if found.rows.is_empty() {
            return PagerView::default();
        }
        let (page, sort_keys) = (query.page, &query.listing.sort_keys);
        let last = found.rows.last().filter(|_| found.has_more);
        let next = last.map(|row| {
            let model = self.request.resources.engine.model();
            let format = CursorFormat::of(model, model.record(self.target.record), sort_keys);
            let after = format.encode(format.read(row, row.cells.len() - sort_keys.len() - 1));
            let parameters = query.page_number().map(|page| ("page", page.saturating_add(1).to_string()));
            let parameters: Vec<_> = parameters.into_iter().chain([("after", after)]).collect();
            query.url_with(path, &parameters)
        });
        let previous = (page > 1).then(|| match page - 1 {
            1 => query.url_with(path, &[]),
            previous => query.url_with(path, &[("page", previous.to_string())]),
        });
        let text = query.page_number().map_or_else(|| "More".to_owned(), |page| format!("Page {page}"));
        PagerView { previous, next, text, pages: self.page_numbers(), sizes: self.page_sizes() }
    }

    /// The first and the last page and those near this one, if the number of records is known.
    fn page_numbers(&self) -> Vec<PageNumber> {
        let (query, total) = (self.filters.query, self.rows.total);
        let last = i64::try_from(total.div_ceil(self.page_size())).unwrap_or(i64::MAX);
        let Some(page) = query.page_number().filter(|_| last > 1 && total <= u64::from(MAX_COUNT)) else {
            return Vec::new();
        };
        let near = |number: &i64| *number == 1 || *number == last || (number - page).abs() <= NEAR_PAGES;
        let mut numbers: Vec<PageNumber> = Vec::new();
        let mut before = 0;
        for number in (1..=last).filter(near) {
            if number > before + 1 {
                numbers.push(PageNumber { label: "…".to_owned(), href: None });
            }
            let href = match number {
                _ if number == page => None,
                1 => Some(query.url_with(&self.target.path, &[])),
                _ => Some(query.url_with(&self.target.path, &[("page", number.to_string())])),
            };
            numbers.push(PageNumber { label: number.to_string(), href });
            before = number;
        }
        numbers
    }

    /// The numbers of rows that a page may have, if there are more records than the least of them.
    fn page_sizes(&self) -> Vec<PageNumber> {
        let (query, limits) = (self.filters.query, self.request.resources.engine.limits());
        let (own, usual) = (self.page_size(), self.pages.labels_of(self.target.record).page_size);
        let usual = usual.unwrap_or(limits.page_size).unsigned_abs();
        let mut sizes = vec![own, usual];
        sizes.extend(PAGE_SIZES.into_iter().filter(|size| *size <= limits.max_page_size.unsigned_abs()));
        sizes.sort_unstable();
        sizes.dedup();
        if sizes.first().is_none_or(|least| self.rows.total <= *least) {
            return Vec::new();
        }
        let href = |size: u64| {
            let value = if size == usual { String::new() } else { size.to_string() };
            query.resized_url(&self.target.path, &value)
        };
        let size =
            |size: u64| PageNumber { label: size.to_string(), href: (size != own).then(|| href(size)) };
        sizes.into_iter().map(size).collect()
    }
}

/// Pages on either side of the current one that have a number of their own.
const NEAR_PAGES: i64 = 2;

/// The numbers of rows that a page offers.
const PAGE_SIZES: [u64; 3] = [20, 50, 100];

/// The filter by which a list below a record is the list of all with that filter: the reference to the record, or the
/// other side of a link.
fn parent_filter(model: &Model, request: &ResourceRequest<'_>, nested: &NestedCollection) -> Option<String> {
    let target = model.record(nested.record);
    let field = match nested.relation {
        NestedRelation::Reference(reference) => target.field(reference),
        NestedRelation::Link => {
            let Some(Relation::Link(link)) = request.record().field(nested.field).kind.relation() else {
                return None;
            };
            let is_other_side = |relation: &Relation| match relation {
                Relation::Link(other) => other.table == link.table && other.own_column == link.other_column,
                Relation::Reference(_) | Relation::Inverse(_) => false,
            };
            target.fields.iter().find(|field| field.kind.relation().is_some_and(is_other_side))?
        }
    };
    Some(field.input_name.clone())
}
