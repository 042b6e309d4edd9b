//! Lists of the keys of related records, each up to a limit and each found by the one before it. If all are short, they
//! lead to the records; otherwise there are many such records, and the first ones are soon met in order.

use trefoil_model::KeyForm;

use crate::statements::dialect::Dialect;
use crate::statements::related::selected_rows::{LimitMarks, SelectedRows};

/// The longest list. A page of a common value pays for finding this many keys in vain; a value with a few more than this
/// is found by a long walk. Tests have few records, so that they meet both.
const MAX_KEYS: usize = if cfg!(debug_assertions) { 3 } else { SERVED_MAX_KEYS };
const SERVED_MAX_KEYS: usize = 500;

/// The lists of one statement, `k1`, `k2` …
#[derive(Debug)]
pub struct KeyLists {
    dialect: Dialect,
    max_keys: usize,
    /// The tables that the statement begins with.
    tables: Vec<String>,
    /// The first list is found by the same index for every value.
    is_found_alike: bool,
}

impl KeyLists {
    pub fn new(dialect: Dialect) -> KeyLists {
        KeyLists { dialect, max_keys: MAX_KEYS, tables: Vec::new(), is_found_alike: false }
    }

    /// Adds the list of the keys that a query selects, which may use the list before it.
    pub fn add(&mut self, query: &str) {
        let (last, most) = (self.tables.len(), self.max_keys + 1);
        let is_whole = (last > 0).then(|| self.is_whole(last));
        let table = match (self.dialect, is_whole) {
            (Dialect::Sqlite, None) => format!("(id) AS MATERIALIZED ({query} LIMIT {most})"),
            (Dialect::Sqlite, Some(is_whole)) => {
                format!("(id) AS MATERIALIZED ({query} LIMIT CASE WHEN {is_whole} THEN {most} ELSE 0 END)")
            }
            (Dialect::Postgres, None) => {
                format!(" AS MATERIALIZED (SELECT ARRAY({query} LIMIT {most}) AS ids)")
            }
            // Null after a list that is not whole.
            (Dialect::Postgres, Some(is_whole)) => format!(
                " AS MATERIALIZED (SELECT CASE WHEN {is_whole} THEN ARRAY({query} LIMIT {most}) END AS ids)"
            ),
        };
        self.tables.push(format!("k{}{table}", last + 1));
    }

    /// The keys by which the first list is found are met in the order of an index, and their value is hidden from the
    /// planner. So one plan is right for all values, and PostgreSQL keeps it where it can.
    pub fn find_alike(&mut self) {
        self.is_found_alike = self.tables.is_empty();
    }

    /// True if the value is in the list that was added last.
    pub fn has_key(&self, value: &str, form: KeyForm) -> String {
        let last = self.tables.len();
        match self.dialect {
            Dialect::Sqlite => format!("{value} IN (SELECT id FROM k{last})"),
            // An array is looked up in an index, whatever PostgreSQL knows of the values; a table might be joined.
            Dialect::Postgres => {
                let key_type = self.dialect.key_type(form);
                format!("{value} = ANY (CAST((SELECT ids FROM k{last}) AS {key_type}[]))")
            }
        }
    }

    /// Selects the rows that the lists lead to, if they are whole, and otherwise all rows that match. No page ends beyond
    /// `row_bound`, if that is known.
    pub fn choose(
        &self,
        listed: &SelectedRows,
        walked: &SelectedRows,
        marks: &LimitMarks,
        row_bound: Option<i64>,
    ) -> String {
        let are_whole = match self.dialect {
            Dialect::Sqlite => {
                let lists = 1..=self.tables.len();
                lists.map(|number| self.is_whole(number)).collect::<Vec<_>>().join(" AND ")
            }
            Dialect::Postgres => self.is_whole(self.tables.len()),
        };
        let LimitMarks { limit, offset } = marks;
        // A plan for any limit expects a tenth of all rows, and is never kept: it is told how few they are.
        let bound = row_bound.filter(|_| self.is_found_alike);
        let part_limit = bound.map_or_else(|| marks.clause(), |bound| format!(" LIMIT {bound}"));
        let [listed, walked] = match self.dialect {
            // A limit of zero reads nothing; a term would be tested for each row.
            Dialect::Sqlite => [
                listed.sql(None, &format!(" LIMIT CASE WHEN {are_whole} THEN {limit} ELSE 0 END{offset}")),
                walked.sql(None, &format!(" LIMIT CASE WHEN {are_whole} THEN 0 ELSE {limit} END{offset}")),
            ],
            // A term is tested once; the limit is for the planner.
            Dialect::Postgres => [
                listed.sql(Some(&are_whole), &part_limit),
                walked.sql(Some(&format!("{are_whole} IS NOT TRUE")), &part_limit),
            ],
        };
        let tables = self.tables.join(", ");
        let either = format!("SELECT * FROM ({listed}) AS a UNION ALL SELECT * FROM ({walked}) AS b");
        match bound {
            Some(_) => format!("WITH {tables} {either}{}", marks.clause()),
            None => format!("WITH {tables} {either}"),
        }
    }

    /// True if the list with this number has all keys.
    fn is_whole(&self, number: usize) -> String {
        let max_keys = self.max_keys;
        match self.dialect {
            Dialect::Sqlite => format!("(SELECT count(*) FROM k{number}) <= {max_keys}"),
            Dialect::Postgres => format!("(SELECT cardinality(ids) <= {max_keys} FROM k{number})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    /// Which rows are selected, and how many, where each of two lists has so many keys.
    fn select(first: i64, second: i64) -> (String, i64) {
        let connection = Connection::open_in_memory().expect("a database");
        let tables = "CREATE TABLE a (id INTEGER PRIMARY KEY, name INT); CREATE TABLE b (id INTEGER PRIMARY KEY, a INT); \
                      CREATE TABLE c (id INTEGER PRIMARY KEY, b INT)";
        connection.execute_batch(tables).expect("tables");
        let fill = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)";
        connection.execute(&format!("{fill} INSERT INTO a SELECT i, 7 FROM n"), [first]).expect("rows");
        let into_b = format!("{fill} INSERT INTO b SELECT i, i % ?2 + 1 FROM n");
        connection.execute(&into_b, [second, first]).expect("rows");
        connection.execute("INSERT INTO c SELECT id, id FROM b", []).expect("rows");
        let mut lists = KeyLists { max_keys: SERVED_MAX_KEYS, ..KeyLists::new(Dialect::Sqlite) };
        lists.add("SELECT id FROM a WHERE name = 7");
        lists.add(&format!("SELECT id FROM b WHERE {}", lists.has_key("a", KeyForm::Number)));
        let rows = |how: &str, term: String| SelectedRows {
            selected: format!("'{how}' AS how"),
            from: "c".to_owned(),
            terms: vec![term],
            order: None,
        };
        let listed = rows("listed", lists.has_key("b", KeyForm::Number));
        let walked =
            rows("walked", "b IN (SELECT b.id FROM b JOIN a ON b.a = a.id WHERE a.name = 7)".to_owned());
        let marks = LimitMarks { limit: "?1".to_owned(), offset: String::new() };
        let sql =
            format!("SELECT max(how), count(*) FROM ({})", lists.choose(&listed, &walked, &marks, None));
        connection.query_row(&sql, [100_000], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows")
    }

    /// Other tests have so few records that they would never meet the lists of a server that is optimised.
    #[test]
    fn lists_are_as_long_as_on_a_server() {
        assert_eq!(SERVED_MAX_KEYS, 500);
        let table =
            [((499, 500), "listed"), ((500, 500), "listed"), ((500, 501), "walked"), ((501, 502), "walked")];
        for ((first, second), how) in table {
            assert_eq!(select(first, second), (how.to_owned(), second), "{first} {second}");
        }
    }
}
