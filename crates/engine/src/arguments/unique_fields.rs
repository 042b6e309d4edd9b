//! The unique fields by which an upsert finds its record.

use trefoil_model::error::Violation;
use trefoil_model::{Field, FieldId, RecordType, Value};

use crate::arguments::sort_keys;
use crate::arguments::values::expect_text;

/// True if an upsert can find a record by the field.
pub fn is_unique_field(record: &RecordType, field: &Field) -> bool {
    field.unique || (field.kind.is_id() && record.accepts_given_key())
}

/// Refused if one of them is not unique, or if there is none.
pub fn parse_unique_fields(
    record: &RecordType,
    argument: &str,
    value: Value,
) -> Result<Vec<FieldId>, Vec<Violation>> {
    let is_unique = |field: &Field| is_unique_field(record, field);
    let refuse = |code, what: &str| {
        let unique = record.fields.iter().filter(|field| is_unique(field) && !field.may_be_hidden);
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
