//! Values of arguments, refused if they are of the wrong type.

use trefoil_model::error::Violation;
use trefoil_model::{KeyForm, RecordId, RecordType, Value};

use crate::global_id;

pub(super) fn expect_integer(name: &str, value: &Value) -> Result<i64, Vec<Violation>> {
    let violation = || Violation::new(name, "TYPE", format!("argument `{name}` must be a 64-bit integer"));
    value.as_i64().ok_or_else(|| vec![violation()])
}

pub(super) fn expect_id(record: &RecordType, name: &str, value: &Value) -> Result<RecordId, Vec<Violation>> {
    let form = record.key_form();
    if record.has_global_ids {
        let plain = global_id::plain_keys(record, name, value.clone())?;
        return expect_key(form, name, &plain);
    }
    expect_key(form, name, value)
}

fn expect_key(form: KeyForm, name: &str, value: &Value) -> Result<RecordId, Vec<Violation>> {
    if form.is_integer() {
        return expect_integer(name, value).map(RecordId::Number);
    }
    let violation = |help| vec![Violation::new(name, "TYPE", format!("argument `{name}` {help}"))];
    RecordId::from_value(form, value).map_err(violation)
}

/// True for a text that no key can be, such as `a/b`: there is no such record, as with any unknown text.
pub(super) fn is_impossible_key(record: &RecordType, value: &Value) -> bool {
    let form = record.key_form();
    form == KeyForm::Text && matches!(value, Value::String(text) if RecordId::from_text(form, text).is_err())
}

pub(super) fn expect_object(name: &str, value: Value) -> Result<Vec<(String, Value)>, Vec<Violation>> {
    value
        .into_fields()
        .map_err(|noun| vec![Violation::new(name, "TYPE", format!("`{name}` must be an object, not {noun}"))])
}

pub(super) fn expect_text(name: &str, value: Value) -> Result<String, Vec<Violation>> {
    match value {
        Value::String(text) => Ok(text),
        other @ (Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Number(_)
        | Value::List(_)
        | Value::Object(_)) => Err(vec![Violation::new(
            name,
            "TYPE",
            format!("argument `{name}` must be text, not {}", other.type_noun()),
        )]),
    }
}
