//! Migrations on PostgreSQL only: schemas, search paths, sequences, TRUNCATE, views and triggers of other programs.

use super::bench::on_client;
use super::*;

const OLD: &str = "type User { id: ID! name: String! note: String }";

#[test]
fn chosen_ids_are_never_reused() {
    let store = Store::with(On::Postgres, OLD, "INSERT INTO users (name) VALUES ('first')");
    store.run("INSERT INTO users (id, name) VALUES (5, 'chosen'); INSERT INTO users (name) VALUES ('next')");
    store.run("INSERT INTO users (id, name) VALUES (3, 'below'); INSERT INTO users (name) VALUES ('next')");
    store.run("INSERT INTO users (id, name) VALUES (1000000, 'far'); DELETE FROM users WHERE id = 1000000");
    store.run("INSERT INTO users (name) VALUES ('next')");
    let ids = "SELECT id, name FROM users ORDER BY id";
    assert_eq!(store.rows(ids), ["1|first", "3|below", "5|chosen", "6|next", "7|next", "1000001|next"]);
}

#[test]
fn concurrent_chosen_ids_advance_the_sequence() {
    let store = Store::with(On::Postgres, OLD, "");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let url = store.url().to_owned();
                tokio::spawn(async move {
                    let client = super::bench::connect(&url).await;
                    for write in 0..20 {
                        let id = ((writer * 13 + write * 29) % 160 + 1) * 7_000;
                        let sql =
                            format!("INSERT INTO users (id, name) VALUES ({id}, 'x') ON CONFLICT DO NOTHING");
                        client.batch_execute(&sql).await.unwrap();
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }
    });
    store.run("INSERT INTO users (name) VALUES ('next')");
    assert_eq!(store.rows("SELECT max(id) = max(id) FILTER (WHERE name = 'next') FROM users"), ["1"]);
}

#[test]
fn search_path_of_another_program_does_not_matter() {
    let store = Store::with(On::Postgres, OLD, "CREATE SCHEMA theirs");
    store.run(
        "SET search_path = theirs; SET DateStyle = 'German'; SET TIME ZONE 'Asia/Tokyo';
               INSERT INTO public.users (name) VALUES ('Ann'); UPDATE public.users SET name = 'Eve'",
    );
    assert_eq!(
        store.rows("SELECT deed, version FROM trefoil_changes ORDER BY number"),
        ["created|1", "updated|2"]
    );
}

#[test]
fn tables_are_in_the_first_schema_of_search_path() {
    let store = Store::empty(On::Postgres);
    store.run("CREATE SCHEMA \"my app\"; CREATE TABLE public.users (theirs int); CREATE TABLE public.trefoil_meta (theirs int)");
    let sdl = "type User { id: ID! name: String! at: DateTime @updatedAt orders: [Order] } type Order { id: ID! user: User amount: String }";
    let retyped = "type User { id: ID! name: String! at: DateTime @updatedAt orders: [Order] } type Order { id: ID! user: User amount: Int }";
    on_client(store.url(), async |client| {
        client.batch_execute("SET search_path = \"my app\", public").await.unwrap();
        for (sdl, mode) in
            [(sdl, MigrationMode::Start), (retyped, MigrationMode::Apply { allow_drop: vec![] })]
        {
            let model = std::sync::Arc::new(model(sdl));
            let lists = ["items".to_owned()];
            trefoil_sql::migrate::postgres::migrate_postgres(
                client,
                &model,
                &everything(&model),
                &lists,
                mode,
            )
            .await
            .unwrap();
            client
                .batch_execute(
                    "RESET search_path; INSERT INTO \"my app\".users (name) VALUES ('Ann');
                INSERT INTO \"my app\".orders (amount) VALUES ('7'); SET search_path = \"my app\", public",
                )
                .await
                .unwrap();
        }
    });
    assert_eq!(store.rows("SELECT * FROM \"my app\".users WHERE at IS NULL"), [""; 0]);
    assert_eq!(store.rows("SELECT amount FROM \"my app\".orders"), ["7", "7"]);
    assert_eq!(store.rows("SELECT \"my app\".trefoil_number_changes()"), ["4"]);
    assert_eq!(store.relations(), ["trefoil_meta", "users"]);
}

#[test]
fn unrepresentable_values_are_null_in_the_log_image() {
    let sdl = "type T { id: ID! float: Float price: Decimal day: Date at: DateTime }";
    let store = Store::with(
        On::Postgres,
        sdl,
        "INSERT INTO ts (float, price, day, at) VALUES ('NaN', 'NaN', 'infinity', 'infinity'),
           ('Infinity', 'Infinity', '-infinity', '-infinity'), ('-0.5', '-1.50', '0044-03-15', '2026-01-01 00:00+09')",
    );
    let image = r#"{"id":1,"_version":1,"float":null,"price":null,"day":null,"at":null}"#;
    let last = r#"{"id":3,"_version":1,"float":-0.5,"price":"-1.50","day":"0044-03-15","at":"2025-12-31T15:00:00.000000Z"}"#;
    assert_eq!(
        store.rows("SELECT image FROM trefoil_changes ORDER BY number"),
        [image.to_owned(), image.replace("\"id\":1", "\"id\":2"), last.to_owned()]
    );
}

#[test]
fn external_objects_on_a_table_stay() {
    let store = Store::with(On::Postgres, OLD, "INSERT INTO users (name) VALUES ('Ann')");
    store.run(
        "ALTER TABLE users ADD COLUMN theirs text DEFAULT 'x';
         CREATE INDEX their_index ON users (theirs);
         CREATE TABLE their_log (name text);
         CREATE TABLE their_table (\"user\" bigint REFERENCES users(id));
         INSERT INTO their_table VALUES (1);
         CREATE FUNCTION their_function() RETURNS trigger LANGUAGE plpgsql AS
           'BEGIN INSERT INTO their_log VALUES (TG_OP || '' '' || NEW.name); RETURN NULL; END';
         CREATE TRIGGER their_trigger AFTER INSERT OR UPDATE ON users FOR EACH ROW EXECUTE FUNCTION their_function();
         CREATE VIEW their_view AS SELECT theirs FROM users;",
    );
    store.apply("type User { id: ID! name: String age: Int! @default(value: 3) }", &["User.note"]).unwrap();
    store.apply("type User { id: ID! name: [String] age: String! }", &[]).unwrap();
    store.apply("type User { id: ID! name: String age: Int! }", &[]).unwrap();
    store.run("INSERT INTO users (name, age) VALUES ('Bob', 4)");
    assert_eq!(
        store.rows("SELECT id, name, age, theirs FROM users ORDER BY id"),
        ["1|[\"Ann\"]|3|x", "2|Bob|4|x"]
    );
    assert_eq!(store.rows("SELECT * FROM their_log"), ["INSERT Bob"], "a migration is no update");
    assert_eq!(store.rows("SELECT * FROM their_view"), ["x", "x"]);
    assert_eq!(store.indexes("users"), ["their_index"]);
    store.refusal("INSERT INTO their_table VALUES (7)");
}

#[test]
fn external_view_on_a_changed_field_stops_migration() {
    let store = Store::with(On::Postgres, OLD, "CREATE VIEW their_view AS SELECT note FROM users");
    let before = store.dump();
    let error = store.apply("type User { id: ID! name: String! }", &["User.note"]).unwrap_err().to_string();
    assert!(error.contains("their_view"), "{error}");
    let error = store.apply("type User { id: ID! name: String! note: Int }", &[]).unwrap_err().to_string();
    assert!(error.contains("their_view"), "{error}");
    let error = store.apply("type Other { id: ID! }", &["User"]).unwrap_err().to_string();
    assert!(error.contains("their_view"), "{error}");
    assert_eq!(store.dump(), before);
}

#[test]
fn truncate_is_refused_where_deletions_are_logged() {
    let store = Store::with(On::Postgres, OLD, "INSERT INTO users (name) VALUES ('Ann')");
    assert!(store.refusal("TRUNCATE users").contains("use DELETE"));
    assert_eq!(store.rows("SELECT count(*) FROM users"), ["1"]);
}

#[test]
fn long_names_have_indexes_and_triggers() {
    let field = "aVeryLongFieldNameThatGoesOnAndOnForSixtyCharactersOrSoMoreXyz";
    let sdl = format!(
        "type AVeryLongTypeNameThatGoesOnAndOnForFifty {{ id: ID! {field}: Int @unique other: Int @unique }}"
    );
    let store = Store::with(On::Postgres, &sdl, "");
    let before = store.dump();
    assert_eq!(store.start(&sdl).unwrap().steps, []);
    assert_eq!(store.dump(), before);
    let error = Store::empty(On::Postgres)
        .start(&format!("type T {{ id: ID! {field}ButOnlyHere: Int }}"))
        .unwrap_err();
    assert!(error.to_string().contains("at most 63 bytes"), "{error}");
}

#[test]
fn index_of_a_renamed_field_is_not_rebuilt() {
    let store = Store::with(
        On::Postgres,
        "type User { id: ID! name: String @unique }",
        "INSERT INTO users (name) VALUES ('Ann')",
    );
    let file =
        "SELECT relfilenode FROM pg_class WHERE relname IN ('users_name_unique', 'people_title_unique')";
    let before = store.rows(file);
    store.start("type Person @renamedFrom(name: \"User\") { id: ID! title: String @unique @renamedFrom(name: \"name\") nick: String! @default(value: \"-\") }").unwrap();
    assert_eq!(store.indexes("people"), ["people_title_unique"]);
    assert_eq!(store.rows(file), before);
}

const INDEXED: &str = "type User @index(fields: [\"name\"]) { id: ID! name: String code: Int @unique }";

/// The indexes that are made by others than the unique ones, with their columns.
const MADE: &str = "SELECT indexname, substring(indexdef FROM '[(].*') FROM pg_indexes \
                    WHERE tablename = 'users' AND indexdef NOT LIKE '%UNIQUE%' ORDER BY 1";

/// As it was made at first, and as a version that knows nothing of ids makes it again.
const BARE: &str = "CREATE INDEX users_name_index ON users (name)";

/// A store whose indexes are of the columns alone.
fn with_bare_indexes(sql: &str) -> Store {
    let store = Store::with(On::Postgres, INDEXED, &format!("DROP INDEX users_name_index_by_id; {BARE}"));
    store.run(sql);
    store
}

#[test]
fn index_ends_with_the_id() {
    let store = with_bare_indexes("INSERT INTO users (name) VALUES ('Ann')");
    let anew = "User: index on name rebuilt; writes wait until it is done, reads do not";
    let planned = store.in_mode(INDEXED, MigrationMode::Plan).unwrap();
    assert_eq!((planned.steps.len(), planned.index_rebuilds.as_slice()), (0, &[anew.to_owned()][..]));
    assert!(
        planned.to_text(None).starts_with(&format!("{anew}\n\nNo data is lost")),
        "{}",
        planned.to_text(None)
    );
    assert_eq!(store.rows(MADE), ["users_name_index|(name)"], "only planned");
    assert_eq!(store.start(INDEXED).unwrap().index_rebuilds, [anew]);
    assert_eq!(store.rows(MADE), ["users_name_index_by_id|(name, id)"]);
    assert_eq!(store.start(INDEXED).unwrap().index_rebuilds, [""; 0]);
    store.run("ALTER INDEX users_name_index_by_id RENAME TO users_name_index");
    let planned = store.in_mode(INDEXED, MigrationMode::Plan).unwrap();
    assert_eq!(planned.index_rebuilds, [""; 0], "to rename one takes no time");
    store.start(INDEXED).unwrap();
    assert_eq!(store.rows(MADE), ["users_name_index_by_id|(name, id)"]);
}

#[test]
fn index_survives_a_start_of_an_older_version() {
    let store = Store::with(On::Postgres, INDEXED, "INSERT INTO users (name) VALUES ('Ann')");
    let file = "SELECT relfilenode FROM pg_class WHERE relname = 'users_name_index_by_id'";
    let before = store.rows(file);
    store.run(BARE);
    assert_eq!(store.start(INDEXED).unwrap().index_rebuilds, [""; 0]);
    assert_eq!(store.rows(MADE), ["users_name_index_by_id|(name, id)"]);
    assert_eq!(store.rows(file), before);
}

/// Dropping an index waits for readers, and others wait behind it: it is not done within the migration.
#[test]
fn index_rebuild_does_not_block_readers() {
    let store = with_bare_indexes("INSERT INTO users (name) VALUES ('Ann')");
    on_client(store.url(), async |client| {
        client.batch_execute("BEGIN; SELECT count(*) FROM users").await.unwrap();
        let url = store.url().to_owned();
        let start = tokio::spawn(async move {
            let model = std::sync::Arc::new(model(INDEXED));
            let logged = everything(&model);
            let mut client = super::bench::connect(&url).await;
            trefoil_sql::migrate::postgres::migrate_postgres(
                &mut client,
                &model,
                &logged,
                &[],
                MigrationMode::Start,
            )
            .await
        });
        assert!(start.await.unwrap().unwrap().is_applied);
        let made = client.query(MADE, &[]).await.unwrap();
        let made: Vec<String> = made.iter().map(|row| row.get::<_, String>(0)).collect();
        assert_eq!(made.len(), 2, "{made:?}");
        assert!(made[0].starts_with("trefoil_gone_") && made[1] == "users_name_index_by_id", "{made:?}");
    });
    store.start(INDEXED).unwrap();
    assert_eq!(store.rows(MADE), ["users_name_index_by_id|(name, id)"]);
}

#[test]
fn index_without_id_stays_for_very_long_values() {
    let longest = "INSERT INTO users (name) SELECT string_agg(chr(33 + floor(random() * 94)::int), '') \
                   FROM generate_series(1, 2690)";
    let store = with_bare_indexes(longest);
    store.start(INDEXED).unwrap();
    assert_eq!(store.rows(MADE), ["users_name_index|(name)"]);
    let before = store.dump();
    let report = store.start(INDEXED).unwrap();
    assert_eq!(
        (report.steps, report.index_rebuilds),
        (vec![], vec![]),
        "it is not tried again at every start"
    );
    assert_eq!(store.dump(), before);
    store.run(longest);
    let renamed = INDEXED.replace("name: String", "title: String @renamedFrom(name: \"name\")");
    store.start(&renamed.replace("\"name\"])", "\"title\"])")).unwrap();
    assert_eq!(store.rows(MADE), ["users_title_index|(title)"]);
}

#[test]
fn plain_lists_count_external_writes() {
    let store = Store::empty(On::Postgres);
    on_client(store.url(), async |client| {
        let model = std::sync::Arc::new(model(OLD));
        let lists = ["items".to_owned(), "samples".to_owned()];
        let report = trefoil_sql::migrate::postgres::migrate_postgres(
            client,
            &model,
            &[],
            &lists,
            MigrationMode::Start,
        )
        .await
        .unwrap();
        assert!(report.needs_seed);
    });
    store.run("INSERT INTO trefoil_list_values (list, position, value) SELECT 1, p, 'v' FROM generate_series(0, 199) p");
    store.run("DELETE FROM trefoil_list_values WHERE position BETWEEN 64 AND 127; UPDATE trefoil_list_values SET value = 'w' WHERE position = 0");
    assert_eq!(
        store.rows("SELECT level, block, count FROM trefoil_list_counts ORDER BY 1, 2"),
        ["1|0|64", "1|2|64", "1|3|8", "2|0|136", "3|0|136"]
    );
    assert_eq!(
        store.rows("SELECT length, next, version % 1000 FROM trefoil_lists WHERE name = 'items'"),
        ["136|200|265"]
    );
    assert!(
        store
            .refusal("UPDATE trefoil_list_values SET position = 500 WHERE position = 0")
            .contains("never changes")
    );
    assert!(store.refusal("TRUNCATE trefoil_list_values").contains("use DELETE"));
    store.refusal("INSERT INTO trefoil_list_values (list, position, value) VALUES (1, 0, 'again')");
    assert!(!store.start(OLD).unwrap().needs_seed);
}

#[test]
fn documented_grants_suffice_for_another_role() {
    let store = Store::with(On::Postgres, OLD, "");
    // Roles belong to the whole server.
    let role = format!("clerk_{}", uuid::Uuid::new_v4().simple());
    store.run(&format!(
        "CREATE ROLE {role}; GRANT INSERT, UPDATE, SELECT ON users TO {role}; GRANT INSERT ON trefoil_unnumbered TO {role};
         GRANT USAGE ON SEQUENCE trefoil_sequence, users_id_seq TO {role}"
    ));
    store.run(&format!(
        "SET ROLE {role}; INSERT INTO users (name) VALUES ('Ann'); UPDATE users SET name = 'Eve'"
    ));
    store.run(&format!(
        "GRANT UPDATE ON SEQUENCE users_id_seq TO {role}; SET ROLE {role};
                        INSERT INTO users (id, name) VALUES (70000, 'far')"
    ));
    assert_eq!(
        store.rows("SELECT deed, record FROM trefoil_changes ORDER BY number"),
        ["created|1", "updated|1", "created|70000"]
    );
    store.run(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}
