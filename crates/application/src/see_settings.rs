//! [`SeeSettings`]: the settings that are rules, as flags, variables and the file come to.

use trefoil_config::Config;

/// The rules of the settings `auth-see-metrics` and `auth-see-audit`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeeSettings {
    pub metrics: String,
    pub audit: String,
}

impl SeeSettings {
    pub fn of(config: &Config) -> SeeSettings {
        SeeSettings { metrics: config.see_metrics.clone(), audit: config.see_audit.clone() }
    }
}
