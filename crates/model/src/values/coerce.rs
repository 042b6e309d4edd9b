//! The only validator of field values: a [`Value`] becomes a [`StoredValue`], or all violations are listed.

use indexmap::{IndexMap, IndexSet};

use crate::error::{PathSegment, Violation};
use crate::naming::names;
use crate::values::rule_checks::{self, FieldLabel};
use crate::values::{json_text, scalars};
use crate::{
    CellValue, EmbeddedType, EnumType, Field, Link, ListItem, Model, RecordId, RecordType, Scalar,
    StoredValue, Value, ValueType,
};

/// The types that coercion looks up by name.
#[derive(Clone, Copy)]
pub struct CoercionTypes<'a> {
    pub enums: &'a IndexMap<String, EnumType>,
    pub embedded: &'a IndexMap<String, EmbeddedType>,
}

impl<'a> From<&'a Model> for CoercionTypes<'a> {
    fn from(model: &'a Model) -> Self {
        CoercionTypes { enums: &model.enums, embedded: &model.embedded }
    }
}

/// Checking stops after this many violations of one value, record or request.
pub const MAX_VIOLATIONS: usize = 100;

/// Maximum nesting of lists and objects in one value. JSON readers stop at 128 levels, and a stored value is also
/// shown inside a record, so it must stay below that.
pub const MAX_DEPTH: usize = 126;

/// Validates a value to be written: type, null and every rule. Paths are relative to the field.
pub fn coerce_field(model: &Model, field: &Field, value: &Value) -> Result<StoredValue, Vec<Violation>> {
    if value.depth() > MAX_DEPTH {
        let label = FieldLabel::Field(field);
        return Err(single_violation(
            "DEPTH",
            format!("{label} must not be nested more than {MAX_DEPTH} levels deep"),
        ));
    }
    coerce_with_types(model.into(), field, value)
}

/// Validates the operand of a condition or cursor: only the type; null is allowed and rules are ignored.
pub fn coerce_comparable(model: &Model, field: &Field, value: &Value) -> Result<StoredValue, Vec<Violation>> {
    if !field.kind.is_comparable() {
        return Err(single_violation(
            "CONDITION",
            format!("{} cannot be compared", FieldLabel::Field(field)),
        ));
    }
    if value.is_null() {
        return Ok(StoredValue::Null);
    }
    stored_value(model.into(), field, value)
}

/// Validates a literal that is compared with values of this type; the error explains why it is none.
pub(crate) fn coerce_literal(
    types: CoercionTypes<'_>,
    value_type: &ValueType,
    value: &Value,
) -> Result<StoredValue, String> {
    value_of_type(types, value_type, value, FieldLabel::Name("value"))
        .map_err(|violations| violations.into_iter().next().map(|first| first.message).unwrap_or_default())
}

/// A claim as a value of this type; `None` if it is none. Without a type, whatever single value it is.
pub fn coerce_claim(model: &Model, value_type: Option<&ValueType>, claim: &Value) -> Option<StoredValue> {
    if matches!(claim, Value::Null | Value::List(_) | Value::Object(_)) {
        return None;
    }
    match value_type {
        Some(value_type) => coerce_literal(model.into(), value_type, claim).ok(),
        None => coerce_plain(Scalar::Json, claim).ok(),
    }
}

/// Validates an item that a list may contain: only the type.
pub fn coerce_item(model: &Model, field: &Field, value: &Value) -> Result<StoredValue, Vec<Violation>> {
    let label = FieldLabel::Field(field);
    match field.kind.list_item() {
        Some(item) => value_of_type(model.into(), &item.value_type, value, label),
        None => Err(single_violation("CONDITION", format!("{label} is not a list"))),
    }
}

/// Validates the operand of `contains`: part of an email address or URL need not be a valid one.
pub fn coerce_text_part(field: &Field, value: &Value) -> Result<StoredValue, Vec<Violation>> {
    let scalar = if field.kind.scalar() == Some(Scalar::Id) { Scalar::Id } else { Scalar::String };
    scalar_value(scalar, value, FieldLabel::Field(field))
}

/// Validates a value of a scalar that belongs to no field; the message continues after its name.
pub fn coerce_plain(scalar: Scalar, value: &Value) -> Result<StoredValue, String> {
    scalars::coerce_scalar(scalar, value).map_err(|error| error.message.into_owned())
}

/// Validates a value of an existing record: only the type, as today's rules may be newer than the record.
pub fn coerce_type_only(model: &Model, field: &Field, value: &Value) -> Result<StoredValue, Vec<Violation>> {
    stored_value(model.into(), field, value)
}

/// Validates an id chosen by the caller. Counted ids continue after the greatest one, so the last possible one would
/// leave none. Every other id is allowed: it may come from another store that is being moved here.
pub fn chosen_id_violations(record: &RecordType, id: &RecordId) -> Vec<Violation> {
    let field = record.field(record.id_field());
    let label = FieldLabel::Field(field);
    let violations = match id {
        RecordId::Number(i64::MAX) => {
            let message = format!("{label} must not be {}: it leaves no id for the next record", i64::MAX);
            single_violation("RANGE", message)
        }
        RecordId::Number(_) => Vec::new(),
        RecordId::Text(_) if field.rules.is_empty() => Vec::new(),
        RecordId::Text(text) => {
            let value = Value::String(text.to_string());
            rule_checks::rule_violations(field, &value, &id.clone().into_stored())
        }
    };
    violations_under(violations, PathSegment::Field(field.input_name.clone())).collect()
}

/// The ids of a link, without duplicates.
pub fn link_ids(link: &Link, field: &Field, value: &Value) -> Result<Vec<RecordId>, Vec<Violation>> {
    let label = FieldLabel::Field(field);
    let Value::List(items) = value else {
        return Err(single_violation(
            "TYPE",
            format!("{label} must be a list of ids, not {}", value.type_noun()),
        ));
    };
    let mut ids = IndexSet::with_capacity(items.len());
    let mut violations = Vec::new();
    for (i, item) in items.iter().enumerate() {
        match RecordId::from_value(link.key_form, item) {
            Ok(id) => drop(ids.insert(id)),
            Err(help) if violations.len() < MAX_VIOLATIONS => {
                violations.extend(violations_under(
                    single_violation("TYPE", format!("{label} {help}")),
                    PathSegment::Index(i),
                ));
            }
            Err(_) => break,
        }
    }
    if violations.is_empty() { Ok(ids.into_iter().collect()) } else { Err(violations) }
}

/// [`coerce_field`] for use while the model is being built.
pub(crate) fn coerce_with_types(
    types: CoercionTypes<'_>,
    field: &Field,
    value: &Value,
) -> Result<StoredValue, Vec<Violation>> {
    let label = FieldLabel::Field(field);
    if value.is_null() {
        return if field.required {
            Err(single_violation("REQUIRED", format!("{label} is required")))
        } else {
            Ok(StoredValue::Null)
        };
    }
    let stored = stored_value(types, field, value)?;
    let violations = rule_checks::rule_violations(field, value, &stored);
    if violations.is_empty() { Ok(stored) } else { Err(violations) }
}

/// The value in its stored form: only the type is checked.
fn stored_value(
    types: CoercionTypes<'_>,
    field: &Field,
    value: &Value,
) -> Result<StoredValue, Vec<Violation>> {
    let label = FieldLabel::Field(field);
    match field.kind.value_type() {
        Some(value_type) => value_of_type(types, value_type, value, label),
        None => Err(single_violation("READ_ONLY", format!("{label} cannot be set"))),
    }
}

fn value_of_type(
    types: CoercionTypes<'_>,
    value_type: &ValueType,
    value: &Value,
    label: FieldLabel<'_>,
) -> Result<StoredValue, Vec<Violation>> {
    match value_type {
        ValueType::Key(form) => RecordId::from_value(*form, value)
            .map(RecordId::into_stored)
            .map_err(|help| single_violation("TYPE", format!("{label} {help}"))),
        ValueType::Scalar(scalar) => scalar_value(*scalar, value, label),
        ValueType::Enum(name) => enum_value(types, name, value, label),
        ValueType::Embedded(name) => embedded_value(types, name, value, label),
        ValueType::List(item) => list_value(types, item, value, label),
    }
}

fn scalar_value(scalar: Scalar, value: &Value, label: FieldLabel<'_>) -> Result<StoredValue, Vec<Violation>> {
    scalars::coerce_scalar(scalar, value)
        .map_err(|error| single_violation(error.code, format!("{label} {}", error.message)))
}

fn enum_value(
    types: CoercionTypes<'_>,
    name: &str,
    value: &Value,
    label: FieldLabel<'_>,
) -> Result<StoredValue, Vec<Violation>> {
    let values = types.enums.get(name).map(|ty| ty.values.as_slice()).unwrap_or_default();
    let Value::String(text) = value else {
        return Err(single_violation(
            "TYPE",
            format!("{label} must be one of {}, not {}", values.join(", "), value.type_noun()),
        ));
    };
    if values.contains(text) {
        return Ok(StoredValue::Text(text.clone()));
    }
    let near = names::nearest_name(text, values.iter().map(String::as_str));
    let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
    Err(single_violation("ENUM", format!("{label} must be one of {}{hint}", values.join(", "))))
}

fn list_value(
    types: CoercionTypes<'_>,
    item: &ListItem,
    value: &Value,
    label: FieldLabel<'_>,
) -> Result<StoredValue, Vec<Violation>> {
    let Value::List(values) = value else {
        return Err(single_violation("TYPE", format!("{label} must be a list, not {}", value.type_noun())));
    };
    let mut violations = Vec::new();
    let mut text = vec![b'['];
    for (i, value) in values.iter().enumerate() {
        if i > 0 {
            text.push(b',');
        }
        let element = match (value.is_null(), item.required) {
            (true, true) => Err(single_violation("REQUIRED", format!("{label} must not contain null"))),
            (true, false) => Ok(StoredValue::Null),
            (false, _) => value_of_type(types, &item.value_type, value, label),
        };
        match element {
            Ok(element) => write_json_cell(&mut text, &item.value_type, element.as_cell()),
            Err(nested) => violations.extend(violations_under(nested, PathSegment::Index(i))),
        }
        if violations.len() >= MAX_VIOLATIONS {
            break;
        }
    }
    text.push(b']');
    finish_json(text, violations)
}

fn embedded_value(
    types: CoercionTypes<'_>,
    name: &str,
    value: &Value,
    label: FieldLabel<'_>,
) -> Result<StoredValue, Vec<Violation>> {
    let fields = || types.embedded.get(name).into_iter().flat_map(EmbeddedType::stored_fields);
    let names = || fields().map(|(field, _)| field.name.as_str());
    let Value::Object(members) = value else {
        return Err(single_violation(
            "TYPE",
            format!("{label} must be an object, not {}", value.type_noun()),
        ));
    };
    let mut violations: Vec<Violation> = members
        .iter()
        .filter_map(|(key, _)| unknown_key_violation(names, key, label))
        .take(MAX_VIOLATIONS)
        .collect();
    let mut text = vec![b'{'];
    for (field, value_type) in fields() {
        let member = value.get(&field.name).or(field.default.as_ref()).unwrap_or(&Value::Null);
        match coerce_with_types(types, field, member) {
            Ok(stored) => {
                if text.len() > 1 {
                    text.push(b',');
                }
                json_text::write_text(&mut text, &field.name);
                text.push(b':');
                write_json_cell(&mut text, value_type, stored.as_cell());
            }
            Err(nested) => {
                violations.extend(violations_under(nested, PathSegment::Field(field.name.clone())))
            }
        }
    }
    text.push(b'}');
    finish_json(text, violations)
}

fn unknown_key_violation<'f, I: Iterator<Item = &'f str>>(
    names: impl Fn() -> I,
    key: &str,
    label: FieldLabel<'_>,
) -> Option<Violation> {
    if names().any(|name| name == key) {
        return None;
    }
    let hint =
        names::nearest_name(key, names()).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
    Some(Violation::new(key, "UNKNOWN", format!("{label} has no field {key}{hint}")))
}

fn write_json_cell(text: &mut Vec<u8>, value_type: &ValueType, cell: CellValue<'_>) {
    json_text::write_cell(text, value_type, cell).expect("what coercion made can be written");
}

fn finish_json(text: Vec<u8>, violations: Vec<Violation>) -> Result<StoredValue, Vec<Violation>> {
    if !violations.is_empty() {
        return Err(violations);
    }
    Ok(StoredValue::Text(String::from_utf8(text).expect("JSON made of text is text")))
}

fn single_violation(code: &'static str, message: impl Into<String>) -> Vec<Violation> {
    vec![Violation { path: Vec::new(), code, message: message.into() }]
}

fn violations_under(violations: Vec<Violation>, segment: PathSegment) -> impl Iterator<Item = Violation> {
    violations.into_iter().map(move |violation| violation.nested_under(segment.clone()))
}
