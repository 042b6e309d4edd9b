//! The part of the response under construction for root fields over several types.

use trefoil_engine::{Outcome, OwnedRow, Row};
use trefoil_model::error::Result;

use crate::execute::pending_root::PendingRoot;
use crate::execute::response::ResponseBuilder;
use crate::plan::roots::RootAction;
use crate::registered_resolvers::resolved_tree::ResolvedNode;

impl ResponseBuilder {
    /// True if an operation is one of a root field over several types.
    pub fn is_abstract(&self, number: usize) -> bool {
        let position = self.pending[number].root_position;
        matches!(self.plan.roots[position].action, RootAction::Abstract(_))
    }

    /// Adds a record of a root field over several types.
    pub fn add_abstract(&mut self, number: usize, row: OwnedRow, nodes: Vec<ResolvedNode>) {
        let PendingRoot { root_position, member, .. } = self.pending[number];
        let mut results = self.abstracts.iter_mut();
        if let Some(results) = results.find(|results| results.root_position == root_position) {
            results.add(member, row, nodes);
        }
    }

    pub(super) fn add_abstract_row(&mut self, number: usize, row: &dyn Row) {
        let PendingRoot { root_position, member, .. } = self.pending[number];
        let plan = self.plan.clone();
        let RootAction::Abstract(root) = &plan.roots[root_position].action else { return };
        let results = self.abstracts.iter().find(|results| results.root_position == root_position);
        let extra = results.map_or(0, |results| results.extra_cells(root));
        let row = OwnedRow::from_row(row, &root.members[member].selection, extra);
        self.add_abstract(number, row, Vec::new());
    }

    pub(super) fn add_abstract_outcome(&mut self, number: usize, outcome: Result<Outcome>) {
        let position = self.pending[number].root_position;
        let mut results = self.abstracts.iter();
        if let Some(number) = results.position(|results| results.root_position == position) {
            self.abstracts[number].add_outcome(outcome);
            self.write_abstract(number);
        }
    }

    /// Writes a root field over several types, if all its operations have ended.
    pub(super) fn write_abstract(&mut self, number: usize) {
        if !self.abstracts[number].is_complete() {
            return;
        }
        let (plan, position) = (self.plan.clone(), self.abstracts[number].root_position);
        let RootAction::Abstract(root) = &plan.roots[position].action else { return };
        let abstracts = std::mem::take(&mut self.abstracts);
        let resolved = std::mem::take(&mut self.resolved);
        self.write_root(position, |writer, planned, at| {
            abstracts[number].write(root, planned.required, writer, &resolved, at)
        });
        (self.abstracts, self.resolved) = (abstracts, resolved);
    }
}
