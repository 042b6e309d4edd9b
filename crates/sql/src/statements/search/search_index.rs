//! Full-text indexes: what they are called, what they hold and how they are asked. Others write the tables too, so they
//! are kept by functions that every SQLite and every PostgreSQL has.

use trefoil_engine::plan::{IGNORED_MARKS, LETTERS, MAX_INDEXED_LETTERS, MAX_TOKEN_LETTERS, SEPARATORS};

use crate::statements::dialect::Dialect;

/// The function that makes the words of a text on PostgreSQL.
pub const WORDS_FUNCTION: &str = "trefoil_search_words";

/// The function that counts words on PostgreSQL.
pub const COUNT_FUNCTION: &str = "trefoil_search_count";

/// Letters that the function finds first: it compares every letter of a text with its list from the start.
const COMMON_LETTERS: &str =
    "abcdefghijklmnopqrstuvwxyz 0123456789абвгдежзиклмнопрстуфхцчшщъыьэюяαβγδεζηθικλμνξοπρστυφχψω";

/// The FTS5 table of a record's table on SQLite.
pub fn index_table(table: &str) -> String {
    format!("trefoil_search_{table}")
}

/// The indexed part of each column; `row` is the alias of its table.
pub fn indexed_texts(dialect: Dialect, row: &str, columns: &[String]) -> Vec<String> {
    let length = MAX_INDEXED_LETTERS / columns.len().max(1);
    let indexed = |column: &String| {
        let text = format!("{row}{}", dialect.quote_name(column));
        match dialect {
            Dialect::Sqlite => format!("substr({text}, 1, {length})"),
            Dialect::Postgres => format!("COALESCE(left({text}, {length}), '')"),
        }
    };
    columns.iter().map(indexed).collect()
}

/// The words of these columns on PostgreSQL, as an index has them.
pub fn words_expression(row: &str, columns: &[String]) -> String {
    let texts = indexed_texts(Dialect::Postgres, row, columns);
    format!("{WORDS_FUNCTION}({})", texts.join(" || ' ' || "))
}

/// True if the index has words that begin with those of a list, which is one parameter.
pub fn has_indexed_words(
    dialect: Dialect,
    table: &str,
    alias: &str,
    columns: &[String],
    words: &str,
) -> String {
    match dialect {
        Dialect::Sqlite => {
            let index = dialect.quote_name(&index_table(table));
            let matches = matches_words(&index, words);
            format!("{alias}.\"id\" IN (SELECT rowid FROM {index} WHERE {matches})")
        }
        Dialect::Postgres => has_shown_words(dialect, alias, columns, words),
    }
}

/// The same for these columns as they are in the row, without the index on SQLite; PostgreSQL uses it for a row of the
/// table itself.
pub fn has_shown_words(dialect: Dialect, alias: &str, columns: &[String], words: &str) -> String {
    let row = format!("{alias}.");
    match dialect {
        Dialect::Sqlite => {
            let texts = indexed_texts(dialect, &row, columns);
            let texts = texts.iter().map(|text| format!("COALESCE({text}, '')")).collect::<Vec<_>>();
            let count = word_count(dialect, texts.join(" || ' ' || "), "json_array(w.value)");
            format!("NOT EXISTS (SELECT 1 FROM json_each({words}) AS w WHERE {count} = 0)")
        }
        Dialect::Postgres => {
            let query = format!(
                "SELECT string_agg(quote_literal(w) || ':*', ' & ') FROM unnest(CAST({words} AS text[])) AS w"
            );
            format!("{} @@ CAST(({query}) AS tsquery)", words_expression(&row, columns))
        }
    }
}

/// The index of a table on SQLite, as `f`, with the records of the index in its order. A list of all ids that are found
/// would take ten times as long for the first page of a common word.
pub fn index_join(table: &str, records: &str) -> String {
    format!("{} AS f CROSS JOIN {records} ON t.\"id\" = f.rowid", quoted_index(table))
}

/// [`has_indexed_words`] for the index of an [`index_join`].
pub fn joined_words(table: &str, words: &str) -> String {
    matches_words(&format!("f.{}", quoted_index(table)), words)
}

fn quoted_index(table: &str) -> String {
    Dialect::Sqlite.quote_name(&index_table(table))
}

fn matches_words(index: &str, words: &str) -> String {
    let query = format!("SELECT group_concat('\"' || value || '\"*', ' AND ') FROM json_each({words})");
    format!("{index} MATCH ({query})")
}

/// The number of words of a text that begin with those of a list, which is one parameter.
pub fn word_count(dialect: Dialect, text: String, words: &str) -> String {
    match dialect {
        Dialect::Sqlite => format!("trefoil_word_count({text}, {words})"),
        Dialect::Postgres => format!("{COUNT_FUNCTION}({text}, CAST({words} AS text[]))"),
    }
}

/// The body of the function that makes the words of the text `$1`.
pub fn words_function_body() -> String {
    format!(
        " SELECT array_to_tsvector(array_agg(left(w, {MAX_TOKEN_LETTERS}))) FROM {} AS w WHERE w <> '' ",
        word_rows()
    )
}

/// The body of the function that counts the words of the text `$1` that begin with one of `$2`.
pub fn count_function_body() -> String {
    format!(" SELECT count(*) FROM {} AS w, unnest($2) AS b WHERE starts_with(w, b) ", word_rows())
}

/// The words of the text `$1` as rows, with empty ones among them.
fn word_rows() -> String {
    let escaped = |code: u32| format!("\\U{code:08X}");
    let ranges = SEPARATORS.iter().map(|(first, last)| format!("{}-{}", escaped(*first), escaped(*last)));
    let separators = ranges.collect::<String>();
    let upper: String = ('A'..='Z').collect();
    let from = format!("{COMMON_LETTERS}{upper}{}{IGNORED_MARKS}", LETTERS[0]);
    let to = format!("{COMMON_LETTERS}{}{}", upper.to_ascii_lowercase(), LETTERS[1]);
    format!(
        "regexp_split_to_table(CASE octet_length($1) WHEN length($1) THEN lower($1 COLLATE \"C\") \
         ELSE translate($1, '{from}', '{to}') END, '[{separators}]+')"
    )
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    /// What SQLite makes of every letter, between two others.
    #[test]
    fn letters_are_those_of_sqlite() {
        let connection = Connection::open_in_memory().expect("a database");
        connection
            .execute_batch(
                "CREATE VIRTUAL TABLE f USING fts5(x, tokenize='unicode61 remove_diacritics 2');
                 CREATE VIRTUAL TABLE v USING fts5vocab(f, 'instance')",
            )
            .expect("tables");
        let mut insert = connection.prepare("INSERT INTO f (rowid, x) VALUES (?1, ?2)").expect("a statement");
        // What comes later is no letter, or one of Chinese.
        let letters = || ('\u{1}'..='\u{1FFFF}').filter(|letter| !letter.is_ascii_control());
        for letter in letters() {
            insert.execute((u32::from(letter), format!("a{letter}b"))).expect("a row");
        }
        let mut found: std::collections::HashMap<u32, Vec<String>> = std::collections::HashMap::new();
        let mut terms =
            connection.prepare("SELECT doc, term FROM v ORDER BY doc, offset").expect("a statement");
        let mut rows = terms.query([]).expect("rows");
        while let Some(row) = rows.next().expect("a row") {
            let (letter, term) = (row.get(0).expect("a number"), row.get(1).expect("a text"));
            found.entry(letter).or_default().push(term);
        }
        let upper: String = ('A'..='Z').collect();
        let from = format!("{upper}{}", LETTERS[0]);
        let to = format!("{}{}", upper.to_ascii_lowercase(), LETTERS[1]);
        let folded: std::collections::HashMap<char, char> = from.chars().zip(to.chars()).collect();
        for letter in letters() {
            let code = u32::from(letter);
            let is_separator = SEPARATORS.iter().any(|(first, last)| (*first..=*last).contains(&code));
            let expected = match letter {
                _ if is_separator => vec!["a".to_owned(), "b".to_owned()],
                _ if IGNORED_MARKS.contains(letter) => vec!["ab".to_owned()],
                _ => vec![format!("a{}b", folded.get(&letter).unwrap_or(&letter))],
            };
            assert_eq!(found[&code], expected, "U+{code:04X}");
        }
    }
}
