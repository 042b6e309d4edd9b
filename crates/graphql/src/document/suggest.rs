//! Suggests the nearest name of the schema for an unknown one.

use apollo_compiler::Schema;
use apollo_compiler::ast::FieldDefinition;
use apollo_compiler::schema::ExtendedType;

use trefoil_model::naming::names::nearest_name;

/// Maximum number of suggestions per document.
pub const MAX_SUGGESTIONS: usize = 20;

/// A name that the schema does not have, and where it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    pub name: String,
    pub place: NamePlace,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamePlace {
    /// A field of this type.
    Field(String),
    /// An argument of a field of this type.
    Argument(String, String),
    /// A field of this input object.
    InputField(String),
    /// A value of this enum.
    EnumValue(String),
}

impl UnknownName {
    /// The unknown name in a message of apollo-compiler, which quotes names and nothing else. `kind` is
    /// apollo-compiler's name of the error.
    pub fn in_message(kind: &str, message: &str) -> Option<UnknownName> {
        let mut quoted = message.split('"').skip(1).step_by(2);
        let (name, parent) = (quoted.next()?, quoted.next()?);
        let place = match kind {
            "UndefinedField" => NamePlace::Field(parent.to_owned()),
            "UndefinedInputValue" => NamePlace::InputField(parent.to_owned()),
            "UndefinedEnumValue" => NamePlace::EnumValue(parent.to_owned()),
            "UndefinedArgument" => {
                let (type_name, field) = parent.split_once('.')?;
                NamePlace::Argument(type_name.to_owned(), field.to_owned())
            }
            _ => return None,
        };
        Some(UnknownName { name: name.to_owned(), place })
    }

    /// The end of a message that offers the nearest name of a schema.
    pub fn hint(&self, schema: &Schema) -> Option<String> {
        let name = self.nearest(schema)?;
        Some(match &self.place {
            NamePlace::EnumValue(_) => format!(" Did you mean the enum value \"{name}\"?"),
            NamePlace::Field(_) | NamePlace::Argument(..) | NamePlace::InputField(_) => {
                format!(" Did you mean \"{name}\"?")
            }
        })
    }

    fn nearest<'s>(&self, schema: &'s Schema) -> Option<&'s str> {
        let name = &self.name;
        match &self.place {
            NamePlace::Field(parent) => {
                nearest_name(name, type_fields(schema, parent)?.map(|field| field.name.as_str()))
            }
            NamePlace::Argument(parent, field) => {
                let field =
                    type_fields(schema, parent)?.find(|candidate| candidate.name.as_str() == field)?;
                nearest_name(name, field.arguments.iter().map(|argument| argument.name.as_str()))
            }
            NamePlace::InputField(parent) => {
                let object = schema.get_input_object(parent)?;
                nearest_name(name, object.fields.keys().map(|name| name.as_str()))
            }
            NamePlace::EnumValue(parent) => {
                nearest_name(name, schema.get_enum(parent)?.values.keys().map(|name| name.as_str()))
            }
        }
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
