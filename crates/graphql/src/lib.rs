//! The GraphQL API at `/graphql`: parses and plans documents, runs them on the engine and writes the JSON response
//! straight from the store's rows. Subscriptions follow the change log over event streams, multipart bodies and
//! WebSockets. `trefoil-server` mounts [`GraphqlService`]; its [`GraphqlState`] belongs to one schema and is replaced
//! as a whole on reload.

// One request, independent of HTTP: the state of a schema, the reply, the errors in a reply.
mod reply;
mod response_error;
mod service;

// The transport of queries and mutations.
mod over_http;

// The stages of an operation: the document is parsed and planned once, then executed for each request. `registered_resolvers`
// takes over where a field has one.
mod document;
mod plan;

mod execute;
mod registered_resolvers;

// Operations that go on, with their transports.
pub mod subscribe;

// Introspection, the SDL and GraphiQL.
mod describe;

pub use crate::over_http::request::GraphqlRequest;
pub use crate::reply::{GraphqlReply, RequestContext};
pub use crate::service::{GraphqlService, GraphqlState};
