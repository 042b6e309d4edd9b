//! Invalid targets, files and values: one line says why, and the stores are unchanged.

use super::site::{BOTH, On, Site, Store, bytes};
use crate::support::postgres;

#[test]
fn invalid_arguments_exit_with_2() {
    let site = Site::new();
    let store = site.filled(On::Sqlite, "store", 2);
    let memory = ["backup", "app", "--to", "x.db", "--database", "memory:", "--data", "store"];
    let run = |arguments: &[&str]| {
        let output =
            crate::support::command(site.folder.path(), arguments).output().expect("the binary runs");
        super::site::Ran::of(output)
    };
    for (arguments, why) in [
        (&["move", "app", "--to", "mysql://me:s3cret@db/x"][..], "use \"postgres://…\" or \"sqlite:FOLDER\""),
        (&["move", "app", "--to", "postgres://me:s3cret@db/x?sslmod=1"], "did you mean `sslmode`?"),
        (&["move", "app"], "--to"),
        (&["backup", "app"], "--to"),
        (&["backup", "app", "--to", "x.db", "--keep", "2"], "--to must be an existing folder"),
        (&["backup", "app", "--to", "store", "--keep", "0"], "--keep"),
        (&["restore", "nothing.db", "app"], "nothing.db: file not found"),
        (&["seed", "app"], "--fake"),
        (&["seed", "app", "--fake", "0"], "--fake"),
        (&["reset", "app"], "use --yes to confirm"),
        (&memory, "lost when its server stops"),
    ] {
        let ran = run(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(why), "{arguments:?}: {}", ran.err);
        assert!(!ran.err.contains("s3cret"), "{}", ran.err);
    }
    site.served(&store);
}

/// No store is replaced by one that could not be served afterwards; a migration that a start would do is no obstacle.
#[test]
fn store_of_another_application_is_refused() {
    let site = Site::new();
    site.put("other/graphql/a.graphqls", "type Song { id: ID! name: String! } type Query { songs: [Song] }");
    site.put("other/seed/songs.json", r#"[{"name": "one"}]"#);
    let library = site.filled(On::Sqlite, "library", 5);
    site.must(&["backup", "app", "--to", "library.db"], &library);
    for on in BOTH {
        let songs = site.place(on, "songs");
        site.must(&["seed", "other", "--fake", "3"], &songs);
        let all = || site.run(&["export", "other"], &songs).out;
        let before = all();
        let refused = site.run(&["restore", "library.db", "other", "--overwrite"], &songs);
        assert_eq!((refused.code, all()), (1, before), "{}", refused.err);
        for words in ["library.db: this store does not match the application", "  Author", "--plan"] {
            assert!(refused.err.contains(words), "no {words} in {}", refused.err);
        }
        let (wrong, to) = (site.place(on, "wrong"), site.place(on.other(), "to"));
        site.must(&["restore", "library.db", "app"], &wrong);
        let refused = site.run(&["move", "other", "--to", &to.target()], &wrong);
        assert!(
            refused.code == 1 && refused.err.contains("this store does not match the application"),
            "{}",
            refused.err
        );
        site.must(&["move", "app", "--to", &to.target()], &wrong);
        // An older backup of the same application.
        site.must(&["backup", "other", "--to", &format!("{on:?}.db")], &songs);
        site.put(
            "other/graphql/a.graphqls",
            "type Song { id: ID! name: String! year: Int } type Query { songs: [Song] }",
        );
        site.must(&["restore", &format!("{on:?}.db"), "other", "--overwrite"], &songs);
        site.put(
            "other/graphql/a.graphqls",
            "type Song { id: ID! name: String! } type Query { songs: [Song] }",
        );
    }
}

/// It can be pasted into a shell.
#[test]
fn printed_serve_command_is_shell_quoted() {
    let site = Site::new();
    let store = site.filled(On::Sqlite, "store", 2);
    let said = site.must(&["move", "app", "--to", "sqlite:it's äö/deep"], &store);
    assert!(said.contains(r"--data 'it'\''s äö/deep',"), "{said}");
}

/// The error says why a file cannot be read, not that it is missing.
#[test]
fn inaccessible_path_is_not_reported_as_missing() {
    let site = Site::new();
    site.put("notes.txt", "mine");
    let store = site.place(On::Sqlite, "notes.txt/st");
    let aside = ["backup", "app", "--to", "aside.db"];
    for arguments in [&aside[..], &["move", "app", "--to", "sqlite:to"], &["export", "app"]] {
        let refused = site.refused(arguments, &store);
        assert!(refused.contains("notes.txt/st") && refused.contains("Not a directory"), "{refused}");
    }
}

#[test]
fn folder_is_no_backup() {
    let site = Site::new();
    site.put("aside/notes.txt", "mine");
    let refused = site.refused(&["restore", "aside", "app"], &site.place(On::Sqlite, "store"));
    assert_eq!(refused, "error: aside: this is a folder; give a backup file");
}

#[test]
fn missing_store_is_reported() {
    for on in BOTH {
        let site = Site::new();
        let (nothing, other) = (site.place(on, "nothing"), site.place(on.other(), "other"));
        for arguments in [&["backup", "app", "--to", "x.db"][..], &["move", "app", "--to", &other.target()]] {
            let refused = site.refused(arguments, &nothing);
            assert!(refused.contains("no store found") || refused.contains("file not found"), "{refused}");
        }
        assert!(!site.path("x.db").exists());
    }
}

#[test]
fn invalid_backup_file_is_not_restored() {
    let site = Site::new();
    let store = site.filled(On::Sqlite, "store", 60);
    site.must(&["backup", "app", "--to", "aside.db"], &store);
    let whole = bytes(&site.path("aside.db"));
    site.put("notes.txt", "this is a text and no database, however long one reads it");
    rusqlite::Connection::open(site.path("other.db")).unwrap().execute_batch("CREATE TABLE x (y)").unwrap();
    std::fs::write(site.path("cut.db"), &whole[..whole.len() / 2]).unwrap();
    let changed = |name: &str, sql: &str| {
        std::fs::write(site.path(name), &whole).unwrap();
        rusqlite::Connection::open(site.path(name)).unwrap().execute_batch(sql).unwrap();
    };
    changed("value.db", "UPDATE tags SET label = 'another' WHERE id = 1");
    changed("row.db", "DELETE FROM books WHERE id = 7");
    changed("newer.db", "UPDATE trefoil_meta SET value = '99' WHERE key = 'format'");
    for on in BOTH {
        let target = site.place(on, "target");
        for (name, why) in [
            ("notes.txt", "notes.txt: "),
            ("other.db", "not a backup: the file contains no store"),
            ("cut.db", "cut.db: "),
            ("value.db", "the backup is damaged: tags: "),
            ("row.db", "the backup is damaged: books: "),
            ("newer.db", "the store has format 99"),
        ] {
            let refused = site.refused(&["restore", name, "app"], &target);
            assert!(refused.contains(why), "{name}: {refused}");
        }
        site.must(&["restore", "aside.db", "app"], &target);
    }
}

#[test]
fn value_the_target_cannot_hold_stops_the_move() {
    let site = Site::new();
    let store = site.filled(On::Sqlite, "store", 20);
    let Store::Sqlite(folder) = &store else { panic!("it is a file") };
    let file = site.path(folder).join("trefoil.db");
    let outside = |sql: &str| rusqlite::Connection::open(&file).unwrap().execute_batch(sql).unwrap();
    let to = site.place(On::Postgres, "to");
    for (wrong, right, why) in [
        (
            "UPDATE books SET price = 'cheap' WHERE id = 3",
            "UPDATE books SET price = '3.50' WHERE id = 3",
            "\"cheap\"",
        ),
        (
            "UPDATE books SET title = x'ff' WHERE id = 3",
            "UPDATE books SET title = 'Title' WHERE id = 3",
            "books",
        ),
        (
            "PRAGMA foreign_keys = OFF; UPDATE books SET authorId = 99999 WHERE id = 3",
            "UPDATE books SET authorId = 1 WHERE id = 3",
            "(99999)",
        ),
    ] {
        outside(wrong);
        let refused = site.refused(&["move", "app", "--to", &to.target()], &store);
        assert!(refused.contains(why), "{refused}");
        outside(right);
    }
    let Store::Postgres(url) = &to else { panic!("it is a database") };
    postgres::sql(url, "CREATE TABLE books (mine int)");
    let refused = site.refused(&["move", "app", "--to", &to.target()], &store);
    assert!(refused.contains("another program and already contains books"), "{refused}");
    postgres::sql(url, "DROP TABLE books");
    site.serve(&store);
    site.must(&["move", "app", "--to", &to.target()], &store);
}
