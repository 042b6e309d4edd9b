//! Decides which reads are short enough for a shared connection, where other statements queue behind them.

use std::sync::Arc;

use trefoil_engine::plan::{PlanAction, PlannedListing};
use trefoil_engine::{PlainListAction, StoreJob};
use trefoil_model::RecordType;

use crate::statements::compile::Program;
use crate::statements::indexed_predicate::{is_index_order, is_indexed_predicate};

/// The longest list and the largest offset that count as short.
const MAX_ROWS: i64 = 100;
const MAX_OFFSET: i64 = 1_000;

/// True if a job is one statement that an index answers. Other reads could delay those of other callers.
pub fn is_short_read(job: &StoreJob, programs: &[Arc<Program>]) -> bool {
    let ([(_, plan)], [program]) = (job.plans.as_slice(), programs) else { return false };
    match &plan.action {
        PlanAction::Get { .. } => program.is_one_statement(),
        PlanAction::List { record, listing, .. } => {
            program.is_one_statement() && is_short_list(job.model.record(*record), listing)
        }
        PlanAction::PlainList(operation) => operation.action == PlainListAction::ReadVersion,
        PlanAction::Create { .. }
        | PlanAction::Update { .. }
        | PlanAction::Delete { .. }
        | PlanAction::CreateMany(_)
        | PlanAction::UpdateMany { .. }
        | PlanAction::DeleteMany { .. }
        | PlanAction::Upsert { .. }
        | PlanAction::Nested(_)
        | PlanAction::ReadImage { .. }
        | PlanAction::SeeImages { .. }
        | PlanAction::Aggregate(_) => false,
    }
}

fn is_short_list(owner: &RecordType, listing: &PlannedListing) -> bool {
    let is_small = listing.limit.is_some_and(|limit| limit <= MAX_ROWS) && listing.offset <= MAX_OFFSET;
    is_small
        && is_index_order(owner, listing)
        && listing.predicates.iter().all(|predicate| is_indexed_predicate(owner, predicate))
}
