//! A mistake or a doubt about the schema, with the place it stands at, for people and for programs.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::SourceFile;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The schema cannot be served.
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
    /// Counted from 1; columns in characters.
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

    pub fn label(&mut self, label: impl Into<String>) -> &mut Self {
        self.label = label.into();
        self
    }

    pub fn help(&mut self, help: impl Into<String>) -> &mut Self {
        self.help = Some(help.into());
        self
    }

    /// As a compiler would show it, with the line and a caret.
    pub fn render(&self, sources: &[SourceFile], colour: Colour) -> String {
        let title = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        }
        .primary_title(&self.message);
        let mut group = match sources.iter().find(|source| source.name == self.file) {
            Some(source) => title.element(self.snippet(source)),
            None => Group::with_title(title),
        };
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help));
        }
        let renderer = match colour {
            Colour::Plain => Renderer::plain(),
            Colour::Ansi => Renderer::styled(),
        };
        renderer.render(&[group])
    }

    fn snippet<'a>(&'a self, source: &'a SourceFile) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
        let mut caret = AnnotationKind::Primary.span(self.span.clone());
        if !self.label.is_empty() {
            caret = caret.label(&self.label);
        }
        Snippet::source(&source.text).path(&source.name).annotation(caret)
    }

    /// One line with its place, for logs.
    pub fn line(&self) -> String {
        format!("{}:{}:{}: {}", self.file, self.line, self.column, self.message)
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

/// All of them, one below the other, without colours.
pub fn render(sources: &[SourceFile], diagnostics: &[Diagnostic]) -> String {
    let texts = diagnostics.iter().map(|found| found.render(sources, Colour::Plain).trim_end().to_owned());
    texts.collect::<Vec<_>>().join("\n\n")
}

/// Whether rendered text carries ANSI colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    Plain,
    Ansi,
}
