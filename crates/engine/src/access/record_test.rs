//! Whether a record meets a test, whoever asks.

use std::sync::Arc;

use jiff::Timestamp;

use trefoil_model::access::RuleTest;
use trefoil_model::error::Result;
use trefoil_model::{Field, Model, RecordId, RecordTypeId, Relation};

use crate::access::access_view::{AccessView, ActorRules, FieldView, FoldedRule, TypeView};
use crate::access::actor::ActorFactsView;
use crate::access::authority::Authority;
use crate::engine::Engine;
use crate::operation::{Operation, Selection};
use crate::plan::PreparedSelection;

impl Engine {
    /// Whether there is a record with this id that meets a test about it. No other rule counts. It is asked of the store like
    /// any rule, so that a test means the same wherever it is written.
    pub async fn record_meets(&self, record: RecordTypeId, id: &RecordId, test: &RuleTest) -> Result<bool> {
        let test = test.folded(&ActorFactsView { identity: None, model: self.model() });
        if test.as_constant() == Some(false) {
            return Ok(false);
        }
        let rules = ActorRules::of_types(types_of_test(self.model(), record, test), &[]);
        let view = AccessView::new(None, Arc::new(rules), Timestamp::now(), &self.limits().time_zone);
        let engine = self.with_authority(Authority::of_actor(Arc::new(view)));
        let selection = PreparedSelection::new(Selection::default());
        let operation = Operation::Get { record, id: id.clone(), selection: selection.clone() };
        Ok(!engine.collect(operation, selection).await?.rows.is_empty())
    }
}

/// Rules that allow everything, but to read only those records of one type that meet a test.
fn types_of_test(model: &Model, record: RecordTypeId, test: RuleTest) -> Vec<TypeView> {
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
