//! Coverage: every route and method, and every field of the operations of GraphQL, is asked as nobody, as a stranger and
//! with a credential that is not good. What the table does not have fails the test.

mod table;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use trefoil::Trefoil;
use trefoil_config::{Config, DatabaseLocation};
use trefoil_engine::ResolverResult;
use trefoil_http::routing::ServedRoute;

use self::table::{CoverageTable, FieldRow, RouteRow};
use super::tokens;
use crate::support::{Client, Reply, Server};

const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// An application that is served, with who asks.
struct CoverageStage {
    server: Server,
    table: CoverageTable,
    /// Nobody, and a stranger.
    askers: [Option<String>; 2],
    /// May do everything: whose descriptions leave out nothing.
    admin: String,
    _folder: tempfile::TempDir,
}

#[test]
fn the_blog_answers_as_its_table_says() {
    let stage = CoverageStage::start("examples/apps/blog", "email", "blog.txt");
    stage.check();
}

#[test]
fn lists_texts_and_calls_are_answered_as_their_table_says() {
    let stage = CoverageStage::start("tests/access/coverage/desk", "login", "desk.txt");
    stage.check();
}

impl CoverageStage {
    fn start(app: &str, login: &str, table: &str) -> CoverageStage {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let table = root.join("tests/access/coverage").join(table);
        let folder = tempfile::tempdir().expect("a folder");
        copy(&root.join(app), folder.path());
        tokens::add_issuer(folder.path(), login).expect("written");
        let config = Config { database: DatabaseLocation::Memory, ..Config::default() };
        let said = |_| async { Ok(ResolverResult::Value("said".into())) };
        let mut trefoil = Trefoil::folder(folder.path());
        if app.ends_with("desk") {
            trefoil = trefoil.resolver("Query.greeting", said).resolver("Mutation.ring", said);
        }
        CoverageStage {
            server: Server::start(trefoil, config),
            table: CoverageTable::parse(&std::fs::read_to_string(table).expect("a table")),
            askers: [None, Some(tokens::bearer(&json!({})))],
            admin: tokens::bearer(&json!({ "roles": ["ADMIN", "CLERK"] })),
            _folder: folder,
        }
    }

    fn check(&self) {
        let mut wrong = self.missing();
        for row in &self.table.routes {
            wrong.extend(self.check_row(row));
        }
        for row in &self.table.fields {
            wrong.extend(self.check_field(row));
        }
        wrong.extend(self.check_other_methods());
        let count = (self.table.routes.len() + self.table.fields.len()) * self.askers.len();
        assert!(wrong.is_empty(), "of {count}, with the answers at the end:\n{}", wrong.join("\n"));
        eprintln!(
            "coverage: {} ways to ask {} routes, {} of GraphQL",
            self.table.routes.len(),
            self.server.routes.len(),
            self.table.fields.len()
        );
    }

    /// What the server has and the table has not, and the other way round.
    fn missing(&self) -> Vec<String> {
        let mut served: BTreeSet<(String, String)> = BTreeSet::new();
        for ServedRoute { path, methods } in &self.server.routes {
            served.extend(methods.split(", ").map(|method| (method.to_owned(), plain(path))));
        }
        let document = self.ask("GET", "/openapi.json", "json", Some(&self.admin), "").json();
        for (path, item) in document["paths"].as_object().expect("paths") {
            let methods = item.as_object().expect("methods").keys();
            let methods = methods.map(|method| method.to_uppercase());
            let methods = methods.filter(|method| METHODS.contains(&method.as_str()));
            served.extend(methods.map(|method| (method, plain(path))));
        }
        // Those two follow from the others, and are asked with them.
        let own = |(method, _): &(String, String)| !["HEAD", "OPTIONS", "TRACE"].contains(&method.as_str());
        let served: BTreeSet<_> = served.into_iter().filter(own).collect();
        let rows = self.table.routes.iter().map(|row| (row.method.clone(), plain(&row.pattern)));
        let known: BTreeSet<_> = rows.collect();
        let name = |(method, path): &(String, String)| format!("{method} {path}");
        let mut wrong: Vec<String> = Vec::new();
        wrong.extend(served.difference(&known).map(|route| format!("not in the table: {}", name(route))));
        wrong.extend(known.difference(&served).map(|route| format!("not served: {}", name(route))));

        let fields = self.root_fields();
        let known: BTreeSet<(String, String)> = self
            .table
            .fields
            .iter()
            .map(|row| {
                let end = row.selection.find(['(', ' ', '{']).unwrap_or(row.selection.len());
                (row.operation.clone(), row.selection[..end].to_owned())
            })
            .collect();
        wrong.extend(fields.difference(&known).map(|field| format!("not in the table: {}", name(field))));
        wrong.extend(known.difference(&fields).map(|field| format!("not served: {}", name(field))));
        wrong
    }

    /// As whoever may see all of them is told.
    fn root_fields(&self) -> BTreeSet<(String, String)> {
        let document = "{ __schema { queryType { fields { name } } mutationType { fields { name } } \
                        subscriptionType { fields { name } } } }";
        let body = json!({ "query": document }).to_string();
        let told = self.ask("POST", "/graphql", "json", Some(&self.admin), &body).json();
        let mut fields = BTreeSet::new();
        for operation in ["query", "mutation", "subscription"] {
            let listed = told["data"]["__schema"][format!("{operation}Type")]["fields"].as_array();
            let names = listed.into_iter().flatten().filter_map(|field| field["name"].as_str());
            fields.extend(names.map(|name| (operation.to_owned(), name.to_owned())));
        }
        fields
    }

    fn check_row(&self, row: &RouteRow) -> Vec<String> {
        let paths = self.paths_of(&row.pattern);
        let body = self.table.body_of(if row.kind == "html" { "form" } else { "json" }, &row.pattern);
        let body = if row.method == "GET" { "" } else { body };
        let status = |method: &str, asker: Option<&str>, body: &str| {
            let statuses = paths
                .iter()
                .filter(|path| !path.is_empty())
                .map(|path| self.ask(method, path, &row.kind, asker, body).status.to_string());
            let mut statuses: Vec<String> = statuses.collect();
            statuses.dedup();
            statuses.join("/")
        };
        let answered = [0, 1].map(|at| status(&row.method, self.askers[at].as_deref(), body));
        let line = format!("{} {} {}", row.method, row.pattern, row.kind);
        let mut wrong = Vec::new();
        if answered != row.expected {
            wrong.push(format!("{line} {}", answered.join(" ")));
        }
        if row.method == "GET" && row.kind != "events" {
            let heads = [0, 1].map(|at| status("HEAD", self.askers[at].as_deref(), ""));
            if heads != answered {
                wrong.push(format!("HEAD {line}: {}", heads.join(" ")));
            }
        }
        // Whatever may be there for others, a credential that is not good is told so.
        let refused = status(&row.method, Some("Bearer tfk_wrong"), body);
        if (refused == "401") == row.is_public {
            wrong.push(format!("{line} with a bad credential: {refused}"));
        }
        let options = status("OPTIONS", None, "");
        if options != "204" {
            wrong.push(format!("OPTIONS of {line}: {options}"));
        }
        wrong
    }

    fn check_field(&self, row: &FieldRow) -> Vec<String> {
        let document = format!("{} {{ {} }}", row.operation, row.selection);
        let body = json!({ "query": document }).to_string();
        let kind = if row.operation == "subscription" { "events" } else { "json" };
        let mut codes = Vec::new();
        let mut wrong = Vec::new();
        for asker in self.askers.iter().map(Option::as_deref) {
            let reply = self.ask("POST", "/graphql", kind, asker, &body);
            let text = reply.text();
            let told = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or(&text);
            let told: Value = serde_json::from_str(told).unwrap_or_default();
            codes.push(told["errors"][0]["extensions"]["code"].as_str().unwrap_or("ok").to_owned());
        }
        if codes != row.expected {
            wrong.push(format!("{} {} => {}", row.operation, row.selection, codes.join(" ")));
        }
        let refused = self.ask("POST", "/graphql", kind, Some("Bearer tfk_wrong"), &body).status;
        if refused != 401 {
            wrong.push(format!("{document} with a bad credential: {refused}"));
        }
        wrong
    }

    /// A method that a route is not listed with does nothing.
    fn check_other_methods(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for ServedRoute { path, methods } in &self.server.routes {
            let listed: Vec<&str> = methods.split(", ").collect();
            for method in METHODS.into_iter().filter(|method| !listed.contains(method)) {
                let [path, _] = self.paths_of(path);
                let status = self.ask(method, &path, "json", Some(&self.admin), "{}").status;
                if status != 405 {
                    wrong.push(format!("{method} {path}, which is not listed: {status}"));
                }
            }
        }
        wrong
    }

    /// The names of files are those that pages lead to.
    fn paths_of(&self, pattern: &str) -> [String; 2] {
        let Some(folder) = pattern.strip_suffix("{name}") else { return self.table.paths_of(pattern) };
        let pages = ["/", "/docs", "/graphql"]
            .map(|path| self.ask("GET", path, "html", Some(&self.admin), "").text());
        let found = pages.iter().find_map(|page| {
            let (_, rest) = page.split_once(folder)?;
            Some(format!("{folder}{}", rest.split(['"', '\'', ')']).next()?))
        });
        [found.unwrap_or_else(|| panic!("no page leads to {pattern}")), String::new()]
    }

    fn ask(&self, method: &str, path: &str, kind: &str, asker: Option<&str>, body: &str) -> Reply {
        let accept = match kind {
            "json" => "application/json",
            "html" => "text/html",
            "csv" => "text/csv",
            "ndjson" => "application/x-ndjson",
            "events" => "text/event-stream",
            "text" => "text/plain",
            "schema" => "*/*",
            other => panic!("{other} is no kind"),
        };
        let content = match kind {
            "html" => "application/x-www-form-urlencoded",
            "csv" => "text/csv",
            "ndjson" => "application/x-ndjson",
            "text" => "text/plain",
            _ => "application/json",
        };
        let mut headers = vec![("Accept", accept)];
        headers.extend(asker.map(|asker| ("Authorization", asker)));
        if !body.is_empty() {
            headers.push(("Content-Type", content));
        }
        let mut client = Client::of(&self.server);
        if kind == "events" {
            // A stream that goes on has begun with what tells so.
            return client
                .send_until(method, path, &headers, body.as_bytes(), |reply| !reply.body.is_empty());
        }
        client.send(method, path, &headers, body.as_bytes())
    }
}

/// A pattern whatever its parameters are called.
fn plain(pattern: &str) -> String {
    let mut text = String::new();
    for (at, part) in pattern.split('{').enumerate() {
        text += if at == 0 { part } else { "{}" };
        text += if at == 0 { "" } else { part.split_once('}').map_or("", |(_, rest)| rest) };
    }
    text
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("created");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("copied");
        }
    }
}
