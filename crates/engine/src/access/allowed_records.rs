//! [`AllowedRecords`]: with which records an actor may do something.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;

use trefoil_model::access::{AccessAction, AccessVerdict};
use trefoil_model::error::Result;
use trefoil_model::{RecordId, RecordTypeId};

use crate::access::access_view::{AccessView, ActorRules, FoldedRule};
use crate::access::authority::Authority;
use crate::access::record_test::types_of_test;
use crate::engine::Engine;
use crate::operation::{Condition, Listing, Operation, Selection};
use crate::plan::PreparedSelection;

/// The records of a type with which an actor may do something.
#[derive(Debug)]
pub enum AllowedRecords {
    All,
    Only(HashSet<RecordId>),
}

impl AllowedRecords {
    pub fn contains(&self, id: &RecordId) -> bool {
        match self {
            AllowedRecords::All => true,
            AllowedRecords::Only(ids) => ids.contains(id),
        }
    }
}

impl Engine {
    /// With which of these records the actor may do this. The store is asked only if that depends on the records, once for all
    /// of them.
    pub async fn allowed_records(
        &self,
        action: AccessAction,
        record: RecordTypeId,
        ids: impl FnOnce() -> Vec<RecordId>,
    ) -> Result<AllowedRecords> {
        let Some(view) = self.access_view() else { return Ok(AllowedRecords::All) };
        let rule = deciding_rule(view, action, record);
        match rule.verdict() {
            AccessVerdict::Yes => return Ok(AllowedRecords::All),
            AccessVerdict::No => return Ok(AllowedRecords::Only(HashSet::new())),
            AccessVerdict::Some => {}
        }
        let rules = ActorRules::of_types(types_of_test(self.model(), record, rule.test.clone()), &[]);
        let zone = &self.limits().time_zone;
        let view = AccessView::new(view.identity.clone(), Arc::new(rules), Timestamp::now(), zone);
        let engine = self.with_authority(Authority::of_actor(Arc::new(view)));
        let id_field = self.model().record(record).id_field();
        let selection = PreparedSelection::new(Selection::new(vec![id_field], Vec::new()));
        let listing = Listing { conditions: vec![Condition::HasId(ids())], ..Listing::default() };
        let operation = Operation::List { record, listing, selection: selection.clone() };
        let found = engine.collect(operation, selection).await?;
        let ids = found.rows.iter().filter_map(|row| RecordId::from_cell(row.cells[0].as_cell()));
        Ok(AllowedRecords::Only(ids.collect()))
    }

    /// Refuses what the actor may not do with the record.
    pub async fn require_allowed(
        &self,
        action: AccessAction,
        record: RecordTypeId,
        id: &RecordId,
    ) -> Result<()> {
        let allowed = self.allowed_records(action, record, || vec![id.clone()]).await?;
        match self.access_view() {
            Some(view) if !allowed.contains(id) => {
                Err(view.refusal(Some(deciding_rule(view, action, record))))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// The rule that decides before anything is written. Whoever may leave no record as an update would, may update none.
fn deciding_rule(view: &AccessView, action: AccessAction, record: RecordTypeId) -> &FoldedRule {
    let rules = view.of_type(record);
    let is_refused_after =
        action == AccessAction::Update && rules.rule(AccessAction::UpdateTo).verdict() == AccessVerdict::No;
    rules.rule(if is_refused_after { AccessAction::UpdateTo } else { action })
}
