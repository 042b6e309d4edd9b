//! Selections: what was asked for, and the same after validation.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use trefoil_model::error::{Error, PathSegment, Result};
use trefoil_model::{Field, FieldId, Model, RecordTypeId, Relation};

use crate::operation::{ChildSelection, Selection};
use crate::plan::aggregate::{PlannedAggregate, plan_aggregate};
use crate::plan::listing::{PlannedListing, plan_listing};
use crate::plan::plan_limits::PlanLimits;
use crate::plan::statement_shape::StatementShape;

/// A selection with its plan, which is made once, however often requests use it. It is for one record type.
#[derive(Debug, Default)]
pub struct PreparedSelection {
    selection: Selection,
    planned: OnceLock<(RecordTypeId, Arc<PlannedSelection>)>,
}

impl PreparedSelection {
    pub fn new(selection: Selection) -> Arc<PreparedSelection> {
        Arc::new(PreparedSelection { selection, planned: OnceLock::new() })
    }

    /// The planned form, computed on first use. The plan for another record type would read and write its table.
    pub(super) fn plan(
        &self,
        model: &Model,
        limits: &PlanLimits,
        record: RecordTypeId,
    ) -> Result<Arc<PlannedSelection>> {
        if let Some((_, planned)) = self.planned.get().filter(|(owner, _)| *owner == record) {
            return Ok(planned.clone());
        }
        let planned = Arc::new(plan_selection(model, limits, record, &self.selection)?);
        // Fails only if there is a plan already.
        let _ = self.planned.set((record, planned.clone()));
        Ok(planned)
    }
}

impl Deref for PreparedSelection {
    type Target = Selection;

    fn deref(&self) -> &Selection {
        &self.selection
    }
}

/// A validated [`Selection`].
#[derive(Debug, Clone, Default)]
pub struct PlannedSelection {
    pub columns: Vec<FieldId>,
    pub children: Vec<PlannedChild>,
    /// Read the version after the columns.
    pub includes_version: bool,
    pub statement_shape: StatementShape,
}

#[derive(Debug, Clone)]
pub struct PlannedChild {
    pub field: FieldId,
    pub listing: PlannedListing,
    pub selection: PlannedSelection,
    /// Read instead of the records themselves.
    pub aggregate: Option<PlannedAggregate>,
}

impl PlannedChild {
    /// The listing that may search.
    pub fn searched_listing(&self) -> &PlannedListing {
        self.aggregate.as_ref().map_or(&self.listing, |aggregate| &aggregate.listing)
    }
}

fn plan_selection(
    model: &Model,
    limits: &PlanLimits,
    record: RecordTypeId,
    selection: &Selection,
) -> Result<PlannedSelection> {
    let owner = model.record(record);
    let mut children = Vec::with_capacity(selection.children.len());
    for child in &selection.children {
        let field = owner.field(child.field);
        children.push(plan_child(model, limits, field, child).map_err(|error| inside_field(field, error))?);
    }
    let includes_version = selection.includes_version;
    let statement_shape = selection_shape(record, &selection.columns, includes_version, &children);
    Ok(PlannedSelection { columns: selection.columns.clone(), children, includes_version, statement_shape })
}

fn plan_child(
    model: &Model,
    limits: &PlanLimits,
    field: &Field,
    child: &ChildSelection,
) -> Result<PlannedChild> {
    let target = relation_target(field)?;
    let aggregate = child.aggregate.as_ref().map(|query| plan_aggregate(model, target, query, limits));
    Ok(PlannedChild {
        field: child.field,
        listing: plan_listing(model, model.record(target), &child.listing)?,
        selection: plan_selection(model, limits, target, &child.selection)?,
        aggregate: aggregate.transpose()?,
    })
}

/// Violations in the arguments of related records, with the field that has them.
fn inside_field(field: &Field, error: Error) -> Error {
    let Error::Invalid(found) = error else { return error };
    let segment = || PathSegment::Field(field.name.clone());
    Error::Invalid(found.into_iter().map(|violation| violation.nested_under(segment())).collect())
}

/// The record type on the other side of a relation.
pub fn relation_target(field: &Field) -> Result<RecordTypeId> {
    let relation = field.kind.relation().map(Relation::target);
    relation.ok_or_else(|| Error::internal(format!("`{}` is not a relation", field.name)))
}

/// All that reading a record by its id depends on.
fn selection_shape(
    record: RecordTypeId,
    columns: &[FieldId],
    includes_version: bool,
    children: &[PlannedChild],
) -> StatementShape {
    let mut shape = StatementShape::of_kind(0, &StatementShape::default());
    shape.push_number(record.0);
    shape.push_fields(columns.iter().copied());
    shape.push_flag(includes_version);
    shape.push_number(children.len());
    for child in children {
        shape.push_number(child.field.0);
        child.listing.push_shape(&mut shape);
        shape.push_bytes(child.selection.statement_shape.as_bytes());
        shape.push_flag(child.aggregate.is_some());
        if let Some(aggregate) = &child.aggregate {
            aggregate.push_shape(&mut shape);
        }
    }
    shape
}
