//! A file of the application folder, read into memory, and positions in it.

use std::fmt;

/// `name` is the path within the application folder, such as `graphql/users.graphqls`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    pub name: String,
    pub text: String,
}

/// A position in a schema file; lines and columns count from 1.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceLocation {
    pub file: String,
    pub line: usize,
    pub column: usize,
}

/// `graphql/users.graphqls:12`, for the log.
impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
