//! The coerced variables of a request.

use trefoil_model::Value;

/// The variables of a request by position in the operation's definitions; `None` if absent.
#[derive(Debug, Clone, Default)]
pub struct VariableValues(pub(super) Vec<Option<Value>>);

impl VariableValues {
    pub fn get(&self, position: usize) -> Option<&Value> {
        self.0.get(position)?.as_ref()
    }
}
