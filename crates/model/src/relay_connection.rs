//! Recognises Relay-style connections: an object type whose `edges` hold nodes of one record type.

use apollo_compiler::ast::Type;
use apollo_compiler::schema::ExtendedType;

use crate::{Model, RecordTypeId};

impl Model {
    /// The record type of a connection's nodes, or `None` if the type is not a connection.
    pub fn connection_node(&self, type_name: &str) -> Option<RecordTypeId> {
        let edges = self.field_type(type_name, "edges")?;
        let node = self.field_type(edges.inner_named_type(), "node")?;
        if !edges.is_list() || node.is_list() {
            return None;
        }
        self.find_record(node.inner_named_type())
    }

    fn field_type(&self, type_name: &str, field: &str) -> Option<&Type> {
        match self.schema.types.get(type_name)? {
            ExtendedType::Object(object) => object.fields.get(field).map(|field| &field.ty),
            ExtendedType::Scalar(_)
            | ExtendedType::Interface(_)
            | ExtendedType::Union(_)
            | ExtendedType::Enum(_)
            | ExtendedType::InputObject(_) => None,
        }
    }
}
