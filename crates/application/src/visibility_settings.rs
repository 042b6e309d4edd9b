//! [`VisibilitySettings`]: the settings that are rules, where they are given outside of `trefoil.toml`.

use trefoil_config::Config;

use crate::manifest_rule::GivenRule;

/// The rules of the settings `auth-see-metrics` and `auth-see-audit`; `None` for what the file says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VisibilitySettings {
    pub metrics: Option<GivenRule>,
    pub audit: Option<GivenRule>,
}

impl VisibilitySettings {
    pub fn of(config: &Config) -> VisibilitySettings {
        let given = |text: &str, place: &Option<String>| {
            Some(GivenRule { text: text.to_owned(), place: place.clone()? })
        };
        VisibilitySettings {
            metrics: given(&config.see_metrics, &config.see_metrics_place),
            audit: given(&config.see_audit, &config.see_audit_place),
        }
    }
}
