//! Folds every `extend` into what it extends, so that the schema prints as plain definitions that all tools read.

use apollo_compiler::Schema;
use apollo_compiler::collections::IndexSet;
use apollo_compiler::schema::{Component, ComponentName, ComponentOrigin, ExtendedType};

pub(crate) fn extensions(schema: &mut Schema) {
    for ty in schema.types.values_mut().filter(|ty| !ty.is_built_in()) {
        fold(ty);
    }
    let definition = schema.schema_definition.make_mut();
    definition.directives.iter_mut().for_each(own);
    for root in [&mut definition.query, &mut definition.mutation, &mut definition.subscription] {
        root.iter_mut().for_each(|name| name.origin = ComponentOrigin::Definition);
    }
}

fn fold(ty: &mut ExtendedType) {
    match ty {
        ExtendedType::Scalar(ty) => ty.make_mut().directives.iter_mut().for_each(own),
        ExtendedType::Object(ty) => {
            let ty = ty.make_mut();
            ty.directives.iter_mut().for_each(own);
            ty.fields.values_mut().for_each(own);
            own_names(&mut ty.implements_interfaces);
        }
        ExtendedType::Interface(ty) => {
            let ty = ty.make_mut();
            ty.directives.iter_mut().for_each(own);
            ty.fields.values_mut().for_each(own);
            own_names(&mut ty.implements_interfaces);
        }
        ExtendedType::Union(ty) => {
            let ty = ty.make_mut();
            ty.directives.iter_mut().for_each(own);
            own_names(&mut ty.members);
        }
        ExtendedType::Enum(ty) => {
            let ty = ty.make_mut();
            ty.directives.iter_mut().for_each(own);
            ty.values.values_mut().for_each(own);
        }
        ExtendedType::InputObject(ty) => {
            let ty = ty.make_mut();
            ty.directives.iter_mut().for_each(own);
            ty.fields.values_mut().for_each(own);
        }
    }
}

fn own<T>(component: &mut Component<T>) {
    component.origin = ComponentOrigin::Definition;
}

fn own_names(names: &mut IndexSet<ComponentName>) {
    let owned = std::mem::take(names).into_iter().map(|mut name| {
        name.origin = ComponentOrigin::Definition;
        name
    });
    *names = owned.collect();
}
