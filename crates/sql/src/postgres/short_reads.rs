//! Which reads are so short that nobody minds waiting behind them on a shared connection.

use std::sync::Arc;

use crate::statements::compile::Program;
use trefoil_engine::plan::{Action, Bounds, Test};
use trefoil_engine::{Job, ListAct, Op};
use trefoil_model::{FieldId, Kind, RecordType};

/// The longest list, and how far out, that an index gives in a moment.
const ROWS: i64 = 100;
const OFFSET: i64 = 1_000;

/// Whether a job is one statement that an index answers. Everything else could hold up others.
pub fn is_look_up(job: &Job, programs: &[Arc<Program>]) -> bool {
    let ([(_, plan)], [program]) = (job.plans.as_slice(), programs) else { return false };
    match &plan.action {
        Action::Get { .. } => program.is_one_statement(),
        Action::List { record, listing, .. } => {
            program.is_one_statement() && is_short(job.model.record(*record), listing)
        }
        Action::Plain(asked) => asked.act == ListAct::Look,
        Action::Create { .. } | Action::Update { .. } | Action::Delete { .. } | Action::Changed { .. } => {
            false
        }
    }
}

fn is_short(owner: &RecordType, bounds: &Bounds) -> bool {
    let few = bounds.limit.is_some_and(|limit| limit <= ROWS) && bounds.offset <= OFFSET;
    let in_order = bounds.order.first().is_none_or(|order| {
        // Nulls are last both ways, which an index gives in one direction only.
        let backwards = order.descending && !owner.field(order.field).required;
        has_index(owner, order.field) && !(backwards && owner.field(order.field).kind != Kind::Id)
    });
    few && in_order && bounds.conditions.iter().all(|test| is_indexed(owner, test))
}

fn is_indexed(owner: &RecordType, test: &Test) -> bool {
    match test {
        Test::Compare { op: Op::Contains | Op::Ne, .. }
        | Test::NotNull { .. }
        | Test::Search { .. }
        | Test::SearchPattern { .. } => false,
        Test::Compare { field, op: Op::Eq | Op::In | Op::Lt | Op::Lte | Op::Gt | Op::Gte, .. }
        | Test::OneOf { field, .. }
        | Test::IsNull { field } => has_index(owner, *field),
        Test::Nothing => true,
    }
}

fn has_index(owner: &RecordType, field: FieldId) -> bool {
    let found = owner.field(field);
    let by_itself = found.unique || matches!(found.kind, Kind::Id | Kind::Reference { .. });
    by_itself || owner.indexes.iter().any(|fields| fields.first() == Some(&field))
}
