//! Errors and warnings about an application's files, rendered for people and as JSON.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::SourceFile;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The application cannot be served.
    Error,
    /// The application is served without the part that the message names.
    Warning,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    /// Stable and in capitals: `SYNTAX`, `UNKNOWN_TYPE`, …
    pub code: &'static str,
    pub message: String,
    /// Name of the source file; empty if the problem belongs to no file.
    pub file: String,
    /// Line, counted from 1; 0 means the whole file.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// The underlined part, as bytes of the file.
    pub span: Range<usize>,
    /// Text beside the underline.
    pub label: String,
    /// A suggested fix, if one can be computed.
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
    /// A diagnostic without a position.
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

    /// An error about a whole file; [`Diagnostic::with_span`] adds the position.
    pub fn in_file(file: impl Into<String>, code: &'static str, message: impl Into<String>) -> Self {
        Diagnostic { file: file.into(), ..Diagnostic::new(Severity::Error, code, message) }
    }

    pub fn with_span(mut self, file: &str, text: &str, span: Range<usize>) -> Self {
        let start = floor_to_char(text, span.start);
        self.file = file.to_owned();
        (self.line, self.column) = line_and_column(text, start);
        let end = floor_to_char(text, span.end).max(start);
        // One line is enough to find a definition.
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

    /// The diagnostic as a compiler shows it, with the source line and a caret.
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

    /// The source line with a caret under a title, for what is no mistake.
    pub fn render_note(&self, sources: &[SourceFile]) -> String {
        let title = Level::NOTE.no_name().primary_title(&self.message);
        let group = match sources.iter().find(|source| source.name == self.file) {
            Some(source) if self.line > 0 => title.element(self.snippet(source)),
            Some(_) | None => Group::with_title(title),
        };
        Renderer::plain().render(&[group])
    }

    fn snippet<'a>(&'a self, source: &'a SourceFile) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
        // Only the line is passed on: the renderer looks at all of the text.
        let text = source.text.as_str();
        let [caret_start, caret_end] = [self.span.start, self.span.end].map(|at| floor_to_char(text, at));
        let start = text[..caret_start].rfind('\n').map_or(0, |newline| newline + 1);
        let end = text[caret_end..].find('\n').map_or(text.len(), |newline| caret_end + newline);
        let mut caret = AnnotationKind::Primary.span(caret_start - start..caret_end - start);
        if !self.label.is_empty() {
            caret = caret.label(&self.label);
        }
        let line = Snippet::source(&text[start..end]).line_start(self.line);
        line.path(&source.name).annotation(caret)
    }

    /// A JSON object for `check --format json`.
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

/// Everything on one line, for logs and wherever a snippet cannot be shown.
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

/// Escapes line breaks and other control characters that quoted input may contain.
fn escape_controls(text: &str) -> String {
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escape).collect()
}

/// Line and column of a byte offset, both from 1; columns count characters.
pub fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..floor_to_char(text, offset)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = before[line_start..].trim_start_matches('\u{feff}').chars().count() + 1;
    (before.matches('\n').count() + 1, column)
}

/// All diagnostics, separated by blank lines.
pub fn render_all(sources: &[SourceFile], diagnostics: &[Diagnostic]) -> String {
    let texts = diagnostics.iter().map(|diagnostic| diagnostic.render(sources).trim_end().to_owned());
    texts.collect::<Vec<_>>().join("\n\n")
}

/// The nearest character boundary at or before `offset`.
fn floor_to_char(text: &str, offset: usize) -> usize {
    text.floor_char_boundary(offset.min(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let text = "é = 1\nport = x\n";
        assert_eq!(line_and_column(text, 0), (1, 1));
        assert_eq!(line_and_column(text, text.find('=').unwrap()), (1, 3));
        assert_eq!(line_and_column(text, text.find('x').unwrap()), (2, 8));
        assert_eq!(line_and_column(text, text.len()), (3, 1));
    }

    #[test]
    fn display_is_one_line() {
        let mut diagnostic = Diagnostic::in_file("my-app", "FILE", "no such\nfolder");
        assert_eq!(diagnostic.to_string(), "my-app: no such\\nfolder");
        assert!(diagnostic.render(&[]).contains("--> my-app"), "{}", diagnostic.render(&[]));
        diagnostic.help("write 8080");
        let diagnostic = diagnostic.with_span("a.toml", "port = x", 7..8);
        assert_eq!(diagnostic.to_string(), "a.toml:1:8: no such\\nfolder; write 8080");
    }
}
