//! Turns an [`Operation`] into a [`Plan`]: every value coerced, every rule applied. The sole maker of plans.

use std::sync::Arc;

use crate::changes::Image;
use crate::cursor;
use crate::cursor::Seen;
use crate::operation::{Absent, Condition, Count, Listing, Op, Operation, Order, Selection, Slice};
use crate::plain_list;
use crate::plain_list::OnList;
use crate::text_search;
use trefoil_model::error::{Error, Result, Segment, Violation};
use trefoil_model::values::{coerce, scalars};
use trefoil_model::{Field, FieldId, FilledBy, Kind, Model, RecordType, Stored, TypeId, Value};

/// An operation that was proven. Stores take nothing else; only this module can make one.
#[derive(Debug, Clone)]
pub struct Plan {
    pub action: Action,
    _proof: Proof,
}

/// Private, so that a `Plan` cannot be written down elsewhere.
#[derive(Debug, Clone)]
struct Proof;

#[derive(Debug, Clone)]
pub enum Action {
    Get {
        record: TypeId,
        id: i64,
        selection: Arc<Chosen>,
    },
    List {
        record: TypeId,
        listing: Bounds,
        selection: Arc<Chosen>,
    },
    Create {
        record: TypeId,
        id: Option<i64>,
        values: Vec<(FieldId, Stored)>,
        links: Vec<(FieldId, Vec<i64>)>,
        selection: Arc<Chosen>,
    },
    Update {
        record: TypeId,
        id: i64,
        values: Vec<(FieldId, Stored)>,
        links: Vec<(FieldId, Vec<i64>)>,
        expected_version: Option<i64>,
        selection: Arc<Chosen>,
    },
    Delete {
        record: TypeId,
        id: i64,
        expected_version: Option<i64>,
        selection: Arc<Chosen>,
    },
    Changed {
        record: TypeId,
        image: Image,
        selection: Arc<Chosen>,
    },
    Plain(OnList),
}

/// A record of an import.
#[derive(Debug, Clone)]
pub struct Arrival {
    pub record: TypeId,
    /// Given by the store where it is not chosen.
    pub id: Option<i64>,
    pub fields: Vec<(FieldId, Value)>,
    pub selection: Arc<Selection>,
}

/// A proven [`Selection`]; `shape` is equal exactly when the statements for it are.
#[derive(Debug, Clone)]
pub struct Chosen {
    pub columns: Vec<FieldId>,
    pub children: Vec<ChosenChild>,
    /// The version follows the columns.
    pub versioned: bool,
    pub shape: u128,
}

#[derive(Debug, Clone)]
pub struct ChosenChild {
    pub field: FieldId,
    pub listing: Bounds,
    pub selection: Chosen,
}

/// A proven listing.
#[derive(Debug, Clone, Default)]
pub struct Bounds {
    pub conditions: Vec<Test>,
    /// Without the closing `id`, which every order has.
    pub order: Vec<Order>,
    /// Keyset: the last record already seen.
    pub after: Option<Seen>,
    /// At most so many …
    pub limit: Option<i64>,
    /// … after skipping so many.
    pub offset: i64,
    pub count: Count,
    pub cursors: bool,
}

#[derive(Debug, Clone)]
pub enum Test {
    /// The value is never null; `Contains` compares text.
    Compare {
        field: FieldId,
        op: Op,
        value: Stored,
    },
    /// One of these, none of them null, or null where that was listed too. Kept in one parameter, so that the
    /// statement is the same for any number.
    OneOf {
        field: FieldId,
        values: Vec<Stored>,
        or_null: bool,
    },
    IsNull {
        field: FieldId,
    },
    NotNull {
        field: FieldId,
    },
    /// Any field that holds text contains this one, whose ASCII letters are small and mean both cases; there is at least
    /// one such field.
    Search {
        text: Stored,
    },
    /// The same, where other letters have cases too: some part of a text fits this pattern.
    SearchPattern {
        pattern: Stored,
    },
    /// Never true: `IN ()` and the like.
    Nothing,
}

/// Limits of meaning.
#[derive(Debug, Clone)]
pub struct PlanLimits {
    pub page_size: i64,
    pub max_page_size: i64,
    /// Of one list.
    pub conditions: usize,
}

impl Default for PlanLimits {
    fn default() -> Self {
        PlanLimits { page_size: 20, max_page_size: 1_000, conditions: 100 }
    }
}

impl Plan {
    pub fn prove(model: &Model, operation: Operation, now: jiff::Timestamp) -> Result<Plan> {
        Ok(Plan { action: action(model, operation, now)?, _proof: Proof })
    }

    /// A record as it was elsewhere comes in: judged like any creation, but what the server fills may be given.
    pub fn prove_arrival(model: &Model, arrival: Arrival, now: jiff::Timestamp) -> Result<Plan> {
        let Arrival { record, id, fields, selection } = arrival;
        let (values, links) = Write::new(model, record, now).arrival(fields)?;
        let id = coerce::chosen_id(id).map_err(Error::Invalid)?;
        let selection = choose(model, record, &selection)?;
        Ok(Plan { action: Action::Create { record, id, values, links, selection }, _proof: Proof })
    }

    /// Whether it changes records.
    pub fn writes(&self) -> bool {
        match &self.action {
            Action::Get { .. } | Action::List { .. } | Action::Changed { .. } => false,
            Action::Create { .. } | Action::Update { .. } | Action::Delete { .. } => true,
            Action::Plain(asked) => asked.act.writes(),
        }
    }
}

fn action(model: &Model, operation: Operation, now: jiff::Timestamp) -> Result<Action> {
    Ok(match operation {
        Operation::Get { record, id, selection } => {
            Action::Get { record, id, selection: choose(model, record, &selection)? }
        }
        Operation::List { record, listing, selection } => Action::List {
            record,
            listing: bounds(model, model.record(record), &listing)?,
            selection: choose(model, record, &selection)?,
        },
        Operation::Create { record, id, fields, selection } => {
            let (values, links) = Write::new(model, record, now).creation(fields)?;
            let id = coerce::chosen_id(id).map_err(Error::Invalid)?;
            Action::Create { record, id, values, links, selection: choose(model, record, &selection)? }
        }
        Operation::Update { record, id, fields, absent, expected_version, selection } => {
            let (values, links) = Write::new(model, record, now).change(fields, absent)?;
            let selection = choose(model, record, &selection)?;
            Action::Update { record, id, values, links, expected_version, selection }
        }
        Operation::Delete { record, id, expected_version, selection } => {
            Action::Delete { record, id, expected_version, selection: choose(model, record, &selection)? }
        }
        Operation::Changed { record, image, selection } => {
            Action::Changed { record, image, selection: choose(model, record, &selection)? }
        }
        Operation::Plain(asked) => Action::Plain(plain_list::prove(asked)?),
    })
}

/// The proof of a selection, made on first sight and kept with it.
fn choose(model: &Model, record: TypeId, selection: &Selection) -> Result<Arc<Chosen>> {
    if let Some(proven) = selection.proven.get() {
        return Ok(proven.clone());
    }
    let chosen = Arc::new(chosen(model, record, selection)?);
    Ok(selection.proven.get_or_init(|| chosen).clone())
}

fn chosen(model: &Model, record: TypeId, selection: &Selection) -> Result<Chosen> {
    let owner = model.record(record);
    let mut children = Vec::with_capacity(selection.children.len());
    for child in &selection.children {
        let target = target(owner.field(child.field))?;
        children.push(ChosenChild {
            field: child.field,
            listing: bounds(model, model.record(target), &child.listing)?,
            selection: chosen(model, target, &child.selection)?,
        });
    }
    let versioned = selection.versioned;
    let shape = shape(record, &selection.columns, versioned, &children);
    Ok(Chosen { columns: selection.columns.clone(), children, versioned, shape })
}

/// The record type that a relation leads to.
pub fn target(field: &Field) -> Result<TypeId> {
    match &field.kind {
        Kind::Reference { target, .. } | Kind::Link { target, .. } => Ok(*target),
        Kind::Inverse { of, .. } => Ok(*of),
        Kind::Id | Kind::Scalar(_) | Kind::Enum(_) | Kind::Embedded(_) | Kind::List(_) | Kind::Unstored => {
            Err(Error::internal(format!("`{}` leads to no record", field.name)))
        }
    }
}

/// Equal for two selections exactly when they need the same statements; values do not count.
fn shape(record: TypeId, columns: &[FieldId], versioned: bool, children: &[ChosenChild]) -> u128 {
    let mut text = format!("{}:{columns:?}{}", record.0, if versioned { "v" } else { "" });
    for child in children {
        let listing = &child.listing;
        let tests: Vec<[usize; 2]> = listing.conditions.iter().map(Test::shape).collect();
        text += &format!(
            ";{}{tests:?}{:?}{}{}{:?}{}{:x}",
            child.field.0,
            listing.order,
            listing.limit.is_some(),
            listing.offset > 0,
            listing.after.as_ref().map(Seen::shape).unwrap_or_default(),
            listing.cursors,
            child.selection.shape
        );
    }
    xxhash_rust::xxh3::xxh3_128(text.as_bytes())
}

fn bounds(model: &Model, record: &RecordType, listing: &Listing) -> Result<Bounds> {
    let mut conditions = tests(model, record, &listing.conditions)?;
    if let Some(text) = &listing.search {
        conditions
            .push(text_search::test(record, text).map_err(|violation| Error::Invalid(vec![violation]))?);
    }
    let (limit, offset, after) = match &listing.slice {
        Slice::All => (None, 0, None),
        // A page so far out that its offset does not fit is past the end all the same.
        Slice::Page { page, size } => (Some(*size), page.saturating_sub(1).saturating_mul(*size), None),
        Slice::First { first, after } => {
            let after = after.as_deref().map(|text| cursor::decode(record, &listing.order, text));
            let after = after.transpose()?;
            (Some(*first), 0, after)
        }
    };
    let (count, cursors) = (listing.count, listing.cursors);
    Ok(Bounds { conditions, order: listing.order.clone(), after, limit, offset, count, cursors })
}

/// The proof of conditions, in their order.
pub fn tests(model: &Model, record: &RecordType, conditions: &[Condition]) -> Result<Vec<Test>> {
    let mut violations = Vec::new();
    let mut tests = Vec::with_capacity(conditions.len());
    for condition in conditions {
        match test(model, record, condition) {
            Ok(test) => tests.push(test),
            Err(list) => violations.extend(list),
        }
    }
    if violations.is_empty() { Ok(tests) } else { Err(Error::Invalid(violations)) }
}

fn test(model: &Model, record: &RecordType, condition: &Condition) -> Result<Test, Vec<Violation>> {
    let Condition { field: id, op, value } = condition;
    let (field, id) = (record.field(*id), *id);
    match (op, value) {
        (Op::Eq, Value::Null) => Ok(Test::IsNull { field: id }),
        (Op::Ne, Value::Null) => Ok(Test::NotNull { field: id }),
        (Op::Lt | Op::Lte | Op::Gt | Op::Gte | Op::Contains | Op::In, Value::Null) => {
            let message = format!("`{}` cannot be compared with null in this way", field.input_name);
            Err(vec![Violation::new(&field.input_name, "NULL", message)])
        }
        (Op::In, Value::List(items)) => one_of(model, id, field, items),
        (Op::In, single) => one_of(model, id, field, std::slice::from_ref(single)),
        (Op::Contains, _) if !holds_text(&field.kind) => {
            let message = format!("`{}` is no text that could contain something", field.input_name);
            Err(vec![Violation::new(&field.input_name, "OPERATOR", message)])
        }
        (Op::Contains, _) => {
            let value = coerce::part(field, value).map_err(|list| named(field, list))?;
            Ok(Test::Compare { field: id, op: *op, value })
        }
        (Op::Eq | Op::Ne | Op::Lt | Op::Lte | Op::Gt | Op::Gte, _) => {
            let value = coerce::comparable(model, field, value).map_err(|list| named(field, list))?;
            Ok(Test::Compare { field: id, op: *op, value })
        }
    }
}

fn one_of(model: &Model, id: FieldId, field: &Field, items: &[Value]) -> Result<Test, Vec<Violation>> {
    if items.is_empty() {
        return Ok(Test::Nothing);
    }
    let given = items.iter().filter(|item| !item.is_null());
    let values = given.map(|item| coerce::comparable(model, field, item)).collect::<Result<Vec<_>, _>>();
    let values = values.map_err(|list| named(field, list))?;
    Ok(Test::OneOf { field: id, or_null: values.len() < items.len(), values })
}

/// Coercion tells where in a value something is wrong; this adds the field that the value is for.
fn named(field: &Field, violations: Vec<Violation>) -> Vec<Violation> {
    let name = || Segment::Field(field.input_name.clone());
    violations.into_iter().map(|violation| violation.under(name())).collect()
}

/// Whether a field's values are texts that can contain others.
pub fn holds_text(kind: &Kind) -> bool {
    use trefoil_model::Scalar;
    match kind {
        Kind::Scalar(scalar) => matches!(scalar, Scalar::String | Scalar::Id | Scalar::Url | Scalar::Email),
        Kind::Id
        | Kind::Enum(_)
        | Kind::Embedded(_)
        | Kind::List(_)
        | Kind::Reference { .. }
        | Kind::Inverse { .. }
        | Kind::Link { .. }
        | Kind::Unstored => false,
    }
}

impl Test {
    /// What of it is in the statement's text: the kind of test, and the field.
    pub fn shape(&self) -> [usize; 2] {
        match self {
            Test::Nothing => [0, 0],
            Test::OneOf { field, or_null: false, .. } => [1, field.0],
            Test::OneOf { field, or_null: true, .. } => [2, field.0],
            Test::IsNull { field } => [3, field.0],
            Test::NotNull { field } => [4, field.0],
            Test::Compare { field, op, .. } => [5 + *op as usize, field.0],
            Test::Search { .. } => [5 + Op::In as usize + 1, 0],
            Test::SearchPattern { .. } => [5 + Op::In as usize + 1, 1],
        }
    }
}

type Values = Vec<(FieldId, Stored)>;
type Links = Vec<(FieldId, Vec<i64>)>;

/// The values of one record on their way in.
struct Write<'a> {
    model: &'a Model,
    record: &'a RecordType,
    now: jiff::Timestamp,
    values: Values,
    links: Links,
    violations: Vec<Violation>,
}

impl<'a> Write<'a> {
    fn new(model: &'a Model, record: TypeId, now: jiff::Timestamp) -> Self {
        let record = model.record(record);
        Write { model, record, now, values: Vec::new(), links: Vec::new(), violations: Vec::new() }
    }

    fn creation(mut self, fields: Vec<(FieldId, Value)>) -> Result<(Values, Links)> {
        let given = self.take_all(fields);
        self.fill_absent(&given);
        self.stamp(&[FilledBy::Creation, FilledBy::Update]);
        self.finish()
    }

    fn arrival(mut self, fields: Vec<(FieldId, Value)>) -> Result<(Values, Links)> {
        let is_stamp = |id: &FieldId| match self.record.field(*id).filled_by {
            FilledBy::Creation | FilledBy::Update => true,
            FilledBy::Client | FilledBy::Version => false,
        };
        let (stamps, own): (Vec<_>, Vec<_>) = fields.into_iter().partition(|(id, _)| is_stamp(id));
        let given = self.take_all(own);
        self.fill_absent(&given);
        self.stamp(&[FilledBy::Creation, FilledBy::Update]);
        for (id, value) in stamps.iter().filter(|(_, value)| !value.is_null()) {
            self.values.retain(|(stamped, _)| stamped != id);
            self.take(*id, self.record.field(*id), value);
        }
        self.finish()
    }

    fn change(mut self, fields: Vec<(FieldId, Value)>, absent: Absent) -> Result<(Values, Links)> {
        let given = self.take_all(fields);
        if absent == Absent::Reset {
            self.fill_absent(&given);
        }
        if !(self.values.is_empty() && self.links.is_empty()) {
            self.stamp(&[FilledBy::Update]);
        }
        self.finish()
    }

    fn finish(self) -> Result<(Values, Links)> {
        if self.violations.is_empty() {
            Ok((self.values, self.links))
        } else {
            Err(Error::Invalid(self.violations))
        }
    }

    /// Coerces what was given; the answer says which fields that were.
    fn take_all(&mut self, fields: Vec<(FieldId, Value)>) -> Vec<bool> {
        let mut given = vec![false; self.record.fields.len()];
        for (id, value) in fields {
            let field = self.record.field(id);
            if std::mem::replace(&mut given[id.0], true) {
                let message = format!("`{}` is given twice", field.name);
                self.violations.push(Violation::new(&field.input_name, "TWICE", message));
            } else if field.filled_by != FilledBy::Client {
                let message = format!("`{}` is filled by the server and cannot be set", field.name);
                self.violations.push(Violation::new(&field.input_name, "READ_ONLY", message));
            } else {
                self.take(id, field, &value);
            }
        }
        given
    }

    fn take(&mut self, id: FieldId, field: &Field, value: &Value) {
        if matches!(field.kind, Kind::Link { .. }) {
            let none = Value::List(Vec::new());
            match coerce::ids(field, if value.is_null() { &none } else { value }) {
                Ok(ids) => self.links.push((id, ids)),
                Err(violations) => self.violations.extend(named(field, violations)),
            }
            return;
        }
        match coerce::field(self.model, field, value) {
            Ok(stored) => self.values.push((id, stored)),
            Err(violations) => self.violations.extend(named(field, violations)),
        }
    }

    /// A field that was not given takes its default, or null where it may. Links stay as they are.
    fn fill_absent(&mut self, given: &[bool]) {
        for (i, field) in self.record.fields.iter().enumerate() {
            let own = field.is_stored() && field.kind != Kind::Id && field.filled_by == FilledBy::Client;
            if given[i] || !own {
                continue;
            }
            match &field.default {
                Some(default) => self.take(FieldId(i), field, default),
                None => self.take(FieldId(i), field, &Value::Null),
            }
        }
    }

    fn stamp(&mut self, kinds: &[FilledBy]) {
        for (i, field) in self.record.fields.iter().enumerate() {
            if kinds.contains(&field.filled_by) {
                self.values.push((FieldId(i), Stored::Text(scalars::spelled_now(self.now))));
            }
        }
    }
}
