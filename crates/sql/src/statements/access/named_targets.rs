//! The records that a write refers to, which the actor must see.

use trefoil_model::access::AccessVerdict;
use trefoil_model::error::Violation;
use trefoil_model::{CellValue, FieldId, RecordId, RecordTypeId, Relation, StoredValue};

use crate::statements::access::read_statement::ReadStatement;
use crate::statements::access::rule_parameters::RuleName;
use crate::statements::access::write_rules::WriteRules;
use crate::statements::constraint_errors::missing_target;
use crate::statements::dialect::ValueComparison;

impl<'a> WriteRules<'a> {
    /// Selects those of these ids that the actor sees.
    pub fn visible_ids(self, target: RecordTypeId) -> ReadStatement {
        let record = self.model.record(target);
        let is_listed =
            self.dialect.is_in_list(ValueComparison::Plain, "t.\"id\"", &self.dialect.parameter_mark(1));
        let id = self.dialect.read_key(record.key_form(), "t.\"id\"");
        let table = self.dialect.quote_name(&record.table);
        self.seen(format!("SELECT {id} FROM {table} AS t WHERE {is_listed}"))
    }

    /// The references and links whose targets the actor may not see all of.
    pub fn guarded_targets(
        self,
        record: RecordTypeId,
        values: &'a [(FieldId, StoredValue)],
        links: &'a [(FieldId, Vec<RecordId>)],
    ) -> Vec<(FieldId, RecordTypeId, Vec<CellValue<'a>>)> {
        let owner = self.model.record(record);
        let target = |field: FieldId| owner.field(field).kind.relation().map(Relation::target);
        let of_values = values.iter().filter_map(|(field, value)| {
            let is_given = owner.field(*field).kind.is_reference() && *value != StoredValue::Null;
            is_given.then(|| Some((*field, target(*field)?, vec![value.as_cell()])))?
        });
        let of_links = links.iter().filter_map(|(field, ids)| {
            Some((*field, target(*field)?, ids.iter().map(RecordId::as_cell).collect()))
        });
        let is_guarded =
            |target: RecordTypeId| RuleName::Read(target).of(self.view).verdict() != AccessVerdict::Yes;
        of_values.chain(of_links).filter(|(_, target, ids)| is_guarded(*target) && !ids.is_empty()).collect()
    }

    /// The error for targets that the actor does not see: as for those that do not exist.
    pub fn unseen_targets(
        self,
        record: RecordTypeId,
        field: FieldId,
        ids: &[CellValue<'_>],
        seen: &[StoredValue],
    ) -> Vec<Violation> {
        let field = self.model.record(record).field(field);
        let Some(target) = field.kind.relation().map(Relation::target) else { return Vec::new() };
        let is_unseen = |id: &CellValue<'_>| !seen.iter().any(|seen| seen.as_cell() == *id);
        let unseen = ids.iter().enumerate().filter(|(_, id)| is_unseen(id));
        let unseen = unseen.filter_map(|(position, id)| Some((position, RecordId::from_cell(*id)?)));
        unseen.map(|(position, id)| missing_target(field, self.model.record(target), position, &id)).collect()
    }
}
