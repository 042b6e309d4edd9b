//! The cells of groups: those of the statement, with means computed and numbers and periods in the form that is shown.

use trefoil_engine::Row;
use trefoil_model::values::decimal_sum;
use trefoil_model::{CellValue, StoredValue, TimePeriod};

/// How the cells of a group are made of those of the statement.
#[derive(Debug)]
pub struct GroupCells {
    pub cells: Vec<GroupCell>,
    /// All records are one group, which is there even without records.
    pub is_whole: bool,
}

/// A cell of a group. The numbers are columns of the statement.
#[derive(Debug, Clone, Copy)]
pub enum GroupCell {
    Copied(usize),
    /// A number of records or values; 0 if there are none.
    Count(usize),
    /// A number as decimal text.
    Decimal(usize),
    /// A decimal without zeros at its end: equal numbers are one group.
    Trimmed(usize),
    /// The period that begins on this day; the numbers of those that repeat are copied.
    TimePeriod(usize, TimePeriod),
    Mean {
        sum: usize,
        count: usize,
        is_real: bool,
    },
    /// A decimal with at least as many decimal places as the second column says.
    Padded {
        value: usize,
        places: usize,
    },
}

impl GroupCells {
    /// The cells of the group that a row of the statement describes.
    pub fn values<'r>(&self, cell: impl Fn(usize) -> CellValue<'r>) -> Vec<StoredValue> {
        self.cells.iter().map(|recipe| recipe.value(&cell)).collect()
    }

    /// Visits the group of no records.
    pub fn visit_empty(&self, visit: &mut dyn FnMut(&dyn Row)) {
        visit(&EmptyGroup(self));
    }
}

impl GroupCell {
    fn value<'r>(self, cell: &impl Fn(usize) -> CellValue<'r>) -> StoredValue {
        match self {
            GroupCell::Copied(at) | GroupCell::Count(at) => cell(at).to_stored(),
            GroupCell::Decimal(at) => decimal(cell(at)),
            GroupCell::Trimmed(at) => match cell(at) {
                CellValue::Text(text) => {
                    StoredValue::Text(decimal_sum::without_trailing_zeros(text).to_owned())
                }
                other
                @ (CellValue::Null | CellValue::Int(_) | CellValue::Real(_) | CellValue::Unreadable) => {
                    other.to_stored()
                }
            },
            GroupCell::TimePeriod(at, period) => match cell(at) {
                CellValue::Text(day) => period.of_date(day),
                other
                @ (CellValue::Null | CellValue::Int(_) | CellValue::Real(_) | CellValue::Unreadable) => {
                    other.to_stored()
                }
            },
            GroupCell::Mean { sum, count, is_real } => mean(cell(sum), cell(count), is_real),
            GroupCell::Padded { value, places } => match (cell(value), cell(places).to_i64()) {
                (CellValue::Text(text), Some(places)) => {
                    StoredValue::Text(decimal_sum::with_decimal_places(text, places.unsigned_abs() as usize))
                }
                (other, _) => other.to_stored(),
            },
        }
    }
}

fn decimal(cell: CellValue<'_>) -> StoredValue {
    match cell {
        CellValue::Int(number) => StoredValue::Text(number.to_string()),
        CellValue::Null | CellValue::Real(_) | CellValue::Text(_) | CellValue::Unreadable => cell.to_stored(),
    }
}

fn mean(sum: CellValue<'_>, count: CellValue<'_>, is_real: bool) -> StoredValue {
    let count = count.to_i64().map_or(0, i64::unsigned_abs);
    match decimal(sum) {
        StoredValue::Real(sum) if is_real && count > 0 => StoredValue::Real(sum / count as f64),
        StoredValue::Text(sum) => decimal_sum::mean(&sum, count).map_or(StoredValue::Null, StoredValue::Text),
        StoredValue::Null | StoredValue::Int(_) | StoredValue::Real(_) => StoredValue::Null,
    }
}

/// The group of no records: counts are 0, everything else is null.
struct EmptyGroup<'g>(&'g GroupCells);

impl Row for EmptyGroup<'_> {
    fn cell(&self, column: usize) -> CellValue<'_> {
        match self.0.cells.get(column) {
            Some(GroupCell::Count(_)) => CellValue::Int(0),
            Some(_) | None => CellValue::Null,
        }
    }

    fn each_child(&self, _child: usize, _visit: &mut dyn FnMut(&dyn Row)) {}
}
