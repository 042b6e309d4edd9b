//! JSON Merge Patch (RFC 7396) inside a field: embedded values and JSON.

use trefoil_engine::{Row, Selection};
use trefoil_model::{FieldId, FieldKind, RecordType, Value, ValueType};
use trefoil_resources::parsed_body::RecordObject;

/// True if any field is set to an object that must be merged with the stored value.
pub fn needs_merge(record: &RecordType, object: &RecordObject) -> bool {
    object.iter().any(|member| is_merged(record, member))
}

/// True for a member that is merged with the stored value.
pub fn is_merged(record: &RecordType, (name, value): &(String, Value)) -> bool {
    matches!(value, Value::Object(_)) && mergeable_field(record, name).is_some()
}

/// The members of a patch that are the same for every record.
pub fn without_merged(record: &RecordType, object: &RecordObject) -> RecordObject {
    object.iter().filter(|member| !is_merged(record, member)).cloned().collect()
}

/// The field of this name, if its value can be an object to merge into.
fn mergeable_field(record: &RecordType, name: &str) -> Option<FieldId> {
    record.find_input_field(name).filter(|id| is_mergeable(&record.field(*id).kind))
}

fn is_mergeable(kind: &FieldKind) -> bool {
    kind.value_type().is_some_and(ValueType::is_json) && kind.list_item().is_none()
}

/// The fields to write: the patch merged with the stored record in `row`.
pub fn merge_fields(
    record: &RecordType,
    selection: &Selection,
    row: &dyn Row,
    object: RecordObject,
) -> RecordObject {
    let merged = object.into_iter().map(|(name, value)| {
        let found = mergeable_field(record, &name)
            .and_then(|id| Some((id, selection.columns.iter().position(|column| *column == id)?)));
        let value = match found {
            Some((id, column)) => merge_value(record.field(id).cell_value(row.cell(column)), value),
            None => value,
        };
        (name, value)
    });
    merged.collect()
}

/// In a patch, null removes a member, an object is merged into it, any other value replaces it.
fn merge_value(target: Value, patch: Value) -> Value {
    let Value::Object(changes) = patch else { return patch };
    let mut members = match target {
        Value::Object(members) => members,
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::List(_) => Vec::new(),
    };
    for (name, change) in changes {
        let position = members.iter().position(|(known, _)| *known == name);
        match (position, change.is_null()) {
            (Some(position), true) => drop(members.remove(position)),
            (None, true) => {}
            (Some(position), false) => {
                let old = std::mem::replace(&mut members[position].1, Value::Null);
                members[position].1 = merge_value(old, change);
            }
            (None, false) => members.push((name, merge_value(Value::Null, change))),
        }
    }
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 7396, appendix A.
    #[test]
    fn merges_rfc_7396_examples() {
        let table = [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, r#"{}"#),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
            (r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
            (r#"{"a":"foo"}"#, "null", "null"),
            (r#"{"a":"foo"}"#, r#""bar""#, r#""bar""#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#),
            (r#"[1,2]"#, r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
            (r#"{}"#, r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
        ];
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        for (target, patch, expected) in table {
            assert_eq!(merge_value(value(target), value(patch)), value(expected), "{target} {patch}");
        }
    }
}
