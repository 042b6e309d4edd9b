//! Notes the parts of a rule while it is resolved.

use std::ops::Range;

use crate::access::access_rule::{PartJoin, RuleTest};
use crate::access::expression::rule_scope::{Resolved, RuleResolutionError, RuleResolver};
use crate::access::expression::rule_sources::{RuleSource, WrittenRule};
use crate::access::expression::rule_syntax::{SyntaxKind, SyntaxNode};
use crate::access::expression::syntax_part::SyntaxPart;

impl RuleResolver<'_> {
    pub(super) fn resolve_whole(&mut self, rule: &RuleSource) -> Resolved<SyntaxPart> {
        self.resolve_source(rule)?;
        self.parts.pop().ok_or(RuleResolutionError::Elsewhere)
    }

    pub(super) fn resolve_source(&mut self, rule: &RuleSource) -> Resolved<RuleTest> {
        let outside = std::mem::replace(&mut self.literal, rule.literal);
        let resolved = match &rule.rule {
            WrittenRule::Constant(value) => {
                let test = RuleTest::Constant(*value);
                self.add_part(None, PartJoin::Whole, &test, Vec::new());
                Ok(test)
            }
            WrittenRule::Expression(syntax) => self.resolve_test(syntax),
        };
        self.literal = outside;
        resolved
    }

    pub(super) fn resolve_test(&mut self, node: &SyntaxNode) -> Resolved<RuleTest> {
        let first = self.parts.len();
        let test = self.resolve_node(node)?;
        let parts = self.parts.split_off(first);
        let join = match node.kind {
            SyntaxKind::Or(_) => PartJoin::Any,
            SyntaxKind::And(_) => PartJoin::All,
            SyntaxKind::Not(_) => PartJoin::Not,
            SyntaxKind::Compare { .. }
            | SyntaxKind::In { .. }
            | SyntaxKind::Path(_)
            | SyntaxKind::Exists { .. }
            | SyntaxKind::Role(_)
            | SyntaxKind::Can { .. }
            | SyntaxKind::Claim(_)
            | SyntaxKind::Number(_)
            | SyntaxKind::Text(_)
            | SyntaxKind::List(_) => PartJoin::Whole,
        };
        self.add_part(Some(node.span.clone()), join, &test, parts);
        Ok(test)
    }

    fn add_part(
        &mut self,
        span: Option<Range<usize>>,
        join: PartJoin,
        test: &RuleTest,
        parts: Vec<SyntaxPart>,
    ) {
        self.parts.push(SyntaxPart { literal: self.literal, span, join, test: test.clone(), parts });
    }
}
