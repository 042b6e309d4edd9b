//! The search above a list: a control for each field that can be filtered by, as it is set.

use trefoil_engine::arguments::FilterOperator;
use trefoil_engine::plan::is_text_kind;
use trefoil_engine::{ComparisonOp, ListSlice, Listing, Operation};
use trefoil_model::naming::names;
use trefoil_model::{Field, FieldId, FieldKind, RecordType, RecordTypeId, Scalar};
use trefoil_resources::ServedResources;
use trefoil_resources::list_query::{self, LIST_PARAMS, ListQuery};

use crate::list::table::is_number;
use crate::multi_read::FoundRows;
use crate::record_reading::record_name;
use crate::view::{ChoiceOption, ControlKind, ControlView, NameValue, SearchView};
use crate::{Pages, labels};

/// So many records are listed to choose from; where there are more, one is named by its id.
const MAX_CHOICES: i64 = 50;

/// Why a filter cannot be read: its place among the query's, and what to say.
pub type FilterErrors = Vec<(usize, String)>;

/// The filters of one list.
pub struct ListFilters<'a> {
    pub record: RecordTypeId,
    /// The field that the list is a part by.
    pub hidden_field: Option<FieldId>,
    pub query: &'a ListQuery,
    pub errors: FilterErrors,
}

impl ListFilters<'_> {
    /// What the engine has against each filter, told apart by asking about one at a time.
    pub fn check_filters(
        resources: &ServedResources,
        record: RecordTypeId,
        query: &ListQuery,
    ) -> FilterErrors {
        let judged = query.filters().enumerate().flat_map(|(position, (condition, ..))| {
            let listing = Listing { conditions: vec![condition.clone()], ..Listing::default() };
            let operation = Operation::List { record, listing, selection: Default::default() };
            let violations = resources.engine.violations(operation).into_iter();
            violations.map(move |violation| (position, violation.message)).collect::<Vec<_>>()
        });
        judged.collect()
    }

    fn record_type<'s>(&self, resources: &'s ServedResources) -> &'s RecordType {
        resources.engine.model().record(self.record)
    }

    fn filterable_fields<'s>(
        &self,
        resources: &'s ServedResources,
    ) -> impl Iterator<Item = (FieldId, &'s Field)> + use<'s> {
        let hidden = self.hidden_field;
        let fields =
            self.record_type(resources).fields.iter().enumerate().map(|(i, field)| (FieldId(i), field));
        fields
            .filter(move |(id, field)| field.is_stored() && field.kind.is_comparable() && Some(*id) != hidden)
    }

    /// The types whose records are listed to choose from, in the order of the fields that refer to them.
    fn reference_targets(&self, resources: &ServedResources) -> Vec<RecordTypeId> {
        let target = |field: &Field| {
            if let FieldKind::Reference { target, .. } = field.kind { Some(target) } else { None }
        };
        self.filterable_fields(resources).filter_map(|(_, field)| target(field)).collect()
    }

    /// What there is to choose from is asked for with the list itself.
    pub fn choice_operations(&self, pages: &Pages, resources: &ServedResources) -> Vec<Operation> {
        let list = |record: RecordTypeId| {
            let slice = ListSlice::First { first: MAX_CHOICES, after: None };
            let listing = Listing { slice, ..Listing::default() };
            Operation::List { record, listing, selection: pages.name_selections[record.0].clone() }
        };
        self.reference_targets(resources).into_iter().map(list).collect()
    }

    /// `found` is what [`Filters::choices`] found.
    pub fn search_view(
        &self,
        pages: &Pages,
        resources: &ServedResources,
        action: &str,
        found: &[FoundRows],
    ) -> SearchView {
        let targets = self.reference_targets(resources);
        let mut choices =
            targets.iter().zip(found).map(|(record, found)| record_choices(pages, *record, found));
        let mut filters = Vec::new();
        for (id, field) in self.filterable_fields(resources) {
            let is_reference = matches!(field.kind, FieldKind::Reference { .. });
            let options =
                if is_reference { choices.next().flatten() } else { kind_choices(resources, &field.kind) };
            for (asks, position) in self.field_operators(id, field) {
                filters.push(self.filter_control(field, asks, position, options.clone()));
            }
        }
        let given = |word: &str| self.query.param(word).unwrap_or_default().to_owned();
        let kept = ["sort", "size"].map(|name| NameValue { name: name.to_owned(), value: given(name) });
        let kept: Vec<NameValue> = kept.into_iter().filter(|pair| !pair.value.is_empty()).collect();
        let q = given("q");
        SearchView {
            action: action.to_owned(),
            has_texts: self
                .record_type(resources)
                .fields
                .iter()
                .any(|field| field.is_stored() && is_text_kind(&field.kind)),
            active: self.query.filters().count() + usize::from(!q.is_empty()),
            clear: clear_url(action, &kept),
            q,
            filters,
            hidden: kept,
        }
    }

    /// Which controls a field has: the usual ones, and one for whatever else is asked; each with the place of the
    /// filter that it shows.
    fn field_operators(&self, id: FieldId, field: &Field) -> Vec<(FilterOperator, Option<usize>)> {
        let given = self.query.filters().enumerate().filter(|(_, (condition, ..))| condition.field == id);
        let given = given
            .filter_map(|(position, (_, name, _))| Some((position, list_query::split_operator(name)?.1)));
        let given: Vec<(usize, FilterOperator)> = given.collect();
        let usual = default_operators(&field.kind).iter().map(|op| {
            let asks = FilterOperator::Compare(*op);
            let found = given.iter().rev().find(|(_, given)| *given == asks);
            (asks, found.map(|(position, _)| *position))
        });
        let mut asked: Vec<(FilterOperator, Option<usize>)> = usual.collect();
        for (position, asks) in &given {
            if !asked.iter().any(|(known, _)| known == asks) {
                asked.push((*asks, Some(*position)));
            }
        }
        asked
    }

    fn filter_control(
        &self,
        field: &Field,
        asks: FilterOperator,
        position: Option<usize>,
        options: Option<Vec<ChoiceOption>>,
    ) -> ControlView {
        let given = position.and_then(|position| self.query.filters().nth(position));
        let value = given.map_or(String::new(), |(_, _, text)| text.to_owned());
        let name = parameter_name(field, asks);
        let errors = self.errors.iter().filter(|(wrong, _)| Some(*wrong) == position);
        let errors: Vec<String> = errors.map(|(_, message)| message.clone()).collect();
        let options = match asks {
            FilterOperator::IsNull => Some(boolean_choices("Not set", "Set")),
            FilterOperator::Compare(ComparisonOp::Eq | ComparisonOp::Ne) => options,
            FilterOperator::Compare(
                ComparisonOp::Lt
                | ComparisonOp::Lte
                | ComparisonOp::Gt
                | ComparisonOp::Gte
                | ComparisonOp::Contains
                | ComparisonOp::In,
            ) => None,
        };
        // What is chosen must be among what there is to choose.
        let options = options.filter(|options| options.iter().any(|option| option.value == value));
        let kind =
            if options.is_some() { ControlKind::Select } else { control_kind(&field.kind, asks, &value) };
        let mut options = options.unwrap_or_default();
        options.iter_mut().for_each(|option| option.chosen = option.value == value);
        ControlView {
            kind,
            id: format!("filter-{}", name.replace('.', "-")),
            name,
            label: filter_label(field, asks, kind),
            value,
            options,
            errors,
            inputmode: input_mode(&field.kind, kind),
            ..ControlView::default()
        }
    }
}

fn clear_url(action: &str, kept: &[NameValue]) -> String {
    use trefoil_http::form_pairs::percent_encode;
    let kept: Vec<String> =
        kept.iter().map(|pair| format!("{}={}", pair.name, percent_encode(&pair.value))).collect();
    if kept.is_empty() { action.to_owned() } else { format!("{action}?{}", kept.join("&")) }
}

/// How a field is filtered by.
fn default_operators(kind: &FieldKind) -> &'static [ComparisonOp] {
    match kind {
        FieldKind::Scalar(Scalar::String | Scalar::Id | Scalar::Url | Scalar::Email) => {
            &[ComparisonOp::Contains]
        }
        FieldKind::Scalar(
            Scalar::Int | Scalar::Float | Scalar::Long | Scalar::Decimal | Scalar::Date | Scalar::DateTime,
        ) => &[ComparisonOp::Gte, ComparisonOp::Lte],
        FieldKind::Scalar(Scalar::Boolean | Scalar::Uuid)
        | FieldKind::Enum(_)
        | FieldKind::Reference { .. } => &[ComparisonOp::Eq],
        FieldKind::Scalar(Scalar::Json)
        | FieldKind::Id
        | FieldKind::Embedded(_)
        | FieldKind::List(_)
        | FieldKind::Inverse { .. }
        | FieldKind::Link { .. }
        | FieldKind::Unstored => &[],
    }
}

/// `price.gte`; plain `price` for equality, unless that is a word of the list itself.
fn parameter_name(field: &Field, asks: FilterOperator) -> String {
    let name = &field.input_name;
    match asks {
        FilterOperator::Compare(ComparisonOp::Eq) if !LIST_PARAMS.contains(&name.as_str()) => name.clone(),
        FilterOperator::Compare(_) | FilterOperator::IsNull => format!("{name}.{}", asks.name()),
    }
}

fn filter_label(field: &Field, asks: FilterOperator, kind: ControlKind) -> String {
    let label = labels::field_label(field);
    let is_plain = kind == ControlKind::Select || matches!(field.kind, FieldKind::Scalar(Scalar::Uuid));
    let is_id = matches!(field.kind, FieldKind::Reference { .. }) && kind != ControlKind::Select;
    match asks {
        FilterOperator::Compare(ComparisonOp::Eq) if is_id => format!("{label} ID"),
        FilterOperator::Compare(ComparisonOp::Eq) if is_plain => label,
        FilterOperator::Compare(ComparisonOp::Eq) | FilterOperator::IsNull => format!("{label} is"),
        FilterOperator::Compare(ComparisonOp::Ne) => format!("{label} is not"),
        FilterOperator::Compare(ComparisonOp::Lt) => format!("{label} below"),
        FilterOperator::Compare(ComparisonOp::Lte) => format!("{label} to"),
        FilterOperator::Compare(ComparisonOp::Gt) => format!("{label} above"),
        FilterOperator::Compare(ComparisonOp::Gte) => format!("{label} from"),
        FilterOperator::Compare(ComparisonOp::Contains) => format!("{label} contains"),
        FilterOperator::Compare(ComparisonOp::In) => format!("{label} is one of"),
    }
}

/// A control of the browser is only taken for what it can show: it would lose anything else.
fn control_kind(kind: &FieldKind, asks: FilterOperator, value: &str) -> ControlKind {
    let is_day =
        value.is_empty() || (value.len() == 10 && value.bytes().all(|b| b.is_ascii_digit() || b == b'-'));
    let is_list = asks == FilterOperator::Compare(ComparisonOp::In);
    match kind {
        FieldKind::Scalar(Scalar::Date | Scalar::DateTime) if !is_list && is_day => ControlKind::Date,
        FieldKind::Reference { .. } if !is_list => ControlKind::Number,
        kind if is_number(kind) && !is_list => ControlKind::Number,
        FieldKind::Scalar(_)
        | FieldKind::Id
        | FieldKind::Enum(_)
        | FieldKind::Embedded(_)
        | FieldKind::List(_)
        | FieldKind::Reference { .. }
        | FieldKind::Inverse { .. }
        | FieldKind::Link { .. }
        | FieldKind::Unstored => ControlKind::Text,
    }
}

fn input_mode(kind: &FieldKind, control: ControlKind) -> Option<&'static str> {
    let is_whole =
        matches!(kind, FieldKind::Scalar(Scalar::Int | Scalar::Long) | FieldKind::Reference { .. });
    (control == ControlKind::Number).then_some(if is_whole { "numeric" } else { "decimal" })
}

fn new_choice(value: &str, label: &str) -> ChoiceOption {
    ChoiceOption { value: value.to_owned(), label: label.to_owned(), chosen: false }
}

fn any_choice() -> ChoiceOption {
    new_choice("", "Any")
}

fn boolean_choices(yes: &str, no: &str) -> Vec<ChoiceOption> {
    vec![any_choice(), new_choice("true", yes), new_choice("false", no)]
}

/// What the kind of a field lets choose from.
fn kind_choices(resources: &ServedResources, kind: &FieldKind) -> Option<Vec<ChoiceOption>> {
    match kind {
        FieldKind::Scalar(Scalar::Boolean) => Some(boolean_choices("Yes", "No")),
        FieldKind::Enum(name) => {
            let values = resources.engine.model().enums.get(name)?.values.iter();
            Some(
                std::iter::once(any_choice())
                    .chain(values.map(|value| new_choice(value, &names::display_label(value))))
                    .collect(),
            )
        }
        FieldKind::Scalar(_)
        | FieldKind::Id
        | FieldKind::Embedded(_)
        | FieldKind::List(_)
        | FieldKind::Reference { .. }
        | FieldKind::Inverse { .. }
        | FieldKind::Link { .. }
        | FieldKind::Unstored => None,
    }
}

/// The records that can be chosen from, where they are few.
fn record_choices(pages: &Pages, record: RecordTypeId, found: &FoundRows) -> Option<Vec<ChoiceOption>> {
    if matches!(found.outcome, trefoil_engine::Outcome::Listed { has_more: true, .. }) {
        return None;
    }
    let labels = pages.labels_of(record);
    let choices = found.rows.iter().map(|row| {
        let (id, name) = record_name(labels, row, labels.title_field.is_some());
        new_choice(&id.to_string(), &name)
    });
    Some(std::iter::once(any_choice()).chain(choices).collect())
}
