//! Plans objects: for each field of a type, the slot it fills and where its value comes from.

use std::sync::Arc;

use apollo_compiler::ast::Type;
use apollo_compiler::executable::Field as Node;
use apollo_compiler::schema::ExtendedType;

use crate::plan::collect::{Group, collect, label};
use crate::plan::roots::Planner;
use crate::plan::shape::{
    Abstract, ChildRead, Connection, EdgeHolds, Entries, Entry, Field, From, Holds, Leaf, Object, Output,
    PageHolds, Reads, Slot,
};
use trefoil_engine::{Listing, arguments};
use trefoil_model::error::Error;
use trefoil_model::{FieldId, Kind, TypeId};

impl<'a> Planner<'a> {
    /// The shape of an object type; what the store must read for it goes into `reads`.
    pub fn object(&mut self, type_name: &str, group: &Group<'a>, reads: &mut Reads) -> Object {
        let record = self.engine.model().record_named(type_name);
        let (groups, broken) = collect(self, type_name, group.sets());
        let fields: Vec<Field> =
            groups.iter().map(|group| self.field(type_name, record, group, reads)).collect();
        let whole = match record {
            Some(record) if fields.iter().any(|field| matches!(field.from, From::Resolver { .. })) => {
                self.read_all(record, reads)
            }
            _ => Vec::new(),
        };
        let live = fields.iter().any(Field::is_live);
        Object {
            type_name: type_name.to_owned(),
            fields,
            record,
            reads: Reads::default(),
            whole,
            live,
            broken,
        }
    }

    /// Resolvers are given all stored fields of their parent.
    fn read_all(&self, record: TypeId, reads: &mut Reads) -> Vec<(usize, FieldId)> {
        let fields = self.engine.model().record(record).fields.iter().enumerate();
        let stored = fields.filter(|(_, field)| field.is_stored()).map(|(position, _)| FieldId(position));
        stored.map(|id| (reads.column(id), id)).collect()
    }

    fn field(
        &mut self,
        type_name: &str,
        record: Option<TypeId>,
        group: &Group<'a>,
        reads: &mut Reads,
    ) -> Field {
        let first = group.nodes[0];
        let label = label(self, type_name, group);
        if first.name == "__typename" {
            let slot = Slot { required: true, output: Output::Leaf(Leaf::String) };
            return Field { label, slot, from: From::Typename(format!("\"{type_name}\"").into_bytes()) };
        }
        let schema = &self.engine.model().schema;
        // An implementing type may promise more than its interface does.
        let definition = schema.type_field(type_name, &first.name);
        let ty = definition.map_or_else(|_| first.definition.ty.clone(), |definition| definition.ty.clone());
        if let Some(resolver) = self.engine.registry().get(type_name, &first.name).cloned() {
            let arguments = self.typed_arguments(type_name, first);
            return Field {
                label,
                slot: self.slot(&ty, group),
                from: From::Resolver { resolver, arguments },
            };
        }
        match record {
            Some(record) => {
                let (slot, from) = self.stored(record, first, &ty, group, reads);
                Field { label, slot, from }
            }
            None if type_name.starts_with("__") => {
                let from = From::Introspection(self.arguments(first));
                Field { label, slot: self.slot(&ty, group), from }
            }
            None => Field { label, slot: self.slot(&ty, group), from: From::Property },
        }
    }

    fn typed_arguments(&self, type_name: &str, field: &Node) -> crate::plan::input::Arguments {
        let schema = &self.engine.model().schema;
        match schema.type_field(type_name, &field.name) {
            Ok(definition) => crate::plan::input::Arguments::read(
                schema,
                self.declared,
                &definition.arguments,
                &field.arguments,
            ),
            Err(_) => self.arguments(field),
        }
    }

    fn stored(
        &mut self,
        record: TypeId,
        first: &'a Node,
        ty: &Type,
        group: &Group<'a>,
        reads: &mut Reads,
    ) -> (Slot, From) {
        let model = self.engine.model().clone();
        let owner = model.record(record);
        let missing = |name: &str| From::Missing(format!("no resolver for field `{}.{name}`", owner.name));
        let Some(id) = owner.field_named(&first.name) else {
            return (self.slot(ty, group), missing(&first.name));
        };
        let field = owner.field(id);
        match &field.kind {
            Kind::Id | Kind::Scalar(_) | Kind::Enum(_) | Kind::Embedded(_) | Kind::List(_) => {
                let from = From::Column { position: reads.column(id), kind: field.kind.clone() };
                (self.slot(ty, group), from)
            }
            Kind::Reference { target, .. } => {
                let object = self.record(&model.record(*target).name, group);
                self.related(id, ty, Listing::default(), object, reads)
            }
            Kind::Inverse { of: target, .. } | Kind::Link { target, .. } => {
                let object = self.record(&model.record(*target).name, group);
                match self.listing(*target, first) {
                    Ok(listing) => self.related(id, ty, listing, object, reads),
                    Err(error) => (relation_slot(ty, object), From::Refused(Arc::new(error))),
                }
            }
            Kind::Unstored => (self.slot(ty, group), missing(&first.name)),
        }
    }

    fn related(
        &mut self,
        field: FieldId,
        ty: &Type,
        listing: Listing,
        object: Arc<Object>,
        reads: &mut Reads,
    ) -> (Slot, From) {
        let position = reads.child(ChildRead { field, listing, object: object.clone() });
        (relation_slot(ty, object), From::Child(position))
    }

    /// Which of the related records, by the arguments of the relation field.
    fn listing(&mut self, target: TypeId, field: &Node) -> Result<Listing, Error> {
        let given = self.arguments(field);
        self.once |= given.use_variables();
        let values = given.by_name(self.variables)?;
        arguments::child_listing(self.engine.model().record(target), self.engine.limits(), values)
    }

    /// What fits in a place of this type.
    pub fn slot(&mut self, ty: &Type, group: &Group<'a>) -> Slot {
        let required = ty.is_non_null();
        let output = match ty {
            Type::List(item) | Type::NonNullList(item) => Output::List(Box::new(self.slot(item, group))),
            Type::Named(name) | Type::NonNullNamed(name) => self.output(name, group),
        };
        Slot { required, output }
    }

    fn output(&mut self, name: &str, group: &Group<'a>) -> Output {
        let model = self.engine.model().clone();
        match model.schema.types.get(name) {
            Some(ExtendedType::Object(_)) => Output::Object(self.shared(name, group)),
            Some(ExtendedType::Interface(_) | ExtendedType::Union(_)) => {
                let names = model.schema.types.iter().filter(|(_, ty)| ty.is_object()).map(|(name, _)| name);
                let names = names.filter(|candidate| model.schema.is_subtype(name, candidate));
                let possible: Vec<_> = names.map(|candidate| self.shared(candidate, group)).collect();
                let live = possible.iter().any(|object| object.live);
                Output::Abstract(Arc::new(Abstract { name: name.to_owned(), possible, live }))
            }
            Some(ExtendedType::Enum(definition)) => Output::Leaf(Leaf::Enum {
                name: name.to_owned(),
                values: definition.values.keys().map(ToString::to_string).collect(),
            }),
            Some(ExtendedType::Scalar(_) | ExtendedType::InputObject(_)) | None => Output::Leaf(leaf(name)),
        }
    }

    /// The shape of a type that a resolver gives. Made once for the same selections, so that interfaces
    /// within interfaces do not multiply.
    fn shared(&mut self, name: &str, group: &Group<'a>) -> Arc<Object> {
        let key = (name.to_owned(), group.nodes.iter().map(|node| &raw const ***node as usize).collect());
        if let Some(known) = self.objects.get(&key) {
            return known.clone();
        }
        let mut reads = Reads::default();
        let object = self.object(name, group, &mut reads);
        if let Some(record) = object.record {
            reads.column(self.engine.model().record(record).id_field());
        }
        let object = Arc::new(Object { reads, ..object });
        self.objects.insert(key, object.clone());
        object
    }

    /// A Relay connection over the records of a type.
    pub fn connection(&mut self, record: TypeId, type_name: &str, group: &Group<'a>) -> Connection {
        let (list, broken) = (Vec::new(), None);
        let mut connection = Connection {
            entries: Entries { list, broken },
            record,
            reads: Reads::default(),
            counted: false,
            cursors: false,
            live: false,
        };
        connection.entries =
            self.entries(type_name, group, |planner, group| planner.holds(&mut connection, type_name, group));
        connection
    }

    fn entries<T>(
        &mut self,
        type_name: &str,
        group: &Group<'a>,
        mut holds: impl FnMut(&mut Self, &Group<'a>) -> T,
    ) -> Entries<T> {
        let (groups, broken) = collect(self, type_name, group.sets());
        let list = groups.iter().map(|group| {
            let required = group.nodes[0].ty().is_non_null();
            Entry { label: label(self, type_name, group), required, holds: holds(self, group) }
        });
        Entries { list: list.collect(), broken }
    }

    fn holds(&mut self, connection: &mut Connection, type_name: &str, group: &Group<'a>) -> Holds {
        let first = group.nodes[0];
        let item_required = first.ty().item_type().is_non_null();
        let inner = first.ty().inner_named_type().as_str();
        match first.name.as_str() {
            "__typename" => Holds::Typename(format!("\"{type_name}\"").into_bytes()),
            "edges" => {
                let entries =
                    self.entries(inner, group, |planner, group| planner.edge(connection, inner, group));
                Holds::Edges { item_required, entries }
            }
            "nodes" => Holds::Nodes { item_required, object: self.connected(connection, group) },
            "pageInfo" => Holds::PageInfo(self.page_info(connection, inner, group)),
            "totalCount" => {
                connection.counted = true;
                Holds::TotalCount
            }
            name => Holds::Missing(format!("no resolver for field `{type_name}.{name}`")),
        }
    }

    fn edge(&mut self, connection: &mut Connection, type_name: &str, group: &Group<'a>) -> EdgeHolds {
        match group.nodes[0].name.as_str() {
            "__typename" => EdgeHolds::Typename(format!("\"{type_name}\"").into_bytes()),
            "cursor" => {
                connection.cursors = true;
                EdgeHolds::Cursor
            }
            "node" => EdgeHolds::Node(self.connected(connection, group)),
            name => EdgeHolds::Missing(format!("no resolver for field `{type_name}.{name}`")),
        }
    }

    fn connected(&mut self, connection: &mut Connection, group: &Group<'a>) -> Arc<Object> {
        let name = self.engine.model().record(connection.record).name.clone();
        let object = self.object(&name, group, &mut connection.reads);
        connection.live |= object.live;
        Arc::new(object)
    }

    fn page_info(
        &mut self,
        connection: &mut Connection,
        type_name: &str,
        group: &Group<'a>,
    ) -> Entries<PageHolds> {
        self.entries(type_name, group, |_, group| {
            let holds = match group.nodes[0].name.as_str() {
                "__typename" => PageHolds::Typename(format!("\"{type_name}\"").into_bytes()),
                "hasNextPage" => PageHolds::HasNext,
                "hasPreviousPage" => PageHolds::HasPrevious,
                "startCursor" => PageHolds::Start,
                "endCursor" => PageHolds::End,
                name => PageHolds::Missing(format!("no resolver for field `{type_name}.{name}`")),
            };
            connection.cursors |= matches!(holds, PageHolds::Start | PageHolds::End);
            holds
        })
    }
}

fn relation_slot(ty: &Type, object: Arc<Object>) -> Slot {
    let required = ty.is_non_null();
    match ty {
        Type::List(item) | Type::NonNullList(item) => {
            Slot { required, output: Output::List(Box::new(relation_slot(item, object))) }
        }
        Type::Named(_) | Type::NonNullNamed(_) => Slot { required, output: Output::Object(object) },
    }
}

fn leaf(name: &str) -> Leaf {
    match name {
        "Int" => Leaf::Int,
        "Float" => Leaf::Float,
        "String" => Leaf::String,
        "Boolean" => Leaf::Boolean,
        "ID" => Leaf::Id,
        "Long" | "Decimal" => Leaf::Exact,
        _ => Leaf::Custom,
    }
}
