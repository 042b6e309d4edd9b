//! Why a server did not start, in words for the person at the terminal.

use std::fmt;

use trefoil_application::App;
use trefoil_model::diagnostic::{Diagnostic, render_all};
use trefoil_model::error::Error;

#[derive(Debug)]
pub enum StartError {
    /// The application folder cannot be read as one.
    Application(Vec<Diagnostic>),
    /// The schema has mistakes; each with file, line and caret.
    Schema(String),
    /// Settings contradict themselves or are unknown; a line each.
    Settings(String),
    /// The address cannot be had.
    Listen(String),
    /// The store cannot be opened.
    Store(String),
    /// The store's tables do not fit the schema and cannot be made to without being told how.
    Migrate(String),
    /// The seed does not fit the schema.
    Seed(Vec<Diagnostic>),
}

impl StartError {
    pub fn from_diagnostics(app: &App, diagnostics: &[Diagnostic]) -> StartError {
        StartError::Schema(render_all(&[app.schema.as_slice(), &app.other_files].concat(), diagnostics))
    }

    pub fn from_store_error(error: Error) -> StartError {
        // Nobody but the person who starts the server sees this, so the cause is told.
        StartError::Store(error.full_text())
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Application(mistakes) | StartError::Seed(mistakes) => {
                let lines: Vec<String> = mistakes.iter().map(Diagnostic::to_string).collect();
                f.write_str(&lines.join("\n"))
            }
            StartError::Schema(text)
            | StartError::Settings(text)
            | StartError::Listen(text)
            | StartError::Store(text)
            | StartError::Migrate(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for StartError {}
