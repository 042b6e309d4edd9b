//! What the schema says about itself: introspection, SDL, GraphiQL and its tabs.

pub(crate) mod assets;
pub(crate) mod defaults;
pub(crate) mod graphiql;
pub(crate) mod introspection;
pub(crate) mod schema;
pub(crate) mod tabs;
