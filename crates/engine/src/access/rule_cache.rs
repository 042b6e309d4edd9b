//! [`RuleCache`]: the rules of a schema for the actors of the last requests.

use std::sync::Arc;

use quick_cache::sync::Cache;

use trefoil_model::access::AccessModel;
use trefoil_model::{Model, ZoneOffsets};

use crate::access::access_view::{AccessView, ActorRules};
use crate::access::actor::ActorIdentity;
use crate::access::authority::Authority;

/// The maximum number of actors whose rules are kept.
const MAX_ACTORS: usize = 4_096;

/// Folds the rules for an actor once. An identity that was found anew is another one, so that no rules outlive what they
/// were made of.
pub struct RuleCache {
    anonymous: Arc<ActorRules>,
    /// By the address of the identity, which the entry keeps alive.
    known: Cache<usize, (Arc<ActorIdentity>, Arc<ActorRules>)>,
}

impl RuleCache {
    pub fn new(model: &Model, access: &AccessModel) -> RuleCache {
        RuleCache { anonymous: Arc::new(ActorRules::new(model, access, None)), known: Cache::new(MAX_ACTORS) }
    }

    /// The authority of an actor for one request.
    pub fn authority(
        &self,
        model: &Model,
        identity: Option<&Arc<ActorIdentity>>,
        zone: &ZoneOffsets,
    ) -> Authority {
        // An identity of before a reload has the values of other fields: such a request is anonymous.
        let identity = identity.filter(|identity| {
            identity.account.as_ref().is_none_or(|account| account.model_hash == model.hash)
        });
        let rules = match identity {
            None => self.anonymous.clone(),
            Some(identity) => self.rules_of(model, identity),
        };
        let view = AccessView::new(identity.cloned(), rules, jiff::Timestamp::now(), zone);
        Authority::of_actor(Arc::new(view))
    }

    fn rules_of(&self, model: &Model, identity: &Arc<ActorIdentity>) -> Arc<ActorRules> {
        let address = Arc::as_ptr(identity).addr();
        if let Some((_, rules)) = self.known.get(&address) {
            return rules;
        }
        let Some(access) = &model.access else { return self.anonymous.clone() };
        let rules = Arc::new(ActorRules::new(model, access, Some(identity)));
        self.known.insert(address, (identity.clone(), rules.clone()));
        rules
    }
}
