//! A write that is sent again is answered again only to who may still do what it asks for.

use std::fs;
use std::time::Duration;

use tempfile::TempDir;

use crate::support::{Process, Reply, command, postgres};

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

const WRITTEN: &str = r#"
enum Role { ADMIN }
extend schema @allow(all: "role(ADMIN)")
type User @account(login: "name") @allow(read: true) {
  id: ID!
  name: String! @unique
  blocked: Boolean! @default(value: false)
}
type Note @allow(read: "owner == me", create: "owner == me && !owner.blocked", update: "owner == me", delete: "owner == me") {
  id: ID!
  label: String! @unique
  owner: User!
  lines: [Line!]!
}
type Line @allow(read: "can(read, note)", create: "can(read, note)") { id: ID! note: Note! text: String! }
"#;

/// A server with these rules.
struct WriteSite {
    folder: TempDir,
    store: Vec<String>,
    server: Process,
}

impl WriteSite {
    fn new(database: Option<&str>) -> WriteSite {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("app/graphql")).expect("a folder");
        fs::write(folder.path().join("app/graphql/a.graphqls"), WRITTEN).expect("a schema");
        let store: Vec<String> =
            database.iter().flat_map(|url| ["--database", url]).map(str::to_owned).collect();
        let arguments = ["serve", "app", "--limit-request-timeout", "5s"].into_iter();
        let arguments: Vec<&str> = arguments.chain(store.iter().map(String::as_str)).collect();
        let server = Process::start(folder.path(), &arguments);
        WriteSite { folder, store, server }
    }

    fn key(&self, arguments: &[&str]) -> String {
        let store: Vec<&str> = self.store.iter().map(String::as_str).collect();
        let arguments = [&["key", "add"], arguments, &store].concat();
        let ran = command(self.folder.path(), &arguments).output().expect("it runs");
        format!("Bearer {}", String::from_utf8(ran.stdout).expect("UTF-8").trim_end())
    }

    fn send(&self, key: &str, method: &str, path: &str, idempotency_key: &str, body: &str) -> Reply {
        let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let headers = [
            ("authorization", key),
            ("idempotency-key", idempotency_key),
            ("content-type", media),
            ("accept", "application/json"),
        ];
        self.server.client().send(method, path, &headers, body.as_bytes())
    }

    /// The credentials of an administrator and of an account.
    fn keys(&self) -> [String; 2] {
        let admin = self.key(&["root", "app", "--role", "ADMIN"]);
        for name in ["ann", "bob"] {
            let made = self.send(&admin, "POST", "/users", name, &format!(r#"{{"name":"{name}"}}"#));
            assert_eq!(made.status, 201, "{}", made.text());
        }
        [admin, self.key(&["ann", "app", "--as", "ann"])]
    }
}

#[test]
fn several_writes_in_one_are_answered_again_to_who_may_still_do_them() {
    for database in [None, Some(postgres::database())] {
        let site = WriteSite::new(database.as_deref());
        let [admin, ann] = site.keys();
        let batch = r#"[
            {"method":"POST","path":"/notes","body":{"ownerId":"1","label":"a"}},
            {"method":"PATCH","path":"/notes/$0.id","body":{"label":"b"}},
            {"method":"GET","path":"/notes/$0.id"}]"#;
        let nested = r#"{"ownerId":"1","label":"c","lines":{"create":[{"text":"one"},{"text":"two"}]}}"#;
        let atomic = r#"{"query":"mutation @atomic { a: createNote(input: {ownerId: 1, label: \"d\"}) { id } b: createNote(input: {ownerId: 1, label: \"e\"}) { id } }"}"#;
        let upsert = r#"{"query":"mutation { upsertNote(by: [\"label\"], input: {ownerId: 1, label: \"f\"}) { id } }"}"#;
        let writes = [
            ("batch", "/_/batch", batch, 200),
            ("nested", "/notes", nested, 201),
            ("atomic", "/graphql", atomic, 200),
            ("upsert", "/graphql", upsert, 200),
        ];
        // `ok`, or the code of the refusal.
        let ask = |(key, path, body, status): (&str, &str, &str, u16)| {
            let reply = site.send(&ann, "POST", path, key, body);
            let code = |json: serde_json::Value| {
                let code = [&json["code"], &json["errors"][0]["extensions"]["code"]];
                code.into_iter().find_map(|code| code.as_str()).map(str::to_owned)
            };
            let failed = code(reply.json());
            assert!(reply.status == status || failed.is_some(), "{}", reply.text());
            failed.unwrap_or_else(|| "ok".to_owned())
        };
        let set = |path: &str, key: &str, body: &str| {
            let reply = site.send(&admin, "PATCH", path, key, body);
            assert_eq!(reply.status, 200, "{}", reply.text());
        };
        for _ in 0..2 {
            assert_eq!(writes.map(ask), ["ok"; 4]);
        }
        set("/users/1", "block", r#"{"blocked":true}"#);
        // The record that an upsert created is one that it would update by now.
        assert_eq!(writes.map(ask), ["FORBIDDEN", "FORBIDDEN", "FORBIDDEN", "ok"]);
        set("/users/1", "unblock", r#"{"blocked":false}"#);
        assert_eq!(writes.map(ask), ["ok"; 4]);
        // What the batch created is out of sight, and then gone.
        set("/notes/1", "give", r#"{"ownerId":"2"}"#);
        assert_ne!(ask(writes[0]), "ok");
        assert_eq!(site.send(&admin, "DELETE", "/notes/1", "remove", "").status, 204);
        assert_eq!(ask(writes[0]), "ok");
        // What an upsert created is gone: it would create it again.
        assert_eq!(site.send(&admin, "DELETE", "/notes/5", "remove too", "").status, 204);
        assert_eq!(ask(writes[3]), "ok");
        set("/users/1", "block again", r#"{"blocked":true}"#);
        assert_eq!(ask(writes[3]), "FORBIDDEN");
    }
}

/// What a batch expected of versions was so when it was answered: its own writes have changed them since.
#[test]
fn batches_are_answered_again_whatever_versions_they_expected() {
    for database in [None, Some(postgres::database())] {
        let site = WriteSite::new(database.as_deref());
        let [admin, ann] = site.keys();
        let made = site.send(&ann, "POST", "/notes", "n", r#"{"ownerId":"1","label":"a"}"#);
        let tag = serde_json::to_string(made.header("etag").expect("a tag")).expect("JSON");
        let batch = format!(
            r#"[{{"method":"GET","path":"/notes/1","headers":{{"If-Match":{tag}}}}},
                {{"method":"PATCH","path":"/notes/1","headers":{{"If-Match":{tag}}},"body":{{"label":"b"}}}}]"#
        );
        let ask = || site.send(&ann, "POST", "/_/batch", "batch", &batch);
        for _ in 0..2 {
            let reply = ask();
            assert!(reply.status == 200 && reply.text().contains(r#""label":"b""#), "{}", reply.text());
        }
        assert_eq!(site.send(&admin, "PATCH", "/notes/1", "give", r#"{"ownerId":"2"}"#).status, 200);
        let reply = ask();
        assert!(reply.status == 404 && !reply.text().contains(r#""label":"b""#), "{}", reply.text());
    }
}

/// Whether it is allowed still cannot be told of a store that does not answer as it should, or not in time.
#[test]
fn batches_are_not_answered_again_while_the_store_fails() {
    let url = postgres::database();
    let site = WriteSite::new(Some(&url));
    let [_, ann] = site.keys();
    let batch = r#"[{"method":"POST","path":"/notes","body":{"ownerId":"1","label":"kept"}},
                    {"method":"PATCH","path":"/notes/$0.id","body":{"label":"known"}}]"#;
    let ask = || site.send(&ann, "POST", "/_/batch", "batch", batch);
    let is_told = |reply: &Reply| reply.text().contains("kept") || reply.text().contains("known");
    for _ in 0..2 {
        let reply = ask();
        assert!(reply.status == 200 && is_told(&reply), "{}", reply.text());
    }
    postgres::sql(&url, "ALTER TABLE notes RENAME TO kept_notes");
    let reply = ask();
    assert!(reply.status >= 500 && !is_told(&reply), "{} {}", reply.status, reply.text());
    postgres::sql(&url, "ALTER TABLE kept_notes RENAME TO notes");
    let reply = ask();
    assert!(reply.status == 200 && is_told(&reply), "{}", reply.text());
    std::thread::scope(|scope| {
        let lock = "BEGIN; LOCK TABLE notes IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(10); COMMIT";
        scope.spawn(|| postgres::sql(&url, lock));
        std::thread::sleep(Duration::from_secs(1));
        let reply = ask();
        assert!(reply.status >= 500 && !is_told(&reply), "{} {}", reply.status, reply.text());
    });
    let reply = ask();
    assert!(reply.status == 200 && is_told(&reply), "{}", reply.text());
}
