//! [`PlanContext`]: what plans depend on besides the operation.

use trefoil_model::Model;

use crate::access::Authority;
use crate::plan::plan_limits::PlanLimits;
use crate::plan::request_time::RequestTime;

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
pub(crate) struct PlanContext<'a> {
    pub model: &'a Model,
    pub limits: &'a PlanLimits,
    pub authority: &'a Authority,
    pub time: &'a RequestTime,
    pub origin: WriteOrigin,
}
