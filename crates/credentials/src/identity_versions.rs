//! [`IdentityVersions`]: numbers the states of all that identities are made of: keys, accounts and what accounts lead to.

use parking_lot::Mutex;

use trefoil_engine::changes::{API_KEY_CHANGES, SESSION_CHANGES};
use trefoil_engine::{DataVersion, Engine};

/// Most commits change neither a key nor an account. The change log tells those apart that do.
pub struct IdentityVersions {
    engine: Engine,
    /// What changes of them are called in the log. `None` if any change may be one.
    types: Option<Vec<String>>,
    last: Mutex<LastVersion>,
}

#[derive(Default)]
struct LastVersion {
    data: Option<DataVersion>,
    /// The last change that was looked at.
    until: i64,
    schema: i64,
    number: u64,
}

impl IdentityVersions {
    pub fn new(engine: &Engine) -> IdentityVersions {
        let model = engine.model();
        let account = model.access.as_ref().and_then(|access| access.account.as_ref());
        // The `if` of `@account` may ask lists and other rules, and so any record.
        let asks_relations = account.is_some_and(|account| account.usable.asks_relations());
        let names = model.actor_types().into_iter().map(|record| model.record(record).name.clone());
        let credentials = [API_KEY_CHANGES, SESSION_CHANGES].map(str::to_owned);
        let types = credentials.into_iter().chain(names).collect();
        let types = (!asks_relations).then_some(types);
        IdentityVersions { engine: engine.clone(), types, last: Mutex::default() }
    }

    /// Equal numbers mean that nothing of identities was changed between the versions of the data that they were asked for.
    pub fn of_data(&self, data: DataVersion) -> u64 {
        let mut last = self.last.lock();
        if last.data != Some(data) {
            let found = self
                .types
                .as_deref()
                .and_then(|types| self.engine.credentials().ok()?.identity_changes(last.until, types));
            // In doubt there was one.
            if found.is_none_or(|found| found.has_changes || found.schema != last.schema) {
                last.number += 1;
            }
            if let Some(found) = found {
                (last.until, last.schema) = (found.until, found.schema);
            }
            last.data = Some(data);
        }
        last.number
    }
}
