//! [`Authority`]: on whose behalf operations are planned.

use std::sync::Arc;

use jiff::Timestamp;

use trefoil_model::ZoneOffsets;

use crate::access::access_view::AccessView;

/// On whose behalf operations are planned. Without one there are no plans.
#[derive(Debug, Clone)]
pub struct Authority(Option<Arc<AccessView>>);

impl Authority {
    /// Of an actor, within what the rules leave to them.
    pub(crate) fn of_actor(view: Arc<AccessView>) -> Authority {
        Authority(Some(view))
    }

    /// Of the operator, for whom no rules apply; everybody is one in an open application.
    pub fn operator() -> Authority {
        Authority(None)
    }

    /// Of the same actor now: rules may compare with the time.
    pub(crate) fn at_present(self, zone: &ZoneOffsets) -> Authority {
        let at_present = |view: Arc<AccessView>| match view.needs_time() {
            true => {
                let (identity, rules) = (view.identity.clone(), view.rules.clone());
                Arc::new(AccessView::new(identity, rules, Timestamp::now(), zone))
            }
            false => view,
        };
        Authority(self.0.map(at_present))
    }

    /// What the rules leave to the actor; `None` if no rules apply.
    pub fn view(&self) -> Option<&Arc<AccessView>> {
        self.0.as_ref()
    }
}
