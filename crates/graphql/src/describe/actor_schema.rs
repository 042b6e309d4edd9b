//! [`ActorSchemas`]: the schema as actors are told of it, made once for all to whom the same is closed.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use apollo_compiler::Schema;
use parking_lot::Mutex;
use quick_cache::sync::Cache;

use trefoil_engine::{ClosedNames, Engine};

use crate::describe::narrowed_schema::narrow;

/// The most schemas that are kept. Actors differ by their roles, of which an application has few.
const MAX_SCHEMAS: usize = 64;

/// The schema without what is closed to an actor.
pub struct ActorSchema {
    pub schema: Schema,
    closed: ClosedNames,
    sdl: OnceLock<String>,
}

impl ActorSchema {
    pub fn sdl(&self) -> &str {
        self.sdl.get_or_init(|| self.schema.to_string())
    }
}

/// The schemas of the actors of the last requests.
pub struct ActorSchemas {
    /// By [`Engine::description_key`].
    known: Cache<u128, Arc<ActorSchema>>,
    /// The latest, each with other closed parts.
    made: Mutex<VecDeque<Arc<ActorSchema>>>,
}

impl Default for ActorSchemas {
    fn default() -> ActorSchemas {
        ActorSchemas { known: Cache::new(MAX_SCHEMAS), made: Mutex::default() }
    }
}

impl ActorSchemas {
    /// The schema for the actor of the engine; `None` if no rules apply, so that all of it is open.
    pub fn of_actor(&self, engine: &Engine) -> Option<Arc<ActorSchema>> {
        let key = engine.description_key()?;
        if let Some(known) = self.known.get(&key) {
            return Some(known);
        }
        let closed = engine.closed_names();
        let same = self.made.lock().iter().find(|made| made.closed == closed).cloned();
        let schema = same.unwrap_or_else(|| {
            let schema = narrow(&engine.model().schema, &closed);
            let made = Arc::new(ActorSchema { schema, closed, sdl: OnceLock::new() });
            let mut latest = self.made.lock();
            if latest.len() >= MAX_SCHEMAS {
                latest.pop_front();
            }
            latest.push_back(made.clone());
            made
        });
        self.known.insert(key, schema.clone());
        Some(schema)
    }
}
