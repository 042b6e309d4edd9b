//! The response cache: cached responses are byte for byte the same, and never older than an acknowledged write.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use trefoil::{ResolverResult, Trefoil, Value};
use trefoil_application::App;
use trefoil_config::Config;

use crate::support::{Client, Process, Reply, Server};

const LISTS: [(&str, &str); 10] = [
    ("/users?size=1000", "text/html"),
    ("/users/1/orders", "text/html"),
    ("/users", "*/*"),
    ("/users", "text/plain"),
    ("/users?fields=*&size=1000", "application/json"),
    ("/users/1/orders", "application/json"),
    ("/graphql?query={getAllUsers{id%20name}}", "application/json"),
    ("/graphql?query={getUserById(id:1){orders{item}}}", "application/graphql-response+json"),
    ("/items", "application/json"),
    ("/items", "text/plain"),
];

fn get(client: &mut Client, path: &str, accept: &str) -> Reply {
    client.send("GET", path, &[("Accept", accept)], b"")
}

fn post(client: &mut Client, path: &str, media: &str, body: &str) -> Reply {
    let headers = [("Content-Type", media), ("Accept", "application/json")];
    client.send("POST", path, &headers, body.as_bytes())
}

/// How many answers were given again.
fn repeated(client: &mut Client) -> u64 {
    let metrics = get(client, "/metrics", "*/*").text();
    let line = metrics.lines().find_map(|line| line.strip_prefix("trefoil_answers_repeated_total "));
    line.expect("it is counted").parse().expect("a number")
}

/// Everything that the client can tell, but for what is each answer's own.
fn told(reply: &Reply) -> (u16, Vec<(String, String)>, String) {
    let own = ["date", "x-request-id"];
    let headers = reply.headers.iter().filter(|(name, _)| !own.contains(&name.as_str())).cloned();
    (reply.status, headers.collect(), reply.text())
}

#[test]
fn cached_response_is_identical() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Process::start(folder.path(), &[]);
    let mut client = server.client();
    post(&mut client, "/items", "text/plain", "milk");
    for (path, accept) in LISTS {
        let (first, before) = (get(&mut client, path, accept), repeated(&mut client));
        assert_eq!(first.status, 200, "{path} {}", first.text());
        let second = get(&mut client, path, accept);
        assert_eq!(told(&first), told(&second), "{path} {accept}");
        assert_eq!(repeated(&mut client), before + 1, "{path} {accept}");
        let head = client.send("HEAD", path, &[("Accept", accept)], b"");
        assert_eq!(head.header("content-length"), first.header("content-length"), "{path} {accept}");
        if let Some(tag) = first.header("etag") {
            let known = client.send("GET", path, &[("Accept", accept), ("If-None-Match", tag)], b"");
            assert_eq!((known.status, known.header("etag")), (304, Some(tag)), "{path} {accept}");
            let other = client.send("GET", path, &[("Accept", accept), ("If-None-Match", "\"x\"")], b"");
            assert_eq!(told(&other), told(&first), "{path} {accept}");
            let stale = client.send("GET", path, &[("Accept", accept), ("If-Match", "\"x\"")], b"");
            assert_eq!(stale.status, 412, "{path} {accept}");
        }
    }
}

/// Cookies of other programs do not matter; the flash cookie shows one client what it has just done.
#[test]
fn only_the_flash_cookie_bypasses_the_cache() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Process::start(folder.path(), &[]);
    let mut client = server.client();
    let mut page = |cookie: &str| {
        let reply = client.send("GET", "/users", &[("Accept", "text/html"), ("Cookie", cookie)], b"");
        (reply.text(), repeated(&mut client))
    };
    let (first, before) = page("session=1");
    assert_eq!(page("session=2; other=3"), (first.clone(), before + 1));
    let (told, still) = page("session=1; flash=created.users.1");
    assert!(told.contains("User created.") && still == before + 1, "{told}");
    assert_eq!(page("session=1"), (first, before + 2));
}

#[test]
fn cache_of_size_zero_caches_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Process::start(folder.path(), &["--limit-answer-cache", "0"]);
    let mut client = server.client();
    for (path, accept) in LISTS {
        assert_eq!(told(&get(&mut client, path, accept)), told(&get(&mut client, path, accept)), "{path}");
    }
    assert_eq!(repeated(&mut client), 0);
}

/// Rust code may return something else on each call.
#[test]
fn resolver_results_are_not_cached() {
    let folder = tempfile::tempdir().expect("a folder");
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let schema = "type Note { id: ID! text: String! }\ntype Query { notes: [Note!]! calls: Int! }";
    let trefoil = Trefoil::app(App::from_schema("notes", schema)).resolver("Query.calls", move |_| {
        let call = counted.fetch_add(1, Ordering::Relaxed) as i64;
        async move { Ok(ResolverResult::Value(Value::from(call))) }
    });
    let server = Server::start(trefoil, Config { data: folder.path().to_owned(), ..Config::default() });
    let mut client = Client::of(&server);
    for call in 0..3 {
        let answer = client.graphql("{ notes { id } calls }");
        assert_eq!(answer, json!({ "data": { "notes": [], "calls": call } }));
    }
}

/// Writes under one name, each write a number higher, and tells others which was acknowledged last.
struct Writer {
    name: &'static str,
    acknowledged: AtomicUsize,
}

const WRITERS: [&str; 5] = ["graphql", "record", "form", "list", "outside"];

/// A disk that is busy for long makes either program give up waiting for the other; then it tries again.
fn write(client: &mut Client, outside: &Mutex<rusqlite::Connection>, by: &str, name: &str) {
    let status =
        std::iter::repeat_with(|| attempt(client, outside, by, name)).take(20).find(|status| *status != 503);
    assert!(matches!(status, Some(200 | 201 | 303)), "{by}: {status:?}");
}

fn attempt(client: &mut Client, outside: &Mutex<rusqlite::Connection>, by: &str, name: &str) -> u16 {
    match by {
        "graphql" => {
            let query = format!("mutation {{ createUser(name: \"{name}\", email: \"\") {{ id }} }}");
            post(client, "/graphql", "application/json", &json!({ "query": query }).to_string()).status
        }
        "record" => {
            let record = json!({ "name": name, "email": "" }).to_string();
            post(client, "/users", "application/json", &record).status
        }
        "form" => {
            let form = format!("name={name}&email=x");
            post(client, "/users", "application/x-www-form-urlencoded", &form).status
        }
        "list" => post(client, "/items", "text/plain", name).status,
        _ => {
            let sql = "INSERT INTO users (name, email) VALUES (?1, '')";
            match outside.lock().expect("free").execute(sql, [name]) {
                Ok(_) => 201,
                Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => 503,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Reads each list twice in a row, so that some answers are given again, and looks for what was acknowledged before.
fn read(client: &mut Client, writers: &[Writer]) {
    for (path, accept) in LISTS.iter().filter(|(path, _)| !path.contains("orders")) {
        for _ in 0..2 {
            let is_list = *path == "/items";
            let mine = writers.iter().filter(|writer| (writer.name == "list") == is_list);
            let due: Vec<_> =
                mine.map(|writer| (writer.name, writer.acknowledged.load(Ordering::SeqCst))).collect();
            let answer = get(client, path, accept).text();
            for (name, number) in due.iter().filter(|(_, number)| *number > 0) {
                assert!(answer.contains(&format!("{name}.{number}.")), "{path} without {name}.{number}.");
            }
        }
    }
}

#[test]
fn cache_is_never_stale_after_a_write() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Process::start(folder.path(), &[]);
    let file = folder.path().join("trefoil-data/trefoil.db");
    let outside = Mutex::new(rusqlite::Connection::open(file).expect("the store"));
    outside.lock().expect("free").busy_timeout(Duration::from_secs(20)).expect("a timeout");
    let writers = WRITERS.map(|name| Writer { name, acknowledged: AtomicUsize::new(0) });
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers = [(); 3].map(|()| {
            scope.spawn(|| {
                let mut client = server.client();
                while !done.load(Ordering::SeqCst) {
                    read(&mut client, &writers);
                }
                read(&mut client, &writers);
            })
        });
        let writing = writers.each_ref().map(|writer| {
            let (server, outside) = (&server, &outside);
            scope.spawn(move || {
                let mut client = server.client();
                for number in 1..=60 {
                    write(&mut client, outside, writer.name, &format!("{}.{number}.", writer.name));
                    writer.acknowledged.store(number, Ordering::SeqCst);
                    // Without a pause nothing would ever stay as it is for two readings.
                    std::thread::sleep(Duration::from_millis(5));
                }
            })
        });
        writing.into_iter().for_each(|writer| writer.join().expect("it wrote"));
        done.store(true, Ordering::SeqCst);
        readers.into_iter().for_each(|reader| reader.join().expect("nothing was missing"));
    });
    assert!(repeated(&mut server.client()) > 0, "no answer was given again");
}
