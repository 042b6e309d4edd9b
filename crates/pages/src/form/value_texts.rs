//! Stored values as control texts that mean the same value when submitted unchanged.

use trefoil_model::{
    EmbeddedType, FieldKind, ListItem, Model, Scalar, ShownTime, Value, ValueType, ZoneOffsets,
};
use trefoil_resources::forms::form_tree::ControlNode;
use trefoil_resources::forms::typed_values::JSON_CONTROL;

/// Embedded values nested deeper than this are shown as JSON, because types may be recursive.
pub const MAX_EMBEDDED_DEPTH: usize = 3;

/// A longer list of embedded values is shown as JSON.
pub const MAX_GROUPS: usize = 50;

/// The control texts of a value; `depth` is the number of embedded values around it.
pub fn value_node(model: &Model, kind: &FieldKind, value: &Value, depth: usize) -> ControlNode {
    match (kind.value_type(), value) {
        (Some(value_type), _) => typed_node(model, value_type, value, depth),
        (None, Value::List(ids)) if kind.is_link() => {
            ControlNode { texts: ids.iter().map(plain_text).collect(), ..ControlNode::default() }
        }
        (None, Value::Null) => ControlNode::default(),
        (None, value) => ControlNode::from_text(plain_text(value)),
    }
}

fn typed_node(model: &Model, value_type: &ValueType, value: &Value, depth: usize) -> ControlNode {
    match (value_type, value) {
        (_, Value::Null) => ControlNode::default(),
        (ValueType::Embedded(name), Value::Object(_)) if depth < MAX_EMBEDDED_DEPTH => {
            embedded_node(model, name, value, depth)
        }
        (ValueType::Embedded(_) | ValueType::Scalar(Scalar::Json), value) => {
            ControlNode::from_text(json_text(value))
        }
        (ValueType::List(item), Value::List(items)) => list_node(model, item, items, depth),
        (ValueType::Scalar(scalar), value) => ControlNode::from_text(scalar_text(model, *scalar, value)),
        (ValueType::Key(_) | ValueType::Enum(_) | ValueType::List(_), value) => {
            ControlNode::from_text(plain_text(value))
        }
    }
}

fn embedded_node(model: &Model, name: &str, value: &Value, depth: usize) -> ControlNode {
    let mut node = ControlNode::default();
    for (field, value_type) in model.embedded.get(name).into_iter().flat_map(EmbeddedType::stored_fields) {
        let part = value.get(&field.name).unwrap_or(&Value::Null);
        node.children.insert(field.name.clone(), typed_node(model, value_type, part, depth + 1));
    }
    node
}

/// Groups, checkboxes or lines; JSON if those would not reproduce the list.
fn list_node(model: &Model, item: &ListItem, items: &[Value], depth: usize) -> ControlNode {
    let node = match &item.value_type {
        ValueType::Embedded(_) if depth < MAX_EMBEDDED_DEPTH && items.len() <= MAX_GROUPS => {
            let groups =
                items.iter().map(|value| typed_node(model, &item.value_type, value, depth)).collect();
            Some(ControlNode::from_items(groups))
                .filter(|node| node.children.values().all(|group| !group.is_blank()))
        }
        ValueType::Enum(name) if !items.contains(&Value::Null) => {
            let texts: Vec<String> = items.iter().map(plain_text).collect();
            let values = model.enums.get(name).map(|found| found.values.as_slice()).unwrap_or_default();
            let positions: Vec<_> =
                texts.iter().map(|text| values.iter().position(|value| value == text)).collect();
            // Checkboxes are submitted in schema order and without duplicates.
            let in_order =
                positions.iter().all(Option::is_some) && positions.is_sorted_by(|one, next| one < next);
            Some(if in_order {
                ControlNode { texts, ..ControlNode::default() }
            } else {
                ControlNode::from_text(texts.join("\n"))
            })
        }
        ValueType::Scalar(scalar) if *scalar != Scalar::Json => {
            let lines: Vec<String> = items.iter().map(|value| scalar_text(model, *scalar, value)).collect();
            let fits = |line: &String| !line.trim().is_empty() && !line.contains(['\n', '\r']);
            lines.iter().all(fits).then(|| ControlNode::from_text(lines.join("\n")))
        }
        ValueType::Key(_)
        | ValueType::Scalar(_)
        | ValueType::Enum(_)
        | ValueType::Embedded(_)
        | ValueType::List(_) => None,
    };
    node.unwrap_or_else(|| json_node(&Value::List(items.to_vec())))
}

/// A list as JSON text.
pub fn json_node(value: &Value) -> ControlNode {
    let mut node = ControlNode::default();
    node.children.insert(JSON_CONTROL.to_owned(), ControlNode::from_text(json_text(value)));
    node
}

/// A single value; times are those of the application's zone.
fn scalar_text(model: &Model, scalar: Scalar, value: &Value) -> String {
    match (scalar, value) {
        (Scalar::DateTime, Value::String(text)) => local_datetime(model.time_zone(), text),
        (Scalar::LocalDateTime, Value::String(text)) if text.len() == 19 => {
            text.strip_suffix(":00").unwrap_or(text).to_owned()
        }
        (_, value) => plain_text(value),
    }
}

fn plain_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::List(_) | Value::Object(_) => json_text(value),
    }
}

/// Indented JSON.
fn json_text(value: &Value) -> String {
    serde_json::to_string_pretty(&value.to_json()).unwrap_or_default()
}

/// A time without its zone, which is that of the application, and as short as browsers write it. A time with more digits
/// than the browser's control supports keeps its zone and is shown as text, and so does one of two when clocks are set back.
fn local_datetime(zone: &ZoneOffsets, text: &str) -> String {
    let Some(ShownTime { local, offset, is_double, .. }) = zone.show(text) else { return text.to_owned() };
    match local.len() {
        _ if is_double => format!("{local}{offset}"),
        19 => local.strip_suffix(":00").unwrap_or(&local).to_owned(),
        0..=23 => local,
        _ => text.to_owned(),
    }
}

/// True if the text is a time that the browser's control can show in full.
pub fn is_local_datetime(text: &str) -> bool {
    let pattern = b"0000-00-00T00:00:00.000";
    let fits = |(byte, expected): (u8, &u8)| {
        if *expected == b'0' { byte.is_ascii_digit() } else { byte == *expected }
    };
    [16, 19, 21, 22, 23].contains(&text.len()) && text.bytes().zip(pattern).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_match_browser_format() {
        let table = [
            ("2026-03-01T09:30:00Z", "2026-03-01T09:30", true),
            ("2026-03-01T00:00:00Z", "2026-03-01T00:00", true),
            ("2026-03-01T09:30:15Z", "2026-03-01T09:30:15", true),
            ("2026-03-01T09:30:15.25Z", "2026-03-01T09:30:15.25", true),
            ("2026-03-01T09:30:15.123456Z", "2026-03-01T09:30:15.123456Z", false),
        ];
        for (stored, shown, fits) in table {
            assert_eq!(local_datetime(&ZoneOffsets::utc(), stored), shown);
            assert_eq!(is_local_datetime(shown), fits, "{shown}");
        }
        assert!(
            !is_local_datetime("tomorrow")
                && !is_local_datetime("2026-03-01")
                && !is_local_datetime("2026-03-01T09:30:1")
        );
    }
}
