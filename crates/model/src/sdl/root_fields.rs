//! Reads the fields of Query, Mutation and Subscription with their arguments.

use std::collections::HashSet;

use apollo_compiler::ast::{FieldDefinition, InputValueDefinition, Type};
use apollo_compiler::{Node, Schema};

use crate::sdl::diagnostic_log::DiagnosticLog;
use crate::sdl::directives::DirectiveReader;
use crate::{Argument, RootField, RootType, TypeRef};

/// The names of the root types, whatever `schema { … }` calls them.
pub(crate) fn root_type_names(schema: &Schema) -> HashSet<&str> {
    root_types(schema).into_iter().map(|(_, name)| name).collect()
}

pub(crate) fn read_root_fields(
    schema: &Schema,
    redeclared: &HashSet<String>,
    log: &mut DiagnosticLog,
) -> Vec<RootField> {
    let mut fields = Vec::new();
    for (root, name) in root_types(schema) {
        let Some(ty) = schema.get_object(name) else { continue };
        fields.extend(ty.fields.values().map(|def| read_root_field(schema, redeclared, log, root, def)));
    }
    fields
}

pub(crate) fn root_types(schema: &Schema) -> Vec<(RootType, &str)> {
    let definition = &schema.schema_definition;
    [
        (RootType::Query, &definition.query),
        (RootType::Mutation, &definition.mutation),
        (RootType::Subscription, &definition.subscription),
    ]
    .into_iter()
    .filter_map(|(root, name)| Some((root, name.as_ref()?.name.as_str())))
    .collect()
}

fn read_root_field(
    schema: &Schema,
    redeclared: &HashSet<String>,
    log: &mut DiagnosticLog,
    root_kind: RootType,
    def: &FieldDefinition,
) -> RootField {
    let directives = DirectiveReader { log, redeclared }.read_field(&def.directives);
    let may_stand = |name: &str| matches!(name, "resolver" | "allow");
    for directive in directives.directives.iter().filter(|directive| !may_stand(&directive.name)) {
        log.error(
            directive.location(),
            "DIRECTIVE_PLACE",
            format!("`@{}` is not allowed on the operation `{}`", directive.name, def.name),
        )
        .label("operations store no value")
        .help("move it to a field of a record type");
    }
    RootField {
        root_kind,
        name: def.name.to_string(),
        arguments: read_arguments(schema, &def.arguments),
        ty: TypeRef::from(&def.ty),
        resolver: directives.resolver,
        location: log.location(def.name.location()),
    }
}

/// Input objects are expanded one level only, because input types may contain each other.
pub(crate) fn read_arguments(schema: &Schema, definitions: &[Node<InputValueDefinition>]) -> Vec<Argument> {
    definitions
        .iter()
        .map(|definition| {
            let input = schema.get_input_object(definition.ty.inner_named_type());
            let fields = input.map(|input| input.fields.values().map(|field| flat_argument(field)).collect());
            Argument { fields: fields.unwrap_or_default(), ..flat_argument(definition) }
        })
        .collect()
}

fn flat_argument(definition: &InputValueDefinition) -> Argument {
    let default = definition.default_value.as_ref();
    Argument {
        name: definition.name.to_string(),
        ty: TypeRef::from(&*definition.ty),
        is_zero_by_default: default.is_some_and(|value| value.to_i32() == Some(0)),
        fields: Vec::new(),
    }
}

impl From<&Type> for TypeRef {
    fn from(ty: &Type) -> Self {
        match ty {
            Type::Named(name) => TypeRef::Named(name.to_string()),
            Type::NonNullNamed(name) => TypeRef::NonNull(Box::new(TypeRef::Named(name.to_string()))),
            Type::List(item) => TypeRef::List(Box::new(TypeRef::from(&**item))),
            Type::NonNullList(item) => {
                TypeRef::NonNull(Box::new(TypeRef::List(Box::new(TypeRef::from(&**item)))))
            }
        }
    }
}
