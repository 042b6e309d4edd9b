//! The syntax tree of a rule: what is written, before names are looked up.

use std::ops::Range;

use crate::ComparisonOp;

#[derive(Debug, Clone, PartialEq)]
pub struct SyntaxNode {
    pub kind: SyntaxKind,
    /// Bytes of the rule's text.
    pub span: Range<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum SyntaxKind {
    /// At least two.
    Or(Vec<SyntaxNode>),
    /// At least two.
    And(Vec<SyntaxNode>),
    Not(Box<SyntaxNode>),
    Compare {
        left: Box<SyntaxNode>,
        op: ComparisonOp,
        right: Box<SyntaxNode>,
    },
    In {
        item: Box<SyntaxNode>,
        list: Box<SyntaxNode>,
    },
    /// `author.team.name`; also a single name, whatever it means.
    Path(Vec<PathName>),
    /// `members.exists(m, m.user == me)`
    Exists {
        list: Vec<PathName>,
        variable: PathName,
        test: Box<SyntaxNode>,
    },
    /// `role(A, B)`
    Role(Vec<PathName>),
    /// `can(read, post)`
    Can {
        action: PathName,
        record: Vec<PathName>,
    },
    /// `claim("org.id")`
    Claim(String),
    Number(String),
    Text(String),
    /// `[A, B]`
    List(Vec<SyntaxNode>),
}

/// A name with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathName {
    pub name: String,
    pub span: Range<usize>,
}
