//! Suggests a declaration for an unknown directive, from the way it is used.

use apollo_compiler::ast::{self, Directive, DirectiveLocation};
use apollo_compiler::parser::SourceSpan;
use apollo_compiler::schema::ExtendedType;
use apollo_compiler::{Node, Schema};

/// A declaration such as `directive @key(fields: String) on OBJECT`.
pub(crate) fn suggested_declaration(schema: &Schema, name: &str, span: Option<SourceSpan>) -> String {
    let Some((directive, location)) =
        directive_uses(schema).into_iter().find(|(used, _)| used.location() == span)
    else {
        return format!("directive @{name} on …");
    };
    let arguments: Vec<String> = directive
        .arguments
        .iter()
        .map(|argument| format!("{}: {}", argument.name, literal_type(&argument.value)))
        .collect();
    let arguments = if arguments.is_empty() { String::new() } else { format!("({})", arguments.join(", ")) };
    format!("directive @{name}{arguments} on {}", location.name())
}

fn literal_type(value: &ast::Value) -> String {
    match value {
        ast::Value::Int(_) => "Int".into(),
        ast::Value::Float(_) => "Float".into(),
        ast::Value::Boolean(_) => "Boolean".into(),
        ast::Value::String(_) | ast::Value::Null => "String".into(),
        ast::Value::List(items) => {
            format!("[{}]", items.first().map_or("String".into(), |item| literal_type(item)))
        }
        ast::Value::Enum(_) | ast::Value::Object(_) | ast::Value::Variable(_) => "…".into(),
    }
}

/// A location in words: `an enum value` for `ENUM_VALUE`.
pub(crate) fn location_phrase(location: &str) -> &'static str {
    match location {
        "SCHEMA" => "the schema",
        "SCALAR" => "a scalar",
        "OBJECT" => "an object type",
        "FIELD_DEFINITION" => "a field",
        "ARGUMENT_DEFINITION" => "an argument",
        "INTERFACE" => "an interface",
        "UNION" => "a union",
        "ENUM" => "an enum",
        "ENUM_VALUE" => "an enum value",
        "INPUT_OBJECT" => "an input type",
        "INPUT_FIELD_DEFINITION" => "a field of an input type",
        _ => "this",
    }
}

/// Every use of a directive in the schema, with its location.
pub(crate) fn directive_uses(schema: &Schema) -> Vec<(&Node<Directive>, DirectiveLocation)> {
    let mut uses: Vec<(&Node<Directive>, DirectiveLocation)> = Vec::new();
    let mut add = |list: &mut dyn Iterator<Item = _>, location| {
        uses.extend(list.map(|directive| (directive, location)))
    };
    let root = &schema.schema_definition.directives;
    add(&mut root.iter().map(|directive| &directive.node), DirectiveLocation::Schema);
    for ty in schema.types.values() {
        let location = match ty {
            ExtendedType::Scalar(_) => DirectiveLocation::Scalar,
            ExtendedType::Object(_) => DirectiveLocation::Object,
            ExtendedType::Interface(_) => DirectiveLocation::Interface,
            ExtendedType::Union(_) => DirectiveLocation::Union,
            ExtendedType::Enum(_) => DirectiveLocation::Enum,
            ExtendedType::InputObject(_) => DirectiveLocation::InputObject,
        };
        add(&mut ty.directives().iter().map(|directive| &directive.node), location);
        let fields = match ty {
            ExtendedType::Object(ty) => Some(&ty.fields),
            ExtendedType::Interface(ty) => Some(&ty.fields),
            ExtendedType::Scalar(_)
            | ExtendedType::Union(_)
            | ExtendedType::Enum(_)
            | ExtendedType::InputObject(_) => None,
        };
        for field in fields.into_iter().flat_map(|fields| fields.values()) {
            add(&mut field.directives.iter(), DirectiveLocation::FieldDefinition);
            let arguments = field.arguments.iter().flat_map(|argument| argument.directives.iter());
            add(&mut { arguments }, DirectiveLocation::ArgumentDefinition);
        }
        if let ExtendedType::Enum(ty) = ty {
            let values = ty.values.values().flat_map(|value| value.directives.iter());
            add(&mut { values }, DirectiveLocation::EnumValue);
        }
        if let ExtendedType::InputObject(ty) = ty {
            let inputs = ty.fields.values().flat_map(|field| field.directives.iter());
            add(&mut { inputs }, DirectiveLocation::InputFieldDefinition);
        }
    }
    uses
}
