//! The search form above a list: a control for each filterable field, with its current value.

use trefoil_engine::plan::searched_texts;
use trefoil_engine::{Condition, ListSlice, Listing, Operation, Outcome};
use trefoil_http::form_pairs::percent_encode;
use trefoil_model::error::Violation;
use trefoil_model::{
    ComparisonOp, Field, FieldId, FieldKind, FilterOperator, RecordId, RecordType, RecordTypeId, Scalar,
    ScalarGroup, TextMatch, TextPart, Value,
};
use trefoil_resources::ServedResources;
use trefoil_resources::list_query::{LIST_PARAMS, ListQuery, time_mistake};

use crate::Pages;
use crate::detail::display::ValueDisplay;
use crate::labels::{self, noun_form, ordered_fields};
use crate::record_reading::record_name;
use crate::snapshot_reads::FoundRows;
use crate::template_data::{ChoiceOption, ControlKind, ControlView, NameValue, PageLink, SearchView};

/// A reference filter offers this many records; if there are more, it takes an id instead.
const MAX_CHOICES: i64 = 50;

/// Errors by position of the filter in the query.
pub type FilterErrors = Vec<(usize, String)>;

/// The filters of one list.
pub struct ListFilters<'a> {
    pub record: RecordTypeId,
    /// The reference to the parent, in a nested list.
    pub hidden_field: Option<FieldId>,
    pub query: &'a ListQuery,
    pub errors: FilterErrors,
}

impl ListFilters<'_> {
    /// Validates each filter by itself, so that errors can be attributed.
    pub fn check_filters(
        resources: &ServedResources,
        record: RecordTypeId,
        query: &ListQuery,
    ) -> FilterErrors {
        let errors = query.filters().enumerate().flat_map(|(position, (condition, ..))| {
            let listing = Listing { conditions: vec![condition.clone()], ..Listing::default() };
            let operation = Operation::List { record, listing, selection: Default::default() };
            let violations = resources.engine.violations(operation).into_iter();
            let message = |violation: Violation| {
                let about_clocks = time_mistake(resources.engine.model(), condition);
                (position, about_clocks.unwrap_or(violation.message))
            };
            violations.map(message).collect::<Vec<_>>()
        });
        errors.collect()
    }

    fn record_type<'s>(&self, resources: &'s ServedResources) -> &'s RecordType {
        resources.engine.model().record(self.record)
    }

    fn filterable_fields<'s>(
        &self,
        resources: &'s ServedResources,
    ) -> impl Iterator<Item = (FieldId, &'s Field)> + use<'s> {
        let (hidden, record) = (self.hidden_field, self.record);
        ordered_fields(self.record_type(resources))
            .into_iter()
            .filter(|(_, field)| !field.display.off.filter)
            .filter(move |(id, field)| field.is_stored() && field.kind.is_comparable() && Some(*id) != hidden)
            .filter(move |(id, _)| resources.engine.shows_field(record, *id))
    }

    /// The reference filters with their targets and the id that each is set to, in field order.
    fn reference_filters(&self, resources: &ServedResources) -> Vec<(RecordTypeId, Option<Value>)> {
        let fields = self.filterable_fields(resources);
        let filter = |(id, field): (FieldId, &Field)| {
            let target = field.kind.reference()?.target;
            let filters = self.query.filters().filter_map(|(condition, ..)| condition.field_comparison());
            let mut chosen = filters
                .filter(|(field, comparison)| *field == id && comparison.operator == FilterOperator::EQUAL);
            Some((target, chosen.next().map(|(_, comparison)| comparison.operand.clone())))
        };
        fields.filter_map(filter).collect()
    }

    /// Operations for the records that reference filters offer and for the chosen ones, read together with the list
    /// itself.
    pub fn choice_operations(&self, pages: &Pages, resources: &ServedResources) -> Vec<Operation> {
        let list = |record: RecordTypeId, conditions: Vec<Condition>| {
            let slice = ListSlice::First { first: MAX_CHOICES, after: None };
            let listing = Listing { conditions, slice, ..Listing::default() };
            Operation::List { record, listing, selection: pages.name_selections[record.0].clone() }
        };
        let model = resources.engine.model();
        let filters = self.reference_filters(resources).into_iter();
        let operations = filters.flat_map(|(record, chosen)| {
            let chosen = chosen.map(|chosen| {
                // A text that is no id is reported as a mistake of the filter, and finds nothing here.
                let id = RecordId::from_value(model.record(record).key_form(), &chosen).ok();
                let ids = Value::List(id.iter().map(RecordId::to_value).collect());
                list(record, vec![Condition::one_of(model.record(record).id_field(), ids)])
            });
            std::iter::once(list(record, Vec::new())).chain(chosen)
        });
        operations.collect()
    }

    /// `found` are the results of [`ListFilters::choice_operations`].
    pub fn search_view(
        &self,
        pages: &Pages,
        resources: &ServedResources,
        action: &str,
        found: &[FoundRows],
    ) -> SearchView {
        let display = ValueDisplay::of(&resources.engine);
        let mut found = found.iter();
        let mut choices = self.reference_filters(resources).into_iter().map(|(record, chosen)| {
            let (first, chosen) = (found.next(), chosen.and_then(|_| found.next()));
            record_choices(display, pages, record, first, chosen)
        });
        let mut filters = Vec::new();
        for (id, field) in self.filterable_fields(resources) {
            let mut title = None;
            let options = if let Some(reference) = field.kind.reference() {
                let offered = choices.next().unwrap_or_default();
                if !offered.is_whole {
                    title = self.title_control(pages, resources, field, reference.target);
                }
                Some(offered.options).filter(|options| offered.is_whole || options.len() > 1)
            } else {
                kind_choices(resources, &field.kind)
            };
            // Too many records to choose from are found by their titles, not by ids.
            let has_title = title.is_some();
            filters.extend(title);
            for (operator, position) in self.field_operators(id, field) {
                if has_title && position.is_none() {
                    continue;
                }
                filters.push(self.filter_control(field, operator, position, options.clone()));
            }
        }
        let known: Vec<String> = filters.iter().map(|control| control.name.clone()).collect();
        let others = self.other_controls(resources).into_iter();
        filters.extend(others.filter(|control| !known.contains(&control.name)));
        let param = |name: &str| self.query.param(name).unwrap_or_default().to_owned();
        let hidden = ["sort", "size"].map(|name| NameValue { name: name.to_owned(), value: param(name) });
        let hidden: Vec<NameValue> = hidden.into_iter().filter(|pair| !pair.value.is_empty()).collect();
        let q = param("q");
        let chips = self.chips(action, &q, &filters);
        SearchView {
            action: action.to_owned(),
            has_texts: !searched_texts(resources.engine.model(), self.record_type(resources)).is_empty(),
            active: self.query.filters().count() + usize::from(!q.is_empty()),
            clear: clear_url(action, &hidden),
            q,
            filters,
            hidden,
            chips,
        }
    }

    /// What is searched and filtered for, in words.
    fn chips(&self, action: &str, q: &str, filters: &[ControlView]) -> Vec<PageLink> {
        let search = Some(q).filter(|q| !q.is_empty());
        let search = search.map(|q| PageLink {
            label: format!("\u{201c}{q}\u{201d}"),
            href: self.query.url_without("q", action, &[]),
        });
        let set = filters.iter().filter(|control| !control.value.is_empty());
        let chip = |control: &ControlView| {
            let chosen = control.options.iter().find(|option| option.chosen);
            let value = chosen.map_or(control.value.as_str(), |option| option.label.as_str());
            PageLink {
                label: format!("{}: {value}", control.label),
                href: self.query.url_without(&control.name, action, &[]),
            }
        };
        search.into_iter().chain(set.map(chip)).collect()
    }

    /// The operators of a field that get a control: the default ones and those in the query, each with the position of
    /// the filter that it shows.
    fn field_operators(&self, id: FieldId, field: &Field) -> Vec<(FilterOperator, Option<usize>)> {
        let active = self.query.filters().enumerate().filter_map(|(position, (condition, ..))| {
            let (_, comparison) = condition.field_comparison().filter(|(field, _)| *field == id)?;
            Some((position, comparison.operator))
        });
        let active: Vec<(usize, FilterOperator)> = active.collect();
        let defaults = default_operators(&field.kind).iter().map(|operator| {
            let operator = *operator;
            let found = active.iter().rev().find(|(_, active)| *active == operator);
            (operator, found.map(|(position, _)| *position))
        });
        let mut operators: Vec<(FilterOperator, Option<usize>)> = defaults.collect();
        for (position, operator) in &active {
            if !operators.iter().any(|(known, _)| known == operator) {
                operators.push((*operator, Some(*position)));
            }
        }
        operators
    }

    /// A control for each filter that is not about a field alone, so that it is seen, kept and can be removed.
    fn other_controls(&self, resources: &ServedResources) -> Vec<ControlView> {
        let shown: Vec<FieldId> = self.filterable_fields(resources).map(|(id, _)| id).collect();
        let filters = self.query.filters().enumerate().filter(|(_, (condition, ..))| {
            condition.field_comparison().is_none_or(|(field, _)| !shown.contains(&field))
        });
        let control = |(position, (_, name, text)): (usize, (_, &str, &str))| ControlView {
            kind: ControlKind::Text,
            id: format!("filter-{position}"),
            name: name.to_owned(),
            label: name.to_owned(),
            value: text.to_owned(),
            errors: self.filter_errors(Some(position)),
            ..ControlView::default()
        };
        filters.map(control).collect()
    }

    /// The control that finds records by the title of the one that they refer to.
    fn title_control(
        &self,
        pages: &Pages,
        resources: &ServedResources,
        field: &Field,
        target: RecordTypeId,
    ) -> Option<ControlView> {
        let record = resources.engine.model().record(target);
        let mut titles = pages.labels_of(target).title.fields().map(|id| record.field(id));
        let title = titles.find(|title| title.kind.is_text())?;
        let name = format!("{}.{}.contains.ci", field.name, title.name);
        let filter = self.query.filters().enumerate().find(|(_, (_, known, _))| *known == name);
        Some(ControlView {
            kind: ControlKind::Text,
            id: format!("filter-{}", name.replace('.', "-")),
            label: format!("{}: {} contains", labels::field_label(field), noun_form(&title.label())),
            value: filter.map_or(String::new(), |(_, (_, _, text))| text.to_owned()),
            errors: filter.map_or(Vec::new(), |(position, _)| self.filter_errors(Some(position))),
            name,
            ..ControlView::default()
        })
    }

    fn filter_errors(&self, position: Option<usize>) -> Vec<String> {
        let errors = self.errors.iter().filter(|(filter, _)| Some(*filter) == position);
        errors.map(|(_, message)| message.clone()).collect()
    }

    fn filter_control(
        &self,
        field: &Field,
        operator: FilterOperator,
        position: Option<usize>,
        options: Option<Vec<ChoiceOption>>,
    ) -> ControlView {
        let filter = position.and_then(|position| self.query.filters().nth(position));
        let value = filter.map_or(String::new(), |(_, _, text)| text.to_owned());
        let name = parameter_name(&field.input_name, operator);
        let errors = self.filter_errors(position);
        let options = match operator {
            FilterOperator::IsNull => Some(boolean_choices("Not set", "Set")),
            FilterOperator::Compare(ComparisonOp::Eq | ComparisonOp::Ne) => options,
            FilterOperator::Compare(
                ComparisonOp::Lt | ComparisonOp::Lte | ComparisonOp::Gt | ComparisonOp::Gte,
            )
            | FilterOperator::In
            | FilterOperator::NotIn
            | FilterOperator::Text(_)
            | FilterOperator::Has
            | FilterOperator::IsEmpty => None,
        };
        // Without a select box if the current value is not among the options.
        let options = options.filter(|options| options.iter().any(|option| option.value == value));
        let kind =
            if options.is_some() { ControlKind::Select } else { control_kind(&field.kind, operator, &value) };
        let mut options = options.unwrap_or_default();
        options.iter_mut().for_each(|option| option.chosen = option.value == value);
        ControlView {
            kind,
            id: format!("filter-{}", name.replace('.', "-")),
            name,
            label: filter_label(field, operator, kind),
            value,
            options,
            errors,
            inputmode: input_mode(&field.kind, kind),
            ..ControlView::default()
        }
    }
}

fn clear_url(action: &str, parameters: &[NameValue]) -> String {
    let parameters: Vec<String> =
        parameters.iter().map(|pair| format!("{}={}", pair.name, percent_encode(&pair.value))).collect();
    if parameters.is_empty() { action.to_owned() } else { format!("{action}?{}", parameters.join("&")) }
}

/// The fields that pages filter by and that an index would find records by: those of numbers, times and choices.
pub fn unindexed_filters(record: &RecordType) -> Vec<&Field> {
    let is_helped = |(id, field): &(FieldId, &Field)| {
        let is_shown = !field.display.off.filter && field.is_stored() && field.kind.is_comparable();
        let mut operators = default_operators(&field.kind).iter();
        let has_range = operators.any(|operator| matches!(operator, FilterOperator::Compare(_)));
        // Each of the two values is that of many records.
        let is_boolean = field.kind.scalar().map(Scalar::group) == Some(ScalarGroup::Boolean);
        is_shown && has_range && !is_boolean && !record.has_index(*id)
    };
    ordered_fields(record).into_iter().filter(is_helped).map(|(_, field)| field).collect()
}

/// The operators that a field of this kind always offers.
fn default_operators(kind: &FieldKind) -> &'static [FilterOperator] {
    const RANGE: [FilterOperator; 2] =
        [FilterOperator::Compare(ComparisonOp::Gte), FilterOperator::Compare(ComparisonOp::Lte)];
    match kind.scalar().map(Scalar::group) {
        Some(ScalarGroup::Text) => &[FilterOperator::CONTAINS],
        Some(ScalarGroup::Number | ScalarGroup::Time) => &RANGE,
        Some(ScalarGroup::Boolean | ScalarGroup::Uuid) => &[FilterOperator::EQUAL],
        None if kind.is_comparable() && !kind.is_id() => &[FilterOperator::EQUAL],
        Some(ScalarGroup::Json) | None => &[],
    }
}

/// `price.gte`; plain `price` for equality, unless that is a parameter of the list itself.
pub fn parameter_name(name: &str, operator: FilterOperator) -> String {
    if operator == FilterOperator::EQUAL && !LIST_PARAMS.contains(&name) {
        return name.to_owned();
    }
    format!("{name}.{}", operator.name().replace('_', "."))
}

fn filter_label(field: &Field, operator: FilterOperator, kind: ControlKind) -> String {
    let label = labels::field_label(field);
    let is_plain = kind == ControlKind::Select || field.kind.scalar() == Some(Scalar::Uuid);
    let is_id = field.kind.is_reference() && kind != ControlKind::Select;
    let words = match operator {
        FilterOperator::EQUAL if is_id => "ID",
        FilterOperator::EQUAL if is_plain => return label,
        FilterOperator::Compare(ComparisonOp::Eq) | FilterOperator::IsNull => "is",
        FilterOperator::Compare(ComparisonOp::Ne) => "is not",
        FilterOperator::Compare(ComparisonOp::Lt) => "below",
        FilterOperator::Compare(ComparisonOp::Lte) => "to",
        FilterOperator::Compare(ComparisonOp::Gt) => "above",
        FilterOperator::Compare(ComparisonOp::Gte) => "from",
        FilterOperator::In => "is one of",
        FilterOperator::NotIn => "is none of",
        FilterOperator::Text(TextMatch { part, any_case }) => match (part, any_case) {
            (TextPart::Whole, _) => "is, in any case",
            (TextPart::Anywhere, false) => "contains",
            (TextPart::Anywhere, true) => "contains, in any case",
            (TextPart::Start, false) => "starts with",
            (TextPart::Start, true) => "starts with, in any case",
            (TextPart::End, false) => "ends with",
            (TextPart::End, true) => "ends with, in any case",
        },
        FilterOperator::Has => "has",
        FilterOperator::IsEmpty => "is empty",
    };
    format!("{label} {words}")
}

/// A specialised control only for values that it can show: browsers drop others.
fn control_kind(kind: &FieldKind, operator: FilterOperator, value: &str) -> ControlKind {
    let is_day =
        value.is_empty() || (value.len() == 10 && value.bytes().all(|b| b.is_ascii_digit() || b == b'-'));
    let is_list = matches!(operator, FilterOperator::In | FilterOperator::NotIn);
    let is_time = kind.scalar().is_some_and(|scalar| scalar.group() == ScalarGroup::Time);
    if is_list {
        ControlKind::Text
    } else if is_time && is_day {
        ControlKind::Date
    } else if kind.is_number() || kind.is_reference() {
        ControlKind::Number
    } else {
        ControlKind::Text
    }
}

fn input_mode(kind: &FieldKind, control: ControlKind) -> Option<&'static str> {
    let is_whole = matches!(kind.scalar(), Some(Scalar::Int | Scalar::Long)) || kind.is_reference();
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

/// The options of a boolean or an enum.
fn kind_choices(resources: &ServedResources, kind: &FieldKind) -> Option<Vec<ChoiceOption>> {
    let value_type = kind.value_type()?;
    if value_type.scalar() == Some(Scalar::Boolean) {
        return Some(boolean_choices("Yes", "No"));
    }
    let known = resources.engine.model().enums.get(value_type.enum_name()?)?;
    let values = known.values.iter().map(|value| new_choice(value, &known.label(value)));
    Some(std::iter::once(any_choice()).chain(values).collect())
}

/// The records that a reference filter offers.
#[derive(Default)]
struct OfferedChoices {
    options: Vec<ChoiceOption>,
    /// All records are among them.
    is_whole: bool,
}

/// The first records and the chosen one; of too many only the latter.
fn record_choices(
    display: ValueDisplay<'_>,
    pages: &Pages,
    record: RecordTypeId,
    first: Option<&FoundRows>,
    chosen: Option<&FoundRows>,
) -> OfferedChoices {
    let labels = pages.labels_of(record);
    let is_cut = |found: &FoundRows| matches!(found.outcome, Outcome::Listed { has_more: true, .. });
    let is_whole = !first.is_none_or(is_cut);
    let rows = if is_whole { first } else { chosen }.into_iter().flat_map(|found| &found.rows);
    let choices = rows.map(|row| {
        let (id, name) = record_name(display, labels, row);
        new_choice(&id.to_string(), &name)
    });
    OfferedChoices { options: std::iter::once(any_choice()).chain(choices).collect(), is_whole }
}
