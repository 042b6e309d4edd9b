//! What was probably meant by a name that the schema does not have.

use apollo_compiler::Schema;
use apollo_compiler::ast::FieldDefinition;
use apollo_compiler::schema::ExtendedType;

use trefoil_model::naming::names::nearest_name;

/// Complaints of one document that get a suggestion: whoever is that far off needs the schema.
pub const MAX_SUGGESTIONS: usize = 20;

/// The nearest name for the one that this sentence of apollo-compiler complains about: it gives its names in quotes
/// and nowhere else. `kind` is how it calls the error.
pub fn suggest_name<'a>(schema: &'a Schema, kind: &str, sentence: &str) -> Option<&'a str> {
    let mut quoted = sentence.split('"').skip(1).step_by(2);
    let (name, place) = (quoted.next()?, quoted.next()?);
    match kind {
        "UndefinedField" => nearest_name(name, type_fields(schema, place)?.map(|field| field.name.as_str())),
        "UndefinedArgument" => {
            let (of, field) = place.split_once('.')?;
            let field = type_fields(schema, of)?.find(|known| known.name == field)?;
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
