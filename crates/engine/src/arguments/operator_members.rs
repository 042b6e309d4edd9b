//! Conditions of one field as an object of operators: `title: { contains: "a", not: "b" }`.

use trefoil_model::naming::names::snake_words;
use trefoil_model::{ComparisonOp, Field, FilterOperator, TextMatch, TextPart, Value};

/// What a member of such an object says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperatorMember {
    Compare(FilterOperator),
    /// A value that the field must not have, or an object of operators that it must not meet.
    Not,
    /// `mode: insensitive`: texts are compared without the case of their letters.
    CaseMode,
}

impl OperatorMember {
    /// The meaning of a name, as Trefoil, Prisma, Hasura and others write it.
    pub fn from_name(name: &str) -> Option<OperatorMember> {
        let words = snake_words(name);
        let operator = match words.trim_matches('_') {
            "eq" | "equal" | "equals" | "equal_to" | "is" => FilterOperator::EQUAL,
            "ne" | "neq" | "not_eq" | "not_equal" | "not_equals" | "not_equal_to" => {
                FilterOperator::Compare(ComparisonOp::Ne)
            }
            "lt" | "less_than" => FilterOperator::Compare(ComparisonOp::Lt),
            "lte"
            | "le"
            | "less_than_or_equal"
            | "less_than_or_equal_to"
            | "less_than_equal"
            | "max"
            | "to" => FilterOperator::Compare(ComparisonOp::Lte),
            "gt" | "greater_than" => FilterOperator::Compare(ComparisonOp::Gt),
            "gte"
            | "ge"
            | "greater_than_or_equal"
            | "greater_than_or_equal_to"
            | "greater_than_equal"
            | "min"
            | "from" => FilterOperator::Compare(ComparisonOp::Gte),
            "in" | "one_of" => FilterOperator::In,
            "nin" | "not_in" => FilterOperator::NotIn,
            "contains" => FilterOperator::CONTAINS,
            "starts_with" => FilterOperator::Text(TextMatch { part: TextPart::Start, any_case: false }),
            "ends_with" => FilterOperator::Text(TextMatch { part: TextPart::End, any_case: false }),
            "icontains" | "contains_ci" | "contains_insensitive" => any_case_operator(TextPart::Anywhere),
            "istarts_with" | "starts_with_ci" | "starts_with_insensitive" => {
                any_case_operator(TextPart::Start)
            }
            "iends_with" | "ends_with_ci" | "ends_with_insensitive" => any_case_operator(TextPart::End),
            "ieq" | "ci" | "eq_ci" | "equals_insensitive" => any_case_operator(TextPart::Whole),
            "null" | "is_null" => FilterOperator::IsNull,
            "has" => FilterOperator::Has,
            "empty" | "is_empty" => FilterOperator::IsEmpty,
            "not" => return Some(OperatorMember::Not),
            "mode" => return Some(OperatorMember::CaseMode),
            _ => return None,
        };
        Some(OperatorMember::Compare(operator))
    }

    /// The same for the values of a field: a list contains an item where a text contains another.
    pub fn for_field(name: &str, field: &Field, value: &Value) -> Option<OperatorMember> {
        let member = OperatorMember::from_name(name)?;
        let is_list = field.kind.list_item().is_some();
        match member {
            OperatorMember::Compare(FilterOperator::CONTAINS) if is_list => {
                Some(OperatorMember::Compare(FilterOperator::Has))
            }
            OperatorMember::Compare(operator) => operator.fits(field).then_some(member),
            OperatorMember::Not => {
                (matches!(value, Value::Object(_)) || field.kind.is_comparable()).then_some(member)
            }
            OperatorMember::CaseMode => field.kind.is_text().then_some(member),
        }
    }
}

/// True if the object says that the case of letters does not matter.
pub fn ignores_case(members: &[(String, Value)]) -> bool {
    members.iter().any(|(name, value)| {
        let is_mode = OperatorMember::from_name(name) == Some(OperatorMember::CaseMode);
        is_mode && matches!(value, Value::String(text) if text.eq_ignore_ascii_case("insensitive"))
    })
}

/// The operator that compares this part of a text without the case of letters.
pub const fn any_case_operator(part: TextPart) -> FilterOperator {
    FilterOperator::Text(TextMatch { part, any_case: true })
}
