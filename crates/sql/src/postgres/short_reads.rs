//! Which reads are so short that nobody minds waiting behind them on a shared connection.

use std::sync::Arc;

use crate::statements::compile::Program;
use trefoil_engine::plan::{PlanAction, PlannedListing, Predicate};
use trefoil_engine::{ComparisonOp, PlainListAction, StoreJob};
use trefoil_model::{FieldId, FieldKind, RecordType};

/// The longest list, and how far out, that an index gives in a moment.
const MAX_ROWS: i64 = 100;
const MAX_OFFSET: i64 = 1_000;

/// Whether a job is one statement that an index answers. Everything else could hold up others.
pub fn is_short_read(job: &StoreJob, programs: &[Arc<Program>]) -> bool {
    let ([(_, plan)], [program]) = (job.plans.as_slice(), programs) else { return false };
    match &plan.action {
        PlanAction::Get { .. } => program.is_one_statement(),
        PlanAction::List { record, listing, .. } => {
            program.is_one_statement() && is_short_list(job.model.record(*record), listing)
        }
        PlanAction::PlainList(asked) => asked.action == PlainListAction::ReadVersion,
        PlanAction::Create { .. }
        | PlanAction::Update { .. }
        | PlanAction::Delete { .. }
        | PlanAction::ReadImage { .. } => false,
    }
}

fn is_short_list(owner: &RecordType, bounds: &PlannedListing) -> bool {
    let few = bounds.limit.is_some_and(|limit| limit <= MAX_ROWS) && bounds.offset <= MAX_OFFSET;
    let in_order = bounds.sort_keys.first().is_none_or(|order| {
        // Nulls are last both ways, which an index gives in one direction only.
        let backwards = order.descending && !owner.field(order.field).required;
        has_index(owner, order.field) && !(backwards && owner.field(order.field).kind != FieldKind::Id)
    });
    few && in_order && bounds.predicates.iter().all(|test| is_indexed_predicate(owner, test))
}

fn is_indexed_predicate(owner: &RecordType, test: &Predicate) -> bool {
    match test {
        Predicate::Compare { op: ComparisonOp::Contains | ComparisonOp::Ne, .. }
        | Predicate::NotNull { .. }
        | Predicate::Search { .. }
        | Predicate::SearchPattern { .. } => false,
        Predicate::Compare {
            field,
            op:
                ComparisonOp::Eq
                | ComparisonOp::In
                | ComparisonOp::Lt
                | ComparisonOp::Lte
                | ComparisonOp::Gt
                | ComparisonOp::Gte,
            ..
        }
        | Predicate::OneOf { field, .. }
        | Predicate::IsNull { field } => has_index(owner, *field),
        Predicate::Never => true,
    }
}

fn has_index(owner: &RecordType, field: FieldId) -> bool {
    let found = owner.field(field);
    let by_itself = found.unique || matches!(found.kind, FieldKind::Id | FieldKind::Reference { .. });
    by_itself || owner.indexes.iter().any(|fields| fields.first() == Some(&field))
}
