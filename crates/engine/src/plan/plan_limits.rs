//! The limits on what a request may ask for, and the time zone of its periods.

use std::sync::Arc;

use trefoil_model::ZoneOffsets;

/// The number of records that a list without a limit is expected to have.
pub const DEFAULT_LIST_LENGTH: u64 = 20;

/// Limits on what a request may ask for.
#[derive(Debug, Clone)]
pub struct PlanLimits {
    pub page_size: i64,
    pub max_page_size: i64,
    /// Maximum number of conditions of one list, at all depths.
    pub conditions: usize,
    /// Maximum number of related records that a list includes, as estimated before it is read.
    pub cost: u64,
    /// Maximum number of records that one operation creates, changes or deletes.
    pub bulk: u32,
    /// Maximum number of records that a search without an index reads.
    pub search_rows: u32,
    /// Maximum number of groups of one aggregate.
    pub groups: i64,
    /// The zone in which times are grouped by days, months and other periods.
    pub time_zone: Arc<ZoneOffsets>,
}

impl Default for PlanLimits {
    fn default() -> Self {
        PlanLimits {
            page_size: 20,
            max_page_size: 1_000,
            conditions: 100,
            cost: 10_000,
            bulk: 10_000,
            search_rows: 100_000,
            groups: 10_000,
            time_zone: ZoneOffsets::utc(),
        }
    }
}
