//! Types that a schema uses without declaring them, because its own server adds them: connections and scalars.

use std::collections::{BTreeSet, HashMap, HashSet};

use apollo_compiler::ast::{Definition, Document, FieldDefinition, InputValueDefinition};
use apollo_compiler::{Name, Node};

use crate::Scalar;

/// Where values of a declared type may stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypeUse {
    /// Also in results.
    Result,
    InputOnly,
}

/// The types that the schema declares.
pub(crate) fn declared_types(documents: &[Document]) -> HashMap<&str, TypeUse> {
    let definitions = documents.iter().flat_map(|document| &document.definitions);
    let declared = definitions.filter_map(|definition| match definition {
        Definition::InputObjectTypeDefinition(ty) => Some((ty.name.as_str(), TypeUse::InputOnly)),
        Definition::ScalarTypeDefinition(ty) => Some((ty.name.as_str(), TypeUse::Result)),
        Definition::ObjectTypeDefinition(ty) => Some((ty.name.as_str(), TypeUse::Result)),
        Definition::InterfaceTypeDefinition(ty) => Some((ty.name.as_str(), TypeUse::Result)),
        Definition::UnionTypeDefinition(ty) => Some((ty.name.as_str(), TypeUse::Result)),
        Definition::EnumTypeDefinition(ty) => Some((ty.name.as_str(), TypeUse::Result)),
        Definition::OperationDefinition(_)
        | Definition::FragmentDefinition(_)
        | Definition::DirectiveDefinition(_)
        | Definition::SchemaDefinition(_)
        | Definition::SchemaExtension(_)
        | Definition::ScalarTypeExtension(_)
        | Definition::ObjectTypeExtension(_)
        | Definition::InterfaceTypeExtension(_)
        | Definition::UnionTypeExtension(_)
        | Definition::EnumTypeExtension(_)
        | Definition::InputObjectTypeExtension(_) => None,
    });
    declared.collect()
}

/// The definitions of the types that are used and not declared, as far as their names say what they are.
pub(crate) fn implied_types(documents: &[Document]) -> String {
    let declared = declared_types(documents);
    let used: Vec<&str> =
        documents.iter().flat_map(|document| &document.definitions).flat_map(used_types).collect();
    let mut seen = HashSet::new();
    let (mut sdl, mut edges) = (String::new(), BTreeSet::new());
    for name in used.iter().copied().filter(|name| !declared.contains_key(name) && seen.insert(*name)) {
        if let Some(node) = connection_node(name, &declared) {
            sdl.push_str(&connection_sdl(node));
            edges.insert(node);
        } else if let Some(node) = edge_node(name, &declared) {
            edges.insert(node);
        } else if is_added_scalar(name) {
            sdl.push_str(&format!("\nscalar {name}"));
        }
    }
    for node in edges.into_iter().filter(|node| !declared.contains_key(edge_name(node).as_str())) {
        sdl.push_str(&format!("\ntype {} {{ node: {node}!  cursor: String! }}", edge_name(node)));
    }
    let has_connections = sdl.contains("pageInfo");
    if (has_connections || used.contains(&"PageInfo")) && !declared.contains_key("PageInfo") {
        sdl.push_str(PAGE_INFO);
    }
    sdl
}

const PAGE_INFO: &str = "
type PageInfo { hasPreviousPage: Boolean!  hasNextPage: Boolean!  startCursor: String  endCursor: String }";

/// The type whose records a connection holds, if all its fields can have the types that they must have.
fn connection_node<'a>(name: &'a str, declared: &HashMap<&str, TypeUse>) -> Option<&'a str> {
    let node = name.strip_suffix("Connection")?;
    let is_input = |name: &str| declared.get(name) == Some(&TypeUse::InputOnly);
    let fits = declared.contains_key(node)
        && !is_input(node)
        && !is_input(&edge_name(node))
        && !is_input("PageInfo");
    fits.then_some(node)
}

fn connection_sdl(node: &str) -> String {
    format!(
        "\ntype {node}Connection {{ edges: [{}!]!  pageInfo: PageInfo!  totalCount: Int! }}",
        edge_name(node)
    )
}

fn edge_name(node: &str) -> String {
    format!("{node}Edge")
}

/// The type whose record an edge holds, where the schema declares the connection alone.
fn edge_node<'a>(name: &'a str, declared: &HashMap<&str, TypeUse>) -> Option<&'a str> {
    let node = name.strip_suffix("Edge")?;
    (declared.get(node) == Some(&TypeUse::Result)).then_some(node)
}

/// Scalars that other servers have without a declaration, and of which we know no more than the name.
const FOREIGN_SCALARS: [&str; 10] = [
    "AWSIPAddress",
    "AWSPhone",
    "AWSTime",
    "Bytes",
    "Duration",
    "LocalTime",
    "Upload",
    "Void",
    "bytea",
    "citext",
];

/// Every scalar that we know but those of GraphQL itself.
fn is_added_scalar(name: &str) -> bool {
    let is_known = || Scalar::from_name(name).is_some() || FOREIGN_SCALARS.contains(&name);
    !matches!(name, "String" | "Int" | "Float" | "Boolean" | "ID") && is_known()
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
