//! Why a command did not succeed, and the exit code that says so.

use std::fmt;
use std::process::ExitCode;

use trefoil_server::StartError;

#[derive(Debug)]
pub enum Failure {
    /// The command line, a setting or the folder that was named cannot be used; a line each.
    Usage(Vec<String>),
    /// Something went wrong while doing what was asked.
    Run(String),
    /// The server did not start.
    Start(StartError),
    /// `check` found mistakes and has said so.
    Reported,
}

impl Failure {
    pub fn usage(line: impl Into<String>) -> Self {
        Failure::Usage(vec![line.into()])
    }

    pub fn run(cause: impl fmt::Display) -> Self {
        Failure::Run(cause.to_string())
    }

    /// 2 says that what was given is wrong, 1 that doing it went wrong.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Usage(_)
            | Failure::Start(StartError::Settings(_) | StartError::Application(_) | StartError::Listen(_)) => {
                ExitCode::from(2)
            }
            Failure::Run(_) | Failure::Start(_) | Failure::Reported => ExitCode::from(1),
        }
    }
}

/// One line for each complaint.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(lines) => lines.iter().try_for_each(|line| writeln!(f, "error: {line}")),
            Failure::Run(cause) => writeln!(f, "error: {cause}"),
            // Diagnostics bring their own word for what they are.
            Failure::Start(StartError::Schema(text)) => writeln!(f, "{text}"),
            Failure::Start(StartError::Application(mistakes) | StartError::Seed(mistakes)) => {
                mistakes.iter().try_for_each(|mistake| writeln!(f, "error: {mistake}"))
            }
            Failure::Start(error) => writeln!(f, "error: {error}"),
            Failure::Reported => Ok(()),
        }
    }
}
