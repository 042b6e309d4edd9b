//! Recognises the types that wrap a list of records: Relay's connections, and pages such as `{ items total }`.

use apollo_compiler::Schema;
use apollo_compiler::ast::{FieldDefinition, Type};
use apollo_compiler::schema::{ComponentName, ExtendedType, ObjectType};

use crate::naming::inflection::{plural, singular};
use crate::naming::names::snake_words;
use crate::{Model, RecordTypeId, Scalar, ScalarGroup};

/// What a field of a connection or a page holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageField {
    Edges,
    Records,
    /// An object of parts, such as `pageInfo`.
    Info,
    Part(PagePart),
}

/// What is said about a page beside its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PagePart {
    /// The number of all records, whatever the page.
    Total,
    PageCount,
    /// The number of the page, counted like the argument for it, else from 1.
    Page,
    /// The same in Spring's pages: without such an argument it counts from 0.
    SpringNumber,
    /// The same, from 0 in any case.
    PageIndex,
    NextPage,
    PreviousPage,
    /// The greatest number of records on a page.
    Size,
    /// The number of records on this page.
    Length,
    /// The number of records before this page.
    Offset,
    HasNext,
    HasPrevious,
    IsFirst,
    IsLast,
    IsEmpty,
    StartCursor,
    EndCursor,
    /// The cursor after which the next page begins; null on the last page.
    NextCursor,
    /// The id of the page itself, which is no record: where it lies in the list.
    PageId,
}

/// Names of the number of all records.
const TOTAL_NAMES: [&str; 8] = [
    "total_count",
    "total",
    "count",
    "elements",
    "total_elements",
    "total_items",
    "total_records",
    "total_results",
];

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
        let ty = self.field_type(type_name, field)?;
        let inner = ty.inner_named_type().as_str();
        let is_page_list = self.page_list(type_name).is_some_and(|(list, _)| list == field);
        if is_page_list || (field == "nodes" && is_single_list(ty)) {
            return (inner == node).then_some(PageField::Records);
        }
        match self.schema.get_object(inner) {
            Some(_) if ty.is_list() => (field == "edges").then_some(PageField::Edges),
            Some(info) => {
                let mut parts = info.fields.keys().map(|name| self.page_part(inner, name));
                let is_info = field == "pageInfo" || parts.all(|part| part.is_some());
                is_info.then_some(PageField::Info)
            }
            None => self.page_part(type_name, field).map(PageField::Part),
        }
    }

    /// What a field of a page, or of an object that describes one, says about it.
    pub fn page_part(&self, type_name: &str, field: &str) -> Option<PagePart> {
        let ty = self.field_type(type_name, field)?;
        let is_flag = || ty.inner_named_type() == "Boolean" && !ty.is_list();
        let part = match snake_words(field).as_str() {
            name if TOTAL_NAMES.contains(&name) => self.is_number(ty).then_some(PagePart::Total),
            "total_pages" | "page_count" | "pages" => self.is_number(ty).then_some(PagePart::PageCount),
            "page" | "current_page" | "page_number" => self.is_number(ty).then_some(PagePart::Page),
            "number" => self.is_number(ty).then_some(PagePart::SpringNumber),
            "page_index" => self.is_number(ty).then_some(PagePart::PageIndex),
            "next_page" => self.is_number(ty).then_some(PagePart::NextPage),
            "prev_page" | "previous_page" => self.is_number(ty).then_some(PagePart::PreviousPage),
            "size" | "page_size" | "per_page" | "limit" => self.is_number(ty).then_some(PagePart::Size),
            "number_of_elements" => self.is_number(ty).then_some(PagePart::Length),
            "offset" => self.is_number(ty).then_some(PagePart::Offset),
            "has_next" | "has_next_page" | "has_more" => is_flag().then_some(PagePart::HasNext),
            "has_previous" | "has_previous_page" | "has_prev" | "has_prev_page" => {
                is_flag().then_some(PagePart::HasPrevious)
            }
            "first" | "is_first" => is_flag().then_some(PagePart::IsFirst),
            "last" | "is_last" => is_flag().then_some(PagePart::IsLast),
            "empty" | "is_empty" => is_flag().then_some(PagePart::IsEmpty),
            "start_cursor" => self.is_cursor(ty).then_some(PagePart::StartCursor),
            "end_cursor" | "cursor" => self.is_cursor(ty).then_some(PagePart::EndCursor),
            "next_cursor" => self.is_cursor(ty).then_some(PagePart::NextCursor),
            "id" => self.is_cursor(ty).then_some(PagePart::PageId),
            _ => None,
        };
        // The last page has no next one, so the field must be nullable.
        part.filter(|part| !ty.is_non_null() || !matches!(part, PagePart::NextPage | PagePart::PreviousPage))
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
        if self.find_record(type_name).is_some() || self.is_graph(type_name) {
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

    /// True for `{ nodes edges }` whose edges lead from one node to another: they are no edges of a connection.
    fn is_graph(&self, type_name: &str) -> bool {
        let edges = self.field_type(type_name, "edges").filter(|ty| ty.is_list());
        let edge = edges.and_then(|ty| self.schema.get_object(ty.inner_named_type()));
        edge.is_some_and(|edge| !edge.fields.contains_key("node") && self.find_record(&edge.name).is_none())
    }

    /// True for numbers, and for scalars that we do not know.
    fn is_number(&self, ty: &Type) -> bool {
        let name = ty.inner_named_type();
        let is_scalar = self.schema.types.get(name).is_some_and(ExtendedType::is_scalar);
        let group = Scalar::from_name(name).map(Scalar::group);
        is_scalar && !ty.is_list() && group.is_none_or(|group| group == ScalarGroup::Number)
    }

    /// True for texts, and for scalars that we do not know.
    fn is_cursor(&self, ty: &Type) -> bool {
        let name = ty.inner_named_type();
        let is_scalar = self.schema.types.get(name).is_some_and(ExtendedType::is_scalar);
        let is_text = matches!(name.as_str(), "String" | "ID") || Scalar::from_name(name).is_none();
        is_scalar && !ty.is_list() && is_text
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

/// True for a page that has an id, `Feed { id: ID! links: [Link!]! count: Int! }`: one list of records with their number,
/// which only queries with arguments for paging return.
pub(crate) fn is_page_with_id(schema: &Schema, page: &ObjectType) -> bool {
    let is_total = |name: &str| TOTAL_NAMES.contains(&snake_words(name).as_str());
    let is_list = |ty: &Type| {
        let item = schema.get_object(ty.inner_named_type());
        is_single_list(ty) && item.is_some_and(|item| item.fields.contains_key("id"))
    };
    let mut lists = page.fields.values().filter(|field| is_list(&field.ty));
    let has_list = lists.next().is_some() && lists.next().is_none();
    let rest = || page.fields.values().filter(|field| !is_list(&field.ty) && field.name != "id");
    let has_total = rest().any(|field| is_total(&field.name)) && rest().all(|field| is_total(&field.name));
    if !has_list || !has_total {
        return false;
    }
    let noun = format!("_{}_", snake_words(&page.name));
    let has_word = |name: &str| format!("_{}_", snake_words(name)).contains(&noun);
    let root = |root: &Option<ComponentName>| root.as_ref().map(|root| root.name.clone());
    let [query, mutation] = [&schema.schema_definition.query, &schema.schema_definition.mutation].map(root);
    let is_member = |ty: &ExtendedType| ty.as_union().is_some_and(|union| union.members.contains(&page.name));
    let is_written = || {
        let mutation = mutation.as_ref().and_then(|name| schema.get_object(name));
        mutation.is_some_and(|mutation| mutation.fields.keys().any(|name| has_word(name)))
    };
    if schema.types.values().any(is_member) || is_written() {
        return false;
    }
    let objects = schema.types.values().filter_map(|ty| ty.as_object());
    let fields = objects.flat_map(|object| object.fields.values().map(move |field| (&object.name, field)));
    let mut uses = fields.filter(|(_, field)| field.ty.inner_named_type() == &page.name).peekable();
    let is_paged = |field: &FieldDefinition| {
        let names = || field.arguments.iter().map(|argument| snake_words(&argument.name));
        let is_paging = |name: String| PAGING_NAMES.contains(&name.as_str());
        let is_key = |name: String| name == "id" || name.ends_with("_id");
        names().any(is_paging) && !names().any(is_key)
    };
    uses.peek().is_some()
        && uses.all(|(owner, field)| Some(owner) == query.as_ref() && !field.ty.is_list() && is_paged(field))
}

/// Arguments by which pages are asked for.
const PAGING_NAMES: [&str; 9] =
    ["skip", "take", "limit", "offset", "first", "last", "page", "size", "per_page"];

/// Words in the names of types that wrap records, beside the name of the record type.
const WRAPPER_WORDS: [&str; 12] = [
    "collection",
    "connection",
    "connections",
    "list",
    "page",
    "paged",
    "paginated",
    "pagination",
    "response",
    "result",
    "results",
    "slice",
];

/// The record type of the related records that a record shows in an object of their own: a connection, or a page whose
/// name says that it is one. `Cart { items: [Product!]! }` is not.
pub(crate) fn related_record<'s>(
    schema: &'s Schema,
    wrapper: &'s ObjectType,
    is_record: impl Fn(&str) -> bool,
) -> Option<&'s str> {
    let edge_node = || {
        let edges = wrapper.fields.get("edges").filter(|edges| is_single_list(&edges.ty))?;
        let node = schema.get_object(edges.ty.inner_named_type())?.fields.get("node")?;
        let name = node.ty.inner_named_type().as_str();
        (!node.ty.is_list() && is_record(name)).then_some(name)
    };
    let page_node = || {
        let mut lists = wrapper.fields.values().filter(|field| is_record(field.ty.inner_named_type()));
        let list = lists.next().filter(|list| is_single_list(&list.ty) && list.arguments.is_empty())?;
        let name = list.ty.inner_named_type().as_str();
        (lists.next().is_none() && is_named_wrapper(&wrapper.name, name)).then_some(name)
    };
    edge_node().or_else(page_node)
}

/// True for `VisitConnection` and `PaginatedVisits` around `Visit`.
pub(crate) fn is_named_wrapper(wrapper: &str, record: &str) -> bool {
    let words = snake_words(wrapper);
    let record = snake_words(record);
    let [one, many] = [singular(&record), plural(&record)];
    let names = [record, one, many];
    let rest = names.iter().filter_map(|name| {
        let rest = words.strip_prefix(name.as_str()).or_else(|| words.strip_suffix(name.as_str()))?;
        Some(rest.trim_matches('_').to_owned())
    });
    let mut rests = rest.filter(|rest| !rest.is_empty());
    rests.any(|rest| rest.split('_').all(|word| WRAPPER_WORDS.contains(&word)))
}
