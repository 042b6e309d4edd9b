//! What else a deletion would do: records that go with it, that lose what they refer to, or that forbid it.

use std::collections::HashMap;
use std::sync::Arc;

use trefoil_engine::{ComparisonOp, Condition, Engine, ListSlice, Listing, Operation, OwnedRow, Selection};
use trefoil_model::error::Result;
use trefoil_model::{FieldId, FieldKind, Model, OnDelete, RecordTypeId, Value};

use crate::multi_read::{self, read_all};

/// Counted exactly up to here.
pub const MAX_COUNTED: usize = 1_000;

/// Further away is not looked: a chain of so many types is longer than any that people follow.
const MAX_ROUNDS: usize = 16;

/// What happens to some records of one type.
#[derive(Debug, PartialEq, Eq)]
pub struct AffectedRecords {
    pub record: RecordTypeId,
    /// The reference by which they are affected.
    pub field: FieldId,
    pub on_delete: OnDelete,
    /// One more than [`MOST`] where there are more.
    pub count: usize,
    /// They refer to the record itself, and not to what goes with it.
    pub is_direct: bool,
}

/// The records found by one reference.
struct ReferringRecords {
    owner: RecordTypeId,
    field: FieldId,
    on_delete: OnDelete,
    ids: Vec<i64>,
    is_direct: bool,
}

/// Which records are affected when this one is deleted. The store decides when it is; this tells beforehand.
pub async fn deletion_effects(
    engine: &Engine,
    record: RecordTypeId,
    id: i64,
) -> Result<Vec<AffectedRecords>> {
    let mut doomed: HashMap<RecordTypeId, Vec<i64>> = HashMap::from([(record, vec![id])]);
    let mut next = vec![(record, vec![id])];
    let mut found: Vec<ReferringRecords> = Vec::new();
    for round in 0..MAX_ROUNDS {
        if next.is_empty() {
            break;
        }
        let mut further: Vec<(RecordTypeId, Vec<i64>)> = Vec::new();
        for mut referrers in find_referring(engine, std::mem::take(&mut next), round == 0).await? {
            if referrers.on_delete == OnDelete::Cascade {
                let known = doomed.entry(referrers.owner).or_default();
                referrers.ids.retain(|id| !known.contains(id));
                let room = (MAX_COUNTED + 1).saturating_sub(known.len());
                known.extend(referrers.ids.iter().take(room));
                further.push((referrers.owner, referrers.ids.iter().copied().take(room).collect()));
            }
            found.push(referrers);
        }
        further.retain(|(_, ids)| !ids.is_empty());
        next = further;
    }
    Ok(summarize(found, &doomed))
}

/// Who refers to these.
async fn find_referring(
    engine: &Engine,
    doomed: Vec<(RecordTypeId, Vec<i64>)>,
    direct: bool,
) -> Result<Vec<ReferringRecords>> {
    let model = engine.model();
    let (mut found, mut operations) = (Vec::new(), Vec::new());
    for (target, ids) in doomed {
        for (owner, field, fate) in references_to(model, target) {
            operations.push(referring_operation(model, owner, field, &ids));
            found.push(ReferringRecords {
                owner,
                field,
                on_delete: fate,
                ids: Vec::new(),
                is_direct: direct,
            });
        }
    }
    if operations.is_empty() {
        return Ok(found);
    }
    for (found, seen) in
        found.iter_mut().zip(read_all(engine, operations, multi_read::TEXT_PREVIEW_BYTES).await?)
    {
        found.ids = seen.rows.iter().filter_map(row_id).collect();
    }
    Ok(found)
}

fn references_to(
    model: &Model,
    wanted: RecordTypeId,
) -> impl Iterator<Item = (RecordTypeId, FieldId, OnDelete)> {
    model.records.iter().enumerate().flat_map(move |(owner, record)| {
        let fields = record.fields.iter().enumerate();
        fields.filter_map(move |(position, field)| match field.kind {
            FieldKind::Reference { target, on_delete } if target == wanted => {
                Some((RecordTypeId(owner), FieldId(position), on_delete))
            }
            FieldKind::Reference { .. }
            | FieldKind::Id
            | FieldKind::Scalar(_)
            | FieldKind::Enum(_)
            | FieldKind::Embedded(_)
            | FieldKind::List(_)
            | FieldKind::Inverse { .. }
            | FieldKind::Link { .. }
            | FieldKind::Unstored => None,
        })
    })
}

fn referring_operation(model: &Model, owner: RecordTypeId, field: FieldId, ids: &[i64]) -> Operation {
    let value = Value::List(ids.iter().map(|id| Value::Int(*id)).collect());
    let conditions = vec![Condition { field, op: ComparisonOp::In, value }];
    let slice = ListSlice::First { first: MAX_COUNTED as i64 + 1, after: None };
    let listing = Listing { conditions, slice, ..Listing::default() };
    let selection = Selection::new(vec![model.record(owner).id_field()], Vec::new());
    Operation::List { record: owner, listing, selection: Arc::new(selection) }
}

fn row_id(row: &OwnedRow) -> Option<i64> {
    row.cells.first()?.as_cell().to_i64()
}

/// One entry for each reference; what goes itself neither forbids anything nor loses anything.
fn summarize(found: Vec<ReferringRecords>, doomed: &HashMap<RecordTypeId, Vec<i64>>) -> Vec<AffectedRecords> {
    let mut affected: Vec<AffectedRecords> = Vec::new();
    for ReferringRecords { owner, field, on_delete: fate, mut ids, is_direct: direct } in found {
        if fate != OnDelete::Cascade {
            let goes = |id: &i64| doomed.get(&owner).is_some_and(|doomed| doomed.contains(id));
            ids.retain(|id| !goes(id));
        }
        let known = affected.iter_mut().find(|known| known.record == owner && known.field == field);
        match known {
            Some(known) => known.count = (known.count + ids.len()).min(MAX_COUNTED + 1),
            None => affected.push(AffectedRecords {
                record: owner,
                field,
                on_delete: fate,
                count: ids.len(),
                is_direct: direct,
            }),
        }
    }
    affected.retain(|affected| affected.count > 0);
    affected
}
