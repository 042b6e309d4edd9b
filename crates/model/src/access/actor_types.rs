//! The types whose records say who an actor is.

use crate::{FieldId, Model, RecordTypeId, Relation};

impl Model {
    /// The type of the accounts, which is the first, and those that rules reach from them, among which it may be again. Without
    /// accounts there are none.
    pub fn actor_types(&self) -> Vec<RecordTypeId> {
        let Some(access) = &self.access else { return Vec::new() };
        let Some(account) = &access.account else { return Vec::new() };
        let mut reached = Vec::new();
        let mut add = |references: &[FieldId]| {
            let mut owner = account.record;
            for reference in references {
                let relation = self.record(owner).field(*reference).kind.relation();
                owner = relation.map_or(owner, Relation::target);
                reached.push(owner);
            }
        };
        access.actor_paths().iter().for_each(|path| add(&path.references));
        account.usable.visit_fields(&mut |record, _| {
            if record.variable == 0 {
                add(&record.references);
            }
        });
        reached.sort_unstable();
        reached.dedup();
        std::iter::once(account.record).chain(reached).collect()
    }
}
