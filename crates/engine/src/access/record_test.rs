//! Whether a record meets a test, whoever asks.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;

use trefoil_model::access::RuleTest;
use trefoil_model::error::Result;
use trefoil_model::{Field, Model, RecordId, RecordTypeId, Relation};

use crate::access::access_view::{AccessView, ActorRules, FieldView, FoldedRule, TypeView};
use crate::access::actor::ActorFactsView;
use crate::access::authority::Authority;
use crate::engine::Engine;
use crate::operation::{Listing, Operation, Selection};
use crate::plan::PreparedSelection;

impl Engine {
    /// Whether there is a record with this id that meets a test about it. No other rule counts. It is asked of the store like
    /// any rule, so that a test means the same wherever it is written.
    pub async fn record_meets(&self, record: RecordTypeId, id: &RecordId, test: &RuleTest) -> Result<bool> {
        let Some(engine) = self.seeing(record, test) else { return Ok(false) };
        engine.sees_record(record, id).await
    }

    /// Which of these records meet a test about them, in one statement.
    pub async fn records_meeting(
        &self,
        record: RecordTypeId,
        ids: Vec<RecordId>,
        test: &RuleTest,
    ) -> Result<HashSet<RecordId>> {
        let Some(engine) = self.seeing(record, test) else { return Ok(HashSet::new()) };
        let id_field = self.model().record(record).id_field();
        let selection = PreparedSelection::new(Selection::new(vec![id_field], Vec::new()));
        let operation =
            Operation::List { record, listing: Listing::of_ids(ids), selection: selection.clone() };
        let found = engine.collect(operation, selection).await?;
        Ok(found.rows.iter().filter_map(|row| RecordId::from_cell(row.cells[0].as_cell())).collect())
    }

    /// The same of a test that asks who the actor is, too. Everybody passes where no rules apply.
    pub async fn record_meets_for_actor(
        &self,
        record: RecordTypeId,
        id: &RecordId,
        test: &RuleTest,
    ) -> Result<bool> {
        let Some(view) = self.access_view() else { return Ok(true) };
        let facts = ActorFactsView { identity: view.identity.as_deref(), model: self.model() };
        let test = test.folded(&facts);
        if let Some(constant) = test.as_constant() {
            return Ok(constant);
        }
        let rules = ActorRules::of_types(types_of_test(self.model(), record, test), &[]);
        let zone = &self.limits().time_zone;
        let view = AccessView::new(view.identity.clone(), Arc::new(rules), Timestamp::now(), zone);
        self.with_authority(Authority::of_actor(Arc::new(view))).sees_record(record, id).await
    }

    /// Whether there is a record with this id for the actor.
    pub async fn sees_record(&self, record: RecordTypeId, id: &RecordId) -> Result<bool> {
        let selection = PreparedSelection::new(Selection::default());
        let operation = Operation::Get { record, id: id.clone(), selection: selection.clone() };
        Ok(!self.collect(operation, selection).await?.rows.is_empty())
    }

    /// An engine for which only those records of a type exist that meet a test; `None` if none can.
    fn seeing(&self, record: RecordTypeId, test: &RuleTest) -> Option<Engine> {
        let test = test.folded(&ActorFactsView { identity: None, model: self.model() });
        if test.as_constant() == Some(false) {
            return None;
        }
        let rules = ActorRules::of_types(types_of_test(self.model(), record, test), &[]);
        let view = AccessView::new(None, Arc::new(rules), Timestamp::now(), &self.limits().time_zone);
        Some(self.with_authority(Authority::of_actor(Arc::new(view))))
    }
}

/// Rules that allow everything, but to read only those records of one type that meet a test.
pub(super) fn types_of_test(model: &Model, record: RecordTypeId, test: RuleTest) -> Vec<TypeView> {
    let allowed = || FoldedRule { test: RuleTest::Constant(true), location: None };
    let field = |field: &Field| FieldView {
        read: allowed(),
        create: allowed(),
        update: allowed(),
        target: field.kind.relation().map(Relation::target),
    };
    let types = model.records.iter().map(|record| TypeView {
        read: allowed(),
        create: allowed(),
        update: allowed(),
        update_to: allowed(),
        delete: allowed(),
        fields: record.fields.iter().map(field).collect(),
    });
    let mut types: Vec<TypeView> = types.collect();
    types[record.0].read.test = test;
    types
}
