//! One schema file as it was read.

/// A file of the application folder; `name` is its path within, such as `graphql/users.graphqls`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    pub name: String,
    pub text: String,
}
