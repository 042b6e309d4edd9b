//! The errors of an import by location, up to a limit.

use std::collections::BTreeMap;

use trefoil_model::values::digit_grouping::group_thousands;

use crate::import_source::ImportSource;

/// A row: the index of its source, and its line.
pub type RowLocation = (usize, u64);

/// The first errors by location, and how many there are in all.
pub struct RowErrors {
    messages: BTreeMap<RowLocation, String>,
    count: u64,
    max_kept: usize,
}

impl RowErrors {
    pub fn new(max_kept: usize) -> RowErrors {
        RowErrors { messages: BTreeMap::new(), count: 0, max_kept: max_kept.max(1) }
    }

    pub fn add(&mut self, location: RowLocation, message: String) {
        self.count += 1;
        self.messages.insert(location, message);
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

    /// Whether the limit is reached.
    pub fn is_full(&self) -> bool {
        self.messages.len() >= self.max_kept
    }

    /// The messages, and how many more there are; for an import that read everything.
    pub fn all_lines(&self, sources: &[ImportSource]) -> Vec<String> {
        let (mut lines, max_kept) = (self.message_lines(sources), self.max_kept);
        match self.count - self.messages.len() as u64 {
            0 => {}
            more => lines.push(format!(
                "and {} more; only the first {max_kept} are shown (--max-errors)",
                group_thousands(more)
            )),
        }
        lines
    }

    /// The messages, and that there may be more; for an import that may have stopped early.
    pub fn lines_so_far(&self, sources: &[ImportSource]) -> Vec<String> {
        let mut lines = self.message_lines(sources);
        if self.is_full() {
            lines.push(format!(
                "there may be more: the import stops after {} invalid rows (--max-errors)",
                self.max_kept
            ));
        }
        lines
    }

    /// One line per error: `users.csv:17: Name must not be blank`.
    fn message_lines(&self, sources: &[ImportSource]) -> Vec<String> {
        let line = |((source, line), message): (&RowLocation, &String)| {
            let name = sources.get(*source).map_or("", |source| &source.display_name);
            if *line == 0 { format!("{name}: {message}") } else { format!("{name}:{line}: {message}") }
        };
        self.messages.iter().map(line).collect()
    }
}
