//! What is wrong with rows, by their places, and no more of it than anyone wants to read.

use std::collections::BTreeMap;

use super::import::Place;
use super::source::Source;
use crate::model::digits::grouped;

pub struct Complaints {
    told: BTreeMap<Place, String>,
    count: u64,
    most: usize,
}

impl Complaints {
    pub fn new(most: usize) -> Complaints {
        Complaints { told: BTreeMap::new(), count: 0, most: most.max(1) }
    }

    pub fn add(&mut self, place: Place, why: String) {
        self.count += 1;
        self.told.insert(place, why);
        if self.told.len() > self.most {
            self.told.pop_last();
        }
    }

    pub fn any(&self) -> bool {
        self.count > 0
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// There are as many as are told.
    pub fn is_full(&self) -> bool {
        self.told.len() >= self.most
    }

    /// `users.csv:17: Name must not be blank`, one for each; `limit` is what to set to see more.
    pub fn lines(&self, sources: &[Source], limit: &str) -> Vec<String> {
        let line = |((source, line), why): (&Place, &String)| {
            let shown = sources.get(*source).map_or("", |source| &source.shown);
            if *line == 0 { format!("{shown}: {why}") } else { format!("{shown}:{line}: {why}") }
        };
        let mut lines: Vec<String> = self.told.iter().map(line).collect();
        if self.is_full() {
            let more = self.count - self.told.len() as u64;
            lines.push(match more {
                0 => format!("no more than {} bad rows are told ({limit})", self.most),
                more => format!("and {} more; only {} are told ({limit})", grouped(more), self.most),
            });
        }
        lines
    }
}
