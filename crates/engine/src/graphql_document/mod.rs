//! Writes built-in operations as GraphQL documents that can be executed.

mod literals;
mod where_literal;

use serde_json::{Value as Json, json};

use trefoil_model::access::{AccessAction, AccessVerdict};
use trefoil_model::values::example_values;
use trefoil_model::{
    Argument, Field, FieldId, FilterOperator, Model, RecordId, RecordType, RecordTypeId, RootField, RootType,
    ValueType,
};

use crate::access::AccessView;
use crate::arguments::argument_roles::member_role;
use crate::builtin_operation::VerbGroup;
use crate::graphql_document::literals::graphql_literal;
use crate::graphql_document::where_literal::WhereWriter;
use crate::{
    ArgumentRole, BuiltinOperation, Condition, Engine, ListSlice, Listing, OperationVerb, ResolverBinding,
    ResultShape,
};

/// The operation that a document runs.
#[derive(Debug)]
pub struct DocumentTemplate<'w> {
    pub record: RecordTypeId,
    pub verb: OperationVerb,
    /// The record, for operations on one.
    pub id: Option<&'w RecordId>,
    /// The values to write, by their JSON names; for groups, their keys as `groupBy`, their `measures` and `orderBy`.
    pub values: &'w Json,
    /// The part of a list; what the operation has no argument for is left out.
    pub listing: Option<&'w Listing>,
}

impl DocumentTemplate<'_> {
    /// The document, or `None` if the schema has no such operation or a required argument cannot be written.
    /// `selection` is selected of the record.
    pub fn render(&self, engine: &Engine, selection: &str) -> Option<String> {
        self.render_named(engine, selection, "")
    }

    /// The same, with an ending of the operation's name, for documents that use a root field twice.
    pub fn render_named(&self, engine: &Engine, selection: &str, ending: &str) -> Option<String> {
        if !is_expressible(self.values) {
            return None;
        }
        let model = engine.model();
        let (root, builtin) = self.find_builtin(engine)?;
        let mut arguments = Vec::new();
        for (argument, (_, role)) in root.arguments.iter().zip(&builtin.argument_roles) {
            let literal = self.argument_literal(model, builtin, argument, role);
            match literal.filter(|_| self.is_open(engine, role)) {
                Some(value) => arguments.push(format!("{}: {value}", argument.name)),
                None if argument.ty.is_required() => return None,
                None => {}
            }
        }
        let arguments =
            if arguments.is_empty() { String::new() } else { format!("({})", arguments.join(", ")) };
        let result_type = root.ty.inner_name();
        let selection = match builtin.result_shape {
            ResultShape::Record | ResultShape::List => {
                format!(" {}", model.result_selection(result_type, &format!("{{ {selection} }}")))
            }
            ResultShape::Connection => {
                let wrapped = model.wrapped_selection(model.success_type(result_type), selection);
                format!(" {}", model.result_selection(result_type, &wrapped))
            }
            ResultShape::Payload => {
                let payload = model.payload_selection(model.success_type(result_type), selection);
                format!(" {}", model.result_selection(result_type, &payload))
            }
            ResultShape::Groups => {
                format!(" {}", model.group_selection(result_type, &self.group_texts("measures")).0)
            }
            ResultShape::Id | ResultShape::Boolean | ResultShape::Nothing | ResultShape::Count => {
                String::new()
            }
        };
        let keyword = root.root_kind.keyword();
        let title = format!("{}{}", root.name[..1].to_uppercase(), &root.name[1..]);
        Some(format!("{keyword} {title}{ending} {{\n  {}{arguments}{selection}\n}}\n", root.name))
    }

    /// Whether the actor may ever give an argument of this role.
    fn is_open(&self, engine: &Engine, role: &ArgumentRole) -> bool {
        if let ArgumentRole::RelatedField(relation, field) = role {
            return engine.shows_related_field(self.record, *relation, *field);
        }
        let (ArgumentRole::Field(field) | ArgumentRole::Compare(field, _)) = role else { return true };
        match (self.verb.group() == VerbGroup::WriteFields, self.verb.may_create()) {
            (true, true) => engine.may_set(AccessAction::Create, self.record, *field),
            (true, false) => engine.may_set(AccessAction::Update, self.record, *field),
            (false, _) => engine.shows_field(self.record, *field),
        }
    }

    /// The filters of the list, or the values, for which the operation has no argument.
    pub fn unexpressed_parts(&self, engine: &Engine) -> Vec<String> {
        let Some((root, builtin)) = self.find_builtin(engine) else { return Vec::new() };
        let record = engine.model().record(self.record);
        let Some(listing) = self.listing else { return self.unexpressed_values(record, root, builtin) };
        let position_of =
            |role: ArgumentRole| builtin.argument_roles.iter().position(|(_, known)| *known == role);
        let where_type =
            position_of(ArgumentRole::Where).map_or("", |position| root.arguments[position].ty.inner_name());
        let writer = WhereWriter { model: engine.model() };
        unexpressed_listing_parts(record, listing, |part| match part {
            ListingPart::Condition(condition) => {
                let is_argument = condition.field_comparison().is_some_and(|(field, comparison)| {
                    comparison.operator == FilterOperator::EQUAL
                        && position_of(ArgumentRole::Field(field)).is_some()
                });
                is_argument || writer.member(record, where_type, condition).is_some()
            }
            ListingPart::Search => position_of(ArgumentRole::Search).is_some(),
            ListingPart::Order => position_of(ArgumentRole::OrderBy).is_some(),
            ListingPart::Page => position_of(ArgumentRole::Page).is_some(),
            ListingPart::After => position_of(ArgumentRole::After).is_some(),
        })
    }

    /// The same for groups: with the measures that the operation has no field for.
    pub fn unexpressed_group_parts(&self, engine: &Engine) -> Vec<String> {
        let Some((root, builtin)) = self.find_builtin(engine) else { return Vec::new() };
        let measures = self.group_texts("measures");
        let (_, missing) = engine.model().group_selection(root.ty.inner_name(), &measures);
        let has_order = builtin.argument_roles.iter().any(|(_, role)| *role == ArgumentRole::OrderBy);
        let order = (!has_order && !self.group_texts("orderBy").is_empty()).then_some("sort");
        let others = missing.into_iter().chain(order).map(str::to_owned);
        self.unexpressed_parts(engine).into_iter().chain(others).collect()
    }

    /// The texts that describe groups, under this name.
    fn group_texts(&self, name: &str) -> Vec<&str> {
        let texts = self.values.get(name).and_then(Json::as_array);
        texts.into_iter().flatten().filter_map(Json::as_str).collect()
    }

    /// The root field that suits the request best: one whose required arguments the request has values for; of
    /// `updateOrder` and `updateOrderStatus` the one that can say more, of `orders` and `ordersByUser(userId: ID!)` the
    /// one that needs less.
    fn find_builtin<'e>(&self, engine: &'e Engine) -> Option<(&'e RootField, &'e BuiltinOperation)> {
        let model = engine.model();
        let roots = model.root_fields.iter().zip(engine.bindings());
        let fitting = roots.filter_map(|(root, binding)| match binding {
            ResolverBinding::Builtin(builtin)
                if builtin.record == self.record
                    && builtin.verb == self.verb
                    && engine.may_run(self.verb, self.record) =>
            {
                Some((root, builtin.as_ref()))
            }
            ResolverBinding::Builtin(_)
            | ResolverBinding::Abstract(_)
            | ResolverBinding::Registered(_)
            | ResolverBinding::Missing(_) => None,
        });
        fitting.min_by_key(|(root, builtin)| {
            let order = match self.verb == OperationVerb::Update {
                true => usize::MAX - settable_count(root, builtin),
                false => required_filters(root, builtin),
            };
            (self.unsupplied_count(model, root, builtin), order)
        })
    }

    /// The number of required arguments that the request has no value for.
    fn unsupplied_count(&self, model: &Model, root: &RootField, builtin: &BuiltinOperation) -> usize {
        let required = root.arguments.iter().zip(&builtin.argument_roles);
        let required = required.filter(|(argument, _)| argument.ty.is_required());
        let unsupplied = required.filter(|(argument, (_, role))| {
            if let ArgumentRole::Field(id) = role {
                return self.field_value(model.record(builtin.record), *id).is_none();
            }
            self.argument_literal(model, builtin, argument, role).is_none()
        });
        unsupplied.count()
    }

    fn unexpressed_values(
        &self,
        record: &RecordType,
        root: &RootField,
        builtin: &BuiltinOperation,
    ) -> Vec<String> {
        let takes = |id: Option<FieldId>| {
            builtin.argument_roles.iter().zip(&root.arguments).any(|((_, role), argument)| {
                let has_inner =
                    || argument.fields.iter().any(|inner| record.find_input_field(&inner.name) == id);
                id.is_some_and(|id| *role == ArgumentRole::Field(id))
                    || (*role == ArgumentRole::Input && has_inner())
            })
        };
        let is_empty = |value: &Json| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        let values = self.values.as_object().into_iter().flatten();
        let values = values.filter(|(name, value)| !is_empty(value) && !takes(record.find_input_field(name)));
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
        let literal = |value: Json| graphql_literal(model, argument.ty.inner_name(), None, &value);
        match role {
            ArgumentRole::Id => self.id_text(record).map(|id| literal(json!(id))),
            ArgumentRole::Field(id) => {
                let field = record.field(*id);
                let required_example =
                    || example_values::example_value(model, field).filter(|_| argument.ty.is_required());
                let value = self.field_value(record, *id).or_else(required_example)?;
                Some(graphql_literal(model, argument.ty.inner_name(), field.kind.value_type(), &value))
            }
            ArgumentRole::Input => self.input_literal(model, record, argument),
            ArgumentRole::KeyObject => {
                let is_key =
                    |member: &&Argument| member_role(record, builtin.verb, &member.name) == ArgumentRole::Id;
                let member = argument.fields.iter().find(is_key)?;
                let id = graphql_literal(model, member.ty.inner_name(), None, &json!(self.id_text(record)?));
                Some(format!("{{ {}: {id} }}", member.name))
            }
            ArgumentRole::Page => self.page_and_size().map(|(page, _)| literal(json!(page))),
            ArgumentRole::PageFromZero => self.page_and_size().map(|(page, _)| literal(json!(page - 1))),
            ArgumentRole::Size => self.page_and_size().map(|(_, size)| literal(json!(size))),
            ArgumentRole::First => self.first_and_after(builtin).map(|(first, _)| literal(json!(first))),
            ArgumentRole::After => {
                self.first_and_after(builtin).and_then(|(_, after)| after).map(|after| literal(json!(after)))
            }
            ArgumentRole::OrderBy if self.verb == OperationVerb::Aggregate => {
                let orders = self.group_texts("orderBy");
                (!orders.is_empty()).then(|| json!(orders).to_string())
            }
            ArgumentRole::OrderBy => self.sort_words(model, record).map(|words| json!(words).to_string()),
            ArgumentRole::Where => self.where_literal(model, record, argument),
            ArgumentRole::Limit => self.page_and_size().map(|(_, size)| literal(json!(size))),
            ArgumentRole::Offset => {
                self.page_and_size().map(|(page, size)| literal(json!((page - 1).saturating_mul(size))))
            }
            ArgumentRole::Search => self
                .listing
                .and_then(|listing| listing.search.as_ref())
                .map(|search| literal(json!(search.text))),
            ArgumentRole::GroupBy => self.values.get("groupBy").map(Json::to_string),
            // No page is read backward.
            ArgumentRole::Last
            | ArgumentRole::Before
            | ArgumentRole::Ids
            | ArgumentRole::Compare(..)
            | ArgumentRole::RelatedField(..)
            | ArgumentRole::UniqueFields
            | ArgumentRole::SortDirection
            | ArgumentRole::ExpectedVersion
            | ArgumentRole::ClientMutationId
            | ArgumentRole::Having
            | ArgumentRole::Unknown => None,
        }
    }

    /// The value that the request has for a field: to write it, or to filter by it.
    fn field_value(&self, record: &RecordType, id: FieldId) -> Option<Json> {
        match self.verb.group() == VerbGroup::WriteFields {
            true => self.values.get(&record.field(id).input_name).cloned(),
            false => self.equality_value(id),
        }
    }

    /// The id of the record, or one for a new record whose id the client gives.
    fn id_text(&self, record: &RecordType) -> Option<String> {
        if self.verb != OperationVerb::Create {
            return self.id.map(RecordId::to_string);
        }
        let name = &record.field(record.id_field()).input_name;
        self.values.get(name).and_then(Json::as_str).map(str::to_owned)
    }

    /// An input object with the values that it has fields for.
    fn input_literal(&self, model: &Model, record: &RecordType, argument: &Argument) -> Option<String> {
        let mut members = Vec::new();
        for inner in &argument.fields {
            let value = match record.find_input_field(&inner.name).map(|id| record.field(id)) {
                Some(field) if field.kind.is_id() => self
                    .id_text(record)
                    .map(|id| graphql_literal(model, inner.ty.inner_name(), None, &json!(id))),
                // `post: { id: … }` beside `postId`.
                Some(field)
                    if field.kind.relation().is_some()
                        && model.schema.get_input_object(inner.ty.inner_name()).is_some() =>
                {
                    None
                }
                Some(field) => self.values.get(&field.input_name).map(|value| {
                    graphql_literal(model, inner.ty.inner_name(), field.kind.value_type(), value)
                }),
                None => None,
            };
            match value {
                Some(value) => members.push(format!("{}: {value}", inner.name)),
                None if inner.ty.is_required() => return None,
                None => {}
            }
        }
        Some(format!("{{ {} }}", members.join(", ")))
    }

    fn equality_value(&self, field: FieldId) -> Option<Json> {
        let mut comparisons = self.listing?.conditions.iter().filter_map(Condition::field_comparison);
        let found = comparisons.find(|(compared, comparison)| {
            *compared == field && comparison.operator == FilterOperator::EQUAL
        })?;
        Some(found.1.operand.to_json())
    }

    /// Says the conditions that the argument has members for.
    fn where_literal(&self, model: &Model, record: &RecordType, argument: &Argument) -> Option<String> {
        let (writer, input) = (WhereWriter { model }, argument.ty.inner_name());
        let conditions = self.listing?.conditions.iter();
        let expressible = conditions.filter(|condition| writer.member(record, input, condition).is_some());
        let expressible: Vec<Condition> = expressible.cloned().collect();
        writer.object(record, input, &expressible).filter(|_| !expressible.is_empty())
    }

    fn sort_words(&self, model: &Model, record: &RecordType) -> Option<Vec<String>> {
        let order = &self.listing?.sort_keys;
        (!order.is_empty()).then(|| order.iter().map(|key| key.word(model, record)).collect())
    }

    /// Page and size; the first records without a cursor are also the first page.
    fn page_and_size(&self) -> Option<(i64, i64)> {
        match &self.listing?.slice {
            ListSlice::Page { page, size } => Some((*page, *size)),
            ListSlice::First { first, after: None } => Some((1, *first)),
            ListSlice::First { after: Some(_), .. }
            | ListSlice::Between { .. }
            | ListSlice::Range { .. }
            | ListSlice::All => None,
        }
    }

    /// Count and cursor; an operation that has pages as well gets its first part as a page.
    fn first_and_after(&self, builtin: &BuiltinOperation) -> Option<(i64, Option<&str>)> {
        let has_pages = builtin.argument_roles.iter().any(|(_, role)| *role == ArgumentRole::Page);
        match &self.listing?.slice {
            ListSlice::First { first, after: Some(after) } => Some((*first, Some(after))),
            ListSlice::First { first, after: None } if !has_pages => Some((*first, None)),
            ListSlice::Page { page: 1, size } if !has_pages => Some((*size, None)),
            ListSlice::First { .. }
            | ListSlice::Between { .. }
            | ListSlice::Page { .. }
            | ListSlice::Range { .. }
            | ListSlice::All => None,
        }
    }
}

/// One part of a listing.
pub enum ListingPart<'a> {
    Condition(&'a Condition),
    Search,
    Order,
    Page,
    After,
}

/// The names of the parts of a listing that `is_expressed` denies.
pub fn unexpressed_listing_parts(
    record: &RecordType,
    listing: &Listing,
    is_expressed: impl Fn(ListingPart<'_>) -> bool,
) -> Vec<String> {
    let conditions =
        listing.conditions.iter().filter(|condition| !is_expressed(ListingPart::Condition(condition)));
    let conditions = conditions.map(|condition| condition_name(record, condition));
    let search = listing.search.as_ref().filter(|_| !is_expressed(ListingPart::Search)).map(|_| "q");
    let order = (!listing.sort_keys.is_empty() && !is_expressed(ListingPart::Order)).then_some("sort");
    let page = match &listing.slice {
        ListSlice::Page { page: 1, .. }
        | ListSlice::First { after: None, .. }
        | ListSlice::Range { .. }
        | ListSlice::All => None,
        ListSlice::Page { .. } => (!is_expressed(ListingPart::Page)).then_some("page"),
        ListSlice::Between { .. } => Some("page"),
        ListSlice::First { after: Some(_), .. } => (!is_expressed(ListingPart::After)).then_some("page"),
    };
    let mut names: Vec<String> =
        conditions.chain(search).chain(order).chain(page).map(str::to_owned).collect();
    names.dedup();
    names
}

/// The field that a condition is about, or the word that joins several.
fn condition_name<'r>(record: &'r RecordType, condition: &Condition) -> &'r str {
    match condition {
        Condition::Compare(comparison) => &record.field(comparison.path.field).name,
        Condition::Related { relation, .. } => &record.field(*relation).name,
        Condition::HasId(_) => &record.field(record.id_field()).name,
        Condition::LinkedFrom { .. } => "the link",
        Condition::All(_) => "and",
        Condition::Any(_) => "or",
        Condition::Not(_) => "not",
    }
}

/// The number of fields that the operation can set.
fn settable_count(root: &RootField, builtin: &BuiltinOperation) -> usize {
    let roles = root.arguments.iter().zip(&builtin.argument_roles);
    roles
        .map(|(argument, (_, role))| if *role == ArgumentRole::Input { argument.fields.len() } else { 1 })
        .sum()
}

fn required_filters(root: &RootField, builtin: &BuiltinOperation) -> usize {
    let is_filter = |role: &ArgumentRole| {
        matches!(
            role,
            ArgumentRole::Field(_)
                | ArgumentRole::Compare(..)
                | ArgumentRole::RelatedField(..)
                | ArgumentRole::Search
        )
    };
    let roles = root.arguments.iter().zip(&builtin.argument_roles);
    let reads = roles.filter(|_| builtin.verb.root_kind() == RootType::Query);
    reads.filter(|(argument, (_, role))| argument.ty.is_required() && is_filter(role)).count()
}

/// The stored fields of a record that the actor may see as a selection, with embedded values. `reference_selection` gives
/// the selection of a referenced record; `None` leaves the reference out.
pub fn selection_text(
    model: &Model,
    view: Option<&AccessView>,
    record: RecordTypeId,
    reference_selection: &dyn Fn(RecordTypeId) -> Option<String>,
) -> String {
    let owner = model.record(record);
    // A type without a key has one that the schema does not show.
    let is_declared = |field: &Field| model.schema.type_field(&owner.name, &field.name).is_ok();
    // Of records that may be written but not read, the id is shown.
    let is_hidden = |id: usize| {
        let is_unread = |view: &AccessView| view.verdict(AccessAction::Read, record) == AccessVerdict::No;
        let is_key = owner.id_field() == FieldId(id);
        view.is_some_and(|view| view.hides_field(record, FieldId(id)) || (is_unread(view) && !is_key))
    };
    let is_shown = |(id, field): &(usize, &Field)| is_declared(field) && !is_hidden(*id);
    let fields = owner.fields.iter().enumerate().filter(is_shown);
    let words = fields.filter_map(|(_, field)| field_selection_text(model, field, reference_selection));
    let words: Vec<String> = words.collect();
    if words.is_empty() { "__typename".to_owned() } else { words.join(" ") }
}

fn field_selection_text(
    model: &Model,
    field: &Field,
    reference_selection: &dyn Fn(RecordTypeId) -> Option<String>,
) -> Option<String> {
    let name = &field.name;
    match field.kind.reference() {
        Some(reference) => reference_selection(reference.target).map(|inner| format!("{name} {{ {inner} }}")),
        None => value_selection_text(model, name, field.kind.value_type()?),
    }
}

fn value_selection_text(model: &Model, name: &str, value_type: &ValueType) -> Option<String> {
    let Some(type_name) = value_type.innermost().embedded_name() else { return Some(name.to_owned()) };
    // One level only: a type may contain itself.
    let fields = model.embedded.get(type_name)?.stored_fields();
    let flat = fields.filter(|(_, inner_type)| inner_type.innermost().embedded_name().is_none());
    let inner_selection: Vec<&str> = flat.map(|(inner, _)| inner.name.as_str()).collect();
    (!inner_selection.is_empty()).then(|| format!("{name} {{ {} }}", inner_selection.join(" ")))
}

/// True if GraphQL can express the value: JSON allows any text as a member name, GraphQL only names.
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
