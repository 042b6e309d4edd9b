//! The types that the operations and directives of a schema lead to.

use apollo_compiler::ast::FieldDefinition;
use apollo_compiler::collections::HashSet;
use apollo_compiler::schema::ExtendedType;
use apollo_compiler::{Name, Schema};

/// The types that the root types, the directives, introspection and the types that `is_kept` leads to.
pub fn reachable_types(schema: &Schema, is_kept: impl Fn(&Name) -> bool) -> HashSet<Name> {
    let definition = &schema.schema_definition;
    let roots = [&definition.query, &definition.mutation, &definition.subscription];
    let mut next: Vec<Name> = roots.into_iter().flatten().map(|root| root.name.clone()).collect();
    next.extend(schema.types.keys().filter(|name| name.starts_with("__") || is_kept(name)).cloned());
    for directive in schema.directive_definitions.values() {
        next.extend(directive.arguments.iter().map(|argument| argument.ty.inner_named_type().clone()));
    }
    let mut reached = HashSet::default();
    while let Some(name) = next.pop() {
        let Some(ty) = schema.types.get(&name).filter(|_| !reached.contains(&name)) else { continue };
        match ty {
            ExtendedType::Scalar(_) | ExtendedType::Enum(_) => {}
            ExtendedType::Object(object) => {
                next.extend(object.implements_interfaces.iter().map(|interface| interface.name.clone()));
                object.fields.values().for_each(|field| add_field(field, &mut next));
            }
            ExtendedType::Interface(interface) => {
                next.extend(interface.implements_interfaces.iter().map(|parent| parent.name.clone()));
                interface.fields.values().for_each(|field| add_field(field, &mut next));
                next.extend(implementers(schema, &name));
            }
            ExtendedType::Union(union) => {
                next.extend(union.members.iter().map(|member| member.name.clone()));
            }
            ExtendedType::InputObject(object) => {
                next.extend(object.fields.values().map(|field| field.ty.inner_named_type().clone()));
            }
        }
        reached.insert(name);
    }
    reached
}

fn add_field(field: &FieldDefinition, into: &mut Vec<Name>) {
    into.push(field.ty.inner_named_type().clone());
    into.extend(field.arguments.iter().map(|argument| argument.ty.inner_named_type().clone()));
}

fn implementers(schema: &Schema, interface: &Name) -> impl Iterator<Item = Name> {
    let implements = |ty: &ExtendedType| match ty {
        ExtendedType::Object(object) => object.implements_interfaces.contains(interface.as_str()),
        ExtendedType::Interface(other) => other.implements_interfaces.contains(interface.as_str()),
        ExtendedType::Scalar(_)
        | ExtendedType::Union(_)
        | ExtendedType::Enum(_)
        | ExtendedType::InputObject(_) => false,
    };
    schema.types.iter().filter(move |(_, ty)| implements(ty)).map(|(name, _)| name.clone())
}
