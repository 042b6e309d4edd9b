//! The records that a deletion affects: deleted too, set to null, or preventing it.

use std::collections::HashMap;

use trefoil_engine::{
    Condition, CountMode, Engine, ListSlice, Listing, Operation, Outcome, OwnedRow, PreparedSelection,
    Selection,
};
use trefoil_model::access::AccessAction;
use trefoil_model::error::Result;
use trefoil_model::{FieldId, Model, OnDelete, RecordId, RecordTypeId, Value};

use trefoil_resources::collection::{NestedCollection, nested_collections};

use crate::snapshot_reads::{self, read_snapshot};

/// Affected records are counted exactly up to this number.
pub const MAX_COUNTED: usize = 1_000;

/// Maximum length of a chain of references that is followed.
const MAX_ROUNDS: usize = 16;

/// Records of one type that a deletion affects by one reference.
#[derive(Debug, PartialEq, Eq)]
pub struct AffectedRecords {
    pub record: RecordTypeId,
    /// The reference by which they are affected.
    pub field: FieldId,
    pub on_delete: OnDelete,
    /// [`MAX_COUNTED`] + 1 if there are more.
    pub count: usize,
    /// True if they refer to the record itself, and not to one that is deleted with it.
    pub is_direct: bool,
}

/// The records of one type that are linked with a deleted one.
#[derive(Debug)]
pub struct LostLinks {
    pub record: RecordTypeId,
    /// One more than [`MAX_COUNTED`] if there are more.
    pub count: u64,
    /// The list of them below the record; `None` if the type of the record has none.
    pub segment: Option<String>,
}

/// The links of a record, which go with it.
pub async fn lost_links(engine: &Engine, record: RecordTypeId, id: &RecordId) -> Result<Vec<LostLinks>> {
    let (model, mut lost, mut operations) = (engine.model(), Vec::new(), Vec::new());
    let own = nested_collections(model.record(record)).filter(NestedCollection::is_link);
    for list in own.filter(|list| is_shown(engine, record, list.field)) {
        operations.push(count_operation(model, list.record, list.condition(record, id)));
        lost.push(LostLinks { record: list.record, count: 0, segment: Some(list.segment) });
    }
    for (owner, field) in links_from_others(model, record) {
        if !is_shown(engine, owner, field) {
            continue;
        }
        let is_record = Condition::equals(model.record(record).id_field(), id.to_value());
        let condition = Condition::Related { relation: field, conditions: vec![is_record] };
        operations.push(count_operation(model, owner, condition));
        lost.push(LostLinks { record: owner, count: 0, segment: None });
    }
    if operations.is_empty() {
        return Ok(lost);
    }
    let found = read_snapshot(engine, operations, snapshot_reads::TEXT_PREVIEW_BYTES).await?;
    for (lost, found) in lost.iter_mut().zip(found) {
        if let Outcome::Listed { total: Some(total), .. } = found.outcome {
            lost.count = total;
        }
    }
    lost.retain(|lost| lost.count > 0);
    Ok(lost)
}

/// The links of other types to this one that it has no list of.
fn links_from_others(model: &Model, target: RecordTypeId) -> impl Iterator<Item = (RecordTypeId, FieldId)> {
    let own_tables: Vec<&str> = { model.record(target).fields.iter() }
        .filter_map(|field| Some(field.kind.link()?.table.as_str()))
        .collect();
    model.records.iter().enumerate().flat_map(move |(owner, record)| {
        let own_tables = own_tables.clone();
        let fields = record.fields.iter().enumerate();
        fields.filter_map(move |(position, field)| {
            let link = field.kind.link().filter(|link| link.target == target)?;
            let is_known = own_tables.contains(&link.table.as_str());
            (!is_known).then_some((RecordTypeId(owner), FieldId(position)))
        })
    })
}

fn count_operation(model: &Model, record: RecordTypeId, condition: Condition) -> Operation {
    let listing = Listing {
        conditions: vec![condition],
        slice: ListSlice::First { first: 0, after: None },
        count: CountMode::UpTo(MAX_COUNTED as u32),
        ..Listing::default()
    };
    let selection = Selection::new(vec![model.record(record).id_field()], Vec::new());
    Operation::List { record, listing, selection: PreparedSelection::new(selection) }
}

/// The records that refer to deleted ones by one reference.
struct ReferringRecords {
    owner: RecordTypeId,
    field: FieldId,
    on_delete: OnDelete,
    ids: Vec<RecordId>,
    is_direct: bool,
}

/// The records affected if this one is deleted: a forecast, since the store decides at the time of deletion.
pub async fn deletion_effects(
    engine: &Engine,
    record: RecordTypeId,
    id: &RecordId,
) -> Result<Vec<AffectedRecords>> {
    let mut deleted: HashMap<RecordTypeId, Vec<RecordId>> = HashMap::from([(record, vec![id.clone()])]);
    let mut next = vec![(record, vec![id.clone()])];
    let mut found: Vec<ReferringRecords> = Vec::new();
    for round in 0..MAX_ROUNDS {
        if next.is_empty() {
            break;
        }
        let mut added: Vec<(RecordTypeId, Vec<RecordId>)> = Vec::new();
        for mut referring in find_referring(engine, std::mem::take(&mut next), round == 0).await? {
            if referring.on_delete == OnDelete::Cascade {
                let known = deleted.entry(referring.owner).or_default();
                referring.ids.retain(|id| !known.contains(id));
                let capacity = (MAX_COUNTED + 1).saturating_sub(known.len());
                known.extend(referring.ids.iter().take(capacity).cloned());
                added.push((referring.owner, referring.ids.iter().take(capacity).cloned().collect()));
            }
            found.push(referring);
        }
        added.retain(|(_, ids)| !ids.is_empty());
        next = added;
    }
    Ok(summarize(found, &deleted))
}

/// The records that refer to these.
async fn find_referring(
    engine: &Engine,
    deleted: Vec<(RecordTypeId, Vec<RecordId>)>,
    is_direct: bool,
) -> Result<Vec<ReferringRecords>> {
    let model = engine.model();
    let (mut found, mut operations) = (Vec::new(), Vec::new());
    for (target, ids) in deleted {
        let references = references_to(model, target);
        for (owner, field, on_delete) in
            references.filter(|(owner, field, _)| is_shown(engine, *owner, *field))
        {
            operations.push(referring_operation(model, owner, field, &ids));
            found.push(ReferringRecords { owner, field, on_delete, ids: Vec::new(), is_direct });
        }
    }
    if operations.is_empty() {
        return Ok(found);
    }
    for (found, rows_found) in
        found.iter_mut().zip(read_snapshot(engine, operations, snapshot_reads::TEXT_PREVIEW_BYTES).await?)
    {
        found.ids = rows_found.rows.iter().filter_map(row_id).collect();
    }
    Ok(found)
}

/// What the actor does not see is not foretold.
fn is_shown(engine: &Engine, owner: RecordTypeId, field: FieldId) -> bool {
    engine.may(AccessAction::Read, owner) && engine.shows_field(owner, field)
}

fn references_to(
    model: &Model,
    target_type: RecordTypeId,
) -> impl Iterator<Item = (RecordTypeId, FieldId, OnDelete)> {
    model.records.iter().enumerate().flat_map(move |(owner, record)| {
        let fields = record.fields.iter().enumerate();
        fields.filter_map(move |(position, field)| {
            let reference = field.kind.reference().filter(|reference| reference.target == target_type)?;
            Some((RecordTypeId(owner), FieldId(position), reference.on_delete))
        })
    })
}

fn referring_operation(model: &Model, owner: RecordTypeId, field: FieldId, ids: &[RecordId]) -> Operation {
    let value = Value::List(ids.iter().map(RecordId::to_value).collect());
    let conditions = vec![Condition::one_of(field, value)];
    let slice = ListSlice::First { first: MAX_COUNTED as i64 + 1, after: None };
    let listing = Listing { conditions, slice, ..Listing::default() };
    let selection = Selection::new(vec![model.record(owner).id_field()], Vec::new());
    Operation::List { record: owner, listing, selection: PreparedSelection::new(selection) }
}

fn row_id(row: &OwnedRow) -> Option<RecordId> {
    RecordId::from_cell(row.cells.first()?.as_cell())
}

/// One entry per reference. Records that are deleted themselves neither prevent the deletion nor lose a value.
fn summarize(
    found: Vec<ReferringRecords>,
    deleted: &HashMap<RecordTypeId, Vec<RecordId>>,
) -> Vec<AffectedRecords> {
    let mut affected: Vec<AffectedRecords> = Vec::new();
    for ReferringRecords { owner, field, on_delete, mut ids, is_direct } in found {
        if on_delete != OnDelete::Cascade {
            let is_deleted = |id: &RecordId| deleted.get(&owner).is_some_and(|ids| ids.contains(id));
            ids.retain(|id| !is_deleted(id));
        }
        let known = affected.iter_mut().find(|known| known.record == owner && known.field == field);
        match known {
            Some(known) => known.count = (known.count + ids.len()).min(MAX_COUNTED + 1),
            None => affected.push(AffectedRecords {
                record: owner,
                field,
                on_delete,
                count: ids.len(),
                is_direct,
            }),
        }
    }
    affected.retain(|affected| affected.count > 0);
    affected
}
