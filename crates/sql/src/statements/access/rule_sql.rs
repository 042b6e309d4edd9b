//! Rules as SQL terms. Rules see all data: tables are named so that no view of an actor stands in for them.

use trefoil_model::access::{RecordPath, RuleTest, RuleValue};
use trefoil_model::{ComparisonOp, Field, FieldId, Model, RecordTypeId, Relation, ValueType};

use crate::statements::dialect::{Dialect, ValueComparison};

/// A record that a term tests.
#[derive(Debug, Clone)]
pub struct RuleScope {
    pub record: RecordTypeId,
    pub alias: String,
}

/// Writes rules and numbers their parameters.
pub struct RuleWriter<'m> {
    dialect: Dialect,
    model: &'m Model,
    /// The number of the last parameter so far.
    parameter_count: usize,
    table_count: usize,
}

/// A value in a rule as SQL.
struct RuleOperand<'m> {
    sql: String,
    /// `None` for a parameter, which has the type of the other side.
    value_type: Option<ValueType>,
    field: Option<&'m Field>,
}

impl<'m> RuleWriter<'m> {
    pub fn new(dialect: Dialect, model: &'m Model, parameter_count: usize) -> RuleWriter<'m> {
        RuleWriter { dialect, model, parameter_count, table_count: 0 }
    }

    /// The name of a record's table behind all views.
    pub fn table(&self, record: RecordTypeId) -> String {
        let name = self.dialect.quote_name(&self.model.record(record).table);
        match self.dialect {
            Dialect::Sqlite => format!("main.{name}"),
            // Views are defined after the statements that name the tables.
            Dialect::Postgres => name,
        }
    }

    /// A rule about one record.
    pub fn rule_sql(&mut self, test: &RuleTest, scope: RuleScope) -> String {
        self.test_sql(test, &mut vec![scope])
    }

    pub fn next_alias(&mut self) -> String {
        self.table_count += 1;
        format!("v{}", self.table_count)
    }

    fn test_sql(&mut self, test: &RuleTest, scopes: &mut Vec<RuleScope>) -> String {
        match test {
            RuleTest::Constant(true) => "1 = 1".to_owned(),
            // What is about the actor alone was decided before.
            RuleTest::Constant(false) | RuleTest::SignedIn | RuleTest::HasRole(_) => "1 = 0".to_owned(),
            RuleTest::All(tests) => self.joined(tests, scopes, " AND "),
            RuleTest::Any(tests) => self.joined(tests, scopes, " OR "),
            RuleTest::Not(inner) => format!("({}) IS NOT TRUE", self.test_sql(inner, scopes)),
            RuleTest::Compare { left, op, right } => self.comparison(left, *op, right, scopes),
            RuleTest::IsAbsent(value) => {
                let operand = self.operand(value, scopes);
                format!("{} IS NULL", operand.sql)
            }
            RuleTest::IsTrue(value) => {
                let operand = self.operand(value, scopes);
                match self.dialect {
                    Dialect::Sqlite => format!("{} = 1", operand.sql),
                    Dialect::Postgres => format!("{} = true", operand.sql),
                }
            }
            RuleTest::OneOf { value, choices } => {
                let own = self.operand(value, scopes);
                let choices: Vec<RuleOperand<'m>> =
                    choices.iter().map(|choice| self.operand(choice, scopes)).collect();
                let comparison = Self::comparison_of(std::iter::once(&own).chain(&choices));
                let key = |operand: &RuleOperand<'_>| self.dialect.equality_key(comparison, &operand.sql);
                let choices: Vec<String> = choices.iter().map(key).collect();
                format!("{} IN ({})", key(&own), choices.join(", "))
            }
            RuleTest::HasItem { list, item } => {
                let list_type = self.type_of(list, scopes);
                let item_type = match &list_type {
                    Some(ValueType::List(item)) => Some(item.value_type.clone()),
                    Some(_) | None => self.type_of(item, scopes),
                };
                let list = self.operand(list, scopes);
                let item = self.operand(item, scopes);
                let column = match (self.dialect, list.value_type) {
                    (Dialect::Postgres, None) => format!("CAST({} AS json)", list.sql),
                    (Dialect::Postgres, Some(_)) | (Dialect::Sqlite, _) => list.sql,
                };
                self.dialect.list_has_item(&column, item_type.as_ref(), &item.sql)
            }
            RuleTest::Related { owner, relation, test } => self.related(owner, *relation, test, scopes),
        }
    }

    fn joined(&mut self, tests: &[RuleTest], scopes: &mut Vec<RuleScope>, separator: &str) -> String {
        let terms: Vec<String> =
            tests.iter().map(|test| format!("({})", self.test_sql(test, scopes))).collect();
        terms.join(separator)
    }

    fn comparison(
        &mut self,
        left: &RuleValue,
        op: ComparisonOp,
        right: &RuleValue,
        scopes: &[RuleScope],
    ) -> String {
        let [left, right] = [left, right].map(|value| self.operand(value, scopes));
        let comparison = Self::comparison_of([&left, &right]);
        let dialect = self.dialect;
        let sign = match op {
            ComparisonOp::Eq => "=",
            ComparisonOp::Ne => "<>",
            ComparisonOp::Lt => "<",
            ComparisonOp::Lte => "<=",
            ComparisonOp::Gt => ">",
            ComparisonOp::Gte => ">=",
        };
        let key = |operand: &RuleOperand<'_>| match op {
            ComparisonOp::Eq | ComparisonOp::Ne => dialect.equality_key(comparison, &operand.sql),
            ComparisonOp::Lt | ComparisonOp::Lte | ComparisonOp::Gt | ComparisonOp::Gte => {
                dialect.sort_key(comparison, &operand.sql)
            }
        };
        format!("{} {sign} {}", key(&left), key(&right))
    }

    fn comparison_of<'o>(operands: impl IntoIterator<Item = &'o RuleOperand<'m>>) -> ValueComparison
    where
        'm: 'o,
    {
        let of = |operand: &RuleOperand<'_>| match (operand.field, &operand.value_type) {
            (Some(field), _) if field.ignores_case => Some(ValueComparison::IgnoreCase),
            (_, Some(value_type)) => Some(ValueComparison::for_type(value_type)),
            (_, None) => None,
        };
        operands.into_iter().find_map(of).unwrap_or(ValueComparison::Plain)
    }

    /// The type of a value of a record.
    fn type_of(&self, value: &RuleValue, scopes: &[RuleScope]) -> Option<ValueType> {
        let RuleValue::Field { record, field, members } = value else { return None };
        let mut owner = scopes.get(record.variable)?.record;
        for reference in &record.references {
            owner = self.model.record(owner).field(*reference).kind.reference()?.target;
        }
        let field = self.model.record(owner).field(*field);
        match members.is_empty() {
            true => self.column_type(field),
            false => self.member(field, members).and_then(|(field, _)| field.kind.value_type().cloned()),
        }
    }

    fn column_type(&self, field: &Field) -> Option<ValueType> {
        match field.kind.reference() {
            Some(reference) => Some(ValueType::Key(self.model.record(reference.target).key_form())),
            None => field.kind.value_type().cloned(),
        }
    }

    fn member(&self, field: &'m Field, members: &[FieldId]) -> Option<(&'m Field, Vec<&'m str>)> {
        let (mut inner, mut names) = (field, Vec::with_capacity(members.len()));
        for member in members {
            let embedded = inner.kind.value_type().and_then(ValueType::embedded_name)?;
            inner = self.model.embedded.get(embedded)?.fields.get(member.0)?;
            names.push(inner.name.as_str());
        }
        Some((inner, names))
    }

    fn operand(&mut self, value: &RuleValue, scopes: &[RuleScope]) -> RuleOperand<'m> {
        let RuleValue::Field { record, field, members } = value else {
            self.parameter_count += 1;
            let sql = self.dialect.parameter_mark(self.parameter_count);
            return RuleOperand { sql, value_type: None, field: None };
        };
        let scope = &scopes[record.variable];
        let (sql, owner) = self.path_sql(scope, &record.references, |writer, owner, alias| {
            let field = writer.model.record(owner).field(*field);
            let column = format!("{alias}.{}", writer.dialect.quote_name(&field.column));
            match writer.member(field, members) {
                Some((member, names)) if !names.is_empty() => {
                    writer.dialect.json_member(&column, &names, member.kind.value_type())
                }
                Some(_) | None => column,
            }
        });
        let field = self.model.record(owner).field(*field);
        let field = self.member(field, members).map_or(field, |(inner, _)| inner);
        RuleOperand { sql, value_type: self.column_type(field), field: Some(field) }
    }

    /// A value of the record that references lead to; null if there is none.
    fn path_sql(
        &mut self,
        scope: &RuleScope,
        references: &[FieldId],
        read: impl FnOnce(&Self, RecordTypeId, &str) -> String,
    ) -> (String, RecordTypeId) {
        let (mut owner, mut alias) = (scope.record, scope.alias.clone());
        let mut key: Option<String> = None;
        for reference in references {
            let field = self.model.record(owner).field(*reference);
            let column = format!("{alias}.{}", self.dialect.quote_name(&field.column));
            let own = match key {
                None => column,
                Some(key) => {
                    format!(
                        "(SELECT {column} FROM {} AS {alias} WHERE {alias}.\"id\" = {key})",
                        self.table(owner)
                    )
                }
            };
            key = Some(own);
            alias = self.next_alias();
            owner = field.kind.reference().map_or(owner, |reference| reference.target);
        }
        let value = read(self, owner, &alias);
        let sql = match key {
            None => value,
            Some(key) => {
                format!("(SELECT {value} FROM {} AS {alias} WHERE {alias}.\"id\" = {key})", self.table(owner))
            }
        };
        (sql, owner)
    }

    /// True if one of the records that the relation leads to meets the test.
    fn related(
        &mut self,
        owner: &RecordPath,
        relation: FieldId,
        test: &RuleTest,
        scopes: &mut Vec<RuleScope>,
    ) -> String {
        let scope = scopes[owner.variable].clone();
        let mut of = scope.record;
        for reference in &owner.references {
            of = self.model.record(of).field(*reference).kind.reference().map_or(of, |found| found.target);
        }
        let Some(relation) = self.model.record(of).field(relation).kind.relation() else {
            return "1 = 0".to_owned();
        };
        let column = match relation {
            Relation::Reference(_) => None,
            Relation::Inverse(_) | Relation::Link(_) => Some("id"),
        };
        let name = column.map(|name| self.dialect.quote_name(name));
        let own_column = self.model.record(of).fields.iter().find_map(|field| {
            field.kind.relation().filter(|found| std::ptr::eq(*found, relation)).map(|_| field.column.clone())
        });
        let column = name.or_else(|| own_column.map(|column| self.dialect.quote_name(&column)));
        let column = column.unwrap_or_default();
        let (own_key, _) =
            self.path_sql(&scope, &owner.references, |_, _, alias| format!("{alias}.{column}"));
        let inner = RuleScope { record: relation.target(), alias: self.next_alias() };
        let (table, alias, dialect) = (self.table(inner.record), inner.alias.clone(), self.dialect);
        let (from, is_related) = match relation {
            Relation::Reference(_) => (format!("{table} AS {alias}"), format!("{alias}.\"id\" = {own_key}")),
            Relation::Inverse(inverse) => {
                let reference = self.model.record(inner.record).field(inverse.field);
                let reference = dialect.quote_name(&reference.column);
                (format!("{table} AS {alias}"), format!("{alias}.{reference} = {own_key}"))
            }
            Relation::Link(link) => {
                let [link_table, own, other] =
                    [&link.table, &link.own_column, &link.other_column].map(|name| dialect.quote_name(name));
                let from = format!(
                    "{link_table} AS {alias}l JOIN {table} AS {alias} ON {alias}.\"id\" = {alias}l.{other}"
                );
                (from, format!("{alias}l.{own} = {own_key}"))
            }
        };
        scopes.push(inner);
        let test = self.test_sql(test, scopes);
        scopes.pop();
        format!("EXISTS (SELECT 1 FROM {from} WHERE {is_related} AND ({test}))")
    }
}
