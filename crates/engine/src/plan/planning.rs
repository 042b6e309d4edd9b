//! [`Planning`]: what plans depend on besides the operation.

use trefoil_model::Model;

use crate::access::Authority;
use crate::plan::plan_limits::PlanLimits;

/// By whom a record is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteOrigin {
    /// A request.
    Client,
    /// A seed or another bulk write: any id may come from another store.
    BulkWrite,
}

/// What plans depend on besides the operation.
#[derive(Clone, Copy)]
pub(crate) struct Planning<'a> {
    pub model: &'a Model,
    pub limits: &'a PlanLimits,
    pub authority: &'a Authority,
    pub now: jiff::Timestamp,
    pub origin: WriteOrigin,
}
