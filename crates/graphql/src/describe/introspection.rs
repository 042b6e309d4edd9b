//! Resolves `__schema` and `__type` as graphql-js does.

use std::borrow::Cow;

use apollo_compiler::Schema;
use apollo_compiler::ast::{
    DirectiveDefinition, DirectiveList, EnumValueDefinition, FieldDefinition, InputValueDefinition, Type,
};
use apollo_compiler::schema::{ComponentName, ExtendedType};

use trefoil_model::error::Result;
use trefoil_model::values::json_text;

use crate::describe::defaults;
use crate::execute::path::FieldPosition;
use crate::execute::write::{ResponseWriter, WriteResult};
use crate::plan::input;
use crate::plan::shape::{FieldShape, FieldSource, OutputShape, ValueSlot};
use crate::plan::variable_values::VariableValues;

/// The schema, and the variables of the request for arguments.
pub struct Introspection<'a> {
    pub schema: &'a Schema,
    pub variables: &'a VariableValues,
}

/// An element of the schema, as the parent of introspection fields.
enum SchemaElement<'a> {
    Schema,
    Type(&'a ExtendedType),
    /// A list or non-null type.
    Wrapper(Type),
    Field(&'a FieldDefinition),
    Input(&'a InputValueDefinition),
    EnumValue(&'a EnumValueDefinition),
    Directive(&'a DirectiveDefinition),
}

/// The value of an introspection field.
enum IntrospectionValue<'a> {
    Null,
    Boolean(bool),
    Text(Cow<'a, str>),
    Element(SchemaElement<'a>),
    List(Vec<IntrospectionValue<'a>>),
}

impl<'a> Introspection<'a> {
    /// Writes the root field `__schema` or `__type`.
    pub fn write(
        &self,
        writer: &mut ResponseWriter,
        slot: &ValueSlot,
        arguments: &input::FieldArguments,
        at: FieldPosition,
    ) -> WriteResult {
        let value = match at.label.name.as_str() {
            "__schema" => Ok(IntrospectionValue::Element(SchemaElement::Schema)),
            _ => arguments.values_by_name(self.variables).map(|arguments| {
                let name = arguments.iter().find_map(|(_, value)| value.as_str());
                name.map_or(IntrospectionValue::Null, |name| self.type_named(name))
            }),
        };
        self.write_value(writer, slot, value, at)
    }

    fn write_value(
        &self,
        writer: &mut ResponseWriter,
        slot: &ValueSlot,
        value: Result<IntrospectionValue>,
        at: FieldPosition,
    ) -> WriteResult {
        match (value, &slot.output) {
            (Err(error), _) => writer.fail_with(slot.required, &error, at),
            (Ok(IntrospectionValue::Boolean(flag)), _) => {
                writer.out.extend_from_slice(if flag { b"true" } else { b"false" });
                Ok(())
            }
            (Ok(IntrospectionValue::Text(text)), _) => {
                json_text::write_text(&mut writer.out, &text);
                Ok(())
            }
            (Ok(IntrospectionValue::Element(element)), OutputShape::Object(object)) => {
                writer.stop_null(slot.required, |writer| {
                    writer.write_object(object, at.path, |writer, field, at| {
                        self.write_field(writer, &element, field, at)
                    })
                })
            }
            (Ok(IntrospectionValue::List(items)), OutputShape::List(item)) => {
                writer.stop_null(slot.required, |writer| {
                    writer.out.push(b'[');
                    for (index, value) in items.into_iter().enumerate() {
                        if index > 0 {
                            writer.out.push(b',');
                        }
                        self.write_value(writer, item, Ok(value), at.with_path(&at.path.index(index)))?;
                    }
                    writer.out.push(b']');
                    Ok(())
                })
            }
            (
                Ok(IntrospectionValue::Null | IntrospectionValue::Element(_) | IntrospectionValue::List(_)),
                _,
            ) => writer.write_null(slot.required, at),
        }
    }

    fn write_field(
        &self,
        writer: &mut ResponseWriter,
        element: &SchemaElement<'a>,
        field: &FieldShape,
        at: FieldPosition,
    ) -> WriteResult {
        let value = match &field.source {
            FieldSource::Typename(name) => {
                writer.out.extend_from_slice(name);
                return Ok(());
            }
            FieldSource::Introspection(arguments) => self.include_deprecated(arguments).map(|deprecated| {
                let name = field.label.name.as_str();
                match element {
                    SchemaElement::Schema => self.describe_schema(name),
                    SchemaElement::Type(ty) => self.describe_type(ty, name, deprecated),
                    SchemaElement::Wrapper(ty) => self.describe_wrapper(ty, name),
                    SchemaElement::Field(field) => self.describe_field(field, name, deprecated),
                    SchemaElement::Input(input) => self.describe_input(input, name),
                    SchemaElement::EnumValue(value) => self.describe_enum_value(value, name),
                    SchemaElement::Directive(directive) => {
                        self.describe_directive(directive, name, deprecated)
                    }
                }
            }),
            FieldSource::Column { .. }
            | FieldSource::GlobalId { .. }
            | FieldSource::Relation(_)
            | FieldSource::Connection(_)
            | FieldSource::RelatedCount(_)
            | FieldSource::RelatedGroups { .. }
            | FieldSource::Property
            | FieldSource::Resolver { .. }
            | FieldSource::Missing(_)
            | FieldSource::Invalid(_) => Ok(IntrospectionValue::Null),
        };
        self.write_value(writer, &field.slot, value, at)
    }

    /// The argument `includeDeprecated`, the only one of introspection fields.
    fn include_deprecated(&self, arguments: &input::FieldArguments) -> Result<bool> {
        let arguments = arguments.values_by_name(self.variables)?;
        Ok(arguments.iter().any(|(_, value)| value.as_bool() == Some(true)))
    }

    fn describe_schema(&self, name: &str) -> IntrospectionValue<'a> {
        let definition = &self.schema.schema_definition;
        let root = |name: &Option<ComponentName>| {
            name.as_ref().map_or(IntrospectionValue::Null, |name| self.type_named(name))
        };
        match name {
            "description" => optional_text(definition.description.as_deref()),
            "types" => element_list(self.schema.types.values().map(SchemaElement::Type)),
            "queryType" => root(&definition.query),
            "mutationType" => root(&definition.mutation),
            "subscriptionType" => root(&definition.subscription),
            "directives" => element_list(
                self.schema
                    .directive_definitions
                    .values()
                    .map(|directive| SchemaElement::Directive(directive)),
            ),
            _ => IntrospectionValue::Null,
        }
    }

    fn describe_type(&self, ty: &'a ExtendedType, name: &str, deprecated: bool) -> IntrospectionValue<'a> {
        let (fields, interfaces) = match ty {
            ExtendedType::Object(object) => (Some(&object.fields), Some(&object.implements_interfaces)),
            ExtendedType::Interface(object) => (Some(&object.fields), Some(&object.implements_interfaces)),
            ExtendedType::Scalar(_)
            | ExtendedType::Union(_)
            | ExtendedType::Enum(_)
            | ExtendedType::InputObject(_) => (None, None),
        };
        match (name, ty) {
            ("kind", _) => IntrospectionValue::Text(Cow::Borrowed(type_kind(ty))),
            ("name", _) => optional_text(Some(ty.name())),
            ("description", _) => optional_text(ty.description().map(|text| text.as_str())),
            ("specifiedByURL", ExtendedType::Scalar(scalar)) => {
                let url = scalar.directives.get("specifiedBy");
                optional_text(
                    url.and_then(|url| url.specified_argument_by_name("url")).and_then(|url| url.as_str()),
                )
            }
            ("fields", _) => fields.map_or(IntrospectionValue::Null, |fields| {
                let visible =
                    fields.values().filter(|field| deprecated || !self.is_deprecated(&field.directives));
                element_list(visible.map(|field| SchemaElement::Field(field)))
            }),
            ("interfaces", _) => interfaces.map_or(IntrospectionValue::Null, |interfaces| {
                IntrospectionValue::List(interfaces.iter().map(|name| self.type_named(name)).collect())
            }),
            ("possibleTypes", ExtendedType::Union(union)) => {
                IntrospectionValue::List(union.members.iter().map(|name| self.type_named(name)).collect())
            }
            ("possibleTypes", ExtendedType::Interface(interface)) => {
                let types = self.schema.types.values();
                element_list(types.filter(|ty| implements(ty, &interface.name)).map(SchemaElement::Type))
            }
            ("enumValues", ExtendedType::Enum(definition)) => {
                let values = definition.values.values();
                let visible = values.filter(|value| deprecated || !self.is_deprecated(&value.directives));
                element_list(visible.map(|value| SchemaElement::EnumValue(value)))
            }
            ("inputFields", ExtendedType::InputObject(object)) => {
                self.input_list(object.fields.values().map(|field| &***field), deprecated)
            }
            _ => IntrospectionValue::Null,
        }
    }

    fn describe_wrapper(&self, ty: &Type, name: &str) -> IntrospectionValue<'a> {
        match (name, ty) {
            ("kind", Type::List(_)) => optional_text(Some("LIST")),
            ("kind", _) => optional_text(Some("NON_NULL")),
            ("ofType", Type::List(item)) => self.type_reference(item),
            ("ofType", _) => self.type_reference(&ty.clone().nullable()),
            _ => IntrospectionValue::Null,
        }
    }

    fn describe_field(
        &self,
        field: &'a FieldDefinition,
        name: &str,
        deprecated: bool,
    ) -> IntrospectionValue<'a> {
        match name {
            "name" => optional_text(Some(&field.name)),
            "description" => optional_text(field.description.as_deref()),
            "args" => self.input_list(field.arguments.iter().map(|argument| &**argument), deprecated),
            "type" => self.type_reference(&field.ty),
            _ => self.deprecation_field(&field.directives, name),
        }
    }

    fn describe_input(&self, input: &'a InputValueDefinition, name: &str) -> IntrospectionValue<'a> {
        match name {
            "name" => optional_text(Some(&input.name)),
            "description" => optional_text(input.description.as_deref()),
            "type" => self.type_reference(&input.ty),
            "defaultValue" => defaults::default_literal(self.schema, input)
                .map_or(IntrospectionValue::Null, |default| IntrospectionValue::Text(Cow::Owned(default))),
            _ => self.deprecation_field(&input.directives, name),
        }
    }

    fn describe_enum_value(&self, value: &'a EnumValueDefinition, name: &str) -> IntrospectionValue<'a> {
        match name {
            "name" => optional_text(Some(&value.value)),
            "description" => optional_text(value.description.as_deref()),
            _ => self.deprecation_field(&value.directives, name),
        }
    }

    fn describe_directive(
        &self,
        directive: &'a DirectiveDefinition,
        name: &str,
        deprecated: bool,
    ) -> IntrospectionValue<'a> {
        match name {
            "name" => optional_text(Some(&directive.name)),
            "description" => optional_text(directive.description.as_deref()),
            "isRepeatable" => IntrospectionValue::Boolean(directive.repeatable),
            "locations" => IntrospectionValue::List(
                directive.locations.iter().map(|location| optional_text(Some(location.name()))).collect(),
            ),
            "args" => self.input_list(directive.arguments.iter().map(|argument| &**argument), deprecated),
            _ => IntrospectionValue::Null,
        }
    }

    fn input_list(
        &self,
        inputs: impl Iterator<Item = &'a InputValueDefinition>,
        deprecated: bool,
    ) -> IntrospectionValue<'a> {
        element_list(
            inputs
                .filter(|input| deprecated || !self.is_deprecated(&input.directives))
                .map(SchemaElement::Input),
        )
    }

    fn type_named(&self, name: &str) -> IntrospectionValue<'a> {
        self.schema
            .types
            .get(name)
            .map_or(IntrospectionValue::Null, |ty| IntrospectionValue::Element(SchemaElement::Type(ty)))
    }

    fn type_reference(&self, ty: &Type) -> IntrospectionValue<'a> {
        match ty {
            Type::Named(name) => self.type_named(name),
            Type::List(_) | Type::NonNullNamed(_) | Type::NonNullList(_) => {
                IntrospectionValue::Element(SchemaElement::Wrapper(ty.clone()))
            }
        }
    }

    fn deprecation_field(&self, directives: &'a DirectiveList, name: &str) -> IntrospectionValue<'a> {
        match name {
            "isDeprecated" => IntrospectionValue::Boolean(self.is_deprecated(directives)),
            "deprecationReason" => optional_text(self.deprecation_reason(directives)),
            _ => IntrospectionValue::Null,
        }
    }

    fn is_deprecated(&self, directives: &'a DirectiveList) -> bool {
        self.deprecation_reason(directives).is_some()
    }

    /// The reason; `None` also for an explicit null, which revokes the deprecation.
    fn deprecation_reason(&self, directives: &'a DirectiveList) -> Option<&'a str> {
        directives.get("deprecated")?.argument_by_name("reason", self.schema).ok()?.as_str()
    }
}

fn optional_text(text: Option<&str>) -> IntrospectionValue<'_> {
    text.map_or(IntrospectionValue::Null, |text| IntrospectionValue::Text(Cow::Borrowed(text)))
}

fn element_list<'a>(elements: impl Iterator<Item = SchemaElement<'a>>) -> IntrospectionValue<'a> {
    IntrospectionValue::List(elements.map(IntrospectionValue::Element).collect())
}

fn implements(ty: &ExtendedType, interface: &str) -> bool {
    ty.as_object().is_some_and(|object| object.implements_interfaces.contains(interface))
}

fn type_kind(ty: &ExtendedType) -> &'static str {
    match ty {
        ExtendedType::Scalar(_) => "SCALAR",
        ExtendedType::Object(_) => "OBJECT",
        ExtendedType::Interface(_) => "INTERFACE",
        ExtendedType::Union(_) => "UNION",
        ExtendedType::Enum(_) => "ENUM",
        ExtendedType::InputObject(_) => "INPUT_OBJECT",
    }
}
