//! What the rules ask of the steps of a nested write.

use trefoil_engine::plan::{NestedPlan, NestedStep, RecordKey, RecordOwner, StepAction, StepItem};
use trefoil_model::error::Result;
use trefoil_model::{CellValue, FieldId, RecordTypeId, Relation, StoredValue};

use crate::statements::access::check_statement::CheckedRecord;
use crate::statements::access::key_columns::list_key;
use crate::statements::access::read_statement::ReadStatement;
use crate::statements::access::visible_rows::{only_shown, only_visible};
use crate::statements::access::write_rules::{ChangeAction, CheckedRecords, WriteCheck, WriteRules};
use crate::statements::dialect::ValueComparison;
use crate::statements::nested_write::NestedRun;
use crate::statements::sql_parameter::SqlParameter;

impl NestedRun<'_> {
    /// The statement for this number of items of a step. What the actor does not see stays as it is.
    pub fn statement(
        &self,
        step: &NestedStep,
        count: usize,
        rules: Option<WriteRules<'_>>,
    ) -> Result<ReadStatement> {
        let sql = self.sql(step, count)?;
        let Some(rules) = rules else { return Ok(ReadStatement::plain(sql)) };
        let (key, target) = match &step.action {
            StepAction::ChangeOthers { owner: RecordOwner::ByReference { field, .. }, .. } => {
                let record = self.model.record(step.record);
                let reference = &record.field(*field).column;
                return Ok(rules.seen(only_shown(self.dialect, &sql, &record.table, reference)));
            }
            StepAction::ChangeOthers { .. } => ("id", self.model.record(step.record)),
            StepAction::UnlinkOthers { field, .. } => {
                let link = self.link(step.record, *field)?;
                (link.other_column.as_str(), self.model.record(link.target))
            }
            StepAction::Insert { .. }
            | StepAction::Change { .. }
            | StepAction::Check { .. }
            | StepAction::Delete { .. }
            | StepAction::Link(_)
            | StepAction::Unlink(_) => return Ok(ReadStatement::plain(sql)),
        };
        Ok(rules.seen(only_visible(self.dialect, &sql, key, &target.table)))
    }

    /// The rules for the records that a step changes, to check before it.
    pub fn checks_before<'s>(
        &'s self,
        step: &'s NestedStep,
        rules: WriteRules<'s>,
    ) -> Result<Vec<WriteCheck<'s>>> {
        let known = |key: &'s Option<RecordKey>| match key {
            Some(RecordKey::Known(id)) => Some(id.as_cell()),
            Some(RecordKey::New(_)) | None => None,
        };
        let ids: Vec<CellValue<'s>> = step.items.iter().filter_map(|item| known(&item.key)).collect();
        let check = |action, values: &'s [(FieldId, StoredValue)], links: &[FieldId]| {
            let records = CheckedRecords::Ids(ids.clone());
            rules.before(step.record, action, records, (values, links), None)
        };
        let checks = match &step.action {
            StepAction::Change { values, .. } => vec![check(ChangeAction::Update, &values.values, &[])],
            StepAction::Delete { .. } => vec![check(ChangeAction::Delete, &[], &[])],
            StepAction::Link(field) | StepAction::Unlink(field) | StepAction::UnlinkOthers { field, .. } => {
                vec![check(ChangeAction::Update, &[], &[*field])]
            }
            StepAction::ChangeOthers { values, owner, kept } => {
                let record = self.model.record(step.record);
                let condition = self.owner_condition(record, owner, 1)?;
                let others = self.dialect.is_not_in_list("\"id\"", &self.dialect.parameter_mark(2));
                let mut parameters = Vec::new();
                self.push_owner(Some(owner), &mut parameters)?;
                parameters.push(SqlParameter::ids(kept));
                let condition = format!("{condition} AND {others}");
                let shown = match owner {
                    RecordOwner::ByReference { field, .. } => Some(*field),
                    RecordOwner::ByLink { .. } => None,
                };
                let records = CheckedRecords::Matching { condition, parameters, shown };
                let values = (values.values.as_slice(), &[][..]);
                return Ok(vec![rules.before(step.record, ChangeAction::Update, records, values, None)]);
            }
            StepAction::Insert { .. } | StepAction::Check { .. } => Vec::new(),
        };
        Ok(if ids.is_empty() { Vec::new() } else { checks })
    }

    /// Selects those records of a step that belong to their owner as the actor sees it. `None` if nothing of that is
    /// hidden.
    pub fn members_in_sight<'s>(
        &'s self,
        step: &'s NestedStep,
        rules: WriteRules<'s>,
    ) -> Result<Option<(ReadStatement, Vec<SqlParameter<'s>>)>> {
        let (owner, keys): (_, fn(&StepItem) -> Option<&RecordKey>) = match &step.action {
            StepAction::Change { owner: Some(owner), .. }
            | StepAction::Check { owner: Some(owner), .. }
            | StepAction::Delete { owner } => (owner.clone(), |item| item.key.as_ref()),
            StepAction::Unlink(field) => {
                let first = step.items.first().and_then(|item| item.key.clone());
                let Some(key) = first else { return Ok(None) };
                let owner = RecordOwner::ByLink { record: step.record, field: *field, key };
                (owner, |item| item.other.as_ref())
            }
            StepAction::Change { owner: None, .. }
            | StepAction::Check { owner: None, .. }
            | StepAction::Insert { .. }
            | StepAction::ChangeOthers { .. }
            | StepAction::Link(_)
            | StepAction::UnlinkOthers { .. } => return Ok(None),
        };
        let RecordKey::Known(owner_id) = owner.key() else { return Ok(None) };
        let known = step.items.iter().filter_map(|item| match keys(item) {
            Some(RecordKey::Known(id)) => Some(id.as_cell()),
            Some(RecordKey::New(_)) | None => None,
        });
        let known = SqlParameter::Keys(known.collect());
        let mark = |number: usize| self.dialect.parameter_mark(number);
        let quoted = |name: &str| self.dialect.quote_name(name);
        let sql = match &owner {
            RecordOwner::ByReference { field, .. } => {
                let record = self.model.record(step.record);
                let reference = record.field(*field);
                if !reference.may_be_hidden {
                    return Ok(None);
                }
                let is_listed = self.dialect.is_in_list(ValueComparison::Plain, "t.\"id\"", &mark(1));
                let id = self.dialect.read_key(record.key_form(), "t.\"id\"");
                let (table, column) = (quoted(&record.table), quoted(&reference.column));
                format!("SELECT {id} FROM {table} AS t WHERE {is_listed} AND t.{column} = {}", mark(2))
            }
            RecordOwner::ByLink { record, field, .. } => {
                let list = self.model.record(*record).field(*field);
                if !list.may_be_hidden {
                    return Ok(None);
                }
                let form = self.link(*record, *field)?.key_form;
                let (id, ids) =
                    (self.dialect.read_key(form, "v.value"), self.dialect.key_table(form, &mark(1), "v"));
                let (table, key) = (quoted(&self.model.record(*record).table), quoted(&list_key(list)));
                format!(
                    "SELECT {id} FROM {ids} WHERE EXISTS (SELECT 1 FROM {table} AS t WHERE t.{key} = {})",
                    mark(2)
                )
            }
        };
        let owner_id = SqlParameter::Owned(owner_id.clone().into_stored());
        Ok(Some((rules.seen(sql), vec![known, owner_id])))
    }

    /// The records that a step names, and that the actor must see: by the field that names them, if one does.
    pub fn named_records<'s>(
        &'s self,
        step: &'s NestedStep,
        rules: WriteRules<'s>,
    ) -> Vec<(FieldId, RecordTypeId, Vec<CellValue<'s>>)> {
        match &step.action {
            StepAction::Insert { .. } => {
                let items = step.items.iter();
                items.flat_map(|item| rules.guarded_targets(step.record, &item.values.values, &[])).collect()
            }
            StepAction::Change { values, .. } => rules.guarded_targets(step.record, &values.values, &[]),
            StepAction::Link(field) | StepAction::Unlink(field) => {
                let relation = self.model.record(step.record).field(*field).kind.relation();
                let others = step.items.iter().filter_map(|item| match &item.other {
                    Some(RecordKey::Known(id)) => Some(id.as_cell()),
                    Some(RecordKey::New(_)) | None => None,
                });
                let others: Vec<CellValue<'s>> = others.collect();
                let target = relation.map(Relation::target).filter(|_| !others.is_empty());
                target.map(|target| (*field, target, others)).into_iter().collect()
            }
            StepAction::Check { .. } => {
                let ids = step.items.iter().filter_map(|item| match &item.key {
                    Some(RecordKey::Known(id)) => Some(id.as_cell()),
                    Some(RecordKey::New(_)) | None => None,
                });
                let ids: Vec<CellValue<'s>> = ids.collect();
                let own = self.model.record(step.record).id_field();
                if ids.is_empty() { Vec::new() } else { vec![(own, step.record, ids)] }
            }
            StepAction::Delete { .. } | StepAction::ChangeOthers { .. } | StepAction::UnlinkOthers { .. } => {
                Vec::new()
            }
        }
    }

    /// The rules for the records that a step wrote, to check after it.
    pub fn checks_after<'s>(
        &'s self,
        step: &'s NestedStep,
        rules: WriteRules<'s>,
        checked: &'s [CheckedRecord],
        links: &[FieldId],
    ) -> Result<Vec<WriteCheck<'s>>> {
        let mut ids = Vec::with_capacity(step.items.len());
        for item in &step.items {
            match &item.key {
                Some(RecordKey::Known(id)) => ids.push(id.as_cell()),
                Some(RecordKey::New(number)) => ids.push(self.new_id(*number)?.as_cell()),
                None => {}
            }
        }
        Ok(match &step.action {
            StepAction::Insert { fields, .. } => {
                vec![rules.after_create(step.record, ids, fields.iter().copied(), links)]
            }
            StepAction::Change { .. }
            | StepAction::ChangeOthers { .. }
            | StepAction::Link(_)
            | StepAction::Unlink(_)
            | StepAction::UnlinkOthers { .. } => rules.after_updates(step.record, checked),
            StepAction::Check { .. } | StepAction::Delete { .. } => Vec::new(),
        })
    }
}

/// The link fields that a nested write gives to new records of a type.
pub fn links_of_new(plan: &NestedPlan, record: RecordTypeId) -> Vec<FieldId> {
    let is_new = |item: &StepItem| matches!(item.key, Some(RecordKey::New(_)));
    let links = plan.steps.iter().filter_map(|step| match &step.action {
        StepAction::Link(field) if step.record == record && step.items.iter().any(is_new) => Some(*field),
        StepAction::Insert { .. }
        | StepAction::Change { .. }
        | StepAction::Check { .. }
        | StepAction::Delete { .. }
        | StepAction::ChangeOthers { .. }
        | StepAction::Link(_)
        | StepAction::Unlink(_)
        | StepAction::UnlinkOthers { .. } => None,
    });
    links.collect()
}
