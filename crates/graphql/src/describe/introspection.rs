//! What the schema says about itself: the fields of `__schema` and `__type`, as graphql-js resolves them.

use std::borrow::Cow;

use apollo_compiler::Schema;
use apollo_compiler::ast::{
    DirectiveDefinition, DirectiveList, EnumValueDefinition, FieldDefinition, InputValueDefinition, Type,
};
use apollo_compiler::schema::ExtendedType;

use crate::describe::defaults;
use crate::execute::path::At;
use crate::execute::write::{Writer, Wrote};
use crate::plan::input;
use crate::plan::shape::{Field, From, Output, Slot};
use crate::plan::variables::Variables;
use crate::response_error;
use trefoil_model::error::Result;

/// The schema, with what the arguments of a request need.
pub struct Introspection<'a> {
    pub schema: &'a Schema,
    pub variables: &'a Variables,
}

/// Something of the schema that has fields.
enum Thing<'a> {
    Schema,
    Type(&'a ExtendedType),
    /// A list, or a type that is not null.
    Wrapper(Type),
    Field(&'a FieldDefinition),
    Input(&'a InputValueDefinition),
    EnumValue(&'a EnumValueDefinition),
    Directive(&'a DirectiveDefinition),
}

/// What a field of it is.
enum Found<'a> {
    Nothing,
    Flag(bool),
    Text(Cow<'a, str>),
    Thing(Thing<'a>),
    List(Vec<Found<'a>>),
}

impl<'a> Introspection<'a> {
    /// Writes the root field `__schema` or `__type`.
    pub fn write(&self, writer: &mut Writer, slot: &Slot, arguments: &input::Arguments, at: At) -> Wrote {
        let found = match at.label.name.as_str() {
            "__schema" => Ok(Found::Thing(Thing::Schema)),
            _ => arguments.by_name(self.variables).map(|given| {
                let name = given.iter().find_map(|(_, value)| value.as_str());
                name.map_or(Found::Nothing, |name| self.named(name))
            }),
        };
        self.found(writer, slot, found, at)
    }

    fn found(&self, writer: &mut Writer, slot: &Slot, found: Result<Found>, at: At) -> Wrote {
        match (found, &slot.output) {
            (Err(error), _) => writer.failed(slot.required, &error, at),
            (Ok(Found::Flag(flag)), _) => {
                writer.out.extend_from_slice(if flag { b"true" } else { b"false" });
                Ok(())
            }
            (Ok(Found::Text(text)), _) => {
                response_error::text(&mut writer.out, &text);
                Ok(())
            }
            (Ok(Found::Thing(thing)), Output::Object(object)) => writer.nullable(slot.required, |writer| {
                writer.object(object, at.path, |writer, field, at| self.field(writer, &thing, field, at))
            }),
            (Ok(Found::List(items)), Output::List(item)) => writer.nullable(slot.required, |writer| {
                writer.out.push(b'[');
                for (index, found) in items.into_iter().enumerate() {
                    if index > 0 {
                        writer.out.push(b',');
                    }
                    self.found(writer, item, Ok(found), at.down(&at.path.index(index)))?;
                }
                writer.out.push(b']');
                Ok(())
            }),
            (Ok(Found::Nothing | Found::Thing(_) | Found::List(_)), _) => writer.null(slot.required, at),
        }
    }

    fn field(&self, writer: &mut Writer, thing: &Thing<'a>, field: &Field, at: At) -> Wrote {
        let found = match &field.from {
            From::Typename(name) => {
                writer.out.extend_from_slice(name);
                return Ok(());
            }
            From::Introspection(arguments) => self.include_deprecated(arguments).map(|deprecated| {
                let name = field.label.name.as_str();
                match thing {
                    Thing::Schema => self.of_schema(name),
                    Thing::Type(ty) => self.of_type(ty, name, deprecated),
                    Thing::Wrapper(ty) => self.of_wrapper(ty, name),
                    Thing::Field(field) => self.of_field(field, name, deprecated),
                    Thing::Input(input) => self.of_input(input, name),
                    Thing::EnumValue(value) => self.of_enum_value(value, name),
                    Thing::Directive(directive) => self.of_directive(directive, name, deprecated),
                }
            }),
            From::Column { .. }
            | From::Child(_)
            | From::Property
            | From::Resolver { .. }
            | From::Missing(_)
            | From::Refused(_) => Ok(Found::Nothing),
        };
        self.found(writer, &field.slot, found, at)
    }

    /// The one argument that fields of the schema have.
    fn include_deprecated(&self, arguments: &input::Arguments) -> Result<bool> {
        let given = arguments.by_name(self.variables)?;
        Ok(given.iter().any(|(_, value)| value.as_bool() == Some(true)))
    }

    fn of_schema(&self, name: &str) -> Found<'a> {
        let definition = &self.schema.schema_definition;
        let root = |name: &Option<apollo_compiler::schema::ComponentName>| {
            name.as_ref().map_or(Found::Nothing, |name| self.named(name))
        };
        match name {
            "description" => text(definition.description.as_deref()),
            "types" => things(self.schema.types.values().map(Thing::Type)),
            "queryType" => root(&definition.query),
            "mutationType" => root(&definition.mutation),
            "subscriptionType" => root(&definition.subscription),
            "directives" => things(
                self.schema.directive_definitions.values().map(|directive| Thing::Directive(directive)),
            ),
            _ => Found::Nothing,
        }
    }

    fn of_type(&self, ty: &'a ExtendedType, name: &str, deprecated: bool) -> Found<'a> {
        let (fields, interfaces) = match ty {
            ExtendedType::Object(object) => (Some(&object.fields), Some(&object.implements_interfaces)),
            ExtendedType::Interface(object) => (Some(&object.fields), Some(&object.implements_interfaces)),
            ExtendedType::Scalar(_)
            | ExtendedType::Union(_)
            | ExtendedType::Enum(_)
            | ExtendedType::InputObject(_) => (None, None),
        };
        match (name, ty) {
            ("kind", _) => Found::Text(Cow::Borrowed(kind(ty))),
            ("name", _) => text(Some(ty.name())),
            ("description", _) => text(ty.description().map(|text| text.as_str())),
            ("specifiedByURL", ExtendedType::Scalar(scalar)) => {
                let url = scalar.directives.get("specifiedBy");
                text(url.and_then(|url| url.specified_argument_by_name("url")).and_then(|url| url.as_str()))
            }
            ("fields", _) => fields.map_or(Found::Nothing, |fields| {
                let shown = fields.values().filter(|field| deprecated || !self.is_old(&field.directives));
                things(shown.map(|field| Thing::Field(field)))
            }),
            ("interfaces", _) => interfaces.map_or(Found::Nothing, |interfaces| {
                Found::List(interfaces.iter().map(|name| self.named(name)).collect())
            }),
            ("possibleTypes", ExtendedType::Union(union)) => {
                Found::List(union.members.iter().map(|name| self.named(name)).collect())
            }
            ("possibleTypes", ExtendedType::Interface(interface)) => {
                let types = self.schema.types.values();
                things(types.filter(|ty| implements(ty, &interface.name)).map(Thing::Type))
            }
            ("enumValues", ExtendedType::Enum(definition)) => {
                let values = definition.values.values();
                let shown = values.filter(|value| deprecated || !self.is_old(&value.directives));
                things(shown.map(|value| Thing::EnumValue(value)))
            }
            ("inputFields", ExtendedType::InputObject(object)) => {
                self.inputs(object.fields.values().map(|field| &***field), deprecated)
            }
            _ => Found::Nothing,
        }
    }

    fn of_wrapper(&self, ty: &Type, name: &str) -> Found<'a> {
        match (name, ty) {
            ("kind", Type::List(_)) => text(Some("LIST")),
            ("kind", _) => text(Some("NON_NULL")),
            ("ofType", Type::List(item)) => self.ty(item),
            ("ofType", _) => self.ty(&ty.clone().nullable()),
            _ => Found::Nothing,
        }
    }

    fn of_field(&self, field: &'a FieldDefinition, name: &str, deprecated: bool) -> Found<'a> {
        match name {
            "name" => text(Some(&field.name)),
            "description" => text(field.description.as_deref()),
            "args" => self.inputs(field.arguments.iter().map(|argument| &**argument), deprecated),
            "type" => self.ty(&field.ty),
            _ => self.deprecation(&field.directives, name),
        }
    }

    fn of_input(&self, input: &'a InputValueDefinition, name: &str) -> Found<'a> {
        match name {
            "name" => text(Some(&input.name)),
            "description" => text(input.description.as_deref()),
            "type" => self.ty(&input.ty),
            "defaultValue" => defaults::written(self.schema, input)
                .map_or(Found::Nothing, |default| Found::Text(Cow::Owned(default))),
            _ => self.deprecation(&input.directives, name),
        }
    }

    fn of_enum_value(&self, value: &'a EnumValueDefinition, name: &str) -> Found<'a> {
        match name {
            "name" => text(Some(&value.value)),
            "description" => text(value.description.as_deref()),
            _ => self.deprecation(&value.directives, name),
        }
    }

    fn of_directive(&self, directive: &'a DirectiveDefinition, name: &str, deprecated: bool) -> Found<'a> {
        match name {
            "name" => text(Some(&directive.name)),
            "description" => text(directive.description.as_deref()),
            "isRepeatable" => Found::Flag(directive.repeatable),
            "locations" => {
                Found::List(directive.locations.iter().map(|place| text(Some(place.name()))).collect())
            }
            "args" => self.inputs(directive.arguments.iter().map(|argument| &**argument), deprecated),
            _ => Found::Nothing,
        }
    }

    fn inputs(&self, all: impl Iterator<Item = &'a InputValueDefinition>, deprecated: bool) -> Found<'a> {
        things(all.filter(|input| deprecated || !self.is_old(&input.directives)).map(Thing::Input))
    }

    fn named(&self, name: &str) -> Found<'a> {
        self.schema.types.get(name).map_or(Found::Nothing, |ty| Found::Thing(Thing::Type(ty)))
    }

    fn ty(&self, ty: &Type) -> Found<'a> {
        match ty {
            Type::Named(name) => self.named(name),
            Type::List(_) | Type::NonNullNamed(_) | Type::NonNullList(_) => {
                Found::Thing(Thing::Wrapper(ty.clone()))
            }
        }
    }

    fn deprecation(&self, directives: &'a DirectiveList, name: &str) -> Found<'a> {
        match name {
            "isDeprecated" => Found::Flag(self.is_old(directives)),
            "deprecationReason" => text(self.reason(directives)),
            _ => Found::Nothing,
        }
    }

    fn is_old(&self, directives: &'a DirectiveList) -> bool {
        self.reason(directives).is_some()
    }

    /// Whoever gives null as the reason takes the deprecation back.
    fn reason(&self, directives: &'a DirectiveList) -> Option<&'a str> {
        directives.get("deprecated")?.argument_by_name("reason", self.schema).ok()?.as_str()
    }
}

fn text(text: Option<&str>) -> Found<'_> {
    text.map_or(Found::Nothing, |text| Found::Text(Cow::Borrowed(text)))
}

fn things<'a>(things: impl Iterator<Item = Thing<'a>>) -> Found<'a> {
    Found::List(things.map(Found::Thing).collect())
}

fn implements(ty: &ExtendedType, interface: &str) -> bool {
    ty.as_object().is_some_and(|object| object.implements_interfaces.contains(interface))
}

fn kind(ty: &ExtendedType) -> &'static str {
    match ty {
        ExtendedType::Scalar(_) => "SCALAR",
        ExtendedType::Object(_) => "OBJECT",
        ExtendedType::Interface(_) => "INTERFACE",
        ExtendedType::Union(_) => "UNION",
        ExtendedType::Enum(_) => "ENUM",
        ExtendedType::InputObject(_) => "INPUT_OBJECT",
    }
}
