//! Shows the progress of store transfers on the same line as exports and imports.

use trefoil_data::progress_line::{ProgressLine, ProgressTotal};
use trefoil_sql::transfer;

/// The progress line of a backup, restore or move.
pub struct TransferProgressBar(ProgressLine);

impl TransferProgressBar {
    pub fn new() -> TransferProgressBar {
        TransferProgressBar(ProgressLine::new(ProgressTotal::Unknown))
    }
}

impl transfer::TransferProgress for TransferProgressBar {
    fn begin(&mut self, task: &'static str, unit: &'static str, total: u64) {
        let progress_total = if total == 0 { ProgressTotal::Unknown } else { ProgressTotal::Rows(total) };
        self.0.begin(task, unit, progress_total);
    }

    fn advance(&mut self, done: u64) {
        self.0.add(done);
    }
}
