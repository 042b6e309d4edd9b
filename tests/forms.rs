//! Forms as the real server takes them: buttons pressed many times at once, more choices than a list has room for, cookies.

use trefoil::Trefoil;
use trefoil::config::{Config, Database, Network, PostgresUrl};

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

/// Behind a proxy that is trusted to say so.
#[test]
fn the_cookie_is_for_tls_alone_where_there_is_tls() {
    let trusted = vec![Network { address: [127, 0, 0, 1].into(), prefix: 32 }];
    let config = Config { database: Database::Memory, trusted_proxies: trusted, ..Config::default() };
    let server = Server::start(Trefoil::sample(), config);
    let mut client = Client::of(&server);
    for (proto, secure) in [("https", true), ("http", false)] {
        let headers = [FORM, ("X-Forwarded-For", "192.0.2.1"), ("X-Forwarded-Proto", proto)];
        let reply = client.send("POST", "/products", &headers, b"name=Kettle");
        let cookie = reply.header("set-cookie").expect("a cookie");
        assert_eq!(cookie.ends_with("; Secure"), secure, "{proto}: {cookie}");
    }
}

#[test]
fn what_cannot_all_be_listed_can_be_found() {
    let server = Server::sample();
    let mut client = Client::of(&server);
    let users: Vec<_> =
        (0..60).map(|i| serde_json::json!({ "name": format!("Person {i:02}"), "email": "" })).collect();
    let json = [("Content-Type", "application/json"), ("Accept", "application/json")];
    let made = client.send("POST", "/users", &json, serde_json::json!(users).to_string().as_bytes());
    assert_eq!(made.status, 201, "{}", made.text());
    let form = client.send("GET", "/orders/new", &[], b"").text();
    assert!(form.contains("name=\"_find.userId\"") && form.contains("Person 42"), "{form}");
    assert!(!form.contains("Person 59"), "only the first are listed");

    let found =
        client.send("POST", "/orders", &[FORM], b"_find=userId&_find.userId=Person+59&userId=1&item=Lamp");
    let form = found.text();
    assert_eq!(found.status, 200);
    assert!(form.contains("Person 59") && !form.contains("Person 42"), "{form}");
    assert!(
        form.contains("<option value=\"1\" selected>Ada Lovelace</option>"),
        "what was chosen stays: {form}"
    );
    assert!(form.contains("value=\"Lamp\""), "{form}");
    let orders = client.send("GET", "/orders?fields=id&size=100", &[], b"").json();
    assert_eq!(orders.as_array().map(Vec::len), Some(10), "nothing was stored");

    // One that is beyond the list is kept as it is.
    assert_eq!(client.send("POST", "/orders/1", &[FORM], b"userId=67&item=Lamp").status, 303);
    let form = client.send("GET", "/orders/1/edit", &[], b"").text();
    assert!(form.contains("<option value=\"67\" selected>Person 59</option>"), "{form}");
}
