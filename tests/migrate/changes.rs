//! Schema changes of fields, types and indexes that keep the data.

use super::*;

on_both!(
    new_fields_are_filled_at_start,
    ids_are_not_reused_after_a_rebuild,
    migration_keeps_versions_and_logs_no_changes,
    field_becomes_required_or_optional,
    required_field_on_an_empty_type_needs_apply,
    renamed_fields_and_types_keep_their_data,
    column_is_renamed_when_its_field_needs_it,
    name_can_move_to_another_field_or_type,
    unique_index_refuses_equal_converted_values,
    new_unique_index_refuses_duplicates,
    unique_index_can_be_of_two_columns,
    unique_index_can_ignore_case,
    indexes_are_added_and_dropped_at_start,
    on_delete_rule_can_change,
    external_index_on_a_removed_field_stops_migration,
);

fn new_fields_are_filled_at_start(on: On) {
    let store = Store::with(
        on,
        "type User { id: ID! name: String! }",
        "INSERT INTO users (name) VALUES ('Ann'), ('Bob')",
    );
    let report = store.start(
        "enum Level { LOW HIGH }
         type User { id: ID! name: String! nick: String count: Int! @default(value: 3) ratio: Float @default(value: 0.5)
           level: Level! @default(value: HIGH) quote: String! @default(value: \"it's\") tags: [String!]
           born: DateTime! @createdAt price: Decimal! @default(value: \"1.50\") flag: Boolean! @default(value: true) }",
    );
    assert_eq!(report.unwrap().steps.len(), 9);
    assert_eq!(
        store.rows("SELECT name, nick, count, ratio, level, quote, tags, price, flag, _version, born IS NOT NULL FROM users ORDER BY id"),
        ["Ann|null|3|0.5|HIGH|it's|null|1.50|1|1|1", "Bob|null|3|0.5|HIGH|it's|null|1.50|1|1|1"]
    );
    assert_eq!(store.rows("SELECT count(*) FROM trefoil_changes WHERE deed <> 'created'"), ["0"]);
    let image =
        "SELECT image ->> 'level', image ->> 'ratio', image ->> 'nick' FROM trefoil_changes WHERE number = 1";
    assert_eq!(store.rows(image), ["HIGH|0.5|null"]);
    store.run("INSERT INTO users (name) VALUES ('Eve')");
    assert_eq!(store.rows("SELECT count, level FROM users WHERE id = 3"), ["3|HIGH"]);
}

/// A later version may find that a column cannot have its name.
fn column_is_renamed_when_its_field_needs_it(on: On) {
    let sdl = "type User { id: ID! xmin: Int }";
    let store = Store::with(on, sdl, "INSERT INTO users (xmin_) VALUES (7)");
    store.run("ALTER TABLE users RENAME COLUMN xmin_ TO former");
    store
        .run("UPDATE trefoil_meta SET value = replace(value, '\"xmin_\"', '\"former\"') WHERE key = 'model'");
    assert_eq!(store.start(sdl).unwrap().steps.len(), 1);
    assert_eq!(store.rows("SELECT xmin_ FROM users"), ["7"]);
    assert_eq!(store.start(sdl).unwrap().steps.len(), 0);
}

fn ids_are_not_reused_after_a_rebuild(on: On) {
    let store = Store::with(
        on,
        "type User { id: ID! name: String! }",
        "INSERT INTO users (name) VALUES ('A'), ('B'), ('C')",
    );
    store.run("DELETE FROM users WHERE id > 1");
    store.start("type User { id: ID! name: String }").unwrap();
    store.run("INSERT INTO users (name) VALUES (NULL)");
    assert_eq!(store.rows("SELECT id, name FROM users"), ["1|A", "4|null"]);
    store.run("DELETE FROM users");
    store.apply("type User { id: ID! }", &["User.name"]).unwrap();
    store.start("type Member @renamedFrom(name: \"User\") { id: ID! name: String }").unwrap();
    store.run("INSERT INTO members (name) VALUES ('E')");
    assert_eq!(store.rows("SELECT id, name FROM members"), ["5|E"]);
}

fn migration_keeps_versions_and_logs_no_changes(on: On) {
    let store = Store::with(
        on,
        "type User { id: ID! name: String! }",
        "INSERT INTO users (name) VALUES ('A'), ('B')",
    );
    store.run("UPDATE users SET name = 'C' WHERE id = 2");
    store.apply("type User { id: ID! name: String title: Int @renamedFrom(name: \"x\") }", &[]).unwrap();
    assert_eq!(store.rows("SELECT id, _version FROM users ORDER BY id"), ["1|1", "2|2"]);
    assert_eq!(store.rows("SELECT count(*) FROM trefoil_changes"), ["3"]);
    store.run("UPDATE users SET title = 1");
    assert_eq!(store.rows("SELECT id, _version FROM users ORDER BY id"), ["1|2", "2|3"]);
    assert_eq!(store.rows("SELECT count(*) FROM trefoil_changes"), ["5"]);
}

fn field_becomes_required_or_optional(on: On) {
    let store = Store::with(
        on,
        "type User { id: ID! a: Int b: Int c: Int! }",
        "INSERT INTO users (a, c) VALUES (1, 1), (2, 2)",
    );
    let sdl = "type User { id: ID! a: Int! b: Int! @default(value: 9) c: Int }";
    let plan = store.plan(sdl);
    assert!(plan.contains("User.a: now required; every record has a value  [needs --apply]"), "{plan}");
    assert!(plan.contains("User.b: now required; 9 in 2 records without a value  [needs --apply]"), "{plan}");
    assert!(plan.contains("User.c: no longer required\n"), "{plan}");
    store.apply(sdl, &[]).unwrap();
    assert_eq!(store.rows("SELECT a, b, c FROM users ORDER BY id"), ["1|9|1", "2|9|2"]);
    assert_eq!(store.rows("SELECT image ->> 'b' FROM trefoil_changes"), ["9", "9"]);
    store.refusal("INSERT INTO users (a) VALUES (NULL)");
    store.run("INSERT INTO users (a) VALUES (3)");
    assert_eq!(store.rows("SELECT a, b, c FROM users WHERE a = 3"), ["3|9|null"]);
}

fn required_field_on_an_empty_type_needs_apply(on: On) {
    let store = Store::with(on, "type User { id: ID! }", "");
    let sdl = "type User { id: ID! name: String! }";
    assert!(matches!(store.start(sdl), Err(MigrateError::NeedsMigration(_))));
    store.apply(sdl, &[]).unwrap();
    store.refusal("INSERT INTO users DEFAULT VALUES");
}

fn renamed_fields_and_types_keep_their_data(on: On) {
    let store = Store::with(
        on,
        "type User { id: ID! name: String! @unique boss: User orders: [Order] }
         type Order { id: ID! user: User! @reference(onDelete: CASCADE) item: String }",
        "INSERT INTO users (name) VALUES ('Ann'), ('Bob'); UPDATE users SET \"bossId\" = 1 WHERE id = 2;
         INSERT INTO orders (\"userId\", item) VALUES (2, 'tea');
         CREATE VIEW foreign_view AS SELECT name, \"bossId\" FROM users",
    );
    let second = "type Person @renamedFrom(name: \"User\") {
           id: ID! fullName: String! @unique @renamedFrom(name: \"name\") chief: Person @renamedFrom(name: \"boss\") orders: [Order] }
         type Order { id: ID! buyer: Person! @reference(onDelete: CASCADE) @renamedFrom(name: \"user\") item: String }";
    let report = store.start(second).unwrap();
    assert!(report.steps.iter().any(|step| step.to_string() == "Person: renamed from User; kept: 2 records"));
    assert_eq!(store.rows("SELECT * FROM people ORDER BY id"), ["1|Ann|null|1", "2|Bob|1|2"]);
    assert_eq!(store.rows("SELECT id, \"buyerId\", item FROM orders"), ["1|2|tea"]);
    assert_eq!(store.rows("SELECT * FROM foreign_view ORDER BY 1"), ["Ann|null", "Bob|1"]);
    assert_eq!(
        store.rows(
            "SELECT resource, image ->> 'fullName', image ->> 'chiefId' FROM trefoil_changes WHERE record = 2 ORDER BY number"
        ),
        ["Person|Bob|null", "Person|Bob|1"]
    );
    assert_eq!(store.start(second).unwrap().steps, []);
    let fresh = Store::with(on, second, "");
    assert_eq!(store.definitions(), fresh.definitions());
    // References still hold, under the new names.
    store.refusal("UPDATE orders SET \"buyerId\" = 77");
    store.run("UPDATE people SET \"chiefId\" = NULL; DELETE FROM people WHERE id = 2");
    assert_eq!(store.rows("SELECT count(*) FROM orders"), ["0"]);
    let third = "type Human @renamedFrom(name: \"Person\") { id: ID! label: String! @unique @renamedFrom(name: \"fullName\") orders: [Order]
           chief: Human }
         type Order { id: ID! buyer: Human! @reference(onDelete: CASCADE) item: String }";
    store.start(third).unwrap();
    assert_eq!(store.rows("SELECT id, label FROM humans"), ["1|Ann"]);
}

fn name_can_move_to_another_field_or_type(on: On) {
    let store = Store::with(
        on,
        "type Owner { id: ID! pets: [Pet] } type Pet { id: ID! owner: Owner code: Int name: String }",
        "INSERT INTO owners DEFAULT VALUES; INSERT INTO pets (\"ownerId\", code, name) VALUES (1, 5, 'Rex')",
    );
    // The column of `owner` is `ownerId`, and so is that of the field that was called `code`.
    let sdl =
        "type Owner { id: ID! } type Pet { id: ID! ownerId: Int @renamedFrom(name: \"code\") name: String }";
    store.apply(sdl, &["Pet.owner"]).unwrap();
    assert_eq!(store.rows("SELECT \"ownerId\", name FROM pets"), ["5|Rex"]);
    let sdl =
        "type Owner { id: ID! } type Pet { id: ID! ownerId: Int label: String @renamedFrom(name: \"name\") }";
    store.start(sdl).unwrap();
    let sdl = "type Owner { id: ID! } type Pet { id: ID! ownerId: Int label: String name: String }";
    store.start(sdl).unwrap();
    assert_eq!(store.rows("SELECT label, name FROM pets"), ["Rex|null"]);
    // `Pets` is another type, though its table has the same name.
    store.apply("type Owner { id: ID! } type Pets { id: ID! size: Int }", &["Pet"]).unwrap();
    assert_eq!(store.rows("SELECT count(*) FROM pets"), ["0"]);
    store.run("INSERT INTO pets (size) VALUES (3); UPDATE pets SET size = 4");
    assert_eq!(store.rows("SELECT id, size, _version FROM pets"), ["1|4|2"]);
}

fn unique_index_refuses_equal_converted_values(on: On) {
    let store = Store::with(on, "type T { id: ID! v: String }", "INSERT INTO ts (v) VALUES ('1'), ('1.0')");
    let before = store.dump();
    let error = store.apply("type T { id: ID! v: Int @unique }", &[]).unwrap_err().to_string();
    let says = match on {
        On::Sqlite => "UNIQUE constraint failed: ts.v",
        On::Postgres => "could not create unique index \"ts_v_unique\" (Key (v)=(1) is duplicated.)",
    };
    assert!(error.contains(says), "{error}");
    assert_eq!(store.dump(), before);
}

fn new_unique_index_refuses_duplicates(on: On) {
    let store = Store::with(
        on,
        "type Item { id: ID! code: String price: Decimal }",
        "INSERT INTO items (code, price) VALUES ('a', '1.50'), ('a', '1.5'), (NULL, '2'), (NULL, NULL)",
    );
    let codes = "type Item { id: ID! code: String @unique price: Decimal }";
    let prices = "type Item { id: ID! code: String price: Decimal @unique }";
    for sdl in [codes, prices] {
        let plan = store.plan(sdl);
        assert!(plan.contains("repeated: 1 value") && plan.contains("NOT POSSIBLE"), "{plan}");
        assert!(matches!(store.start(sdl), Err(MigrateError::NeedsMigration(_))));
        assert!(matches!(store.apply(sdl, &[]), Err(MigrateError::Refused(_))));
    }
    store.run("UPDATE items SET code = 'b', price = '15.0' WHERE id = 2");
    store.start(codes).unwrap();
    store.refusal("INSERT INTO items (code) VALUES ('a')");
    store.start(prices).unwrap();
    store.run("INSERT INTO items (code) VALUES ('a')");
    store.refusal("INSERT INTO items (price) VALUES ('15')");
    store.run("INSERT INTO items (price) VALUES ('150'), ('0.15')");
}

fn unique_index_can_be_of_two_columns(on: On) {
    let plain = "type Team { id: ID! } type Member { id: ID! team: Team name: String }";
    let within =
        "type Team { id: ID! } type Member { id: ID! team: Team name: String @unique(within: \"team\") }";
    let ignoring = "type Team { id: ID! }
        type Member { id: ID! team: Team name: String @unique(within: \"team\", ignoreCase: true) }";
    let store = Store::with(
        on,
        plain,
        "INSERT INTO teams (id) VALUES (1), (2); \
         INSERT INTO members (\"teamId\", name) VALUES (1, 'a'), (1, 'a'), (2, 'a'), (NULL, 'a'), (NULL, 'a'), (1, 'A')",
    );
    let plan = store.plan(within);
    assert!(plan.contains("unique index on teamId, name; repeated: 1 value"), "{plan}");
    assert!(store.plan(ignoring).contains("repeated: 2 values"), "{}", store.plan(ignoring));
    assert!(matches!(store.start(within), Err(MigrateError::NeedsMigration(_))));
    store.run("DELETE FROM members WHERE id = 2");
    store.start(within).unwrap();
    store.refusal("INSERT INTO members (\"teamId\", name) VALUES (1, 'a')");
    store.run("INSERT INTO members (\"teamId\", name) VALUES (2, 'b'), (NULL, 'a')");
    assert!(!store.plan(within).contains("index"), "{}", store.plan(within));
    store.run("DELETE FROM members WHERE id = 6");
    store.start(ignoring).unwrap();
    store.refusal("INSERT INTO members (\"teamId\", name) VALUES (1, 'A')");
    assert!(!store.plan(ignoring).contains("index"), "{}", store.plan(ignoring));
    store.start(plain).unwrap();
    store.run("INSERT INTO members (\"teamId\", name) VALUES (1, 'a')");
    // A reference that is new leads nowhere yet, so that nothing is repeated.
    let other = "type Team { id: ID! } type Member { id: ID! team: Team club: Team name: String @unique(within: \"club\") }";
    store.start(other).unwrap();
}

fn unique_index_can_ignore_case(on: On) {
    let exact = "type Item { id: ID! code: String @unique }";
    let ignoring = "type Item { id: ID! code: String @unique(ignoreCase: true) }";
    let store = Store::with(
        on,
        exact,
        "INSERT INTO items (code) VALUES ('Ab'), ('aB'), ('AB'), ('Ä'), ('ä'), (NULL)",
    );
    let plan = store.plan(ignoring);
    assert!(plan.contains("unique index on code, ignoring case; repeated: 2 values"), "{plan}");
    assert!(plan.contains("NOT POSSIBLE"), "{plan}");
    assert!(matches!(store.start(ignoring), Err(MigrateError::NeedsMigration(_))));
    store.run("DELETE FROM items WHERE id IN (2, 3)");
    store.start(ignoring).unwrap();
    assert_eq!(store.indexes("items"), ["items_code_unique"]);
    store.refusal("INSERT INTO items (code) VALUES ('AB')");
    // Letters beyond ASCII keep their case, on both stores.
    store.refusal("INSERT INTO items (code) VALUES ('ä')");
    store.run("INSERT INTO items (code) VALUES ('Ö'), ('ö')");
    // Nothing to do, so nothing is planned.
    assert!(!store.plan(ignoring).contains("index"), "{}", store.plan(ignoring));
    store.start(ignoring).unwrap();
    store.start(exact).unwrap();
    store.run("INSERT INTO items (code) VALUES ('AB')");
    store.refusal("INSERT INTO items (code) VALUES ('AB')");
}

fn indexes_are_added_and_dropped_at_start(on: On) {
    let store = Store::with(
        on,
        "type Item @index(fields: [\"a\", \"b\"]) { id: ID! a: Int b: Int }",
        "INSERT INTO items (a) VALUES (1)",
    );
    assert_eq!(store.indexes("items"), ["items_a_b_index"]);
    store.start("type Item @index(fields: [\"b\"]) { id: ID! a: Int b: Int }").unwrap();
    assert_eq!(store.indexes("items"), ["items_b_index"]);
}

fn on_delete_rule_can_change(on: On) {
    let refuse = "type User { id: ID! orders: [Order] } type Order { id: ID! user: User }";
    let cascade = "type User { id: ID! orders: [Order] } type Order { id: ID! user: User @reference(onDelete: CASCADE) }";
    let store = Store::with(
        on,
        refuse,
        "INSERT INTO users DEFAULT VALUES; INSERT INTO orders (\"userId\") VALUES (1)",
    );
    store.refusal("DELETE FROM users");
    store.start(cascade).unwrap();
    store.run("DELETE FROM users");
    assert_eq!(store.rows("SELECT count(*) FROM orders"), ["0"]);
}

fn external_index_on_a_removed_field_stops_migration(on: On) {
    let store =
        Store::with(on, "type User { id: ID! note: String }", "CREATE INDEX their_index ON users (note)");
    let before = store.dump();
    let error = store.apply("type User { id: ID! }", &["User.note"]).unwrap_err().to_string();
    assert!(error.contains("their_index"), "{error}");
    assert_eq!(store.dump(), before);
}
