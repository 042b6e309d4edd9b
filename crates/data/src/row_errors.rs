//! What is wrong with rows, by their places, and no more of it than anyone wants to read.

use std::collections::BTreeMap;

use crate::import::RowLocation;
use crate::import_source::ImportSource;
use trefoil_model::values::thousands::group_thousands;

pub struct RowErrors {
    messages: BTreeMap<RowLocation, String>,
    count: u64,
    max_kept: usize,
}

impl RowErrors {
    pub fn new(most: usize) -> RowErrors {
        RowErrors { messages: BTreeMap::new(), count: 0, max_kept: most.max(1) }
    }

    pub fn add(&mut self, place: RowLocation, why: String) {
        self.count += 1;
        self.messages.insert(place, why);
        if self.messages.len() > self.max_kept {
            self.messages.pop_last();
        }
    }

    pub fn has_any(&self) -> bool {
        self.count > 0
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// There are as many as are told.
    pub fn is_full(&self) -> bool {
        self.messages.len() >= self.max_kept
    }

    /// Where everything was read: [`Complaints::told`], and how many more there are.
    pub fn all_lines(&self, sources: &[ImportSource]) -> Vec<String> {
        let (mut lines, most) = (self.message_lines(sources), self.max_kept);
        match self.count - self.messages.len() as u64 {
            0 => {}
            more => {
                lines.push(format!("and {} more; only {most} are told (--max-errors)", group_thousands(more)))
            }
        }
        lines
    }

    /// Where reading may have stopped: [`Complaints::told`], and that there may be more.
    pub fn lines_so_far(&self, sources: &[ImportSource]) -> Vec<String> {
        let mut lines = self.message_lines(sources);
        if self.is_full() {
            lines.push(format!(
                "there may be more: reading stops at {} bad rows (--max-errors)",
                self.max_kept
            ));
        }
        lines
    }

    /// `users.csv:17: Name must not be blank`, one for each.
    fn message_lines(&self, sources: &[ImportSource]) -> Vec<String> {
        let line = |((source, line), why): (&RowLocation, &String)| {
            let shown = sources.get(*source).map_or("", |source| &source.display_name);
            if *line == 0 { format!("{shown}: {why}") } else { format!("{shown}:{line}: {why}") }
        };
        self.messages.iter().map(line).collect()
    }
}
