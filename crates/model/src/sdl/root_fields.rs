//! Reads the fields of Query, Mutation and Subscription, and what arguments they take.

use std::collections::HashSet;

use apollo_compiler::Node;
use apollo_compiler::Schema;
use apollo_compiler::ast::{FieldDefinition, InputValueDefinition, Type};

use crate::sdl::diagnostic_log::Log;
use crate::sdl::directives::Reader;
use crate::{Argument, Root, RootField, TypeRef};

/// The names of the root types, whatever `schema { … }` calls them.
pub(crate) fn root_names(schema: &Schema) -> HashSet<&str> {
    root_types(schema).into_iter().map(|(_, name)| name).collect()
}

pub(crate) fn read(schema: &Schema, theirs: &HashSet<String>, log: &mut Log) -> Vec<RootField> {
    let mut fields = Vec::new();
    for (root, name) in root_types(schema) {
        let Some(ty) = schema.get_object(name) else { continue };
        fields.extend(ty.fields.values().map(|def| root_field(schema, theirs, log, root, def)));
    }
    fields
}

pub(crate) fn root_types(schema: &Schema) -> Vec<(Root, &str)> {
    let definition = &schema.schema_definition;
    [
        (Root::Query, &definition.query),
        (Root::Mutation, &definition.mutation),
        (Root::Subscription, &definition.subscription),
    ]
    .into_iter()
    .filter_map(|(root, name)| Some((root, name.as_ref()?.name.as_str())))
    .collect()
}

fn root_field(
    schema: &Schema,
    theirs: &HashSet<String>,
    log: &mut Log,
    root: Root,
    def: &FieldDefinition,
) -> RootField {
    let marks = Reader { log, theirs }.field(&def.directives);
    for directive in marks.all.iter().filter(|directive| directive.name != "resolver") {
        log.error(
            directive.location(),
            "DIRECTIVE_PLACE",
            format!("`@{}` means nothing on the operation `{}`", directive.name, def.name),
        )
        .label("an operation keeps no value")
        .help("move it to a field of a record type");
    }
    RootField {
        root,
        name: def.name.to_string(),
        arguments: arguments(schema, &def.arguments),
        ty: TypeRef::from(&def.ty),
        resolver: marks.resolver,
        at: log.place(def.name.location()),
    }
}

/// Input objects are opened one level: schemas whose input types hold each other would never end.
pub(crate) fn arguments(schema: &Schema, definitions: &[Node<InputValueDefinition>]) -> Vec<Argument> {
    definitions
        .iter()
        .map(|definition| {
            let input = schema.get_input_object(definition.ty.inner_named_type());
            let fields = input.map(|input| input.fields.values().map(|field| plain(field)).collect());
            Argument { fields: fields.unwrap_or_default(), ..plain(definition) }
        })
        .collect()
}

fn plain(definition: &InputValueDefinition) -> Argument {
    Argument { name: definition.name.to_string(), ty: TypeRef::from(&*definition.ty), fields: Vec::new() }
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
