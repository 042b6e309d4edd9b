//! Merges every `extend` into the extended definition, so that all tools read the printed schema.

use std::collections::HashSet;

use apollo_compiler::ast::{Definition, Document, ObjectTypeExtension};
use apollo_compiler::collections::IndexSet;
use apollo_compiler::schema::{Component, ComponentName, ComponentOrigin, ExtendedType};
use apollo_compiler::{Name, Schema};

use crate::sdl::diagnostic_log::DiagnosticLog;

pub(crate) fn merge_extensions(schema: &mut Schema) {
    for ty in schema.types.values_mut().filter(|ty| !ty.is_built_in()) {
        merge_type(ty);
    }
    let definition = schema.schema_definition.make_mut();
    definition.directives.iter_mut().for_each(mark_as_definition);
    for root in [&mut definition.query, &mut definition.mutation, &mut definition.subscription] {
        root.iter_mut().for_each(|name| name.origin = ComponentOrigin::Definition);
    }
}

/// `type Query` again extends the first one, as servers on Node merge their files. Gives those that repeat a root type of
/// their own file.
pub(crate) fn extend_repeated_roots(documents: &mut [Document]) -> Vec<Name> {
    let mut known: HashSet<Name> = HashSet::new();
    let mut repeated = Vec::new();
    for document in documents {
        let mut own: HashSet<Name> = HashSet::new();
        for definition in &mut document.definitions {
            let Definition::ObjectTypeDefinition(ty) = definition else { continue };
            if !matches!(ty.name.as_str(), "Query" | "Mutation" | "Subscription") {
                continue;
            }
            if own.contains(&ty.name) {
                repeated.push(ty.name.clone());
            } else {
                own.insert(ty.name.clone());
                if !known.contains(&ty.name) {
                    continue;
                }
            }
            let extension = ObjectTypeExtension {
                name: ty.name.clone(),
                implements_interfaces: ty.implements_interfaces.clone(),
                directives: ty.directives.clone(),
                fields: ty.fields.clone(),
            };
            *definition = Definition::ObjectTypeExtension(ty.same_location(extension));
        }
        known.extend(own);
    }
    repeated
}

pub(crate) fn warn_repeated_roots(log: &mut DiagnosticLog, repeated: &[Name]) {
    for name in repeated {
        log.warning(name.location(), "REPEATED_TYPE", format!("`type {name}` is repeated in this file"))
            .label("its fields are added to the first one")
            .help(format!("write `extend type {name}`, which other tools read, too"));
    }
}

fn merge_type(ty: &mut ExtendedType) {
    match ty {
        ExtendedType::Scalar(ty) => ty.make_mut().directives.iter_mut().for_each(mark_as_definition),
        ExtendedType::Object(ty) => {
            let ty = ty.make_mut();
            ty.directives.iter_mut().for_each(mark_as_definition);
            ty.fields.values_mut().for_each(mark_as_definition);
            mark_names_as_definition(&mut ty.implements_interfaces);
        }
        ExtendedType::Interface(ty) => {
            let ty = ty.make_mut();
            ty.directives.iter_mut().for_each(mark_as_definition);
            ty.fields.values_mut().for_each(mark_as_definition);
            mark_names_as_definition(&mut ty.implements_interfaces);
        }
        ExtendedType::Union(ty) => {
            let ty = ty.make_mut();
            ty.directives.iter_mut().for_each(mark_as_definition);
            mark_names_as_definition(&mut ty.members);
        }
        ExtendedType::Enum(ty) => {
            let ty = ty.make_mut();
            ty.directives.iter_mut().for_each(mark_as_definition);
            ty.values.values_mut().for_each(mark_as_definition);
        }
        ExtendedType::InputObject(ty) => {
            let ty = ty.make_mut();
            ty.directives.iter_mut().for_each(mark_as_definition);
            ty.fields.values_mut().for_each(mark_as_definition);
        }
    }
}

fn mark_as_definition<T>(component: &mut Component<T>) {
    component.origin = ComponentOrigin::Definition;
}

fn mark_names_as_definition(names: &mut IndexSet<ComponentName>) {
    let owned = std::mem::take(names).into_iter().map(|mut name| {
        name.origin = ComponentOrigin::Definition;
        name
    });
    *names = owned.collect();
}
