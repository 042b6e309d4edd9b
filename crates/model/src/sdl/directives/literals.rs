//! Literals in the arguments of directives.

use apollo_compiler::ast;

/// How a number may be written in the argument of a directive.
#[derive(PartialEq)]
pub(super) enum NumberSyntax {
    NumberOnly,
    NumberOrText,
}

pub(super) fn number_digits(value: &ast::Value, syntax: NumberSyntax) -> Option<&str> {
    match value {
        ast::Value::Int(digits) => Some(digits.as_str()),
        ast::Value::Float(digits) => Some(digits.as_str()),
        ast::Value::String(digits) if syntax == NumberSyntax::NumberOrText => Some(digits),
        ast::Value::Null
        | ast::Value::Enum(_)
        | ast::Value::Variable(_)
        | ast::Value::String(_)
        | ast::Value::Boolean(_)
        | ast::Value::List(_)
        | ast::Value::Object(_) => None,
    }
}

/// The kind of literal with its article, for messages.
pub(super) fn literal_noun(value: &ast::Value) -> &'static str {
    match value {
        ast::Value::Null => "null",
        ast::Value::Enum(_) => "an enum value",
        ast::Value::Variable(_) => "a variable",
        ast::Value::String(_) => "text",
        ast::Value::Float(_) => "a fractional number",
        ast::Value::Int(digits) if digits.as_str().starts_with('-') => "a negative number",
        ast::Value::Int(_) => "a whole number",
        ast::Value::Boolean(_) => "a boolean",
        ast::Value::List(_) => "a list",
        ast::Value::Object(_) => "an object",
    }
}
