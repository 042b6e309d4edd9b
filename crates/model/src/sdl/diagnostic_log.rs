//! Collects the diagnostics of all stages, each with its position in the source.

use std::collections::HashMap;
use std::ops::Range;

use apollo_compiler::Schema;
use apollo_compiler::parser::{FileId, SourceMap, SourceSpan};

use crate::access::{RuleError, source_range};
use crate::diagnostic::{Diagnostic, Severity};
use crate::naming::names;
use crate::{RecordType, SourceLocation};

pub(crate) struct DiagnosticLog {
    sources: SourceMap,
    /// Byte offsets of the line starts of each file, computed once.
    line_starts: HashMap<FileId, Vec<usize>>,
    pub diagnostics: Vec<Diagnostic>,
}

impl DiagnosticLog {
    pub fn new(sources: SourceMap) -> Self {
        let starts = |text: &str| {
            std::iter::once(0).chain(text.match_indices('\n').map(|(newline, _)| newline + 1)).collect()
        };
        let line_starts = sources.iter().map(|(id, source)| (*id, starts(source.source_text()))).collect();
        DiagnosticLog { sources, line_starts, diagnostics: Vec::new() }
    }

    pub fn error(
        &mut self,
        span: Option<SourceSpan>,
        code: &'static str,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        self.push(Severity::Error, span, code, message.into())
    }

    pub fn warning(
        &mut self,
        span: Option<SourceSpan>,
        code: &'static str,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        self.push(Severity::Warning, span, code, message.into())
    }

    fn push(
        &mut self,
        severity: Severity,
        span: Option<SourceSpan>,
        code: &'static str,
        message: String,
    ) -> &mut Diagnostic {
        let mut diagnostic = Diagnostic::new(severity, code, message);
        if let Some((location, span)) = self.locate(span) {
            (diagnostic.file, diagnostic.line, diagnostic.column) =
                (location.file, location.line, location.column);
            diagnostic.span = span;
        }
        self.diagnostics.push(diagnostic);
        self.diagnostics.last_mut().expect("one was just pushed")
    }

    /// An error in the text of a rule, which is written in a string literal.
    pub fn rule_error(&mut self, literal: Option<SourceSpan>, error: RuleError) {
        let RuleError { span, code, message, label, help } = error;
        let within = self.rule_bytes(literal, span);
        let diagnostic = self.error(literal, code, message);
        diagnostic.label = label;
        diagnostic.help = help;
        let Some((location, span)) = within.and_then(|(file, range)| self.locate_bytes(file, range)) else {
            return;
        };
        let diagnostic = self.diagnostics.last_mut().expect("one was just pushed");
        (diagnostic.line, diagnostic.column, diagnostic.span) = (location.line, location.column, span);
    }

    /// Where a part of a rule's text is, and its bytes of the file; the whole literal without a span.
    pub fn rule_place(
        &self,
        literal: Option<SourceSpan>,
        span: Option<Range<usize>>,
    ) -> (SourceLocation, Range<usize>) {
        let found = match span {
            Some(span) => self.rule_bytes(literal, span),
            None => literal.map(|literal| (literal.file_id(), literal.offset()..literal.end_offset())),
        };
        let Some((file, bytes)) = found else { return Default::default() };
        (self.locate_bytes(file, bytes.clone()).map(|(location, _)| location).unwrap_or_default(), bytes)
    }

    /// The bytes of a file that a part of a rule's text comes from.
    fn rule_bytes(&self, literal: Option<SourceSpan>, span: Range<usize>) -> Option<(FileId, Range<usize>)> {
        let literal = literal?;
        let text = self.sources.get(&literal.file_id())?.source_text();
        let range = literal.offset()..literal.end_offset();
        Some((literal.file_id(), source_range(text.get(range)?, literal.offset(), span)))
    }

    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// True if an error was found at the span or inside it.
    pub fn has_error_within(&self, span: Option<SourceSpan>) -> bool {
        let Some(span) = span else { return false };
        let Some(source) = self.sources.get(&span.file_id()) else { return false };
        let file = source.path().to_string_lossy();
        self.diagnostics.iter().any(|diagnostic| {
            diagnostic.severity == Severity::Error
                && diagnostic.file == file
                && span.offset() <= diagnostic.span.start
                && diagnostic.span.end <= span.end_offset()
        })
    }

    pub fn location(&self, span: Option<SourceSpan>) -> SourceLocation {
        self.locate(span).map(|(location, _)| location).unwrap_or_default()
    }

    /// The position where a span begins, and its bytes up to the end of that line, which is enough to find a
    /// definition.
    fn locate(&self, span: Option<SourceSpan>) -> Option<(SourceLocation, Range<usize>)> {
        let span = span?;
        self.locate_bytes(span.file_id(), span.offset()..span.end_offset())
    }

    fn locate_bytes(&self, file: FileId, bytes: Range<usize>) -> Option<(SourceLocation, Range<usize>)> {
        let source = self.sources.get(&file)?;
        let text = source.source_text();
        let start = text.floor_char_boundary(bytes.start.min(text.len()));
        let end = text.floor_char_boundary(bytes.end.min(text.len())).max(start);
        let end = text[start..end].find(['\r', '\n']).map_or(end, |newline| start + newline);
        let lines = self.line_starts.get(&file)?;
        let line = lines.partition_point(|line| *line <= start);
        let before = text[lines[line - 1]..start].trim_start_matches('\u{feff}');
        let file = source.path().to_string_lossy().into_owned();
        Some((SourceLocation { file, line, column: before.chars().count() + 1 }, start..end))
    }
}

/// True if the span is the user's, not part of GraphQL's or our own definitions.
pub(crate) fn is_user_written(span: Option<SourceSpan>, builtin_file: Option<FileId>) -> bool {
    span.is_some_and(|span| span.file_id() != FileId::BUILT_IN && Some(span.file_id()) != builtin_file)
}

/// "did you mean `x`?", or `otherwise` if no known name is close.
pub(crate) fn suggest_or_else<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
    otherwise: impl FnOnce() -> String,
) -> String {
    match names::nearest_name(name, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => otherwise(),
    }
}

/// The span of a type's name.
pub(crate) fn type_span(schema: &Schema, record: &RecordType) -> Option<SourceSpan> {
    schema.get_object(&record.name)?.name.location()
}
