//! A schema needs a query. Who may run none is told of one, with as little beside it as a valid schema can have.

use apollo_compiler::ast::FieldDefinition;
use apollo_compiler::collections::HashMap;
use apollo_compiler::schema::{Component, ExtendedType};
use apollo_compiler::{Name, Node, Schema};

/// Adds a query without arguments to a schema that has none, with one field of each type on the way to a value.
pub fn add_smallest_query(narrowed: &mut Schema, whole: &Schema) {
    let Some(query) = whole.schema_definition.query.as_ref().map(|query| query.name.clone()) else { return };
    if narrowed.types.contains_key(&query) {
        return;
    }
    let heights = heights(whole);
    let mut next = query;
    loop {
        let Some(ty) = whole.types.get(&next) else { return };
        let (part, inner) = smallest_part(ty, &heights);
        // What the type has already is enough.
        if !narrowed.types.contains_key(&next) {
            narrowed.types.insert(next, part);
        }
        match inner {
            Some(inner) => next = inner,
            None => return,
        }
    }
}

/// The number of selections from a type to its nearest value. Types that lead to none have no number.
fn heights(schema: &Schema) -> HashMap<Name, usize> {
    let mut heights: HashMap<Name, usize> = HashMap::default();
    loop {
        let before = heights.len();
        for (name, ty) in &schema.types {
            let nearest =
                inner_types(ty).map(|inner| inner.iter().filter_map(|name| heights.get(*name)).min());
            let height = match nearest {
                None => Some(0),
                Some(nearest) => nearest.map(|height| height + 1),
            };
            if let (Some(height), false) = (height, heights.contains_key(name)) {
                heights.insert(name.clone(), height);
            }
        }
        if heights.len() == before {
            return heights;
        }
    }
}

/// The types of the fields or members of a type; `None` of a value.
fn inner_types(ty: &ExtendedType) -> Option<Vec<&Name>> {
    match ty {
        ExtendedType::Scalar(_) | ExtendedType::Enum(_) | ExtendedType::InputObject(_) => None,
        ExtendedType::Object(object) => {
            Some(object.fields.values().map(|field| field.ty.inner_named_type()).collect())
        }
        ExtendedType::Interface(interface) => {
            Some(interface.fields.values().map(|field| field.ty.inner_named_type()).collect())
        }
        ExtendedType::Union(union) => Some(union.members.iter().map(|member| &member.name).collect()),
    }
}

/// The type with the one field or member that leads to a value soonest, and the type of that.
fn smallest_part(ty: &ExtendedType, heights: &HashMap<Name, usize>) -> (ExtendedType, Option<Name>) {
    let height = |name: &Name| heights.get(name).copied().unwrap_or(usize::MAX);
    let nearest = |fields: Vec<&Component<FieldDefinition>>| {
        let field = fields.into_iter().min_by_key(|field| height(field.ty.inner_named_type()))?;
        let plain = FieldDefinition {
            arguments: Vec::new(),
            directives: Default::default(),
            ..FieldDefinition::clone(field)
        };
        Some((field.ty.inner_named_type().clone(), Component::new(plain)))
    };
    match ty {
        ExtendedType::Scalar(_) | ExtendedType::Enum(_) | ExtendedType::InputObject(_) => (ty.clone(), None),
        ExtendedType::Object(object) => {
            let field = nearest(object.fields.values().collect());
            let mut part = object.clone();
            let inner = part.make_mut();
            inner.implements_interfaces.clear();
            inner.directives.0.clear();
            inner.fields.clear();
            inner.fields.extend(field.iter().map(|(_, field)| (field.name.clone(), field.clone())));
            (ExtendedType::Object(part), field.map(|(inner, _)| inner))
        }
        ExtendedType::Interface(interface) => {
            let field = nearest(interface.fields.values().collect());
            let mut part = interface.clone();
            let inner = part.make_mut();
            inner.implements_interfaces.clear();
            inner.directives.0.clear();
            inner.fields.clear();
            inner.fields.extend(field.iter().map(|(_, field)| (field.name.clone(), field.clone())));
            (ExtendedType::Interface(part), field.map(|(inner, _)| inner))
        }
        ExtendedType::Union(union) => {
            let member = union.members.iter().min_by_key(|member| height(&member.name)).cloned();
            let mut part: Node<_> = union.clone();
            part.make_mut().members.retain(|other| Some(other) == member.as_ref());
            (ExtendedType::Union(part), member.map(|member| member.name))
        }
    }
}
