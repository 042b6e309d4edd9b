//! Stores whose ids are UUIDs and texts: moved, backed up, restored, exported and imported like any other.

use std::process::Command;

use super::site::{BOTH, On, Site, Store, follow, tagless};

/// A UUID, a text that the server generates, and a text that clients give.
const SCHEMA: &str = r#"
scalar UUID scalar DateTime
type Author { id: UUID!  name: String!  mentor: Author  made: DateTime @createdAt  books: [Book!] }
type Book { id: String!  title: String!  author: Author! @reference(onDelete: CASCADE)  tags: [Tag!] }
type Tag { id: ID! @key(kind: TEXT)  label: String!  books: [Book!] }
type Query { authors: [Author]  books: [Book]  tags: [Tag] }
type Mutation { createTag(id: ID!, label: String!): Tag  updateTag(id: ID!, label: String): Tag  deleteTag(id: ID!): Tag }
type Subscription { tagCreated: Tag  tagUpdated: Tag  tagDeleted: Tag }
"#;
const SEED: &str = r#"[{"id": "first", "label": "one"}, {"id": "zwölf & more", "label": "two"}, {"id": "=1+1", "label": "formula"},
  {"id": "'quoted", "label": "escape"}, {"id": "a\"b\\c, d", "label": "odd"}]"#;

fn site_with_keys(on: On) -> (Site, Store) {
    let site = Site::new();
    site.put("app/graphql/library.graphqls", SCHEMA);
    site.put("app/seed/tags.json", SEED);
    let store = site.place(on, "from");
    site.must(&["reset", "app", "--yes"], &store);
    site.must(&["seed", "app", "--fake", "40", "--seed", "7"], &store);
    (site, store)
}

/// Runs commands that print their progress.
fn run(site: &Site, arguments: &[&str], store: &Store) -> String {
    let ran = site.run(arguments, store);
    assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.err);
    ran.err
}

#[test]
fn stores_with_text_keys_move_and_are_restored() {
    for on in BOTH {
        let (site, from) = site_with_keys(on);
        let before = site.served(&from);
        assert!(
            before.iter().any(|line| line.starts_with("/books ") && line.contains("authorId")),
            "{before:?}"
        );
        assert!(before.iter().any(|line| line.starts_with("{") && line.contains("\"tags\":[{\"id\"")));
        let server = site.serve(&from);
        let start = follow(server.address, None, 0).expect("a stream")[0].id.clone();
        let made = server.client().graphql(
            r#"mutation { createTag(id: "later", label: "x") { id } updateTag(id: "later", label: "y") { id } deleteTag(id: "later") { id } }"#,
        );
        assert!(made.get("errors").is_none(), "{made}");
        drop(server);
        run(&site, &["backup", "app", "--to", "copy.trefoil"], &from);
        let to = site.place(on.other(), "to");
        site.must(&["move", "app", "--to", &to.target()], &from);
        assert_eq!(site.served(&to), before);
        let events = follow(site.serve(&to).address, Some(&start), 3).expect("a stream");
        for (event, label) in events[1..].iter().zip(["x", "y", "y"]) {
            assert!(event.data.contains(&format!(r#""id":"later","label":"{label}""#)), "{events:?}");
        }
        let restored = site.place(on, "restored");
        run(&site, &["restore", "copy.trefoil", "app"], &restored);
        assert_eq!(tagless(site.served(&restored)), tagless(before));
    }
}

#[test]
fn records_with_text_keys_are_exported_and_imported() {
    for on in BOTH {
        let (site, from) = site_with_keys(on);
        let before = site.served(&from);
        for format in ["ndjson", "csv"] {
            run(&site, &["export", "app", "--to", format, "--format", format], &from);
            let other = site.place(on.other(), &format!("other-{format}"));
            run(&site, &["import", "app", "--from", format], &other);
            assert_eq!(tagless(site.served(&other)), tagless(before.clone()), "{on:?} {format}");
            run(&site, &["import", "app", "--from", format, "--by", "id"], &other);
            assert_eq!(tagless(site.served(&other)), tagless(before.clone()), "{on:?} {format} again");
        }
    }
}

/// The column of the key and of references to it, on PostgreSQL.
#[test]
fn uuid_keys_are_native_on_postgres() {
    let (_site, store) = site_with_keys(On::Postgres);
    let Store::Postgres(url) = &store else { panic!("{store:?}") };
    let sql = "SELECT string_agg(table_name || '.' || column_name || ' ' || data_type, ', ' ORDER BY 1) \
               FROM (SELECT table_name, column_name, data_type FROM information_schema.columns \
               WHERE table_name IN ('authors', 'books') AND column_name IN ('id', 'authorId', 'mentorId') ORDER BY 1, 2) c";
    let found = Command::new("psql").args(["-XqAt", url, "-c", sql]).output().expect("psql");
    let text = String::from_utf8(found.stdout).expect("UTF-8");
    assert_eq!(text.trim(), "authors.id uuid, authors.mentorId uuid, books.authorId uuid, books.id text");
}
