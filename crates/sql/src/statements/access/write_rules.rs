//! What the rules ask of a write: checks to run before and after it, in its transaction.

use std::sync::Arc;

use trefoil_engine::AccessView;
use trefoil_model::access::{AccessVerdict, RuleTest};
use trefoil_model::error::{Error, Result, Violation};
use trefoil_model::naming::names::VERSION_COLUMN;
use trefoil_model::values::coerce::coerce_comparable;
use trefoil_model::{
    CellValue, Field, FieldId, Model, RecordId, RecordTypeId, SourceLocation, StoredValue, ValueSource,
};

use crate::statements::access::check_statement::{
    AskedTest, CheckCache, CheckKind, CheckResult, CheckStatement, CheckedColumn, CheckedRecord, OldValues,
};
use crate::statements::access::image_list::is_json;
use crate::statements::access::old_fields::{OldFields, old_fields};
use crate::statements::access::read_statement::ReadStatement;
use crate::statements::access::record_views::RecordViews;
use crate::statements::access::rule_parameters::RuleName;
use crate::statements::access::rule_sql::{RuleScope, RuleWriter};
use crate::statements::dialect::{Dialect, ValueComparison};
use crate::statements::sql_parameter::SqlParameter;

pub(super) const ROW: &str = "g";

/// Writes the checks of one actor.
#[derive(Clone, Copy)]
pub struct WriteRules<'a> {
    pub dialect: Dialect,
    pub model: &'a Model,
    pub view: &'a AccessView,
    pub checks: &'a CheckCache,
}

/// What is done to records that exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeAction {
    Update,
    Delete,
}

/// The records that a check is about.
pub enum CheckedRecords<'a> {
    /// All of them must exist, and be visible.
    Ids(Vec<CellValue<'a>>),
    /// Those that an SQL condition on the table `g` describes, with its parameters; only visible ones count.
    /// Where a reference is named, it must be shown, too.
    Matching { condition: String, parameters: Vec<SqlParameter<'a>>, shown: Option<FieldId> },
}

/// What a write gives to fields.
pub type FieldValues = [(FieldId, StoredValue)];
pub type FieldLinks = [(FieldId, Vec<RecordId>)];

/// One statement whose rows tell whether a write is allowed.
pub struct WriteCheck<'a> {
    statement: Arc<CheckStatement>,
    /// Its own parameters, then those of its rules.
    pub parameters: Vec<SqlParameter<'a>>,
    view: &'a AccessView,
    /// The rule about reading the records.
    hidden_by: Option<&'a SourceLocation>,
    /// The number of records that must be there.
    expected_rows: usize,
    expected_version: Option<i64>,
}

impl<'a> WriteRules<'a> {
    /// Before records are changed or deleted: they must be visible, and the actor may change each of these fields.
    pub fn before(
        self,
        record: RecordTypeId,
        action: ChangeAction,
        records: CheckedRecords<'a>,
        (values, links): (&'a [(FieldId, StoredValue)], &[FieldId]),
        expected_version: Option<i64>,
    ) -> WriteCheck<'a> {
        let (condition, mut parameters, expected_rows, shown) = match records {
            CheckedRecords::Ids(ids) => {
                let count = ids.len();
                (None, vec![SqlParameter::Keys(ids)], count, None)
            }
            CheckedRecords::Matching { condition, parameters, shown } => {
                (Some(condition), parameters, 0, shown)
            }
        };
        let owner = self.model.record(record);
        let narrowed: Vec<(&Field, &(FieldId, StoredValue))> = values
            .iter()
            .map(|value| (owner.field(value.0), value))
            .filter(|(field, (id, _))| {
                field.value_source == ValueSource::Client
                    && RuleName::UpdateField(record, *id).of(self.view).verdict() != AccessVerdict::Yes
            })
            .collect();
        let first_value = parameters.len() + 1;
        parameters.extend(narrowed.iter().map(|(_, (_, value))| SqlParameter::Cell(value.as_cell())));
        let mut shape = CheckCache::shape(self.model, self.view, CheckKind::Before);
        shape.push_number(record.0);
        shape.push_flag(action == ChangeAction::Update);
        shape.push_bytes(condition.as_deref().unwrap_or_default().as_bytes());
        shape.push_number(first_value);
        shape.push_fields(shown.as_slice().iter().copied());
        shape.push_fields(narrowed.iter().map(|(_, (id, _))| *id));
        shape.push_fields(links.iter().copied());
        let statement = self.checks.get_or_write(&shape, || {
            let condition = condition.unwrap_or_else(|| self.has_id(1));
            let narrowed = narrowed.iter().map(|(field, (id, _))| (*field, *id));
            self.write_before(record, action, &condition, (first_value, narrowed.collect()), (shown, links))
        });
        self.check(record, statement, parameters, (expected_rows, expected_version))
    }

    fn write_before(
        self,
        record: RecordTypeId,
        action: ChangeAction,
        condition: &str,
        (first_value, narrowed): (usize, Vec<(&Field, FieldId)>),
        (shown, links): (Option<FieldId>, &[FieldId]),
    ) -> CheckStatement {
        let owner = self.model.record(record);
        let mut check = CheckWriter::new(self, record, first_value - 1 + narrowed.len());
        let key = self.dialect.read_key(owner.key_form(), &format!("{ROW}.\"id\""));
        check.add(CheckedColumn::Key, key);
        let reference = shown.map(|id| check.shown_terms(id, owner.field(id))).unwrap_or_default();
        let readable = check.rule_sql(RuleName::Read(record));
        check.add(CheckedColumn::Readable, format!("CASE WHEN {reference}({readable}) THEN 1 ELSE 0 END"));
        check.add(CheckedColumn::Version, format!("{ROW}.\"{VERSION_COLUMN}\""));
        let rule = match action {
            ChangeAction::Update => RuleName::Update(record),
            ChangeAction::Delete => RuleName::Delete(record),
        };
        check.add_rule(CheckedColumn::Rule(rule), rule);
        for (position, (field, id)) in narrowed.iter().enumerate() {
            let mark = self.dialect.parameter_mark(first_value + position);
            // Only where the value is shown: else a write would tell whether a guess is right.
            let terms = check.shown_terms(*id, field);
            let is_unchanged = format!("{terms}{}", self.is_value(field, &mark));
            check.add_field(field, RuleName::UpdateField(record, *id), &format!("({is_unchanged})"));
        }
        for field in links {
            let rule = RuleName::UpdateField(record, *field);
            if rule.of(self.view).verdict() != AccessVerdict::Yes {
                check.add_field(owner.field(*field), rule, "1 = 0");
            }
        }
        if action == ChangeAction::Update {
            for field in old_fields(&RuleName::UpdateTo(record).of(self.view).test) {
                let column = self.dialect.quote_name(&owner.field(field).column);
                let read = self.dialect.read_column(owner, &format!("{ROW}."), &column);
                check.add(CheckedColumn::Old(field), read);
            }
        }
        let lock = match self.dialect {
            Dialect::Sqlite => "",
            Dialect::Postgres => " FOR UPDATE OF g",
        };
        check.finish(&format!("{} WHERE {condition}", self.rows(record)), lock)
    }

    /// After records were created. Fields with their default count as not given.
    pub fn after_create(
        self,
        record: RecordTypeId,
        ids: Vec<CellValue<'a>>,
        values: impl Iterator<Item = FieldId>,
        links: &[FieldId],
    ) -> WriteCheck<'a> {
        let source = format!("{} WHERE {}", self.rows(record), self.has_id(1));
        self.of_created(record, (&source, SqlParameter::Keys(ids)), values, links)
    }

    /// The rules for created records in an SQL source with one parameter.
    pub(super) fn of_created(
        self,
        record: RecordTypeId,
        (source, parameter): (&str, SqlParameter<'a>),
        values: impl Iterator<Item = FieldId>,
        links: &[FieldId],
    ) -> WriteCheck<'a> {
        let owner = self.model.record(record);
        let mut parameters = vec![parameter];
        let mut narrowed: Vec<(&Field, FieldId, Option<usize>)> = Vec::new();
        for id in values {
            let field = owner.field(id);
            let verdict = RuleName::CreateField(record, id).of(self.view).verdict();
            if field.value_source != ValueSource::Client || verdict == AccessVerdict::Yes {
                continue;
            }
            // What the server filled in was not given; what is filled in for the actor may be given as well.
            let default = match (&field.default, &field.default_from) {
                (Some(value), _) => coerce_comparable(self.model, field, value).ok(),
                (None, Some(source)) => self.view.filled_value(self.model, field, source),
                (None, None) => None,
            };
            let mark = default.map(|value| {
                parameters.push(SqlParameter::Owned(value));
                parameters.len()
            });
            narrowed.push((field, id, mark));
        }
        let mut shape = CheckCache::shape(self.model, self.view, CheckKind::OfCreated);
        shape.push_number(record.0);
        shape.push_bytes(source.as_bytes());
        shape.push_fields(narrowed.iter().map(|(_, id, _)| *id));
        narrowed.iter().for_each(|(_, _, mark)| shape.push_flag(mark.is_some()));
        shape.push_fields(links.iter().copied());
        let statement = self.checks.get_or_write(&shape, || {
            let mut check = CheckWriter::new(self, record, parameters.len());
            check.add_rule(CheckedColumn::Rule(RuleName::Create(record)), RuleName::Create(record));
            for (field, id, mark) in narrowed {
                let is_default = match mark {
                    Some(number) => self.is_value(field, &self.dialect.parameter_mark(number)),
                    None => format!("{ROW}.{} IS NULL", self.dialect.quote_name(&field.column)),
                };
                check.add_field(field, RuleName::CreateField(record, id), &is_default);
            }
            for field in links {
                let rule = RuleName::CreateField(record, *field);
                if rule.of(self.view).verdict() != AccessVerdict::Yes {
                    check.add_field(owner.field(*field), rule, "1 = 0");
                }
            }
            check.finish(source, "")
        });
        self.check(record, statement, parameters, (0, None))
    }

    pub(super) fn check(
        self,
        record: RecordTypeId,
        statement: Arc<CheckStatement>,
        mut parameters: Vec<SqlParameter<'a>>,
        (expected_rows, expected_version): (usize, Option<i64>),
    ) -> WriteCheck<'a> {
        statement.add_values(self.view, &mut parameters);
        let hidden_by = self.view.of_type(record).read.location.as_ref();
        WriteCheck { statement, parameters, view: self.view, hidden_by, expected_rows, expected_version }
    }

    /// After records were updated; the rule may compare them with what they were.
    fn after_update(self, record: RecordTypeId, ids: Vec<CellValue<'a>>, old: &OldValues) -> WriteCheck<'a> {
        let rule = RuleName::UpdateTo(record);
        let source = || format!("{} WHERE {}", self.rows(record), self.has_id(1));
        let mut check = CheckWriter::new(self, record, 1);
        let statement = if old.is_empty() {
            let mut shape = CheckCache::shape(self.model, self.view, CheckKind::AfterUpdate);
            shape.push_number(record.0);
            self.checks.get_or_write(&shape, || {
                check.add_rule(CheckedColumn::Rule(rule), rule);
                check.finish(&source(), "")
            })
        } else {
            // What the record was decides what is left of the rule.
            let fields = OldFields { model: self.model, record, values: old };
            check.add_test(CheckedColumn::Rule(rule), rule.of(self.view).test.folded(&fields));
            Arc::new(check.finish(&source(), ""))
        };
        self.check(record, statement, vec![SqlParameter::Keys(ids)], (0, None))
    }

    /// After these records were updated: one check, or one for each where the rule compares it with what it was.
    pub fn after_updates(self, record: RecordTypeId, checked: &'a [CheckedRecord]) -> Vec<WriteCheck<'a>> {
        if old_fields(&RuleName::UpdateTo(record).of(self.view).test).is_empty() {
            let ids = checked.iter().map(|checked| checked.id.as_cell()).collect();
            return vec![self.after_update(record, ids, &Vec::new())];
        }
        let check =
            |checked: &'a CheckedRecord| self.after_update(record, vec![checked.id.as_cell()], &checked.old);
        checked.iter().map(check).collect()
    }

    /// For an answer that is given again: whether the actor still sees these records, and may still do this. Those that
    /// are gone have no rules.
    pub fn still_allowed(
        self,
        record: RecordTypeId,
        action: ChangeAction,
        ids: Vec<CellValue<'a>>,
    ) -> WriteCheck<'a> {
        let mut shape = CheckCache::shape(self.model, self.view, CheckKind::StillAllowed);
        shape.push_number(record.0);
        shape.push_flag(action == ChangeAction::Update);
        let statement = self.checks.get_or_write(&shape, || {
            let mut check = CheckWriter::new(self, record, 1);
            let of_action = match action {
                ChangeAction::Update => RuleName::Update(record),
                ChangeAction::Delete => RuleName::Delete(record),
            };
            for rule in [RuleName::Read(record), of_action] {
                check.add_rule(CheckedColumn::Rule(rule), rule);
            }
            check.finish(&format!("{} WHERE {}", self.rows(record), self.has_id(1)), "")
        });
        self.check(record, statement, vec![SqlParameter::Keys(ids)], (0, None))
    }

    /// A statement in which tables are what the actor sees.
    pub fn seen(self, sql: String) -> ReadStatement {
        RecordViews { dialect: self.dialect, model: self.model, view: Some(self.view) }.statement(sql)
    }

    pub(super) fn table(self, record: RecordTypeId) -> String {
        RecordViews { dialect: self.dialect, model: self.model, view: Some(self.view) }.table(record)
    }

    fn rows(self, record: RecordTypeId) -> String {
        format!("{} AS {ROW}", self.table(record))
    }

    fn has_id(self, number: usize) -> String {
        let id = format!("{ROW}.\"id\"");
        self.dialect.is_in_list(ValueComparison::Plain, &id, &self.dialect.parameter_mark(number))
    }

    /// True if the field has this value already.
    fn is_value(self, field: &Field, mark: &str) -> String {
        let column = format!("{ROW}.{}", self.dialect.quote_name(&field.column));
        match (self.dialect, is_json(field)) {
            (Dialect::Postgres, true) => self
                .dialect
                .null_safe_equal(&format!("CAST({column} AS text)"), &format!("CAST({mark} AS text)")),
            (Dialect::Postgres, false) | (Dialect::Sqlite, _) => self.dialect.null_safe_equal(&column, mark),
        }
    }
}

/// Writes the columns of a check.
pub(super) struct CheckWriter<'a> {
    rules: WriteRules<'a>,
    record: RecordTypeId,
    writer: RuleWriter<'a>,
    columns: Vec<CheckedColumn>,
    selected: Vec<String>,
    asked: Vec<AskedTest>,
}

impl<'a> CheckWriter<'a> {
    pub(super) fn new(
        rules: WriteRules<'a>,
        record: RecordTypeId,
        parameter_count: usize,
    ) -> CheckWriter<'a> {
        let writer = RuleWriter::new(rules.dialect, rules.model, parameter_count);
        CheckWriter { rules, record, writer, columns: Vec::new(), selected: Vec::new(), asked: Vec::new() }
    }

    fn add(&mut self, column: CheckedColumn, sql: String) {
        self.columns.push(column);
        self.selected.push(sql);
    }

    fn rule_sql(&mut self, rule: RuleName) -> String {
        let scope = RuleScope::stored(self.record, ROW.to_owned());
        let sql = self.writer.rule_sql(&rule.of(self.rules.view).test, scope);
        self.asked.push(AskedTest::Rule(rule));
        sql
    }

    fn add_test(&mut self, column: CheckedColumn, test: RuleTest) {
        let scope = RuleScope::stored(self.record, ROW.to_owned());
        let sql = self.writer.rule_sql(&test, scope);
        self.asked.push(AskedTest::Rest(test));
        self.add(column, format!("CASE WHEN {sql} THEN 1 ELSE 0 END"));
    }

    pub(super) fn add_rule(&mut self, column: CheckedColumn, rule: RuleName) {
        let sql = self.rule_sql(rule);
        self.add(column, format!("CASE WHEN {sql} THEN 1 ELSE 0 END"));
    }

    /// The terms that hold where the value of a field is shown, each followed by AND.
    fn shown_terms(&mut self, id: FieldId, field: &Field) -> String {
        let mut terms = format!("({}) AND ", self.rule_sql(RuleName::ReadField(self.record, id)));
        if let Some(reference) = field.kind.reference() {
            let (target, alias) = (reference.target, self.writer.next_alias());
            let rule = RuleName::Read(target);
            let scope = RuleScope::stored(target, alias.clone());
            let test = self.writer.rule_sql(&rule.of(self.rules.view).test, scope);
            self.asked.push(AskedTest::Rule(rule));
            let (table, key) = (self.writer.table(target), self.rules.dialect.quote_name(&field.column));
            terms += &format!(
                "EXISTS (SELECT 1 FROM {table} AS {alias} WHERE {alias}.\"id\" = {ROW}.{key} AND ({test})) AND "
            );
        }
        terms
    }

    fn add_field(&mut self, field: &Field, rule: RuleName, is_unchanged: &str) {
        let sql = self.rule_sql(rule);
        let column = CheckedColumn::Field(field.input_name.clone(), rule);
        self.add(column, format!("CASE WHEN ({sql}) OR {is_unchanged} THEN 1 ELSE 0 END"));
    }

    pub(super) fn finish(self, source: &str, lock: &str) -> CheckStatement {
        let sql = format!("SELECT {} FROM {source}{lock}", self.selected.join(", "));
        CheckStatement { sql, columns: self.columns, asked: self.asked }
    }
}

impl WriteCheck<'_> {
    pub fn sql(&self) -> &str {
        &self.statement.sql
    }

    /// The number of columns of its rows.
    pub fn width(&self) -> usize {
        self.statement.columns.len()
    }

    /// What the rows mean; an error if a rule refuses the write.
    pub fn judge(&self, rows: &[Vec<StoredValue>]) -> Result<CheckResult> {
        let mut passed = Vec::with_capacity(rows.len());
        for row in rows {
            let mut record = CheckedRecord { id: StoredValue::Null, old: OldValues::new() };
            let holds = |position: usize| row[position] == StoredValue::Int(1);
            let mut violations = Vec::new();
            let mut refused_by = None;
            let mut is_visible = true;
            for (position, column) in self.statement.columns.iter().enumerate() {
                match column {
                    CheckedColumn::Readable => is_visible = holds(position),
                    CheckedColumn::Version => {}
                    CheckedColumn::Key => record.id = row[position].clone(),
                    CheckedColumn::Rule(rule) if is_visible && !holds(position) => {
                        return Err(self.view.refusal(Some(rule.of(self.view))));
                    }
                    CheckedColumn::Field(name, rule) if is_visible && !holds(position) => {
                        refused_by = refused_by.or(Some(rule));
                        let message = format!("the rules of this application do not let you set `{name}`");
                        violations.push(Violation::new(name, "FORBIDDEN", message));
                    }
                    CheckedColumn::Rule(_) | CheckedColumn::Field(..) => {}
                    CheckedColumn::Old(field) => record.old.push((*field, row[position].clone())),
                }
            }
            if !is_visible && self.expected_rows > 0 {
                let location = self.hidden_by.cloned().map(Box::new);
                return Ok(location.map_or(CheckResult::Missing, CheckResult::Hidden));
            }
            if let Some(rule) = refused_by {
                let refusal = self.view.refusal(Some(rule.of(self.view)));
                let Error::Forbidden { rule, .. } = refusal else { return Err(refusal) };
                return Err(Error::Forbidden { violations, rule });
            }
            self.check_version(row)?;
            if is_visible {
                passed.push(record);
            }
        }
        if rows.len() < self.expected_rows {
            Ok(CheckResult::Missing)
        } else {
            Ok(CheckResult::Passed(passed))
        }
    }

    fn check_version(&self, row: &[StoredValue]) -> Result<()> {
        let position =
            self.statement.columns.iter().position(|column| matches!(column, CheckedColumn::Version));
        let (Some(position), Some(expected)) = (position, self.expected_version) else { return Ok(()) };
        match row[position] {
            StoredValue::Int(found) if found != expected => Err(Error::Stale { expected, found }),
            StoredValue::Null | StoredValue::Int(_) | StoredValue::Real(_) | StoredValue::Text(_) => Ok(()),
        }
    }
}
