//! Recognises the types that wrap a list of records: Relay's connections, and pages such as `{ items total }`.

use apollo_compiler::ast::Type;
use apollo_compiler::schema::ExtendedType;

use crate::naming::names::snake_words;
use crate::{Model, RecordTypeId, Scalar, ScalarGroup};

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
        self.wrapped_type(type_name).and_then(|name| self.find_record(name))
    }

    /// The interface or union whose records the type wraps.
    pub fn connection_abstract(&self, type_name: &str) -> Option<&str> {
        self.wrapped_type(type_name).filter(|name| self.is_abstract(name))
    }

    /// The type of the records that the type wraps: a record type, else an interface or union of record types.
    fn wrapped_type(&self, type_name: &str) -> Option<&str> {
        let page_node = self.page_list(type_name).map(|(_, node)| node);
        let nodes = || [self.edge_node(type_name), page_node].into_iter().flatten();
        nodes().find(|name| self.find_record(name).is_some()).or_else(|| nodes().next())
    }

    /// What a field of a connection or a page holds, by its name and its type.
    pub fn page_field(&self, type_name: &str, field: &str) -> Option<PageField> {
        let node = self.wrapped_type(type_name)?;
        let page_list = self.page_list(type_name).map(|(list, _)| list);
        let ty = self.field_type(type_name, field)?;
        let inner = ty.inner_named_type().as_str();
        if Some(field) == page_list || (field == "nodes" && is_single_list(ty)) {
            return (inner == node).then_some(PageField::Records);
        }
        let words = snake_words(field);
        let is_flag = inner == "Boolean" && !ty.is_list();
        match words.as_str() {
            "total_count" if self.is_number(ty) => Some(PageField::Total),
            // A connection has these in its `pageInfo`.
            _ if page_list.is_none() => None,
            "total" | "count" | "total_elements" | "total_items" | "total_records" if self.is_number(ty) => {
                Some(PageField::Total)
            }
            "has_next" | "has_next_page" | "has_more" if is_flag => Some(PageField::HasNext),
            "has_previous" | "has_previous_page" if is_flag => Some(PageField::HasPrevious),
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

    fn edge_node(&self, type_name: &str) -> Option<&str> {
        let edges = self.field_type(type_name, "edges")?;
        let node = self.field_type(edges.inner_named_type(), "node")?;
        if !edges.is_list() || node.is_list() {
            return None;
        }
        let node = node.inner_named_type().as_str();
        (self.find_record(node).is_some() || self.abstract_records(node).is_some()).then_some(node)
    }

    /// The one list of records of a type that holds no other record. One of several types counts if there is no other.
    fn page_list(&self, type_name: &str) -> Option<(&str, &str)> {
        let ExtendedType::Object(object) = self.schema.types.get(type_name)? else { return None };
        if self.find_record(type_name).is_some() {
            return None;
        }
        let only = |is_kind: &dyn Fn(&str) -> bool| {
            let mut fields =
                object.fields.iter().filter(|(_, field)| is_kind(field.ty.inner_named_type().as_str()));
            let (name, field) = fields.next()?;
            Some(
                (fields.next().is_none() && is_single_list(&field.ty))
                    .then(|| (name.as_str(), field.ty.inner_named_type().as_str())),
            )
        };
        let of_records = only(&|name| self.find_record(name).is_some());
        of_records.or_else(|| only(&|name| self.abstract_records(name).is_some())).flatten()
    }

    /// True for numbers, and for scalars that we do not know.
    fn is_number(&self, ty: &Type) -> bool {
        let name = ty.inner_named_type();
        let is_scalar = self.schema.types.get(name).is_some_and(ExtendedType::is_scalar);
        let group = Scalar::from_name(name).map(Scalar::group);
        is_scalar && !ty.is_list() && group.is_none_or(|group| group == ScalarGroup::Number)
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
