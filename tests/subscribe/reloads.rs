//! Schema files change under a server with an event stream: the stream continues, or says why it cannot.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::Body;
use crate::support::Process;

const SCHEMA: &str = "type Book { id: ID! title: String! }
type Query { books: [Book!]! }
type Mutation { createBook(title: String!): Book }
type Subscription { bookCreated: Book! bookDeleted: Book }";

fn application(folder: &Path, schema: &str) {
    fs::create_dir_all(folder.join("app/graphql")).expect("a folder");
    fs::write(folder.join("app/graphql/books.graphqls"), schema).expect("written");
}

#[test]
fn stream_survives_schema_changes_until_invalid() {
    let folder = tempfile::tempdir().expect("a folder");
    application(folder.path(), SCHEMA);
    let process = Process::start(folder.path(), &["serve", "app", "--watch"]);
    let mut client = process.client();
    let request = json!({ "query": "subscription { bookCreated { title } }" }).to_string();
    let headers = [("Accept", "text/event-stream"), ("Content-Type", "application/json")];
    let mut body = Body::at(process.address, "POST", "/graphql", &headers, &request);
    body.take("\n\n");
    let create = |title: &str| format!("mutation {{ createBook(title: {title:?}) {{ id }} }}");
    client.graphql(&create("One"));
    assert!(body.take("\n\n").contains(r#""title":"One""#));

    application(folder.path(), &SCHEMA.replace("title: String! }", "title: String! pages: Int }"));
    process.wait_for(r#""types":1"#);
    client.graphql(&create("Two"));
    assert!(body.take("\n\n").contains(r#""title":"Two""#));

    application(folder.path(), &SCHEMA.replace("bookCreated: Book! ", "").replace("! }", "! pages: Int }"));
    let rest = body.rest();
    assert!(rest.contains("GRAPHQL_VALIDATION_FAILED") && rest.contains("event: complete"), "{rest}");
    assert!(!rest.contains("title\":"), "{rest}");
}
