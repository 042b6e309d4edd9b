//! Conditions of a listing as predicates: names resolved, values coerced.

use trefoil_model::error::{Error, PathSegment, Result, Violation};
use trefoil_model::values::coerce;
use trefoil_model::{Field, FieldId, Model, RecordType, StoredValue, Value};

use crate::operation::{ComparisonOp, Condition};

/// A validated test of a record.
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
            let message = format!("`{}` cannot be compared with null by this operator", field.input_name);
            Err(vec![Violation::new(&field.input_name, "NULL", message)])
        }
        (ComparisonOp::In, Value::List(items)) => plan_one_of(model, id, field, items),
        (ComparisonOp::In, single) => plan_one_of(model, id, field, std::slice::from_ref(single)),
        (ComparisonOp::Contains, _) if !field.kind.is_text() => {
            let message = format!("`{}` is not a text field, so `contains` cannot be used", field.input_name);
            Err(vec![Violation::new(&field.input_name, "OPERATOR", message)])
        }
        (ComparisonOp::Contains, _) => {
            let value = coerce::coerce_text_part(field, value).map_err(|list| under_field(field, list))?;
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
            let value =
                coerce::coerce_comparable(model, field, value).map_err(|list| under_field(field, list))?;
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
    let values =
        non_null.map(|item| coerce::coerce_comparable(model, field, item)).collect::<Result<Vec<_>, _>>();
    let values = values.map_err(|list| under_field(field, list))?;
    Ok(Predicate::OneOf { field: id, or_null: values.len() < items.len(), values })
}

/// Prefixes the paths of violations, which are relative to the value, with the field.
pub(crate) fn under_field(field: &Field, violations: Vec<Violation>) -> Vec<Violation> {
    let name = || PathSegment::Field(field.input_name.clone());
    violations.into_iter().map(|violation| violation.nested_under(name())).collect()
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
