//! What of the GraphQL schema an actor may never use, whatever the record, and so is not told of.

mod closed_inputs;
mod closed_names;
mod closed_outputs;
mod input_members;

use xxhash_rust::xxh3::Xxh3;

use crate::closed_schema::closed_outputs::ClosedOutputReader;
use crate::engine::Engine;

pub use crate::closed_schema::closed_names::ClosedNames;

impl Engine {
    /// Equal for actors to whom the same parts of the schema are closed; `None` if no rules apply.
    pub fn description_key(&self) -> Option<u128> {
        let (view, access) = (self.access_view()?, self.model().access.as_ref()?);
        let mut hash = Xxh3::new();
        hash.update(&view.rules.shape.to_le_bytes());
        for rule in access.calls.values() {
            hash.update(&[u8::from(view.require_rule(self.model(), Some(rule)).is_ok())]);
        }
        Some(hash.digest128())
    }

    /// The parts of the schema that are closed to the actor.
    pub fn closed_names(&self) -> ClosedNames {
        ClosedOutputReader::new(self).read()
    }
}
