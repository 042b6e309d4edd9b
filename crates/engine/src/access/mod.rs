//! Who asks, and what the rules of the schema let them do.

mod access_view;
mod actor;
mod authority;

pub use crate::access::access_view::{AccessView, FieldView, FoldedRule, TypeView};
pub use crate::access::actor::{AccountFacts, Actor, ActorIdentity};

pub(crate) use crate::access::actor::ActorAtTime;
pub use crate::access::authority::Authority;
pub use trefoil_model::access::ActorPath;
