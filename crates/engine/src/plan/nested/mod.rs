//! The plan of a nested write: its records in steps, each of which is one statement if possible.

mod input_path;
mod list_place;
mod step_planner;
mod steps;

use std::sync::Arc;

use trefoil_model::RecordTypeId;
use trefoil_model::error::{PathSegment, Result};

use crate::operation::NestedWrite;
use crate::plan::nested::step_planner::StepPlanner;
use crate::plan::plan_context::PlanContext;
use crate::plan::selection::PreparedSelection;

pub use crate::plan::nested::steps::{
    NestedKind, NestedPlan, NestedStep, RecordKey, RecordOwner, RowValues, StepAction, StepItem,
};

pub(super) fn plan_nested(
    planning: PlanContext<'_>,
    record: RecordTypeId,
    write: NestedWrite,
    selection: Arc<PreparedSelection>,
) -> Result<NestedPlan> {
    let mut planner = StepPlanner::new(planning);
    let kind = match write {
        NestedWrite::Create(input) => {
            planner.add_roots(record, vec![(Vec::new(), input)]);
            NestedKind::Create(0)
        }
        NestedWrite::CreateMany(inputs) => {
            let roots = inputs.into_iter().enumerate();
            let roots = roots.map(|(index, input)| (vec![PathSegment::Index(index)], input));
            NestedKind::CreateMany(planner.add_roots(record, roots.collect()))
        }
        NestedWrite::Update { id, input, missing_fields, expected_version } => {
            planner.add_changed_root(record, &id, input, missing_fields);
            NestedKind::Update { id, expected_version }
        }
    };
    let (new_ids, steps) = planner.finish()?;
    let selection = selection.plan(planning.model, planning.limits, record)?;
    Ok(NestedPlan { record, kind, new_ids, steps, selection })
}
