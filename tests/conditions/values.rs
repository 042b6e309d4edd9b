//! Values without their types, how they compare, and how JSON has them.

use std::cmp::Ordering;

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::{Value, json};

use super::exact::ExactNumber;
use super::schema::ValueKind;

#[derive(Clone, Debug, PartialEq)]
pub enum PlainValue {
    Null,
    Flag(bool),
    Whole(i64),
    Real(f64),
    Exact(ExactNumber),
    /// Also enum values and UUIDs.
    Text(String),
    Day(Date),
    Moment(Timestamp),
    List(Vec<PlainValue>),
    /// An embedded value, by the positions of its fields.
    Parts(Vec<PlainValue>),
}

impl PlainValue {
    pub fn is_null(&self) -> bool {
        *self == PlainValue::Null
    }

    /// The order of two single values of one kind that are not null.
    pub fn compare(&self, other: &PlainValue) -> Ordering {
        match (self, other) {
            (PlainValue::Flag(left), PlainValue::Flag(right)) => left.cmp(right),
            (PlainValue::Whole(left), PlainValue::Whole(right)) => left.cmp(right),
            (PlainValue::Real(left), PlainValue::Real(right)) => left.partial_cmp(right).expect("numbers"),
            (PlainValue::Exact(left), PlainValue::Exact(right)) => left.compare_means(1, right, 1),
            (PlainValue::Text(left), PlainValue::Text(right)) => left.chars().cmp(right.chars()),
            (PlainValue::Day(left), PlainValue::Day(right)) => left.cmp(right),
            (PlainValue::Moment(left), PlainValue::Moment(right)) => left.cmp(right),
            _ => panic!("{self:?} and {other:?} are not of one kind"),
        }
    }

    /// Null is last in both directions.
    pub fn compare_sorted(&self, other: &PlainValue, descending: bool) -> Ordering {
        match (self.is_null(), other.is_null()) {
            (false, false) if descending => other.compare(self),
            (false, false) => self.compare(other),
            (own, other) => own.cmp(&other),
        }
    }

    /// As answers and bodies have it.
    pub fn to_json(&self, kind: ValueKind) -> Value {
        match self {
            PlainValue::Null => Value::Null,
            PlainValue::Flag(flag) => json!(flag),
            PlainValue::Whole(number) if matches!(kind, ValueKind::Long | ValueKind::Digits) => {
                json!(number.to_string())
            }
            PlainValue::Whole(number) => json!(number),
            PlainValue::Real(number) => json!(number),
            PlainValue::Exact(number) => json!(number.to_string()),
            PlainValue::Text(text) => json!(text),
            PlainValue::Day(day) => json!(day.to_string()),
            PlainValue::Moment(moment) => json!(moment.to_string()),
            PlainValue::List(items) => items.iter().map(|item| item.to_json(kind)).collect(),
            PlainValue::Parts(_) => panic!("an embedded value has no kind"),
        }
    }
}
