//! Turns an [`Operation`] into a [`Plan`]: every value coerced, every rule checked. The only place that makes
//! plans.

use std::sync::Arc;

use trefoil_model::error::{Error, PathSegment, Result, Violation};
use trefoil_model::values::{coerce, scalars};
use trefoil_model::{
    Field, FieldId, FieldKind, Model, RecordType, RecordTypeId, Scalar, StoredValue, Value, ValueSource,
};

use crate::changes::RecordImage;
use crate::cursor::{self, CursorPosition};
use crate::operation::{
    ComparisonOp, Condition, CountMode, ListSlice, Listing, MissingFields, Operation, Selection, SortKey,
};
use crate::plain_list::{self, PlainListOperation};
use crate::text_search;

/// A validated operation. Stores accept nothing else, and only this module can make one.
#[derive(Debug, Clone)]
pub struct Plan {
    pub action: PlanAction,
    _proof: PlanProof,
}

/// Private, so that other modules cannot construct a `Plan`.
#[derive(Debug, Clone)]
struct PlanProof;

#[derive(Debug, Clone)]
pub enum PlanAction {
    Get {
        record: RecordTypeId,
        id: i64,
        selection: Arc<PlannedSelection>,
    },
    List {
        record: RecordTypeId,
        listing: PlannedListing,
        selection: Arc<PlannedSelection>,
    },
    Create {
        record: RecordTypeId,
        id: Option<i64>,
        values: Vec<(FieldId, StoredValue)>,
        links: Vec<(FieldId, Vec<i64>)>,
        selection: Arc<PlannedSelection>,
    },
    Update {
        record: RecordTypeId,
        id: i64,
        values: Vec<(FieldId, StoredValue)>,
        links: Vec<(FieldId, Vec<i64>)>,
        expected_version: Option<i64>,
        selection: Arc<PlannedSelection>,
    },
    Delete {
        record: RecordTypeId,
        id: i64,
        expected_version: Option<i64>,
        selection: Arc<PlannedSelection>,
    },
    ReadImage {
        record: RecordTypeId,
        image: RecordImage,
        selection: Arc<PlannedSelection>,
    },
    PlainList(PlainListOperation),
}

/// A record of an import.
#[derive(Debug, Clone)]
pub struct ImportRecord {
    pub record: RecordTypeId,
    /// Assigned by the store if `None`.
    pub id: Option<i64>,
    pub fields: Vec<(FieldId, Value)>,
    pub selection: Arc<Selection>,
}

/// A validated [`Selection`]; `statement_shape` is equal exactly if the SQL statements are.
#[derive(Debug, Clone)]
pub struct PlannedSelection {
    pub columns: Vec<FieldId>,
    pub children: Vec<PlannedChild>,
    /// Read the version after the columns.
    pub includes_version: bool,
    pub statement_shape: u128,
}

#[derive(Debug, Clone)]
pub struct PlannedChild {
    pub field: FieldId,
    pub listing: PlannedListing,
    pub selection: PlannedSelection,
}

/// A validated [`Listing`].
#[derive(Debug, Clone, Default)]
pub struct PlannedListing {
    pub predicates: Vec<Predicate>,
    /// Without the final `id`, which every order ends with.
    pub sort_keys: Vec<SortKey>,
    /// Keyset paging: the last record already seen.
    pub after: Option<CursorPosition>,
    /// Maximum number of records …
    pub limit: Option<i64>,
    /// … after skipping this number.
    pub offset: i64,
    pub count: CountMode,
    pub with_cursors: bool,
}

#[derive(Debug, Clone)]
pub enum Predicate {
    /// The value is never null; `Contains` compares text.
    Compare {
        field: FieldId,
        op: ComparisonOp,
        value: StoredValue,
    },
    /// Matches any of the values, which are not null, or null as well. Bound as one parameter, so that the
    /// statement is the same for any number of values.
    OneOf {
        field: FieldId,
        values: Vec<StoredValue>,
        or_null: bool,
    },
    IsNull {
        field: FieldId,
    },
    NotNull {
        field: FieldId,
    },
    /// True if any text field contains `text`, which is lower-cased ASCII and compared case-insensitively. The
    /// record has at least one text field.
    Search {
        text: StoredValue,
    },
    /// Like `Search` for texts with cased letters beyond ASCII: part of a text field matches the pattern.
    SearchPattern {
        pattern: StoredValue,
    },
    /// Never true, such as `IN ()`.
    Never,
}

/// Limits on what a request may ask for.
#[derive(Debug, Clone)]
pub struct PlanLimits {
    pub page_size: i64,
    pub max_page_size: i64,
    /// Maximum number of conditions of one list.
    pub conditions: usize,
}

impl Default for PlanLimits {
    fn default() -> Self {
        PlanLimits { page_size: 20, max_page_size: 1_000, conditions: 100 }
    }
}

impl Plan {
    pub fn prove(model: &Model, operation: Operation, now: jiff::Timestamp) -> Result<Plan> {
        Ok(Plan { action: plan_action(model, operation, now)?, _proof: PlanProof })
    }

    /// Plans an imported record: validated like a creation, but timestamps that the server fills may be given.
    pub fn prove_import(model: &Model, import: ImportRecord, now: jiff::Timestamp) -> Result<Plan> {
        let ImportRecord { record, id, fields, selection } = import;
        let (values, links) = WritePlanner::new(model, record, now).plan_import(fields)?;
        let id = coerce::check_chosen_id(id).map_err(Error::Invalid)?;
        let selection = planned_selection(model, record, &selection)?;
        Ok(Plan { action: PlanAction::Create { record, id, values, links, selection }, _proof: PlanProof })
    }

    pub fn is_write(&self) -> bool {
        match &self.action {
            PlanAction::Get { .. } | PlanAction::List { .. } | PlanAction::ReadImage { .. } => false,
            PlanAction::Create { .. } | PlanAction::Update { .. } | PlanAction::Delete { .. } => true,
            PlanAction::PlainList(operation) => operation.action.is_write(),
        }
    }
}

fn plan_action(model: &Model, operation: Operation, now: jiff::Timestamp) -> Result<PlanAction> {
    Ok(match operation {
        Operation::Get { record, id, selection } => {
            PlanAction::Get { record, id, selection: planned_selection(model, record, &selection)? }
        }
        Operation::List { record, listing, selection } => PlanAction::List {
            record,
            listing: plan_listing(model, model.record(record), &listing)?,
            selection: planned_selection(model, record, &selection)?,
        },
        Operation::Create { record, id, fields, selection } => {
            let (values, links) = WritePlanner::new(model, record, now).plan_create(fields)?;
            let id = coerce::check_chosen_id(id).map_err(Error::Invalid)?;
            PlanAction::Create {
                record,
                id,
                values,
                links,
                selection: planned_selection(model, record, &selection)?,
            }
        }
        Operation::Update { record, id, fields, missing_fields, expected_version, selection } => {
            let (values, links) =
                WritePlanner::new(model, record, now).plan_update(fields, missing_fields)?;
            let selection = planned_selection(model, record, &selection)?;
            PlanAction::Update { record, id, values, links, expected_version, selection }
        }
        Operation::Delete { record, id, expected_version, selection } => PlanAction::Delete {
            record,
            id,
            expected_version,
            selection: planned_selection(model, record, &selection)?,
        },
        Operation::ReadImage { record, image, selection } => {
            PlanAction::ReadImage { record, image, selection: planned_selection(model, record, &selection)? }
        }
        Operation::PlainList(operation) => PlanAction::PlainList(plain_list::check_value(operation)?),
    })
}

/// The planned form of a selection, computed on first use and stored with it.
fn planned_selection(
    model: &Model,
    record: RecordTypeId,
    selection: &Selection,
) -> Result<Arc<PlannedSelection>> {
    if let Some(planned) = selection.planned.get() {
        return Ok(planned.clone());
    }
    let planned = Arc::new(plan_selection(model, record, selection)?);
    Ok(selection.planned.get_or_init(|| planned).clone())
}

fn plan_selection(model: &Model, record: RecordTypeId, selection: &Selection) -> Result<PlannedSelection> {
    let owner = model.record(record);
    let mut children = Vec::with_capacity(selection.children.len());
    for child in &selection.children {
        let target = relation_target(owner.field(child.field))?;
        children.push(PlannedChild {
            field: child.field,
            listing: plan_listing(model, model.record(target), &child.listing)?,
            selection: plan_selection(model, target, &child.selection)?,
        });
    }
    let includes_version = selection.includes_version;
    let statement_shape = statement_shape(record, &selection.columns, includes_version, &children);
    Ok(PlannedSelection { columns: selection.columns.clone(), children, includes_version, statement_shape })
}

/// The record type on the other side of a relation.
pub fn relation_target(field: &Field) -> Result<RecordTypeId> {
    match &field.kind {
        FieldKind::Reference { target, .. }
        | FieldKind::Link { target, .. }
        | FieldKind::Inverse { target, .. } => Ok(*target),
        FieldKind::Id
        | FieldKind::Scalar(_)
        | FieldKind::Enum(_)
        | FieldKind::Embedded(_)
        | FieldKind::List(_)
        | FieldKind::Unstored => Err(Error::internal(format!("`{}` leads to no record", field.name))),
    }
}

/// Equal for two selections exactly if they need the same SQL statements; parameter values do not count.
fn statement_shape(
    record: RecordTypeId,
    columns: &[FieldId],
    includes_version: bool,
    children: &[PlannedChild],
) -> u128 {
    let mut text = format!("{}:{columns:?}{}", record.0, if includes_version { "v" } else { "" });
    for child in children {
        let listing = &child.listing;
        let predicates: Vec<[usize; 2]> = listing.predicates.iter().map(Predicate::statement_shape).collect();
        text += &format!(
            ";{}{predicates:?}{:?}{}{}{:?}{}{:x}",
            child.field.0,
            listing.sort_keys,
            listing.limit.is_some(),
            listing.offset > 0,
            listing.after.as_ref().map(CursorPosition::statement_shape).unwrap_or_default(),
            listing.with_cursors,
            child.selection.statement_shape
        );
    }
    xxhash_rust::xxh3::xxh3_128(text.as_bytes())
}

fn plan_listing(model: &Model, record: &RecordType, listing: &Listing) -> Result<PlannedListing> {
    let mut predicates = plan_predicates(model, record, &listing.conditions)?;
    if let Some(text) = &listing.search {
        predicates.push(
            text_search::search_predicate(record, text)
                .map_err(|violation| Error::Invalid(vec![violation]))?,
        );
    }
    let (limit, offset, after) = match &listing.slice {
        ListSlice::All => (None, 0, None),
        // An offset that overflows is past the end anyway.
        ListSlice::Page { page, size } => (Some(*size), page.saturating_sub(1).saturating_mul(*size), None),
        ListSlice::First { first, after } => {
            let after = after.as_deref().map(|text| cursor::decode(record, &listing.sort_keys, text));
            let after = after.transpose()?;
            (Some(*first), 0, after)
        }
    };
    let (count, with_cursors) = (listing.count, listing.with_cursors);
    Ok(PlannedListing {
        predicates,
        sort_keys: listing.sort_keys.clone(),
        after,
        limit,
        offset,
        count,
        with_cursors,
    })
}

/// Validates conditions; the predicates are in the same order.
pub fn plan_predicates(
    model: &Model,
    record: &RecordType,
    conditions: &[Condition],
) -> Result<Vec<Predicate>> {
    let mut violations = Vec::new();
    let mut predicates = Vec::with_capacity(conditions.len());
    for condition in conditions {
        match plan_predicate(model, record, condition) {
            Ok(predicate) => predicates.push(predicate),
            Err(found) => violations.extend(found),
        }
    }
    if violations.is_empty() { Ok(predicates) } else { Err(Error::Invalid(violations)) }
}

fn plan_predicate(
    model: &Model,
    record: &RecordType,
    condition: &Condition,
) -> Result<Predicate, Vec<Violation>> {
    let Condition { field: id, op, value } = condition;
    let (field, id) = (record.field(*id), *id);
    match (op, value) {
        (ComparisonOp::Eq, Value::Null) => Ok(Predicate::IsNull { field: id }),
        (ComparisonOp::Ne, Value::Null) => Ok(Predicate::NotNull { field: id }),
        (
            ComparisonOp::Lt
            | ComparisonOp::Lte
            | ComparisonOp::Gt
            | ComparisonOp::Gte
            | ComparisonOp::Contains
            | ComparisonOp::In,
            Value::Null,
        ) => {
            let message = format!("`{}` cannot be compared with null in this way", field.input_name);
            Err(vec![Violation::new(&field.input_name, "NULL", message)])
        }
        (ComparisonOp::In, Value::List(items)) => plan_one_of(model, id, field, items),
        (ComparisonOp::In, single) => plan_one_of(model, id, field, std::slice::from_ref(single)),
        (ComparisonOp::Contains, _) if !is_text_kind(&field.kind) => {
            let message = format!("`{}` is no text that could contain something", field.input_name);
            Err(vec![Violation::new(&field.input_name, "OPERATOR", message)])
        }
        (ComparisonOp::Contains, _) => {
            let value = coerce::text_part(field, value).map_err(|list| under_field(field, list))?;
            Ok(Predicate::Compare { field: id, op: *op, value })
        }
        (
            ComparisonOp::Eq
            | ComparisonOp::Ne
            | ComparisonOp::Lt
            | ComparisonOp::Lte
            | ComparisonOp::Gt
            | ComparisonOp::Gte,
            _,
        ) => {
            let value = coerce::comparable(model, field, value).map_err(|list| under_field(field, list))?;
            Ok(Predicate::Compare { field: id, op: *op, value })
        }
    }
}

fn plan_one_of(
    model: &Model,
    id: FieldId,
    field: &Field,
    items: &[Value],
) -> Result<Predicate, Vec<Violation>> {
    if items.is_empty() {
        return Ok(Predicate::Never);
    }
    let non_null = items.iter().filter(|item| !item.is_null());
    let values = non_null.map(|item| coerce::comparable(model, field, item)).collect::<Result<Vec<_>, _>>();
    let values = values.map_err(|list| under_field(field, list))?;
    Ok(Predicate::OneOf { field: id, or_null: values.len() < items.len(), values })
}

/// Prefixes the paths of violations, which are relative to the value, with the field.
fn under_field(field: &Field, violations: Vec<Violation>) -> Vec<Violation> {
    let name = || PathSegment::Field(field.input_name.clone());
    violations.into_iter().map(|violation| violation.nested_under(name())).collect()
}

/// True if the values are texts that support `Contains` and search.
pub fn is_text_kind(kind: &FieldKind) -> bool {
    match kind {
        FieldKind::Scalar(scalar) => {
            matches!(scalar, Scalar::String | Scalar::Id | Scalar::Url | Scalar::Email)
        }
        FieldKind::Id
        | FieldKind::Enum(_)
        | FieldKind::Embedded(_)
        | FieldKind::List(_)
        | FieldKind::Reference { .. }
        | FieldKind::Inverse { .. }
        | FieldKind::Link { .. }
        | FieldKind::Unstored => false,
    }
}

impl Predicate {
    /// The part that changes the SQL text: the kind of predicate and the field.
    pub fn statement_shape(&self) -> [usize; 2] {
        match self {
            Predicate::Never => [0, 0],
            Predicate::OneOf { field, or_null: false, .. } => [1, field.0],
            Predicate::OneOf { field, or_null: true, .. } => [2, field.0],
            Predicate::IsNull { field } => [3, field.0],
            Predicate::NotNull { field } => [4, field.0],
            Predicate::Compare { field, op, .. } => [5 + *op as usize, field.0],
            Predicate::Search { .. } => [5 + ComparisonOp::In as usize + 1, 0],
            Predicate::SearchPattern { .. } => [5 + ComparisonOp::In as usize + 1, 1],
        }
    }
}

type StoredFields = Vec<(FieldId, StoredValue)>;
type LinkedIds = Vec<(FieldId, Vec<i64>)>;

/// Collects and validates the values of one write.
struct WritePlanner<'a> {
    model: &'a Model,
    record: &'a RecordType,
    now: jiff::Timestamp,
    values: StoredFields,
    links: LinkedIds,
    violations: Vec<Violation>,
}

impl<'a> WritePlanner<'a> {
    fn new(model: &'a Model, record: RecordTypeId, now: jiff::Timestamp) -> Self {
        let record = model.record(record);
        WritePlanner { model, record, now, values: Vec::new(), links: Vec::new(), violations: Vec::new() }
    }

    fn plan_create(mut self, fields: Vec<(FieldId, Value)>) -> Result<(StoredFields, LinkedIds)> {
        let is_given = self.accept_all(fields);
        self.fill_missing(&is_given);
        self.set_timestamps(&[ValueSource::CreationTime, ValueSource::UpdateTime]);
        self.finish()
    }

    fn plan_import(mut self, fields: Vec<(FieldId, Value)>) -> Result<(StoredFields, LinkedIds)> {
        let is_timestamp = |id: &FieldId| match self.record.field(*id).value_source {
            ValueSource::CreationTime | ValueSource::UpdateTime => true,
            ValueSource::Client | ValueSource::RecordVersion => false,
        };
        let (timestamps, client_fields): (Vec<_>, Vec<_>) =
            fields.into_iter().partition(|(id, _)| is_timestamp(id));
        let is_given = self.accept_all(client_fields);
        self.fill_missing(&is_given);
        self.set_timestamps(&[ValueSource::CreationTime, ValueSource::UpdateTime]);
        for (id, value) in timestamps.iter().filter(|(_, value)| !value.is_null()) {
            self.values.retain(|(existing, _)| existing != id);
            self.accept_field(*id, self.record.field(*id), value);
        }
        self.finish()
    }

    fn plan_update(
        mut self,
        fields: Vec<(FieldId, Value)>,
        missing_fields: MissingFields,
    ) -> Result<(StoredFields, LinkedIds)> {
        let is_given = self.accept_all(fields);
        if missing_fields == MissingFields::Reset {
            self.fill_missing(&is_given);
        }
        if !(self.values.is_empty() && self.links.is_empty()) {
            self.set_timestamps(&[ValueSource::UpdateTime]);
        }
        self.finish()
    }

    fn finish(self) -> Result<(StoredFields, LinkedIds)> {
        if self.violations.is_empty() {
            Ok((self.values, self.links))
        } else {
            Err(Error::Invalid(self.violations))
        }
    }

    /// Validates the given fields; the result marks them by position.
    fn accept_all(&mut self, fields: Vec<(FieldId, Value)>) -> Vec<bool> {
        let mut is_given = vec![false; self.record.fields.len()];
        for (id, value) in fields {
            let field = self.record.field(id);
            if std::mem::replace(&mut is_given[id.0], true) {
                let message = format!("`{}` is given twice", field.name);
                self.violations.push(Violation::new(&field.input_name, "TWICE", message));
            } else if field.value_source != ValueSource::Client {
                let message = format!("`{}` is filled by the server and cannot be set", field.name);
                self.violations.push(Violation::new(&field.input_name, "READ_ONLY", message));
            } else {
                self.accept_field(id, field, &value);
            }
        }
        is_given
    }

    fn accept_field(&mut self, id: FieldId, field: &Field, value: &Value) {
        if matches!(field.kind, FieldKind::Link { .. }) {
            let none = Value::List(Vec::new());
            match coerce::link_ids(field, if value.is_null() { &none } else { value }) {
                Ok(ids) => self.links.push((id, ids)),
                Err(violations) => self.violations.extend(under_field(field, violations)),
            }
            return;
        }
        match coerce::field(self.model, field, value) {
            Ok(stored) => self.values.push((id, stored)),
            Err(violations) => self.violations.extend(under_field(field, violations)),
        }
    }

    /// Gives each missing field its default, or null. Links stay as they are.
    fn fill_missing(&mut self, is_given: &[bool]) {
        for (i, field) in self.record.fields.iter().enumerate() {
            let is_client_field =
                field.is_stored() && field.kind != FieldKind::Id && field.value_source == ValueSource::Client;
            if is_given[i] || !is_client_field {
                continue;
            }
            match &field.default {
                Some(default) => self.accept_field(FieldId(i), field, default),
                None => self.accept_field(FieldId(i), field, &Value::Null),
            }
        }
    }

    fn set_timestamps(&mut self, kinds: &[ValueSource]) {
        for (i, field) in self.record.fields.iter().enumerate() {
            if kinds.contains(&field.value_source) {
                self.values.push((FieldId(i), StoredValue::Text(scalars::format_timestamp(self.now))));
            }
        }
    }
}
