//! Decides comparisons of two known values, such as a claim with a literal.

use std::cmp::Ordering;

use crate::values::decimal;
use crate::{ComparisonOp, StoredValue};

/// The result of a comparison; one with nothing is false.
pub fn compares(left: &StoredValue, op: ComparisonOp, right: &StoredValue) -> bool {
    let is_equality = matches!(op, ComparisonOp::Eq | ComparisonOp::Ne);
    let Some(ordering) = order(left, right, is_equality) else { return false };
    match op {
        ComparisonOp::Eq => ordering.is_eq(),
        ComparisonOp::Ne => ordering.is_ne(),
        ComparisonOp::Lt => ordering.is_lt(),
        ComparisonOp::Lte => ordering.is_le(),
        ComparisonOp::Gt => ordering.is_gt(),
        ComparisonOp::Gte => ordering.is_ge(),
    }
}

/// True if a list of values, stored as JSON, has this item.
pub fn has_item(list: &StoredValue, item: &StoredValue) -> bool {
    let StoredValue::Text(json) = list else { return false };
    let items: Vec<serde_json::Value> = serde_json::from_str(json).unwrap_or_default();
    items.iter().any(|found| {
        let found = match found {
            serde_json::Value::String(text) => StoredValue::Text(text.clone()),
            serde_json::Value::Bool(value) => StoredValue::Int(i64::from(*value)),
            serde_json::Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(whole), _) => StoredValue::Int(whole),
                (None, Some(real)) => StoredValue::Real(real),
                (None, None) => return false,
            },
            serde_json::Value::Null | serde_json::Value::Array(_) | serde_json::Value::Object(_) => {
                return false;
            }
        };
        compares(&found, ComparisonOp::Eq, item)
    })
}

fn order(left: &StoredValue, right: &StoredValue, is_equality: bool) -> Option<Ordering> {
    match (left, right) {
        (StoredValue::Null, _) | (_, StoredValue::Null) => None,
        (StoredValue::Int(one), StoredValue::Int(other)) => Some(one.cmp(other)),
        (StoredValue::Text(one), StoredValue::Text(other)) if is_equality => Some(one.cmp(other)),
        // Decimals are stored as texts.
        (StoredValue::Text(one), StoredValue::Text(other)) => Some(text_order(one, other)),
        (StoredValue::Int(one), StoredValue::Text(other)) => Some(text_order(&one.to_string(), other)),
        (StoredValue::Text(one), StoredValue::Int(other)) => Some(text_order(one, &other.to_string())),
        (one, other) => number(one)?.partial_cmp(&number(other)?),
    }
}

fn text_order(one: &str, other: &str) -> Ordering {
    if decimal::is_canonical(one) && decimal::is_canonical(other) {
        decimal::compare(one, other)
    } else {
        one.cmp(other)
    }
}

fn number(value: &StoredValue) -> Option<f64> {
    match value {
        StoredValue::Int(number) => Some(*number as f64),
        StoredValue::Real(number) => Some(*number),
        StoredValue::Text(text) => text.parse().ok(),
        StoredValue::Null => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> StoredValue {
        StoredValue::Text(text.to_owned())
    }

    #[test]
    fn known_values_are_compared() {
        use ComparisonOp::{Eq, Gt, Gte, Lt, Ne};
        for (left, op, right, expected) in [
            (text("a"), Eq, text("a"), true),
            (text("a"), Ne, text("b"), true),
            (text("01"), Eq, text("1"), false),
            (text("9.5"), Lt, text("10"), true),
            (text("2026-05-31"), Lt, text("2026-06-01"), true),
            (StoredValue::Int(5), Eq, text("5"), true),
            (StoredValue::Int(5), Gt, text("4.5"), true),
            (StoredValue::Int(5), Gte, StoredValue::Real(5.0), true),
            (StoredValue::Int(5), Eq, text("five"), false),
            (StoredValue::Null, Ne, text("a"), false),
            (text("a"), Ne, StoredValue::Null, false),
        ] {
            assert_eq!(compares(&left, op, &right), expected, "{left:?} {op:?} {right:?}");
        }
        for (list, item, expected) in [
            (text(r#"["a", "b"]"#), text("b"), true),
            (text(r#"["a", "b"]"#), text("c"), false),
            (text("[1, 2]"), StoredValue::Int(2), true),
            (text("[true]"), StoredValue::Int(1), true),
            (text("[]"), text(""), false),
            (text("no list"), text("no list"), false),
            (StoredValue::Int(1), StoredValue::Int(1), false),
        ] {
            assert_eq!(has_item(&list, &item), expected, "{list:?} {item:?}");
        }
    }
}
