//! [`RuleCache`]: the rules of a schema for the actors of the last requests.

use std::sync::Arc;

use quick_cache::sync::Cache;

use trefoil_model::access::AccessModel;
use trefoil_model::{Model, RecordTypeId, ZoneOffsets};

use crate::access::access_view::{AccessView, ActorRules};
use crate::access::actor::ActorIdentity;
use crate::access::authority::Authority;

/// The maximum number of actors whose rules are kept.
const MAX_ACTORS: usize = 4_096;

/// Folds the rules for an actor once. An identity that was found anew is another one, so that no rules outlive what they
/// were made of.
pub struct RuleCache {
    anonymous: Arc<AccessView>,
    /// By the address of the identity, which the view keeps alive.
    known: Cache<usize, Arc<AccessView>>,
}

impl RuleCache {
    pub fn new(model: &Model, access: &AccessModel, zone: &ZoneOffsets) -> RuleCache {
        let rules = Arc::new(ActorRules::new(model, access, None));
        let anonymous = Arc::new(AccessView::new(None, rules, jiff::Timestamp::now(), zone));
        RuleCache { anonymous, known: Cache::new(MAX_ACTORS) }
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
        let view = match identity {
            None => self.anonymous.clone(),
            Some(identity) => self.view_of(model, identity, zone),
        };
        Authority::of_actor(view).at_present(zone)
    }

    /// The authority of nobody who is known, to create records of this type.
    pub fn authority_to_create(&self, model: &Model, record: RecordTypeId, zone: &ZoneOffsets) -> Authority {
        let view = match &model.access {
            None => self.anonymous.clone(),
            Some(access) => {
                let rules = ActorRules::new(model, access, None).with_create_allowed(record);
                Arc::new(AccessView::new(None, Arc::new(rules), jiff::Timestamp::now(), zone))
            }
        };
        Authority::of_actor(view).at_present(zone)
    }

    fn view_of(&self, model: &Model, identity: &Arc<ActorIdentity>, zone: &ZoneOffsets) -> Arc<AccessView> {
        let address = Arc::as_ptr(identity).addr();
        if let Some(view) = self.known.get(&address) {
            return view;
        }
        let Some(access) = &model.access else { return self.anonymous.clone() };
        let rules = Arc::new(ActorRules::new(model, access, Some(identity)));
        let view = Arc::new(AccessView::new(Some(identity.clone()), rules, jiff::Timestamp::now(), zone));
        self.known.insert(address, view.clone());
        view
    }
}
