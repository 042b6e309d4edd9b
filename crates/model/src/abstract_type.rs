//! Interfaces and unions whose types are record types.

use apollo_compiler::schema::ExtendedType;

use crate::{Argument, Model, RecordTypeId, RootType};

impl Model {
    /// True for an interface or a union.
    pub fn is_abstract(&self, type_name: &str) -> bool {
        self.schema.types.get(type_name).is_some_and(is_interface_or_union)
    }

    /// The interface or union that a type is, or whose records it wraps.
    pub fn result_abstract<'m>(&'m self, type_name: &'m str) -> Option<&'m str> {
        let own = Some(type_name).filter(|name| self.is_abstract(name));
        own.or_else(|| self.connection_abstract(type_name))
    }

    /// The record types of an interface or union, in the order of their declaration. `None` if it has no type, or one
    /// that is not a record type.
    pub fn abstract_records(&self, type_name: &str) -> Option<Vec<RecordTypeId>> {
        if !self.is_abstract(type_name) {
            return None;
        }
        let members = self.possible_types(type_name).map(|name| self.find_record(name));
        let mut members: Vec<RecordTypeId> = members.collect::<Option<_>>()?;
        members.sort_unstable();
        (!members.is_empty()).then_some(members)
    }

    /// A type of an interface or union that is not a record type.
    pub fn unstored_member(&self, type_name: &str) -> Option<&str> {
        self.possible_types(type_name).find(|name| self.find_record(name).is_none())
    }

    /// The names of all interfaces and unions.
    pub fn abstract_types(&self) -> impl Iterator<Item = &str> {
        let types = self.schema.types.iter().filter(|(_, ty)| is_interface_or_union(ty));
        types.map(|(name, _)| name.as_str())
    }

    /// Shows plain keys in GraphQL.
    pub fn drop_global_ids(&mut self) {
        self.global_ids = false;
        self.records.iter_mut().for_each(|record| record.has_global_ids = false);
    }

    /// Makes the ids of all types with `Node` global, if the schema has both `interface Node { id: ID! }` and the query
    /// `node(id: ID!): Node`.
    pub(crate) fn mark_global_ids(&mut self) {
        let id_type = self.schema.get_interface("Node").and_then(|node| node.fields.get("id"));
        let has_id = id_type.is_some_and(|field| field.ty.to_string() == "ID!");
        let is_id = |argument: &Argument| argument.name == "id" && argument.ty.to_string() == "ID!";
        let root = self.find_root_field(RootType::Query, "node");
        let has_query = root.is_some_and(|root| {
            root.ty.inner_name() == "Node" && !root.ty.is_list() && root.arguments.iter().any(is_id)
        });
        if !has_id || !has_query || self.abstract_records("Node").is_none() {
            return;
        }
        let schema = &self.schema;
        for record in &mut self.records {
            record.has_global_ids = schema.is_subtype("Node", &record.name);
        }
        self.global_ids = true;
    }

    fn possible_types<'m>(&'m self, type_name: &str) -> impl Iterator<Item = &'m str> {
        let objects = self.schema.types.iter().filter(|(_, ty)| ty.is_object());
        objects.map(|(name, _)| name.as_str()).filter(move |name| self.schema.is_subtype(type_name, name))
    }
}

fn is_interface_or_union(ty: &ExtendedType) -> bool {
    ty.is_interface() || ty.is_union()
}
