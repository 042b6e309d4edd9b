//! `SummaryPage`: the view of a summary from the groups that were read.

use std::ops::Range;

use axum::response::Response;
use http::StatusCode;

use trefoil_engine::arguments::aggregates::AggregateParser;
use trefoil_engine::{GroupKey, GroupMeasure, Listing, OrderTarget, OwnedRow};
use trefoil_http::errors::problem::Problem;
use trefoil_http::form_pairs::FormPairs;
use trefoil_model::error::{PathSegment, Violation};
use trefoil_model::{Model, RecordTypeId};
use trefoil_resources::aggregate_query::GroupQuery;
use trefoil_resources::list_query::{api_value, query_url};
use trefoil_resources::request::ResourceRequest;

use crate::Pages;
use crate::examples::page::PageSubject;
use crate::labels::{field_label, noun_form};
use crate::list::filters::ListFilters;
use crate::phrases::counted_noun;
use crate::snapshot_reads::FoundRows;
use crate::summary::chart::draw_chart;
use crate::summary::choices::{GroupChoices, measure_label, period_label};
use crate::summary::groups::{GroupReader, ShownGroup};
use crate::summary::query::SummaryQuery;
use crate::summary::view::{GroupRowView, GroupTable, SummaryView};
use crate::template_data::{
    ApiExamples, ChoiceOption, ColumnView, ControlKind, ControlView, EmptyView, NameValue, PageHead,
    PageLink, SearchView, SortLink,
};

/// Everything that a summary page is made of.
pub struct SummaryPage<'s> {
    pub pages: &'s Pages,
    pub request: &'s ResourceRequest<'s>,
    pub choices: &'s GroupChoices,
    pub query: &'s SummaryQuery,
    pub filters: &'s ListFilters<'s>,
    /// The records offered by reference filters.
    pub filter_choices: Vec<FoundRows>,
    /// The position of the title among the cells, for each group key.
    pub titles: Vec<Range<usize>>,
    /// `None` if the parameters are invalid.
    pub rows: Option<Vec<OwnedRow>>,
}

impl SummaryPage<'_> {
    pub fn response(&self) -> Result<Response, Problem> {
        let status = if self.rows.is_some() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
        let summary = self.summary_view();
        let plural = &self.pages.labels_of(self.record()).plural_noun;
        let section = &summary.resource.path;
        let list = PageLink { label: summary.resource.plural.clone(), href: section.clone() };
        let mut head = PageHead::new("Summary", section, vec![list]);
        head.title = format!("Summary of {plural}");
        head.ways = Some(self.api_examples());
        self.pages.page_response(self.request.headers(), status, head, "summary", &summary)
    }

    fn api_examples(&self) -> ApiExamples {
        let (pages, resources, head) = (self.pages, self.request.resources, self.request.head);
        if self.rows.is_none() {
            return pages.api_examples(resources, head, PageSubject::Rejected);
        }
        let page = head.uri.path_and_query().map_or("/", |address| address.as_str());
        let examples = pages.example_builder(resources, head);
        let listing = &self.query.list.listing;
        let listing = Listing {
            conditions: listing.conditions.clone(),
            search: listing.search.clone(),
            ..Listing::default()
        };
        let texts = ["group", "aggregate", "sort"].map(|param| self.query.texts(param));
        let operation =
            examples.groups_operation(self.record(), texts.each_ref().map(Vec::as_slice), &listing);
        examples.read_examples(operation, &self.api_url(None), page)
    }

    fn record(&self) -> RecordTypeId {
        self.request.collection.record
    }

    fn model(&self) -> &Model {
        self.request.resources.engine.model()
    }

    fn summary_view(&self) -> SummaryView {
        let collection = self.request.collection;
        let groups = self.query.groups.as_ref().zip(self.rows.as_ref());
        let groups = groups.map(|(query, rows)| (query, self.shown_groups(query, rows)));
        let search = self.search_view();
        let (mut chart, mut table, mut empty) = (None, None, None);
        match groups {
            Some((query, groups)) if !groups.is_empty() => {
                let label = self.label(query);
                let period = query.query.group_keys.first().and_then(|key| key.period);
                chart = draw_chart(label.clone(), period, &groups);
                table = Some(self.table_view(label, query, groups));
            }
            Some(_) => empty = Some(self.empty_view(&search)),
            None => {}
        }
        let has_table = table.is_some();
        SummaryView {
            resource: self.pages.labels_of(self.record()).resource.clone(),
            controls: self.controls(),
            errors: self.other_errors(),
            chart,
            table,
            empty,
            downloads: if has_table { self.download_links() } else { Vec::new() },
            list: PageLink {
                label: format!("List of {}", self.pages.labels_of(self.record()).plural_noun),
                href: url(&collection.path, self.query.list.filter_pairs()),
            },
            search,
        }
    }

    fn shown_groups(&self, query: &GroupQuery, rows: &[OwnedRow]) -> Vec<ShownGroup> {
        let list_filters: FormPairs = self.query.list.filter_pairs().cloned().collect();
        let reader = GroupReader {
            model: self.model(),
            all_labels: &self.pages.labels,
            zone: &self.request.resources.engine.limits().time_zone,
            record: self.record(),
            groups: query,
            titles: &self.titles,
            list_path: &self.request.collection.path,
            list_filters: &list_filters,
        };
        rows.iter().map(|row| reader.read(row)).collect()
    }

    fn search_view(&self) -> SearchView {
        let path = self.request.collection.summary_path();
        let (pages, resources) = (self.pages, self.request.resources);
        let mut search = self.filters.search_view(pages, resources, &path, &self.filter_choices);
        let having = self.query.group_pairs.iter().filter(|(name, _)| name == "having");
        let having = having.map(|(name, value)| NameValue { name: name.clone(), value: value.clone() });
        search.hidden.extend(having);
        // They lead to lists.
        search.chips.clear();
        search.clear = url(&path, self.query.group_pairs.iter());
        search
    }

    /// "Number of orders by status and placed at (month)".
    fn label(&self, groups: &GroupQuery) -> String {
        let measures =
            groups.query.measures.iter().take(groups.columns.len() - groups.query.group_keys.len());
        let measures: Vec<String> = measures.map(|measure| self.measure_label(measure)).collect();
        let keys: Vec<String> =
            groups.query.group_keys.iter().map(|key| noun_form(&self.key_label(key))).collect();
        let by = if keys.is_empty() { String::new() } else { format!(" by {}", keys.join(" and ")) };
        format!("{}{by}", measures.join(", "))
    }

    fn key_label(&self, key: &GroupKey) -> String {
        let fields = key.path.fields(self.model(), self.model().record(self.record()));
        let label = fields.into_iter().map(field_label).collect::<Vec<_>>().join(": ");
        key.period.map_or(label.clone(), |period| period_label(&label, period))
    }

    fn measure_label(&self, measure: &GroupMeasure) -> String {
        match measure {
            GroupMeasure::Count => {
                format!("Number of {}", self.pages.labels_of(self.record()).plural_noun)
            }
            GroupMeasure::OfField(function, path) => {
                let fields = path.fields(self.model(), self.model().record(self.record()));
                let label = fields.into_iter().map(field_label).collect::<Vec<_>>().join(": ");
                measure_label(*function, &label)
            }
        }
    }

    fn table_view(&self, label: String, groups: &GroupQuery, shown: Vec<ShownGroup>) -> GroupTable {
        let keys = groups.query.group_keys.iter().map(|key| (self.key_label(key), false));
        let all = format!("All {}", self.pages.labels_of(self.record()).plural_noun);
        let keyless = groups.query.group_keys.is_empty().then(|| (all.clone(), false));
        let measures = groups.query.measures.iter().map(|measure| (self.measure_label(measure), true));
        let names = groups.columns.iter().map(|(name, _)| Some(name.as_str()));
        let names = keyless.iter().map(|_| None).chain(names);
        let headings = keyless.clone().into_iter().chain(keys).chain(measures);
        let columns = headings.zip(names).enumerate().map(|(position, ((label, numeric), name))| {
            let sort = name.map(|name| self.sort_link(groups, position, name));
            ColumnView { label, numeric, sort: sort.filter(|_| keyless.is_none()) }
        });
        let columns = columns.collect();
        let caption = format!("{label}: {}", counted_noun(shown.len() as u64, "group", "groups"));
        let row = |group: ShownGroup| {
            let keys = if group.keys.is_empty() { vec![all.clone()] } else { group.keys };
            GroupRowView { keys, values: group.values, href: group.href }
        };
        GroupTable { caption, columns, rows: shown.into_iter().map(row).collect() }
    }

    /// Link that sorts by a column, or reverses the order if the groups are sorted by it.
    fn sort_link(&self, groups: &GroupQuery, column: usize, name: &str) -> SortLink {
        let order = groups.query.order.first();
        let target = match order.map(|order| order.target) {
            Some(OrderTarget::Key(key)) => Some(key),
            Some(OrderTarget::Measure(measure)) => Some(groups.query.group_keys.len() + measure),
            None => None,
        };
        let (now, sort) = match order.filter(|_| target == Some(column)).map(|order| order.descending) {
            None => ("none", name.to_owned()),
            Some(false) => ("ascending", format!("-{name}")),
            Some(true) => ("descending", name.to_owned()),
        };
        let sort = ("sort".to_owned(), sort);
        let others = self.query.group_pairs.iter().filter(|(name, _)| name != "sort");
        let pairs = self.query.list.filter_pairs().chain(others).chain([&sort]);
        SortLink { href: url(&self.request.collection.summary_path(), pairs), now }
    }

    fn empty_view(&self, search: &SearchView) -> EmptyView {
        if search.active > 0 {
            let link = PageLink { label: "Clear filters".to_owned(), href: search.clear.clone() };
            return EmptyView { text: "No records match.".to_owned(), link: Some(link), is_beyond: false };
        }
        let text = format!("No {} yet.", self.pages.labels_of(self.record()).plural_noun);
        EmptyView { text, link: None, is_beyond: false }
    }

    fn download_links(&self) -> Vec<PageLink> {
        // There the parameter is a filter.
        if self.request.record().find_input_field("aggregate").is_some() {
            return Vec::new();
        }
        let link =
            |(label, format)| PageLink { label: String::from(label), href: self.api_url(Some(format)) };
        [("CSV", "csv"), ("JSON", "json")].map(link).into()
    }

    /// The same groups in the API.
    fn api_url(&self, format: Option<&str>) -> String {
        let record = self.request.record();
        let filters = self.query.list.filter_pairs();
        let filters = filters.map(|(name, text)| (name.clone(), api_value(self.model(), record, name, text)));
        let size = self.query.list.param("size").map(|size| ("size".to_owned(), size.to_owned()));
        let format = format.map(|format| ("format".to_owned(), format.to_owned()));
        let groups = self.query.group_pairs.iter().cloned();
        let pairs: FormPairs = filters.chain(groups).chain(size).chain(format).collect();
        url(&self.request.collection.path, pairs.iter())
    }

    /// Two group keys and a measure.
    fn controls(&self) -> Vec<ControlView> {
        let (keys, measures) = (self.query.texts("group"), self.query.texts("aggregate"));
        let (first, others) = keys.split_at(keys.len().min(1));
        let errors = |params: &[&str]| -> Vec<String> {
            let found = self.query.violations.iter().filter(|found| params.contains(&parameter(found)));
            let mut messages: Vec<String> = found.map(|found| found.message.clone()).collect();
            messages.dedup();
            messages
        };
        let group_errors = errors(&["group", "groupBy"]);
        let reader = AggregateParser { model: self.model(), record: self.record() };
        let is_first_valid = first.iter().all(|text| reader.group_key(text).is_ok());
        let (first_errors, other_errors) = match is_first_valid && !others.is_empty() {
            true => (Vec::new(), group_errors),
            false => (group_errors, Vec::new()),
        };
        let with_none = |label: &str| {
            let none = [(String::new(), label.to_owned())].into_iter();
            none.chain(self.choices.group_keys.iter().cloned()).collect::<Vec<_>>()
        };
        vec![
            select("group", "group", "Group by", &first.join(","), with_none("All together"), first_errors),
            select("group", "group-2", "Then by", &others.join(","), with_none("Nothing more"), other_errors),
            select(
                "aggregate",
                "measure",
                "Show",
                &measures.join(","),
                self.choices.measures.clone(),
                errors(&["aggregate"]),
            ),
        ]
    }

    fn other_errors(&self) -> Vec<String> {
        let is_shown = |param: &str| ["group", "groupBy", "aggregate"].contains(&param);
        let others = self.query.violations.iter().filter(|found| !is_shown(parameter(found)));
        others.map(|found| format!("{}: {}", parameter(found), found.message)).collect()
    }
}

/// The parameter that a violation is about.
fn parameter(violation: &Violation) -> &str {
    match violation.path.first() {
        Some(PathSegment::Field(name)) => name,
        Some(PathSegment::Index(_)) | None => "",
    }
}

fn url<'p>(path: &str, pairs: impl Iterator<Item = &'p (String, String)>) -> String {
    query_url(path, pairs.map(|(name, value)| (name.as_str(), value.as_str())))
}

/// A choice; what the address has and the choice has not is one more option.
fn select(
    name: &str,
    id: &str,
    label: &str,
    value: &str,
    mut choices: Vec<(String, String)>,
    errors: Vec<String>,
) -> ControlView {
    if !choices.iter().any(|(text, _)| text == value) {
        choices.push((value.to_owned(), value.to_owned()));
    }
    let option = |(text, label): (String, String)| ChoiceOption { chosen: text == value, value: text, label };
    ControlView {
        kind: ControlKind::Select,
        name: name.to_owned(),
        id: id.to_owned(),
        label: label.to_owned(),
        value: value.to_owned(),
        options: choices.into_iter().map(option).collect(),
        errors,
        ..ControlView::default()
    }
}
