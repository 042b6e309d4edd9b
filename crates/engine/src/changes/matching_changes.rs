//! Finds the changes that a filter matches. What it says of related records the store judges: in one read for a batch of
//! changes, whatever the number of filters that say the same.

use std::borrow::Cow;
use std::sync::Arc;

use trefoil_model::error::{Error, Result};
use trefoil_model::{RecordId, Value};

use crate::builtin_operation::BuiltinOperation;
use crate::changes::{ChangeBatch, ChangeFilter, RecordChange, RelationMatches, RelationTests};
use crate::engine::{Engine, EngineRequest};
use crate::operation::Outcome;
use crate::row::{Row, RowSink};

impl Engine {
    /// The filter for the arguments of a subscription field, given by position; absent arguments are not in the list.
    pub fn change_filter(
        &self,
        builtin: &BuiltinOperation,
        arguments: Vec<(usize, Value)>,
    ) -> Result<ChangeFilter> {
        let view = self.access_view().map(Arc::as_ref);
        let mut filter = builtin.change_filter(self.model(), self.limits(), view, arguments)?;
        let class = self.access_class();
        filter.relation_tests = filter.relation_tests.map(|tests| self.relation_tests().share(class, tests));
        Ok(filter)
    }

    /// The changes of a batch that the filter matches. The store is asked only where the changes alone do not decide.
    pub async fn matching_changes<'b>(
        &self,
        filter: &ChangeFilter,
        batch: &'b ChangeBatch,
    ) -> Result<Vec<Cow<'b, RecordChange>>> {
        let seen = self.visible_changes(filter.record, batch).await?;
        let judge = |change: Cow<'b, RecordChange>| {
            let matches = filter.matches(&change, None);
            (change, matches)
        };
        let mut judged: Vec<(Cow<'b, RecordChange>, Option<bool>)> = seen.into_iter().map(judge).collect();
        let is_open = judged.iter().any(|(_, matches)| matches.is_none());
        if let Some(tests) = filter.relation_tests.as_ref().filter(|_| is_open) {
            let related = self.relation_matches(tests, batch).await?;
            for (change, matches) in judged.iter_mut().filter(|(_, matches)| matches.is_none()) {
                *matches = filter.matches(change, Some(&related));
            }
        }
        let matching = judged.into_iter().filter(|(_, matches)| *matches == Some(true));
        Ok(matching.map(|(change, _)| change).collect())
    }

    /// Runs the tests for all changes of a batch, once for all who wait for them.
    async fn relation_matches(
        &self,
        tests: &Arc<RelationTests>,
        batch: &ChangeBatch,
    ) -> Result<Arc<RelationMatches>> {
        let Some(first) = batch.changes.first() else { return Ok(Arc::default()) };
        let run = || {
            let (engine, matches) = (self.clone(), tests.no_matches());
            let operations = tests.operations(self.model(), batch).into_iter();
            let (positions, operations): (Vec<_>, Vec<_>) =
                operations.map(|(position, operation)| (position, Ok(operation))).unzip();
            async move {
                let sink = Box::new(IdSink { positions, matches, failure: None });
                let finished = engine.run(operations, EngineRequest::new(sink)).await?;
                finished.into_sink::<IdSink>()?.into_result().map(Arc::new)
            }
        };
        tests.results.join((first.number, batch.until), run).wait().await
    }
}

/// A sink that collects the ids of records.
struct IdSink {
    /// The test of each plan.
    positions: Vec<usize>,
    matches: RelationMatches,
    failure: Option<Error>,
}

impl IdSink {
    fn into_result(self) -> Result<RelationMatches> {
        self.failure.map_or(Ok(self.matches), Err)
    }
}

impl RowSink for IdSink {
    fn row(&mut self, plan: usize, row: &dyn Row) {
        if let Some(id) = RecordId::from_cell(row.cell(0)) {
            self.matches.0[self.positions[plan]].insert(id);
        }
    }

    fn finish_plan(&mut self, _plan: usize, outcome: Result<Outcome>) {
        if let Err(error) = outcome {
            self.failure.get_or_insert(error);
        }
    }

    fn bytes_to_replay(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn reset(&mut self) {
        self.matches.0.iter_mut().for_each(|ids| ids.clear());
        self.failure = None;
    }
}
