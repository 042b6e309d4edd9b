//! Collects what the stages of reading a schema find, each with its place in the source.

use apollo_compiler::parser::{FileId, SourceMap, SourceSpan};

use super::diagnostic::{Diagnostic, Severity};
use super::{Place, naming};

pub(super) struct Log {
    sources: SourceMap,
    pub found: Vec<Diagnostic>,
}

impl Log {
    pub fn new(sources: SourceMap) -> Self {
        Log { sources, found: Vec::new() }
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
        let diagnostic = Diagnostic::new(severity, code, message);
        let diagnostic = match span.and_then(|span| Some((span, self.sources.get(&span.file_id())?))) {
            Some((span, source)) => diagnostic.at(
                &source.path().to_string_lossy(),
                source.source_text(),
                span.offset()..span.end_offset(),
            ),
            None => diagnostic,
        };
        self.found.push(diagnostic);
        self.found.last_mut().expect("one was just pushed")
    }

    /// Whether a mistake was found at a span or inside it.
    pub fn has_error_within(&self, span: Option<SourceSpan>) -> bool {
        let Some(span) = span else { return false };
        let Some(source) = self.sources.get(&span.file_id()) else { return false };
        let file = source.path().to_string_lossy();
        self.found.iter().any(|found| {
            found.severity == Severity::Error
                && found.file == file
                && span.offset() <= found.span.start
                && found.span.end <= span.end_offset()
        })
    }

    pub fn place(&self, span: Option<SourceSpan>) -> Place {
        let Some(span) = span else { return Place::default() };
        let Some(source) = self.sources.get(&span.file_id()) else { return Place::default() };
        let at = Diagnostic::new(Severity::Error, "", "").at(
            &source.path().to_string_lossy(),
            source.source_text(),
            span.offset()..span.end_offset(),
        );
        Place { file: at.file, line: at.line, column: at.column }
    }
}

/// Whether something was written by the user, not added by us or by GraphQL itself.
pub(super) fn is_written(span: Option<SourceSpan>, ours: Option<FileId>) -> bool {
    span.is_some_and(|span| span.file_id() != FileId::BUILT_IN && Some(span.file_id()) != ours)
}

/// "did you mean `x`?", or what to do when nothing is near.
pub(super) fn did_you_mean<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
    otherwise: impl FnOnce() -> String,
) -> String {
    match naming::nearest(name, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => otherwise(),
    }
}
