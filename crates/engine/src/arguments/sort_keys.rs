//! The order of a list as arguments spell it: `name`, `-name`, `NAME_DESC`, `{ field: "name", direction: DESC }`.

use trefoil_model::error::Violation;
use trefoil_model::{RecordType, Value};

use crate::arguments::roles::{any_case_field, filter_field};
use crate::arguments::values::{expect_object, expect_text, unknown_field_violation};
use crate::operation::SortKey;

pub(crate) fn parse_sort_keys(
    record: &RecordType,
    name: &str,
    value: Value,
) -> Result<Vec<SortKey>, Vec<Violation>> {
    let mut sort_keys = Vec::new();
    for item in list_or_single(value) {
        if matches!(item, Value::Object(_)) {
            sort_keys.extend(parse_sort_object(record, name, item)?);
        } else {
            sort_keys.push(parse_sort_key(record, name, &expect_text(name, item)?)?);
        }
    }
    Ok(sort_keys)
}

/// Parses `name` (ascending), `-name` (descending), `name_ASC` or `NAME_DESC`.
pub fn parse_sort_key(record: &RecordType, argument: &str, word: &str) -> Result<SortKey, Vec<Violation>> {
    let (descending, field) = match word.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, word),
    };
    let exact = filter_field(record, field).map(|field| SortKey { field, descending });
    let with_direction = || {
        let (field, direction) = word.rsplit_once(['_', ' '])?;
        let field = any_case_field(record, field, filter_field)?;
        Some(SortKey { field, descending: direction_from_word(direction)? })
    };
    let any_case = || any_case_field(record, field, filter_field).map(|field| SortKey { field, descending });
    exact
        .or_else(with_direction)
        .or_else(any_case)
        .ok_or_else(|| unknown_field_violation(record, argument, field, "sort by"))
}

/// `{ field: "name", direction: DESC }`, or `{ name: DESC }` with a member for each field.
fn parse_sort_object(record: &RecordType, name: &str, value: Value) -> Result<Vec<SortKey>, Vec<Violation>> {
    let mut sort_keys = Vec::new();
    let mut direction = None;
    for (member, value) in expect_object(name, value)? {
        if value.is_null() {
            continue;
        }
        let word = expect_text(name, value)?;
        match (filter_field(record, &member), member.as_str()) {
            (Some(field), _) => {
                let descending = direction_from_word(&word).ok_or_else(|| {
                    vec![Violation::new(name, "TYPE", format!("`{name}.{member}` must be ASC or DESC"))]
                })?;
                sort_keys.push(SortKey { field, descending });
            }
            (None, "field" | "property" | "by" | "key") => {
                sort_keys.push(parse_sort_key(record, name, &word)?);
            }
            (None, "direction" | "order") => direction = direction_from_word(&word),
            (None, _) => return Err(unknown_field_violation(record, name, &member, "sort by")),
        }
    }
    if let Some(descending) = direction {
        set_direction(&mut sort_keys, descending);
    }
    Ok(sort_keys)
}

/// True for descending, false for ascending.
pub(crate) fn direction_from_word(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "asc" | "ascending" => Some(false),
        "desc" | "descending" => Some(true),
        _ => None,
    }
}

pub(crate) fn set_direction(sort_keys: &mut [SortKey], descending: bool) {
    sort_keys.iter_mut().for_each(|sort_key| sort_key.descending = descending);
}

/// The items of a list; a single value counts as a list of one.
pub(super) fn list_or_single(value: Value) -> Vec<Value> {
    match value {
        Value::List(items) => items,
        single @ (Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Object(_)) => vec![single],
    }
}
