//! Recognises the types that wrap a list of records: Relay's connections, and pages such as `{ items total }`.

use apollo_compiler::ast::Type;
use apollo_compiler::schema::ExtendedType;

use crate::naming::names::snake_words;
use crate::{Model, RecordTypeId};

/// What a field of a page holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageField {
    Records,
    /// The number of all records, whatever the page.
    Total,
    HasNext,
    HasPrevious,
}

impl Model {
    /// The record type whose records the type wraps, or `None` if it is neither a connection nor a page.
    pub fn connection_node(&self, type_name: &str) -> Option<RecordTypeId> {
        self.edge_node(type_name).or_else(|| self.page_list(type_name).map(|(_, record)| record))
    }

    /// What a field of a page holds, if the server can tell.
    pub fn page_field(&self, type_name: &str, field: &str) -> Option<PageField> {
        let (list, _) = self.page_list(type_name)?;
        match snake_words(field).as_str() {
            _ if field == list => Some(PageField::Records),
            "total" | "count" | "total_count" | "total_elements" | "total_items" | "total_records" => {
                Some(PageField::Total)
            }
            "has_next" | "has_next_page" | "has_more" => Some(PageField::HasNext),
            "has_previous" | "has_previous_page" => Some(PageField::HasPrevious),
            _ => None,
        }
    }

    /// A selection of the records that the type wraps.
    pub fn wrapped_selection(&self, type_name: &str, selection: &str) -> String {
        match self.page_list(type_name).filter(|_| self.edge_node(type_name).is_none()) {
            Some((list, _)) => format!("{{ {list} {{ {selection} }} }}"),
            None => format!("{{ edges {{ node {{ {selection} }} }} }}"),
        }
    }

    fn edge_node(&self, type_name: &str) -> Option<RecordTypeId> {
        let edges = self.field_type(type_name, "edges")?;
        let node = self.field_type(edges.inner_named_type(), "node")?;
        if !edges.is_list() || node.is_list() {
            return None;
        }
        self.find_record(node.inner_named_type())
    }

    /// The one list of records of a type that holds no other record.
    fn page_list(&self, type_name: &str) -> Option<(&str, RecordTypeId)> {
        let ExtendedType::Object(object) = self.schema.types.get(type_name)? else { return None };
        if self.find_record(type_name).is_some() {
            return None;
        }
        let mut records = object.fields.iter().filter_map(|(name, field)| {
            Some((name.as_str(), &field.ty, self.find_record(field.ty.inner_named_type())?))
        });
        let (name, ty, record) = records.next()?;
        (records.next().is_none() && is_single_list(ty)).then_some((name, record))
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

/// `[Book]`, not `[[Book]]`.
fn is_single_list(ty: &Type) -> bool {
    ty.is_list() && !ty.item_type().is_list()
}
