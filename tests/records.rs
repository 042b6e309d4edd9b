//! REST tests of records that a case file cannot express: long lists, many writers, multipart, gzip, broken requests.

use serde_json::{Value, json};
use trefoil::Trefoil;
use trefoil_config::{Config, DatabaseLocation, PostgresUrl};

use crate::support::{Client, Process, Reply, Server, postgres};

const JSON: (&str, &str) = ("Content-Type", "application/json");
const AS_JSON: (&str, &str) = ("Accept", "application/json");

fn notes(folder: &std::path::Path) -> Server {
    let schema = "scalar JSON\ntype Place { town: String! street: String }\ntype Note { id: ID! text: String! data: JSON place: Place rank: Int }\ntype Query { notes: [Note!]! }";
    std::fs::create_dir_all(folder.join("graphql")).expect("a folder");
    std::fs::write(folder.join("graphql/a.graphqls"), schema).expect("a schema");
    Server::start(Trefoil::folder(folder), Config { database: DatabaseLocation::Memory, ..Config::default() })
}

fn post(client: &mut Client, path: &str, body: &Value) -> Reply {
    client.send("POST", path, &[JSON], body.to_string().as_bytes())
}

/// The target of a `Link` header, by its relation.
fn link(reply: &Reply, rel: &str) -> Option<String> {
    let links = reply.header("link")?.split(", ");
    let found =
        links.filter_map(|link| link.split_once(">; rel=")).find(|(_, named)| named.trim_matches('"') == rel);
    found.map(|(target, _)| target.trim_start_matches('<').to_owned())
}

#[test]
fn next_links_visit_every_record_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = notes(folder.path());
    let mut client = Client::of(&server);
    let many: Vec<Value> =
        (0..57).map(|i| json!({ "text": format!("n{i}"), "rank": if i % 5 == 0 { Value::Null } else { json!(i % 4) } })).collect();
    assert_eq!(post(&mut client, "/notes", &json!(many)).status, 201);
    for start in ["/notes?size=10&sort=-rank,text", "/notes?page=1&size=10&sort=-rank,text", "/notes?size=19"]
    {
        let mut next = Some(start.to_owned());
        let mut seen = Vec::new();
        while let Some(path) = next {
            let reply = client.send("GET", &path, &[AS_JSON], b"");
            assert_eq!(reply.status, 200, "{path}");
            let ids = reply.json();
            seen.extend(ids.as_array().expect("an array").iter().map(|note| note["id"].clone()));
            next = link(&reply, "next");
        }
        let all = client.send("GET", "/notes?size=1000&fields=id", &[], b"").json();
        assert_eq!((seen.len(), all.as_array().map(Vec::len)), (57, Some(57)), "{start}");
        let mut sorted: Vec<String> = seen.iter().map(Value::to_string).collect();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), 57, "{start}");
    }
}

/// A cursor must fit into the head of a request.
#[test]
fn next_links_work_with_very_long_sort_values() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = notes(folder.path());
    let mut client = Client::of(&server);
    for i in [3, 1, 2, 0] {
        let note = json!({ "text": format!("{}{i}", "x".repeat(200_000)) });
        assert_eq!(post(&mut client, "/notes?fields=id", &note).status, 201);
    }
    let mut next = Some("/notes?size=1&sort=-text&fields=id".to_owned());
    let mut seen = Vec::new();
    while let Some(path) = next {
        let reply = client.send("GET", &path, &[], b"");
        assert!(reply.status == 200 && path.len() < 4_096, "{}: {path}", reply.status);
        seen.push(reply.json()[0]["id"].clone());
        next = link(&reply, "next");
    }
    assert_eq!(seen, ["1", "3", "2", "4"]);
}

#[test]
fn concurrent_patches_of_one_value_all_apply() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = notes(folder.path());
    assert_eq!(post(&mut Client::of(&server), "/notes", &json!({ "text": "x", "data": {} })).status, 201);
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let mut client = Client::of(&server);
            std::thread::spawn(move || {
                for turn in 0..10 {
                    let body = json!({ "data": { format!("w{writer}-{turn}"): turn } }).to_string();
                    // Who always comes second is told so in the end, and tries again.
                    while client.send("PATCH", "/notes/1", &[JSON], body.as_bytes()).status == 412 {}
                }
            })
        })
        .collect();
    for writer in writers {
        writer.join().expect("no failure");
    }
    let note = Client::of(&server).send("GET", "/notes/1", &[AS_JSON], b"").json();
    assert_eq!(note["data"].as_object().map(serde_json::Map::len), Some(40), "{note}");
}

/// Applied to the later state, the patch would not even be valid.
#[test]
fn idempotency_key_replays_a_patch() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = notes(folder.path());
    let mut client = Client::of(&server);
    assert_eq!(post(&mut client, "/notes", &json!({ "text": "x", "place": { "town": "Ulm" } })).status, 201);
    let mut patch = |headers: &[(&str, &str)], body: Value| {
        client.send("PATCH", "/notes/1", &[&[JSON], headers].concat(), body.to_string().as_bytes())
    };
    let key = [("Idempotency-Key", "once")];
    let first = patch(&key, json!({ "place": { "street": "Main" } }));
    assert_eq!(first.json()["place"], json!({ "town": "Ulm", "street": "Main" }));
    assert_eq!(patch(&[], json!({ "place": null })).status, 200);
    let again = patch(&key, json!({ "place": { "street": "Main" } }));
    assert_eq!((again.status, again.header("idempotency-replayed")), (200, Some("true")), "{}", again.text());
    assert_eq!((again.json(), again.header("etag")), (first.json(), first.header("etag")));
    assert_eq!(patch(&key, json!({ "place": { "street": "Side" } })).status, 422);
    assert_eq!(client.send("DELETE", "/notes/1", &[AS_JSON], b"").status, 204);
    let body = json!({ "place": { "street": "Main" } }).to_string();
    assert_eq!(client.send("PATCH", "/notes/1", &[JSON, key[0]], body.as_bytes()).json(), first.json());
    assert_eq!(
        client.send("PATCH", "/notes/1", &[JSON, ("Idempotency-Key", "two")], body.as_bytes()).status,
        404
    );
}

/// Errors are listed, but not so many that a small request gets a large response.
#[test]
fn errors_are_capped_at_a_hundred() {
    let server = Server::sample();
    let mut client = Client::of(&server);
    let keys: serde_json::Map<String, Value> = (0..5_000).map(|i| (format!("k{i}"), json!(1))).collect();
    let bodies =
        [json!(keys), json!(vec![json!({ "prise": 1 }); 5_000]), json!(vec![json!({ "name": "" }); 5_000])];
    for body in bodies {
        let reply = post(&mut client, "/products", &body);
        let told = reply.json()["errors"].as_array().map(Vec::len);
        assert_eq!((reply.status, told), (400, Some(100)), "{}", reply.text());
    }
    let count = client.send("GET", "/products?count=true&size=1", &[AS_JSON], b"");
    assert_eq!(count.header("x-total-count"), Some("16"));
}

/// More than one statement takes, of two shapes: the response keeps their order, and errors name their position.
#[test]
fn batch_of_hundreds_of_records_is_atomic() {
    for database in [
        DatabaseLocation::Memory,
        DatabaseLocation::Postgres(PostgresUrl::parse(&postgres::database()).unwrap()),
    ] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("graphql")).unwrap();
        let schema = "type Note { id: ID! text: String! @unique size: Int }\ntype Query { notes: [Note!]! }";
        std::fs::write(folder.path().join("graphql/a.graphqls"), schema).unwrap();
        let config = Config { database, ..Config::default() };
        let server = Server::start(Trefoil::folder(folder.path()), config);
        let mut client = Client::of(&server);
        let note = |number: usize| match number {
            150..200 => json!({ "text": format!("note {number}") }),
            _ => json!({ "text": format!("note {number}"), "size": number }),
        };
        let made = post(&mut client, "/notes", &(0..700).map(note).collect());
        assert_eq!(made.status, 201, "{}", made.text());
        for (number, made) in made.json().as_array().unwrap().iter().enumerate() {
            let size = note(number).get("size").cloned();
            let id = (number + 1).to_string();
            assert_eq!(*made, json!({ "id": id, "text": format!("note {number}"), "size": size }));
        }

        let refused = post(&mut client, "/notes", &(400..1_000).rev().map(note).collect());
        let error = &refused.json()["errors"][0];
        assert_eq!((refused.status, &error["pointer"]), (409, &json!("#/300/text")), "{}", refused.text());
        let all = client.send("GET", "/notes?count=true&size=1", &[("accept", "application/json")], b"");
        assert_eq!(all.header("x-total-count"), Some("700"));
    }
}

#[test]
fn multipart_form_is_accepted() {
    let server = Server::sample();
    let mut client = Client::of(&server);
    let media = [("Content-Type", "multipart/form-data; boundary=xx")];
    let part = |name: &str, value: &str| {
        format!("--xx\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let form = part("name", "Grüße") + &part("price", "1.50") + &part("other", "ignored") + "--xx--\r\n";
    let reply = client.send("POST", "/products", &media, form.as_bytes());
    assert_eq!((reply.status, reply.header("location")), (303, Some("/products")));
    let stored = client.send("GET", "/products/17?fields=name,price", &[], b"").json();
    assert_eq!(stored, json!({ "name": "Grüße", "price": "1.50" }));

    let value = part("value", "a sample") + "--xx--";
    let reply = client.send("POST", "/samples", &media, value.as_bytes());
    assert_eq!((reply.status, reply.header("location")), (303, Some("/samples")));
    assert_eq!(client.send("GET", "/samples", &[], b"").json(), json!(["a sample"]));
    assert_eq!(client.send("POST", "/samples", &media, b"--xx--").status, 400);
    assert_eq!(client.send("POST", "/items", &media, value.as_bytes()).status, 415);
    assert_eq!(client.send("POST", "/products", &media, b"--xx\r\n").status, 400);

    let file = |name: &str, content: &str| {
        let text = format!(
            "--xx\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"{name}\"\r\n\r\n{content}"
        );
        part("name", "Lamp") + &text + "\r\n--xx--\r\n"
    };
    let refused = client.send("POST", "/products", &media, file("lamp.png", "x").as_bytes());
    assert_eq!(refused.status, 415);
    assert!(refused.text().contains("`photo` is a file"), "{}", refused.text());
    assert_eq!(
        client.send("POST", "/products", &media, file("", "").as_bytes()).status,
        303,
        "no file was chosen"
    );
}

#[test]
fn etag_of_a_gzip_response_works_in_if_match() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = notes(folder.path());
    let mut client = Client::of(&server);
    let long = json!({ "text": "long ".repeat(1_000) });
    assert_eq!(post(&mut client, "/notes", &long).status, 201);
    let packed = client.send("GET", "/notes/1", &[AS_JSON, ("Accept-Encoding", "gzip")], b"");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let tag = packed.header("etag").expect("a tag").to_owned();
    assert!(tag.starts_with('"') && tag.ends_with(".gzip\""), "{tag}");
    let known = [AS_JSON, ("Accept-Encoding", "gzip"), ("If-None-Match", tag.as_str())];
    assert_eq!(client.send("GET", "/notes/1", &known, b"").status, 304);
    let change = br#"{"text": "short"}"#;
    for expected in [200, 412] {
        assert_eq!(
            client.send("PATCH", "/notes/1", &[JSON, ("If-Match", tag.as_str())], change).status,
            expected
        );
    }
}

/// Far more than a page, and more than may be held at once.
#[test]
fn records_stream_in_bounded_memory() {
    const RECORDS: usize = 200_000;
    let folder = tempfile::tempdir().expect("a folder");
    let process = Process::start(folder.path(), &["serve"]);
    let database = rusqlite::Connection::open(folder.path().join("trefoil-data/trefoil.db")).expect("a file");
    let sql = "WITH RECURSIVE n(i) AS (SELECT 8 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) \
               INSERT INTO users (id, name, email) \
               SELECT i, 'user number ' || i || ', grüße and enough words to be about a hundred bytes long', '' FROM n";
    database.execute(sql, [RECORDS as i64]).expect("written");
    let before = process.peak_memory();
    for accept in ["application/x-ndjson", "application/json", "text/plain"] {
        let reply = process.client().send("GET", "/users", &[("Accept", accept)], b"");
        assert_eq!(reply.status, 200);
        let text = reply.text();
        let (first, last) = match accept {
            "application/json" => {
                let names: Vec<String> = serde_json::from_str(&text).expect("an array of names");
                assert_eq!(names.len(), RECORDS);
                (names[0].clone(), names[RECORDS - 1].clone())
            }
            _ => {
                assert_eq!(text.lines().count(), RECORDS, "{accept}");
                (text.lines().next().unwrap().to_owned(), text.lines().last().unwrap().to_owned())
            }
        };
        assert!(first.contains("Ada Lovelace") && last.contains("user number 200000"), "{first} {last}");
    }
    let grown = process.peak_memory() - before;
    assert!(grown < 48 << 20, "{} MiB more than before", grown >> 20);
}

/// Requests that are broken in every part that REST reads.
#[test]
fn broken_requests_are_never_500() {
    let server = Server::sample();
    let mut client = Client::of(&server);
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let deep_object = r#"{"name":"#.to_owned() + &"{\"a\":".repeat(5_000) + "1" + &"}".repeat(5_001);
    let bodies: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b"{".to_vec(),
        b"{\"name\": \"\xff\"}".to_vec(),
        b"{\"name\": \"\\ud800\"}".to_vec(),
        br#"{"name": "a", "name": "b"}"#.to_vec(),
        br#"{"price": 1e999999999999}"#.to_vec(),
        br#"{"price": "1e999999999", "name": 1e400}"#.to_vec(),
        format!("{{\"price\": {}}}", "9".repeat(100_000)).into_bytes(),
        br#"{"quantity": 99999999999999999999, "userId": -9223372036854775809}"#.to_vec(),
        br#"{"$serde_json::private::Number": "x"}"#.to_vec(),
        br#"{"name": {"$serde_json::private::Number": "1"}}"#.to_vec(),
        br#"{"name": null, "": 1, "\u0000": 2, "__proto__": {}}"#.to_vec(),
        deep.into_bytes(),
        deep_object.into_bytes(),
        b"null".to_vec(),
        b"[null, [], \"x\", {}]".to_vec(),
        b"\xef\xbb\xbf{}".to_vec(),
        b"a=%zz&%=%".to_vec(),
        b"name=%00".to_vec(),
        b"--x\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\n\xff\r\n--x--".to_vec(),
        b"{}\n{\n\n\xff\n".to_vec(),
    ];
    let media = [
        "application/json",
        "application/merge-patch+json",
        "application/json; charset=utf-16",
        "application/x-ndjson",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "multipart/form-data; boundary=\"",
        "text/plain",
        ";;;",
        "",
    ];
    for (method, path) in [
        ("POST", "/products"),
        ("POST", "/users"),
        ("PUT", "/orders/1"),
        ("PATCH", "/orders/1"),
        ("POST", "/samples"),
    ] {
        for media in media {
            for body in &bodies {
                let reply = client.send(method, path, &[("Content-Type", media)], body);
                let shown = String::from_utf8_lossy(&body[..body.len().min(60)]);
                assert!(
                    reply.status < 500,
                    "{method} {path} {media} {shown}: {} {}",
                    reply.status,
                    reply.text()
                );
            }
        }
    }
    let queries = [
        "%",
        "%zz",
        "=",
        "&&&",
        "=x",
        "name=%ff",
        "name.=1",
        ".=1",
        ".gte=1",
        "name..gte=1",
        "id=1e5",
        "id=99999999999999999999",
        "id.in=,,,",
        "id.in=x",
        "price.in=1,x",
        "price=1e99999",
        "sort=,,,-",
        "sort=--id",
        "fields=,",
        "fields=*,x",
        "after=%00",
        "after=W10",
        "after=WyIiLCJ4Il0",
        "after=W251bGwsbnVsbF0",
        "page=1e3",
        "size=-0",
        "count=TRUE",
        "q=%F0%9F%98%80",
        "name.contains=%",
        "placedAt.gte=yesterday",
        "quantity=1.0",
        "status.contains=N",
        "userId=",
        "sort=user",
        "fields=user",
        "user=1",
        "a=1&a=2",
    ];
    for query in queries {
        for path in ["/orders", "/products", "/users", "/users/1/orders", "/orders/1", "/users/1/orders/1"] {
            for accept in ["application/json", "application/x-ndjson", "text/plain", ""] {
                let reply = client.send("GET", &format!("{path}?{query}"), &[("Accept", accept)], b"");
                assert!(reply.status < 500, "{path}?{query}: {} {}", reply.status, reply.text());
            }
        }
    }
    for path in
        ["/orders/%00", "/orders/%2e%2e", "/orders/1%2f2", "/orders/0x1", "/orders/ü", "/users/1/orders/%ff"]
    {
        let reply = client.send("GET", &path.replace('ü', "%C3%BC"), &[AS_JSON], b"");
        assert!((400..500).contains(&reply.status), "{path}: {}", reply.status);
    }
    for (name, value) in
        [("If-Match", "\""), ("If-Match", ",,\"-\""), ("If-None-Match", "W/"), ("Idempotency-Key", "\"")]
    {
        let reply = client.send("PATCH", "/orders/1", &[JSON, (name, value)], b"{}");
        assert!(reply.status < 500, "{name}: {value}: {}", reply.status);
    }
}
