//! Which changes a subscription is for: of one record type, of one kind, and with the values that its arguments name.

use crate::changes::Change;
use crate::changes::image::cell_of;
use crate::operation::Deed;
use crate::plan::Test;
use crate::resolvers::{Builtin, Verb};
use trefoil_model::error::{Error, Result};
use trefoil_model::values::decimal;
use trefoil_model::{Cell, Kind, Model, Scalar, TypeId, Value};

/// A proven filter; judged against images alone.
#[derive(Debug)]
pub struct Watch {
    pub record: TypeId,
    resource: String,
    deed: Deed,
    terms: Vec<Term>,
}

/// One argument: the column has this value, or is null.
#[derive(Debug)]
struct Term {
    column: String,
    test: Test,
    is_decimal: bool,
}

impl Builtin {
    /// What these arguments of a subscription field ask for; absent arguments are not in the list.
    pub fn watch(&self, model: &Model, arguments: Vec<(usize, Value)>) -> Result<Watch> {
        let Verb::Watch(deed) = self.verb else {
            return Err(Error::internal("only a subscription follows changes"));
        };
        let record = model.record(self.record);
        let mut terms = Vec::new();
        for (id, test) in self.filters(model, arguments)? {
            let field = record.field(id);
            let is_decimal = field.kind == Kind::Scalar(Scalar::Decimal);
            terms.push(Term { column: field.column.clone(), test, is_decimal });
        }
        Ok(Watch { record: self.record, resource: record.name.clone(), deed, terms })
    }
}

impl Watch {
    pub fn matches(&self, change: &Change) -> bool {
        change.deed == self.deed
            && change.resource == self.resource
            && self.terms.iter().all(|term| term.holds(cell_of(&change.image, &term.column)))
    }
}

impl Term {
    fn holds(&self, cell: Cell<'_>) -> bool {
        match &self.test {
            Test::IsNull { .. } => cell == Cell::Null,
            Test::NotNull { .. } => cell != Cell::Null,
            Test::Compare { value, .. } => same(self.is_decimal, cell, value.as_cell()),
            Test::OneOf { values, or_null, .. } => {
                (*or_null && cell == Cell::Null)
                    || values.iter().any(|value| same(self.is_decimal, cell, value.as_cell()))
            }
            // No argument of a subscription searches.
            Test::Search { .. } | Test::SearchPattern { .. } | Test::Nothing => false,
        }
    }
}

/// Equality as the stores have it: decimals by value, text by code point, numbers as numbers.
fn same(is_decimal: bool, left: Cell<'_>, right: Cell<'_>) -> bool {
    match (left, right) {
        (Cell::Text(left), Cell::Text(right)) if is_decimal => {
            left == right
                || (decimal::is_canonical(left) && decimal::is_canonical(right))
                    && decimal::compare(left, right).is_eq()
        }
        (Cell::Text(left), Cell::Text(right)) => left == right,
        (Cell::Int(left), Cell::Int(right)) => left == right,
        (Cell::Real(left), Cell::Real(right)) => left == right,
        // Whether a whole Float is written `1` or `1.0` depends on the store.
        (Cell::Int(whole), Cell::Real(real)) | (Cell::Real(real), Cell::Int(whole)) => whole as f64 == real,
        (Cell::Null | Cell::Int(_) | Cell::Real(_) | Cell::Text(_) | Cell::Unreadable, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_the_same_as_in_a_query() {
        let text = Cell::Text;
        for (is_decimal, left, right, wanted) in [
            (true, text("1.5"), text("1.50"), true),
            (true, text("-1.5"), text("1.5"), false),
            (true, text("0"), text("0.00"), true),
            (true, text("1.5"), text("1.500000000000000000000001"), false),
            (true, text("foreign"), text("1"), false),
            (false, text("1.5"), text("1.50"), false),
            (false, text("é"), text("e\u{301}"), false),
            (false, text("A"), text("a"), false),
            (false, Cell::Int(1), Cell::Real(1.0), true),
            (false, Cell::Real(0.1), Cell::Real(0.1), true),
            (false, Cell::Real(-0.0), Cell::Real(0.0), true),
            (false, Cell::Int(i64::MAX), Cell::Int(i64::MAX - 1), false),
            (false, Cell::Int(1), text("1"), false),
            (false, Cell::Null, Cell::Null, false),
        ] {
            assert_eq!(same(is_decimal, left, right), wanted, "{left:?} and {right:?}");
        }
    }
}
