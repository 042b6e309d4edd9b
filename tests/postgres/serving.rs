//! A server on PostgreSQL: how it serves while the database is down, and how it starts without one.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::postgres::{Cluster, Options, database, sql};
use crate::support::{Client, Outsider, Process, command, free_port};

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(30), "not within 30 s: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn database_outage_gives_503_and_one_log_line() {
    let cluster = Cluster::start(&Options::default());
    let url = cluster.database().replace("postgres@", "postgres:s3cret@");
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start(folder.path(), &["serve", "--database", &url]);
    let mut client = process.client();
    let create = r#"mutation { createUser(name: "Zoë", email: "") { name } }"#;
    assert_eq!(client.graphql(create), json!({ "data": { "createUser": { "name": "Zoë" } } }));
    assert_eq!(client.send("GET", "/health/ready", &[], b"").status, 200);

    cluster.kill();
    until("it is not ready", || client.send("GET", "/health/ready", &[], b"").status == 503);
    let headers = [("Content-Type", "application/json"), ("Accept", "application/graphql-response+json")];
    for query in
        ["{ getAllUsers { name } }", "mutation { createUser(name: \\\"x\\\", email: \\\"\\\") { id } }"]
    {
        for _ in 0..50 {
            let body = format!(r#"{{"query":"{query}"}}"#);
            let reply = client.send("POST", "/graphql", &headers, body.as_bytes());
            assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")), "{}", reply.text());
            assert!(reply.text().contains("cannot connect to the database"), "{}", reply.text());
        }
    }
    // The map of the application needs no database, only its counts do.
    let home = client.send("GET", "/", &[("Accept", "text/html")], b"");
    assert_eq!(home.status, 200, "{}", home.text());
    assert!(
        home.text().contains("<a class=\"first\" href=\"/users\">Users</a> <span class=\"pill\">–<"),
        "{}",
        home.text()
    );
    assert!(home.text().contains("The database is not responding"), "{}", home.text());
    assert!(!home.text().contains("data-on"), "no list is live: {}", home.text());
    let list = client.send("GET", "/users", &[("Accept", "text/html")], b"");
    assert_eq!((list.status, list.header("retry-after")), (503, Some("1")), "{}", list.text());
    assert!(list.text().contains("href=\"/users\">Try again</a>"), "{}", list.text());
    assert_eq!(client.send("GET", "/health/live", &[], b"").status, 200);
    process.wait_for("the database is unavailable");
    cluster.again();
    until("it is ready again", || client.send("GET", "/health/ready", &[], b"").status == 200);
    until("it writes again", || client.graphql(create).get("errors").is_none());
    process.wait_for("the database is available again");
    let log = process.log();
    for said in ["the database is unavailable", "the database is available again"] {
        assert_eq!(log.matches(said).count(), 1, "{log}");
    }
    assert!(!log.contains("s3cret"), "{log}");
}

#[test]
fn seeds_load_once_when_servers_start_together() {
    let url = database();
    let folders: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
    let processes: Vec<Process> = std::thread::scope(|scope| {
        let starts = folders
            .iter()
            .map(|folder| scope.spawn(|| Process::start(folder.path(), &["serve", "--database", &url])));
        let starts: Vec<_> = starts.collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    let names = |process: &Process| process.client().graphql("{ getAllUsers { id name } }");
    let first = names(&processes[0]);
    assert!(first["data"]["getAllUsers"].as_array().is_some_and(|users| users.len() >= 3), "{first}");
    assert!(processes.iter().all(|process| names(process) == first));
    assert_eq!(sql(&url, "SELECT count(*) - count(DISTINCT name) FROM users"), "0");
    drop(processes);
    sql(&url, "DELETE FROM orders; DELETE FROM users");
    let emptied = Process::start(folders[0].path(), &["serve", "--database", &url]);
    assert_eq!(names(&emptied), json!({ "data": { "getAllUsers": [] } }), "emptied is not the same as new");
}

#[test]
fn start_without_a_database_fails_with_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let missing = format!("{}_missing", database()).replace("postgres@", "postgres:s3cret@");
    for arguments in [["serve", "--port", "0"].as_slice(), &["migrate", "--plan"]] {
        let ended = command(folder.path(), arguments).env("DATABASE_URL", &missing).output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{said}");
        let line = said.lines().last().unwrap_or_default();
        assert!(line.starts_with("error: database postgres://postgres:***@127.0.0.1"), "{said}");
        assert!(line.ends_with("does not exist") && !said.contains("s3cret"), "{said}");
    }
    assert!(!folder.path().join("trefoil-data").exists(), "nothing is kept here");
}

/// Another program locks the table, so its records cannot be counted for the first lines of the log.
#[test]
fn locked_table_blocks_neither_start_nor_shutdown() {
    let (url, folder) = (database(), tempfile::tempdir().unwrap());
    drop(Process::start(folder.path(), &["serve", "--database", &url]));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let outsider = runtime.block_on(Outsider::server(&url));
    runtime.block_on(outsider.run("BEGIN; LOCK TABLE users IN ACCESS EXCLUSIVE MODE")).unwrap();
    let port = free_port();
    let arguments = ["serve", "--database", &url, "--port", &port.to_string()];
    let mut server = command(folder.path(), &arguments).stderr(Stdio::null()).spawn().unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    until("it serves", || {
        let client = Client::connect(address);
        client.is_ok_and(|mut client| client.send("GET", "/hello", &[], b"").status == 200)
    });
    let told = Command::new("kill").arg(server.id().to_string()).status().unwrap();
    assert!(told.success());
    assert_eq!(server.wait().unwrap().code(), Some(0), "it stops in good order");
    let slow = Process::start(folder.path(), &["serve", "--database", &url]);
    assert!(slow.log().contains("not counted within 3s"), "{}", slow.log());
    runtime.block_on(outsider.release());
}
