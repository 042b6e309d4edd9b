//! Mistakes in rules that are found in several places.

use std::ops::Range;

use crate::FieldId;
use crate::access::expression::rule_error::RuleError;
use crate::access::expression::rule_scope::MAX_REFERENCES;
use crate::access::expression::rule_syntax::{PathName, SyntaxNode};
use crate::access::expression::value_kind::{TypedOperand, TypedValue};
use crate::naming::names;

pub(super) fn path_span(path: &[PathName]) -> Range<usize> {
    let start = path.first().map_or(0, |name| name.span.start);
    start..path.last().map_or(start, |name| name.span.end)
}

pub(super) fn check_length(references: &[FieldId], span: &Range<usize>) -> Result<(), RuleError> {
    if references.len() <= MAX_REFERENCES {
        return Ok(());
    }
    let message = format!("this path has {} references, more than {MAX_REFERENCES}", references.len());
    Err(RuleError::new(span.clone(), "RULE_LENGTH", message))
}

pub(super) fn unknown_field<'n>(
    name: &PathName,
    owner: &str,
    known: impl Iterator<Item = &'n str>,
) -> RuleError {
    let help = names::nearest_name(&name.name, known).map(|near| format!("did you mean `{near}`?"));
    let message = format!("`{owner}` has no field `{}`", name.name);
    RuleError { help, ..RuleError::new(name.span.clone(), "RULE_NAME", message).label("unknown field") }
}

pub(super) fn list_misuse(path: &[PathName]) -> RuleError {
    let written: Vec<&str> = path.iter().map(|name| name.name.as_str()).collect();
    let list = written.join(".");
    RuleError::new(path_span(path), "RULE_TYPE", format!("`{list}` is a list of records"))
        .label("a list")
        .help(format!("write `{list}.exists(x, x.… == …)`"))
}

pub(super) fn no_condition(node: &SyntaxNode, typed: &TypedValue) -> RuleError {
    let message = match &typed.value {
        TypedOperand::Name(name) => {
            return RuleError::new(node.span.clone(), "RULE_NAME", format!("there is no `{name}`"))
                .label("unknown name");
        }
        TypedOperand::Null => "null is not a condition".to_owned(),
        TypedOperand::Value(_) | TypedOperand::Literal(_) => {
            format!("a value of type {} is not a condition", typed.kind)
        }
    };
    RuleError::new(node.span.clone(), "RULE_TYPE", message)
        .label("neither true nor false")
        .help("compare it with `==`, `!=`, `<` or `in`")
}

pub(super) fn compared_condition(node: &SyntaxNode) -> RuleError {
    RuleError::new(node.span.clone(), "RULE_TYPE", "a condition cannot be compared").label("true or false")
}

pub(super) fn constant_comparison(span: Range<usize>) -> RuleError {
    RuleError::new(span, "RULE_TYPE", "this comparison is about no record and no actor")
}
