//! Decides comparisons of two known values, such as a claim with a literal.

use std::cmp::Ordering;

use crate::values::decimal;
use crate::{ComparisonOp, Field, Scalar, ScalarGroup, StorageClass, StoredValue, ValueType};

/// How two texts are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextComparison {
    Exact,
    /// As the numbers that they are.
    Decimal,
    /// The case of ASCII letters makes no difference, except to the order.
    IgnoreCase,
}

impl TextComparison {
    pub fn for_field(field: &Field) -> TextComparison {
        match field.kind.value_type() {
            _ if field.ignores_case => TextComparison::IgnoreCase,
            Some(value_type) => TextComparison::for_type(value_type),
            None => TextComparison::Exact,
        }
    }

    pub fn for_type(value_type: &ValueType) -> TextComparison {
        // A number that is stored as text is an exact decimal.
        let is_decimal = |scalar: Scalar| {
            scalar.storage_class() == StorageClass::Text && scalar.group() == ScalarGroup::Number
        };
        if value_type.scalar().is_some_and(is_decimal) {
            TextComparison::Decimal
        } else {
            TextComparison::Exact
        }
    }
}

/// The result of a comparison; one with nothing is false.
pub fn compares(left: &StoredValue, op: ComparisonOp, right: &StoredValue, texts: TextComparison) -> bool {
    let is_equality = matches!(op, ComparisonOp::Eq | ComparisonOp::Ne);
    let Some(ordering) = order(left, right, is_equality, texts) else { return false };
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
        compares(&found, ComparisonOp::Eq, item, TextComparison::Exact)
    })
}

fn order(
    left: &StoredValue,
    right: &StoredValue,
    is_equality: bool,
    texts: TextComparison,
) -> Option<Ordering> {
    match (left, right) {
        (StoredValue::Null, _) | (_, StoredValue::Null) => None,
        (StoredValue::Int(one), StoredValue::Int(other)) => Some(one.cmp(other)),
        (StoredValue::Text(one), StoredValue::Text(other)) => Some(match texts {
            TextComparison::Decimal if decimal::is_canonical(one) && decimal::is_canonical(other) => {
                decimal::compare(one, other)
            }
            TextComparison::IgnoreCase if is_equality => {
                one.to_ascii_lowercase().cmp(&other.to_ascii_lowercase())
            }
            TextComparison::Exact | TextComparison::Decimal | TextComparison::IgnoreCase => one.cmp(other),
        }),
        (StoredValue::Int(one), StoredValue::Text(other)) if decimal::is_canonical(other) => {
            Some(decimal::compare(&one.to_string(), other))
        }
        (StoredValue::Text(one), StoredValue::Int(other)) if decimal::is_canonical(one) => {
            Some(decimal::compare(one, &other.to_string()))
        }
        (one, other) => number(one)?.partial_cmp(&number(other)?),
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
            (text("10"), Lt, text("9"), true),
            (text("a"), Ne, text("b"), true),
            (text("01"), Eq, text("1"), false),
            (text("2026-05-31"), Lt, text("2026-06-01"), true),
            (StoredValue::Int(5), Eq, text("5"), true),
            (StoredValue::Int(5), Gt, text("4.5"), true),
            (StoredValue::Int(5), Gte, StoredValue::Real(5.0), true),
            (StoredValue::Int(5), Eq, text("five"), false),
            (StoredValue::Null, Ne, text("a"), false),
            (text("a"), Ne, StoredValue::Null, false),
        ] {
            let found = compares(&left, op, &right, TextComparison::Exact);
            assert_eq!(found, expected, "{left:?} {op:?} {right:?}");
        }
        for (left, op, right, texts, expected) in [
            ("9.5", Lt, "10", TextComparison::Decimal, true),
            ("1.50", Eq, "1.5", TextComparison::Decimal, true),
            ("Ada@A.org", Eq, "ada@a.ORG", TextComparison::IgnoreCase, true),
            ("É", Eq, "é", TextComparison::IgnoreCase, false),
            ("B", Lt, "a", TextComparison::IgnoreCase, true),
        ] {
            assert_eq!(compares(&text(left), op, &text(right), texts), expected, "{left} {op:?} {right}");
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
