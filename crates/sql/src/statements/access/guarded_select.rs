//! The statements of one actor: what they read and which links they change.

use trefoil_engine::changes::seen_columns;
use trefoil_model::{Field, RecordTypeId};

use crate::statements::access::read_statement::ReadStatement;
use crate::statements::access::record_views::RecordViews;
use crate::statements::access::visible_rows::only_visible;
use crate::statements::select::{SelectBuilder, SelectLevel};
use crate::statements::write::LinkStatements;

impl SelectBuilder<'_> {
    /// A statement that reads no more than the actor sees.
    pub(crate) fn statement(self, sql: String) -> ReadStatement {
        RecordViews { dialect: self.dialect, model: self.model, view: self.view }.statement(sql)
    }

    /// The statements for the links of a field, of which those to records out of sight stay.
    pub(in crate::statements) fn visible_links(self, field: &Field, links: LinkStatements) -> LinkStatements {
        let Some(link) = field.kind.link().filter(|_| self.is_guarded()) else { return links };
        let target = &self.model.record(link.target).table;
        let narrowed = only_visible(self.dialect, &links.remove.sql, &link.other_column, target);
        LinkStatements { remove: self.statement(narrowed), ..links }
    }

    /// The images that the actor sees; their list is the only parameter.
    pub fn seen_images(self, record: RecordTypeId) -> SelectLevel {
        let views = RecordViews { dialect: self.dialect, model: self.model, view: self.view };
        SelectLevel {
            statement: views.seen_images(record),
            is_guarded: self.is_guarded(),
            columns: Vec::new(),
            column_names: Vec::new(),
            width: seen_columns(self.model.record(record)).len() + 1,
            parent_key: 0,
            branches: Vec::new(),
            search_guard: None,
            groups: None,
        }
    }

    pub(crate) fn is_guarded(self) -> bool {
        self.model.access.is_some()
    }
}
