//! Copies of whole stores tell how far they are on the line that exports and imports have.

pub use crate::data::progress::Progress as Bar;
use crate::data::progress::Whole;
use crate::sql::transfer::Progress;

pub fn bar() -> Bar {
    Bar::new(Whole::Unknown)
}

impl Progress for Bar {
    fn begin(&mut self, task: &'static str, unit: &'static str, total: u64) {
        let whole = if total == 0 { Whole::Unknown } else { Whole::Rows(total) };
        Bar::begin(self, task, unit, whole);
    }

    fn advance(&mut self, done: u64) {
        self.add(done);
    }
}
