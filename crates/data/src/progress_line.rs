//! How far a long command is, on one line of a terminal; elsewhere nothing but its end is told.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use trefoil_model::values::thousands::group_thousands;

/// How often the line is written anew at most.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);
const BAR_WIDTH: usize = 16;

/// What there is in all.
#[derive(Debug, Clone)]
pub enum ProgressTotal {
    Rows(u64),
    /// So many bytes, of which so many are read.
    Bytes(u64, Arc<AtomicU64>),
    Unknown,
}

pub struct ProgressLine {
    is_shown: bool,
    /// What is being done, and of what it is so many.
    task: &'static str,
    unit: &'static str,
    total: ProgressTotal,
    started_at: Instant,
    /// When the line was last written for this task.
    last_drawn_at: Option<Instant>,
    is_drawn: bool,
    pub rows: u64,
}

impl ProgressLine {
    /// On standard error, if that is a terminal.
    pub fn new(whole: ProgressTotal) -> ProgressLine {
        let is_shown = io::stderr().is_terminal();
        let began = Instant::now();
        ProgressLine {
            is_shown,
            task: "",
            unit: "rows",
            total: whole,
            started_at: began,
            last_drawn_at: None,
            is_drawn: false,
            rows: 0,
        }
    }

    pub fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// From here on another task is told of. One whose size is unknown is named at once: nothing more may come of it.
    pub fn begin(&mut self, task: &'static str, unit: &'static str, whole: ProgressTotal) {
        (self.task, self.unit, self.total) = (task, unit, whole);
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
        let told = progress_text(self.rows, self.unit, self.started_at.elapsed(), self.fraction_done());
        let space = if self.task.is_empty() { "" } else { " " };
        // A terminal that is gone shows nothing, and that is all.
        let _ = write!(io::stderr(), "\r{}{space}{told}\x1b[K", self.task);
    }

    fn fraction_done(&self) -> Option<f64> {
        let (done, all) = match &self.total {
            ProgressTotal::Rows(all) => (self.rows, *all),
            ProgressTotal::Bytes(all, read) => (read.load(Ordering::Relaxed), *all),
            ProgressTotal::Unknown => return None,
        };
        (all > 0).then(|| (done as f64 / all as f64).min(1.0))
    }

    /// Takes the line away.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }

    /// `1,234 rows in 2.1 s, 588 rows/s`
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

/// `[####------------] 25 %, 3,000 rows, 1,500 rows/s, 6 s left`
fn progress_text(rows: u64, unit: &str, elapsed: Duration, part: Option<f64>) -> String {
    if rows == 0 && part.is_none() {
        return "…".to_owned();
    }
    let speed = format!(
        "{} {unit}, {} {unit}/s",
        group_thousands(rows),
        group_thousands(rows_per_second(rows, elapsed))
    );
    let Some(part) = part else { return speed };
    let full = (part * BAR_WIDTH as f64) as usize;
    let bar = format!("{}{}", "#".repeat(full), "-".repeat(BAR_WIDTH - full));
    let left = match part {
        part if part > 0.0 => {
            let left = Duration::from_secs_f64(elapsed.as_secs_f64() * (1.0 - part) / part);
            format!(", {} left", duration_text(left))
        }
        _ => String::new(),
    };
    format!("[{bar}] {:.0} %, {speed}{left}", part * 100.0)
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
    fn the_line_tells_rows_speed_and_time_left() {
        let check = |rows, seconds, part, expected: &str| {
            assert_eq!(progress_text(rows, "rows", Duration::from_secs(seconds), part), expected);
        };
        check(0, 0, None, "…");
        check(3_000, 2, None, "3,000 rows, 1,500 rows/s");
        check(3_000, 2, Some(0.25), "[####------------] 25 %, 3,000 rows, 1,500 rows/s, 6 s left");
        check(0, 0, Some(0.0), "[----------------] 0 %, 0 rows, 0 rows/s");
        check(10, 300, Some(0.5), "[########--------] 50 %, 10 rows, 0 rows/s, 5 min left");
        check(10, 10, Some(1.0), "[################] 100 %, 10 rows, 1 rows/s, 0 s left");
    }
}
