//! Versions and the change log, whoever writes.

use super::*;

const SHOP: &str = "
type User { id: ID! name: String! score: Float updated: DateTime @updatedAt orders: [Order] notes: [Note] }
type Order { id: ID! user: User! @reference(onDelete: CASCADE) item: String! }
type Note { id: ID! user: User @reference(onDelete: SET_NULL) text: String }";

const LOG: &str = "SELECT number, resource, deed, record, version FROM trefoil_changes ORDER BY number";

#[test]
fn an_empty_store_gets_everything_once() {
    let store = Store::empty();
    let report = store.start(SHOP).unwrap();
    assert!(report.fresh);
    let before = store.dump();
    let again = store.start(SHOP).unwrap();
    assert!(again.fresh, "still without a record");
    assert_eq!(again.steps, []);
    assert_eq!(store.dump(), before);
    assert_eq!(store.rows("SELECT value FROM trefoil_meta WHERE key = 'format'"), ["1"]);
    assert_eq!(store.rows("SELECT length(value) FROM trefoil_meta WHERE key = 'store'"), ["32"]);
}

#[test]
fn other_programs_writes_are_versioned_and_logged_once() {
    for recursive in ["OFF", "ON"] {
        let store = Store::with(SHOP, "");
        store.run(&format!(
            "PRAGMA recursive_triggers = {recursive};
             INSERT INTO users (name) VALUES ('Ann'), ('Bob');
             UPDATE users SET name = name || '!';
             UPDATE users SET name = 'Own', _version = _version + 1 WHERE id = 1;
             INSERT INTO users (id, name) VALUES (2, 'Bea') ON CONFLICT (id) DO UPDATE SET name = excluded.name;
             DELETE FROM users WHERE id = 2;"
        ));
        assert_eq!(
            store.rows(LOG),
            [
                "1|User|created|1|1",
                "2|User|created|2|1",
                "3|User|updated|1|2",
                "4|User|updated|2|2",
                "5|User|updated|1|3",
                "6|User|updated|2|3",
                "7|User|deleted|2|3",
            ],
            "recursive_triggers {recursive}"
        );
        assert_eq!(store.rows("SELECT id, name, _version FROM users"), ["1|Own|3"]);
    }
}

#[test]
fn cascades_are_logged_like_any_other_change() {
    for recursive in ["OFF", "ON"] {
        let store = Store::with(SHOP, "INSERT INTO users (name) VALUES ('Ann');");
        store.run("INSERT INTO orders (userId, item) VALUES (1, 'tea'), (1, 'jam')");
        store.run("INSERT INTO notes (userId) VALUES (1); DELETE FROM trefoil_changes");
        store.run(&format!("PRAGMA recursive_triggers = {recursive}; DELETE FROM users WHERE id = 1"));
        let mut deeds = store.rows("SELECT resource, deed, record, version FROM trefoil_changes");
        deeds.sort();
        assert_eq!(deeds, ["Note|updated|1|2", "Order|deleted|1|1", "Order|deleted|2|1", "User|deleted|1|1"]);
        assert_eq!(store.rows("SELECT id, userId, _version FROM notes"), ["1|null|2"]);
    }
}

#[test]
fn an_image_holds_the_record_exactly() {
    let store = Store::with(SHOP, "");
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

#[test]
fn a_record_of_very_many_fields_has_an_image() {
    let fields: String = (0..150).map(|at| format!("f{at}: Int\n")).collect();
    let store = Store::with(
        &format!("type Wide {{ id: ID! {fields} }}"),
        "INSERT INTO wides (f0, f149) VALUES (7, 8)",
    );
    let read = "SELECT image ->> 'f0', image ->> 'f149', (SELECT count(*) FROM json_each(image)) FROM trefoil_changes";
    assert_eq!(store.rows(read), ["7|8|152"]);
}

#[test]
fn updated_at_follows_other_programs() {
    let store =
        Store::with(SHOP, "INSERT INTO users (name, updated) VALUES ('Ann', '2001-01-01T00:00:00.000000Z')");
    store.run("UPDATE users SET name = 'Eve'");
    let read = "SELECT updated > '2020', length(updated), updated GLOB '*T*.*Z' FROM users";
    assert_eq!(store.rows(read), ["1|27|1"]);
    store.run("UPDATE users SET updated = '2001-01-01T00:00:00.000000Z'");
    assert_eq!(store.rows("SELECT updated, _version FROM users"), ["2001-01-01T00:00:00.000000Z|3"]);
}

#[test]
fn an_id_never_changes() {
    let store = Store::with(SHOP, "INSERT INTO users (name) VALUES ('Ann')");
    let error = store.open().execute_batch("UPDATE users SET id = 5").unwrap_err();
    assert!(error.to_string().contains("never changes"), "{error}");
    store.run("UPDATE users SET id = id, name = 'Eve'");
    assert_eq!(store.rows("SELECT id, name FROM users"), ["1|Eve"]);
}

#[test]
fn only_what_is_subscribed_to_is_logged() {
    let store = Store::empty();
    let model = model(SHOP);
    let user = model.record_named("User").unwrap();
    prepare(&mut store.open(), &model, &[(user, Deed::Created)], &[], Mode::Start).unwrap();
    store.run("INSERT INTO users (name) VALUES ('Ann'); UPDATE users SET name = 'Eve'");
    store.run("INSERT INTO orders (userId, item) VALUES (1, 'tea'); DELETE FROM users");
    assert_eq!(store.rows(LOG), ["1|User|created|1|1"]);
    let report = store.start(SHOP).unwrap();
    assert_eq!(report.steps.len(), 3, "{:?}", report.steps);
    store.run("INSERT INTO users (name) VALUES ('Bob'); DELETE FROM users");
    assert_eq!(store.rows(LOG), ["1|User|created|1|1", "2|User|created|2|1", "3|User|deleted|2|1"]);
}

#[test]
fn what_another_program_dropped_comes_back() {
    let store = Store::with(SHOP, "");
    let before = store.dump();
    store.run("DROP TRIGGER trefoil_users_version; DROP INDEX \"orders_userId_index\"");
    assert_eq!(store.start(SHOP).unwrap().steps, []);
    assert_eq!(store.dump(), before);
}
