//! What a subscriber keeps of the events it got, in a few words of memory, and how long they took to come.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// One event as the wire gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The change's number, from its id.
    pub number: u64,
    /// The record that was made.
    pub record: u64,
    /// What its writer called it.
    pub name: u64,
}

/// The events that one subscriber got: where it began, how many, and a fingerprint of them in their order.
#[derive(Debug, Clone, Default)]
pub struct Sequence {
    pub start: u64,
    pub count: u64,
    last: u64,
    fingerprint: u64,
    /// The first event whose number was not greater than the one before.
    disorder: Option<(u64, u64)>,
}

impl Sequence {
    pub fn from(start: u64) -> Sequence {
        Sequence { start, last: start, ..Sequence::default() }
    }

    pub fn add(&mut self, event: Event) {
        if event.number <= self.last {
            self.disorder.get_or_insert((self.last, event.number));
        }
        self.last = event.number;
        self.count += 1;
        for value in [event.number, event.record, event.name] {
            self.fingerprint = (self.fingerprint.rotate_left(5) ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
    }

    /// Whether it is exactly what the whole log has after its start.
    pub fn check(&self, whole: &[Event]) -> Result<(), String> {
        if let Some((before, after)) = self.disorder {
            return Err(format!("after change {before} came {after}"));
        }
        let mut expected = Sequence::from(self.start);
        whole.iter().filter(|event| event.number > self.start).for_each(|event| expected.add(*event));
        if self.count != expected.count {
            return Err(format!(
                "{} events instead of {}, the last {}",
                self.count, expected.count, self.last
            ));
        }
        if self.fingerprint != expected.fingerprint {
            return Err("as many events as there are, but not the same".to_owned());
        }
        Ok(())
    }
}

/// A histogram with steps of an eighth.
pub struct Delays {
    buckets: Vec<AtomicU64>,
}

const STEPS: u32 = 8;

impl Delays {
    pub fn new() -> Delays {
        Delays { buckets: (0..64 * STEPS).map(|_| AtomicU64::new(0)).collect() }
    }

    pub fn add(&self, delay: Duration) {
        let micros = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX).max(1);
        let octave = micros.ilog2();
        let step = ((u128::from(micros) * u128::from(STEPS)) >> octave) as u32 - STEPS;
        self.buckets[(octave * STEPS + step) as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The delay that this part of all did not exceed, up to a step.
    pub fn quantile(&self, part: f64) -> Duration {
        let counts: Vec<u64> = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect();
        let wanted = (counts.iter().sum::<u64>() as f64 * part).ceil() as u64;
        let mut seen = 0;
        for (at, count) in (0..).zip(counts) {
            seen += count;
            if seen >= wanted && seen > 0 {
                let (octave, step) = (at / STEPS, at % STEPS);
                return Duration::from_micros(((u64::from(STEPS + step) + 1) << octave) / u64::from(STEPS));
            }
        }
        Duration::ZERO
    }
}
