//! What commands print and write: their output, notes beside it, and files.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use crate::command_error::CommandError;

/// Writes the output of a command to standard output; a closed pipe is not an error.
pub fn print_output(text: &str) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CommandError::failed(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes a message to standard error, since standard output is for the output of the command.
pub fn print_note(text: &str) {
    if !text.is_empty() {
        // If standard error is closed, there is nowhere to report it.
        let _ = writeln!(io::stderr().lock(), "{text}");
    }
}

/// Columns as wide as their longest cell.
pub fn text_table<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// Writes a file and the folders above it.
pub fn write_file(path: &Path, text: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, text)
}
