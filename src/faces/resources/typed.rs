//! Text from a URL or a form as the value that its field takes: where everything is text, the field says what it means.

use crate::model::{Field, Item, Kind, Scalar, Value};

/// A value to compare with. What does not look like its type stays text, so that coercion can say what is wrong.
pub fn value(kind: &Kind, text: &str) -> Value {
    let plain = || Value::String(text.to_owned());
    match kind {
        Kind::Scalar(Scalar::Int | Scalar::Float) => number(text).unwrap_or_else(plain),
        Kind::Scalar(Scalar::Boolean) => match text {
            "true" | "on" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => plain(),
        },
        Kind::Scalar(Scalar::Json) | Kind::Embedded(_) => {
            serde_json::from_str::<serde_json::Value>(text).map_or_else(|_| plain(), Value::from)
        }
        Kind::Scalar(
            Scalar::String
            | Scalar::Id
            | Scalar::Long
            | Scalar::Decimal
            | Scalar::Date
            | Scalar::DateTime
            | Scalar::Uuid
            | Scalar::Url
            | Scalar::Email,
        )
        | Kind::Id
        | Kind::Enum(_)
        | Kind::List(_)
        | Kind::Reference { .. }
        | Kind::Inverse { .. }
        | Kind::Link { .. }
        | Kind::Unstored => plain(),
    }
}

fn number(text: &str) -> Option<Value> {
    let number: serde_json::Number = serde_json::from_str(text).ok()?;
    Some(Value::from(serde_json::Value::Number(number)))
}

/// What the controls of a form with one name say. A blank one is null where the field may be, and the last of
/// several counts; a list takes all, and several lines of one.
pub fn control(field: &Field, texts: &[&str]) -> Value {
    match &field.kind {
        Kind::List(item) => list(item, texts),
        Kind::Link { .. } => Value::List(given(texts).map(Value::from).collect()),
        kind @ (Kind::Id
        | Kind::Scalar(_)
        | Kind::Enum(_)
        | Kind::Embedded(_)
        | Kind::Reference { .. }
        | Kind::Inverse { .. }
        | Kind::Unstored) => match texts.last() {
            Some(text) if text.is_empty() && !field.required => Value::Null,
            Some(text) => value(kind, text),
            None => Value::Null,
        },
    }
}

fn list(item: &Item, texts: &[&str]) -> Value {
    let items = texts.iter().flat_map(|text| text.lines()).filter(|line| !line.trim().is_empty());
    Value::List(items.map(|line| value(&item.kind, line)).collect())
}

fn given<'t>(texts: &'t [&str]) -> impl Iterator<Item = &'t str> {
    texts.iter().copied().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_says_what_a_text_means() {
        let of = |scalar, text| value(&Kind::Scalar(scalar), text);
        assert_eq!(of(Scalar::Int, "7"), Value::Int(7));
        assert_eq!(of(Scalar::Int, "-07"), Value::from("-07"));
        assert_eq!(of(Scalar::Float, "1.50"), Value::Number("1.50".into()));
        assert_eq!(of(Scalar::Float, "NaN"), Value::from("NaN"));
        assert_eq!(of(Scalar::Boolean, "true"), Value::Bool(true));
        assert_eq!(of(Scalar::Boolean, "yes"), Value::from("yes"));
        assert_eq!(of(Scalar::String, "7"), Value::from("7"));
        assert_eq!(of(Scalar::Json, "[1]"), Value::List(vec![Value::Int(1)]));
        assert_eq!(of(Scalar::Json, "[1"), Value::from("[1"));
    }
}
