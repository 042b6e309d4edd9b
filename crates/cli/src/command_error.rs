//! The reasons why a command fails, with their exit codes.

use std::fmt;
use std::process::ExitCode;

use trefoil_server::StartError;

#[derive(Debug)]
pub enum CommandError {
    /// The command line, a setting or the named folder is invalid; one line each.
    Usage(Vec<String>),
    /// The command failed while it ran.
    Failed(String),
    /// The server did not start.
    Start(StartError),
    /// `check` found mistakes and has reported them.
    Reported,
}

impl CommandError {
    pub fn usage(line: impl Into<String>) -> Self {
        CommandError::Usage(vec![line.into()])
    }

    pub fn failed(cause: impl fmt::Display) -> Self {
        CommandError::Failed(cause.to_string())
    }

    /// 2 for invalid input, 1 for a failure.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            CommandError::Usage(_)
            | CommandError::Start(
                StartError::Settings(_) | StartError::Application(_) | StartError::Listen(_),
            ) => ExitCode::from(2),
            CommandError::Failed(_) | CommandError::Start(_) | CommandError::Reported => ExitCode::from(1),
        }
    }
}

/// One line per error.
impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommandError::Usage(lines) => lines.iter().try_for_each(|line| writeln!(f, "error: {line}")),
            CommandError::Failed(cause) => writeln!(f, "error: {cause}"),
            // Rendered diagnostics start with their own severity.
            CommandError::Start(StartError::Schema(text)) => writeln!(f, "{text}"),
            CommandError::Start(StartError::Application(diagnostics) | StartError::Seed(diagnostics)) => {
                diagnostics.iter().try_for_each(|diagnostic| writeln!(f, "error: {diagnostic}"))
            }
            CommandError::Start(error) => writeln!(f, "error: {error}"),
            CommandError::Reported => Ok(()),
        }
    }
}
