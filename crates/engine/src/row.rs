//! Records while they are read: rows borrowed from a store, and the sinks that receive them.

use std::any::Any;

use trefoil_model::error::{Error, Result};
use trefoil_model::{CellValue, RecordId};

use crate::operation::Outcome;

/// Receives rows while they are read, so that responses are encoded without copying rows.
pub trait RowSink: Any + Send {
    /// One record of plan number `plan`; plans come in order.
    fn row(&mut self, plan: usize, row: &dyn Row);

    /// Called exactly once for each plan, after its rows.
    fn finish_plan(&mut self, plan: usize, outcome: Result<Outcome>);

    /// Asked after each plan of an atomic job that succeeded: the error that its result is to the caller, which undoes
    /// the job.
    fn refusal(&mut self, _plan: usize) -> Option<Error> {
        None
    }

    /// Marks the state that [`RowSink::reset`] returns to.
    fn checkpoint(&mut self) {}

    /// The bytes to store under the idempotency key; with `None` a retry runs again.
    fn bytes_to_replay(&mut self) -> Option<Vec<u8>>;

    /// Drops everything since [`RowSink::checkpoint`]: the plans are run again.
    fn reset(&mut self);
}

/// One record, borrowed from the store while it is read.
pub trait Row {
    /// The selected column at this position.
    fn cell(&self, column: usize) -> CellValue<'_>;

    /// Visits the records of the selected child at this position, in order.
    fn each_child(&self, child: usize, visit: &mut dyn FnMut(&dyn Row));

    /// The id of a record that its actor wrote and may not read: it shows nothing else.
    fn unreadable_id(&self) -> Option<&RecordId> {
        None
    }
}
