//! The errors of an import by location, up to a limit.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use trefoil_model::values::digit_grouping::group_thousands;

use crate::import_source::ImportSource;

/// How many lines with the same error are listed.
const MAX_LISTED_LINES: usize = 5;

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

    /// One line for equal errors of a file: `users.csv:17: Name must not be blank (also on line 19)`.
    fn message_lines(&self, sources: &[ImportSource]) -> Vec<String> {
        let mut groups: Vec<(RowLocation, &str, Vec<u64>)> = Vec::new();
        let mut positions: HashMap<(usize, &str), usize> = HashMap::new();
        for (location, message) in &self.messages {
            match positions.entry((location.0, message)) {
                Entry::Occupied(position) => groups[*position.get()].2.push(location.1),
                Entry::Vacant(position) => {
                    position.insert(groups.len());
                    groups.push((*location, message, Vec::new()));
                }
            }
        }
        let line = |((source, line), message, others): &(RowLocation, &str, Vec<u64>)| {
            let name = sources.get(*source).map_or("", |source| &source.display_name);
            let others = other_lines(others);
            if *line == 0 {
                format!("{name}: {message}")
            } else {
                format!("{name}:{line}: {message}{others}")
            }
        };
        groups.iter().map(line).collect()
    }
}

fn other_lines(lines: &[u64]) -> String {
    let listed: Vec<String> = lines.iter().take(MAX_LISTED_LINES).map(u64::to_string).collect();
    let listed = listed.join(", ");
    match lines.len() {
        0 => String::new(),
        1 => format!(" (also on line {listed})"),
        2..=MAX_LISTED_LINES => format!(" (also on lines {listed})"),
        count => format!(
            " (also on lines {listed} and {} more)",
            group_thousands((count - MAX_LISTED_LINES) as u64)
        ),
    }
}
