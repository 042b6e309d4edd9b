//! The progress of a long command on one line of a terminal; elsewhere nothing is shown.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use trefoil_model::values::digit_grouping::group_thousands;

/// The minimum time between redraws.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);
const BAR_WIDTH: usize = 16;

/// The total amount of work.
#[derive(Debug, Clone)]
pub enum ProgressTotal {
    Rows(u64),
    /// The number of bytes, and a counter of those read.
    Bytes(u64, Arc<AtomicU64>),
    Unknown,
}

pub struct ProgressLine {
    is_shown: bool,
    /// The current task and what it counts.
    task: &'static str,
    unit: &'static str,
    total: ProgressTotal,
    started_at: Instant,
    /// When the line was last drawn for this task.
    last_drawn_at: Option<Instant>,
    is_drawn: bool,
    pub rows: u64,
}

impl ProgressLine {
    /// Shown on standard error if that is a terminal.
    pub fn new(total: ProgressTotal) -> ProgressLine {
        let is_shown = io::stderr().is_terminal();
        ProgressLine {
            is_shown,
            task: "",
            unit: "rows",
            total,
            started_at: Instant::now(),
            last_drawn_at: None,
            is_drawn: false,
            rows: 0,
        }
    }

    pub fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// Starts another task. A task of unknown size is drawn at once, because there may be no further progress to show.
    pub fn begin(&mut self, task: &'static str, unit: &'static str, total: ProgressTotal) {
        (self.task, self.unit, self.total) = (task, unit, total);
        (self.started_at, self.last_drawn_at, self.rows) = (Instant::now(), None, 0);
        if matches!(self.total, ProgressTotal::Unknown) {
            self.draw();
        }
    }

    pub fn add(&mut self, rows: u64) {
        self.rows += rows;
        if self.last_drawn_at.is_none_or(|drawn| drawn.elapsed() >= REDRAW_INTERVAL) {
            self.draw();
        }
    }

    fn draw(&mut self) {
        if !self.is_shown {
            return;
        }
        (self.last_drawn_at, self.is_drawn) = (Some(Instant::now()), true);
        let text = progress_text(self.rows, self.unit, self.started_at.elapsed(), self.fraction_done());
        let space = if self.task.is_empty() { "" } else { " " };
        // If the terminal is gone, nothing is shown.
        let _ = write!(io::stderr(), "\r{}{space}{text}\x1b[K", self.task);
    }

    fn fraction_done(&self) -> Option<f64> {
        let (done, total) = match &self.total {
            ProgressTotal::Rows(total) => (self.rows, *total),
            ProgressTotal::Bytes(total, read) => (read.load(Ordering::Relaxed), *total),
            ProgressTotal::Unknown => return None,
        };
        (total > 0).then(|| (done as f64 / total as f64).min(1.0))
    }

    /// Removes the line.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }

    /// Such as `1,234 rows in 2.1 s, 588 rows/s`.
    pub fn summary(&self) -> String {
        let elapsed = self.started_at.elapsed();
        let rows =
            if self.rows == 1 { "1 row".to_owned() } else { format!("{} rows", group_thousands(self.rows)) };
        format!(
            "{rows} in {:.1} s, {} rows/s",
            elapsed.as_secs_f64(),
            group_thousands(rows_per_second(self.rows, elapsed))
        )
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.clear();
    }
}

fn rows_per_second(rows: u64, elapsed: Duration) -> u64 {
    (rows as f64 / elapsed.as_secs_f64().max(0.001)) as u64
}

/// Such as `[####------------] 25 %, 3,000 rows, 1,500 rows/s, 6 s left`.
fn progress_text(rows: u64, unit: &str, elapsed: Duration, fraction: Option<f64>) -> String {
    if rows == 0 && fraction.is_none() {
        return "…".to_owned();
    }
    let speed = format!(
        "{} {unit}, {} {unit}/s",
        group_thousands(rows),
        group_thousands(rows_per_second(rows, elapsed))
    );
    let Some(fraction) = fraction else { return speed };
    let full = (fraction * BAR_WIDTH as f64) as usize;
    let bar = format!("{}{}", "#".repeat(full), "-".repeat(BAR_WIDTH - full));
    let remaining = match fraction {
        fraction if fraction > 0.0 => {
            let remaining = Duration::from_secs_f64(elapsed.as_secs_f64() * (1.0 - fraction) / fraction);
            format!(", {} left", duration_text(remaining))
        }
        _ => String::new(),
    };
    format!("[{bar}] {:.0} %, {speed}{remaining}", fraction * 100.0)
}

fn duration_text(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..=99 => format!("{seconds} s"),
        seconds @ 100..=5_999 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h", seconds.div_ceil(3_600)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_shows_rows_speed_and_remaining_time() {
        let check = |rows, seconds, fraction, expected: &str| {
            assert_eq!(progress_text(rows, "rows", Duration::from_secs(seconds), fraction), expected);
        };
        check(0, 0, None, "…");
        check(3_000, 2, None, "3,000 rows, 1,500 rows/s");
        check(3_000, 2, Some(0.25), "[####------------] 25 %, 3,000 rows, 1,500 rows/s, 6 s left");
        check(0, 0, Some(0.0), "[----------------] 0 %, 0 rows, 0 rows/s");
        check(10, 300, Some(0.5), "[########--------] 50 %, 10 rows, 0 rows/s, 5 min left");
        check(10, 10, Some(1.0), "[################] 100 %, 10 rows, 1 rows/s, 0 s left");
    }
}
