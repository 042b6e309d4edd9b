//! The unique fields by which an upsert finds its record, and an update or a deletion that has `where`.

use trefoil_model::error::Violation;
use trefoil_model::{Field, FieldId, RecordType, Value};

use crate::arguments::roles::unique_where_field;
use crate::arguments::sort_keys;
use crate::arguments::values::{expect_object, expect_text};

/// True if an upsert can find a record by the field.
pub fn is_unique_field(record: &RecordType, field: &Field) -> bool {
    field.unique || (field.kind.is_id() && record.accepts_given_key())
}

/// The one field of `where` that names the record, and its value. Refused unless exactly one is given.
pub(super) fn parse_unique_where(
    record: &RecordType,
    argument: &str,
    fields: &[FieldId],
    value: Value,
) -> Result<(FieldId, Value), Vec<Violation>> {
    let names: Vec<String> =
        fields.iter().map(|field| format!("`{}`", record.field(*field).input_name)).collect();
    let names = names.join(" or ");
    let refuse = |code, message: String| Err(vec![Violation::new(argument, code, message)]);
    let mut found = None;
    for (name, value) in expect_object(argument, value)?.into_iter().filter(|(_, value)| !value.is_null()) {
        let Some(field) = unique_where_field(record, &name).filter(|field| fields.contains(field)) else {
            let message = format!("`{argument}.{name}` does not identify a {}; use {names}", record.name);
            return refuse("UNKNOWN", message);
        };
        if found.replace((field, value)).is_some() {
            return refuse("TWICE", format!("`{argument}` takes only one of {names}"));
        }
    }
    match found {
        Some(found) => Ok(found),
        None => refuse("REQUIRED", format!("`{argument}` needs {names}")),
    }
}

/// Refused if one of them is not unique, or if there is none.
pub fn parse_unique_fields(
    record: &RecordType,
    argument: &str,
    value: Value,
) -> Result<Vec<FieldId>, Vec<Violation>> {
    let is_unique = |field: &Field| is_unique_field(record, field);
    let refuse = |code, what: &str| {
        let unique = record.fields.iter().filter(|field| is_unique(field));
        let unique = unique.map(|field| field.input_name.as_str());
        let unique: Vec<&str> = unique.collect();
        let choice = if unique.is_empty() { "none".to_owned() } else { unique.join(", ") };
        let message = format!("{what}; the unique fields of {} are: {choice}", record.name);
        vec![Violation::new(argument, code, message)]
    };
    let mut fields = Vec::new();
    for item in sort_keys::list_or_single(value) {
        let name = expect_text(argument, item)?;
        match record.find_input_field(&name).filter(|field| is_unique(record.field(*field))) {
            Some(field) if fields.contains(&field) => {}
            Some(field) => fields.push(field),
            None => return Err(refuse("NOT_UNIQUE", &format!("`{name}` is not a unique field"))),
        }
    }
    if fields.is_empty() {
        Err(refuse("REQUIRED", &format!("`{argument}` names no field")))
    } else {
        Ok(fields)
    }
}
