//! Text endpoints and plain lists on the real server: many writers, long lists, restarts.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use trefoil::Trefoil;
use trefoil_config::{Config, DatabaseLocation};

use crate::support::{Client, Process, Reply, Server, command};

fn application(folder: &Path, manifest: &str) {
    fs::create_dir_all(folder.join("app/graphql")).expect("a folder");
    let schema = "type Note { id: ID! text: String! }\ntype Query { notes: [Note!]! }";
    fs::write(folder.join("app/graphql/schema.graphqls"), schema).expect("a schema");
    fs::write(folder.join("app/trefoil.toml"), manifest).expect("a manifest");
}

fn version(reply: &Reply) -> i64 {
    let tag = reply.header("etag").unwrap_or_else(|| panic!("no ETag: {}", reply.text()));
    i64::from_str_radix(tag.trim_matches('"'), 16).expect("a version")
}

/// What one writer did and was told.
enum Deed {
    Added(String),
    Replaced(usize, String),
    Removed(usize, String),
}

fn write_a_while(client: &mut Client, writer: usize) -> Vec<(i64, Deed)> {
    let mut deeds = Vec::new();
    for step in 0..40 {
        let value = format!("{writer}/{step}");
        let index = (writer * 7 + step * 3) % 20;
        let (reply, deed) = match step % 4 {
            0 | 1 => (client.send("POST", "/items", &[], value.as_bytes()), Deed::Added(value)),
            2 => {
                let reply = client.send("PUT", &format!("/items/{index}"), &[], value.as_bytes());
                (reply, Deed::Replaced(index, value))
            }
            _ => {
                let reply = client.send("DELETE", &format!("/items/{index}"), &[], b"");
                let removed = reply.text().trim_end().trim_start_matches("Removed: ").to_owned();
                (reply, Deed::Removed(index, removed))
            }
        };
        match reply.status {
            200 | 201 => deeds.push((version(&reply), deed)),
            status => assert_eq!(status, 404, "{}", reply.text()),
        }
    }
    deeds
}

/// The versions that the writers were told put all writes in one order; carried out in that order, on paper, they must
/// give what each writer was told and what is there in the end.
#[test]
fn concurrent_list_writes_have_one_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let server =
        Server::start(Trefoil::sample(), Config { data: folder.path().join("data"), ..Config::default() });
    let before = version(&Client::of(&server).send("GET", "/items", &[], b""));
    let writers: Vec<_> = (0..16)
        .map(|writer| {
            let mut client = Client::of(&server);
            std::thread::spawn(move || write_a_while(&mut client, writer))
        })
        .collect();
    let mut deeds: Vec<_> =
        writers.into_iter().flat_map(|writer| writer.join().expect("no failure")).collect();
    deeds.sort_by_key(|(version, _)| *version);
    let mut list: Vec<String> = Vec::new();
    for (expected, (version, deed)) in (before + 1..).zip(&deeds) {
        assert_eq!(*version, expected, "one version for each write");
        match deed {
            Deed::Added(value) => list.push(value.clone()),
            Deed::Replaced(index, value) => list[*index] = value.clone(),
            Deed::Removed(index, value) => assert_eq!(list.remove(*index), *value),
        }
    }
    assert!(list.len() > 100, "{} values", list.len());
    assert_eq!(Client::of(&server).send("GET", "/items", &[], b"").json(), json!(list));
}

/// The list is written by another program, which the server notices, and is far larger than what it may take.
#[test]
fn million_values_stream_in_bounded_memory() {
    const VALUES: usize = 1_000_000;
    let folder = tempfile::tempdir().expect("a folder");
    let process = Process::start(folder.path(), &["serve"]);
    let database = rusqlite::Connection::open(folder.path().join("trefoil-data/trefoil.db")).expect("a file");
    let sql = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1) \
               INSERT INTO trefoil_list_values (list, position, value) \
               SELECT (SELECT id FROM trefoil_lists WHERE name = 'items'), i, \
               'value number ' || i || ', grüße and enough words to be about a hundred bytes long in all' FROM n";
    database.execute(sql, [VALUES as i64]).expect("written");
    let before = process.peak_memory();
    for accept in ["application/json", "text/plain"] {
        let reply = process.client().send("GET", "/items", &[("Accept", accept)], b"");
        assert_eq!(reply.status, 200);
        assert!(reply.body.len() > 80 * VALUES, "{} bytes", reply.body.len());
        let last = if accept == "text/plain" {
            let text = reply.text();
            assert_eq!(text.lines().count(), VALUES);
            text.lines().last().map(str::to_owned)
        } else {
            let values: Vec<String> = serde_json::from_slice(&reply.body).expect("an array of strings");
            assert_eq!(values.len(), VALUES);
            values.last().cloned()
        };
        assert!(last.is_some_and(|last| last.starts_with("value number 999999, grüße")));
    }
    let grown = process.peak_memory() - before;
    assert!(grown < 48 << 20, "{} MiB more than before", grown >> 20);
}

#[test]
fn charset_of_a_text_body_is_honoured() {
    let server = Server::sample();
    let mut client = Client::of(&server);
    let bodies: [(&str, &[u8], u16); 4] = [
        ("text/plain; charset=iso-8859-1", b"Gr\xfc\xdfe", 201),
        ("text/plain; charset=utf-16", b"\xfe\xff\x4f\x60\x59\x7d", 201),
        ("text/plain", b"Gr\xfc\xdfe", 400),
        ("text/plain; charset=utf-8", b"\xc3", 400),
    ];
    for (media, body, status) in bodies {
        let reply = client.send("POST", "/items", &[("Content-Type", media)], body);
        assert_eq!(reply.status, status, "{media} {}", reply.text());
    }
    assert_eq!(client.send("GET", "/items", &[], b"").json(), json!(["Grüße", "你好"]));
}

#[test]
fn body_over_the_limit_is_refused_in_text() {
    let server = Server::sample();
    let long = vec![b'x'; (1 << 20) + 1];
    let reply = Client::of(&server).send("POST", "/items", &[("Accept", "application/json")], &long);
    assert_eq!((reply.status, reply.header("content-type")), (413, Some("text/plain; charset=utf-8")));
    let most = &long[..1 << 20];
    assert_eq!(Client::of(&server).send("POST", "/items", &[], most).status, 201);
    let values = Client::of(&server).send("GET", "/items", &[], b"").json();
    assert_eq!(values[0].as_str().map(str::len), Some(1 << 20));
}

fn values(process: &Process, path: &str) -> Value {
    process.client().send("GET", path, &[], b"").json()
}

#[test]
fn list_is_seeded_once_and_outlives_its_declaration() {
    let folder = tempfile::tempdir().expect("a folder");
    let declared = "[[list]]\npath = \"/todo\"\n";
    application(folder.path(), declared);
    fs::create_dir(folder.path().join("app/seed")).expect("a folder");
    let seed = folder.path().join("app/seed/todo.json");
    fs::write(&seed, r#"["one", " "]"#).expect("a seed");
    let refused = command(folder.path(), &["serve", "app", "--port", "0"]).output().expect("the binary runs");
    let said = String::from_utf8(refused.stderr).expect("UTF-8");
    assert!(
        !refused.status.success() && said.contains("seed/todo.json: value 1") && said.contains("blank"),
        "{said}"
    );

    fs::write(&seed, r#"["one", "two"]"#).expect("a seed");
    let process = Process::start(folder.path(), &["serve", "app"]);
    assert_eq!(values(&process, "/todo"), json!(["one", "two"]));
    for _ in 0..2 {
        assert_eq!(process.client().send("DELETE", "/todo/0", &[], b"").status, 200);
    }
    drop(process);
    // Emptied is not the same as never used.
    let process = Process::start(folder.path(), &["serve", "app"]);
    assert_eq!(values(&process, "/todo"), json!([]));
    assert_eq!(process.client().send("POST", "/todo", &[], b"three").status, 201);
    drop(process);

    fs::remove_file(&seed).expect("removed");
    fs::write(folder.path().join("app/trefoil.toml"), "").expect("a manifest");
    let process = Process::start(folder.path(), &["serve", "app"]);
    assert_eq!(process.client().send("GET", "/todo", &[], b"").status, 404);
    drop(process);
    fs::write(folder.path().join("app/trefoil.toml"), declared).expect("a manifest");
    assert_eq!(values(&Process::start(folder.path(), &["serve", "app"]), "/todo"), json!(["three"]));
}

#[test]
fn manifest_change_is_served_without_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    application(folder.path(), "[[text]]\npath = \"/a\"\ntext = \"old\"\n");
    let process = Process::start(folder.path(), &["serve", "app", "--watch"]);
    assert_eq!(process.client().send("GET", "/a", &[], b"").text(), "old");
    let manifest = "[[text]]\npath = \"/b\"\ntext = \"new\"\n[[list]]\npath = \"/todo\"\n";
    fs::write(folder.path().join("app/trefoil.toml"), manifest).expect("a manifest");
    process.wait_for("reloaded the schema");
    let mut client = process.client();
    assert_eq!(client.send("GET", "/a", &[], b"").status, 404);
    assert_eq!(client.send("GET", "/b", &[], b"").text(), "new");
    assert_eq!(client.send("POST", "/todo", &[], b"x").status, 201);
    assert!(client.send("GET", "/", &[], b"").text().contains("/todo"));
}

/// The limits of batches, as they are without settings.
#[test]
fn batch_has_at_most_100_requests_and_16_mib_of_results() {
    let folder = tempfile::tempdir().expect("a folder");
    application(folder.path(), "");
    let server = Server::start(
        Trefoil::folder(folder.path().join("app")),
        Config { database: DatabaseLocation::Memory, ..Config::default() },
    );
    let mut client = Client::of(&server);
    let headers = [("Content-Type", "application/json"), ("Accept", "application/json")];
    let long = json!({ "text": "x".repeat(900_000) }).to_string();
    assert_eq!(client.send("POST", "/notes", &headers, long.as_bytes()).status, 201);
    let mut send = |count: usize, path: &str| {
        let batch: Value = (0..count).map(|_| json!({ "method": "GET", "path": path })).collect();
        client.send("POST", "/_/batch", &headers, batch.to_string().as_bytes())
    };
    let found = send(100, "/notes/1?fields=id");
    assert_eq!((found.status, found.json().as_array().map(Vec::len)), (200, Some(100)));
    let refused = send(101, "/notes/1?fields=id");
    assert_eq!(
        (refused.status, &refused.json()["code"]),
        (400, &json!("LIMIT_EXCEEDED")),
        "{}",
        refused.text()
    );
    assert!(refused.text().contains("limits.batch allows at most 100"), "{}", refused.text());
    // 18 of these are less than 16 MiB, 19 are more.
    assert_eq!(send(18, "/notes/1").status, 200);
    let refused = send(19, "/notes/1");
    let problem = refused.json();
    assert_eq!(
        (refused.status, &problem["code"], &problem["index"]),
        (400, &json!("LIMIT_EXCEEDED"), &json!(18))
    );
    assert!(refused.text().contains("at most 16 MiB together"), "{problem}");
}
