//! HTML forms on the real server: double submits, more choices than a list shows, cookies.

use trefoil::Trefoil;
use trefoil_application::App;
use trefoil_config::{Config, DatabaseLocation, IpNetwork, PostgresUrl};

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

fn pressing(database: DatabaseLocation) {
    let server = Server::start(Trefoil::sample(), Config { database, ..Config::default() });
    let forms = [
        ("/products", "-key=a&name=Kettle"),
        ("/products/1", "-key=b&-version=1&name=Desk"),
        ("/samples", "-key=c&value=milk"),
        ("/articles/1/delete", "-key=d&-version=1"),
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
    assert!(form.contains("name=\"-version\" value=\"2\""), "{form}");
    assert_eq!(client.send("GET", "/samples", &[], b"").json(), serde_json::json!(["milk"]));
}

#[test]
fn double_submit_writes_once() {
    pressing(DatabaseLocation::Memory);
}

#[test]
fn double_submit_writes_once_on_postgres() {
    pressing(DatabaseLocation::Postgres(
        PostgresUrl::parse(&postgres::database()).expect("the URL of a database"),
    ));
}

/// Behind a trusted proxy that says so.
#[test]
fn cookie_is_secure_behind_tls() {
    let trusted = vec![IpNetwork { address: [127, 0, 0, 1].into(), prefix: 32 }];
    let config = Config { database: DatabaseLocation::Memory, trusted_proxies: trusted, ..Config::default() };
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
fn reference_with_many_choices_can_be_searched() {
    let server = Server::sample();
    let mut client = Client::of(&server);
    let users: Vec<_> =
        (0..60).map(|i| serde_json::json!({ "name": format!("Person {i:02}"), "email": "" })).collect();
    let json = [("Content-Type", "application/json"), ("Accept", "application/json")];
    let made = client.send("POST", "/users", &json, serde_json::json!(users).to_string().as_bytes());
    assert_eq!(made.status, 201, "{}", made.text());
    let form = client.send("GET", "/orders/new", &[], b"").text();
    assert!(form.contains("name=\"-find.userId\"") && form.contains("Person 42"), "{form}");
    assert!(!form.contains("Person 59"), "only the first are listed");

    let found =
        client.send("POST", "/orders", &[FORM], b"-find=userId&-find.userId=Person+59&userId=1&item=Lamp");
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

#[test]
fn link_checkboxes_have_names_and_can_be_searched() {
    let schema = "type Post { id: ID! title: String! tags: [Tag!]! } type Tag { id: ID! label: String! posts: [Post!]! } \
                  type Query { posts: [Post!]! }";
    let config = Config { database: DatabaseLocation::Memory, ..Config::default() };
    let server = Server::start(Trefoil::app(App::from_schema("blog", schema)), config);
    let mut client = Client::of(&server);
    let tags: Vec<_> = (1..=60).map(|i| serde_json::json!({ "label": format!("Tag {i:02}") })).collect();
    let json = [("Content-Type", "application/json"), ("Accept", "application/json")];
    let made = client.send("POST", "/tags", &json, serde_json::json!(tags).to_string().as_bytes());
    assert_eq!(made.status, 201, "{}", made.text());
    let html = [("Accept", "text/html")];
    let form = client.send("GET", "/posts/new", &html, b"").text();
    assert!(form.contains("name=\"-find.tagIds\"") && form.contains(">Tag 42<"), "{form}");
    assert!(!form.contains(">Tag 60<"), "only the first are listed");

    let found = client.send(
        "POST",
        "/posts",
        &[FORM],
        b"-find=tagIds&-find.tagIds=Tag+60&tagIds=&tagIds=3&title=One",
    );
    let form = found.text();
    assert!(form.contains("value=\"3\" checked> <span><bdi>Tag 03<"), "what was ticked stays: {form}");
    assert!(form.contains("value=\"60\"> <span><bdi>Tag 60<") && !form.contains(">Tag 42<"), "{form}");
    assert_eq!(client.send("POST", "/posts", &[FORM], b"tagIds=&tagIds=3&tagIds=60&title=One").status, 303);

    let form = client.send("GET", "/posts/1/edit", &html, b"").text();
    let (last, first) =
        (form.find(">Tag 60<").expect("is ticked"), form.find(">Tag 01<").expect("is listed"));
    assert!(last < first, "what is ticked comes first: {form}");
    assert_eq!(client.send("POST", "/posts/1", &[FORM], b"tagIds=&tagIds=60&tagIds=3&title=Two").status, 303);
    let kept = client.graphql("{ posts { title tags { id } } }");
    let expected =
        serde_json::json!({ "posts": [{ "title": "Two", "tags": [{ "id": "3" }, { "id": "60" }] }] });
    assert_eq!(kept["data"], expected);
}

/// What a hidden control of a form says.
fn hidden<'f>(form: &'f str, name: &str) -> &'f str {
    let (_, rest) = form.split_once(&format!("name=\"{name}\" value=\"")).expect("the control");
    rest.split_once('"').expect("its end").0
}

#[test]
fn only_what_both_changed_is_asked_about() {
    let schema = "type Person { id: ID! name: String! town: String note: String }";
    let config = Config { database: DatabaseLocation::Memory, ..Config::default() };
    let server = Server::start(Trefoil::app(App::from_schema("people", schema)), config);
    let mut client = Client::of(&server);
    let json = [("Content-Type", "application/json"), ("Accept", "application/json")];
    let html = [("Accept", "text/html")];
    let made = client.send("POST", "/people", &json, br#"{"name":"Ann","town":"Bonn","note":"one\ntwo"}"#);
    assert_eq!(made.status, 201, "{}", made.text());
    let form = client.send("GET", "/people/1/edit", &html, b"").text();
    let (version, base) = (hidden(&form, "-version"), hidden(&form, "-base"));
    let mut submit = |town: &str, note: &str| {
        let body =
            format!("-version={version}&-base={base}&name=Ann&town={town}&note={note}").replace(' ', "+");
        client.send("POST", "/people/1", &[FORM, html[0]], body.as_bytes())
    };
    // Browsers send line ends as CRLF, which is no change.
    assert_eq!(submit("Ulm", "one%0D%0Atwo").status, 303);

    // The other one has changed the town, and this one the note: both are in the form, and nothing is asked.
    let merged = submit("Bonn", "three");
    let text = merged.text();
    assert_eq!(merged.status, 409, "{text}");
    assert!(text.contains("You changed different fields") && !text.contains("Saved value"), "{text}");
    assert!(text.contains("value=\"Ulm\"") && text.contains("three</textarea>"), "{text}");
    assert!(text.contains("Save person</button>"), "{text}");

    // Both changed the town.
    let disputed = submit("K%C3%B6ln", "three").text();
    assert_eq!(disputed.matches("Saved value").count(), 1, "{disputed}");
    assert!(disputed.contains("<b>Saved value:</b> <bdi>Ulm</bdi>"), "{disputed}");
    assert!(disputed.contains("value=\"Köln\"") && disputed.contains("Save my changes anyway"), "{disputed}");

    // What the form now has of both is saved.
    let (version, base) = (hidden(&text, "-version"), hidden(&text, "-base"));
    let body = format!("-version={version}&-base={base}&name=Ann&town=Ulm&note=three").replace(' ', "+");
    assert_eq!(client.send("POST", "/people/1", &[FORM], body.as_bytes()).status, 303);
    let stored = client.send("GET", "/people/1", &json, b"").json();
    assert_eq!(stored, serde_json::json!({ "id": "1", "name": "Ann", "town": "Ulm", "note": "three" }));
}

#[test]
fn links_that_go_are_counted_before_deleting() {
    let schema = "type Tag { id: ID! label: String! } type Note { id: ID! text: String! tags: [Tag!]! }";
    let config = Config { database: DatabaseLocation::Memory, ..Config::default() };
    let server = Server::start(Trefoil::app(App::from_schema("notes", schema)), config);
    let mut client = Client::of(&server);
    let json = [("Content-Type", "application/json"), ("Accept", "application/json")];
    assert_eq!(client.send("POST", "/tags", &json, br#"[{"label":"VIP"},{"label":"New"}]"#).status, 201);
    let notes = br#"[{"text":"a","tagIds":[1]},{"text":"b","tagIds":[1,2]}]"#;
    assert_eq!(client.send("POST", "/notes", &json, notes).status, 201);
    let mut page = |path: &str| client.send("GET", path, &[("Accept", "text/html")], b"").text();
    let tag = page("/tags/1/delete");
    assert!(tag.contains("2 notes are no longer linked with this tag"), "{tag}");
    let note = page("/notes/1/delete");
    assert!(
        note.contains("<a href=\"/notes/1/tags\">1 tag is no longer linked with this note</a>"),
        "{note}"
    );
}
