//! The search above a list: a control for each field that can be filtered by, as it is set.

use crate::Served;
use crate::labels;
use crate::list::table::is_number;
use crate::multi_read::Found;
use crate::record_reading::name;
use crate::view::{Choice, Control, ControlKind, Pair, Search};
use trefoil_engine::arguments::Asks;
use trefoil_engine::plan::holds_text;
use trefoil_engine::{Listing, Op, Operation, Slice};
use trefoil_model::naming::names;
use trefoil_model::{Field, FieldId, Kind, RecordType, Scalar, TypeId};
use trefoil_resources::Site;
use trefoil_resources::list_query;
use trefoil_resources::list_query::{LIST_WORDS, Query};

/// So many records are listed to choose from; where there are more, one is named by its id.
const CHOICES: i64 = 50;

/// Why a filter cannot be read: its place among the query's, and what to say.
pub type Wrong = Vec<(usize, String)>;

/// The filters of one list.
pub struct Filters<'a> {
    pub record: TypeId,
    /// The field that the list is a part by.
    pub hidden: Option<FieldId>,
    pub query: &'a Query,
    pub wrong: Wrong,
}

impl Filters<'_> {
    /// What the engine has against each filter, told apart by asking about one at a time.
    pub fn judge(site: &Site, record: TypeId, query: &Query) -> Wrong {
        let judged = query.filters().enumerate().flat_map(|(position, (condition, ..))| {
            let listing = Listing { conditions: vec![condition.clone()], ..Listing::default() };
            let operation = Operation::List { record, listing, selection: Default::default() };
            let violations = site.engine.violations(operation).into_iter();
            violations.map(move |violation| (position, violation.message)).collect::<Vec<_>>()
        });
        judged.collect()
    }

    fn record<'s>(&self, site: &'s Site) -> &'s RecordType {
        site.engine.model().record(self.record)
    }

    fn fields<'s>(&self, site: &'s Site) -> impl Iterator<Item = (FieldId, &'s Field)> + use<'s> {
        let hidden = self.hidden;
        let fields = self.record(site).fields.iter().enumerate().map(|(i, field)| (FieldId(i), field));
        fields
            .filter(move |(id, field)| field.is_stored() && field.kind.is_comparable() && Some(*id) != hidden)
    }

    /// The types whose records are listed to choose from, in the order of the fields that refer to them.
    fn targets(&self, site: &Site) -> Vec<TypeId> {
        let target =
            |field: &Field| if let Kind::Reference { target, .. } = field.kind { Some(target) } else { None };
        self.fields(site).filter_map(|(_, field)| target(field)).collect()
    }

    /// What there is to choose from is asked for with the list itself.
    pub fn choices(&self, served: &Served, site: &Site) -> Vec<Operation> {
        let list = |record: TypeId| {
            let slice = Slice::First { first: CHOICES, after: None };
            let listing = Listing { slice, ..Listing::default() };
            Operation::List { record, listing, selection: served.names[record.0].clone() }
        };
        self.targets(site).into_iter().map(list).collect()
    }

    /// `found` is what [`Filters::choices`] found.
    pub fn search(&self, served: &Served, site: &Site, action: &str, found: &[Found]) -> Search {
        let targets = self.targets(site);
        let mut choices = targets.iter().zip(found).map(|(record, found)| of_records(served, *record, found));
        let mut filters = Vec::new();
        for (id, field) in self.fields(site) {
            let is_reference = matches!(field.kind, Kind::Reference { .. });
            let options = if is_reference { choices.next().flatten() } else { of_kind(site, &field.kind) };
            for (asks, position) in self.asked(id, field) {
                filters.push(self.control(field, asks, position, options.clone()));
            }
        }
        let given = |word: &str| self.query.word(word).unwrap_or_default().to_owned();
        let kept = ["sort", "size"].map(|name| Pair { name: name.to_owned(), value: given(name) });
        let kept: Vec<Pair> = kept.into_iter().filter(|pair| !pair.value.is_empty()).collect();
        let q = given("q");
        Search {
            action: action.to_owned(),
            has_texts: self
                .record(site)
                .fields
                .iter()
                .any(|field| field.is_stored() && holds_text(&field.kind)),
            active: self.query.filters().count() + usize::from(!q.is_empty()),
            clear: cleared(action, &kept),
            q,
            filters,
            hidden: kept,
        }
    }

    /// Which controls a field has: the usual ones, and one for whatever else is asked; each with the place of the
    /// filter that it shows.
    fn asked(&self, id: FieldId, field: &Field) -> Vec<(Asks, Option<usize>)> {
        let given = self.query.filters().enumerate().filter(|(_, (condition, ..))| condition.field == id);
        let given = given.filter_map(|(position, (_, name, _))| Some((position, list_query::asked(name)?.1)));
        let given: Vec<(usize, Asks)> = given.collect();
        let usual = usual(&field.kind).iter().map(|op| {
            let asks = Asks::Compare(*op);
            let found = given.iter().rev().find(|(_, given)| *given == asks);
            (asks, found.map(|(position, _)| *position))
        });
        let mut asked: Vec<(Asks, Option<usize>)> = usual.collect();
        for (position, asks) in &given {
            if !asked.iter().any(|(known, _)| known == asks) {
                asked.push((*asks, Some(*position)));
            }
        }
        asked
    }

    fn control(
        &self,
        field: &Field,
        asks: Asks,
        position: Option<usize>,
        options: Option<Vec<Choice>>,
    ) -> Control {
        let given = position.and_then(|position| self.query.filters().nth(position));
        let value = given.map_or(String::new(), |(_, _, text)| text.to_owned());
        let name = parameter(field, asks);
        let errors = self.wrong.iter().filter(|(wrong, _)| Some(*wrong) == position);
        let errors: Vec<String> = errors.map(|(_, message)| message.clone()).collect();
        let options = match asks {
            Asks::IsNull => Some(yes_or_no("Not set", "Set")),
            Asks::Compare(Op::Eq | Op::Ne) => options,
            Asks::Compare(Op::Lt | Op::Lte | Op::Gt | Op::Gte | Op::Contains | Op::In) => None,
        };
        // What is chosen must be among what there is to choose.
        let options = options.filter(|options| options.iter().any(|option| option.value == value));
        let kind = if options.is_some() { ControlKind::Select } else { kind(&field.kind, asks, &value) };
        let mut options = options.unwrap_or_default();
        options.iter_mut().for_each(|option| option.chosen = option.value == value);
        Control {
            kind,
            id: format!("filter-{}", name.replace('.', "-")),
            name,
            label: label(field, asks, kind),
            value,
            options,
            errors,
            inputmode: inputmode(&field.kind, kind),
            ..Control::default()
        }
    }
}

fn cleared(action: &str, kept: &[Pair]) -> String {
    use trefoil_http::form_pairs::encoded;
    let kept: Vec<String> =
        kept.iter().map(|pair| format!("{}={}", pair.name, encoded(&pair.value))).collect();
    if kept.is_empty() { action.to_owned() } else { format!("{action}?{}", kept.join("&")) }
}

/// How a field is filtered by.
fn usual(kind: &Kind) -> &'static [Op] {
    match kind {
        Kind::Scalar(Scalar::String | Scalar::Id | Scalar::Url | Scalar::Email) => &[Op::Contains],
        Kind::Scalar(
            Scalar::Int | Scalar::Float | Scalar::Long | Scalar::Decimal | Scalar::Date | Scalar::DateTime,
        ) => &[Op::Gte, Op::Lte],
        Kind::Scalar(Scalar::Boolean | Scalar::Uuid) | Kind::Enum(_) | Kind::Reference { .. } => &[Op::Eq],
        Kind::Scalar(Scalar::Json)
        | Kind::Id
        | Kind::Embedded(_)
        | Kind::List(_)
        | Kind::Inverse { .. }
        | Kind::Link { .. }
        | Kind::Unstored => &[],
    }
}

/// `price.gte`; plain `price` for equality, unless that is a word of the list itself.
fn parameter(field: &Field, asks: Asks) -> String {
    let name = &field.input_name;
    match asks {
        Asks::Compare(Op::Eq) if !LIST_WORDS.contains(&name.as_str()) => name.clone(),
        Asks::Compare(_) | Asks::IsNull => format!("{name}.{}", asks.name()),
    }
}

fn label(field: &Field, asks: Asks, kind: ControlKind) -> String {
    let label = labels::label(field);
    let is_plain = kind == ControlKind::Select || matches!(field.kind, Kind::Scalar(Scalar::Uuid));
    let is_id = matches!(field.kind, Kind::Reference { .. }) && kind != ControlKind::Select;
    match asks {
        Asks::Compare(Op::Eq) if is_id => format!("{label} ID"),
        Asks::Compare(Op::Eq) if is_plain => label,
        Asks::Compare(Op::Eq) | Asks::IsNull => format!("{label} is"),
        Asks::Compare(Op::Ne) => format!("{label} is not"),
        Asks::Compare(Op::Lt) => format!("{label} below"),
        Asks::Compare(Op::Lte) => format!("{label} to"),
        Asks::Compare(Op::Gt) => format!("{label} above"),
        Asks::Compare(Op::Gte) => format!("{label} from"),
        Asks::Compare(Op::Contains) => format!("{label} contains"),
        Asks::Compare(Op::In) => format!("{label} is one of"),
    }
}

/// A control of the browser is only taken for what it can show: it would lose anything else.
fn kind(kind: &Kind, asks: Asks, value: &str) -> ControlKind {
    let is_day =
        value.is_empty() || (value.len() == 10 && value.bytes().all(|b| b.is_ascii_digit() || b == b'-'));
    let is_list = asks == Asks::Compare(Op::In);
    match kind {
        Kind::Scalar(Scalar::Date | Scalar::DateTime) if !is_list && is_day => ControlKind::Date,
        Kind::Reference { .. } if !is_list => ControlKind::Number,
        kind if is_number(kind) && !is_list => ControlKind::Number,
        Kind::Scalar(_)
        | Kind::Id
        | Kind::Enum(_)
        | Kind::Embedded(_)
        | Kind::List(_)
        | Kind::Reference { .. }
        | Kind::Inverse { .. }
        | Kind::Link { .. }
        | Kind::Unstored => ControlKind::Text,
    }
}

fn inputmode(kind: &Kind, control: ControlKind) -> Option<&'static str> {
    let is_whole = matches!(kind, Kind::Scalar(Scalar::Int | Scalar::Long) | Kind::Reference { .. });
    (control == ControlKind::Number).then_some(if is_whole { "numeric" } else { "decimal" })
}

fn choice(value: &str, label: &str) -> Choice {
    Choice { value: value.to_owned(), label: label.to_owned(), chosen: false }
}

fn any() -> Choice {
    choice("", "Any")
}

fn yes_or_no(yes: &str, no: &str) -> Vec<Choice> {
    vec![any(), choice("true", yes), choice("false", no)]
}

/// What the kind of a field lets choose from.
fn of_kind(site: &Site, kind: &Kind) -> Option<Vec<Choice>> {
    match kind {
        Kind::Scalar(Scalar::Boolean) => Some(yes_or_no("Yes", "No")),
        Kind::Enum(name) => {
            let values = site.engine.model().enums.get(name)?.values.iter();
            Some(
                std::iter::once(any())
                    .chain(values.map(|value| choice(value, &names::label(value))))
                    .collect(),
            )
        }
        Kind::Scalar(_)
        | Kind::Id
        | Kind::Embedded(_)
        | Kind::List(_)
        | Kind::Reference { .. }
        | Kind::Inverse { .. }
        | Kind::Link { .. }
        | Kind::Unstored => None,
    }
}

/// The records that can be chosen from, where they are few.
fn of_records(served: &Served, record: TypeId, found: &Found) -> Option<Vec<Choice>> {
    if matches!(found.outcome, trefoil_engine::Outcome::Listed { more: true, .. }) {
        return None;
    }
    let subject = served.subject(record);
    let choices = found.rows.iter().map(|row| {
        let (id, name) = name(subject, row, subject.title.is_some());
        choice(&id.to_string(), &name)
    });
    Some(std::iter::once(any()).chain(choices).collect())
}
