//! Plans a root field over an interface or union: a shape for each record type in it.

use std::sync::Arc;

use apollo_compiler::executable::Field;

use trefoil_engine::{AbstractOperation, PreparedSelection, ResultShape, Selection};

use crate::plan::collect::FieldGroup;
use crate::plan::input::FieldArguments;
use crate::plan::planner::OperationPlanner;
use crate::plan::shape::{ConnectionShape, ObjectShape, is_number_as_text};

pub struct AbstractRoot {
    pub operation: Arc<AbstractOperation>,
    pub arguments: FieldArguments,
    pub members: Vec<AbstractMember>,
    /// Elements of a list are non-null.
    pub item_required: bool,
    /// A number is written as text.
    pub is_text: bool,
}

/// What is read and written of the records of one type.
pub struct AbstractMember {
    pub shape: MemberShape,
    pub selection: Arc<PreparedSelection>,
}

pub enum MemberShape {
    Object(Arc<ObjectShape>),
    /// The whole connection, as it would be if all its records were of this type.
    Connection(Arc<ConnectionShape>),
    /// Only the number of records counts.
    None,
}

impl AbstractMember {
    /// The shapes in which its records are written.
    pub fn record_shapes(&self) -> Vec<Arc<ObjectShape>> {
        match &self.shape {
            MemberShape::Object(object) => vec![object.clone()],
            MemberShape::Connection(connection) => connection.node_shapes(),
            MemberShape::None => Vec::new(),
        }
    }
}

impl AbstractRoot {
    pub fn uses_resolvers(&self) -> bool {
        self.members.iter().any(|member| match &member.shape {
            MemberShape::Object(object) => object.uses_resolvers,
            MemberShape::Connection(connection) => connection.uses_resolvers,
            MemberShape::None => false,
        })
    }

    pub fn selections(&self) -> Vec<Arc<PreparedSelection>> {
        self.members.iter().map(|member| member.selection.clone()).collect()
    }
}

impl<'a> OperationPlanner<'a> {
    pub fn plan_abstract(
        &mut self,
        operation: Arc<AbstractOperation>,
        first: &Field,
        group: &FieldGroup<'a>,
    ) -> AbstractRoot {
        let model = self.engine.model().clone();
        let mut members = Vec::new();
        for member in &operation.members {
            let (shape, selection) = match operation.result_shape {
                ResultShape::Record | ResultShape::List => {
                    let object = self.plan_record(&model.record(member.record).name, group);
                    let selection = object.reads.selection();
                    (MemberShape::Object(object), selection)
                }
                ResultShape::Connection => {
                    let type_name = first.ty().inner_named_type();
                    let connection = self.plan_connection(member.record, member.first_page, type_name, group);
                    let selection = connection.reads.selection();
                    (MemberShape::Connection(Arc::new(connection)), selection)
                }
                ResultShape::Payload
                | ResultShape::Id
                | ResultShape::Boolean
                | ResultShape::Nothing
                | ResultShape::Count
                | ResultShape::Groups => (MemberShape::None, Selection::default()),
            };
            members.push(AbstractMember { shape, selection: PreparedSelection::new(selection) });
        }
        AbstractRoot {
            arguments: self.read_arguments(first),
            operation,
            members,
            item_required: first.ty().item_type().is_non_null(),
            is_text: is_number_as_text(first.ty().inner_named_type()),
        }
    }
}
