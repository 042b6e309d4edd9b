//! The built-in operations of a schema written as GraphQL documents that run as they are.

use serde_json::{Value as Json, json};

use crate::arguments::{Asks, Role};
use crate::{Binding, Builtin, Condition, Engine, Gives, Listing, Op, Slice, Verb};
use trefoil_model::values::example_values;
use trefoil_model::{Argument, Field, FieldId, Kind, Model, RecordType, Root, RootField, TypeId};

/// What a document is to ask for.
#[derive(Debug)]
pub struct Wanted<'w> {
    pub record: TypeId,
    pub verb: Verb,
    /// Which record, for those that mean one.
    pub id: i64,
    /// What is written, by the names that JSON has.
    pub values: &'w Json,
    /// Which part of a list; what the operation has no argument for is left out.
    pub listing: Option<&'w Listing>,
}

impl Wanted<'_> {
    /// The document, where the schema has such an operation and what it must be given is known and can be written in
    /// it. `selection` is what it shows of a record.
    pub fn document(&self, engine: &Engine, selection: &str) -> Option<String> {
        if !is_writable(self.values) {
            return None;
        }
        let model = engine.model();
        let (root, builtin) = bound(engine, self.record, self.verb)?;
        let mut given = Vec::new();
        for (argument, (_, role)) in root.arguments.iter().zip(&builtin.roles) {
            match self.argument(model, builtin, argument, role) {
                Some(value) => given.push(format!("{}: {value}", argument.name)),
                None if argument.ty.is_required() => return None,
                None => {}
            }
        }
        let arguments = if given.is_empty() { String::new() } else { format!("({})", given.join(", ")) };
        let selection = match builtin.gives {
            Gives::Record | Gives::List => format!(" {{ {selection} }}"),
            Gives::Connection => format!(" {{ edges {{ node {{ {selection} }} }} }}"),
            Gives::Id | Gives::Boolean => String::new(),
        };
        let keyword = match root.root {
            Root::Query => "query",
            Root::Mutation => "mutation",
            Root::Subscription => "subscription",
        };
        let title = format!("{}{}", root.name[..1].to_uppercase(), &root.name[1..]);
        Some(format!("{keyword} {title} {{\n  {}{arguments}{selection}\n}}\n", root.name))
    }

    /// The filters of the list, or the values, that the operation has no argument for.
    pub fn unsaid(&self, engine: &Engine) -> Vec<String> {
        let Some((root, builtin)) = bound(engine, self.record, self.verb) else { return Vec::new() };
        let record = engine.model().record(self.record);
        let Some(listing) = self.listing else { return self.unwritten(record, root, builtin) };
        let names = |role: Role| builtin.roles.iter().position(|(_, known)| *known == role);
        let inside = names(Role::Where).map_or(&[][..], |at| root.arguments[at].fields.as_slice());
        unsaid(record, listing, |part| match part {
            Part::Condition(Condition { field, op, .. }) => {
                let is_argument = *op == Op::Eq && names(Role::Field(*field)).is_some();
                let key = key(record, *field, *op);
                is_argument || inside.iter().any(|argument| argument.name == key)
            }
            Part::Search => false,
            Part::Order => names(Role::OrderBy).is_some(),
            Part::Page => names(Role::Page).is_some(),
            Part::After => names(Role::After).is_some(),
        })
    }

    fn unwritten(&self, record: &RecordType, root: &RootField, builtin: &Builtin) -> Vec<String> {
        let takes = |id: Option<FieldId>| {
            builtin.roles.iter().zip(&root.arguments).any(|((_, role), argument)| {
                let inside = || argument.fields.iter().any(|inner| record.input_field(&inner.name) == id);
                id.is_some_and(|id| *role == Role::Field(id)) || (*role == Role::Input && inside())
            })
        };
        let says_nothing = |value: &Json| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        let values = self.values.as_object().into_iter().flatten();
        let values = values.filter(|(name, value)| !says_nothing(value) && !takes(record.input_field(name)));
        values.map(|(name, _)| name.clone()).collect()
    }

    fn argument(&self, model: &Model, builtin: &Builtin, argument: &Argument, role: &Role) -> Option<String> {
        let record = model.record(builtin.record);
        let plain = |value: Json| literal(model, argument.ty.name(), None, &value);
        match role {
            Role::Id => Some(plain(json!(self.id.to_string()))),
            Role::Field(id) => {
                let field = record.field(*id);
                let value = match self.verb {
                    Verb::Create | Verb::Update => self.values.get(&field.input_name).cloned(),
                    Verb::List | Verb::Watch(_) | Verb::Get | Verb::Delete => self.equal_to(*id),
                };
                let needed = || example_values::made_up(model, field).filter(|_| argument.ty.is_required());
                let value = value.or_else(needed)?;
                Some(literal(model, argument.ty.name(), Some(&field.kind), &value))
            }
            Role::Input => self.input(model, record, argument),
            Role::Page => self.page().map(|(page, _)| plain(json!(page))),
            Role::Size => self.page().map(|(_, size)| plain(json!(size))),
            Role::First => self.first(builtin).map(|(first, _)| plain(json!(first))),
            Role::After => self.first(builtin).and_then(|(_, after)| after).map(|after| plain(json!(after))),
            Role::OrderBy => self.order(record).map(|words| json!(words).to_string()),
            Role::Where => self.conditions(model, record, argument),
            Role::ExpectedVersion | Role::Unknown => None,
        }
    }

    /// One object that holds what the other arguments could say.
    fn input(&self, model: &Model, record: &RecordType, argument: &Argument) -> Option<String> {
        let mut given = Vec::new();
        for inner in &argument.fields {
            let value = match record.input_field(&inner.name).map(|id| record.field(id)) {
                Some(field) if field.kind == Kind::Id && self.verb != Verb::Create => {
                    Some(literal(model, inner.ty.name(), None, &json!(self.id.to_string())))
                }
                Some(field) => self
                    .values
                    .get(&field.input_name)
                    .map(|value| literal(model, inner.ty.name(), Some(&field.kind), value)),
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

    fn equal_to(&self, field: FieldId) -> Option<Json> {
        let mut conditions = self.listing?.conditions.iter();
        let found = conditions.find(|condition| condition.op == Op::Eq && condition.field == field)?;
        Some(found.value.to_json())
    }

    fn conditions(&self, model: &Model, record: &RecordType, argument: &Argument) -> Option<String> {
        let said = self.listing?.conditions.iter().filter_map(|condition| {
            let key = key(record, condition.field, condition.op);
            let declared = argument.fields.iter().find(|declared| declared.name == key)?;
            let kind = &record.field(condition.field).kind;
            let value = literal(model, declared.ty.name(), Some(kind), &condition.value.to_json());
            Some(format!("{key}: {value}"))
        });
        let said: Vec<String> = said.collect();
        (!said.is_empty()).then(|| format!("{{ {} }}", said.join(", ")))
    }

    fn order(&self, record: &RecordType) -> Option<Vec<String>> {
        let order = &self.listing?.order;
        let word = |by: &crate::Order| {
            format!("{}{}", if by.descending { "-" } else { "" }, record.field(by.field).name)
        };
        (!order.is_empty()).then(|| order.iter().map(word).collect())
    }

    /// The first page is also the first so many.
    fn page(&self) -> Option<(i64, i64)> {
        match &self.listing?.slice {
            Slice::Page { page, size } => Some((*page, *size)),
            Slice::First { first, after: None } => Some((1, *first)),
            Slice::First { after: Some(_), .. } | Slice::All => None,
        }
    }

    /// Where the operation has words for both, the first part is its first page.
    fn first(&self, builtin: &Builtin) -> Option<(i64, Option<&str>)> {
        let has_pages = builtin.roles.iter().any(|(_, role)| *role == Role::Page);
        match &self.listing?.slice {
            Slice::First { first, after: Some(after) } => Some((*first, Some(after))),
            Slice::First { first, after: None } if !has_pages => Some((*first, None)),
            Slice::Page { page: 1, size } if !has_pages => Some((*size, None)),
            Slice::First { .. } | Slice::Page { .. } | Slice::All => None,
        }
    }
}

/// Something that a listing asks for.
pub enum Part<'a> {
    Condition(&'a Condition),
    Search,
    Order,
    Page,
    After,
}

/// The names of those parts of a listing that are not said.
pub fn unsaid(record: &RecordType, listing: &Listing, is_said: impl Fn(Part<'_>) -> bool) -> Vec<String> {
    let conditions = listing.conditions.iter().filter(|condition| !is_said(Part::Condition(condition)));
    let conditions = conditions.map(|condition| record.field(condition.field).name.as_str());
    let search = listing.search.as_ref().filter(|_| !is_said(Part::Search)).map(|_| "q");
    let order = (!listing.order.is_empty() && !is_said(Part::Order)).then_some("sort");
    let page = match &listing.slice {
        Slice::Page { page: 1, .. } | Slice::First { after: None, .. } | Slice::All => None,
        Slice::Page { .. } => (!is_said(Part::Page)).then_some("page"),
        Slice::First { after: Some(_), .. } => (!is_said(Part::After)).then_some("page"),
    };
    let mut names: Vec<String> =
        conditions.chain(search).chain(order).chain(page).map(str::to_owned).collect();
    names.dedup();
    names
}

/// The root field that does this.
fn bound(engine: &Engine, record: TypeId, verb: Verb) -> Option<(&RootField, &Builtin)> {
    let mut roots = engine.model().roots.iter().zip(engine.bindings());
    roots.find_map(|(root, binding)| match binding {
        Binding::Builtin(builtin) if builtin.record == record && builtin.verb == verb => {
            Some((root, builtin.as_ref()))
        }
        Binding::Builtin(_) | Binding::Registered(_) | Binding::Missing(_) => None,
    })
}

/// As `where` names it: `price_gte`.
fn key(record: &RecordType, field: FieldId, op: Op) -> String {
    let name = &record.field(field).name;
    match op {
        Op::Eq => name.clone(),
        Op::Ne | Op::Lt | Op::Lte | Op::Gt | Op::Gte | Op::Contains | Op::In => {
            format!("{name}_{}", Asks::Compare(op).name())
        }
    }
}

/// The stored fields as a selection, values inside of them as deep as they go. `related` tells what is shown of a
/// record that is referred to; nothing leaves the reference out.
pub fn selection(model: &Model, fields: &[Field], related: &dyn Fn(TypeId) -> Option<String>) -> String {
    let words = fields.iter().filter_map(|field| selected(model, &field.name, &field.kind, related));
    words.collect::<Vec<_>>().join(" ")
}

fn selected(
    model: &Model,
    name: &str,
    kind: &Kind,
    related: &dyn Fn(TypeId) -> Option<String>,
) -> Option<String> {
    match kind {
        Kind::Id | Kind::Scalar(_) | Kind::Enum(_) => Some(name.to_owned()),
        Kind::List(item) => selected(model, name, &item.kind, related),
        Kind::Reference { target, .. } => related(*target).map(|below| format!("{name} {{ {below} }}")),
        Kind::Embedded(type_name) => {
            // One level: a type may be inside itself.
            let flat = model.embedded.get(type_name)?.fields.iter().filter(|inner| is_flat(&inner.kind));
            let below: Vec<&str> = flat.map(|inner| inner.name.as_str()).collect();
            (!below.is_empty()).then(|| format!("{name} {{ {} }}", below.join(" ")))
        }
        Kind::Inverse { .. } | Kind::Link { .. } | Kind::Unstored => None,
    }
}

fn is_flat(kind: &Kind) -> bool {
    match kind {
        Kind::Id | Kind::Scalar(_) | Kind::Enum(_) => true,
        Kind::List(item) => is_flat(&item.kind),
        Kind::Reference { .. }
        | Kind::Embedded(_)
        | Kind::Inverse { .. }
        | Kind::Link { .. }
        | Kind::Unstored => false,
    }
}

/// JSON takes any text for the name of a member, GraphQL only names.
pub fn is_writable(value: &Json) -> bool {
    let is_name = |text: &str| {
        let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        begins && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    match value {
        Json::Object(members) => members.iter().all(|(name, value)| is_name(name) && is_writable(value)),
        Json::Array(items) => items.iter().all(is_writable),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => true,
    }
}

/// A value as GraphQL writes it where the type `ty` is taken; `kind` tells what is inside of it.
fn literal(model: &Model, ty: &str, kind: Option<&Kind>, value: &Json) -> String {
    match value {
        Json::Array(items) => {
            let inner = if let Some(Kind::List(item)) = kind { Some(&item.kind) } else { kind };
            let items: Vec<String> = items.iter().map(|item| literal(model, ty, inner, item)).collect();
            format!("[{}]", items.join(", "))
        }
        Json::Object(members) => {
            let inside = if let Some(Kind::Embedded(name)) = kind { model.embedded.get(name) } else { None };
            let kind_of = |name: &str| {
                let fields = &inside?.fields;
                fields.iter().find(|field| field.name == name).map(|field| &field.kind)
            };
            let members = members.iter();
            let members: Vec<String> = members
                .map(|(name, value)| format!("{name}: {}", literal(model, "", kind_of(name), value)))
                .collect();
            format!("{{ {} }}", members.join(", "))
        }
        Json::String(text) if model.enums.contains_key(ty) => text.clone(),
        Json::String(text) if ty.is_empty() && matches!(kind, Some(Kind::Enum(_))) => text.clone(),
        Json::String(text) if matches!(ty, "Int" | "Float") && text.parse::<f64>().is_ok() => text.clone(),
        Json::Number(number) if matches!(ty, "String" | "ID") => json!(number.to_string()).to_string(),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => value.to_string(),
    }
}
