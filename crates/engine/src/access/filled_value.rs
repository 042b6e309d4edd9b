//! What `@default(from:)` fills a field with.

use trefoil_model::access::{ActorPath, RuleValue};
use trefoil_model::values::coerce;
use trefoil_model::{Field, FieldId, Model, StoredValue};

use crate::access::access_view::AccessView;

impl AccessView {
    /// What the actor, or the time of the request, has for a field; `None` if nothing.
    pub fn filled_value(&self, model: &Model, field: &Field, source: &RuleValue) -> Option<StoredValue> {
        let identity = self.identity.as_deref();
        let account = identity.and_then(|identity| identity.account.as_ref());
        // Claims are coerced as what a client gives; one that does not fit is none.
        let stored = match source {
            RuleValue::Claim(claim) => identity
                .and_then(|identity| identity.claim(&claim.path))
                .and_then(|claim| coerce::coerce_field(model, field, claim).ok()),
            RuleValue::Actor { references, field }
                if references.is_empty() && is_account_key(model, *field) =>
            {
                account.map(|account| account.id.clone().into_stored())
            }
            RuleValue::Actor { references, field } => {
                let path = |path: &ActorPath| path.references == *references && path.field == *field;
                let found = account.and_then(|account| account.values.iter().find(|(known, _)| path(known)));
                found.map(|(_, value)| value.clone())
            }
            RuleValue::Now => Some(self.now.clone()),
            RuleValue::LocalNow => Some(self.local_now.clone()),
            RuleValue::Today => Some(self.today.clone()),
            RuleValue::Literal(_) | RuleValue::Field { .. } | RuleValue::Old(_) => None,
        };
        stored.filter(|value| *value != StoredValue::Null)
    }
}

fn is_account_key(model: &Model, field: FieldId) -> bool {
    let account = model.access.as_ref().and_then(|access| access.account.as_ref());
    account.is_some_and(|account| model.record(account.record).id_field() == field)
}
