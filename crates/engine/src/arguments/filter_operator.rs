//! The operators of filters and their names.

use crate::operation::ComparisonOp;

/// An operator in a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterOperator {
    Compare(ComparisonOp),
    /// Tests for null; the operand is true or false.
    IsNull,
}

impl FilterOperator {
    /// The operator by its name: `gte` in `price_gte` and `price.gte`.
    pub fn from_name(name: &str) -> Option<FilterOperator> {
        Some(FilterOperator::Compare(match name {
            "eq" => ComparisonOp::Eq,
            "ne" => ComparisonOp::Ne,
            "lt" => ComparisonOp::Lt,
            "lte" => ComparisonOp::Lte,
            "gt" => ComparisonOp::Gt,
            "gte" => ComparisonOp::Gte,
            "contains" => ComparisonOp::Contains,
            "in" => ComparisonOp::In,
            "null" => return Some(FilterOperator::IsNull),
            _ => return None,
        }))
    }

    /// The name that [`FilterOperator::from_name`] accepts.
    pub fn name(self) -> &'static str {
        match self {
            FilterOperator::Compare(ComparisonOp::Eq) => "eq",
            FilterOperator::Compare(ComparisonOp::Ne) => "ne",
            FilterOperator::Compare(ComparisonOp::Lt) => "lt",
            FilterOperator::Compare(ComparisonOp::Lte) => "lte",
            FilterOperator::Compare(ComparisonOp::Gt) => "gt",
            FilterOperator::Compare(ComparisonOp::Gte) => "gte",
            FilterOperator::Compare(ComparisonOp::Contains) => "contains",
            FilterOperator::Compare(ComparisonOp::In) => "in",
            FilterOperator::IsNull => "null",
        }
    }
}
