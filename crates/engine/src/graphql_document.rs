//! The built-in operations of a schema written as GraphQL documents that run as they are.

use serde_json::{Value as Json, json};

use crate::arguments::{ArgumentRole, FilterOperator};
use crate::{
    BuiltinOperation, ComparisonOp, Condition, Engine, ListSlice, Listing, OperationVerb, ResolverBinding,
    ResultShape,
};
use trefoil_model::values::example_values;
use trefoil_model::{
    Argument, Field, FieldId, FieldKind, Model, RecordType, RecordTypeId, RootField, RootKind,
};

/// What a document is to ask for.
#[derive(Debug)]
pub struct DocumentRequest<'w> {
    pub record: RecordTypeId,
    pub verb: OperationVerb,
    /// Which record, for those that mean one.
    pub id: i64,
    /// What is written, by the names that JSON has.
    pub values: &'w Json,
    /// Which part of a list; what the operation has no argument for is left out.
    pub listing: Option<&'w Listing>,
}

impl DocumentRequest<'_> {
    /// The document, where the schema has such an operation and what it must be given is known and can be written in
    /// it. `selection` is what it shows of a record.
    pub fn render(&self, engine: &Engine, selection: &str) -> Option<String> {
        if !is_expressible(self.values) {
            return None;
        }
        let model = engine.model();
        let (root, builtin) = find_builtin(engine, self.record, self.verb)?;
        let mut given = Vec::new();
        for (argument, (_, role)) in root.arguments.iter().zip(&builtin.argument_roles) {
            match self.argument_literal(model, builtin, argument, role) {
                Some(value) => given.push(format!("{}: {value}", argument.name)),
                None if argument.ty.is_required() => return None,
                None => {}
            }
        }
        let arguments = if given.is_empty() { String::new() } else { format!("({})", given.join(", ")) };
        let selection = match builtin.result_shape {
            ResultShape::Record | ResultShape::List => format!(" {{ {selection} }}"),
            ResultShape::Connection => format!(" {{ edges {{ node {{ {selection} }} }} }}"),
            ResultShape::Id | ResultShape::Boolean => String::new(),
        };
        let keyword = match root.root_kind {
            RootKind::Query => "query",
            RootKind::Mutation => "mutation",
            RootKind::Subscription => "subscription",
        };
        let title = format!("{}{}", root.name[..1].to_uppercase(), &root.name[1..]);
        Some(format!("{keyword} {title} {{\n  {}{arguments}{selection}\n}}\n", root.name))
    }

    /// The filters of the list, or the values, that the operation has no argument for.
    pub fn unexpressed_parts(&self, engine: &Engine) -> Vec<String> {
        let Some((root, builtin)) = find_builtin(engine, self.record, self.verb) else { return Vec::new() };
        let record = engine.model().record(self.record);
        let Some(listing) = self.listing else { return self.unexpressed_values(record, root, builtin) };
        let names = |role: ArgumentRole| builtin.argument_roles.iter().position(|(_, known)| *known == role);
        let inside = names(ArgumentRole::Where).map_or(&[][..], |at| root.arguments[at].fields.as_slice());
        unexpressed_listing_parts(record, listing, |part| match part {
            ListingPart::Condition(Condition { field, op, .. }) => {
                let is_argument = *op == ComparisonOp::Eq && names(ArgumentRole::Field(*field)).is_some();
                let key = condition_key(record, *field, *op);
                is_argument || inside.iter().any(|argument| argument.name == key)
            }
            ListingPart::Search => false,
            ListingPart::Order => names(ArgumentRole::OrderBy).is_some(),
            ListingPart::Page => names(ArgumentRole::Page).is_some(),
            ListingPart::After => names(ArgumentRole::After).is_some(),
        })
    }

    fn unexpressed_values(
        &self,
        record: &RecordType,
        root: &RootField,
        builtin: &BuiltinOperation,
    ) -> Vec<String> {
        let takes = |id: Option<FieldId>| {
            builtin.argument_roles.iter().zip(&root.arguments).any(|((_, role), argument)| {
                let inside =
                    || argument.fields.iter().any(|inner| record.find_input_field(&inner.name) == id);
                id.is_some_and(|id| *role == ArgumentRole::Field(id))
                    || (*role == ArgumentRole::Input && inside())
            })
        };
        let says_nothing = |value: &Json| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        let values = self.values.as_object().into_iter().flatten();
        let values =
            values.filter(|(name, value)| !says_nothing(value) && !takes(record.find_input_field(name)));
        values.map(|(name, _)| name.clone()).collect()
    }

    fn argument_literal(
        &self,
        model: &Model,
        builtin: &BuiltinOperation,
        argument: &Argument,
        role: &ArgumentRole,
    ) -> Option<String> {
        let record = model.record(builtin.record);
        let plain = |value: Json| graphql_literal(model, argument.ty.inner_name(), None, &value);
        match role {
            ArgumentRole::Id => Some(plain(json!(self.id.to_string()))),
            ArgumentRole::Field(id) => {
                let field = record.field(*id);
                let value = match self.verb {
                    OperationVerb::Create | OperationVerb::Update => {
                        self.values.get(&field.input_name).cloned()
                    }
                    OperationVerb::List
                    | OperationVerb::Subscribe(_)
                    | OperationVerb::Get
                    | OperationVerb::Delete => self.equality_value(*id),
                };
                let needed =
                    || example_values::example_value(model, field).filter(|_| argument.ty.is_required());
                let value = value.or_else(needed)?;
                Some(graphql_literal(model, argument.ty.inner_name(), Some(&field.kind), &value))
            }
            ArgumentRole::Input => self.input_literal(model, record, argument),
            ArgumentRole::Page => self.page_and_size().map(|(page, _)| plain(json!(page))),
            ArgumentRole::Size => self.page_and_size().map(|(_, size)| plain(json!(size))),
            ArgumentRole::First => self.first_and_after(builtin).map(|(first, _)| plain(json!(first))),
            ArgumentRole::After => {
                self.first_and_after(builtin).and_then(|(_, after)| after).map(|after| plain(json!(after)))
            }
            ArgumentRole::OrderBy => self.sort_words(record).map(|words| json!(words).to_string()),
            ArgumentRole::Where => self.where_literal(model, record, argument),
            ArgumentRole::ExpectedVersion | ArgumentRole::Unknown => None,
        }
    }

    /// One object that holds what the other arguments could say.
    fn input_literal(&self, model: &Model, record: &RecordType, argument: &Argument) -> Option<String> {
        let mut given = Vec::new();
        for inner in &argument.fields {
            let value = match record.find_input_field(&inner.name).map(|id| record.field(id)) {
                Some(field) if field.kind == FieldKind::Id && self.verb != OperationVerb::Create => {
                    Some(graphql_literal(model, inner.ty.inner_name(), None, &json!(self.id.to_string())))
                }
                Some(field) => self
                    .values
                    .get(&field.input_name)
                    .map(|value| graphql_literal(model, inner.ty.inner_name(), Some(&field.kind), value)),
                None => None,
            };
            match value {
                Some(value) => given.push(format!("{}: {value}", inner.name)),
                None if inner.ty.is_required() => return None,
                None => {}
            }
        }
        Some(format!("{{ {} }}", given.join(", ")))
    }

    fn equality_value(&self, field: FieldId) -> Option<Json> {
        let mut conditions = self.listing?.conditions.iter();
        let found =
            conditions.find(|condition| condition.op == ComparisonOp::Eq && condition.field == field)?;
        Some(found.value.to_json())
    }

    fn where_literal(&self, model: &Model, record: &RecordType, argument: &Argument) -> Option<String> {
        let said = self.listing?.conditions.iter().filter_map(|condition| {
            let key = condition_key(record, condition.field, condition.op);
            let declared = argument.fields.iter().find(|declared| declared.name == key)?;
            let kind = &record.field(condition.field).kind;
            let value =
                graphql_literal(model, declared.ty.inner_name(), Some(kind), &condition.value.to_json());
            Some(format!("{key}: {value}"))
        });
        let said: Vec<String> = said.collect();
        (!said.is_empty()).then(|| format!("{{ {} }}", said.join(", ")))
    }

    fn sort_words(&self, record: &RecordType) -> Option<Vec<String>> {
        let order = &self.listing?.sort_keys;
        let word = |by: &crate::SortKey| {
            format!("{}{}", if by.descending { "-" } else { "" }, record.field(by.field).name)
        };
        (!order.is_empty()).then(|| order.iter().map(word).collect())
    }

    /// The first page is also the first so many.
    fn page_and_size(&self) -> Option<(i64, i64)> {
        match &self.listing?.slice {
            ListSlice::Page { page, size } => Some((*page, *size)),
            ListSlice::First { first, after: None } => Some((1, *first)),
            ListSlice::First { after: Some(_), .. } | ListSlice::All => None,
        }
    }

    /// Where the operation has words for both, the first part is its first page.
    fn first_and_after(&self, builtin: &BuiltinOperation) -> Option<(i64, Option<&str>)> {
        let has_pages = builtin.argument_roles.iter().any(|(_, role)| *role == ArgumentRole::Page);
        match &self.listing?.slice {
            ListSlice::First { first, after: Some(after) } => Some((*first, Some(after))),
            ListSlice::First { first, after: None } if !has_pages => Some((*first, None)),
            ListSlice::Page { page: 1, size } if !has_pages => Some((*size, None)),
            ListSlice::First { .. } | ListSlice::Page { .. } | ListSlice::All => None,
        }
    }
}

/// Something that a listing asks for.
pub enum ListingPart<'a> {
    Condition(&'a Condition),
    Search,
    Order,
    Page,
    After,
}

/// The names of those parts of a listing that are not said.
pub fn unexpressed_listing_parts(
    record: &RecordType,
    listing: &Listing,
    is_said: impl Fn(ListingPart<'_>) -> bool,
) -> Vec<String> {
    let conditions =
        listing.conditions.iter().filter(|condition| !is_said(ListingPart::Condition(condition)));
    let conditions = conditions.map(|condition| record.field(condition.field).name.as_str());
    let search = listing.search.as_ref().filter(|_| !is_said(ListingPart::Search)).map(|_| "q");
    let order = (!listing.sort_keys.is_empty() && !is_said(ListingPart::Order)).then_some("sort");
    let page = match &listing.slice {
        ListSlice::Page { page: 1, .. } | ListSlice::First { after: None, .. } | ListSlice::All => None,
        ListSlice::Page { .. } => (!is_said(ListingPart::Page)).then_some("page"),
        ListSlice::First { after: Some(_), .. } => (!is_said(ListingPart::After)).then_some("page"),
    };
    let mut names: Vec<String> =
        conditions.chain(search).chain(order).chain(page).map(str::to_owned).collect();
    names.dedup();
    names
}

/// The root field that does this.
fn find_builtin(
    engine: &Engine,
    record: RecordTypeId,
    verb: OperationVerb,
) -> Option<(&RootField, &BuiltinOperation)> {
    let mut roots = engine.model().root_fields.iter().zip(engine.bindings());
    roots.find_map(|(root, binding)| match binding {
        ResolverBinding::Builtin(builtin) if builtin.record == record && builtin.verb == verb => {
            Some((root, builtin.as_ref()))
        }
        ResolverBinding::Builtin(_) | ResolverBinding::Registered(_) | ResolverBinding::Missing(_) => None,
    })
}

/// As `where` names it: `price_gte`.
fn condition_key(record: &RecordType, field: FieldId, op: ComparisonOp) -> String {
    let name = &record.field(field).name;
    match op {
        ComparisonOp::Eq => name.clone(),
        ComparisonOp::Ne
        | ComparisonOp::Lt
        | ComparisonOp::Lte
        | ComparisonOp::Gt
        | ComparisonOp::Gte
        | ComparisonOp::Contains
        | ComparisonOp::In => {
            format!("{name}_{}", FilterOperator::Compare(op).name())
        }
    }
}

/// The stored fields as a selection, values inside of them as deep as they go. `related` tells what is shown of a
/// record that is referred to; nothing leaves the reference out.
pub fn selection_text(
    model: &Model,
    fields: &[Field],
    related: &dyn Fn(RecordTypeId) -> Option<String>,
) -> String {
    let words =
        fields.iter().filter_map(|field| field_selection_text(model, &field.name, &field.kind, related));
    words.collect::<Vec<_>>().join(" ")
}

fn field_selection_text(
    model: &Model,
    name: &str,
    kind: &FieldKind,
    related: &dyn Fn(RecordTypeId) -> Option<String>,
) -> Option<String> {
    match kind {
        FieldKind::Id | FieldKind::Scalar(_) | FieldKind::Enum(_) => Some(name.to_owned()),
        FieldKind::List(item) => field_selection_text(model, name, &item.kind, related),
        FieldKind::Reference { target, .. } => related(*target).map(|below| format!("{name} {{ {below} }}")),
        FieldKind::Embedded(type_name) => {
            // One level: a type may be inside itself.
            let flat = model.embedded.get(type_name)?.fields.iter().filter(|inner| is_flat_kind(&inner.kind));
            let below: Vec<&str> = flat.map(|inner| inner.name.as_str()).collect();
            (!below.is_empty()).then(|| format!("{name} {{ {} }}", below.join(" ")))
        }
        FieldKind::Inverse { .. } | FieldKind::Link { .. } | FieldKind::Unstored => None,
    }
}

fn is_flat_kind(kind: &FieldKind) -> bool {
    match kind {
        FieldKind::Id | FieldKind::Scalar(_) | FieldKind::Enum(_) => true,
        FieldKind::List(item) => is_flat_kind(&item.kind),
        FieldKind::Reference { .. }
        | FieldKind::Embedded(_)
        | FieldKind::Inverse { .. }
        | FieldKind::Link { .. }
        | FieldKind::Unstored => false,
    }
}

/// JSON takes any text for the name of a member, GraphQL only names.
pub fn is_expressible(value: &Json) -> bool {
    let is_name = |text: &str| {
        let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        begins && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    match value {
        Json::Object(members) => members.iter().all(|(name, value)| is_name(name) && is_expressible(value)),
        Json::Array(items) => items.iter().all(is_expressible),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => true,
    }
}

/// A value as GraphQL writes it where the type `ty` is taken; `kind` tells what is inside of it.
fn graphql_literal(model: &Model, ty: &str, kind: Option<&FieldKind>, value: &Json) -> String {
    match value {
        Json::Array(items) => {
            let inner = if let Some(FieldKind::List(item)) = kind { Some(&item.kind) } else { kind };
            let items: Vec<String> =
                items.iter().map(|item| graphql_literal(model, ty, inner, item)).collect();
            format!("[{}]", items.join(", "))
        }
        Json::Object(members) => {
            let inside =
                if let Some(FieldKind::Embedded(name)) = kind { model.embedded.get(name) } else { None };
            let kind_of = |name: &str| {
                let fields = &inside?.fields;
                fields.iter().find(|field| field.name == name).map(|field| &field.kind)
            };
            let members = members.iter();
            let members: Vec<String> = members
                .map(|(name, value)| format!("{name}: {}", graphql_literal(model, "", kind_of(name), value)))
                .collect();
            format!("{{ {} }}", members.join(", "))
        }
        Json::String(text) if model.enums.contains_key(ty) => text.clone(),
        Json::String(text) if ty.is_empty() && matches!(kind, Some(FieldKind::Enum(_))) => text.clone(),
        Json::String(text) if matches!(ty, "Int" | "Float") && text.parse::<f64>().is_ok() => text.clone(),
        Json::Number(number) if matches!(ty, "String" | "ID") => json!(number.to_string()).to_string(),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => value.to_string(),
    }
}
