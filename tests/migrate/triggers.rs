//! Record versions and the change log, also for writes of other programs.

use super::*;

on_both!(
    external_writes_are_versioned_and_logged_once,
    log_image_is_the_same_on_both_stores,
    second_start_changes_nothing,
    cascade_deletes_are_logged,
    log_image_holds_very_many_fields,
    updated_at_follows_external_writes,
    id_never_changes,
    only_subscribed_changes_are_logged,
    dropped_triggers_and_indexes_are_restored,
);

pub const SHOP: &str = "
type User { id: ID! name: String! score: Float updated: DateTime @updatedAt orders: [Order] notes: [Note] }
type Order { id: ID! user: User! @reference(onDelete: CASCADE) item: String! }
type Note { id: ID! user: User @reference(onDelete: SET_NULL) text: String }";

const LOG: &str = "SELECT number, resource, deed, record, version FROM trefoil_changes ORDER BY number";

fn second_start_changes_nothing(on: On) {
    let store = Store::empty(on);
    let report = store.start(SHOP).unwrap();
    assert!(report.needs_seed);
    let before = store.dump();
    let again = store.start(SHOP).unwrap();
    assert!(again.needs_seed, "still without a record");
    assert_eq!(again.steps, []);
    assert_eq!(store.dump(), before);
    assert_eq!(store.rows("SELECT value FROM trefoil_meta WHERE key = 'format'"), ["1"]);
    assert_eq!(store.rows("SELECT length(value) FROM trefoil_meta WHERE key = 'store'"), ["32"]);
}

fn cascade_deletes_are_logged(on: On) {
    for recursive in ["", "PRAGMA recursive_triggers = ON;"] {
        let recursive = if on == On::Sqlite { recursive } else { "" };
        let store = Store::with(on, SHOP, "INSERT INTO users (name) VALUES ('Ann');");
        store.run("INSERT INTO orders (\"userId\", item) VALUES (1, 'tea'), (1, 'jam')");
        store.run("INSERT INTO notes (\"userId\") VALUES (1)");
        store.run("DELETE FROM trefoil_changes");
        store.run(&format!("{recursive} DELETE FROM users WHERE id = 1"));
        let mut deeds = store.rows("SELECT resource, deed, record, version FROM trefoil_changes");
        deeds.sort();
        assert_eq!(deeds, ["Note|updated|1|2", "Order|deleted|1|1", "Order|deleted|2|1", "User|deleted|1|1"]);
        assert_eq!(store.rows("SELECT id, \"userId\", _version FROM notes"), ["1|null|2"]);
    }
}

fn log_image_holds_very_many_fields(on: On) {
    let fields: String = (0..150).map(|at| format!("f{at}: Int\n")).collect();
    let store = Store::with(
        on,
        &format!("type Wide {{ id: ID! {fields} }}"),
        "INSERT INTO wides (f0, f149) VALUES (7, 8)",
    );
    let read = "SELECT image ->> 'f0', image ->> 'f149', (SELECT count(*) FROM json_each(image)) FROM trefoil_changes";
    assert_eq!(store.rows(read), ["7|8|152"]);
}

fn updated_at_follows_external_writes(on: On) {
    let store = Store::with(
        on,
        SHOP,
        "INSERT INTO users (name, updated) VALUES ('Ann', '2001-01-01T00:00:00.000000Z')",
    );
    store.run("UPDATE users SET name = 'Eve'");
    assert_eq!(store.rows("SELECT updated > '2020-01-01' FROM users"), ["1"]);
    store.run("UPDATE users SET updated = '2001-01-01T00:00:00.000000Z'");
    assert_eq!(store.rows("SELECT updated, _version FROM users"), ["2001-01-01T00:00:00.000000Z|3"]);
}

fn id_never_changes(on: On) {
    let store = Store::with(on, SHOP, "INSERT INTO users (name) VALUES ('Ann')");
    let error = store.refusal("UPDATE users SET id = 5");
    assert!(error.contains("never changes"), "{error}");
    store.run("UPDATE users SET id = id, name = 'Eve'");
    assert_eq!(store.rows("SELECT id, name FROM users"), ["1|Eve"]);
}

fn only_subscribed_changes_are_logged(on: On) {
    let store = Store::empty(on);
    let model = model(SHOP);
    let user = model.find_record("User").unwrap();
    store.prepare(model, &[(user, ChangeKind::Created)], MigrationMode::Start).unwrap();
    store.run("INSERT INTO users (name) VALUES ('Ann'); UPDATE users SET name = 'Eve'");
    store.run("INSERT INTO orders (\"userId\", item) VALUES (1, 'tea'); DELETE FROM users");
    assert_eq!(store.rows(LOG), ["1|User|created|1|1"]);
    let report = store.start(SHOP).unwrap();
    assert_eq!(report.steps.len(), 3, "{:?}", report.steps);
    store.run("INSERT INTO users (name) VALUES ('Bob'); DELETE FROM users");
    assert_eq!(store.rows(LOG), ["1|User|created|1|1", "2|User|created|2|1", "3|User|deleted|2|1"]);
}

fn dropped_triggers_and_indexes_are_restored(on: On) {
    let store = Store::with(on, SHOP, "");
    let before = store.dump();
    store.run(match on {
        On::Sqlite => "DROP INDEX \"orders_userId_index\"; DROP TRIGGER trefoil_users_version",
        On::Postgres => "DROP INDEX \"orders_userId_index_by_id\"; DROP TRIGGER trefoil_version ON users; ALTER TABLE users DISABLE TRIGGER trefoil_created; \
             CREATE OR REPLACE FUNCTION trefoil_count_version() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    });
    assert_eq!(store.start(SHOP).unwrap().steps, []);
    assert_eq!(store.dump(), before);
}

fn external_writes_are_versioned_and_logged_once(on: On) {
    for recursive in ["", "PRAGMA recursive_triggers = ON;"] {
        let recursive = if on == On::Sqlite { recursive } else { "" };
        let store = Store::with(on, SHOP, "");
        store.run(&format!(
            "{recursive} INSERT INTO users (name) VALUES ('Ann'), ('Bob');
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
            "{recursive}"
        );
        assert_eq!(store.rows("SELECT id, name, _version FROM users"), ["1|Own|3"]);
    }
}

fn log_image_is_the_same_on_both_stores(on: On) {
    let sdl = "enum E { A } type Part { x: Int }
        type T { id: ID! text: String flag: Boolean int: Int long: Long float: Float price: Decimal day: Date at: DateTime
          key: UUID json: JSON list: [Int] part: Part e: E other: T none: String }";
    let store = Store::with(
        on,
        sdl,
        "INSERT INTO ts (text, flag, int, long, float, price, day, at, key, json, list, part, e, \"otherId\") VALUES
           ('A\"nn \\ é', '1', 7, 9007199254740993, 0.1, '1.50', '2026-02-03', '2026-01-02T03:04:05.000006Z',
            '0b8a4ab5-0c0c-4b1a-9a1f-7d2f3d1b8a11', '{ \"b\": 1, \"a\": [2] }', '[1, 2]', '{\"x\":1}', 'A', 1);
         DELETE FROM ts",
    );
    let image = r#"{"id":1,"_version":1,"text":"A\"nn \\ é","flag":1,"int":7,"long":9007199254740993,"float":0.1,"price":"1.50","day":"2026-02-03","at":"2026-01-02T03:04:05.000006Z","key":"0b8a4ab5-0c0c-4b1a-9a1f-7d2f3d1b8a11","json":"{ \"b\": 1, \"a\": [2] }","list":"[1, 2]","part":"{\"x\":1}","e":"A","otherId":1,"none":null}"#;
    assert_eq!(
        store.rows("SELECT deed, image FROM trefoil_changes ORDER BY number"),
        [format!("created|{image}"), format!("deleted|{image}")]
    );
}
