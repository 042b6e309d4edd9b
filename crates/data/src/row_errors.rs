//! What is wrong with rows, by their places, and no more of it than anyone wants to read.

use std::collections::BTreeMap;

use crate::import::Place;
use crate::import_source::Source;
use trefoil_model::values::thousands::grouped;

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

    /// Where everything was read: [`Complaints::told`], and how many more there are.
    pub fn of_all(&self, sources: &[Source]) -> Vec<String> {
        let (mut lines, most) = (self.told(sources), self.most);
        match self.count - self.told.len() as u64 {
            0 => {}
            more => lines.push(format!("and {} more; only {most} are told (--max-errors)", grouped(more))),
        }
        lines
    }

    /// Where reading may have stopped: [`Complaints::told`], and that there may be more.
    pub fn so_far(&self, sources: &[Source]) -> Vec<String> {
        let mut lines = self.told(sources);
        if self.is_full() {
            lines.push(format!("there may be more: reading stops at {} bad rows (--max-errors)", self.most));
        }
        lines
    }

    /// `users.csv:17: Name must not be blank`, one for each.
    fn told(&self, sources: &[Source]) -> Vec<String> {
        let line = |((source, line), why): (&Place, &String)| {
            let shown = sources.get(*source).map_or("", |source| &source.shown);
            if *line == 0 { format!("{shown}: {why}") } else { format!("{shown}:{line}: {why}") }
        };
        self.told.iter().map(line).collect()
    }
}
