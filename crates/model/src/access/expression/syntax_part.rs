//! The parts of a rule's text, each with its test and where it is written.

use std::ops::Range;

use apollo_compiler::parser::SourceSpan;

use crate::FieldId;
use crate::access::access_rule::{PartJoin, RecordPath, RuleTest};

/// A part of a rule's text with its test.
#[derive(Debug, Clone)]
pub struct SyntaxPart {
    /// The literal that it is written in.
    pub literal: Option<SourceSpan>,
    /// Bytes of the rule's text; `None` for `true` and `false` without quotes.
    pub span: Option<Range<usize>>,
    pub join: PartJoin,
    pub test: RuleTest,
    pub parts: Vec<SyntaxPart>,
}

impl SyntaxPart {
    /// Makes the part of a rule about another record one about the record that leads there.
    pub(super) fn lead_to(&mut self, owner: &RecordPath, relation: FieldId) {
        let test = std::mem::replace(&mut self.test, RuleTest::Constant(false));
        self.test = RuleTest::Related { owner: owner.clone(), relation, test: Box::new(test) };
        self.parts.iter_mut().for_each(|part| part.lead_to(owner, relation));
    }
}
