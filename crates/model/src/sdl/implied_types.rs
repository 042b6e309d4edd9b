//! Types that a schema uses without declaring them, because its own server adds them: connections and scalars.

use std::collections::HashSet;

use apollo_compiler::ast::{Definition, Document, FieldDefinition, InputValueDefinition};
use apollo_compiler::{Name, Node};

use crate::Scalar;

/// The definitions of the types that are used and not declared, as far as their names say what they are.
pub(crate) fn implied_types(documents: &[Document], declared: &HashSet<&str>) -> String {
    let used: Vec<&str> =
        documents.iter().flat_map(|document| &document.definitions).flat_map(used_types).collect();
    let mut seen = HashSet::new();
    let mut sdl = String::new();
    for name in used.iter().copied().filter(|name| !declared.contains(name) && seen.insert(*name)) {
        if let Some(node) = connection_node(name).filter(|node| declared.contains(node)) {
            sdl.push_str(&connection_sdl(node, declared));
        } else if is_added_scalar(name) {
            sdl.push_str(&format!("\nscalar {name}"));
        }
    }
    let has_connections = sdl.contains("pageInfo");
    if (has_connections || used.contains(&"PageInfo")) && !declared.contains("PageInfo") {
        sdl.push_str(PAGE_INFO);
    }
    sdl
}

const PAGE_INFO: &str = "
type PageInfo { hasPreviousPage: Boolean!  hasNextPage: Boolean!  startCursor: String  endCursor: String }";

fn connection_node(name: &str) -> Option<&str> {
    name.strip_suffix("Connection").filter(|node| !node.is_empty())
}

fn connection_sdl(node: &str, declared: &HashSet<&str>) -> String {
    let mut sdl =
        format!("\ntype {node}Connection {{ edges: [{node}Edge!]!  pageInfo: PageInfo!  totalCount: Int! }}");
    if !declared.contains(format!("{node}Edge").as_str()) {
        sdl.push_str(&format!("\ntype {node}Edge {{ node: {node}!  cursor: String! }}"));
    }
    sdl
}

/// Every scalar that we know but those of GraphQL itself.
fn is_added_scalar(name: &str) -> bool {
    !matches!(name, "String" | "Int" | "Float" | "Boolean" | "ID") && Scalar::from_name(name).is_some()
}

/// The names of the types that a definition uses.
fn used_types(definition: &Definition) -> Vec<&str> {
    match definition {
        Definition::ObjectTypeDefinition(ty) => field_types(&ty.fields),
        Definition::ObjectTypeExtension(ty) => field_types(&ty.fields),
        Definition::InterfaceTypeDefinition(ty) => field_types(&ty.fields),
        Definition::InterfaceTypeExtension(ty) => field_types(&ty.fields),
        Definition::InputObjectTypeDefinition(ty) => input_types(&ty.fields),
        Definition::InputObjectTypeExtension(ty) => input_types(&ty.fields),
        Definition::UnionTypeDefinition(ty) => ty.members.iter().map(Name::as_str).collect(),
        Definition::UnionTypeExtension(ty) => ty.members.iter().map(Name::as_str).collect(),
        Definition::OperationDefinition(_)
        | Definition::FragmentDefinition(_)
        | Definition::DirectiveDefinition(_)
        | Definition::SchemaDefinition(_)
        | Definition::SchemaExtension(_)
        | Definition::ScalarTypeDefinition(_)
        | Definition::ScalarTypeExtension(_)
        | Definition::EnumTypeDefinition(_)
        | Definition::EnumTypeExtension(_) => Vec::new(),
    }
}

fn field_types(fields: &[Node<FieldDefinition>]) -> Vec<&str> {
    let results = fields.iter().map(|field| field.ty.inner_named_type().as_str());
    results.chain(fields.iter().flat_map(|field| input_types(&field.arguments))).collect()
}

fn input_types(inputs: &[Node<InputValueDefinition>]) -> Vec<&str> {
    inputs.iter().map(|input| input.ty.inner_named_type().as_str()).collect()
}
