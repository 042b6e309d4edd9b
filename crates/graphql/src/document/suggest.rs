//! Suggests the nearest name of the schema for an unknown one.

use apollo_compiler::Schema;
use apollo_compiler::ast::FieldDefinition;
use apollo_compiler::schema::ExtendedType;

use trefoil_model::naming::names::nearest_name;

/// Maximum number of suggestions per document.
pub const MAX_SUGGESTIONS: usize = 20;

/// The nearest name for the unknown one in a message of apollo-compiler, which quotes names and nothing else. `kind` is
/// apollo-compiler's name of the error.
pub fn suggest_name<'a>(schema: &'a Schema, kind: &str, message: &str) -> Option<&'a str> {
    let mut quoted = message.split('"').skip(1).step_by(2);
    let (name, parent) = (quoted.next()?, quoted.next()?);
    match kind {
        "UndefinedField" => nearest_name(name, type_fields(schema, parent)?.map(|field| field.name.as_str())),
        "UndefinedArgument" => {
            let (type_name, field) = parent.split_once('.')?;
            let field = type_fields(schema, type_name)?.find(|candidate| candidate.name == field)?;
            nearest_name(name, field.arguments.iter().map(|argument| argument.name.as_str()))
        }
        _ => None,
    }
}

fn type_fields<'a>(schema: &'a Schema, name: &str) -> Option<impl Iterator<Item = &'a FieldDefinition>> {
    let fields = match schema.types.get(name)? {
        ExtendedType::Object(object) => &object.fields,
        ExtendedType::Interface(interface) => &interface.fields,
        ExtendedType::Scalar(_)
        | ExtendedType::Union(_)
        | ExtendedType::Enum(_)
        | ExtendedType::InputObject(_) => return None,
    };
    Some(fields.values().map(|field| &***field))
}
