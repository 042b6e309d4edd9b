//! Why a command did not succeed, and the exit code that says so.

use std::fmt;
use std::process::ExitCode;

use trefoil_server::StartError;

#[derive(Debug)]
pub enum CommandError {
    /// The command line, a setting or the folder that was named cannot be used; a line each.
    Usage(Vec<String>),
    /// Something went wrong while doing what was asked.
    Failed(String),
    /// The server did not start.
    Start(StartError),
    /// `check` found mistakes and has said so.
    Reported,
}

impl CommandError {
    pub fn usage(line: impl Into<String>) -> Self {
        CommandError::Usage(vec![line.into()])
    }

    pub fn failed(cause: impl fmt::Display) -> Self {
        CommandError::Failed(cause.to_string())
    }

    /// 2 says that what was given is wrong, 1 that doing it went wrong.
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

/// One line for each complaint.
impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommandError::Usage(lines) => lines.iter().try_for_each(|line| writeln!(f, "error: {line}")),
            CommandError::Failed(cause) => writeln!(f, "error: {cause}"),
            // Diagnostics bring their own word for what they are.
            CommandError::Start(StartError::Schema(text)) => writeln!(f, "{text}"),
            CommandError::Start(StartError::Application(mistakes) | StartError::Seed(mistakes)) => {
                mistakes.iter().try_for_each(|mistake| writeln!(f, "error: {mistake}"))
            }
            CommandError::Start(error) => writeln!(f, "error: {error}"),
            CommandError::Reported => Ok(()),
        }
    }
}
