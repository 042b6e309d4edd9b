//! The schema in forms that clients read: introspection, SDL, GraphiQL.

// Introspection fields, run by the same executor as all others.
pub(crate) mod defaults;
pub(crate) mod introspection;

// The schema without what is closed to an actor.
pub(crate) mod actor_schema;
mod narrowed_schema;
mod reachable_types;
mod smallest_query;

// The SDL at `/graphql/schema.graphqls`.
pub(crate) mod schema;

// GraphiQL: its page, scripts and example tabs.
pub(crate) mod assets;
pub(crate) mod graphiql;
pub(crate) mod graphiql_tabs;
