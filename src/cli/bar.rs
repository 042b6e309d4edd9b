//! How far a long command is, on one line of a terminal: rows, rows a second, time left.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use crate::sql::transfer::Progress;

/// How often the line is written anew at most.
const EVERY: Duration = Duration::from_millis(100);
const WIDTH: u64 = 24;

/// Silent where standard error is no terminal.
pub struct Bar {
    is_shown: bool,
    what: &'static str,
    total: u64,
    done: u64,
    begun: Instant,
    shown: Option<Instant>,
}

impl Bar {
    pub fn new() -> Bar {
        let is_shown = stderr().is_terminal();
        Bar { is_shown, what: "", total: 0, done: 0, begun: Instant::now(), shown: None }
    }

    fn show(&mut self) {
        if self.is_shown {
            // A terminal that is gone is no reason to stop.
            let _ = write!(
                stderr().lock(),
                "\r\x1b[K{}",
                line(self.what, self.done, self.total, self.begun.elapsed())
            );
            self.shown = Some(Instant::now());
        }
    }
}

impl Progress for Bar {
    fn begin(&mut self, what: &'static str, total: u64) {
        (self.what, self.total, self.done, self.begun) = (what, total, 0, Instant::now());
        self.show();
    }

    fn advance(&mut self, done: u64) {
        self.done += done;
        if self.shown.is_none_or(|shown| shown.elapsed() >= EVERY) {
            self.show();
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if self.shown.is_some() {
            let _ = write!(stderr().lock(), "\r\x1b[K");
        }
    }
}

/// `copying rows [########----------------]  34 %  12,000 of 35,000  8,100/s  3 s left`
fn line(what: &str, done: u64, total: u64, time: Duration) -> String {
    if total == 0 {
        return what.to_owned();
    }
    let filled = (done.min(total) * WIDTH / total) as usize;
    let bar = format!("{}{}", "#".repeat(filled), "-".repeat(WIDTH as usize - filled));
    let rate = done as f64 / time.as_secs_f64().max(0.001);
    let left = (total.saturating_sub(done)) as f64 / rate.max(0.001);
    let left = if done > 0 && done < total { format!("  {left:.0} s left") } else { String::new() };
    let percent = done.min(total) * 100 / total;
    format!(
        "{what} [{bar}] {percent:3} %  {} of {}  {}/s{left}",
        grouped(done),
        grouped(total),
        grouped(rate as u64)
    )
}

/// `12,345,678`
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_how_far_how_fast_and_how_long() {
        let shown = line("copying rows", 12_000, 36_000, Duration::from_secs(2));
        assert_eq!(
            shown,
            "copying rows [########----------------]  33 %  12,000 of 36,000  6,000/s  4 s left"
        );
        assert_eq!(line("making indexes", 0, 0, Duration::ZERO), "making indexes");
        assert!(line("verifying", 5, 5, Duration::from_secs(1)).ends_with("100 %  5 of 5  5/s"));
    }

    #[test]
    fn digits_stand_in_threes() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345_678, "12,345,678")] {
            assert_eq!(grouped(number), text);
        }
    }
}
