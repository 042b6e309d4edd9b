//! Imports and exports while a server is running on the same store.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::{Bench, Kind, Store, both};
use crate::support::Process;

both![import_makes_subscription_events, export_is_one_snapshot, csv_list_equals_csv_export];

fn serve(bench: &Bench, store: &Store) -> Process {
    let arguments: Vec<&str> =
        ["serve", "app"].into_iter().chain(store.flags.iter().map(String::as_str)).collect();
    Process::start(bench.folder.path(), &arguments)
}

/// Reads a stream of events until it holds all of these.
fn hear(stream: &mut TcpStream, words: &[String]) -> String {
    let (mut heard, begin) = (String::new(), Instant::now());
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut bytes = [0; 4096];
    while !words.iter().all(|words| heard.contains(words)) {
        assert!(begin.elapsed() < Duration::from_secs(40), "only this was heard:\n{heard}");
        match stream.read(&mut bytes) {
            Ok(0) => panic!("the stream ended:\n{heard}"),
            Ok(read) => heard += &String::from_utf8_lossy(&bytes[..read]),
            Err(_) => {}
        }
    }
    heard
}

fn import_makes_subscription_events(kind: Kind) {
    let bench = Bench::new(kind);
    let store = bench.store();
    let server = serve(&bench, &store);
    let mut stream = TcpStream::connect(server.address).unwrap();
    let request = "GET /people HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    hear(&mut stream, &["200 OK".to_owned(), "id:".to_owned()]);
    let rows: String = (1..=50).map(|i| format!("{{\"id\":{i},\"name\":\"Person {i}.\"}}\n")).collect();
    let said = bench.pipe(&store, &["--resource", "people"], rows);
    assert!(said.succeeded, "{}", said.err);
    let names: Vec<String> = (1..=50).map(|i| format!("Person {i}.")).collect();
    hear(&mut stream, &names);
    // The server goes on behind the ids that were chosen.
    let made =
        server.client().send("POST", "/teams", &[("content-type", "application/json")], b"{\"title\":\"t\"}");
    assert_eq!(made.status, 201, "{}", made.text());
    let headers = [("content-type", "application/json"), ("accept", "application/json")];
    let made = server.client().send("POST", "/people", &headers, b"{\"name\":\"next\"}");
    assert_eq!((made.status, made.json()["id"].as_str()), (201, Some("51")), "{}", made.text());
    // Nothing of an import that fails.
    let said = bench.pipe(&store, &["--resource", "people"], "{\"name\":\"unheard\"}\n{\"name\":\"\"}\n");
    said.refused(&["nothing was imported"]);
    let said = bench.pipe(&store, &["--resource", "people"], "{\"id\":70,\"name\":\"heard\"}\n");
    assert!(said.succeeded, "{}", said.err);
    assert!(!hear(&mut stream, &["\"heard\"".to_owned()]).contains("unheard"));
    if kind == Kind::File {
        a_server_with_other_tables(&bench, &store);
    }
}

/// Tables are never changed under a server.
fn a_server_with_other_tables(bench: &Bench, store: &Store) {
    let more = super::SCHEMA.replace("lead: Person", "lead: Person  motto: String");
    bench.write("app/graphql/schema.graphqls", more);
    for verb in ["import", "export"] {
        let said = bench.run(verb, store, &["--resource", "teams"]);
        said.refused(&["the store has not been migrated to this schema yet", "motto"]);
    }
}

/// Teams are read long before people, and people are created and deleted meanwhile.
fn export_is_one_snapshot(kind: Kind) {
    let bench = Bench::new(kind);
    let store = bench.store();
    let rows: String = (1..=20).map(|i| format!("{{\"id\":{i},\"title\":\"t\"}}\n")).collect();
    assert!(bench.pipe(&store, &["--resource", "teams"], rows).succeeded);
    let server = serve(&bench, &store);
    let address = server.address;
    let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let writer = std::thread::spawn({
        let done = done.clone();
        move || {
            let mut client = crate::support::Client::to(address);
            let mut number = 0;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                number += 1;
                let json = [("content-type", "application/json"), ("accept", "application/json")];
                let body = format!("{{\"title\":\"new {number}\"}}");
                let team = client.send("POST", "/teams", &json, body.as_bytes()).json();
                let body = format!("{{\"name\":\"p\",\"homeId\":{}}}", team["id"]);
                assert_eq!(client.send("POST", "/people", &json, body.as_bytes()).status, 201);
            }
            number
        }
    });
    for _ in 0..5 {
        let all = bench.all(&store);
        let again = bench.file_store();
        // Whoever refers to a team came after it, so a later look at people than at teams would miss teams.
        let said = bench.pipe(&again, &[], &all);
        assert!(said.succeeded, "{}", said.err);
        assert_eq!(bench.all(&again), all);
    }
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(writer.join().unwrap() > 0);
}

/// The same bytes from the server and from the command, also for a list read in many batches; and they can be imported.
fn csv_list_equals_csv_export(kind: Kind) {
    let bench = Bench::new(kind);
    let store = bench.store();
    let texts = ["plain", "=1+1", "a,b;c\\td", "\\\"q\\\"", "two\\r\\nlines", "'", "", " edge ", "Zoë 李"];
    let thing = |i: usize| {
        let text = texts[i % texts.len()];
        let tags = format!("[\"{text}\",\"-{i}\"]");
        format!(
            "{{\"id\":{i},\"text\":\"{text}\",\"price\":\"-{i}.50\",\"big\":\"{i}\",\"tags\":{tags},\"place\":{{\"city\":\"=c\"}}}}\n"
        )
    };
    let things: String = (1..=9_000).map(thing).collect();
    let said = bench.pipe(&store, &["--resource", "things"], things);
    assert!(said.succeeded, "{}", said.err);
    let exported = bench.run("export", &store, &["--resource", "things", "--format", "csv"]).out;
    let server = serve(&bench, &store);
    let listed = server.client().send("GET", "/things?format=csv", &[("accept", "text/html")], b"");
    assert_eq!(listed.header("content-disposition"), Some("attachment; filename=\"things.csv\""));
    assert!(listed.text() == exported, "{} bytes, {} exported", listed.text().len(), exported.len());
    let ndjson = server.client().send("GET", "/things?format=ndjson", &[], b"");
    assert!(ndjson.text() == bench.run("export", &store, &["--resource", "things"]).out);
    let part = server.client().send("GET", "/things?sort=-id&text=plain&page=2&size=3&format=csv", &[], b"");
    let part = part.text();
    let ids: Vec<&str> = part.lines().skip(1).map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(ids, ["8973", "8964", "8955"]);
    let other = bench.store();
    bench.write("things.csv", listed.text());
    bench.import(&other, &["--resource", "things", "--from", "things.csv"]);
    assert!(bench.csv(&other, "things") == exported.trim_start_matches('\u{feff}'));
}
