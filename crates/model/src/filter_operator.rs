//! The operators of filters and their names, the same in GraphQL and REST.

use crate::{ComparisonOp, Field};

/// An operator in a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterOperator {
    Compare(ComparisonOp),
    /// The operand is a list.
    In,
    NotIn,
    Text(TextMatch),
    /// The operand is true or false.
    IsNull,
    /// A list contains the operand.
    Has,
    /// A list has no items; the operand is true or false.
    IsEmpty,
}

/// How a text must contain another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextMatch {
    pub part: TextPart,
    /// Letters are compared without their case, by the simple folding of Unicode.
    pub any_case: bool,
}

/// The part of a text that another one is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextPart {
    Whole,
    Anywhere,
    Start,
    End,
}

impl FilterOperator {
    pub const EQUAL: FilterOperator = FilterOperator::Compare(ComparisonOp::Eq);
    pub const CONTAINS: FilterOperator =
        FilterOperator::Text(TextMatch { part: TextPart::Anywhere, any_case: false });

    /// Every operator with its name: `gte` in `price_gte` and `price.gte`.
    pub const NAMES: [(&'static str, FilterOperator); 18] = [
        ("eq", FilterOperator::EQUAL),
        ("ne", FilterOperator::Compare(ComparisonOp::Ne)),
        ("lt", FilterOperator::Compare(ComparisonOp::Lt)),
        ("lte", FilterOperator::Compare(ComparisonOp::Lte)),
        ("gt", FilterOperator::Compare(ComparisonOp::Gt)),
        ("gte", FilterOperator::Compare(ComparisonOp::Gte)),
        ("contains", FilterOperator::CONTAINS),
        ("startsWith", FilterOperator::text(TextPart::Start, false)),
        ("endsWith", FilterOperator::text(TextPart::End, false)),
        ("ci", FilterOperator::text(TextPart::Whole, true)),
        ("contains_ci", FilterOperator::text(TextPart::Anywhere, true)),
        ("startsWith_ci", FilterOperator::text(TextPart::Start, true)),
        ("endsWith_ci", FilterOperator::text(TextPart::End, true)),
        ("in", FilterOperator::In),
        ("notIn", FilterOperator::NotIn),
        ("null", FilterOperator::IsNull),
        ("has", FilterOperator::Has),
        ("empty", FilterOperator::IsEmpty),
    ];

    const fn text(part: TextPart, any_case: bool) -> FilterOperator {
        FilterOperator::Text(TextMatch { part, any_case })
    }

    pub fn from_name(name: &str) -> Option<FilterOperator> {
        FilterOperator::NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, operator)| operator)
    }

    pub fn name(self) -> &'static str {
        let known = FilterOperator::NAMES.into_iter().find(|(_, operator)| *operator == self);
        known.map_or("", |(name, _)| name)
    }

    /// True if the values of the field can be tested with it.
    pub fn fits(self, field: &Field) -> bool {
        match self {
            FilterOperator::Compare(_) | FilterOperator::In | FilterOperator::NotIn => {
                field.kind.is_comparable()
            }
            FilterOperator::Text(_) => field.kind.is_text(),
            FilterOperator::IsNull => field.kind.value_type().is_some(),
            FilterOperator::Has => field.kind.list_item().is_some_and(|item| !item.value_type.is_json()),
            FilterOperator::IsEmpty => field.kind.list_item().is_some(),
        }
    }

    /// The other operators that are worth offering for a field besides equality, which its name alone says.
    pub fn offered_for(field: &Field) -> impl Iterator<Item = (&'static str, FilterOperator)> {
        let is_sorted = field.kind.is_ordered() || field.kind.is_text();
        FilterOperator::NAMES.into_iter().filter(move |(_, operator)| match operator {
            FilterOperator::Compare(ComparisonOp::Eq) => false,
            FilterOperator::Compare(ComparisonOp::Ne) => operator.fits(field),
            FilterOperator::Compare(_) => is_sorted,
            FilterOperator::In | FilterOperator::NotIn => operator.fits(field),
            FilterOperator::IsNull => !field.required && !field.kind.is_id() && operator.fits(field),
            FilterOperator::Text(_) | FilterOperator::Has | FilterOperator::IsEmpty => operator.fits(field),
        })
    }
}
