//! How far a transfer has come.

/// Receives the progress of a transfer.
pub trait TransferProgress {
    /// A task begins, of `total` rows (or pages of a file); `total` is 0 if nothing is counted.
    fn begin(&mut self, task: &'static str, unit: &'static str, total: u64);
    /// `done` more units are done.
    fn advance(&mut self, done: u64);
}

/// Ignores the progress.
impl TransferProgress for () {
    fn begin(&mut self, _task: &'static str, _unit: &'static str, _total: u64) {}
    fn advance(&mut self, _done: u64) {}
}
