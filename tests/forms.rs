//! Forms as impatient people send them: a button pressed many times at once is one write, on either store.

use trefoil::Trefoil;
use trefoil::config::{Config, Database, PostgresUrl};

use crate::support::{Client, Reply, Server, postgres};

const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");

/// The answers to one form that is sent so many times at once.
fn press(server: &Server, path: &'static str, body: &'static str) -> Vec<Reply> {
    let presses: Vec<_> = (0..12)
        .map(|_| {
            let mut client = Client::of(server);
            std::thread::spawn(move || client.send("POST", path, &[FORM], body.as_bytes()))
        })
        .collect();
    presses.into_iter().map(|press| press.join().expect("an answer")).collect()
}

fn pressing(database: Database) {
    let server = Server::start(Trefoil::sample(), Config { database, ..Config::default() });
    let forms = [
        ("/products", "_key=a&name=Kettle"),
        ("/products/1", "_key=b&_version=1&name=Desk"),
        ("/samples", "_key=c&value=milk"),
        ("/articles/1/delete", "_key=d&_version=1"),
    ];
    for (path, body) in forms {
        let replies = press(&server, path, body);
        let done = replies.iter().filter(|reply| reply.header("idempotency-replayed").is_none());
        assert_eq!(done.count(), 1, "{path}");
        assert!(replies.iter().all(|reply| reply.status == 303), "{path}");
    }
    let mut client = Client::of(&server);
    let found = client.send("GET", "/products?name=Kettle&fields=id", &[], b"").json();
    assert_eq!(found, serde_json::json!([{ "id": "17" }]));
    let form = client.send("GET", "/products/1/edit", &[], b"").text();
    assert!(form.contains("name=\"_version\" value=\"2\""), "{form}");
    assert_eq!(client.send("GET", "/samples", &[], b"").json(), serde_json::json!(["milk"]));
}

#[test]
fn a_button_pressed_many_times_at_once_writes_once() {
    pressing(Database::Memory);
}

#[test]
fn a_button_pressed_many_times_at_once_writes_once_on_postgresql() {
    pressing(Database::Postgres(PostgresUrl::read(&postgres::database()).expect("the URL of a database")));
}
