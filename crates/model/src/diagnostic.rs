//! A mistake or a doubt about an application, with the place it stands at, for people and for programs.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::SourceFile;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The application cannot be served.
    Error,
    /// It can, but for what is named.
    Warning,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    /// Stable, in capitals: `SYNTAX`, `UNKNOWN_TYPE`, …
    pub code: &'static str,
    pub message: String,
    /// The name of the source file; empty when no file is to blame.
    pub file: String,
    /// Counted from 1, columns in characters; 0 means the file as a whole.
    pub line: usize,
    pub column: usize,
    /// What the caret underlines, in bytes of the file.
    pub span: Range<usize>,
    /// Stands beside the caret.
    pub label: String,
    /// The way out, where one can be computed.
    pub help: Option<String>,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

impl Diagnostic {
    /// Without a place.
    pub fn new(severity: Severity, code: &'static str, message: impl Into<String>) -> Self {
        Diagnostic {
            severity,
            code,
            message: message.into(),
            file: String::new(),
            line: 0,
            column: 0,
            span: 0..0,
            label: String::new(),
            help: None,
        }
    }

    /// A mistake in a file as a whole; [`Diagnostic::at`] says where in it.
    pub fn in_file(file: impl Into<String>, code: &'static str, message: impl Into<String>) -> Self {
        Diagnostic { file: file.into(), ..Diagnostic::new(Severity::Error, code, message) }
    }

    pub fn with_span(mut self, file: &str, text: &str, span: Range<usize>) -> Self {
        let start = floor_to_char(text, span.start);
        self.file = file.to_owned();
        (self.line, self.column) = line_and_column(text, start);
        let end = floor_to_char(text, span.end).max(start);
        // One line is enough to find a definition by.
        self.span = start..text[start..end].find(['\r', '\n']).map_or(end, |newline| start + newline);
        self
    }

    pub fn label(&mut self, label: impl Into<String>) -> &mut Self {
        self.label = label.into();
        self
    }

    pub fn help(&mut self, help: impl Into<String>) -> &mut Self {
        self.help = Some(help.into());
        self
    }

    /// As a compiler would show it, with the line and a caret.
    pub fn render(&self, sources: &[SourceFile]) -> String {
        let title = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        }
        .primary_title(&self.message);
        let mut group = match sources.iter().find(|source| source.name == self.file) {
            Some(source) if self.line > 0 => title.element(self.snippet(source)),
            Some(_) | None if self.file.is_empty() => Group::with_title(title),
            Some(_) | None => title.element(Origin::path(&self.file)),
        };
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help));
        }
        Renderer::plain().render(&[group])
    }

    fn snippet<'a>(&'a self, source: &'a SourceFile) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
        let mut caret = AnnotationKind::Primary.span(self.span.clone());
        if !self.label.is_empty() {
            caret = caret.label(&self.label);
        }
        Snippet::source(&source.text).path(&source.name).annotation(caret)
    }

    /// One object, for `check --format json`.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "severity": self.severity.name(),
            "code": self.code,
            "message": self.message,
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "start": self.span.start,
            "end": self.span.end,
            "label": self.label,
            "help": self.help,
        })
    }
}

/// All of it on one line, for logs and for those who cannot be shown a snippet.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.file.as_str(), self.line) {
            ("", _) => {}
            (file, 0) => write!(f, "{file}: ")?,
            (file, line) => write!(f, "{file}:{line}:{}: ", self.column)?,
        }
        f.write_str(&escape_controls(&self.message))?;
        self.help.iter().try_for_each(|help| write!(f, "; {}", escape_controls(help)))
    }
}

/// What is quoted may hold a line break; what is said about it may not.
fn escape_controls(text: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}

/// Line and column of a byte, both from 1; columns count characters.
pub fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..floor_to_char(text, offset)];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let column = before[line_start..].trim_start_matches('\u{feff}').chars().count() + 1;
    (before.matches('\n').count() + 1, column)
}

/// All of them, one below the other.
pub fn render_all(sources: &[SourceFile], diagnostics: &[Diagnostic]) -> String {
    let texts = diagnostics.iter().map(|found| found.render(sources).trim_end().to_owned());
    texts.collect::<Vec<_>>().join("\n\n")
}

/// The nearest offset at or before `at` that cuts no character.
fn floor_to_char(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at.min(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters() {
        let text = "é = 1\nport = x\n";
        assert_eq!(line_and_column(text, 0), (1, 1));
        assert_eq!(line_and_column(text, text.find('=').unwrap()), (1, 3));
        assert_eq!(line_and_column(text, text.find('x').unwrap()), (2, 8));
        assert_eq!(line_and_column(text, text.len()), (3, 1));
    }

    #[test]
    fn one_line_holds_all_of_it() {
        let mut found = Diagnostic::in_file("my-app", "FILE", "no such\nfolder");
        assert_eq!(found.to_string(), "my-app: no such\\nfolder");
        assert!(found.render(&[]).contains("--> my-app"), "{}", found.render(&[]));
        found.help("write 8080");
        let found = found.with_span("a.toml", "port = x", 7..8);
        assert_eq!(found.to_string(), "a.toml:1:8: no such\\nfolder; write 8080");
    }
}
