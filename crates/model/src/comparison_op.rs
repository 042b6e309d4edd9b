//! The comparisons of two values.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparisonOp {
    /// Null equals null.
    Eq,
    Ne,
    Lt,
    Lte,
    Gt,
    Gte,
}
