//! A kept value as its control shows it: the texts that, sent back as they are, mean the same.

use serde_json::Value as Json;

use trefoil_model::{Item, Kind, Model, Scalar, Value};
use trefoil_resources::control_tree::Node;
use trefoil_resources::typed_values::WHOLE;

/// Embedded values further inside of each other than this are one text of JSON: they may hold their own kind.
pub const DEEPEST: usize = 3;

/// A list of more embedded values than this is one text of JSON.
pub const MOST_GROUPS: usize = 50;

/// `depth` counts the embedded values around this one.
pub fn spell(model: &Model, kind: &Kind, value: &Value, depth: usize) -> Node {
    match (kind, value) {
        (_, Value::Null) => Node::default(),
        (Kind::Embedded(name), Value::Object(_)) if depth < DEEPEST => object(model, name, value, depth),
        (Kind::Embedded(_) | Kind::Scalar(Scalar::Json), value) => Node::text(json(value)),
        (Kind::List(item), Value::List(items)) => list(model, item, items, depth),
        (Kind::Link { .. }, Value::List(ids)) => {
            Node { texts: ids.iter().map(plain).collect(), ..Node::default() }
        }
        (Kind::Scalar(Scalar::DateTime), Value::String(text)) => Node::text(local(text)),
        (
            Kind::Id
            | Kind::Scalar(_)
            | Kind::Enum(_)
            | Kind::List(_)
            | Kind::Reference { .. }
            | Kind::Inverse { .. }
            | Kind::Link { .. }
            | Kind::Unstored,
            value,
        ) => Node::text(plain(value)),
    }
}

fn object(model: &Model, name: &str, value: &Value, depth: usize) -> Node {
    let fields = model.embedded.get(name).map(|found| found.fields.as_slice()).unwrap_or_default();
    let mut node = Node::default();
    for field in fields.iter().filter(|field| field.kind != Kind::Unstored) {
        let part = value.get(&field.name).unwrap_or(&Value::Null);
        node.below.insert(field.name.clone(), spell(model, &field.kind, part, depth + 1));
    }
    node
}

/// Groups, ticks or lines; JSON where those would not bring back the same values.
fn list(model: &Model, item: &Item, items: &[Value], depth: usize) -> Node {
    let node = match &item.kind {
        Kind::Embedded(_) if depth < DEEPEST && items.len() <= MOST_GROUPS => {
            let groups = items.iter().map(|value| spell(model, &item.kind, value, depth)).collect();
            Some(Node::numbered(groups)).filter(|node| node.below.values().all(|group| !group.is_blank()))
        }
        Kind::Enum(name) if !items.contains(&Value::Null) => {
            let texts: Vec<String> = items.iter().map(plain).collect();
            let values = model.enums.get(name).map(|found| found.values.as_slice()).unwrap_or_default();
            let places: Vec<_> =
                texts.iter().map(|text| values.iter().position(|value| value == text)).collect();
            // Ticks come back in the order of the schema and each once.
            let in_order = places.iter().all(Option::is_some) && places.is_sorted_by(|one, next| one < next);
            Some(if in_order { Node { texts, ..Node::default() } } else { Node::text(texts.join("\n")) })
        }
        Kind::Scalar(scalar) if *scalar != Scalar::Json => {
            let lines: Vec<String> = items.iter().map(plain).collect();
            let fits = |line: &String| !line.trim().is_empty() && !line.contains(['\n', '\r']);
            lines.iter().all(fits).then(|| Node::text(lines.join("\n")))
        }
        Kind::Embedded(_)
        | Kind::Enum(_)
        | Kind::Scalar(_)
        | Kind::Id
        | Kind::List(_)
        | Kind::Reference { .. }
        | Kind::Inverse { .. }
        | Kind::Link { .. }
        | Kind::Unstored => None,
    };
    node.unwrap_or_else(|| whole(&Value::List(items.to_vec())))
}

/// A list as one text of JSON.
pub fn whole(value: &Value) -> Node {
    let mut node = Node::default();
    node.below.insert(WHOLE.to_owned(), Node::text(json(value)));
    node
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::List(_) | Value::Object(_) => json(value),
    }
}

/// Laid out over lines.
fn json(value: &Value) -> String {
    serde_json::to_string_pretty(&to_json(value)).unwrap_or_default()
}

fn to_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(flag) => Json::Bool(*flag),
        Value::Int(number) => Json::from(*number),
        // Digits survive: numbers are kept as they were written.
        Value::Number(number) => number.to_json(),
        Value::String(text) => Json::from(text.as_str()),
        Value::List(items) => items.iter().map(to_json).collect(),
        Value::Object(fields) => {
            Json::Object(fields.iter().map(|(name, field)| (name.clone(), to_json(field))).collect())
        }
    }
}

/// A time without its zone, which is UTC, and as short as browsers write it. One that is finer than their control
/// keeps its zone and is shown as text.
fn local(text: &str) -> String {
    let Some(bare) = text.strip_suffix('Z') else { return text.to_owned() };
    match bare.len() {
        19 => bare.strip_suffix(":00").unwrap_or(bare).to_owned(),
        0..=23 => bare.to_owned(),
        _ => text.to_owned(),
    }
}

/// Whether a text is a time that the control for times shows whole.
pub fn is_local(text: &str) -> bool {
    let shape = b"0000-00-00T00:00:00.000";
    let fits =
        |(byte, wanted): (u8, &u8)| if *wanted == b'0' { byte.is_ascii_digit() } else { byte == *wanted };
    [16, 19, 21, 22, 23].contains(&text.len()) && text.bytes().zip(shape).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_as_browsers_write_them() {
        let table = [
            ("2026-03-01T09:30:00Z", "2026-03-01T09:30", true),
            ("2026-03-01T00:00:00Z", "2026-03-01T00:00", true),
            ("2026-03-01T09:30:15Z", "2026-03-01T09:30:15", true),
            ("2026-03-01T09:30:15.25Z", "2026-03-01T09:30:15.25", true),
            ("2026-03-01T09:30:15.123456Z", "2026-03-01T09:30:15.123456Z", false),
        ];
        for (kept, shown, fits) in table {
            assert_eq!(local(kept), shown);
            assert_eq!(is_local(shown), fits, "{shown}");
        }
        assert!(!is_local("tomorrow") && !is_local("2026-03-01") && !is_local("2026-03-01T09:30:1"));
    }
}
