//! Turns an [`Operation`] into a [`Plan`]: every value coerced, every rule checked. The only place that makes
//! plans.

mod predicate;
mod write_planner;

use std::sync::Arc;

use trefoil_model::error::{Error, Result};
use trefoil_model::values::coerce;
use trefoil_model::{Field, FieldId, Model, RecordType, RecordTypeId, Relation, StoredValue, Value};

use crate::changes::RecordImage;
use crate::cursor::{self, CursorPosition};
use crate::operation::{CountMode, ListSlice, Listing, Operation, Selection, SortKey};
use crate::plain_list::{self, PlainListOperation};
use crate::plan::write_planner::WritePlanner;
use crate::text_search;

pub use crate::plan::predicate::{Predicate, plan_predicates};

/// A validated operation. Stores accept nothing else, and only this module can make one.
#[derive(Debug, Clone)]
pub struct Plan {
    pub action: PlanAction,
    _proof: PlanProof,
}

/// Private, so that other modules cannot construct a `Plan`.
#[derive(Debug, Clone)]
struct PlanProof;

#[derive(Debug, Clone)]
pub enum PlanAction {
    Get {
        record: RecordTypeId,
        id: i64,
        selection: Arc<PlannedSelection>,
    },
    List {
        record: RecordTypeId,
        listing: PlannedListing,
        selection: Arc<PlannedSelection>,
    },
    Create {
        record: RecordTypeId,
        id: Option<i64>,
        values: Vec<(FieldId, StoredValue)>,
        links: Vec<(FieldId, Vec<i64>)>,
        selection: Arc<PlannedSelection>,
    },
    Update {
        record: RecordTypeId,
        id: i64,
        values: Vec<(FieldId, StoredValue)>,
        links: Vec<(FieldId, Vec<i64>)>,
        expected_version: Option<i64>,
        selection: Arc<PlannedSelection>,
    },
    Delete {
        record: RecordTypeId,
        id: i64,
        expected_version: Option<i64>,
        selection: Arc<PlannedSelection>,
    },
    ReadImage {
        record: RecordTypeId,
        image: RecordImage,
        selection: Arc<PlannedSelection>,
    },
    PlainList(PlainListOperation),
}

/// A record of an import.
#[derive(Debug, Clone)]
pub struct ImportRecord {
    pub record: RecordTypeId,
    /// Assigned by the store if `None`.
    pub id: Option<i64>,
    pub fields: Vec<(FieldId, Value)>,
    pub selection: Arc<Selection>,
}

/// A validated [`Selection`]; `statement_shape` is equal exactly if the SQL statements are.
#[derive(Debug, Clone)]
pub struct PlannedSelection {
    pub columns: Vec<FieldId>,
    pub children: Vec<PlannedChild>,
    /// Read the version after the columns.
    pub includes_version: bool,
    pub statement_shape: u128,
}

#[derive(Debug, Clone)]
pub struct PlannedChild {
    pub field: FieldId,
    pub listing: PlannedListing,
    pub selection: PlannedSelection,
}

/// A validated [`Listing`].
#[derive(Debug, Clone, Default)]
pub struct PlannedListing {
    pub predicates: Vec<Predicate>,
    /// Without the final `id`, which every order ends with.
    pub sort_keys: Vec<SortKey>,
    /// Keyset paging: the last record already seen.
    pub after: Option<CursorPosition>,
    /// Maximum number of records …
    pub limit: Option<i64>,
    /// … after skipping this number.
    pub offset: i64,
    pub count: CountMode,
    pub with_cursors: bool,
}

/// Limits on what a request may ask for.
#[derive(Debug, Clone)]
pub struct PlanLimits {
    pub page_size: i64,
    pub max_page_size: i64,
    /// Maximum number of conditions of one list.
    pub conditions: usize,
}

impl Default for PlanLimits {
    fn default() -> Self {
        PlanLimits { page_size: 20, max_page_size: 1_000, conditions: 100 }
    }
}

impl Plan {
    pub fn prove(model: &Model, operation: Operation, now: jiff::Timestamp) -> Result<Plan> {
        Ok(Plan { action: plan_action(model, operation, now)?, _proof: PlanProof })
    }

    /// Plans an imported record: validated like a creation, but timestamps that the server fills may be given.
    pub fn prove_import(model: &Model, import: ImportRecord, now: jiff::Timestamp) -> Result<Plan> {
        let ImportRecord { record, id, fields, selection } = import;
        let (values, links) = WritePlanner::new(model, record, now).plan_import(fields)?;
        let id = coerce::check_chosen_id(id).map_err(Error::Invalid)?;
        let selection = planned_selection(model, record, &selection)?;
        Ok(Plan { action: PlanAction::Create { record, id, values, links, selection }, _proof: PlanProof })
    }

    pub fn is_write(&self) -> bool {
        match &self.action {
            PlanAction::Get { .. } | PlanAction::List { .. } | PlanAction::ReadImage { .. } => false,
            PlanAction::Create { .. } | PlanAction::Update { .. } | PlanAction::Delete { .. } => true,
            PlanAction::PlainList(operation) => operation.action.is_write(),
        }
    }
}

fn plan_action(model: &Model, operation: Operation, now: jiff::Timestamp) -> Result<PlanAction> {
    Ok(match operation {
        Operation::Get { record, id, selection } => {
            PlanAction::Get { record, id, selection: planned_selection(model, record, &selection)? }
        }
        Operation::List { record, listing, selection } => PlanAction::List {
            record,
            listing: plan_listing(model, model.record(record), &listing)?,
            selection: planned_selection(model, record, &selection)?,
        },
        Operation::Create { record, id, fields, selection } => {
            let (values, links) = WritePlanner::new(model, record, now).plan_create(fields)?;
            let id = coerce::check_chosen_id(id).map_err(Error::Invalid)?;
            PlanAction::Create {
                record,
                id,
                values,
                links,
                selection: planned_selection(model, record, &selection)?,
            }
        }
        Operation::Update { record, id, fields, missing_fields, expected_version, selection } => {
            let (values, links) =
                WritePlanner::new(model, record, now).plan_update(fields, missing_fields)?;
            let selection = planned_selection(model, record, &selection)?;
            PlanAction::Update { record, id, values, links, expected_version, selection }
        }
        Operation::Delete { record, id, expected_version, selection } => PlanAction::Delete {
            record,
            id,
            expected_version,
            selection: planned_selection(model, record, &selection)?,
        },
        Operation::ReadImage { record, image, selection } => {
            PlanAction::ReadImage { record, image, selection: planned_selection(model, record, &selection)? }
        }
        Operation::PlainList(operation) => PlanAction::PlainList(plain_list::check_value(operation)?),
    })
}

/// The planned form of a selection, computed on first use and stored with it.
fn planned_selection(
    model: &Model,
    record: RecordTypeId,
    selection: &Selection,
) -> Result<Arc<PlannedSelection>> {
    if let Some(planned) = selection.planned.get() {
        return Ok(planned.clone());
    }
    let planned = Arc::new(plan_selection(model, record, selection)?);
    Ok(selection.planned.get_or_init(|| planned).clone())
}

fn plan_selection(model: &Model, record: RecordTypeId, selection: &Selection) -> Result<PlannedSelection> {
    let owner = model.record(record);
    let mut children = Vec::with_capacity(selection.children.len());
    for child in &selection.children {
        let target = relation_target(owner.field(child.field))?;
        children.push(PlannedChild {
            field: child.field,
            listing: plan_listing(model, model.record(target), &child.listing)?,
            selection: plan_selection(model, target, &child.selection)?,
        });
    }
    let includes_version = selection.includes_version;
    let statement_shape = self::statement_shape(record, &selection.columns, includes_version, &children);
    Ok(PlannedSelection { columns: selection.columns.clone(), children, includes_version, statement_shape })
}

/// The record type on the other side of a relation.
pub fn relation_target(field: &Field) -> Result<RecordTypeId> {
    let relation = field.kind.relation().map(Relation::target);
    relation.ok_or_else(|| Error::internal(format!("`{}` leads to no record", field.name)))
}

/// Equal for two selections exactly if they need the same SQL statements; parameter values do not count.
fn statement_shape(
    record: RecordTypeId,
    columns: &[FieldId],
    includes_version: bool,
    children: &[PlannedChild],
) -> u128 {
    let mut text = format!("{}:{columns:?}{}", record.0, if includes_version { "v" } else { "" });
    for child in children {
        let listing = &child.listing;
        let predicates: Vec<[usize; 2]> = listing.predicates.iter().map(Predicate::statement_shape).collect();
        text += &format!(
            ";{}{predicates:?}{:?}{}{}{:?}{}{:x}",
            child.field.0,
            listing.sort_keys,
            listing.limit.is_some(),
            listing.offset > 0,
            listing.after.as_ref().map(CursorPosition::statement_shape).unwrap_or_default(),
            listing.with_cursors,
            child.selection.statement_shape
        );
    }
    xxhash_rust::xxh3::xxh3_128(text.as_bytes())
}

fn plan_listing(model: &Model, record: &RecordType, listing: &Listing) -> Result<PlannedListing> {
    let mut predicates = plan_predicates(model, record, &listing.conditions)?;
    if let Some(text) = &listing.search {
        predicates.push(
            text_search::search_predicate(record, text)
                .map_err(|violation| Error::Invalid(vec![violation]))?,
        );
    }
    let (limit, offset, after) = match &listing.slice {
        ListSlice::All => (None, 0, None),
        // An offset that overflows is past the end anyway.
        ListSlice::Page { page, size } => (Some(*size), page.saturating_sub(1).saturating_mul(*size), None),
        ListSlice::First { first, after } => {
            let after = after.as_deref().map(|text| cursor::decode(record, &listing.sort_keys, text));
            let after = after.transpose()?;
            (Some(*first), 0, after)
        }
    };
    let (count, with_cursors) = (listing.count, listing.with_cursors);
    Ok(PlannedListing {
        predicates,
        sort_keys: listing.sort_keys.clone(),
        after,
        limit,
        offset,
        count,
        with_cursors,
    })
}
