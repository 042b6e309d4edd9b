//! Migrations on SQLite only: recursive triggers, foreign keys that can be off, values of any type in any column.

use super::bench::rows;
use super::refusals::OLD;
use super::triggers::SHOP;
use super::*;

#[test]
fn dangling_references_do_not_stop_migration() {
    let old = "type User { id: ID! orders: [Order] } type Order { id: ID! user: User note: String! }";
    let store = Store::with(
        On::Sqlite,
        old,
        "PRAGMA foreign_keys = OFF; INSERT INTO orders (userId, note) VALUES (9, 'x')",
    );
    store
        .start("type User { id: ID! orders: [Order] } type Order { id: ID! user: User note: String }")
        .unwrap();
    assert_eq!(store.rows("SELECT userId, note FROM orders"), ["9|x"]);
}

/// PostgreSQL has a type for them.
#[test]
fn uuid_in_another_spelling_is_refused_from_others() {
    let insert = |id: &str| format!("INSERT INTO tags (id, note) VALUES ('{id}', 'x')");
    let (lower, bare) = ("0190163d-8694-739b-aea5-966c26f8ad91", "0190163d8694739baea5966c26f8ad91");
    let upper = "0190163D-8694-739B-AEA5-966C26F8AD92";
    let store = Store::with(On::Sqlite, "type Tag { id: UUID! note: String! }", &insert(lower));
    for id in [upper, bare] {
        let refusal = store.refusal(&insert(id));
        assert!(refusal.contains("uuid_in_lower_case_with_hyphens"), "{id}: {refusal}");
    }
    // One that is there nevertheless does not stop a migration that writes the table anew.
    store.run(&format!("PRAGMA ignore_check_constraints = ON; {}", insert(upper)));
    store.start("type Tag { id: UUID! note: String }").unwrap();
    assert_eq!(store.rows("SELECT id FROM tags ORDER BY id"), [upper, lower]);
    assert!(store.refusal(&insert(&upper.replace("92", "93"))).contains("uuid_in_lower_case_with_hyphens"));
}

#[test]
fn external_objects_survive_a_table_rebuild() {
    let store = Store::with(
        On::Sqlite,
        "type User { id: ID! name: String! note: String }",
        "INSERT INTO users (name) VALUES ('Ann')",
    );
    store.run(
        "ALTER TABLE users ADD COLUMN theirs TEXT DEFAULT 'x';
         CREATE INDEX their_index ON users (theirs);
         CREATE TABLE their_log (name);
         CREATE TABLE their_table (user INTEGER REFERENCES users(id));
         INSERT INTO their_table VALUES (1);
         CREATE TRIGGER their_trigger AFTER INSERT ON users BEGIN INSERT INTO their_log VALUES (NEW.name); END;
         CREATE VIEW their_view AS SELECT theirs FROM users;",
    );
    store.apply("type User { id: ID! name: String }", &["User.note"]).unwrap();
    store.run("INSERT INTO users (name) VALUES ('Bob')");
    assert_eq!(store.rows("SELECT id, name, theirs FROM users"), ["1|Ann|x", "2|Bob|x"]);
    assert_eq!(store.rows("SELECT * FROM their_log"), ["Bob"]);
    assert_eq!(store.rows("SELECT * FROM their_view"), ["x", "x"]);
    assert_eq!(store.rows("SELECT count(*) FROM sqlite_master WHERE name = 'their_index'"), ["1"]);
    assert!(store.open().execute_batch("INSERT INTO their_table VALUES (7)").is_err());
    store.run("DELETE FROM users WHERE id = 2; INSERT INTO their_table VALUES (1)");
}

#[test]
fn interrupted_migration_leaves_nothing_half_done() {
    let sdl = "type Person @renamedFrom(name: \"User\") { id: ID! name: String! note: Int age: String mail: String }";
    let store = Store::with(
        On::Sqlite,
        OLD,
        "INSERT INTO users (name, note, age) VALUES ('Ann', 'hi', 7), ('Bob', '5', NULL)",
    );
    let before = store.dump();
    let model = model(sdl);
    let mut interrupted = 0;
    for steps in 1.. {
        let mut connection = store.open();
        let mut left = steps * 20;
        connection
            .progress_handler(
                1,
                Some(move || {
                    left -= 1;
                    left == 0
                }),
            )
            .unwrap();
        let mode = MigrationMode::Apply { allow_drop: vec!["Person.note".to_owned()] };
        let result =
            trefoil_sql::migrate::migrate_sqlite(&mut connection, &model, &everything(&model), &[], mode);
        connection.progress_handler(0, None::<fn() -> bool>).unwrap();
        let enforced = rows(&connection, "PRAGMA foreign_keys");
        drop(connection);
        // The very last interruptions come after the commit.
        if result.is_ok() || store.dump() != before {
            break;
        }
        assert_eq!(enforced, ["1"], "after {steps}");
        interrupted += 1;
    }
    assert_eq!(store.start(sdl).unwrap().steps, []);
    assert!(interrupted > 20, "only {interrupted} interruptions");
    assert_eq!(store.rows("SELECT id, name, note, age FROM people"), ["1|Ann|null|7", "2|Bob|5|null"]);
}
#[test]
fn log_image_holds_the_record_exactly() {
    let store = Store::with(On::Sqlite, SHOP, "");
    store.run(
        "INSERT INTO users (name, score, updated) VALUES ('A\"nn', 0.1 + 0.2, '2026-01-02T03:04:05.000000Z')",
    );
    store.run("INSERT INTO users (name, score) VALUES (x'00ff', 9e999)");
    store.run("DELETE FROM users WHERE id = 1");
    let image = r#"{"id":1,"_version":1,"name":"A\"nn","score":0.30000000000000004,"updated":"2026-01-02T03:04:05.000000Z"}"#;
    assert_eq!(store.rows("SELECT image FROM trefoil_changes WHERE record = 1"), [image, image]);
    assert_eq!(
        store.rows("SELECT image ->> 'name', image ->> 'score' FROM trefoil_changes WHERE record = 2"),
        ["null|null"]
    );
}
