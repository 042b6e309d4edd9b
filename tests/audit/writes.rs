//! The audit: every write of a record, whatever asks for it, and none that is undone.

use serde_json::json;

use super::{JSON, Site};
use crate::support::Process;

fn send(server: &Process, key: &str, method: &str, path: &str, body: &str) -> (u16, String) {
    let headers = [JSON, ("Authorization", key), ("X-Request-Id", "request-7")];
    let reply = server.client().send(method, path, &headers, body.as_bytes());
    (reply.status, reply.text())
}

fn graphql(server: &Process, key: &str, query: &str) -> String {
    let (status, text) = send(server, key, "POST", "/graphql", &json!({ "query": query }).to_string());
    assert_eq!(status, 200, "{text}");
    text
}

#[test]
fn every_write_is_noted_with_who_where_and_which_request() {
    for site in Site::both("") {
        // The seed is the operator's.
        let seed = ["operator create User/1 v1 name,email,role", "operator create User/2 v1 name,email"];
        assert_eq!(site.told_since(0), seed);
        let server = site.serve();
        let key = site.key("ci", &["--as", "bob@example.org"]);
        let before = site.count();
        let post = r#"{"title": "A secret title", "text": "Words"}"#;
        assert_eq!(send(&server, &key, "POST", "/posts", post).0, 201);
        assert_eq!(send(&server, &key, "PATCH", "/posts/1", r#"{"text": "Other words"}"#).0, 200);
        // What is written as it was is an update without a changed field.
        assert_eq!(send(&server, &key, "PATCH", "/posts/1", r#"{"text": "Other words"}"#).0, 200);
        assert!(
            graphql(&server, &key, "mutation { createPost(title: \"Second\") { id } }").contains("\"2\"")
        );
        assert_eq!(send(&server, &key, "DELETE", "/posts/2", "").0, 204);
        let expected = [
            "key:ci create Post/1 v1 title,text,author",
            "key:ci update Post/1 v2 text",
            "key:ci update Post/1 v3 -",
            "key:ci create Post/2 v1 title,author",
            "key:ci delete Post/2 v1 -",
        ];
        assert_eq!(site.told_since(before), expected);
        let entries = site.entries(&[]);
        for entry in &entries[before..] {
            assert_eq!(entry["request"], "request-7", "{entry}");
            assert_eq!(entry["address"], "127.0.0.1", "{entry}");
            assert!(entry["at"].as_str().is_some_and(|at| at.ends_with('Z')), "{entry}");
        }
        let all = site.must(&["audit", "app", "--format", "ndjson"]);
        for value in ["secret title", "Words", "words", "Second", "bob@example.org", "Ada Lovelace"] {
            assert!(!all.contains(value), "{value} in {all}");
        }
        // A record with another kind of key.
        let before = site.count();
        assert_eq!(send(&server, &key, "POST", "/codes", r#"{"name": "x"}"#).0, 201);
        let entry = site.entries(&[]).remove(before);
        assert_eq!(entry["type"], "Code");
        assert_eq!(entry["id"].as_str().map(str::len), Some(36), "{entry}");
    }
}

#[test]
fn what_goes_along_is_noted_too() {
    for site in Site::both("") {
        let server = site.serve();
        let key = site.key("ci", &["--as", "bob@example.org"]);
        let before = site.count();
        // Nested.
        let nested = r#"{"title": "T", "comments": [{"text": "one"}, {"text": "two"}], "tags": {"create": [{"name": "x"}]}}"#;
        assert_eq!(send(&server, &key, "POST", "/posts", nested).0, 201);
        let mut told = site.told_since(before);
        told.retain(|line| !line.contains(" update "));
        told.sort();
        let mut expected = [
            "key:ci create Post/1 v1 title,author",
            "key:ci create Comment/1 v1 text,post",
            "key:ci create Comment/2 v1 text,post",
            "key:ci create Tag/1 v1 name",
        ];
        expected.sort_unstable();
        assert_eq!(told, expected);
        // A link is an update of both.
        assert_eq!(send(&server, &key, "POST", "/tags", r#"{"name": "y"}"#).0, 201);
        let before = site.count();
        assert_eq!(send(&server, &key, "POST", "/posts/1/tags", "2").0, 204);
        let mut told = site.told_since(before);
        told.sort();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].starts_with("key:ci update Post/1 v") && told[1].starts_with("key:ci update Tag/2 v"),
            "{told:?}"
        );
        // By condition.
        let before = site.count();
        let (status, text) = send(&server, &key, "PATCH", "/comments?post=1", r#"{"text": "same"}"#);
        assert_eq!((status, text.contains('2')), (200, true), "{text}");
        assert_eq!(
            site.told_since(before),
            ["key:ci update Comment/1 v2 text", "key:ci update Comment/2 v2 text"]
        );
        // Cascades, and references that are emptied.
        assert_eq!(send(&server, &key, "POST", "/remarks", r#"{"text": "r", "postId": 1}"#).0, 201);
        let before = site.count();
        assert_eq!(send(&server, &key, "DELETE", "/posts/1", "").0, 204);
        let mut told = site.told_since(before);
        told.retain(|line| !line.contains("Tag/"));
        told.sort();
        let deleted = told.iter().filter(|line| line.contains(" delete ")).count();
        assert_eq!(deleted, 3, "{told:?}");
        assert!(told.contains(&"key:ci update Remark/1 v2 post".to_owned()), "{told:?}");
        assert_eq!(told.len(), 4, "{told:?}");
        // Many at once.
        let before = site.count();
        assert_eq!(send(&server, &key, "POST", "/tags", r#"[{"name": "p"}, {"name": "q"}]"#).0, 201);
        assert_eq!(site.told_since(before), ["key:ci create Tag/3 v1 name", "key:ci create Tag/4 v1 name"]);
    }
}

#[test]
fn what_is_undone_leaves_nothing() {
    for site in Site::both("") {
        let server = site.serve();
        let key = site.key("ci", &["--as", "bob@example.org"]);
        assert_eq!(send(&server, &key, "POST", "/posts", r#"{"title": "taken"}"#).0, 201);
        let before = site.count();
        // Refused by the database, by a rule, and by a later part of the same transaction.
        assert_eq!(send(&server, &key, "POST", "/posts", r#"{"title": "taken"}"#).0, 409);
        assert_eq!(send(&server, &key, "PATCH", "/users/1", r#"{"name": "Eve"}"#).0, 403);
        assert_eq!(send(&server, &key, "POST", "/posts", r#"[{"title": "new"}, {"title": "taken"}]"#).0, 409);
        let batch = json!([
            { "method": "POST", "path": "/posts", "body": { "title": "new" } },
            { "method": "POST", "path": "/posts", "body": { "title": "taken" } },
        ]);
        assert_eq!(send(&server, &key, "POST", "/_/batch", &batch.to_string()).0, 409);
        let query = "mutation @atomic { a: createPost(title: \"new\") { id } b: createPost(title: \"taken\") { id } }";
        assert!(graphql(&server, &key, query).contains("ROLLED_BACK"));
        assert_eq!(site.told_since(before), [""; 0]);
        // What is kept of several is noted, in their order and as one request.
        let query = "mutation { a: createPost(title: \"kept\") { id } b: createPost(title: \"taken\") { id } \
                     c: createPost(title: \"kept too\") { id } }";
        graphql(&server, &key, query);
        let query = "mutation @atomic { a: createPost(title: \"both\") { id } b: updatePost(id: 1, text: \"x\") { id } }";
        graphql(&server, &key, query);
        let batch = json!([{ "method": "PATCH", "path": "/posts/1", "body": { "text": "y" } }]);
        assert_eq!(send(&server, &key, "POST", "/_/batch", &batch.to_string()).0, 200);
        let told: Vec<String> = site.told_since(before).iter().map(|line| without_ids(line)).collect();
        assert_eq!(
            told,
            [
                "create Post title,author",
                "create Post title,author",
                "create Post title,author",
                "update Post text",
                "update Post text",
            ]
        );
        // An answer that is given again.
        let before = site.count();
        let headers = [JSON, ("Authorization", key.as_str()), ("Idempotency-Key", "k1")];
        for _ in 0..2 {
            let reply = server.client().send("POST", "/tags", &headers, br#"{"name": "once"}"#);
            assert_eq!(reply.status, 201, "{}", reply.text());
        }
        assert_eq!(site.told_since(before).len(), 1);
    }
}

/// Ids that were drawn for what was undone differ between the stores.
fn without_ids(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    format!("{} {} {}", words[1], words[2].split('/').next().unwrap_or_default(), words[4])
}

#[test]
fn commands_are_the_operator_and_other_programs_nobody() {
    for site in Site::both("") {
        let server = site.serve();
        let before = site.count();
        site.put("rows/tags.ndjson", "{\"name\": \"a\"}\n{\"name\": \"b\"}\n");
        if site.store[1] != "sqlite:" {
            site.must(&["import", "app", "--from", "rows"]);
            assert_eq!(
                site.told_since(before),
                ["operator create Tag/1 v1 name", "operator create Tag/2 v1 name"]
            );
        } else {
            drop(server);
            site.must(&["import", "app", "--from", "rows"]);
            assert_eq!(
                site.told_since(before),
                ["operator create Tag/1 v1 name", "operator create Tag/2 v1 name"]
            );
        }
        let before = site.count();
        site.outside("UPDATE \"tags\" SET \"name\" = 'c' WHERE \"id\" = 1");
        assert_eq!(site.count(), before);
    }
}

#[test]
fn what_is_off_is_not_noted() {
    for (setting, expected) in [("audit = \"trust\"\n", true), ("audit = \"off\"\n", false)] {
        for site in Site::both(setting) {
            let server = site.serve();
            let key = site.key("ci", &["--as", "bob@example.org"]);
            assert_eq!(send(&server, &key, "POST", "/tags", r#"{"name": "x"}"#).0, 201);
            let told = site.told_since(0);
            let keys = ["operator add-key ci v- -"];
            assert_eq!(told, if expected { &keys[..] } else { &[] }, "{setting}");
        }
    }
}
