//! The order of a list in SQL. A table that a reference leads to is joined as `s1`, or `s1_2` through two references,
//! by the positions of their fields.

use trefoil_engine::plan::searched_texts;
use trefoil_engine::{ReferencePath, SortKey, SortValue};
use trefoil_model::{Field, Model, RecordType};

use crate::statements::access::key_columns::joined_column;
use crate::statements::dialect::{Dialect, ValueComparison};
use crate::statements::predicate_sql::{TableScope, TestedValue, is_nullable};
use crate::statements::search::search_index::{indexed_texts, word_count};

/// A value that records are sorted by.
pub(super) struct SortedValue {
    pub sql: String,
    /// The expression that selects it.
    pub read_sql: String,
    pub may_be_null: bool,
    comparison: ValueComparison,
    dialect: Dialect,
}

impl SortedValue {
    /// The expression that orders a value as this one is ordered.
    pub(super) fn key(&self, value: &str) -> String {
        self.dialect.sort_key(self.comparison, value)
    }
}

/// Writes the sort keys of one list.
#[derive(Clone, Copy)]
pub(super) struct SortWriter<'m> {
    pub dialect: Dialect,
    pub model: &'m Model,
    pub owner: &'m RecordType,
    /// The alias of the owner's table.
    pub alias: &'m str,
    /// The number of the parameter with the words of a search.
    pub words: Option<usize>,
    /// The records are found by a full-text index.
    pub is_indexed: bool,
}

impl<'m> SortWriter<'m> {
    pub(super) fn value(self, value: &SortValue) -> SortedValue {
        match value {
            SortValue::Path(path) => self.path_value(path),
            SortValue::Rank => {
                let sql = self.rank_sql();
                SortedValue {
                    read_sql: sql.clone(),
                    sql,
                    may_be_null: false,
                    comparison: ValueComparison::Plain,
                    dialect: self.dialect,
                }
            }
        }
    }

    /// The weighted number of occurrences of the words in the record itself.
    fn rank_sql(self) -> String {
        // A number alone would be the position of a column.
        let Some(words) = self.words else { return "CAST(0 AS bigint)".to_owned() };
        let words = self.dialect.parameter_mark(words);
        let indexed: Vec<&Field> = self.owner.search_fields().collect();
        let terms: Vec<String> = if indexed.is_empty() {
            let scope = TableScope { record: self.owner, alias: self.alias.to_owned() };
            let texts = searched_texts(self.model, self.owner);
            let own = texts.iter().filter(|path| path.references.is_empty());
            let texts = own.map(|path| TestedValue::new(self.dialect, self.model, &scope, &path.value).sql);
            texts.map(|text| self.dialect.pattern_count(&text, &words)).collect()
        } else {
            let columns: Vec<String> = indexed.iter().map(|field| field.column.clone()).collect();
            let texts = indexed_texts(self.dialect, &format!("{}.", self.alias), &columns).into_iter();
            let weights = indexed.iter().map(|field| field.search_weight.unwrap_or(1));
            let term = |(text, weight)| format!("{weight} * {}", word_count(self.dialect, text, &words));
            texts.zip(weights).map(term).collect()
        };
        match terms.is_empty() {
            true => "CAST(0 AS bigint)".to_owned(),
            false => format!("({})", terms.join(" + ")),
        }
    }

    fn path_value(self, path: &ReferencePath) -> SortedValue {
        let (scope, is_optional) = self.scope(path);
        let tested = TestedValue::new(self.dialect, self.model, &scope, &path.value);
        let read_sql = match path.value.members.is_empty() {
            true => self.dialect.read_column(
                scope.record,
                &format!("{}.", scope.alias),
                &self.dialect.quote_name(&tested.field.column),
            ),
            false => self.dialect.read_member(&tested.sql, tested.field.kind.value_type()),
        };
        SortedValue {
            read_sql,
            may_be_null: is_optional || tested.may_be_null,
            comparison: ValueComparison::for_field(tested.field),
            dialect: self.dialect,
            sql: tested.sql,
        }
    }

    /// The table with the value, and whether a record may have none there.
    fn scope(self, path: &ReferencePath) -> (TableScope<'m>, bool) {
        let mut scope = TableScope { record: self.owner, alias: self.alias.to_owned() };
        let mut is_optional = false;
        for (depth, reference) in path.references.iter().enumerate() {
            let field = scope.record.field(*reference);
            is_optional |= self.is_optional(field);
            if let Some(relation) = field.kind.relation() {
                let record = self.model.record(relation.target());
                scope = TableScope { record, alias: join_alias(path, depth + 1) };
            }
        }
        (scope, is_optional)
    }

    /// True if the referenced record may be missing. Other programs may write to SQLite without its foreign keys.
    fn is_optional(self, reference: &Field) -> bool {
        self.dialect == Dialect::Sqlite || is_nullable(reference)
    }

    /// Joins the tables that the sort keys need to that of the owner.
    pub(super) fn joins(self, sort_keys: &[SortKey]) -> String {
        let mut joins: Vec<String> = Vec::new();
        for path in sort_keys.iter().filter_map(|key| key.value.path()) {
            let mut scope = TableScope { record: self.owner, alias: self.alias.to_owned() };
            let mut is_optional = false;
            for (depth, reference) in path.references.iter().enumerate() {
                let field = scope.record.field(*reference);
                let Some(relation) = field.kind.relation() else { continue };
                let record = self.model.record(relation.target());
                let inner = TableScope { record, alias: join_alias(path, depth + 1) };
                is_optional |= self.is_optional(field);
                let kind = if is_optional { " LEFT" } else { "" };
                let join = format!(
                    "{kind} JOIN {} AS {} ON {} = {}",
                    self.dialect.quote_name(&record.table),
                    inner.alias,
                    inner.column(self.dialect, "id"),
                    scope.column(self.dialect, &joined_column(field))
                );
                if !joins.contains(&join) {
                    joins.push(join);
                }
                scope = inner;
            }
        }
        joins.concat()
    }

    /// Nulls last in both directions, ties by id; or exactly the reverse.
    pub(super) fn order_by(self, sort_keys: &[SortKey], is_reversed: bool) -> String {
        let mut text = String::new();
        for SortKey { value, descending } in sort_keys {
            let value = self.value(value);
            text += &value.key(&value.sql);
            text += if *descending != is_reversed { " DESC" } else { "" };
            // Without nulls the plain order lets an index do the sorting.
            text += match (value.may_be_null, is_reversed) {
                (true, false) => " NULLS LAST, ",
                (true, true) => " NULLS FIRST, ",
                (false, _) => ", ",
            };
        }
        text + &self.id() + if is_reversed { " DESC" } else { "" }
    }

    /// The id of a record. SQLite reads a full-text index in the order of its own column only. PostgreSQL would read all
    /// records in the order of their ids to find the first few, if it could.
    pub(super) fn id(self) -> String {
        match (self.is_indexed, self.dialect) {
            (true, Dialect::Sqlite) => "f.rowid".to_owned(),
            (true, Dialect::Postgres) => format!("({}.\"id\" + 0)", self.alias),
            (false, _) => format!("{}.\"id\"", self.alias),
        }
    }
}

/// The alias of the table that the first references of a path lead to.
fn join_alias(path: &ReferencePath, count: usize) -> String {
    let positions = path.references.iter().take(count).map(|field| field.0.to_string());
    format!("s{}", positions.collect::<Vec<_>>().join("_"))
}
