//! The records as an actor sees them: common table expressions in front of a statement, with the names of the tables.
//!
//! They stand in for the tables everywhere in the statement. Records out of sight are not there; hidden columns, and
//! references to hidden records, are null. So conditions, orders, searches, counts, cursors and groups know of nothing
//! else. Both databases merge them into the statement, and use the indexes of the tables.

use trefoil_engine::AccessView;
use trefoil_engine::changes::seen_columns;
use trefoil_model::access::RuleTest;
use trefoil_model::naming::names::{VERSION_COLUMN, key_column};
use trefoil_model::{Field, FieldId, Model, RecordTypeId};

use crate::statements::access::read_statement::ReadStatement;
use crate::statements::access::rule_parameters::RuleName;
use crate::statements::access::rule_sql::{RuleScope, RuleWriter};
use crate::statements::dialect::Dialect;

/// The alias of a table in its view.
const ROW: &str = "g";

/// Writes the views of one actor; without an actor everything is seen.
#[derive(Debug, Clone, Copy)]
pub struct RecordViews<'m> {
    pub dialect: Dialect,
    pub model: &'m Model,
    pub view: Option<&'m AccessView>,
}

/// A statement whose only parameter has the images of records of one type, instead of their table.
#[derive(Clone, Copy)]
struct ImageSource<'s> {
    record: RecordTypeId,
    sql: &'s str,
}

/// The position of an image in its list.
pub const POSITION: &str = "#";

impl RecordViews<'_> {
    /// Selects the images that the actor sees. The parameter is a list of them as JSON.
    pub fn seen_images(self, record: RecordTypeId) -> ReadStatement {
        let owner = self.model.record(record);
        let quoted = |name: &String| self.dialect.quote_name(name);
        let columns: Vec<String> = seen_columns(owner).iter().map(quoted).collect();
        let position = match self.dialect {
            Dialect::Sqlite => format!("t.\"{POSITION}\""),
            Dialect::Postgres => format!("t.\"{POSITION}\" - 1"),
        };
        let table = self.dialect.quote_name(&owner.table);
        let read = self.dialect.read_columns(owner, "t.", &columns);
        let source = match self.dialect {
            Dialect::Sqlite => {
                let stored = owner.fields.iter().filter(|field| field.is_stored());
                let names = stored.map(|field| field.column.as_str()).chain([VERSION_COLUMN]);
                let columns = names.map(|name| format!("json_extract(value, '$.\"{name}\"') AS \"{name}\""));
                let columns = columns.collect::<Vec<_>>().join(", ");
                format!("(SELECT key AS \"{POSITION}\", {columns} FROM json_each(?1))")
            }
            Dialect::Postgres => format!(
                "(SELECT x.*, x.ordinality AS \"{POSITION}\" FROM json_populate_recordset(CAST(NULL AS {table}), \
                 CAST($1 AS json)) WITH ORDINALITY AS x)"
            ),
        };
        let sql = format!("SELECT {position}, {read} FROM {table} AS t");
        self.statement_over(sql, Some(ImageSource { record, sql: &source }))
    }

    /// The statement with the views of all records that it names.
    pub fn statement(self, sql: String) -> ReadStatement {
        if self.model.access.is_none() {
            return ReadStatement::plain(sql);
        }
        self.statement_over(sql, None)
    }

    fn statement_over(self, sql: String, images: Option<ImageSource<'_>>) -> ReadStatement {
        let own_parameters = match images {
            Some(_) => 1,
            None => last_parameter(self.dialect, &sql),
        };
        let mut writer = RuleWriter::new(self.dialect, self.model, own_parameters);
        let mut rules = Vec::new();
        let mut views: Vec<(String, String)> = Vec::new();
        for (position, record) in self.model.records.iter().enumerate() {
            let name = self.dialect.quote_name(&record.table);
            if !sql.contains(&name) {
                continue;
            }
            if let Some(view) = self.view_of(RecordTypeId(position), images, &mut writer, &mut rules) {
                views.push((record.table.clone(), view));
            }
        }
        if views.is_empty() {
            return ReadStatement::plain(sql);
        }
        let quoted = |name: &str| self.dialect.quote_name(name);
        let tables: Vec<String> = match self.dialect {
            Dialect::Sqlite => {
                let table = |(name, view): &(String, String)| {
                    format!("{} AS NOT MATERIALIZED ({view})", quoted(name))
                };
                views.iter().map(table).collect()
            }
            // Rules name tables too: no view may have the name of a table before all of them are written.
            Dialect::Postgres => {
                let seen = |name: &str| quoted(&format!("{name}:seen"));
                let first =
                    views.iter().map(|(name, view)| format!("{} AS NOT MATERIALIZED ({view})", seen(name)));
                let second = views.iter().map(|(name, _)| {
                    format!("{} AS NOT MATERIALIZED (SELECT * FROM {})", quoted(name), seen(name))
                });
                first.chain(second).collect()
            }
        };
        let tables = tables.join(", ");
        let sql = match sql.strip_prefix("WITH ") {
            Some(rest) => format!("WITH {tables}, {rest}"),
            None => format!("WITH {tables} {sql}"),
        };
        ReadStatement { sql, rules }
    }

    /// The records of a type; `None` if the table has nothing to hide and no key columns are asked for.
    fn view_of(
        self,
        record: RecordTypeId,
        images: Option<ImageSource<'_>>,
        writer: &mut RuleWriter<'_>,
        rules: &mut Vec<RuleName>,
    ) -> Option<String> {
        let images = images.filter(|images| images.record == record);
        let owner = self.model.record(record);
        let mut columns = Vec::with_capacity(owner.fields.len() + 1);
        let is_narrowed = owner.fields.iter().any(|field| field.may_be_hidden);
        if is_narrowed {
            for (position, field) in owner.fields.iter().enumerate() {
                self.add_columns(record, FieldId(position), field, writer, rules, &mut columns);
            }
            columns.push(format!("{ROW}.{}", self.dialect.quote_name(VERSION_COLUMN)));
            columns.extend(images.map(|_| format!("{ROW}.\"{POSITION}\"")));
        } else {
            columns.push(format!("{ROW}.*"));
        }
        let scope = || RuleScope { record, alias: ROW.to_owned() };
        let term = self.rule_term(RuleName::Read(record), scope(), writer, rules);
        if term.is_none() && !is_narrowed && images.is_none() {
            return None;
        }
        let clause = term.map(|term| format!(" WHERE {term}")).unwrap_or_default();
        let table = images.map_or_else(|| writer.table(record), |images| images.sql.to_owned());
        Some(format!("SELECT {} FROM {table} AS {ROW}{clause}", columns.join(", ")))
    }

    fn add_columns(
        self,
        record: RecordTypeId,
        id: FieldId,
        field: &Field,
        writer: &mut RuleWriter<'_>,
        rules: &mut Vec<RuleName>,
        columns: &mut Vec<String>,
    ) {
        let own = |name: &str| format!("{ROW}.{}", self.dialect.quote_name(name));
        let scope = || RuleScope { record, alias: ROW.to_owned() };
        let name = |name: &str| self.dialect.quote_name(name);
        let shown = |column: &str, terms: &[String]| match terms.is_empty() {
            true => own(column),
            false => format!("CASE WHEN {} THEN {} END", terms.join(" AND "), own(column)),
        };
        if !field.is_stored() {
            if field.may_be_hidden && field.kind.relation().is_some() {
                let term = self.rule_term(RuleName::ReadField(record, id), scope(), writer, rules);
                let key = shown("id", &term.into_iter().collect::<Vec<_>>());
                columns.push(format!("{key} AS {}", name(&key_column(&field.name))));
            }
            return;
        }
        if !field.may_be_hidden {
            columns.push(own(&field.column));
            return;
        }
        let term = |writer: &mut RuleWriter<'_>, rules: &mut Vec<RuleName>| {
            self.rule_term(RuleName::ReadField(record, id), scope(), writer, rules)
        };
        let mut terms: Vec<String> = term(writer, rules).into_iter().collect();
        if let Some(reference) = field.kind.reference() {
            let alias = writer.next_alias();
            let inner = RuleScope { record: reference.target, alias: alias.clone() };
            if let Some(test) = self.rule_term(RuleName::Read(reference.target), inner, writer, rules) {
                let (table, key) = (writer.table(reference.target), own(&field.column));
                terms.push(format!(
                    "EXISTS (SELECT 1 FROM {table} AS {alias} WHERE {alias}.\"id\" = {key} AND ({test}))"
                ));
            }
        }
        columns.push(format!("{} AS {}", shown(&field.column, &terms), name(&field.column)));
        if field.kind.is_reference() {
            let key = shown(&field.column, &term(writer, rules).into_iter().collect::<Vec<_>>());
            columns.push(format!("{key} AS {}", name(&key_column(&field.column))));
        }
    }

    /// The term of a rule; `None` if it holds for every record.
    fn rule_term(
        self,
        rule: RuleName,
        scope: RuleScope,
        writer: &mut RuleWriter<'_>,
        rules: &mut Vec<RuleName>,
    ) -> Option<String> {
        let test = &rule.of(self.view?).test;
        if *test == RuleTest::Constant(true) {
            return None;
        }
        let sql = writer.rule_sql(test, scope);
        rules.push(rule);
        Some(format!("({sql})"))
    }
}

/// The greatest number of a parameter in a statement. Quoted names and texts have none.
fn last_parameter(dialect: Dialect, sql: &str) -> usize {
    let mark = match dialect {
        Dialect::Sqlite => '?',
        Dialect::Postgres => '$',
    };
    let (mut last, mut quote) = (0, None);
    for (position, letter) in sql.char_indices() {
        match quote {
            Some(open) if open == letter => quote = None,
            Some(_) => {}
            None if letter == '"' || letter == '\'' => quote = Some(letter),
            None if letter == mark => {
                let digits = sql[position + 1..].bytes().take_while(u8::is_ascii_digit).count();
                last = last.max(sql[position + 1..position + 1 + digits].parse().unwrap_or(0));
            }
            None => {}
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_in_quotes_do_not_count() {
        for (sql, expected) in
            [("SELECT 1", 0), ("SELECT ?1, ?12 FROM \"a?99\"", 12), ("SELECT '?7' || ?3 || 'it''s ?9'", 3)]
        {
            assert_eq!(last_parameter(Dialect::Sqlite, sql), expected, "{sql}");
        }
        assert_eq!(last_parameter(Dialect::Postgres, "SELECT '$.a', '{$8}', $2"), 2);
    }
}
