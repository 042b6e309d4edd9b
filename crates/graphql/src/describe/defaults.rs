//! Default values of arguments and input fields as GraphQL literals, for introspection.

use apollo_compiler::Schema;
use apollo_compiler::ast::{InputValueDefinition, Type};
use apollo_compiler::schema::ExtendedType;

use trefoil_model::{Scalar, Value};

use crate::plan::input;

/// The coerced default of an argument or input field, as graphql-js prints it.
pub fn default_literal(schema: &Schema, definition: &InputValueDefinition) -> Option<String> {
    let value = input::constant_value(schema, &definition.ty, definition.default_value.as_ref()?);
    typed_literal(schema, &definition.ty, &value)
}

/// `None` for null in a non-null type.
fn typed_literal(schema: &Schema, ty: &Type, value: &Value) -> Option<String> {
    match (value.is_null(), ty.is_list(), value.as_list()) {
        (true, _, _) => (!ty.is_non_null()).then(|| "null".to_owned()),
        (false, true, Some(items)) => {
            let items = items.iter().filter_map(|item| typed_literal(schema, ty.item_type(), item));
            Some(format!("[{}]", items.collect::<Vec<_>>().join(", ")))
        }
        (false, true, None) => typed_literal(schema, ty.item_type(), value),
        (false, false, _) => named_literal(schema, ty.inner_named_type(), value),
    }
}

fn named_literal(schema: &Schema, name: &str, value: &Value) -> Option<String> {
    match (schema.types.get(name)?, value) {
        (ExtendedType::InputObject(definition), Value::Object(fields)) => {
            let fields = fields.iter().filter_map(|(name, value)| {
                let ty = &definition.fields.get(name.as_str())?.ty;
                Some(format!("{name}: {}", typed_literal(schema, ty, value)?))
            });
            Some(format!("{{{}}}", fields.collect::<Vec<_>>().join(", ")))
        }
        (ExtendedType::Enum(_), Value::String(text)) => Some(text.clone()),
        (_, Value::String(text)) if name == "ID" && is_integer(text) => Some(text.clone()),
        // `Long` and `Decimal` are serialised as strings.
        (_, Value::Int(number)) if is_number_as_text(name) => Some(format!("\"{number}\"")),
        (_, Value::Number(digits)) if is_number_as_text(name) => Some(format!("\"{digits}\"")),
        (_, value) => Some(untyped_literal(value)),
    }
}

fn is_number_as_text(type_name: &str) -> bool {
    Scalar::from_name(type_name).is_some_and(Scalar::is_number_as_text)
}

fn untyped_literal(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Number(digits) => js_number(digits),
        Value::String(text) => quote_string(text),
        Value::List(items) => {
            format!("[{}]", items.iter().map(untyped_literal).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name}: {}", untyped_literal(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
    }
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits == "0"
        || (digits.bytes().all(|b| b.is_ascii_digit()) && !digits.is_empty() && !digits.starts_with('0'))
}

/// A number as JavaScript prints it, with an exponent only outside 1e-6..1e21.
fn js_number(digits: &str) -> String {
    let Ok(number) = digits.parse::<f64>() else { return digits.to_owned() };
    if number == 0.0 || (1e-6..1e21).contains(&number.abs()) {
        return number.to_string();
    }
    let text = format!("{number:e}");
    if number.abs() < 1.0 { text } else { text.replace('e', "e+") }
}

fn quote_string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_printed_as_in_graphql_js() {
        let table = [
            ("a: Int = 7", Some("7")),
            ("a: Float = 1.50", Some("1.5")),
            ("a: Float = 2.0", Some("2")),
            ("a: Float = 1e30", Some("1e+30")),
            ("a: Float = 1e-7", Some("1e-7")),
            ("a: ID = \"12\"", Some("12")),
            ("a: ID = \"012\"", Some("\"012\"")),
            ("a: String = \"\"\"two\n\\\"\"\"lines\"\"\"", Some("\"two\\n\\\"\\\"\\\"lines\"")),
            ("a: String = null", Some("null")),
            ("a: [Int!] = 3", Some("[3]")),
            ("a: E = X", Some("X")),
            ("a: I = {y: [1.50]}", Some("{x: 0.5, y: [1.5]}")),
            ("a: Decimal = 1.50", Some("\"1.50\"")),
            ("a: Int", None),
        ];
        for (argument, expected) in table {
            let sdl = format!(
                "type Query {{ f({argument}): Int }} enum E {{ X }} input I {{ x: Float! = 0.5 y: [Float] z: Int }} scalar Decimal"
            );
            let schema = Schema::parse(sdl, "test").expect("a schema");
            let field = schema.type_field("Query", "f").expect("the field");
            assert_eq!(default_literal(&schema, &field.arguments[0]).as_deref(), expected, "{argument}");
        }
    }
}
