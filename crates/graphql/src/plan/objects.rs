//! Plans object types: the slot and the source of each selected field.

use std::sync::Arc;

use apollo_compiler::ast::Type;
use apollo_compiler::executable::Field;
use apollo_compiler::schema::ExtendedType;

use trefoil_engine::{Listing, arguments};
use trefoil_model::error::Error;
use trefoil_model::{
    ChangePart, FieldId, KeyForm, Model, PageField, RecordType, RecordTypeId, Relation, Scalar, ValueType,
};

use crate::plan::collect::{FieldGroup, collect_fields, field_label};
use crate::plan::input::FieldArguments;
use crate::plan::planner::OperationPlanner;
use crate::plan::shape::{
    AbstractShape, ChildContent, ConnectionEntries, ConnectionEntry, ConnectionField, ConnectionShape,
    EdgeField, FieldShape, FieldSource, LeafType, ObjectShape, OutputShape, PageInfoField, PayloadField,
    PayloadShape, RecordReads, RelatedRead, ValueSlot,
};
use crate::response_error::ResponseError;

impl<'a> OperationPlanner<'a> {
    /// The shape of an object type; adds the columns and children that the store must read to `reads`.
    pub fn plan_object(
        &mut self,
        type_name: &str,
        group: &FieldGroup<'a>,
        reads: &mut RecordReads,
    ) -> ObjectShape {
        let record = self.engine.model().find_record(type_name);
        let (groups, selection_error) = collect_fields(self, type_name, group.selection_sets());
        let fields: Vec<FieldShape> = groups
            .iter()
            .map(|group| {
                self.inside(group.nodes[0].response_key(), |planner| {
                    planner.plan_field(type_name, record, group, reads)
                })
            })
            .collect();
        let parent_columns = match record {
            Some(record)
                if fields.iter().any(|field| matches!(field.source, FieldSource::Resolver { .. })) =>
            {
                self.read_stored_fields(record, reads)
            }
            _ => Vec::new(),
        };
        let uses_resolvers = fields.iter().any(FieldShape::uses_resolvers);
        ObjectShape {
            type_name: type_name.to_owned(),
            fields,
            record,
            reads: RecordReads::default(),
            parent_columns,
            uses_resolvers,
            selection_error,
        }
    }

    /// Reads all stored fields of a record, which resolvers get as their parent.
    fn read_stored_fields(&self, record: RecordTypeId, reads: &mut RecordReads) -> Vec<(usize, FieldId)> {
        let fields = self.engine.model().record(record).fields.iter().enumerate();
        let stored = fields.filter(|(_, field)| field.is_stored()).map(|(position, _)| FieldId(position));
        stored.map(|id| (reads.add_column(id), id)).collect()
    }

    fn plan_field(
        &mut self,
        type_name: &str,
        record: Option<RecordTypeId>,
        group: &FieldGroup<'a>,
        reads: &mut RecordReads,
    ) -> FieldShape {
        let first = group.nodes[0];
        let label = field_label(self, type_name, group);
        if first.name == "__typename" {
            let slot = ValueSlot { required: true, output: OutputShape::Leaf(LeafType::String) };
            return FieldShape {
                label,
                slot,
                source: FieldSource::Typename(format!("\"{type_name}\"").into_bytes()),
            };
        }
        let schema = &self.engine.model().schema;
        // An object type may declare a narrower type than its interface.
        let definition = schema.type_field(type_name, &first.name);
        let ty = definition.map_or_else(|_| first.definition.ty.clone(), |definition| definition.ty.clone());
        if let Some(resolver) = self.engine.registry().get(type_name, &first.name).cloned() {
            let arguments = self.read_typed_arguments(type_name, first);
            return FieldShape {
                label,
                slot: self.plan_slot(&ty, group),
                source: FieldSource::Resolver { resolver, arguments },
            };
        }
        match record {
            Some(record) => {
                let (slot, source) = self.plan_stored_field(record, first, &ty, group, reads);
                if let FieldSource::Invalid(error) = &source {
                    self.note_mistake(&ResponseError::from_error(error).with_locations(&label.locations));
                }
                FieldShape { label, slot, source }
            }
            None if type_name.starts_with("__") => {
                let source = FieldSource::Introspection(self.read_arguments(first));
                FieldShape { label, slot: self.plan_slot(&ty, group), source }
            }
            None => FieldShape { label, slot: self.plan_slot(&ty, group), source: FieldSource::Property },
        }
    }

    fn read_typed_arguments(&self, type_name: &str, field: &Field) -> FieldArguments {
        let schema = &self.engine.model().schema;
        match schema.type_field(type_name, &field.name) {
            Ok(definition) => FieldArguments::read(
                schema,
                self.variable_definitions,
                &definition.arguments,
                &field.arguments,
            ),
            Err(_) => self.read_arguments(field),
        }
    }

    fn plan_stored_field(
        &mut self,
        record: RecordTypeId,
        first: &'a Field,
        ty: &Type,
        group: &FieldGroup<'a>,
        reads: &mut RecordReads,
    ) -> (ValueSlot, FieldSource) {
        let model = self.engine.model().clone();
        let owner = model.record(record);
        let missing =
            |name: &str| FieldSource::Missing(format!("no resolver for field `{}.{name}`", owner.name));
        let Some(id) = owner.find_field(&first.name) else {
            return (self.plan_slot(ty, group), missing(&first.name));
        };
        let field = owner.field(id);
        if let Some(relation) = field.kind.relation() {
            if model.connection_node(ty.inner_named_type()) == Some(relation.target()) {
                return self.plan_related_connection(id, relation.target(), first, ty, group, reads);
            }
            let object = self.plan_record(&model.record(relation.target()).name, group);
            let listing = match relation {
                Relation::Reference(_) => Ok(Listing::default()),
                Relation::Inverse(_) | Relation::Link(_) => self.relation_listing(relation.target(), first),
            };
            return match listing {
                Ok(listing) => self.plan_relation(id, ty, listing, object, reads),
                Err(error) => (relation_slot(ty, object), FieldSource::Invalid(Arc::new(error))),
            };
        }
        if let Some(summary) = model.relation_summary(owner, &first.name) {
            return self.plan_summary(owner, summary, first, ty, group, reads);
        }
        let shown = owner.find_shown_reference(&first.name).filter(|_| field.kind.is_unstored());
        if let Some(type_name) = global_key_type(&model, owner, shown.unwrap_or(id), ty) {
            let position = reads.add_column(shown.unwrap_or(id));
            return (self.plan_slot(ty, group), FieldSource::GlobalId { position, type_name });
        }
        let source = match (field.kind.value_type(), shown) {
            (Some(value_type), _) => {
                FieldSource::Column { position: reads.add_column(id), value_type: value_type.clone() }
            }
            (None, Some(reference)) => shown_key(owner, reference, ty, reads),
            (None, None) => missing(&first.name),
        };
        (self.plan_slot(ty, group), source)
    }

    fn plan_relation(
        &mut self,
        field: FieldId,
        ty: &Type,
        listing: Listing,
        object: Arc<ObjectShape>,
        reads: &mut RecordReads,
    ) -> (ValueSlot, FieldSource) {
        let position = reads.add_child(RelatedRead {
            field,
            content: ChildContent::Records { listing, object: object.clone() },
        });
        (relation_slot(ty, object), FieldSource::Relation(position))
    }

    /// The listing of related records by the arguments of the relation field.
    pub fn relation_listing(&mut self, target: RecordTypeId, field: &Field) -> Result<Listing, Error> {
        let arguments = self.read_arguments(field);
        self.single_use |= arguments.uses_variables();
        let values = arguments.values_by_name(self.variables)?;
        let model = self.engine.model();
        arguments::listing_from_arguments(model, model.record(target), self.engine.limits(), values)
    }

    /// The slot for a value of this type.
    pub fn plan_slot(&mut self, ty: &Type, group: &FieldGroup<'a>) -> ValueSlot {
        let required = ty.is_non_null();
        let output = match ty {
            Type::List(item) | Type::NonNullList(item) => {
                OutputShape::List(Box::new(self.plan_slot(item, group)))
            }
            Type::Named(name) | Type::NonNullNamed(name) => self.plan_output(name, group),
        };
        ValueSlot { required, output }
    }

    fn plan_output(&mut self, name: &str, group: &FieldGroup<'a>) -> OutputShape {
        let model = self.engine.model().clone();
        match model.schema.types.get(name) {
            Some(ExtendedType::Object(_)) => OutputShape::Object(self.shared_object(name, group)),
            Some(ExtendedType::Interface(_) | ExtendedType::Union(_)) => {
                let names = model.schema.types.iter().filter(|(_, ty)| ty.is_object()).map(|(name, _)| name);
                let names = names.filter(|candidate| model.schema.is_subtype(name, candidate));
                let possible_types: Vec<_> =
                    names.map(|candidate| self.shared_object(candidate, group)).collect();
                let uses_resolvers = possible_types.iter().any(|object| object.uses_resolvers);
                OutputShape::Abstract(Arc::new(AbstractShape {
                    name: name.to_owned(),
                    possible_types,
                    uses_resolvers,
                }))
            }
            Some(ExtendedType::Enum(definition)) => OutputShape::Leaf(LeafType::Enum {
                name: name.to_owned(),
                values: definition.values.keys().map(ToString::to_string).collect(),
            }),
            Some(ExtendedType::Scalar(_) | ExtendedType::InputObject(_)) | None => {
                OutputShape::Leaf(leaf_type(name))
            }
        }
    }

    /// The shape of a resolver's object. Shared for equal selections, so that nested interfaces do not multiply it.
    fn shared_object(&mut self, name: &str, group: &FieldGroup<'a>) -> Arc<ObjectShape> {
        let key = (name.to_owned(), group.nodes.iter().map(|node| &raw const ***node as usize).collect());
        if let Some(known) = self.objects.get(&key) {
            return known.clone();
        }
        let mut reads = RecordReads::default();
        let object = self.plan_object(name, group, &mut reads);
        if let Some(record) = object.record {
            reads.add_column(self.engine.model().record(record).id_field());
        }
        let object = Arc::new(ObjectShape { reads, ..object });
        self.objects.insert(key, object.clone());
        object
    }

    /// The shape of a connection or a page over the records of a type.
    pub fn plan_connection(
        &mut self,
        record: RecordTypeId,
        first_page: Option<i64>,
        type_name: &str,
        group: &FieldGroup<'a>,
    ) -> ConnectionShape {
        let mut connection = ConnectionShape {
            entries: ConnectionEntries { list: Vec::new(), selection_error: None },
            record,
            first_page,
            reads: RecordReads::default(),
            needs_total: false,
            needs_records: false,
            needs_extent: false,
            needs_page_id: false,
            needs_cursors: false,
            needs_edge_cursors: false,
            uses_resolvers: false,
            parent: None,
        };
        connection.entries = self.plan_entries(type_name, group, |planner, group| {
            planner.plan_connection_field(&mut connection, type_name, group)
        });
        connection
    }

    /// The field of a type around records, if it has a registered resolver.
    fn plan_wrapper_field(&mut self, type_name: &str, group: &FieldGroup<'a>) -> Option<Arc<FieldShape>> {
        let first = group.nodes[0];
        let resolver = self.engine.registry().get(type_name, &first.name).cloned()?;
        let label = field_label(self, type_name, group);
        let arguments = self.read_typed_arguments(type_name, first);
        let slot = self.plan_slot(first.ty(), group);
        Some(Arc::new(FieldShape { label, slot, source: FieldSource::Resolver { resolver, arguments } }))
    }

    /// The shape of a record that is only the parent of resolvers.
    fn plan_parent(&self, record: RecordTypeId, reads: &mut RecordReads) -> Option<Arc<ObjectShape>> {
        Some(Arc::new(ObjectShape {
            type_name: self.engine.model().record(record).name.clone(),
            fields: Vec::new(),
            record: Some(record),
            reads: RecordReads::default(),
            parent_columns: self.read_stored_fields(record, reads),
            uses_resolvers: false,
            selection_error: None,
        }))
    }

    fn plan_entries<T>(
        &mut self,
        type_name: &str,
        group: &FieldGroup<'a>,
        mut plan_field: impl FnMut(&mut Self, &FieldGroup<'a>) -> T,
    ) -> ConnectionEntries<T> {
        let (groups, selection_error) = collect_fields(self, type_name, group.selection_sets());
        let list = groups.iter().map(|group| {
            let required = group.nodes[0].ty().is_non_null();
            ConnectionEntry {
                label: field_label(self, type_name, group),
                required,
                field: self.inside(group.nodes[0].response_key(), |planner| plan_field(planner, group)),
            }
        });
        ConnectionEntries { list: list.collect(), selection_error }
    }

    fn plan_connection_field(
        &mut self,
        connection: &mut ConnectionShape,
        type_name: &str,
        group: &FieldGroup<'a>,
    ) -> ConnectionField {
        let first = group.nodes[0];
        if let Some(field) = self.plan_wrapper_field(type_name, group) {
            connection.uses_resolvers = true;
            return ConnectionField::Resolver(field);
        }
        let item_required = first.ty().item_type().is_non_null();
        let inner = first.ty().inner_named_type().as_str();
        let name = first.name.as_str();
        match self.engine.model().page_field(type_name, name) {
            Some(PageField::Edges) => {
                connection.needs_records = true;
                let entries = self.plan_entries(inner, group, |planner, group| {
                    planner.plan_edge_field(connection, inner, group)
                });
                ConnectionField::Edges { item_required, entries }
            }
            Some(PageField::Records) => {
                connection.needs_records = true;
                ConnectionField::Nodes { item_required, object: self.plan_node(connection, group) }
            }
            Some(PageField::Info) => ConnectionField::PageInfo(self.plan_page_info(connection, inner, group)),
            Some(PageField::Part(part)) => {
                connection.add_part(part);
                ConnectionField::Part(part, self.plan_slot(first.ty(), group))
            }
            None if name == "__typename" => {
                ConnectionField::Typename(format!("\"{type_name}\"").into_bytes())
            }
            None => ConnectionField::Missing(format!("no resolver for field `{type_name}.{name}`")),
        }
    }

    /// The shape of a payload around a record of this type.
    pub fn plan_payload(
        &mut self,
        record_name: &str,
        type_name: &str,
        group: &FieldGroup<'a>,
    ) -> PayloadShape {
        let (mut reads, mut uses_resolvers, mut parent) = (RecordReads::default(), false, None);
        let is_change = self.engine.model().change_record(type_name).is_some();
        let entries = self.plan_entries(type_name, group, |planner, group| {
            let name = group.nodes[0].name.as_str();
            if let Some(field) = planner.plan_wrapper_field(type_name, group) {
                let record = planner.engine.model().find_record(record_name);
                parent = record.and_then(|record| planner.plan_parent(record, &mut reads));
                uses_resolvers = true;
                return PayloadField::Resolver(field);
            }
            let model = planner.engine.model();
            let change_part = model.change_part(type_name, name).filter(|_| is_change);
            if let Some(part) = change_part.filter(|part| *part != ChangePart::Record) {
                return PayloadField::Change(part);
            }
            if model.is_record_field(&group.nodes[0].definition) {
                let object = planner.plan_object(record_name, group, &mut reads);
                uses_resolvers |= object.uses_resolvers;
                return PayloadField::Record(Arc::new(object));
            }
            match model.payload_part(type_name, name) {
                Some(part) => PayloadField::Part(part),
                None if name == "__typename" => {
                    PayloadField::Typename(format!("\"{type_name}\"").into_bytes())
                }
                None => PayloadField::Missing(format!("no resolver for field `{type_name}.{name}`")),
            }
        });
        PayloadShape { entries, reads, uses_resolvers, parent }
    }

    fn plan_edge_field(
        &mut self,
        connection: &mut ConnectionShape,
        type_name: &str,
        group: &FieldGroup<'a>,
    ) -> EdgeField {
        if let Some(field) = self.plan_wrapper_field(type_name, group) {
            connection.uses_resolvers = true;
            connection.parent = self.plan_parent(connection.record, &mut connection.reads);
            return EdgeField::Resolver(field);
        }
        match group.nodes[0].name.as_str() {
            "__typename" => EdgeField::Typename(format!("\"{type_name}\"").into_bytes()),
            "cursor" => {
                (connection.needs_cursors, connection.needs_edge_cursors) = (true, true);
                EdgeField::Cursor
            }
            "node" => EdgeField::Node(self.plan_node(connection, group)),
            name => EdgeField::Missing(format!("no resolver for field `{type_name}.{name}`")),
        }
    }

    fn plan_node(&mut self, connection: &mut ConnectionShape, group: &FieldGroup<'a>) -> Arc<ObjectShape> {
        let name = self.engine.model().record(connection.record).name.clone();
        let object = self.plan_object(&name, group, &mut connection.reads);
        connection.uses_resolvers |= object.uses_resolvers;
        Arc::new(object)
    }

    fn plan_page_info(
        &mut self,
        connection: &mut ConnectionShape,
        type_name: &str,
        group: &FieldGroup<'a>,
    ) -> ConnectionEntries<PageInfoField> {
        self.plan_entries(type_name, group, |planner, group| {
            if let Some(field) = planner.plan_wrapper_field(type_name, group) {
                connection.uses_resolvers = true;
                return PageInfoField::Resolver(field);
            }
            let first = group.nodes[0];
            let name = first.name.as_str();
            match planner.engine.model().page_part(type_name, name) {
                Some(part) => {
                    connection.add_part(part);
                    PageInfoField::Part(part, planner.plan_slot(first.ty(), group))
                }
                None if name == "__typename" => {
                    PageInfoField::Typename(format!("\"{type_name}\"").into_bytes())
                }
                None => PageInfoField::Missing(format!("no resolver for field `{type_name}.{name}`")),
            }
        })
    }
}

fn relation_slot(ty: &Type, object: Arc<ObjectShape>) -> ValueSlot {
    let required = ty.is_non_null();
    match ty {
        Type::List(item) | Type::NonNullList(item) => {
            ValueSlot { required, output: OutputShape::List(Box::new(relation_slot(item, object))) }
        }
        Type::Named(_) | Type::NonNullNamed(_) => ValueSlot { required, output: OutputShape::Object(object) },
    }
}

fn leaf_type(name: &str) -> LeafType {
    match name {
        "Int" => LeafType::Int,
        "Float" => LeafType::Float,
        "String" => LeafType::String,
        "Boolean" => LeafType::Boolean,
        "ID" => LeafType::Id,
        custom => match Scalar::from_name(custom) {
            Some(scalar) if scalar.is_number_as_text() => LeafType::NumberAsText,
            _ => LeafType::Custom,
        },
    }
}

/// The type whose key the field holds, if that is shown as a global id.
fn global_key_type(model: &Model, owner: &RecordType, field: FieldId, ty: &Type) -> Option<String> {
    let kind = &owner.field(field).kind;
    let target =
        kind.relation().filter(|_| kind.is_reference()).map(|relation| model.record(relation.target()));
    let record = target.or_else(|| kind.is_id().then_some(owner))?;
    (record.has_global_ids && ty.inner_named_type() == "ID").then(|| record.name.clone())
}

/// The key of a reference, as a field `userId` beside `user` shows it.
fn shown_key(owner: &RecordType, reference: FieldId, ty: &Type, reads: &mut RecordReads) -> FieldSource {
    let position = reads.add_column(reference);
    let is_int = ty.inner_named_type() == "Int";
    let value_type = match owner.field(reference).kind.value_type() {
        Some(ValueType::Key(KeyForm::Digits)) if is_int => ValueType::Key(KeyForm::Number),
        Some(ValueType::Key(KeyForm::Number)) if !is_int => ValueType::Key(KeyForm::Digits),
        Some(other) => other.clone(),
        None => ValueType::Key(KeyForm::Digits),
    };
    FieldSource::Column { position, value_type }
}
