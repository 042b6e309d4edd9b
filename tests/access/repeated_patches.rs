//! A patch that is sent again is answered again only to who still sees the record.

use std::fs;

use crate::support::{Process, command, postgres};

const SCHEMA: &str = r#"
enum Role { ADMIN }
scalar JSON
extend schema @allow(all: "role(ADMIN)")
type User @account(login: "name") @allow(read: true) { id: ID! name: String! @unique }
type Note @allow(read: "owner == me", update: "owner == me", updateTo: true) { id: ID! owner: User! data: JSON }
"#;

#[test]
fn patches_are_answered_again_to_who_sees_the_record() {
    for database in [None, Some(postgres::database())] {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("app/graphql")).expect("a folder");
        fs::write(folder.path().join("app/graphql/a.graphqls"), SCHEMA).expect("a schema");
        let store: Vec<&str> = database.iter().flat_map(|url| ["--database", url.as_str()]).collect();
        let server = Process::start(folder.path(), &[&["serve", "app"], store.as_slice()].concat());
        let key = |arguments: &[&str]| {
            let arguments = [&["key", "add"], arguments, store.as_slice()].concat();
            let ran = command(folder.path(), &arguments).output().expect("it runs");
            format!("Bearer {}", String::from_utf8(ran.stdout).expect("UTF-8").trim_end())
        };
        let send = |key: &str, method: &str, path: &str, idempotency_key: &str, body: &str| {
            let headers = [("authorization", key), ("idempotency-key", idempotency_key)];
            let headers =
                [&headers[..], &[("content-type", "application/json"), ("accept", "application/json")]]
                    .concat();
            server.client().send(method, path, &headers, body.as_bytes())
        };
        let admin = key(&["root", "app", "--role", "ADMIN"]);
        for (number, name) in ["ann", "bob"].into_iter().enumerate() {
            let made =
                send(&admin, "POST", "/users", &format!("u{number}"), &format!(r#"{{"name":"{name}"}}"#));
            assert_eq!(made.status, 201, "{}", made.text());
        }
        let made = send(&admin, "POST", "/notes", "d", r#"{"ownerId":"1","data":{"a":1}}"#);
        assert_eq!(made.status, 201, "{}", made.text());
        let ann = key(&["ann", "app", "--as", "ann"]);
        let patch = || send(&ann, "PATCH", "/notes/1", "p", r#"{"data":{"b":2}}"#);
        for _ in 0..2 {
            let patched = patch();
            assert!(patched.status == 200 && patched.text().contains(r#""b":2"#), "{}", patched.text());
        }
        assert_eq!(send(&admin, "PATCH", "/notes/1", "o", r#"{"ownerId":"2"}"#).status, 200);
        let refused = patch();
        assert_eq!(refused.status, 404, "{}", refused.text());
        assert!(!refused.text().contains(r#""b":2"#), "{}", refused.text());
    }
}
