//! The reasons why a server does not start, as messages for the terminal.

use std::fmt;

use trefoil_application::App;
use trefoil_model::diagnostic::{Diagnostic, render_all};
use trefoil_model::error::Error;

#[derive(Debug)]
pub enum StartError {
    /// The application folder cannot be read.
    Application(Vec<Diagnostic>),
    /// The schema has mistakes; each with file, line and caret.
    Schema(String),
    /// Settings are contradictory or unknown; one per line.
    Settings(String),
    /// The address cannot be bound.
    Listen(String),
    /// The store cannot be opened.
    Store(String),
    /// The tables do not fit the schema and cannot be migrated without further instructions.
    Migrate(String),
    /// The seed does not fit the schema.
    Seed(Vec<Diagnostic>),
}

impl StartError {
    pub fn from_diagnostics(app: &App, diagnostics: &[Diagnostic]) -> StartError {
        StartError::Schema(render_all(&[app.schema.as_slice(), &app.other_files].concat(), diagnostics))
    }

    pub fn from_store_error(error: Error) -> StartError {
        // Only the person who starts the server sees this, so it includes the cause.
        StartError::Store(error.full_text())
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Application(diagnostics) | StartError::Seed(diagnostics) => {
                let lines: Vec<String> = diagnostics.iter().map(Diagnostic::to_string).collect();
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
