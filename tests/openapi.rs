//! `/openapi.json` and `/docs`: the content, its consistency for any schema, and the HTTP headers.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use serde_json::Value;
use trefoil::Trefoil;
use trefoil_config::{Config, DatabaseLocation};

use crate::support::{Client, Process, Server};

const SAMPLE: &str = "tests/openapi/sample.json";

fn document(client: &mut Client) -> Value {
    let reply = client.send("GET", "/openapi.json", &[], b"");
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

/// BLESS=1 writes the served document to the expected file.
#[test]
fn sample_document_equals_the_committed_file() {
    let found = document(&mut Client::of(&Server::sample()));
    let text = format!("{found:#}\n");
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all("tests/openapi").expect("a folder");
        fs::write(SAMPLE, &text).expect("written");
    }
    let committed = fs::read_to_string(SAMPLE).expect(SAMPLE);
    let differs = committed.lines().zip(text.lines()).position(|(committed, served)| committed != served);
    if let Some(line) = differs {
        let around =
            |text: &str| text.lines().skip(line.saturating_sub(5)).take(10).collect::<Vec<_>>().join("\n");
        panic!(
            "{SAMPLE}:{}: BLESS=1 accepts what is served\n--- committed\n{}\n--- served\n{}",
            line + 1,
            around(&committed),
            around(&text)
        );
    }
    assert_eq!(committed.lines().count(), text.lines().count(), "one document is longer");
}

/// Every value of a key, wherever it stands.
fn values<'v>(value: &'v Value, key: &str, found: &mut Vec<&'v Value>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                if name == key {
                    found.push(member);
                }
                values(member, key, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| values(item, key, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whatever refers to something refers to something that is there, and nothing is called like something else.
fn hangs_together(document: &Value) {
    let mut references = Vec::new();
    values(document, "$ref", &mut references);
    assert!(references.len() > 50, "the document refers to little");
    for (kind, components) in document["components"].as_object().expect("components") {
        for name in components.as_object().expect("components").keys() {
            let place = Value::from(format!("#/components/{kind}/{name}"));
            assert!(references.contains(&&place), "nothing refers to {place}");
        }
    }
    for reference in references {
        let pointer = reference.as_str().and_then(|text| text.strip_prefix('#')).expect("a reference within");
        assert!(document.pointer(pointer).is_some(), "{pointer} is not there");
    }
    let operations: Vec<&Value> = document["paths"]
        .as_object()
        .expect("paths")
        .values()
        .flat_map(|item| item.as_object().expect("an item").values())
        .filter(|operation| operation.get("operationId").is_some())
        .collect();
    let names: HashSet<&str> =
        operations.iter().filter_map(|operation| operation["operationId"].as_str()).collect();
    assert_eq!(names.len(), operations.len(), "two operations have one name");
    for operation in operations {
        let links = operation["responses"].as_object().expect("responses").values();
        for link in
            links.filter_map(|response| response["links"].as_object()).flat_map(|links| links.values())
        {
            let to = link["operationId"].as_str().expect("a link leads to an operation");
            assert!(names.contains(to), "{to} is no operation");
        }
    }
}

#[test]
fn document_is_consistent() {
    hangs_together(&document(&mut Client::of(&Server::sample())));
}

const HARDER: &str = r#"
scalar Long
scalar JSON
scalar Email
scalar URL
"A person of the house."
type Person @resource(path: "people") {
  id: ID!
  "As it is on the door."
  name: String! @length(min: 2, max: 40)
  code: String! @pattern(regex: "[A-Z]{3}")
  odd: String @pattern(regex: "(?i)abc")
  size: Int @range(min: 10, max: 20)
  big: Long! @range(min: 0)
  mail: Email
  page: URL
  tags: [String!] @length(max: 3)
  any: JSON
  home: Address!
  boss: Person @reference(inverse: "staff")
  staff: [Person]
  courses: [Course]
  madeAt: DateTime @createdAt
}
scalar DateTime
type Address { street: String! @notBlank lines: [String] zone: Zone! @default(value: NEAR) }
enum Zone { NEAR FAR }
type Course { id: ID! title: String! @unique people: [Person] }
type PersonStaff { id: ID! note: String }
type Query { people: [Person!]! }
type Subscription { personCreated: Person personDeleted: Person }
"#;

fn folder(schema: &str, manifest: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app");
    fs::create_dir_all(path.join("graphql")).expect("a folder");
    write(&path, schema);
    fs::write(path.join("trefoil.toml"), manifest).expect("a manifest");
    folder
}

fn write(app: &Path, schema: &str) {
    fs::write(app.join("graphql/schema.graphqls"), schema).expect("a schema");
}

#[test]
fn every_kind_of_field_is_described() {
    let manifest = "[[text]]\npath = \"/get/person\"\nmethods = [\"GET\", \"PURGE\"]\ntext = \"x\"\n\
                    [[list]]\npath = \"/notes\"\npage = true\n[[text]]\npath = \"/seen\"\n";
    let folder = folder(HARDER, manifest);
    let trefoil = Trefoil::folder(folder.path().join("app"));
    let server = Server::start(trefoil, Config { database: DatabaseLocation::Memory, ..Config::default() });
    let document = document(&mut Client::of(&server));
    hangs_together(&document);
    let schemas = &document["components"]["schemas"];
    let new = &schemas["Person.New"]["properties"];
    assert_eq!(schemas["Person"]["description"], "A person of the house.");
    assert_eq!(new["name"]["description"], "As it is on the door.");
    assert_eq!((&new["name"]["minLength"], &new["name"]["maxLength"]), (&2.into(), &40.into()));
    assert_eq!(new["code"]["allOf"][1]["pattern"], "^(?:[A-Z]{3})$");
    assert!(new["odd"].get("allOf").is_none(), "{}", new["odd"]);
    assert_eq!((&new["size"]["minimum"], &new["size"]["maximum"]), (&10.into(), &20.into()));
    assert_eq!(new["tags"]["maxItems"], 3);
    assert_eq!(new["home"]["$ref"], "#/components/schemas/Address.New");
    assert_eq!(new["bossId"]["type"], serde_json::json!(["string", "integer", "null"]));
    assert_eq!(new["courseIds"]["type"], serde_json::json!(["array", "null"]));
    assert!(new.get("madeAt").is_none() && new.get("id").is_none());
    assert!(schemas["Person"]["properties"].get("madeAt").is_some());
    assert_eq!(schemas["Person.Whole"]["properties"]["madeAt"]["readOnly"], true);
    assert_eq!(schemas["Person.New"]["required"], serde_json::json!(["name", "code", "big", "home"]));
    // Whatever 64 bits hold is shown; what is given can be told to have no sign.
    assert_eq!(schemas["Person"]["properties"]["big"]["pattern"], "^-?[0-9]{1,19}$");
    let pattern =
        regex::Regex::new(new["big"]["pattern"].as_str().expect("a pattern")).expect("an expression");
    assert!(pattern.is_match("9223372036854775807") && !pattern.is_match("9223372036854775808"));
    assert!(!pattern.is_match("-1"));
    let asked = |name: &str| &document["components"]["parameters"][name]["schema"];
    assert_eq!(asked("Person.mail.contains")["pattern"], asked("Person.name.contains")["pattern"]);
    assert_ne!(asked("Person.mail.contains")["pattern"], asked("Person.mail")["pattern"]);
    assert_eq!(asked("Person.size.null")["type"], "boolean");
    assert_eq!(asked("Person.page.in")["items"]["pattern"], asked("Person.code.in")["items"]["pattern"]);
    let paths = &document["paths"];
    assert!(paths["/people"]["get"]["responses"]["200"]["content"].get("text/event-stream").is_some());
    assert!(paths["/courses"]["get"]["responses"]["200"]["content"].get("text/event-stream").is_none());
    assert!(paths.get("/people/{id}/staff/{personId}").is_some());
    assert!(paths["/get/person"]["get"]["responses"].get("200").is_some());
    assert!(paths["/seen"]["get"]["responses"].get("200").is_none(), "a view that is not there");
    assert!(paths["/notes"]["post"]["requestBody"]["content"].get("multipart/form-data").is_some());
}

/// Each operation meets what can go wrong with a request: it answers as the document says, and what the document says
/// of these statuses happens.
#[test]
fn error_responses_match_the_document() {
    let mut config = Config { database: DatabaseLocation::Memory, ..Config::default() };
    config.limits.body = 4_096;
    let server = Server::start(Trefoil::sample(), config);
    let mut client = Client::of(&server);
    client.send("POST", "/items", &[], b"milk");
    client.send("POST", "/samples", &[], b"milk");
    let document = document(&mut client);
    let large = "x".repeat(5_000);
    let mut tried = 0;
    for (path, item) in document["paths"].as_object().expect("paths") {
        // Order 1 is user 1's.
        let address = path.replace("{id}", "1").replace("{orderId}", "1").replace("{index}", "0");
        for (method, operation) in
            item.as_object().expect("an item").iter().filter(|(name, _)| *name != "parameters")
        {
            let described = operation["responses"].as_object().expect("responses");
            let shown = described.get("200").and_then(|ok| ok["content"].as_object());
            let is_page = shown.is_some_and(|content| content.keys().eq(["text/html"]));
            let accept = ("accept", if is_page { "text/html" } else { "application/json" });
            let name = method.to_uppercase();
            let media = operation["requestBody"]["content"]
                .as_object()
                .and_then(|content| content.iter().find(|(_, described)| described.get("example").is_some()));
            let (media, body) = media.map_or(("text/plain", String::new()), |(media, described)| {
                (media.as_str(), described["example"].to_string())
            });
            let mut send = |headers: &[(&str, &str)], body: &str| {
                let body = if name == "GET" || name == "HEAD" { "" } else { body };
                let status = client.send(&name, &address, headers, body.as_bytes()).status;
                assert!(described.contains_key(&status.to_string()), "{name} {path} {headers:?}: {status}");
                status
            };
            let typed = ("content-type", media);
            let met = [
                send(&[accept, typed, ("sec-fetch-site", "cross-site")], &body),
                send(&[accept, typed, ("if-match", "\"other\"")], &body),
                // What has no use for a body goes no further than the condition.
                send(
                    &[accept, ("content-type", "text/plain; charset=klingon"), ("if-match", "\"other\"")],
                    "x",
                ),
                client.send(&name, &address, &[accept, typed], large.as_bytes()).status,
            ];
            for (status, met) in [403, 412, 415, 413].into_iter().zip(met) {
                let said = described.contains_key(&status.to_string());
                assert_eq!(met == status, said, "{name} {path}: {met}, {status} is described: {said}");
                tried += 1;
            }
        }
    }
    assert!(tried >= 150, "only {tried} were tried");
}

/// The examples of the document are accepted as they are.
#[test]
fn examples_work() {
    let server = Server::sample();
    let mut client = Client::of(&server);
    let document = document(&mut client);
    let mut tried = 0;
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, status) in [("post", 201), ("put", 200), ("patch", 200)] {
            let Some(content) = item[method]["requestBody"]["content"].as_object() else { continue };
            let path = path.replace("{id}", "1").replace("{index}", "0");
            let parameters = item[method]["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
            let example = |parameter: &Value| {
                let (name, value) = (parameter["name"].as_str()?, parameter.get("example")?);
                Some(format!("{name}={value}"))
            };
            let query: Vec<String> = parameters.iter().filter_map(example).collect();
            let path = if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) };
            for (media, described) in
                content.iter().filter(|(_, described)| described.get("example").is_some())
            {
                let body = match (media.as_str(), &described["example"]) {
                    ("text/plain", Value::String(text)) => text.clone(),
                    (_, example) => example.to_string(),
                };
                let headers = [("content-type", media.as_str()), ("accept", "application/json")];
                let reply = client.send(&method.to_uppercase(), &path, &headers, body.as_bytes());
                let creates = !path.ends_with("/1") && path != "/_/batch";
                let expected = if creates { status } else { 200 };
                assert_eq!(reply.status, expected, "{method} {path} {media}: {}", reply.text());
                tried += 1;
            }
        }
    }
    assert!(tried >= 20, "only {tried} examples");
}

#[test]
fn document_has_etag_and_cache_headers() {
    let server = Server::sample();
    let mut client = Client::of(&server);
    let reply = client.send("GET", "/openapi.json", &[], b"");
    assert_eq!(reply.header("content-type"), Some("application/json; charset=utf-8"));
    assert_eq!(reply.header("cache-control"), Some("no-cache"));
    let tag = reply.header("etag").expect("a tag").to_owned();
    let known = client.send("GET", "/openapi.json", &[("if-none-match", &tag)], b"");
    assert_eq!((known.status, known.header("etag")), (304, Some(tag.as_str())));
    let packed = client.send("GET", "/openapi.json", &[("accept-encoding", "gzip")], b"");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert_eq!(client.send("POST", "/openapi.json", &[], b"").status, 405);
    let page = client.send("GET", "/docs", &[], b"");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert_eq!(client.send("GET", "/docs/", &[], b"").status, 404);
}

#[test]
fn schema_reload_updates_the_document() {
    let schema = "type Note { id: ID! text: String! }\ntype Query { notes: [Note!]! }";
    let folder = folder(schema, "");
    let process = Process::start(folder.path(), &["serve", "app", "--watch"]);
    assert!(document(&mut process.client())["paths"].get("/tags").is_none());
    write(&folder.path().join("app"), &format!("{schema}\ntype Tag {{ id: ID! word: String }}"));
    process.wait_for("reloaded the schema");
    assert!(document(&mut process.client())["paths"].get("/tags").is_some());
}

#[test]
fn links_use_the_name_of_the_key() {
    let app = folder(
        "type Owner { ownerId: ID! name: String pets: [Pet!]! } type Pet { petId: ID! name: String owner: Owner }
         type Query { pets: [Pet] }",
        "",
    );
    let config = Config { database: DatabaseLocation::Memory, ..Config::default() };
    let server = Server::start(Trefoil::folder(app.path().join("app")), config);
    let document = document(&mut Client::of(&server));
    let link = |path: &str, method: &str, status: &str, name: &str| {
        document["paths"][path][method]["responses"][status]["links"][name]["parameters"].clone()
    };
    assert_eq!(link("/pets", "get", "200", "first")["id"], "$response.body#/0/petId");
    assert_eq!(link("/pets", "post", "201", "get")["id"], "$response.body#/petId");
    assert_eq!(link("/owners/{id}/pets", "get", "200", "first")["petId"], "$response.body#/0/petId");
}

/// As any other answer that does not depend on the path.
#[test]
fn misdirected_requests_are_declared_everywhere() {
    let document = document(&mut Client::of(&Server::sample()));
    let operations = document["paths"].as_object().expect("paths").values();
    let operations = operations.flat_map(|item| item.as_object().expect("an item"));
    let responses: Vec<_> = operations.filter_map(|(_, operation)| operation.get("responses")).collect();
    assert!(responses.len() > 20);
    let both = |responses: &&&Value| responses.get("429").is_some() == responses.get("421").is_some();
    assert_eq!(responses.iter().filter(both).count(), responses.len());
    assert!(responses.iter().any(|responses| responses.get("421").is_some()));
}
