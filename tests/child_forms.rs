//! Forms with the records that belong to a record: how many rows they have, and what happens if several people save at once.

use std::fmt::Write;

use trefoil::Trefoil;
use trefoil_application::App;
use trefoil_config::{Config, DatabaseLocation, PostgresUrl};

use crate::support::{Client, Reply, Server, postgres};

const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");
const HTML: (&str, &str) = ("Accept", "text/html");

const SCHEMA: &str = r#"
type Invoice { id: ID! number: String! lines: [Line!]! }
type Line { id: ID! invoice: Invoice! @reference(onDelete: CASCADE) label: String! @notBlank note: String }
type Query { invoices: [Invoice!]! lines: [Line!]! }
"#;

fn server(database: DatabaseLocation) -> Server {
    let config = Config { database, ..Config::default() };
    Server::start(Trefoil::app(App::from_schema("invoices", SCHEMA)), config)
}

fn databases() -> [DatabaseLocation; 2] {
    let url = PostgresUrl::parse(&postgres::database()).expect("the URL of a database");
    [DatabaseLocation::Memory, DatabaseLocation::Postgres(url)]
}

fn submit(client: &mut Client, path: &str, body: &str) -> Reply {
    client.send("POST", path, &[FORM], body.as_bytes())
}

/// New rows with these numbers.
fn rows(numbers: std::ops::Range<usize>) -> String {
    numbers.fold(String::from("number=R1"), |mut body, number| {
        let _ = write!(body, "&lines.{number}.label=Line+{number}&lines.{number}.note=");
        body
    })
}

#[test]
fn form_has_at_most_100_rows() {
    for database in databases() {
        let server = server(database);
        let mut client = Client::of(&server);
        let refused = submit(&mut client, "/invoices", &rows(0..10_000));
        assert_eq!(refused.status, 400);
        let text = refused.text();
        assert!(text.contains("10000 rows of `lines` are too many for one form: at most 100"), "{text}");
        assert_eq!(client.send("GET", "/invoices?fields=id", &[], b"").json(), serde_json::json!([]));

        let full = submit(&mut client, "/invoices", &format!("{}&-add=lines", rows(0..100))).text();
        assert!(
            full.contains("name=\"lines.99.label\"") && !full.contains("name=\"lines.100.label\""),
            "{full}"
        );
        assert!(full.contains("A form has at most 100 lines.") && !full.contains("name=\"-add\""), "{full}");

        assert_eq!(submit(&mut client, "/invoices", &rows(0..100)).status, 303);
        let form = client.send("GET", "/invoices/1/edit", &[HTML], b"").text();
        assert!(form.contains("name=\"lines.99.-id\" value=\"100\""), "{form}");

        // One more has no room: the form leads to the list instead, and leaves the lines alone.
        let json = [("Content-Type", "application/json")];
        assert_eq!(
            client.send("POST", "/lines", &json, br#"{"label": "One more", "invoiceId": "1"}"#).status,
            201
        );
        let form = client.send("GET", "/invoices/1/edit", &[HTML], b"").text();
        assert!(form.contains("There are too many lines for this form."), "{form}");
        assert!(form.contains("href=\"/invoices/1/lines\"") && !form.contains("name=\"lines."), "{form}");
        assert_eq!(submit(&mut client, "/invoices/1", "-version=1&number=R2").status, 303);
        let found = client.graphql("{ invoices { number } lines { label } }");
        assert_eq!(found["data"]["invoices"][0]["number"], "R2");
        assert_eq!(found["data"]["lines"].as_array().map(Vec::len), Some(101));

        // A form from before still saves its rows.
        let reply = submit(
            &mut client,
            "/invoices/1",
            "-version=2&number=R2&lines.0.-id=1&lines.0.-version=1&lines.0.label=First",
        );
        assert_eq!(reply.status, 303, "{}", reply.text());
        assert_eq!(client.graphql("{ lines { label } }")["data"]["lines"][0]["label"], "First");
    }
}

#[test]
fn long_texts_are_left_to_their_own_forms() {
    let server = server(DatabaseLocation::Memory);
    let mut client = Client::of(&server);
    assert_eq!(submit(&mut client, "/invoices", &rows(0..2)).status, 303);
    let body = serde_json::json!({ "note": "x".repeat(300 * 1024) }).to_string();
    let json = [("Content-Type", "application/json")];
    assert_eq!(client.send("PATCH", "/lines/1", &json, body.as_bytes()).status, 200);
    let form = client.send("GET", "/invoices/1/edit", &[HTML], b"").text();
    assert!(form.contains("There are too many lines for this form.") && form.len() < 50_000);
}

/// The replies to these forms, sent at the same time.
fn at_once(server: &Server, bodies: Vec<String>) -> Vec<Reply> {
    let senders: Vec<_> = bodies
        .into_iter()
        .map(|body| {
            let mut client = Client::of(server);
            std::thread::spawn(move || submit(&mut client, "/invoices/1", &body))
        })
        .collect();
    senders.into_iter().map(|sender| sender.join().expect("a reply")).collect()
}

#[test]
fn concurrent_forms_do_not_overwrite_each_other() {
    for database in databases() {
        let server = server(database);
        let mut client = Client::of(&server);
        assert_eq!(submit(&mut client, "/invoices", &rows(0..2)).status, 303);

        // The same form pressed often is one save.
        let pressed = "-key=k&-version=1&number=R1&lines.0.-id=1&lines.0.-version=1&lines.0.label=Once&lines.1.-id=2&lines.1.-version=1&lines.1.-delete=true&lines.2.label=New";
        let replies = at_once(&server, vec![pressed.to_owned(); 12]);
        assert!(replies.iter().all(|reply| reply.status == 303), "{replies:?}");
        let done = replies.iter().filter(|reply| reply.header("idempotency-replayed").is_none());
        assert_eq!(done.count(), 1);
        let lines = client.graphql("{ lines { id label } }");
        let expected = serde_json::json!([{ "id": "1", "label": "Once" }, { "id": "3", "label": "New" }]);
        assert_eq!(lines["data"]["lines"], expected);

        // Different forms of the same state: one wins, the others are told.
        let body = |number: usize| {
            format!(
                "-version=1&number=R1&lines.0.-id=1&lines.0.-version=2&lines.0.label=By+{number}&lines.1.label=Added+by+{number}"
            )
        };
        let replies = at_once(&server, (0..12).map(body).collect());
        let saved = replies.iter().filter(|reply| reply.status == 303).count();
        let told = replies.iter().filter(|reply| reply.status == 409).count();
        assert_eq!((saved, told), (1, 11), "{replies:?}");
        let lines = client.graphql("{ lines { id } }");
        assert_eq!(lines["data"]["lines"].as_array().map(Vec::len), Some(3), "only the winner added a line");
    }
}
