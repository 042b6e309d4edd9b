//! Where the new records of a list stand among the steps of a nested write: all of them in one step, so that their ids are
//! in the order of the list, whichever of them need others first.

use trefoil_model::{Model, RecordTypeId};

use crate::operation::{RecordInput, RelatedInput};

/// The levels of the new records of a list.
#[derive(Clone, Copy)]
pub(super) struct ListPlace {
    /// The least for the records that they need.
    pub min_level: usize,
    /// Their own, after all of these.
    pub own_level: usize,
}

impl ListPlace {
    pub fn new<'i>(
        model: &Model,
        record: RecordTypeId,
        inputs: impl Iterator<Item = &'i RecordInput>,
        min_level: usize,
    ) -> ListPlace {
        let depth = inputs.map(|input| reference_depth(model, record, input)).max();
        ListPlace { min_level, own_level: min_level + depth.unwrap_or(0) }
    }
}

/// How many new records lead to each other from this one.
fn reference_depth(model: &Model, record: RecordTypeId, input: &RecordInput) -> usize {
    let depth = |related: &RelatedInput| {
        let target = model.record(record).field(related.relation).kind.reference()?.target;
        Some(1 + reference_depth(model, target, related.create.first()?))
    };
    input.related.iter().filter_map(depth).max().unwrap_or(0)
}
