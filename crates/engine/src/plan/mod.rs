//! Turns an [`Operation`] into a [`Plan`]: every value coerced, every rule checked. The only place that makes
//! plans.

mod access_check;
mod actor_values;
mod aggregate;
mod ending_writes;
mod listing;
mod many_records;
mod nested;
mod plan_context;
mod plan_limits;
mod predicate;
mod relation_lengths;
mod request_time;
mod search;
mod selection;
mod statement_shape;
mod write_planner;
mod write_refusal;

use std::sync::Arc;

use trefoil_model::error::{Error, Result};
use trefoil_model::{FieldId, Model, RecordId, RecordTypeId, StoredValue, Value};

use crate::access::{AccessView, Authority};
use crate::changes::RecordImage;
use crate::changes::image_list::ImageList;
use crate::operation::{Condition, MissingFields, Operation};
use crate::plain_list::{self, PlainListOperation};
use crate::plan::listing::plan_listing;
use crate::plan::nested::plan_nested;
use crate::plan::plan_context::{PlanContext, WriteOrigin};
use crate::plan::write_planner::{PlannedValues, WritePlanner};

pub(crate) use crate::plan::access_check::{check_conditions, check_operation};
pub use crate::plan::aggregate::{MAX_GROUP_KEYS, PlannedAggregate, PlannedHaving, joined_references};
pub(crate) use crate::plan::ending_writes::{EndingWrites, TouchedAccounts};
pub use crate::plan::listing::PlannedListing;
pub use crate::plan::many_records::{check_match_count, check_record_count};
pub use crate::plan::nested::{
    NestedKind, NestedPlan, NestedStep, RecordKey, RecordOwner, RowValues, StepAction, StepItem,
};
pub use crate::plan::plan_limits::{DEFAULT_LIST_LENGTH, PlanLimits};
pub use crate::plan::predicate::{Predicate, plan_predicates};
pub(crate) use crate::plan::relation_lengths::MeasuredLengths;
pub use crate::plan::relation_lengths::{MAX_MEASURED_LISTS, RelationLengths};
pub use crate::plan::request_time::RequestTime;
pub use crate::plan::search::{
    IGNORED_MARKS, LETTERS, MARK_RANGES, MAX_INDEXED_LETTERS, MAX_PATTERN_LETTERS, MAX_TOKEN_LETTERS,
    SEPARATORS, pattern_count, searched_texts, without_marks, word_count,
};
pub use crate::plan::selection::{PlannedChild, PlannedSelection, PreparedSelection, relation_target};
pub use crate::plan::statement_shape::StatementShape;

/// A validated operation. Stores accept nothing else, and only this module can make one.
#[derive(Debug, Clone)]
pub struct Plan {
    pub action: PlanAction,
    /// On whose behalf it runs.
    authority: Authority,
    _proof: PlanProof,
}

/// Private, so that other modules cannot construct a `Plan`.
#[derive(Debug, Clone)]
struct PlanProof;

#[derive(Debug, Clone)]
pub enum PlanAction {
    Get {
        record: RecordTypeId,
        id: RecordId,
        selection: Arc<PlannedSelection>,
    },
    List {
        record: RecordTypeId,
        listing: PlannedListing,
        selection: Arc<PlannedSelection>,
    },
    Create {
        record: RecordTypeId,
        id: Option<RecordId>,
        values: Vec<(FieldId, StoredValue)>,
        links: Vec<(FieldId, Vec<RecordId>)>,
        selection: Arc<PlannedSelection>,
    },
    Update {
        record: RecordTypeId,
        id: RecordId,
        values: Vec<(FieldId, StoredValue)>,
        links: Vec<(FieldId, Vec<RecordId>)>,
        expected_version: Option<i64>,
        selection: Arc<PlannedSelection>,
    },
    Delete {
        record: RecordTypeId,
        id: RecordId,
        expected_version: Option<i64>,
        selection: Arc<PlannedSelection>,
    },
    /// Plans that create a record each, with values and links for the same fields.
    CreateMany(Vec<Plan>),
    UpdateMany {
        record: RecordTypeId,
        /// Counts up to [`PlanLimits::bulk`].
        listing: PlannedListing,
        values: Vec<(FieldId, StoredValue)>,
        links: Vec<(FieldId, Vec<RecordId>)>,
    },
    DeleteMany {
        record: RecordTypeId,
        listing: PlannedListing,
    },
    Upsert {
        record: RecordTypeId,
        /// Matches one record at most.
        listing: PlannedListing,
        create: Box<Plan>,
        /// What the record gets that is found.
        values: Vec<(FieldId, StoredValue)>,
        links: Vec<(FieldId, Vec<RecordId>)>,
        selection: Arc<PlannedSelection>,
    },
    Nested(Box<NestedPlan>),
    ReadImage {
        record: RecordTypeId,
        image: RecordImage,
        selection: Arc<PlannedSelection>,
    },
    SeeImages {
        record: RecordTypeId,
        list: ImageList,
    },
    Aggregate(PlannedAggregate),
    PlainList(PlainListOperation),
}

/// A record of an import.
#[derive(Debug, Clone)]
pub struct ImportedRecord {
    pub record: RecordTypeId,
    /// Assigned by the store if `None`.
    pub id: Option<RecordId>,
    pub fields: Vec<(FieldId, Value)>,
    pub selection: Arc<PreparedSelection>,
}

impl Plan {
    pub fn prove(
        model: &Model,
        limits: &PlanLimits,
        authority: &Authority,
        operation: Operation,
        time: &RequestTime,
    ) -> Result<Plan> {
        let planning = PlanContext { model, limits, authority, time, origin: WriteOrigin::Client };
        plan_action(planning, operation).map(|action| Plan::proven(action, authority))
    }

    /// Plans an operation of a bulk write.
    pub(crate) fn prove_bulk(
        model: &Model,
        limits: &PlanLimits,
        operation: Operation,
        time: &RequestTime,
    ) -> Result<Plan> {
        let authority = &Authority::operator();
        let planning = PlanContext { model, limits, authority, time, origin: WriteOrigin::BulkWrite };
        plan_action(planning, operation).map(|action| Plan::proven(action, authority))
    }

    /// `action` has only validated values.
    fn proven(action: PlanAction, authority: &Authority) -> Plan {
        Plan { action, authority: authority.clone(), _proof: PlanProof }
    }

    /// The same write of these records alone. It changes no others, whatever matches by then.
    pub fn narrowed_to(&self, model: &Model, ids: Vec<StoredValue>) -> Plan {
        let mut plan = self.clone();
        match &mut plan.action {
            PlanAction::UpdateMany { record, listing, .. }
            | PlanAction::DeleteMany { record, listing }
            | PlanAction::Upsert { record, listing, .. } => {
                let path = model.record(*record).id_field().into();
                // First: a search stays the last predicate.
                listing.predicates.insert(0, Predicate::OneOf { path, values: ids, or_null: false });
            }
            PlanAction::Get { .. }
            | PlanAction::List { .. }
            | PlanAction::Create { .. }
            | PlanAction::Update { .. }
            | PlanAction::Delete { .. }
            | PlanAction::CreateMany(_)
            | PlanAction::Nested(_)
            | PlanAction::ReadImage { .. }
            | PlanAction::SeeImages { .. }
            | PlanAction::Aggregate(_)
            | PlanAction::PlainList(_) => {}
        }
        plan
    }

    /// The rules as they are for the actor on whose behalf it runs; `None` if none apply.
    pub fn access_view(&self) -> Option<&Arc<AccessView>> {
        self.authority.view()
    }

    /// Plans an imported record: validated like a creation, but timestamps that the server fills may be given.
    pub(crate) fn prove_import(
        model: &Model,
        limits: &PlanLimits,
        import: ImportedRecord,
        time: &RequestTime,
    ) -> Result<Plan> {
        let ImportedRecord { record, id, fields, selection } = import;
        let authority = &Authority::operator();
        let planning = PlanContext { model, limits, authority, time, origin: WriteOrigin::BulkWrite };
        let PlannedValues { id, values, links } =
            WritePlanner::new(planning, record).plan_import(id, fields)?;
        let selection = selection.plan(model, limits, record)?;
        let action = PlanAction::Create { record, id, values, links, selection };
        Ok(Plan::proven(action, authority))
    }

    pub fn is_write(&self) -> bool {
        match &self.action {
            PlanAction::Get { .. }
            | PlanAction::List { .. }
            | PlanAction::ReadImage { .. }
            | PlanAction::SeeImages { .. }
            | PlanAction::Aggregate(_) => false,
            PlanAction::Create { .. }
            | PlanAction::CreateMany(_)
            | PlanAction::Update { .. }
            | PlanAction::UpdateMany { .. }
            | PlanAction::Upsert { .. }
            | PlanAction::Delete { .. }
            | PlanAction::DeleteMany { .. }
            | PlanAction::Nested(_) => true,
            PlanAction::PlainList(operation) => operation.action.is_write(),
        }
    }
}

fn plan_action(planning: PlanContext<'_>, operation: Operation) -> Result<PlanAction> {
    let PlanContext { model, limits, authority, time, .. } = planning;
    if let Some(view) = authority.view() {
        access_check::check_operation(model, view, &operation)?;
    }
    Ok(match operation {
        Operation::Get { record, id, selection } => {
            PlanAction::Get { record, id, selection: selection.plan(model, limits, record)? }
        }
        Operation::List { record, listing, selection } => PlanAction::List {
            record,
            listing: plan_listing(model, model.record(record), &listing)?,
            selection: selection.plan(model, limits, record)?,
        },
        Operation::Create { record, id, fields, filled_fields, selection } => {
            let PlannedValues { id, values, links } =
                WritePlanner::new(planning, record).plan_create(id, fields, &filled_fields)?;
            PlanAction::Create {
                record,
                id,
                values,
                links,
                selection: selection.plan(model, limits, record)?,
            }
        }
        Operation::Update {
            record,
            id,
            fields,
            filled_fields,
            missing_fields,
            expected_version,
            selection,
        } => {
            let PlannedValues { values, links, .. } =
                WritePlanner::new(planning, record).plan_update(fields, &filled_fields, missing_fields)?;
            let selection = selection.plan(model, limits, record)?;
            PlanAction::Update { record, id, values, links, expected_version, selection }
        }
        Operation::Delete { record, id, expected_version, selection } => PlanAction::Delete {
            record,
            id,
            expected_version,
            selection: selection.plan(model, limits, record)?,
        },
        Operation::CreateMany { record, items, filled_fields, selection } => {
            let selection = selection.plan(model, limits, record)?;
            let create = |PlannedValues { id, values, links }| {
                let selection = selection.clone();
                Plan::proven(PlanAction::Create { record, id, values, links, selection }, authority)
            };
            let items = many_records::plan_items(planning, record, items, &filled_fields)?;
            PlanAction::CreateMany(items.into_iter().map(create).collect())
        }
        Operation::UpdateMany { record, conditions, fields, filled_fields } => {
            let listing = many_records::plan_matches(model, record, &conditions, limits)?;
            let planner = WritePlanner::new(planning, record);
            let PlannedValues { values, links, .. } =
                planner.plan_update(fields, &filled_fields, MissingFields::Keep)?;
            PlanAction::UpdateMany { record, listing, values, links }
        }
        Operation::DeleteMany { record, conditions } => PlanAction::DeleteMany {
            record,
            listing: many_records::plan_matches(model, record, &conditions, limits)?,
        },
        Operation::Upsert { record, id, by, fields, filled_fields, selection } => {
            let key = model.record(record).id_field();
            let listing = match &id {
                Some(id) => {
                    let condition = Condition::equals(key, id.to_value());
                    many_records::plan_matches(model, record, &[condition], limits)?
                }
                None => many_records::plan_unique_match(model, record, &by, &fields, limits)?,
            };
            let changes = fields.iter().filter(|(field, _)| *field != key).cloned().collect();
            let PlannedValues { values, links, .. } = WritePlanner::new(planning, record).plan_update(
                changes,
                &filled_fields,
                MissingFields::Keep,
            )?;
            let planned_selection = selection.plan(model, limits, record)?;
            let operation = Operation::Create { record, id: id.clone(), fields, filled_fields, selection };
            match (Plan::prove(model, limits, authority, operation, time), id) {
                (Ok(create), _) => {
                    let (create, selection) = (Box::new(create), planned_selection);
                    PlanAction::Upsert { record, listing, create, values, links, selection }
                }
                // Enough to change the record, not to create one.
                (
                    Err(Error::Invalid(_) | Error::Forbidden { .. } | Error::Unauthenticated { .. }),
                    Some(id),
                ) => {
                    let (expected_version, selection) = (None, planned_selection);
                    PlanAction::Update { record, id, values, links, expected_version, selection }
                }
                (Err(error), _) => return Err(error),
            }
        }
        Operation::Nested { record, write, selection } => {
            PlanAction::Nested(Box::new(plan_nested(planning, record, write, selection)?))
        }
        Operation::ReadImage { record, image, selection } => {
            PlanAction::ReadImage { record, image, selection: selection.plan(model, limits, record)? }
        }
        Operation::SeeImages { record, list } => PlanAction::SeeImages { record, list },
        Operation::Aggregate { record, query } => {
            PlanAction::Aggregate(aggregate::plan_aggregate(model, record, &query, limits)?)
        }
        Operation::PlainList(operation) => PlanAction::PlainList(plain_list::check_value(operation)?),
    })
}
