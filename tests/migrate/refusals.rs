//! Migrations that are refused: at start, without `--allow-drop`, on a store of another program or a newer version.

use super::*;

on_both!(
    start_refuses_data_loss_and_unfit_values,
    plan_writes_nothing_and_shows_the_command,
    each_loss_needs_its_own_allow_drop,
    removed_type_needs_allow_drop_and_frees_its_name,
    database_of_another_program_is_left_alone,
    newer_or_damaged_store_is_refused,
    change_of_key_is_refused,
    hidden_key_does_not_become_a_natural_one,
    columns_beside_a_text_key_are_converted,
    values_do_not_become_records,
);

pub const OLD: &str = "type User { id: ID! name: String! note: String age: Int }";
const DATA: &str = "INSERT INTO users (name, note, age) VALUES ('Ann', 'hi', 7), ('Bob', NULL, NULL)";

/// The start refuses, says so, and leaves everything as it was.
fn check_refused(on: On, sdl: &str, says: &[&str]) {
    let store = Store::with(on, OLD, DATA);
    let before = store.dump();
    let error = store.start(sdl).expect_err(sdl);
    assert!(matches!(error, MigrateError::NeedsMigration(_)), "{error}");
    let text = error.to_string();
    for part in says.iter().chain(&["trefoil migrate --plan"]) {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
    assert_eq!(store.dump(), before);
    assert_eq!(store.start(OLD).expect("the old schema still fits").steps, []);
    store.run("INSERT INTO users (name) VALUES ('Eve')");
    assert_eq!(store.rows("SELECT max(id), count(*) FROM users"), ["3|3"]);
}

fn start_refuses_data_loss_and_unfit_values(on: On) {
    check_refused(
        on,
        "type User { id: ID! name: String! age: Int }",
        &["User.note: removed; lost: 1 value", "--allow-drop User.note"],
    );
    check_refused(on, "type Other { id: ID! }", &["User: removed; lost: 2 records", "--allow-drop User"]);
    check_refused(
        on,
        "type User { id: ID! name: String! note: String age: Int mail: String! }",
        &["User.mail: new required field, String, without a default; no value for 2 records", "@default"],
    );
    check_refused(
        on,
        "type User { id: ID! name: String! note: String! age: Int }",
        &["User.note: now required; no value in 1 record"],
    );
    check_refused(
        on,
        "type User { id: ID! name: String! note: String age: String }",
        &["User.age: changed from Int to String; converted: 1 value", "--apply"],
    );
    check_refused(
        on,
        "type User { id: ID! name: Int! note: String age: Int }",
        &["User.name: changed from String to Int; invalid: 2 of 2 values", "NOT POSSIBLE"],
    );
}

fn plan_writes_nothing_and_shows_the_command(on: On) {
    let store = Store::with(on, OLD, DATA);
    let before = store.dump();
    let sdl = "type User { id: ID! name: String! age: Long nick: String } type Tag { id: ID! }";
    assert_eq!(
        store.plan(sdl),
        "Tag: new type\n\
         User.nick: new field, String; null in 2 records\n\
         User.age: changed from Int to Long; converted: 1 value  [needs --apply]\n\
         User.note: removed; lost: 1 value  [LOSS: needs --apply --allow-drop User.note]\n\
         \n\
         To apply: trefoil migrate --apply --allow-drop User.note\n"
    );
    assert_eq!(store.dump(), before);
    assert_eq!(store.plan(OLD), "Nothing to do: the store matches the schema.\n");
    let empty = Store::empty(on);
    assert!(empty.plan(OLD).starts_with("User: new type\n"));
    // Neither does applying it to nothing: the first start makes the store, and seeds it.
    let report = empty.apply(OLD, &[]).unwrap();
    assert!(report.needs_seed && !report.is_applied);
    assert_eq!(empty.dump(), [""; 0]);
}

fn each_loss_needs_its_own_allow_drop(on: On) {
    let store = Store::with(on, OLD, DATA);
    let sdl = "type User { id: ID! name: String! }";
    let before = store.dump();
    let error = store.apply(sdl, &["User.note"]).unwrap_err().to_string();
    assert!(error.contains("User.age: removed"), "{error}");
    assert!(!error.contains("User.note:"), "{error}");
    let error = store.apply(sdl, &["User.note", "User.aeg"]).unwrap_err().to_string();
    assert!(error.contains("--allow-drop User.aeg") && error.contains("did you mean User.age?"), "{error}");
    assert_eq!(store.dump(), before);
    store.apply(sdl, &["User.note", "User.age"]).unwrap();
    assert_eq!(store.rows("SELECT * FROM users ORDER BY id"), ["1|Ann|1", "2|Bob|1"]);
}

fn removed_type_needs_allow_drop_and_frees_its_name(on: On) {
    let store = Store::with(on, OLD, DATA);
    store.apply("type Other { id: ID! }", &["User"]).unwrap();
    assert!(!store.relations().contains(&"users".to_owned()));
    store.start("type Other { id: ID! } type User { id: ID! mail: String }").unwrap();
    assert_eq!(store.rows("SELECT count(*) FROM trefoil_changes WHERE resource = 'User'"), ["0"]);
}

fn database_of_another_program_is_left_alone(on: On) {
    let store = Store::empty(on);
    store.run("CREATE TABLE \"Users\" (x int); CREATE TABLE things (x int); INSERT INTO things VALUES (1)");
    let error = store.start(OLD).unwrap_err().to_string();
    assert!(error.contains("Users") && !error.contains("things"), "{error}");
    assert_eq!(store.relations().len(), 2);
    assert!(store.start("type Order { id: ID! }").unwrap().needs_seed);
    assert_eq!(store.rows("SELECT * FROM things"), ["1"]);
}

fn newer_or_damaged_store_is_refused(on: On) {
    let store = Store::with(on, OLD, DATA);
    store.run("UPDATE trefoil_meta SET value = '2' WHERE key = 'format'");
    assert!(matches!(store.start(OLD), Err(MigrateError::NewerStore { found: 2 })));
    store.run("UPDATE trefoil_meta SET value = '1' WHERE key = 'format'");
    if on == On::Sqlite {
        store.run("DROP TRIGGER trefoil_users_created; DROP TRIGGER trefoil_users_updated; DROP TRIGGER trefoil_users_deleted");
    }
    store.run("ALTER TABLE users DROP COLUMN age");
    let error = store.start(OLD).unwrap_err().to_string();
    assert!(error.contains("users has no column age"), "{error}");
}

fn change_of_key_is_refused(on: On) {
    let changed = "type User { id: UUID! name: String! note: String age: Int }";
    check_refused(
        on,
        changed,
        &[
            "User: the ids change from counted integers to UUIDs",
            "export the records with the old schema, begin a new store",
        ],
    );
    let store = Store::with(on, OLD, DATA);
    let error = store.apply(changed, &[]).expect_err("no command converts ids");
    assert!(error.to_string().contains("the ids change from counted integers to UUIDs"), "{error}");
}

/// The refusal tells how to go on without the natural key, and that works.
fn hidden_key_does_not_become_a_natural_one(on: On) {
    let schema = |book: &str| format!("type Book {{ {book} }} extend type Query {{ books: [Book!]! }}");
    let old = schema("title: String! code: String!");
    let store = Store::with(on, &old, "INSERT INTO books (title, code) VALUES ('Emma', 'e1')");
    let error =
        store.start(&schema("title: String! code: String! @key(kind: TEXT)")).unwrap_err().to_string();
    assert!(error.contains("from counted integers to texts") && error.contains("`id: ID!`"), "{error}");
    store.start(&schema("id: ID! title: String! code: String! @unique")).expect("the way out");
    assert_eq!(store.rows("SELECT id, title, code FROM books"), ["1|Emma|e1"]);
}

/// The refusal names `@embedded`, which keeps the values.
fn values_do_not_become_records(on: On) {
    let old = "type User { id: ID! name: String! home: Address others: [Address!] } type Address { street: String! }";
    let data =
        r#"INSERT INTO users (name, home, others) VALUES ('Ann', '{"street":"A"}', '[{"street":"B"}]')"#;
    let store = Store::with(on, old, data);
    let changed = old.replace("{ street", "{ id: ID street");
    for error in [store.start(&changed).unwrap_err(), store.apply(&changed, &[]).unwrap_err()] {
        let text = error.to_string();
        for field in ["home", "others"] {
            let refusal = format!("User.{field}: Address is now a record type; 1 value would be lost");
            assert!(text.contains(&refusal) && text.contains("`type Address @embedded`"), "{text}");
        }
    }
    store.start(&changed.replace("type Address", "type Address @embedded")).expect("the way out");
    assert_eq!(store.rows("SELECT count(*) FROM users WHERE home IS NOT NULL"), ["1"]);
    // A record type of the same name is nothing to a field that is removed, or becomes something else.
    let other = "type User { id: ID! name: String! home: JSON } type Address { id: ID! street: String! }";
    store.apply(other, &["User.others"]).expect("a loss that is allowed");
    assert_eq!(store.rows("SELECT count(*) FROM users WHERE home IS NOT NULL"), ["1"]);
}

fn columns_beside_a_text_key_are_converted(on: On) {
    for key in ["UUID!", "ID! @key(kind: TEXT)"] {
        let old = format!("type Shelf {{ id: {key} name: String! parent: Shelf }}");
        let [one, two] = ["0190163d-8694-739b-aea5-966c26f8ad91", "0190163d-8694-739b-aea5-966c26f8ad92"];
        let data = format!(
            "INSERT INTO shelves (id, name) VALUES ('{one}', '12'); \
             INSERT INTO shelves (id, name, \"parentId\") VALUES ('{two}', '7', '{one}')"
        );
        let store = Store::with(on, &old, &data);
        let new =
            format!("type Shelf {{ id: {key} name: Int! parent: Shelf size: Int! @default(value: 3) }}");
        store.apply(&new, &[]).expect("numbers in texts fit");
        let rows = store.rows("SELECT id, name + 1, \"parentId\", size FROM shelves ORDER BY id");
        assert_eq!(rows, [format!("{one}|13|null|3"), format!("{two}|8|{one}|3")], "{key}");
    }
}
