//! Records as a write would leave them that was not done: what the rules say of them goes before a value that is taken,
//! and an answer that is given again needs what they say now.

use std::sync::Arc;

use trefoil_engine::plan::{NestedKind, NestedPlan, PlanAction, RecordKey, StepAction, StepItem};
use trefoil_model::access::{AccessVerdict, RuleTest};
use trefoil_model::naming::names::VERSION_COLUMN;
use trefoil_model::{CellValue, FieldId, Model, RecordTypeId, Relation, StoredValue};

use crate::statements::access::check_statement::CheckedColumn;
use crate::statements::access::image_list::fields_as_json;
use crate::statements::access::old_fields::old_fields;
use crate::statements::access::rule_parameters::RuleName;
use crate::statements::access::rule_sql::old_column;
use crate::statements::access::write_rules::{ChangeAction, CheckWriter, ROW, WriteCheck, WriteRules};
use crate::statements::dialect::Dialect;
use crate::statements::sql_parameter::SqlParameter;
use crate::statements::write_parts::{WriteKind, WriteParts, write_parts};

impl<'a> WriteRules<'a> {
    /// The rules for the record that a write would leave. None if they allow everything, or if they ask lists that the
    /// write would change.
    pub fn of_draft(self, parts: WriteParts<'_>) -> Option<WriteCheck<'a>> {
        let record = parts.record?;
        match parts.kind {
            WriteKind::Create => self.of_new_draft(record, parts),
            WriteKind::Update => self.of_changed_draft(record, parts.id?.as_cell(), parts),
            WriteKind::UpdateMany | WriteKind::Delete | WriteKind::DeleteMany | WriteKind::Other => None,
        }
    }

    /// The same for the records that an update of many would change.
    pub fn of_drafts(self, ids: &[CellValue<'_>], parts: WriteParts<'_>) -> Vec<WriteCheck<'a>> {
        let draft = |id: &CellValue<'_>| self.of_changed_draft(parts.record?, *id, parts);
        ids.iter().filter_map(draft).collect()
    }

    /// The rules for the new records of a nested write. What refers to another new one is left out if only the store knows
    /// its id: the draft would lack it.
    fn of_new_records(self, plan: &'a NestedPlan) -> Vec<WriteCheck<'a>> {
        let inserts = plan.steps.iter().filter(|step| matches!(step.action, StepAction::Insert { .. }));
        let drafts = inserts.flat_map(|step| step.items.iter().map(move |item| (step.record, item)));
        let whole = drafts.filter(|(_, item)| item.values.new_keys.is_empty());
        let check = |(record, item): (RecordTypeId, &'a StepItem)| {
            let id = match item.key.as_ref()? {
                RecordKey::Known(id) => Some(id),
                RecordKey::New(number) => plan.new_ids[*number].as_ref(),
            };
            let (kind, values) = (WriteKind::Create, item.values.values.as_slice());
            let parts =
                WriteParts { kind, record: Some(record), id, expected_version: None, values, links: &[] };
            self.of_draft(parts)
        };
        whole.filter_map(check).collect()
    }

    fn of_new_draft(self, record: RecordTypeId, parts: WriteParts<'_>) -> Option<WriteCheck<'a>> {
        let test = &RuleName::Create(record).of(self.view).test;
        if asks_changed_lists(self.model, &mut vec![record], test, true) {
            return None;
        }
        let owner = self.model.record(record);
        let mark = self.dialect.parameter_mark(1);
        let source = match self.dialect {
            Dialect::Sqlite => {
                let stored = owner.fields.iter().filter(|field| field.is_stored());
                let columns = stored.map(|field| json_column(&mark, &field.column));
                let columns: Vec<String> = columns.collect();
                format!("(SELECT {}, 1 AS \"{VERSION_COLUMN}\") AS {ROW}", columns.join(", "))
            }
            Dialect::Postgres => {
                let table = self.dialect.quote_name(&owner.table);
                format!("json_populate_record(CAST(NULL AS {table}), CAST({mark} AS json)) AS {ROW}")
            }
        };
        let mut values = parts.values.to_vec();
        values.extend(parts.id.map(|id| (owner.id_field(), id.clone().into_stored())));
        let json = SqlParameter::Owned(StoredValue::Text(fields_as_json(self.dialect, owner, &values)));
        let given = parts.values.iter().map(|(field, _)| *field);
        let links: Vec<FieldId> = parts.links.iter().map(|(field, _)| *field).collect();
        Some(self.of_created(record, (&source, json), given, &links))
    }

    fn of_changed_draft(
        self,
        record: RecordTypeId,
        id: CellValue<'_>,
        parts: WriteParts<'_>,
    ) -> Option<WriteCheck<'a>> {
        let rule = RuleName::UpdateTo(record);
        let folded = rule.of(self.view);
        let has_lists =
            || asks_changed_lists(self.model, &mut vec![record], &folded.test, !parts.links.is_empty());
        if folded.verdict() == AccessVerdict::Yes || has_lists() {
            return None;
        }
        let owner = self.model.record(record);
        let quoted = |name: &str| self.dialect.quote_name(name);
        let [mark, id_mark] = [1, 2].map(|number| self.dialect.parameter_mark(number));
        let old = old_fields(&folded.test).into_iter().map(|field| {
            let column = &owner.field(field).column;
            format!("t.{} AS {}", quoted(column), quoted(&old_column(column)))
        });
        let mut columns: Vec<String> = old.collect();
        let table = self.table(record);
        let from = match self.dialect {
            Dialect::Sqlite => {
                for (position, field) in
                    owner.fields.iter().enumerate().filter(|(_, field)| field.is_stored())
                {
                    let is_given = parts.values.iter().any(|(given, _)| *given == FieldId(position));
                    let own = || format!("t.{0} AS {0}", quoted(&field.column));
                    columns.push(if is_given { json_column(&mark, &field.column) } else { own() });
                }
                format!("{table} AS t")
            }
            Dialect::Postgres => {
                columns.push("n.*".to_owned());
                format!("{table} AS t CROSS JOIN LATERAL json_populate_record(t, CAST({mark} AS json)) AS n")
            }
        };
        let source =
            format!("(SELECT {} FROM {from} WHERE t.\"id\" = {id_mark}) AS {ROW}", columns.join(", "));
        let json = StoredValue::Text(fields_as_json(self.dialect, owner, parts.values));
        let parameters = vec![SqlParameter::Owned(json), SqlParameter::Owned(id.to_stored())];
        let mut check = CheckWriter::new(self, record, parameters.len());
        check.add_rule(CheckedColumn::Rule(rule), rule);
        let statement = Arc::new(check.finish(&source, ""));
        Some(self.check(record, statement, parameters, (0, None)))
    }

    /// What the actor must be allowed now for the answer to a write to be given again. `found` are the records that a
    /// write of many, or by unique fields, finds now.
    pub fn of_repeated(self, action: &'a PlanAction, found: &'a [StoredValue]) -> Vec<WriteCheck<'a>> {
        let found_ids = || found.iter().map(StoredValue::as_cell).collect();
        match action {
            PlanAction::Create { .. } => self.of_draft(write_parts(action)).into_iter().collect(),
            PlanAction::CreateMany(plans) => {
                plans.iter().filter_map(|plan| self.of_draft(write_parts(&plan.action))).collect()
            }
            PlanAction::Update { record, id, .. } => {
                vec![self.still_allowed(*record, ChangeAction::Update, vec![id.as_cell()])]
            }
            PlanAction::Delete { record, id, .. } => {
                vec![self.still_allowed(*record, ChangeAction::Delete, vec![id.as_cell()])]
            }
            PlanAction::Upsert { create, .. } if found.is_empty() => self.of_repeated(&create.action, &[]),
            PlanAction::UpdateMany { record, .. } | PlanAction::Upsert { record, .. } => {
                vec![self.still_allowed(*record, ChangeAction::Update, found_ids())]
            }
            PlanAction::DeleteMany { record, .. } => {
                vec![self.still_allowed(*record, ChangeAction::Delete, found_ids())]
            }
            PlanAction::Nested(plan) => match &plan.kind {
                NestedKind::Update { id, .. } => {
                    vec![self.still_allowed(plan.record, ChangeAction::Update, vec![id.as_cell()])]
                }
                NestedKind::Create(_) | NestedKind::CreateMany(_) => self.of_new_records(plan),
            },
            PlanAction::Get { .. }
            | PlanAction::List { .. }
            | PlanAction::ReadImage { .. }
            | PlanAction::SeeImages { .. }
            | PlanAction::Aggregate(_)
            | PlanAction::PlainList(_) => Vec::new(),
        }
    }
}

/// A column of a JSON object in SQLite.
fn json_column(object: &str, column: &str) -> String {
    format!("json_extract({object}, '$.\"{column}\"') AS \"{column}\"")
}

/// Whether a test asks lists that a write changes: those with records of the type that is written and, where its own
/// lists change too, these.
fn asks_changed_lists(
    model: &Model,
    types: &mut Vec<RecordTypeId>,
    test: &RuleTest,
    own_lists_change: bool,
) -> bool {
    match test {
        RuleTest::All(tests) | RuleTest::Any(tests) => {
            tests.iter().any(|test| asks_changed_lists(model, types, test, own_lists_change))
        }
        RuleTest::Not(inner) => asks_changed_lists(model, types, inner, own_lists_change),
        RuleTest::Related { owner, relation, test } => {
            let mut of = types[owner.variable];
            for reference in &owner.references {
                of = model.record(of).field(*reference).kind.relation().map_or(of, Relation::target);
            }
            let Some(relation) = model.record(of).field(*relation).kind.relation() else { return true };
            let is_list = match relation {
                Relation::Reference(_) => false,
                Relation::Inverse(_) | Relation::Link(_) => true,
            };
            let is_own = owner.variable == 0 && owner.references.is_empty();
            if is_list && (relation.target() == types[0] || is_own && own_lists_change) {
                return true;
            }
            types.push(relation.target());
            let asks = asks_changed_lists(model, types, test, own_lists_change);
            types.pop();
            asks
        }
        RuleTest::Constant(_)
        | RuleTest::SignedIn
        | RuleTest::HasRole(_)
        | RuleTest::Compare { .. }
        | RuleTest::IsAbsent(_)
        | RuleTest::IsTrue(_)
        | RuleTest::OneOf { .. }
        | RuleTest::HasItem { .. } => false,
    }
}
