//! Parses a rule: a part of the syntax of CEL.
//!
//! `||` binds weaker than `&&`, which binds weaker than `!` and comparisons.

use std::ops::Range;

use crate::ComparisonOp;
use crate::access::expression::rule_error::RuleError;
use crate::access::expression::rule_syntax::{PathName, SyntaxKind, SyntaxNode};
use crate::access::expression::rule_tokens::{RuleSymbol, RuleToken, RuleTokenKind, read_tokens};

/// The greatest length of a rule.
pub const MAX_RULE_CHARACTERS: usize = 2_000;

/// Expressions inside each other, so that the parser's stack is bounded.
const MAX_NESTING: usize = 50;

pub fn parse_rule(text: &str) -> Result<SyntaxNode, RuleError> {
    let length = text.chars().count();
    if length > MAX_RULE_CHARACTERS {
        let message = format!("this rule has {length} characters, more than {MAX_RULE_CHARACTERS}");
        return Err(RuleError::new(0..text.len(), "RULE_LENGTH", message)
            .help("name parts of it with `@rule(name: …, is: …)`"));
    }
    let tokens = read_tokens(text)?;
    if tokens.len() == 1 {
        return Err(RuleError::syntax(0..text.len(), "this rule is empty")
            .help("write true, false or an expression such as `owner == me`"));
    }
    let mut parser = RuleParser { tokens, position: 0, nesting: 0 };
    let parsed = parser.parse_or()?;
    if parser.current().kind != RuleTokenKind::End {
        return Err(parser.unexpected("`&&`, `||` or the end of the rule"));
    }
    Ok(parsed)
}

struct RuleParser {
    tokens: Vec<RuleToken>,
    position: usize,
    nesting: usize,
}

impl RuleParser {
    fn current(&self) -> &RuleToken {
        &self.tokens[self.position]
    }

    fn advance(&mut self) -> RuleToken {
        let token = self.current().clone();
        // The last token stays current.
        self.position = (self.position + 1).min(self.tokens.len() - 1);
        token
    }

    fn take_symbol(&mut self, symbol: RuleSymbol) -> bool {
        let is_next = self.current().kind == RuleTokenKind::Symbol(symbol);
        if is_next {
            self.advance();
        }
        is_next
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is_next = matches!(&self.current().kind, RuleTokenKind::Name(name) if name == word);
        if is_next {
            self.advance();
        }
        is_next
    }

    fn expect_symbol(&mut self, symbol: RuleSymbol, expected: &str) -> Result<(), RuleError> {
        if self.take_symbol(symbol) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    fn expect_name(&mut self, expected: &str) -> Result<PathName, RuleError> {
        let span = self.current().span.clone();
        match &self.current().kind {
            RuleTokenKind::Name(name) => {
                let name = name.clone();
                self.advance();
                Ok(PathName { name, span })
            }
            RuleTokenKind::Number(_)
            | RuleTokenKind::Text(_)
            | RuleTokenKind::Symbol(_)
            | RuleTokenKind::End => Err(self.unexpected(expected)),
        }
    }

    fn unexpected(&self, expected: &str) -> RuleError {
        let token = self.current();
        let found =
            if token.kind == RuleTokenKind::End { "the rule ends here" } else { "this is in its place" };
        RuleError::syntax(token.span.clone(), format!("expected {expected}")).label(found)
    }

    fn parse_or(&mut self) -> Result<SyntaxNode, RuleError> {
        self.enter_level()?;
        let parsed = self.parse_operands(RuleSymbol::Or, RuleParser::parse_and, SyntaxKind::Or);
        self.nesting -= 1;
        parsed
    }

    fn enter_level(&mut self) -> Result<(), RuleError> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            let span = self.current().span.clone();
            return Err(RuleError::syntax(span, format!("nested more than {MAX_NESTING} levels deep")));
        }
        Ok(())
    }

    fn parse_and(&mut self) -> Result<SyntaxNode, RuleError> {
        self.parse_operands(RuleSymbol::And, RuleParser::parse_not, SyntaxKind::And)
    }

    /// Operands with the same operator between them; one alone is itself.
    fn parse_operands(
        &mut self,
        operator: RuleSymbol,
        parse_operand: fn(&mut RuleParser) -> Result<SyntaxNode, RuleError>,
        join: fn(Vec<SyntaxNode>) -> SyntaxKind,
    ) -> Result<SyntaxNode, RuleError> {
        let first = parse_operand(self)?;
        if self.current().kind != RuleTokenKind::Symbol(operator) {
            return Ok(first);
        }
        let start = first.span.start;
        let mut operands = vec![first];
        while self.take_symbol(operator) {
            operands.push(parse_operand(self)?);
        }
        let span = start..self.last_end();
        Ok(SyntaxNode { kind: join(operands), span })
    }

    fn parse_not(&mut self) -> Result<SyntaxNode, RuleError> {
        let start = self.current().span.start;
        let mut negations = 0;
        while self.take_symbol(RuleSymbol::Not) {
            negations += 1;
        }
        let operand = self.parse_comparison()?;
        if negations % 2 == 0 {
            return Ok(operand);
        }
        Ok(SyntaxNode { kind: SyntaxKind::Not(Box::new(operand)), span: start..self.last_end() })
    }

    fn parse_comparison(&mut self) -> Result<SyntaxNode, RuleError> {
        let left = self.parse_value()?;
        let start = left.span.start;
        if self.take_word("in") {
            let list = Box::new(self.parse_value()?);
            let kind = SyntaxKind::In { item: Box::new(left), list };
            return Ok(SyntaxNode { kind, span: start..self.last_end() });
        }
        let RuleTokenKind::Symbol(symbol) = self.current().kind else { return Ok(left) };
        let Some(op) = comparison_op(symbol) else { return Ok(left) };
        self.advance();
        let right = Box::new(self.parse_value()?);
        let kind = SyntaxKind::Compare { left: Box::new(left), op, right };
        Ok(SyntaxNode { kind, span: start..self.last_end() })
    }

    fn parse_value(&mut self) -> Result<SyntaxNode, RuleError> {
        let span = self.current().span.clone();
        let kind = match &self.current().kind {
            RuleTokenKind::Number(digits) => SyntaxKind::Number(digits.clone()),
            RuleTokenKind::Text(text) => SyntaxKind::Text(text.clone()),
            RuleTokenKind::Symbol(RuleSymbol::OpenParenthesis) => {
                self.advance();
                let inner = self.parse_or()?;
                self.expect_symbol(RuleSymbol::CloseParenthesis, "`)`")?;
                return Ok(SyntaxNode { span: span.start..self.last_end(), ..inner });
            }
            RuleTokenKind::Symbol(RuleSymbol::OpenBracket) => return self.parse_list(span),
            RuleTokenKind::Name(_) => return self.parse_name(span),
            RuleTokenKind::Symbol(_) | RuleTokenKind::End => {
                return Err(self.unexpected("a field, a value or a condition"));
            }
        };
        self.advance();
        Ok(SyntaxNode { kind, span })
    }

    fn parse_list(&mut self, span: Range<usize>) -> Result<SyntaxNode, RuleError> {
        self.enter_level()?;
        self.advance();
        let mut items = Vec::new();
        while self.current().kind != RuleTokenKind::Symbol(RuleSymbol::CloseBracket) {
            items.push(self.parse_value()?);
            if !self.take_symbol(RuleSymbol::Comma) {
                break;
            }
        }
        self.expect_symbol(RuleSymbol::CloseBracket, "`,` or `]`")?;
        self.nesting -= 1;
        Ok(SyntaxNode { kind: SyntaxKind::List(items), span: span.start..self.last_end() })
    }

    /// A path, a call, or a call at the end of a path.
    fn parse_name(&mut self, span: Range<usize>) -> Result<SyntaxNode, RuleError> {
        let mut path = vec![self.expect_name("a name")?];
        if self.current().kind == RuleTokenKind::Symbol(RuleSymbol::OpenParenthesis) {
            let function = path.remove(0);
            let kind = self.parse_call(&function)?;
            return Ok(SyntaxNode { kind, span: span.start..self.last_end() });
        }
        while self.take_symbol(RuleSymbol::Dot) {
            let name = self.expect_name("the name of a field")?;
            if self.current().kind != RuleTokenKind::Symbol(RuleSymbol::OpenParenthesis) {
                path.push(name);
                continue;
            }
            let kind = self.parse_exists(path, &name)?;
            return Ok(SyntaxNode { kind, span: span.start..self.last_end() });
        }
        Ok(SyntaxNode { kind: SyntaxKind::Path(path), span: span.start..self.last_end() })
    }

    fn parse_exists(&mut self, list: Vec<PathName>, function: &PathName) -> Result<SyntaxKind, RuleError> {
        if function.name != "exists" {
            return Err(RuleError::syntax(
                function.span.clone(),
                format!("there is no `.{}(…)`", function.name),
            )
            .label("unknown function")
            .help("write `list.exists(x, x.field == …)` for a test of the records of a list"));
        }
        self.advance();
        let variable = self.expect_name("a name for the record, as in `exists(m, m.user == me)`")?;
        self.expect_symbol(RuleSymbol::Comma, "`,` and a condition")?;
        let test = Box::new(self.parse_or()?);
        self.expect_symbol(RuleSymbol::CloseParenthesis, "`)`")?;
        Ok(SyntaxKind::Exists { list, variable, test })
    }

    fn parse_call(&mut self, function: &PathName) -> Result<SyntaxKind, RuleError> {
        self.advance();
        let kind = match function.name.as_str() {
            "role" => {
                let mut roles = vec![self.expect_name("the name of a role, without quotes")?];
                while self.take_symbol(RuleSymbol::Comma) {
                    roles.push(self.expect_name("the name of a role, without quotes")?);
                }
                SyntaxKind::Role(roles)
            }
            "can" => {
                let action = self.expect_name("read, create, update or delete")?;
                self.expect_symbol(RuleSymbol::Comma, "`,` and a reference, as in `can(read, post)`")?;
                let mut record = vec![self.expect_name("a reference")?];
                while self.take_symbol(RuleSymbol::Dot) {
                    record.push(self.expect_name("a reference")?);
                }
                SyntaxKind::Can { action, record }
            }
            "claim" => match self.advance() {
                RuleToken { kind: RuleTokenKind::Text(path), .. } => SyntaxKind::Claim(path),
                token => {
                    return Err(RuleError::syntax(token.span, "expected the path of a claim in quotes")
                        .label("this is in its place")
                        .help("write `claim('org.id')`"));
                }
            },
            _ => {
                return Err(RuleError::syntax(function.span.clone(), format!("there is no `{}(…)`", function.name))
                    .label("unknown function")
                    .help("the functions are `role(A)`, `can(read, reference)`, `claim('name')` and `list.exists(x, …)`"));
            }
        };
        self.expect_symbol(RuleSymbol::CloseParenthesis, "`)`")?;
        Ok(kind)
    }

    /// The end of the token before the current one.
    fn last_end(&self) -> usize {
        self.position.checked_sub(1).map_or(0, |last| self.tokens[last].span.end)
    }
}

fn comparison_op(symbol: RuleSymbol) -> Option<ComparisonOp> {
    match symbol {
        RuleSymbol::Equal => Some(ComparisonOp::Eq),
        RuleSymbol::NotEqual => Some(ComparisonOp::Ne),
        RuleSymbol::Less => Some(ComparisonOp::Lt),
        RuleSymbol::LessOrEqual => Some(ComparisonOp::Lte),
        RuleSymbol::Greater => Some(ComparisonOp::Gt),
        RuleSymbol::GreaterOrEqual => Some(ComparisonOp::Gte),
        RuleSymbol::Or
        | RuleSymbol::And
        | RuleSymbol::Not
        | RuleSymbol::Dot
        | RuleSymbol::Comma
        | RuleSymbol::OpenParenthesis
        | RuleSymbol::CloseParenthesis
        | RuleSymbol::OpenBracket
        | RuleSymbol::CloseBracket => None,
    }
}
