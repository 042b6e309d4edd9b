//! A file of the application folder, read into memory.

/// `name` is the path within the application folder, such as `graphql/users.graphqls`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    pub name: String,
    pub text: String,
}
