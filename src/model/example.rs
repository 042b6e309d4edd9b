//! Values made up from the schema that pass all its rules: what people are offered to try.

use serde_json::{Map, Value as Json, json};

use super::{Field, Kind, Model, RecordType, Rule, Scalar, Value, coerce, json, naming};

/// A record as an answer shows it.
pub fn shown(model: &Model, record: &RecordType) -> Option<Json> {
    let mut object = Map::new();
    for field in record.fields.iter().filter(|field| field.is_stored()) {
        let value = match &field.kind {
            Kind::Reference { .. } if !field.required => Json::Null,
            kind @ (Kind::Id
            | Kind::Reference { .. }
            | Kind::Scalar(_)
            | Kind::Enum(_)
            | Kind::Embedded(_)
            | Kind::List(_)
            | Kind::Inverse { .. }
            | Kind::Link { .. }
            | Kind::Unstored) => written(model, field, value(model, field, kind)?)?,
        };
        object.insert(field.input_name.clone(), value);
    }
    Some(Json::Object(object))
}

/// As the store keeps it and an answer writes it.
pub fn written(model: &Model, field: &Field, value: Json) -> Option<Json> {
    let kept = coerce::typed(model, field, &Value::from(value)).ok()?;
    let mut text = Vec::new();
    json::write_cell(&mut text, &field.kind, kept.as_cell()).ok()?;
    serde_json::from_slice(&text).ok()
}

/// A body that creates a record. Nothing where no value can be made up for a field that must be there.
pub fn given(model: &Model, fields: &[Field]) -> Option<Json> {
    let mut object = Map::new();
    for field in fields.iter().filter(|field| field.is_writable()) {
        match made_up(model, field) {
            Some(value) => drop(object.insert(field.input_name.clone(), value)),
            None if field.required && field.default.is_none() => return None,
            None => {}
        }
    }
    Some(Json::Object(object))
}

/// Changes what no two records may have in common, where another value can be made up.
pub fn differ(model: &Model, fields: &[Field], object: &mut Json) {
    for field in fields.iter().filter(|field| field.unique) {
        if let Some(value) = object.get_mut(&field.input_name)
            && let Some(other) = another(model, field, value)
        {
            *value = other;
        }
    }
}

/// A value beside this one that the field takes.
fn another(model: &Model, field: &Field, value: &Json) -> Option<Json> {
    let candidates = match value {
        Json::Number(number) => {
            let next =
                number.as_i64().map_or_else(|| json!(number.as_f64().map(|n| n + 1.0)), |n| json!(n + 1));
            vec![next]
        }
        Json::String(text) => texts_beside(text).into_iter().map(Json::from).collect(),
        Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => return None,
    };
    let passes = |other: &Json| coerce::field(model, field, &Value::from(other.clone())).is_ok();
    candidates.into_iter().find(passes)
}

/// The next number where there is one (of a date, the next year; where that cannot be, of its last number); else the text
/// with a number, or another last letter.
fn texts_beside(text: &str) -> Vec<String> {
    let is_digit = |c: char| c.is_ascii_digit();
    let first = text.find(is_digit).map(|at| (at, text[at..].trim_start_matches(is_digit)));
    let last = text.rfind(is_digit).map(|at| {
        let (before, rest) = text.split_at(at + 1);
        (before.trim_end_matches(is_digit).len(), rest)
    });
    let mut others: Vec<String> =
        [first, last].into_iter().flatten().filter_map(|(at, rest)| counted_up(text, at, rest)).collect();
    others.extend(text.split_once('@').map(|(name, host)| format!("{name}2@{host}")));
    others.extend([format!("{text} 2"), format!("{text}2")]);
    let last = text.chars().last().and_then(|last| char::from_u32(u32::from(last) + 1));
    others.extend(last.map(|next| text.chars().take(text.chars().count() - 1).chain([next]).collect()));
    others
}

/// With the number that stands between `at` and the rest one higher, and no shorter.
fn counted_up(text: &str, at: usize, rest: &str) -> Option<String> {
    let digits = &text[at..text.len() - rest.len()];
    let next = digits.parse::<u64>().ok()?.checked_add(1)?;
    Some(format!("{}{next:0width$}{rest}", &text[..at], width = digits.len()))
}

/// A change of one field.
pub fn patch(model: &Model, fields: &[Field]) -> Option<Json> {
    let mut known = fields.iter().filter(|field| field.is_writable() && !field.unique);
    known.find_map(|field| Some(json!({ &field.input_name: made_up(model, field)? })))
}

/// A value that the field takes. References are made up only where one must be there.
pub fn made_up(model: &Model, field: &Field) -> Option<Json> {
    match &field.kind {
        // Which records there are is not known; the first one usually is.
        Kind::Reference { .. } => field.required.then(|| json!("1")),
        Kind::Id | Kind::Inverse { .. } | Kind::Link { .. } | Kind::Unstored => None,
        kind @ (Kind::Scalar(_) | Kind::Enum(_) | Kind::Embedded(_) | Kind::List(_)) => {
            let value = value(model, field, kind)?;
            coerce::field(model, field, &Value::from(value.clone())).is_ok().then_some(value)
        }
    }
}

fn value(model: &Model, field: &Field, kind: &Kind) -> Option<Json> {
    if let (Some(default), true) = (&field.default, *kind == field.kind) {
        return Some(default.to_json());
    }
    match kind {
        Kind::Scalar(scalar) => Some(of_scalar(field, *scalar)),
        Kind::Enum(name) => model.enums.get(name)?.values.first().map(|value| json!(value)),
        Kind::Embedded(name) => {
            let mut object = Map::new();
            for inner in model.embedded.get(name)?.fields.iter().filter(|inner| inner.kind != Kind::Unstored)
            {
                // A type may be inside itself.
                if !inner.required && matches!(inner.kind, Kind::Embedded(_) | Kind::List(_)) {
                    continue;
                }
                object.insert(inner.name.clone(), value(model, inner, &inner.kind)?);
            }
            Some(Json::Object(object))
        }
        Kind::List(item) => Some(json!([value(model, field, &item.kind)?])),
        Kind::Id | Kind::Reference { .. } => Some(json!("1")),
        Kind::Inverse { .. } | Kind::Link { .. } | Kind::Unstored => None,
    }
}

fn of_scalar(field: &Field, scalar: Scalar) -> Json {
    let least = field.rules.iter().find_map(|rule| match rule {
        Rule::Range { min, .. } => min.clone(),
        Rule::NotBlank | Rule::Length { .. } | Rule::Pattern { .. } | Rule::Email => None,
    });
    let is_email = field.rules.iter().any(|rule| matches!(rule, Rule::Email));
    match scalar {
        Scalar::String if is_email || field.name.to_lowercase().contains("email") => json!("ada@example.com"),
        Scalar::String | Scalar::Id => json!(naming::label(&field.name)),
        Scalar::Int => least.and_then(|least| least.parse::<i32>().ok()).unwrap_or(1).max(1).into(),
        Scalar::Float => json!(1.5),
        Scalar::Boolean => json!(true),
        Scalar::Long => json!("1"),
        Scalar::Decimal => json!(least.filter(|least| least != "0").unwrap_or_else(|| "12.50".to_owned())),
        Scalar::Date => json!("2026-01-31"),
        Scalar::DateTime => json!("2026-01-31T09:30:00Z"),
        Scalar::Uuid => json!("123e4567-e89b-12d3-a456-426614174000"),
        Scalar::Url => json!("https://example.com/"),
        Scalar::Email => json!("ada@example.com"),
        Scalar::Json => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_up_at_their_width_and_the_last_where_the_first_cannot() {
        let found = |text: &str| texts_beside(text)[..2].to_vec();
        assert_eq!(found("2026-01-31"), ["2027-01-31", "2026-01-32"]);
        assert_eq!(found("R-007"), ["R-008", "R-008"]);
        assert_eq!(found("00000000-0000"), ["00000001-0000", "00000000-0001"]);
        assert_eq!(found("99é09x"), ["100é09x", "99é10x"]);
        assert_eq!(found("ada@example.com"), ["ada2@example.com", "ada@example.com 2"]);
    }
}
