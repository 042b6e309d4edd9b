//! What else a deletion would do: records that go with it, that lose what they refer to, or that forbid it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::multi_read;
use crate::multi_read::look;
use trefoil_engine::{Condition, Engine, Listing, Op, Operation, OwnedRow, Selection, Slice};
use trefoil_model::error::Result;
use trefoil_model::{FieldId, Kind, Model, OnDelete, TypeId, Value};

/// Counted exactly up to here.
pub const MOST: usize = 1_000;

/// Further away is not looked: a chain of so many types is longer than any that people follow.
const ROUNDS: usize = 16;

/// What happens to some records of one type.
#[derive(Debug, PartialEq, Eq)]
pub struct Affected {
    pub record: TypeId,
    /// The reference by which they are affected.
    pub field: FieldId,
    pub fate: OnDelete,
    /// One more than [`MOST`] where there are more.
    pub count: usize,
    /// They refer to the record itself, and not to what goes with it.
    pub direct: bool,
}

/// The records found by one reference.
struct Found {
    owner: TypeId,
    field: FieldId,
    fate: OnDelete,
    ids: Vec<i64>,
    direct: bool,
}

/// Which records are affected when this one is deleted. The store decides when it is; this tells beforehand.
pub async fn effects(engine: &Engine, record: TypeId, id: i64) -> Result<Vec<Affected>> {
    let mut doomed: HashMap<TypeId, Vec<i64>> = HashMap::from([(record, vec![id])]);
    let mut next = vec![(record, vec![id])];
    let mut found: Vec<Found> = Vec::new();
    for round in 0..ROUNDS {
        if next.is_empty() {
            break;
        }
        let mut further: Vec<(TypeId, Vec<i64>)> = Vec::new();
        for mut referrers in referring(engine, std::mem::take(&mut next), round == 0).await? {
            if referrers.fate == OnDelete::Cascade {
                let known = doomed.entry(referrers.owner).or_default();
                referrers.ids.retain(|id| !known.contains(id));
                let room = (MOST + 1).saturating_sub(known.len());
                known.extend(referrers.ids.iter().take(room));
                further.push((referrers.owner, referrers.ids.iter().copied().take(room).collect()));
            }
            found.push(referrers);
        }
        further.retain(|(_, ids)| !ids.is_empty());
        next = further;
    }
    Ok(summed(found, &doomed))
}

/// Who refers to these.
async fn referring(engine: &Engine, doomed: Vec<(TypeId, Vec<i64>)>, direct: bool) -> Result<Vec<Found>> {
    let model = engine.model();
    let (mut found, mut operations) = (Vec::new(), Vec::new());
    for (target, ids) in doomed {
        for (owner, field, fate) in references_to(model, target) {
            operations.push(those(model, owner, field, &ids));
            found.push(Found { owner, field, fate, ids: Vec::new(), direct });
        }
    }
    if operations.is_empty() {
        return Ok(found);
    }
    for (found, seen) in found.iter_mut().zip(look(engine, operations, multi_read::PART).await?) {
        found.ids = seen.rows.iter().filter_map(id).collect();
    }
    Ok(found)
}

fn references_to(model: &Model, wanted: TypeId) -> impl Iterator<Item = (TypeId, FieldId, OnDelete)> {
    model.records.iter().enumerate().flat_map(move |(owner, record)| {
        let fields = record.fields.iter().enumerate();
        fields.filter_map(move |(position, field)| match field.kind {
            Kind::Reference { target, on_delete } if target == wanted => {
                Some((TypeId(owner), FieldId(position), on_delete))
            }
            Kind::Reference { .. }
            | Kind::Id
            | Kind::Scalar(_)
            | Kind::Enum(_)
            | Kind::Embedded(_)
            | Kind::List(_)
            | Kind::Inverse { .. }
            | Kind::Link { .. }
            | Kind::Unstored => None,
        })
    })
}

fn those(model: &Model, owner: TypeId, field: FieldId, ids: &[i64]) -> Operation {
    let value = Value::List(ids.iter().map(|id| Value::Int(*id)).collect());
    let conditions = vec![Condition { field, op: Op::In, value }];
    let slice = Slice::First { first: MOST as i64 + 1, after: None };
    let listing = Listing { conditions, slice, ..Listing::default() };
    let selection = Selection::new(vec![model.record(owner).id_field()], Vec::new());
    Operation::List { record: owner, listing, selection: Arc::new(selection) }
}

fn id(row: &OwnedRow) -> Option<i64> {
    row.cells.first()?.as_cell().to_i64()
}

/// One entry for each reference; what goes itself neither forbids anything nor loses anything.
fn summed(found: Vec<Found>, doomed: &HashMap<TypeId, Vec<i64>>) -> Vec<Affected> {
    let mut affected: Vec<Affected> = Vec::new();
    for Found { owner, field, fate, mut ids, direct } in found {
        if fate != OnDelete::Cascade {
            let goes = |id: &i64| doomed.get(&owner).is_some_and(|doomed| doomed.contains(id));
            ids.retain(|id| !goes(id));
        }
        let known = affected.iter_mut().find(|known| known.record == owner && known.field == field);
        match known {
            Some(known) => known.count = (known.count + ids.len()).min(MOST + 1),
            None => affected.push(Affected { record: owner, field, fate, count: ids.len(), direct }),
        }
    }
    affected.retain(|affected| affected.count > 0);
    affected
}
