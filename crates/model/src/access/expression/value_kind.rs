//! The types of values in rules, and which of them can be compared.

use std::fmt;

use crate::access::access_rule::RuleValue;
use crate::{ComparisonOp, RecordTypeId, Scalar, ScalarGroup, Value, ValueType};

/// A value in a rule, with its type.
pub struct TypedValue {
    pub value: TypedOperand,
    pub kind: ValueKind,
}

/// A value, or a literal whose type is that of the other side.
pub enum TypedOperand {
    Value(RuleValue),
    Literal(Value),
    /// A bare name that is no field: perhaps the value of an enum.
    Name(String),
    Null,
}

impl TypedValue {
    /// `now` beside a time without a zone is what clocks show in the zone of the application.
    pub fn with_clock_of(self, other: &ValueKind) -> TypedValue {
        let is_now = matches!(self.value, TypedOperand::Value(RuleValue::Now));
        let local = ValueType::Scalar(Scalar::LocalDateTime);
        if is_now && other.value_type() == Some(&local) {
            let value = TypedOperand::Value(RuleValue::LocalNow);
            return TypedValue { value, kind: ValueKind::Value(local) };
        }
        self
    }
}

impl TypedOperand {
    /// The type of a literal that is compared with a value of unknown type.
    pub fn literal_kind(&self) -> Option<ValueKind> {
        let scalar = match self {
            TypedOperand::Literal(Value::String(_)) => Scalar::String,
            TypedOperand::Literal(Value::Int(_)) => Scalar::Long,
            TypedOperand::Literal(Value::Number(_)) => Scalar::Decimal,
            TypedOperand::Literal(Value::Bool(_)) => Scalar::Boolean,
            TypedOperand::Literal(Value::Null | Value::List(_) | Value::Object(_))
            | TypedOperand::Value(_)
            | TypedOperand::Name(_)
            | TypedOperand::Null => return None,
        };
        Some(ValueKind::Value(ValueType::Scalar(scalar)))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum ValueKind {
    /// A record, by its key.
    Record {
        target: RecordTypeId,
        type_name: String,
        key: ValueType,
    },
    Value(ValueType),
    /// The type of the other side.
    Open,
}

impl ValueKind {
    /// The type of the stored value.
    pub fn value_type(&self) -> Option<&ValueType> {
        match self {
            ValueKind::Record { key, .. } => Some(key),
            ValueKind::Value(value_type) => Some(value_type),
            ValueKind::Open => None,
        }
    }

    pub fn is_boolean(&self) -> bool {
        self.value_type().and_then(ValueType::scalar) == Some(Scalar::Boolean)
    }

    /// True if values of both types can be compared.
    pub fn fits(&self, other: &ValueKind) -> bool {
        match (self, other) {
            (ValueKind::Open, _) | (_, ValueKind::Open) => true,
            (ValueKind::Record { target: one, .. }, ValueKind::Record { target: other, .. }) => one == other,
            (ValueKind::Value(one), ValueKind::Value(other)) => {
                let whole =
                    |value_type: &ValueType| matches!(value_type.scalar(), Some(Scalar::Int | Scalar::Long));
                let text = |value_type: &ValueType| {
                    matches!(
                        value_type.scalar(),
                        Some(Scalar::String | Scalar::Id | Scalar::Email | Scalar::Url)
                    )
                };
                let is_same = one == other;
                is_same || (whole(one) && whole(other)) || (text(one) && text(other))
            }
            (ValueKind::Record { key, .. }, ValueKind::Value(value))
            | (ValueKind::Value(value), ValueKind::Record { key, .. }) => {
                key.storage_class() == value.storage_class() && value.scalar().is_some()
            }
        }
    }

    /// True if `<` and the like can be used.
    pub fn allows(&self, op: ComparisonOp) -> bool {
        let is_equality = matches!(op, ComparisonOp::Eq | ComparisonOp::Ne);
        is_equality
            || match self {
                ValueKind::Open => true,
                ValueKind::Record { .. } => false,
                ValueKind::Value(value_type) => value_type.scalar().is_some_and(|scalar| {
                    matches!(scalar.group(), ScalarGroup::Number | ScalarGroup::Time | ScalarGroup::Text)
                }),
            }
    }
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueKind::Record { type_name, .. } => f.write_str(type_name),
            ValueKind::Value(value_type) => write_type(f, value_type),
            ValueKind::Open => f.write_str("any type"),
        }
    }
}

fn write_type(f: &mut fmt::Formatter<'_>, value_type: &ValueType) -> fmt::Result {
    match value_type {
        ValueType::Key(_) => f.write_str("ID"),
        ValueType::Scalar(scalar) => f.write_str(scalar.name()),
        ValueType::Enum(name) | ValueType::Embedded(name) => f.write_str(name),
        ValueType::List(item) => {
            f.write_str("[")?;
            write_type(f, &item.value_type)?;
            f.write_str("]")
        }
    }
}
