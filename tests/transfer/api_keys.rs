//! API keys go along with their store: moved, backed up and restored, and never exported.

use super::site::{BOTH, On, Site, Store};

const SCHEMA: &str = r#"
enum Role { EDITOR ADMIN }
extend schema @allow(all: "role(ADMIN)")
type User @account(login: "email", roles: "role") @allow(read: true) {
  id: ID!  email: String! @unique  role: Role @allow(write: "role(ADMIN)")
}
type Query { users: [User] }
type Mutation { createUser(email: String!): User }
"#;

fn listed(site: &Site, store: &Store) -> String {
    let ran = site.run(&["key", "list", "app"], store);
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.out
}

fn make_key(site: &Site, name: &str, store: &Store) -> String {
    let ran = site.run(&["key", "add", name, "app", "--role", "EDITOR", "--as", "ada@example.org"], store);
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.out.trim().to_owned()
}

#[test]
fn keys_move_with_their_store() {
    for on in BOTH {
        let site = Site::new();
        site.put("app/graphql/library.graphqls", SCHEMA);
        site.put("app/seed/tags.json", "[]");
        std::fs::remove_file(site.path("app/seed/tags.json")).expect("removed");
        site.put("app/seed/users.json", r#"[{"id": 1, "email": "ada@example.org"}]"#);
        let from = site.place(on, "from");
        site.must(&["reset", "app", "--yes"], &from);
        // A backup without keys gives none back.
        let bare = site.run(&["backup", "app", "--to", "bare.trefoil"], &from);
        assert_eq!(bare.code, 0, "{}", bare.err);
        let key = make_key(&site, "ci", &from);
        let before = listed(&site, &from);
        assert!(before.contains("ci") && before.contains("User 1"), "{before}");

        site.must(&["backup", "app", "--to", "copy.trefoil"], &from);
        for (file, expected) in [("copy.trefoil", &before), ("bare.trefoil", &String::new())] {
            for place in BOTH {
                let restored = site.place(place, &format!("restored {file} {place:?}"));
                let ran = site.run(&["restore", file, "app"], &restored);
                assert_eq!(ran.code, 0, "{}", ran.err);
                assert_eq!(
                    ran.out.contains("API keys are good again: ci;"),
                    !expected.is_empty(),
                    "{}",
                    ran.out
                );
                assert_eq!(&listed(&site, &restored), expected, "{on:?} {file} {place:?}");
            }
        }
        let exported = site.run(&["export", "app"], &from);
        assert_eq!(exported.code, 0, "{}", exported.err);
        assert!(
            exported.out.contains("ada@example.org") && !exported.out.contains("tfk_"),
            "{}",
            exported.out
        );

        let to = site.place(on.other(), "to");
        site.must(&["move", "app", "--to", &to.target()], &from);
        assert_eq!(listed(&site, &to), before);
        assert!(!holds(&site, &to, &key), "the key itself is in the store");
    }
}

/// Whether the file of a store has this text anywhere.
fn holds(site: &Site, store: &Store, text: &str) -> bool {
    let Store::Sqlite(folder) = store else { return false };
    let files = std::fs::read_dir(site.path(folder)).expect("a folder").flatten();
    let contents = files.filter_map(|file| std::fs::read(file.path()).ok());
    contents.into_iter().any(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes()))
}

#[test]
fn a_key_is_in_no_file_of_its_store() {
    let site = Site::new();
    site.put("app/graphql/library.graphqls", SCHEMA);
    std::fs::remove_file(site.path("app/seed/tags.json")).expect("removed");
    site.put("app/seed/users.json", r#"[{"id": 1, "email": "ada@example.org"}]"#);
    let store = site.place(On::Sqlite, "data");
    site.must(&["reset", "app", "--yes"], &store);
    let key = make_key(&site, "ci", &store);
    assert!(key.starts_with("tfk_") && key.len() == 53, "{key}");
    assert!(holds(&site, &store, "ada@example.org"), "the test looks in the wrong files");
    assert!(!holds(&site, &store, &key) && !holds(&site, &store, &key[4..47]));
}
