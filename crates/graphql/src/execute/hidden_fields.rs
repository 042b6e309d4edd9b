//! The errors of selected fields that the actor never sees. The store reads them as null, so that nothing else fails.

use trefoil_engine::AccessView;
use trefoil_model::access::{AccessAction, AccessVerdict};
use trefoil_model::error::PathSegment;
use trefoil_model::{FieldId, Model, RecordTypeId, RelationSummary, RootType};

use crate::plan::abstract_root::MemberShape;
use crate::plan::roots::{OperationPlan, PlannedRoot, RootAction, RootShape};
use crate::plan::shape::{
    ConnectionField, ConnectionShape, EdgeField, FieldShape, FieldSource, ObjectShape, OutputShape,
    PayloadField, PayloadShape, ResponseLabel, ValueSlot,
};
use crate::response_error::{ErrorSubject, ResponseError};

/// A selection of a field that the actor sees of no record.
pub struct HiddenSelection {
    /// Index of the root field.
    pub root: usize,
    pub error: ResponseError,
}

/// All such selections of an operation.
pub fn hidden_selections(model: &Model, view: &AccessView, plan: &OperationPlan) -> Vec<HiddenSelection> {
    let mut selections = Vec::new();
    if !view.hides_fields() {
        return selections;
    }
    for (position, root) in plan.roots.iter().enumerate() {
        let mut hidden = HiddenFields { model, view, errors: Vec::new() };
        hidden.add_root(root);
        selections.extend(hidden.errors.into_iter().map(|error| HiddenSelection { root: position, error }));
    }
    selections
}

struct HiddenFields<'a> {
    model: &'a Model,
    view: &'a AccessView,
    errors: Vec<ResponseError>,
}

/// Where a value is in the response. Only an error writes it down.
#[derive(Clone, Copy)]
enum ValuePath<'p> {
    Response,
    Below(&'p ValuePath<'p>, &'p ResponseLabel),
    /// Below a list, where it has many places.
    Many,
}

impl<'p> ValuePath<'p> {
    fn below(&'p self, label: &'p ResponseLabel) -> ValuePath<'p> {
        match self {
            ValuePath::Response | ValuePath::Below(..) => ValuePath::Below(self, label),
            ValuePath::Many => ValuePath::Many,
        }
    }

    fn segments(&self) -> Vec<PathSegment> {
        match self {
            ValuePath::Response | ValuePath::Many => Vec::new(),
            ValuePath::Below(outer, label) => {
                let key = PathSegment::Field(label.response_key.clone());
                outer.segments().into_iter().chain([key]).collect()
            }
        }
    }
}

impl HiddenFields<'_> {
    fn is_readable(&self, record: RecordTypeId) -> bool {
        self.view.verdict(AccessAction::Read, record) != AccessVerdict::No
    }

    /// Of a record that may not be read, the one who wrote it sees the id.
    fn is_hidden(&self, record: RecordTypeId, field: FieldId) -> bool {
        let is_id = self.model.record(record).id_field() == field;
        self.view.hides_field(record, field) || !(is_id || self.is_readable(record))
    }

    fn add_root(&mut self, root: &PlannedRoot) {
        let path = ValuePath::Response.below(&root.label);
        match &root.action {
            // A read of records that nobody may show is refused as a whole.
            RootAction::Builtin(builtin)
                if builtin.builtin.verb.root_kind() != RootType::Mutation
                    && !self.is_readable(builtin.builtin.record) => {}
            RootAction::Builtin(builtin) => match &builtin.shape {
                RootShape::Record(object) => self.add_object(object, &path),
                RootShape::List(_, object) => self.add_object(object, &ValuePath::Many),
                RootShape::Connection(connection) => self.add_connection(connection, &path),
                RootShape::Payload(payload) => self.add_payload(payload, &path),
                RootShape::Id { .. }
                | RootShape::Boolean
                | RootShape::Nothing
                | RootShape::Count { .. }
                | RootShape::Groups(_) => {}
            },
            RootAction::Abstract(root) => {
                for member in &root.members {
                    match &member.shape {
                        MemberShape::Object(object) => self.add_object(object, &ValuePath::Many),
                        MemberShape::Connection(connection) => self.add_connection(connection, &path),
                        MemberShape::None => {}
                    }
                }
            }
            RootAction::Registered { slot, .. } => self.add_slot(slot, &path),
            RootAction::Typename(_) | RootAction::Introspection { .. } | RootAction::Missing(_) => {}
        }
    }

    fn add_slot(&mut self, slot: &ValueSlot, path: &ValuePath<'_>) {
        match &slot.output {
            OutputShape::Leaf(_) => {}
            OutputShape::List(item) => self.add_slot(item, &ValuePath::Many),
            OutputShape::Object(object) => self.add_object(object, path),
            OutputShape::Abstract(shape) => {
                shape.possible_types.iter().for_each(|object| self.add_object(object, path));
            }
        }
    }

    fn add_object(&mut self, object: &ObjectShape, path: &ValuePath<'_>) {
        for field in &object.fields {
            let path = path.below(&field.label);
            let read = object.record.and_then(|record| Some((record, self.read_field(record, field)?)));
            match (&field.source, read) {
                (_, Some((record, id))) if self.is_hidden(record, id) => {
                    self.refuse(&field.label, &path, (record, id));
                }
                (FieldSource::Connection(related), _) => self.add_connection(&related.connection, &path),
                (_, _) => self.add_slot(&field.slot, &path),
            }
        }
    }

    /// The field of the model whose content a selected field shows.
    fn read_field(&self, record: RecordTypeId, field: &FieldShape) -> Option<FieldId> {
        match &field.source {
            FieldSource::Typename(_)
            | FieldSource::Property
            | FieldSource::Resolver { .. }
            | FieldSource::Introspection(_)
            | FieldSource::Missing(_)
            | FieldSource::Invalid(_) => None,
            FieldSource::RelatedCount(_) | FieldSource::RelatedGroups { .. } => {
                match self.model.relation_summary(self.model.record(record), &field.label.name)? {
                    RelationSummary::Count(relation) | RelationSummary::Groups(relation) => Some(relation),
                }
            }
            FieldSource::Column { .. }
            | FieldSource::GlobalId { .. }
            | FieldSource::Relation(_)
            | FieldSource::Connection(_) => {
                let (owner, name) = (self.model.record(record), &field.label.name);
                let declared = owner.find_field(name)?;
                let shown = owner.find_shown_reference(name);
                Some(shown.filter(|_| owner.field(declared).kind.is_unstored()).unwrap_or(declared))
            }
        }
    }

    fn add_connection(&mut self, connection: &ConnectionShape, path: &ValuePath<'_>) {
        for entry in &connection.entries.list {
            match &entry.field {
                ConnectionField::Edges { entries, .. } => {
                    for edge in &entries.list {
                        match &edge.field {
                            EdgeField::Node(object) => self.add_object(object, &ValuePath::Many),
                            EdgeField::Resolver(field) => self.add_slot(&field.slot, &ValuePath::Many),
                            EdgeField::Typename(_) | EdgeField::Cursor | EdgeField::Missing(_) => {}
                        }
                    }
                }
                ConnectionField::Nodes { object, .. } => self.add_object(object, &ValuePath::Many),
                ConnectionField::Resolver(field) => self.add_slot(&field.slot, &path.below(&entry.label)),
                ConnectionField::Typename(_)
                | ConnectionField::PageInfo(_)
                | ConnectionField::Part(..)
                | ConnectionField::Missing(_) => {}
            }
        }
    }

    fn add_payload(&mut self, payload: &PayloadShape, path: &ValuePath<'_>) {
        for entry in &payload.entries.list {
            let path = path.below(&entry.label);
            match &entry.field {
                PayloadField::Record(object) => self.add_object(object, &path),
                PayloadField::Resolver(field) => self.add_slot(&field.slot, &path),
                PayloadField::Typename(_)
                | PayloadField::Part(_)
                | PayloadField::Change(_)
                | PayloadField::Missing(_) => {}
            }
        }
    }

    fn refuse(&mut self, label: &ResponseLabel, path: &ValuePath<'_>, (record, id): (RecordTypeId, FieldId)) {
        let refused_by = match self.view.hides_field(record, id) {
            true => self.view.field_refusal(AccessAction::Read, record, id),
            false => self.view.of_type(record).read.location.clone().map(Box::new),
        };
        let error = ResponseError::hidden_field(label).with_path(path.segments());
        self.errors.push(ResponseError { refused_by, ..error });
    }
}

impl ResponseError {
    /// A selected field may not be read.
    pub fn hidden_field(label: &ResponseLabel) -> ResponseError {
        let field = format!("{}.{}", label.type_name, label.name);
        let message = format!("`{field}` may not be read by you");
        let subject = Some(Box::new(ErrorSubject::HiddenField(field)));
        let error = ResponseError::new("FORBIDDEN", message).with_locations(&label.locations);
        ResponseError { subject, ..error }
    }
}
