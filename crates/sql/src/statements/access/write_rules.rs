//! What the rules ask of a write: checks to run before and after it, in its transaction.

use trefoil_engine::AccessView;
use trefoil_model::access::{AccessVerdict, ActorFact, ActorFacts, RuleTest, RuleValue, TextComparison};
use trefoil_model::error::{Error, Result, Violation};
use trefoil_model::naming::names::VERSION_COLUMN;
use trefoil_model::values::coerce::coerce_comparable;
use trefoil_model::{
    CellValue, Field, FieldId, Model, RecordId, RecordTypeId, Relation, SourceLocation, StoredValue,
    ValueSource, ValueType,
};

use crate::statements::access::check_result::{CheckResult, CheckedRecord, OldValues};
use crate::statements::access::read_statement::ReadStatement;
use crate::statements::access::record_views::RecordViews;
use crate::statements::access::rule_parameters::{RuleName, test_values};
use crate::statements::access::rule_sql::{RuleScope, RuleWriter};
use crate::statements::constraint_errors::missing_target;
use crate::statements::dialect::{Dialect, ValueComparison};
use crate::statements::sql_parameter::SqlParameter;

const ROW: &str = "g";

/// Writes the checks of one actor.
#[derive(Clone, Copy)]
pub struct WriteRules<'a> {
    pub dialect: Dialect,
    pub model: &'a Model,
    pub view: &'a AccessView,
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
    Matching { condition: String, parameters: Vec<SqlParameter<'a>> },
}

/// What a write gives to fields.
pub type FieldValues = [(FieldId, StoredValue)];
pub type FieldLinks = [(FieldId, Vec<RecordId>)];

/// One statement whose rows tell whether a write is allowed.
pub struct WriteCheck<'a> {
    pub sql: String,
    /// Its own parameters, then those of its rules.
    pub parameters: Vec<SqlParameter<'a>>,
    view: &'a AccessView,
    columns: Vec<CheckedColumn>,
    /// The rule about reading the records.
    hidden_by: Option<&'a SourceLocation>,
    /// The number of records that must be there.
    expected_rows: usize,
    expected_version: Option<i64>,
}

/// What a column of a check means.
enum CheckedColumn {
    /// The id of the record.
    Key,
    Readable,
    Version,
    Rule(RuleName),
    Field(String, RuleName),
    Old(FieldId),
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
        let (condition, mut parameters, expected_rows) = match records {
            CheckedRecords::Ids(ids) => {
                let count = ids.len();
                (self.has_id(1), vec![SqlParameter::Keys(ids)], count)
            }
            CheckedRecords::Matching { condition, parameters } => (condition, parameters, 0),
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
        let mut check = CheckWriter::new(self, record, parameters.len());
        let key = self.dialect.read_key(owner.key_form(), &format!("{ROW}.\"id\""));
        check.add(CheckedColumn::Key, key);
        check.add_rule(CheckedColumn::Readable, RuleName::Read(record));
        check.add(CheckedColumn::Version, format!("{ROW}.\"{VERSION_COLUMN}\""));
        let rule = match action {
            ChangeAction::Update => RuleName::Update(record),
            ChangeAction::Delete => RuleName::Delete(record),
        };
        check.add_rule(CheckedColumn::Rule(rule), rule);
        for (position, (field, (id, _))) in narrowed.iter().enumerate() {
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
        check.finish(&condition, lock, parameters, (expected_rows, expected_version))
    }

    /// After records were created. Fields with their default count as not given.
    pub fn after_create(
        self,
        record: RecordTypeId,
        ids: Vec<CellValue<'a>>,
        values: impl Iterator<Item = FieldId>,
        links: &[FieldId],
    ) -> WriteCheck<'a> {
        let owner = self.model.record(record);
        let mut parameters = vec![SqlParameter::Keys(ids)];
        let mut narrowed: Vec<(&Field, FieldId, Option<usize>)> = Vec::new();
        for id in values {
            let field = owner.field(id);
            let verdict = RuleName::CreateField(record, id).of(self.view).verdict();
            if field.value_source != ValueSource::Client || verdict == AccessVerdict::Yes {
                continue;
            }
            let default =
                field.default.as_ref().and_then(|value| coerce_comparable(self.model, field, value).ok());
            let mark = default.map(|value| {
                parameters.push(SqlParameter::Owned(value));
                parameters.len()
            });
            narrowed.push((field, id, mark));
        }
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
        check.finish(&self.has_id(1), "", parameters, (0, None))
    }

    /// After records were updated; the rule may compare them with what they were.
    fn after_update(self, record: RecordTypeId, ids: Vec<CellValue<'a>>, old: &OldValues) -> WriteCheck<'a> {
        let parameters = vec![SqlParameter::Keys(ids)];
        let mut check = CheckWriter::new(self, record, parameters.len());
        let rule = RuleName::UpdateTo(record);
        let fields = OldFields { model: self.model, record, values: old };
        check.add_test(CheckedColumn::Rule(rule), rule.of(self.view).test.folded(&fields));
        check.finish(&self.has_id(1), "", parameters, (0, None))
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

    /// Selects those of these ids that the actor sees.
    pub fn visible_ids(self, target: RecordTypeId) -> ReadStatement {
        let record = self.model.record(target);
        let is_listed =
            self.dialect.is_in_list(ValueComparison::Plain, "t.\"id\"", &self.dialect.parameter_mark(1));
        let id = self.dialect.read_key(record.key_form(), "t.\"id\"");
        let table = self.dialect.quote_name(&record.table);
        self.seen(format!("SELECT {id} FROM {table} AS t WHERE {is_listed}"))
    }

    /// A statement in which tables are what the actor sees.
    pub fn seen(self, sql: String) -> ReadStatement {
        RecordViews { dialect: self.dialect, model: self.model, view: Some(self.view) }.statement(sql)
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

    fn has_id(self, number: usize) -> String {
        let id = format!("{ROW}.\"id\"");
        self.dialect.is_in_list(ValueComparison::Plain, &id, &self.dialect.parameter_mark(number))
    }

    /// True if the field has this value already.
    fn is_value(self, field: &Field, mark: &str) -> String {
        let column = format!("{ROW}.{}", self.dialect.quote_name(&field.column));
        let is_json = match field.kind.value_type() {
            Some(ValueType::List(_) | ValueType::Embedded(_)) => true,
            Some(value_type) => value_type.scalar().is_some_and(|scalar| scalar.name() == "JSON"),
            None => false,
        };
        match (self.dialect, is_json) {
            (Dialect::Postgres, true) => self
                .dialect
                .null_safe_equal(&format!("CAST({column} AS text)"), &format!("CAST({mark} AS text)")),
            (Dialect::Postgres, false) | (Dialect::Sqlite, _) => self.dialect.null_safe_equal(&column, mark),
        }
    }
}

/// Writes the columns of a check.
struct CheckWriter<'a> {
    rules: WriteRules<'a>,
    record: RecordTypeId,
    writer: RuleWriter<'a>,
    columns: Vec<CheckedColumn>,
    selected: Vec<String>,
    /// The tests whose values are its parameters, in order.
    asked: Vec<AskedTest>,
}

enum AskedTest {
    Rule(RuleName),
    /// What is left of a rule for one record.
    Rest(RuleTest),
}

impl<'a> CheckWriter<'a> {
    fn new(rules: WriteRules<'a>, record: RecordTypeId, parameter_count: usize) -> CheckWriter<'a> {
        let writer = RuleWriter::new(rules.dialect, rules.model, parameter_count);
        CheckWriter { rules, record, writer, columns: Vec::new(), selected: Vec::new(), asked: Vec::new() }
    }

    fn add(&mut self, column: CheckedColumn, sql: String) {
        self.columns.push(column);
        self.selected.push(sql);
    }

    fn rule_sql(&mut self, rule: RuleName) -> String {
        let scope = RuleScope { record: self.record, alias: ROW.to_owned() };
        let sql = self.writer.rule_sql(&rule.of(self.rules.view).test, scope);
        self.asked.push(AskedTest::Rule(rule));
        sql
    }

    fn add_test(&mut self, column: CheckedColumn, test: RuleTest) {
        let scope = RuleScope { record: self.record, alias: ROW.to_owned() };
        let sql = self.writer.rule_sql(&test, scope);
        self.asked.push(AskedTest::Rest(test));
        self.add(column, format!("CASE WHEN {sql} THEN 1 ELSE 0 END"));
    }

    fn add_rule(&mut self, column: CheckedColumn, rule: RuleName) {
        let sql = self.rule_sql(rule);
        self.add(column, format!("CASE WHEN {sql} THEN 1 ELSE 0 END"));
    }

    /// The terms that hold where the value of a field is shown, each followed by AND.
    fn shown_terms(&mut self, id: FieldId, field: &Field) -> String {
        let mut terms = format!("({}) AND ", self.rule_sql(RuleName::ReadField(self.record, id)));
        if let Some(reference) = field.kind.reference() {
            let (target, alias) = (reference.target, self.writer.next_alias());
            let rule = RuleName::Read(target);
            let scope = RuleScope { record: target, alias: alias.clone() };
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

    fn finish(
        self,
        condition: &str,
        lock: &str,
        mut parameters: Vec<SqlParameter<'a>>,
        (expected_rows, expected_version): (usize, Option<i64>),
    ) -> WriteCheck<'a> {
        let table = self.writer.table(self.record);
        let selected = self.selected.join(", ");
        let sql = format!("SELECT {selected} FROM {table} AS {ROW} WHERE {condition}{lock}");
        for asked in self.asked {
            match asked {
                AskedTest::Rule(rule) => rule.add_values(self.rules.view, &mut parameters),
                AskedTest::Rest(test) => {
                    let values = test_values(&test, self.rules.view);
                    parameters.extend(values.cloned().map(SqlParameter::Owned));
                }
            }
        }
        let (view, columns) = (self.rules.view, self.columns);
        let hidden_by = view.of_type(self.record).read.location.as_ref();
        WriteCheck { sql, parameters, view, columns, hidden_by, expected_rows, expected_version }
    }
}

impl WriteCheck<'_> {
    /// The number of columns of its rows.
    pub fn width(&self) -> usize {
        self.columns.len()
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
            for (position, column) in self.columns.iter().enumerate() {
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
        let position = self.columns.iter().position(|column| matches!(column, CheckedColumn::Version));
        let (Some(position), Some(expected)) = (position, self.expected_version) else { return Ok(()) };
        match row[position] {
            StoredValue::Int(found) if found != expected => Err(Error::Stale { expected, found }),
            StoredValue::Null | StoredValue::Int(_) | StoredValue::Real(_) | StoredValue::Text(_) => Ok(()),
        }
    }
}

/// A record before a change, for the rest of a rule that was folded for its actor.
struct OldFields<'a> {
    model: &'a Model,
    record: RecordTypeId,
    values: &'a [(FieldId, StoredValue)],
}

impl ActorFacts for OldFields<'_> {
    fn is_signed_in(&self) -> bool {
        false
    }

    fn has_role(&self, _: &str) -> bool {
        false
    }

    fn value(&self, value: &RuleValue) -> ActorFact {
        let RuleValue::Old(field) = value else { return ActorFact::Unknown };
        match self.values.iter().find(|(known, _)| known == field) {
            Some((_, StoredValue::Null)) | None => ActorFact::Absent,
            Some((_, value)) => ActorFact::Known(value.clone()),
        }
    }

    fn text_comparison(&self, value: &RuleValue) -> TextComparison {
        match value {
            RuleValue::Old(field) => TextComparison::for_field(self.model.record(self.record).field(*field)),
            RuleValue::Actor { .. }
            | RuleValue::Claim(_)
            | RuleValue::Now
            | RuleValue::Today
            | RuleValue::Literal(_)
            | RuleValue::Field { .. } => TextComparison::Exact,
        }
    }
}

/// The fields whose value before a change a rule asks.
fn old_fields(test: &RuleTest) -> Vec<FieldId> {
    let mut values = Vec::new();
    trefoil_engine::rule_values(test, &mut values);
    let mut fields: Vec<FieldId> = Vec::new();
    for value in values {
        if let RuleValue::Old(field) = value
            && !fields.contains(field)
        {
            fields.push(*field);
        }
    }
    fields
}
