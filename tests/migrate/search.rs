//! Full-text indexes: added, changed and dropped on stores with records.

use super::{On, Store, on_both};

on_both![
    index_is_added_filled_and_dropped,
    index_follows_renamed_tables_and_columns,
    index_is_filled_anew_if_it_was_not_kept,
    index_goes_with_its_column,
];

const PLAIN: &str = "type Book { id: ID! title: String! note: String }";
const INDEXED: &str = "type Book { id: ID! title: String! @search note: String }";
const BOTH: &str = "type Book { id: ID! title: String! @search note: String @search(weight: 3) }";
const ROWS: &str = "INSERT INTO books (title, note) VALUES ('Müller', 'eins'), ('Weg', NULL), ('x', 'Süd')";

impl Store {
    /// The ids of the records of a table that have a word which begins so.
    fn found(&self, table: &str, columns: &[&str], word: &str) -> String {
        let sql = match self {
            Store::Sqlite { .. } => format!(
                "SELECT rowid FROM trefoil_search_{table} WHERE trefoil_search_{table} MATCH '\"{word}\"*' ORDER BY rowid"
            ),
            Store::Postgres { .. } => {
                let length = 200_000 / columns.len();
                let texts =
                    columns.iter().map(|column| format!("COALESCE(left(\"{column}\", {length}), '')"));
                let texts = texts.collect::<Vec<_>>().join(" || ' ' || ");
                format!(
                    "SELECT id FROM {table} WHERE trefoil_search_words({texts}) @@ '{word}:*'::tsquery ORDER BY id"
                )
            }
        };
        self.rows(&sql).join(" ")
    }

    /// Full-text indexes, by their names.
    fn search_indexes(&self) -> Vec<String> {
        self.rows(match self {
            Store::Sqlite { .. } => {
                "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%' ORDER BY name"
            }
            Store::Postgres { .. } => {
                "SELECT indexname FROM pg_indexes WHERE indexname LIKE 'trefoil_search%' ORDER BY indexname"
            }
        })
    }
}

fn index_is_added_filled_and_dropped(on: On) {
    let store = Store::with(on, PLAIN, ROWS);
    assert!(store.search_indexes().is_empty());
    assert!(store.plan(INDEXED).contains("Book: new full-text index on title"), "{}", store.plan(INDEXED));
    assert_eq!(store.start(INDEXED).unwrap().steps.len(), 1);
    assert_eq!(store.search_indexes(), ["trefoil_search_books"]);
    assert_eq!(store.found("books", &["title"], "mull"), "1");
    assert_eq!(store.found("books", &["title"], "sud"), "");
    assert_eq!(store.start(INDEXED).unwrap().steps.len(), 0);
    store.run("INSERT INTO books (title) VALUES ('Mulde'); UPDATE books SET title = 'Pfad' WHERE id = 2");
    store.start(BOTH).unwrap();
    assert_eq!(store.found("books", &["title", "note"], "mul"), "1 4");
    assert_eq!(store.found("books", &["title", "note"], "sud"), "3");
    assert_eq!(store.found("books", &["title", "note"], "weg"), "");
    store.run("DELETE FROM books WHERE id = 1; UPDATE books SET note = NULL WHERE id = 3");
    assert_eq!(store.found("books", &["title", "note"], "mul"), "4");
    assert_eq!(store.found("books", &["title", "note"], "sud"), "");
    assert!(store.plan(PLAIN).contains("Book: full-text index dropped"));
    store.start(PLAIN).unwrap();
    store.run("INSERT INTO books (title) VALUES ('Mut')");
    // PostgreSQL drops it after the migration.
    if on == On::Sqlite {
        assert!(store.search_indexes().is_empty());
    }
    store.start(INDEXED).unwrap();
    assert_eq!(store.found("books", &["title"], "mu"), "4 5");
}

fn index_follows_renamed_tables_and_columns(on: On) {
    let store = Store::with(on, INDEXED, ROWS);
    let renamed = "type Paper @renamedFrom(name: \"Book\") { id: ID! heading: String! @search @renamedFrom(name: \"title\")
        note: String count: Int! @default(value: 3) }";
    store.start(renamed).unwrap();
    assert_eq!(store.found("papers", &["heading"], "mull"), "1");
    store.run("UPDATE papers SET heading = 'Neu' WHERE id = 1");
    assert_eq!(store.found("papers", &["heading"], "mull"), "");
    assert_eq!(store.found("papers", &["heading"], "neu"), "1");
    if on == On::Sqlite {
        assert_eq!(store.search_indexes(), ["trefoil_search_papers"]);
    }
    assert_eq!(store.start(renamed).unwrap().steps.len(), 0);
}

/// An earlier version drops triggers that it does not know.
fn index_is_filled_anew_if_it_was_not_kept(on: On) {
    let store = Store::with(on, INDEXED, ROWS);
    if on == On::Sqlite {
        store.run("DROP TRIGGER trefoil_books_search_add");
    }
    store.run("INSERT INTO books (title) VALUES ('Mulde')");
    store.start(INDEXED).unwrap();
    assert_eq!(store.found("books", &["title"], "mul"), "1 4");
}

fn index_goes_with_its_column(on: On) {
    let store = Store::with(on, BOTH, ROWS);
    store.apply("type Book { id: ID! title: String! @search }", &["Book.note"]).unwrap();
    assert_eq!(store.found("books", &["title"], "mull"), "1");
    store.run("INSERT INTO books (title) VALUES ('Mulde')");
    assert_eq!(store.found("books", &["title"], "mul"), "1 4");
    store.apply("type Book { id: ID! count: Int }", &["Book.title"]).unwrap();
    store.run("INSERT INTO books (count) VALUES (1)");
    store.apply("type Other { id: ID! name: String @search }", &["Book"]).unwrap();
    store.run("INSERT INTO others (name) VALUES ('Müll')");
    assert_eq!(store.found("others", &["name"], "mull"), "1");
}
