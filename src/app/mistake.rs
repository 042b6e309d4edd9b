//! One thing wrong in an application folder, and how it is shown to the person who can put it right.

use std::fmt;
use std::ops::Range;

use crate::model::Place;

/// What is wrong, where, and the way out where one is known. Line 0 means the file as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    pub at: Place,
    pub message: String,
    pub help: Option<String>,
    /// The line it is in.
    pub excerpt: Option<String>,
}

impl Mistake {
    /// About a file as a whole.
    pub fn of(file: impl Into<String>, message: impl Into<String>) -> Self {
        let at = Place { file: file.into(), line: 0, column: 0 };
        Mistake { at, message: one_line(&message.into()), help: None, excerpt: None }
    }

    /// About one place in a text; `span` is in bytes.
    pub fn within(file: &str, text: &str, span: &Range<usize>, message: impl Into<String>) -> Self {
        let (line, column) = position(text, span.start);
        let at = Place { file: file.to_owned(), line, column };
        let excerpt = text.lines().nth(line - 1).map(str::to_owned);
        Mistake { at, message: one_line(&message.into()), help: None, excerpt }
    }

    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Several lines with the place shown by a caret, for people.
    pub fn snippet(&self) -> String {
        let mut text = format!("error: {}\n  --> {}\n", self.message, self.place());
        if let Some(excerpt) = &self.excerpt {
            let number = self.at.line.to_string();
            let gap = " ".repeat(number.len());
            // Tabs are kept so that the caret stands under its character whatever their width.
            let before = excerpt.chars().take(self.at.column - 1).map(|c| if c == '\t' { c } else { ' ' });
            let before: String = before.collect();
            text += &format!(" {gap} |\n {number} | {excerpt}\n {gap} | {before}^\n");
        }
        if let Some(help) = &self.help {
            text += &format!("  = help: {help}\n");
        }
        text
    }

    fn place(&self) -> String {
        match self.at.line {
            0 => self.at.file.clone(),
            line => format!("{}:{line}:{}", self.at.file, self.at.column),
        }
    }
}

/// All of it on one line.
impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place(), self.message)?;
        match &self.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

/// A key may hold a line break; what is said about it may not.
fn one_line(message: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    message.chars().map(shown).collect()
}

/// Line and column of a byte, both from 1; columns count characters.
pub fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    (line, String::from_utf8_lossy(&before[start..]).chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters() {
        let text = "é = 1\nport = x\n";
        assert_eq!(position(text, 0), (1, 1));
        assert_eq!(position(text, text.find('=').unwrap()), (1, 3));
        assert_eq!(position(text, text.find('x').unwrap()), (2, 8));
        assert_eq!(position(text, text.len()), (3, 1));
    }

    #[test]
    fn the_caret_stands_under_the_place() {
        let text = "host = \"é\"\n\tport = x\n";
        let start = text.find('x').unwrap();
        let mistake =
            Mistake::within("trefoil.toml", text, &(start..start + 1), "no number").help("write 8080");
        let expected = "error: no number\n  --> trefoil.toml:2:9\n   |\n 2 | \tport = x\n   | \t       ^\n  = help: write 8080\n";
        assert_eq!(mistake.snippet(), expected);
        assert_eq!(mistake.to_string(), "trefoil.toml:2:9: no number; write 8080");
        assert_eq!(Mistake::of("my-app", "no such\nfolder").to_string(), "my-app: no such\\nfolder");
    }
}
