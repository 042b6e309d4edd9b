//! The events that are made while the crowd looks on: when each was acknowledged, and as which record.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::tally::Event;

pub struct Events {
    began: Instant,
    /// By name: microseconds until it was acknowledged, and its record. Zero means not yet.
    acknowledged: Vec<(AtomicU64, AtomicU64)>,
}

impl Events {
    pub fn new(count: usize) -> Events {
        let acknowledged = (0..count).map(|_| (AtomicU64::new(0), AtomicU64::new(0))).collect();
        Events { began: Instant::now(), acknowledged }
    }

    pub fn len(&self) -> usize {
        self.acknowledged.len()
    }

    pub fn acknowledge(&self, name: usize, record: u64) {
        let (at, own) = &self.acknowledged[name];
        own.store(record, Ordering::Relaxed);
        at.store(
            u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX).max(1),
            Ordering::Release,
        );
    }

    /// How long after its acknowledgement this is; nothing, if it has come before that.
    pub fn delay(&self, event: Event) -> Duration {
        let at = usize::try_from(event.name).ok().and_then(|name| self.acknowledged.get(name));
        match at.map_or(0, |(at, _)| at.load(Ordering::Acquire)) {
            0 => Duration::ZERO,
            micros => self.began.elapsed().saturating_sub(Duration::from_micros(micros)),
        }
    }

    /// What the log lacks of the acknowledged events, or has twice.
    pub fn compare(&self, whole: &[Event]) -> Vec<String> {
        let mut times = vec![0; self.len()];
        let mut wrong = Vec::new();
        for event in whole {
            let name = usize::try_from(event.name).unwrap_or(usize::MAX);
            match self.acknowledged.get(name) {
                Some((_, record)) if record.load(Ordering::Relaxed) == event.record => times[name] += 1,
                Some(_) => wrong.push(format!("event {name} tells of record {}", event.record)),
                None => wrong.push(format!("nobody made event {name}")),
            }
        }
        let others = times.iter().enumerate().filter(|(_, times)| **times != 1);
        wrong.extend(others.map(|(name, times)| format!("event {name} came {times} times")));
        wrong
    }
}
