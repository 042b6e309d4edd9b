//! Lists of the keys of related records, each up to a limit and each found by the one before it. If all are short, they
//! lead to the records; otherwise there are many such records, and the first ones are soon met in order.

use trefoil_model::KeyForm;

use crate::statements::dialect::Dialect;
use crate::statements::related::selected_rows::{LimitMarks, SelectedRows};

/// The longest list. A page of a common value pays for finding this many keys in vain; a value with a few more than this
/// is found by a long walk. Tests have few records, so that they meet both.
const MAX_KEYS: usize = if cfg!(debug_assertions) { 3 } else { 500 };

/// The lists of one statement, `k1`, `k2` …
#[derive(Debug)]
pub struct KeyLists {
    dialect: Dialect,
    /// The tables that the statement begins with.
    tables: Vec<String>,
    /// The first list is found by the same index for every value.
    is_found_alike: bool,
}

impl KeyLists {
    pub fn new(dialect: Dialect) -> KeyLists {
        KeyLists { dialect, tables: Vec::new(), is_found_alike: false }
    }

    /// Adds the list of the keys that a query selects, which may use the list before it.
    pub fn add(&mut self, query: &str) {
        let (last, most) = (self.tables.len(), MAX_KEYS + 1);
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
        match self.dialect {
            Dialect::Sqlite => format!("(SELECT count(*) FROM k{number}) <= {MAX_KEYS}"),
            Dialect::Postgres => format!("(SELECT cardinality(ids) <= {MAX_KEYS} FROM k{number})"),
        }
    }
}
