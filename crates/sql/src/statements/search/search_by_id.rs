//! A page of a search by an index on PostgreSQL. Its index finds all records with a word before the first of them is
//! read, which takes long for a common word. Those are met soon in the order of their ids, so that some records are tried
//! first.

use trefoil_model::RecordType;

use crate::statements::dialect::Dialect;
use crate::statements::related::selected_rows::{LimitMarks, SelectedRows};
use crate::statements::search::search_index::indexed_texts;

/// In a table of fewer records the index is cheap for every word. Tests have few records and meet both.
const MIN_TABLE_ROWS: i64 = if cfg!(debug_assertions) { -1 } else { 50_000 };
/// A word is common if it is in this many of the first [`SAMPLED_ROWS`] records.
const COMMON_MATCHES: usize = 2;
const SAMPLED_ROWS: usize = 100;
/// The greatest size of their texts together: splitting longer ones into words takes longer than the index.
const SAMPLED_BYTES: usize = 128 << 10;
/// This many records are tried for a common word.
const WALKED_ROWS: usize = 2_000;

/// What a page of a search consists of.
pub struct SearchedRows<'a> {
    pub owner: &'a RecordType,
    /// With the index.
    pub indexed: SelectedRows,
    /// In the order of ids.
    pub walked: SelectedRows,
    /// The number of terms before those of cursors.
    pub predicate_count: usize,
    /// The parameter with the words.
    pub words: String,
}

impl SearchedRows<'_> {
    /// Selects a full page from the first records, or any page with the index.
    pub fn sql(&self, marks: &LimitMarks) -> String {
        let (predicates, cursors) = self.walked.terms.split_at(self.predicate_count);
        let table = Dialect::Postgres.quote_name(&self.owner.table);
        let first = |count: usize| {
            let rows = SelectedRows {
                selected: "*".to_owned(),
                from: format!("{table} AS t"),
                terms: cursors.to_vec(),
                order: self.walked.order.clone(),
            };
            format!("({}) AS t", rows.sql(None, &format!(" LIMIT {count}")))
        };
        let matches: Vec<String> = [self.may_match()].into_iter().chain(predicates.iter().cloned()).collect();
        let sampled = SelectedRows {
            selected: format!("count(*) >= {COMMON_MATCHES}"),
            from: first(SAMPLED_ROWS),
            terms: matches.clone(),
            order: None,
        };
        let sizes = SelectedRows {
            selected: format!("coalesce(sum({}), 0) <= {SAMPLED_BYTES}", self.text_size()),
            from: first(SAMPLED_ROWS),
            terms: Vec::new(),
            order: None,
        };
        let is_common = format!(
            "CASE WHEN (SELECT reltuples < {MIN_TABLE_ROWS} FROM pg_class WHERE oid = CAST('{}' AS regclass)) \
             THEN false WHEN ({}) THEN ({}) ELSE false END",
            table.replace('\'', "''"),
            sizes.sql(None, ""),
            sampled.sql(None, "")
        );
        let walked = SelectedRows { from: first(WALKED_ROWS), terms: matches, ..self.walked.clone() };
        let walked = walked.sql(Some(&is_common), &marks.clause());
        let is_full = format!("(SELECT count(*) = {} FROM w)", marks.limit);
        let indexed = self.indexed.sql(Some(&format!("NOT {is_full}")), &marks.clause());
        format!(
            "WITH w AS MATERIALIZED ({walked}) SELECT * FROM w WHERE {is_full} UNION ALL SELECT * FROM ({indexed}) AS b"
        )
    }

    /// The size of the texts of a record, which PostgreSQL knows without reading them.
    fn text_size(&self) -> String {
        let columns = self.owner.search_fields().map(|field| Dialect::Postgres.quote_name(&field.column));
        let sizes = columns.map(|column| format!("coalesce(octet_length(t.{column}), 0)"));
        sizes.collect::<Vec<_>>().join(" + ")
    }

    /// False for most records that do not match, and much cheaper than splitting their texts into words: a text of ASCII
    /// letters that matches contains each word literally.
    fn may_match(&self) -> String {
        let columns: Vec<String> = self.owner.search_fields().map(|field| field.column.clone()).collect();
        let text = indexed_texts(Dialect::Postgres, "t.", &columns).join(" || ' ' || ");
        let patterns =
            format!("ARRAY(SELECT '%' || w || '%' FROM unnest(CAST({} AS text[])) AS w)", self.words);
        format!(
            "(octet_length({text}) <> length({text}) OR lower(({text}) COLLATE \"C\") LIKE ALL ({patterns}))"
        )
    }
}
