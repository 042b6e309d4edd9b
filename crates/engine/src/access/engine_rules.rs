//! What an actor may do apart from records: call operations, use plain lists, see texts, metrics and the audit.

use trefoil_model::RootType;
use trefoil_model::error::Result;

use crate::engine::Engine;
use crate::plain_list;

impl Engine {
    /// Refuses if the rule of an operation with a registered resolver does not let the actor call it.
    pub fn check_call(&self, kind: RootType, name: &str) -> Result<()> {
        let (Some(view), Some(access)) = (self.access_view(), &self.model().access) else { return Ok(()) };
        let roots = &self.model().root_fields;
        let position = roots.iter().position(|root| root.root_kind == kind && root.name == name);
        match position.and_then(|position| access.calls.get(&position)) {
            Some(rule) => view.require_rule(self.model(), Some(rule)),
            None => Ok(()),
        }
    }

    /// Whether the actor may read a plain list, or write it.
    pub fn may_use_list(&self, list: &str, is_write: bool) -> bool {
        let rule = plain_list::list_rule(self.model(), list, is_write);
        self.access_view().is_none_or(|view| view.require_rule(self.model(), rule).is_ok())
    }

    /// Refuses if the rule of the text endpoint at this position of `trefoil.toml` does not let the actor see it.
    pub fn check_text(&self, position: usize) -> Result<()> {
        let (Some(view), Some(access)) = (self.access_view(), &self.model().access) else { return Ok(()) };
        match access.texts.get(&position) {
            Some(rule) => view.require_rule(self.model(), Some(rule)),
            None => Ok(()),
        }
    }

    /// Refuses whom the setting `auth-see-audit` does not let see the audit.
    pub fn check_audit(&self) -> Result<()> {
        let (Some(view), Some(access)) = (self.access_view(), &self.model().access) else { return Ok(()) };
        view.require_rule(self.model(), access.see_audit.as_ref())
    }

    /// Refuses whom the setting `auth-see-metrics` does not let see the metrics of the server.
    pub fn check_metrics(&self) -> Result<()> {
        let (Some(view), Some(access)) = (self.access_view(), &self.model().access) else { return Ok(()) };
        view.require_rule(self.model(), access.see_metrics.as_ref())
    }
}
