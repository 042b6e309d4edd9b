//! The limits on what a request may ask for.

/// Limits on what a request may ask for.
#[derive(Debug, Clone)]
pub struct PlanLimits {
    pub page_size: i64,
    pub max_page_size: i64,
    /// Maximum number of conditions of one list, at all depths.
    pub conditions: usize,
    /// Maximum number of records that one operation creates, changes or deletes.
    pub bulk: u32,
    /// Maximum number of records that a search without an index reads.
    pub search_rows: u32,
}

impl Default for PlanLimits {
    fn default() -> Self {
        PlanLimits {
            page_size: 20,
            max_page_size: 1_000,
            conditions: 100,
            bulk: 10_000,
            search_rows: 100_000,
        }
    }
}
