//! Selects the changes of a subscription: of one record type, of one kind, with the values of its arguments.

use std::cmp::Ordering;

use trefoil_model::error::{Error, Result};
use trefoil_model::values::decimal;
use trefoil_model::{CellValue, Model, RecordTypeId, Scalar, Value};

use crate::builtin_operation::{BuiltinOperation, OperationVerb};
use crate::changes::ChangeKind;
use crate::changes::RecordChange;
use crate::changes::record_image::image_cell;
use crate::operation::ComparisonOp;
use crate::plan::Predicate;

/// A validated filter, evaluated on record images only.
#[derive(Debug)]
pub struct ChangeFilter {
    pub record: RecordTypeId,
    type_name: String,
    verb: OperationVerb,
    terms: Vec<FilterTerm>,
}

/// One condition on a column.
#[derive(Debug)]
struct FilterTerm {
    column: String,
    predicate: Predicate,
    is_decimal: bool,
    ignores_case: bool,
}

impl BuiltinOperation {
    /// The filter for the arguments of a subscription field, given by position; absent arguments are not in the
    /// list.
    pub fn change_filter(&self, model: &Model, arguments: Vec<(usize, Value)>) -> Result<ChangeFilter> {
        if !ChangeKind::ALL.into_iter().any(|kind| self.verb.follows(kind)) {
            return Err(Error::internal("only a subscription follows changes"));
        }
        let record = model.record(self.record);
        let mut terms = Vec::new();
        for (id, predicate) in self.subscription_predicates(model, arguments)? {
            let field = record.field(id);
            let is_decimal = field.kind.scalar() == Some(Scalar::Decimal);
            let (column, ignores_case) = (field.column.clone(), field.ignores_case);
            terms.push(FilterTerm { column, predicate, is_decimal, ignores_case });
        }
        Ok(ChangeFilter { record: self.record, type_name: record.name.clone(), verb: self.verb, terms })
    }
}

impl ChangeFilter {
    pub fn matches(&self, change: &RecordChange) -> bool {
        self.verb.follows(change.kind)
            && change.type_name == self.type_name
            && self.terms.iter().all(|term| term.matches(image_cell(&change.image, &term.column)))
    }
}

impl FilterTerm {
    fn matches(&self, cell: CellValue<'_>) -> bool {
        match &self.predicate {
            Predicate::IsNull { .. } => cell == CellValue::Null,
            Predicate::NotNull { .. } => cell != CellValue::Null,
            Predicate::Compare { op, value, .. } => self.compare(*op, cell, value.as_cell()),
            Predicate::OneOf { values, or_null, .. } => {
                (*or_null && cell == CellValue::Null)
                    || values.iter().any(|value| self.compare(ComparisonOp::Eq, cell, value.as_cell()))
            }
            // Subscriptions have no search argument.
            Predicate::Search { .. } | Predicate::SearchPattern { .. } | Predicate::Never => false,
        }
    }

    fn compare(&self, op: ComparisonOp, cell: CellValue<'_>, value: CellValue<'_>) -> bool {
        if let (ComparisonOp::Contains, CellValue::Text(text), CellValue::Text(part)) = (op, cell, value) {
            return text.contains(part);
        }
        let order = match (op, cell, value) {
            (ComparisonOp::Eq | ComparisonOp::Ne, CellValue::Text(text), CellValue::Text(other))
                if self.ignores_case && text.eq_ignore_ascii_case(other) =>
            {
                Some(Ordering::Equal)
            }
            _ => compare_cells(self.is_decimal, cell, value),
        };
        match op {
            ComparisonOp::Eq => order == Some(Ordering::Equal),
            // Null differs from every value, as in lists.
            ComparisonOp::Ne => order != Some(Ordering::Equal),
            ComparisonOp::Lt => order.is_some_and(Ordering::is_lt),
            ComparisonOp::Lte => order.is_some_and(Ordering::is_le),
            ComparisonOp::Gt => order.is_some_and(Ordering::is_gt),
            ComparisonOp::Gte => order.is_some_and(Ordering::is_ge),
            // Planned as `OneOf`.
            ComparisonOp::Contains | ComparisonOp::In => false,
        }
    }
}

/// The order of two values as in the databases: decimals by value, text by code point, numbers as numbers. `None` if
/// they cannot be compared, such as null with anything.
fn compare_cells(is_decimal: bool, left: CellValue<'_>, right: CellValue<'_>) -> Option<Ordering> {
    match (left, right) {
        (CellValue::Text(left), CellValue::Text(right))
            if is_decimal && decimal::is_canonical(left) && decimal::is_canonical(right) =>
        {
            Some(decimal::compare(left, right))
        }
        (CellValue::Text(left), CellValue::Text(right)) => Some(left.cmp(right)),
        (CellValue::Int(left), CellValue::Int(right)) => Some(left.cmp(&right)),
        (CellValue::Real(left), CellValue::Real(right)) => left.partial_cmp(&right),
        // Stores differ in writing a whole Float as `1` or `1.0`.
        (CellValue::Int(whole), CellValue::Real(real)) => (whole as f64).partial_cmp(&real),
        (CellValue::Real(real), CellValue::Int(whole)) => real.partial_cmp(&(whole as f64)),
        (
            CellValue::Null
            | CellValue::Int(_)
            | CellValue::Real(_)
            | CellValue::Text(_)
            | CellValue::Unreadable,
            _,
        ) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equality_matches_queries() {
        let text = CellValue::Text;
        for (is_decimal, left, right, expected) in [
            (true, text("1.5"), text("1.50"), true),
            (true, text("-1.5"), text("1.5"), false),
            (true, text("0"), text("0.00"), true),
            (true, text("1.5"), text("1.500000000000000000000001"), false),
            (true, text("foreign"), text("1"), false),
            (false, text("1.5"), text("1.50"), false),
            (false, text("é"), text("e\u{301}"), false),
            (false, text("A"), text("a"), false),
            (false, CellValue::Int(1), CellValue::Real(1.0), true),
            (false, CellValue::Real(0.1), CellValue::Real(0.1), true),
            (false, CellValue::Real(-0.0), CellValue::Real(0.0), true),
            (false, CellValue::Int(i64::MAX), CellValue::Int(i64::MAX - 1), false),
            (false, CellValue::Int(1), text("1"), false),
            (false, CellValue::Null, CellValue::Null, false),
        ] {
            let found = compare_cells(is_decimal, left, right) == Some(Ordering::Equal);
            assert_eq!(found, expected, "{left:?} and {right:?}");
        }
    }

    #[test]
    fn operators_match_queries() {
        let text = CellValue::Text;
        for (op, left, right, expected) in [
            (ComparisonOp::Eq, text("1.5"), text("1.50"), true),
            (ComparisonOp::Ne, text("1.5"), text("1.50"), false),
            (ComparisonOp::Ne, CellValue::Null, text("1"), true),
            (ComparisonOp::Lt, text("9"), text("10"), true),
            (ComparisonOp::Lt, text("10"), text("10.0"), false),
            (ComparisonOp::Lte, text("10"), text("10.0"), true),
            (ComparisonOp::Gt, text("10"), text("9"), true),
            (ComparisonOp::Gte, text("9"), text("10"), false),
            (ComparisonOp::Gte, CellValue::Null, text("10"), false),
            (ComparisonOp::Gt, CellValue::Int(2), CellValue::Real(1.5), true),
            (ComparisonOp::Contains, text("a teapot"), text("tea"), true),
            (ComparisonOp::Contains, text("a Teapot"), text("tea"), false),
            (ComparisonOp::Contains, CellValue::Null, text("tea"), false),
        ] {
            let (column, predicate) = (String::new(), Predicate::Never);
            let term = FilterTerm { column, predicate, is_decimal: true, ignores_case: false };
            assert_eq!(term.compare(op, left, right), expected, "{left:?} {op:?} {right:?}");
        }
    }
}
