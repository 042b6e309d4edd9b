//! `refused_by`: the log says which rule refused a request, and no answer does.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::shake_at;
use crate::support::{Client, Process, Reply, command, postgres};

const PATIENCE: Duration = Duration::from_secs(10);

/// The blog of `examples/apps`, with keys of its people.
struct Blog {
    process: Process,
    author: String,
    editor: String,
    schema: String,
    _folder: TempDir,
}

impl Blog {
    fn new(store: &[&str]) -> Blog {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data").to_str().expect("UTF-8").to_owned();
        let store = [store, &["--data", &data]].concat();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let run = |arguments: &[&str]| {
            let ran = command(root, &[arguments, store.as_slice()].concat()).output().expect("it runs");
            assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
            String::from_utf8(ran.stdout).expect("UTF-8").trim_end().to_owned()
        };
        let app = "examples/apps/blog";
        run(&["reset", app, "--yes"]);
        let key = |name: &str, login: &str, role: &str| {
            format!("Bearer {}", run(&["key", "add", name, app, "--as", login, "--role", role]))
        };
        Blog {
            author: key("author", "arno@blog.example", "AUTHOR"),
            editor: key("editor", "edith@blog.example", "EDITOR"),
            process: Process::start(root, &[&["serve", app], store.as_slice()].concat()),
            schema: std::fs::read_to_string(root.join(app).join("graphql/blog.graphqls")).expect("a schema"),
            _folder: folder,
        }
    }

    /// The place of the rule that is written on the line with these words.
    fn place(&self, words: &str) -> String {
        let line = self.schema.lines().position(|line| line.contains(words)).expect("a line");
        format!("graphql/blog.graphqls:{}", line + 1)
    }

    /// The only line of this message with this request id.
    fn line(&self, id: &str, message: &str) -> Value {
        let begin = Instant::now();
        loop {
            let log = self.process.log();
            let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let found: Vec<Value> =
                lines.filter(|line| line["request_id"] == id && line["message"] == message).collect();
            if let [line] = found.as_slice() {
                return line.clone();
            }
            assert!(found.is_empty() && begin.elapsed() < PATIENCE, "{id}: {found:?} in\n{log}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The log of a request, whose answer has this status and tells no place.
    fn refused_by(&self, request: &Request, status: u16) -> Option<String> {
        let Request { id, key, method, path, content_type, body } = *request;
        let mut headers = vec![("x-request-id", id), ("content-type", content_type)];
        headers.push(("accept", if content_type == FORM { "text/html" } else { "application/json" }));
        if !key.is_empty() {
            headers.push(("authorization", key));
        }
        let Reply { status: found, headers, body } =
            self.process.client().send(method, path, &headers, body.as_bytes());
        let body = String::from_utf8(body).expect("UTF-8");
        assert_eq!(found, status, "{id}: {body}");
        assert!(!body.contains(".graphqls:") && !body.contains("refused_by"), "{id}: {body}");
        assert!(!headers.iter().any(|(_, value)| value.contains("graphqls:")), "{id}: {headers:?}");
        self.line(id, "request")["refused_by"].as_str().map(str::to_owned)
    }
}

const JSON: &str = "application/json";
const PATCH: &str = "application/merge-patch+json";
const FORM: &str = "application/x-www-form-urlencoded";

struct Request<'r> {
    id: &'r str,
    key: &'r str,
    method: &'r str,
    path: &'r str,
    content_type: &'r str,
    body: &'r str,
}

fn check_log(store: &[&str]) {
    let blog = Blog::new(store);
    let (author, editor) = (blog.author.as_str(), blog.editor.as_str());
    let graphql = |text: &str| json!({ "query": text }).to_string();
    let deletes = graphql(
        r#"mutation { a: deletePost(id: 2) { id } b: deletePost(id: 2) { id } c: updatePost(id: 2, input: { title: "x" }) { id } }"#,
    );
    let unseen = graphql("mutation { deletePost(id: 4) { id } }");
    let read = blog.place("read: \"visible || mine || role(EDITOR)\"");
    let hidden = graphql("{ users { name email } }");
    let shown = graphql("{ users { name } }");
    let update = blog.place("update: \"mine || role(EDITOR, ADMIN)\"");
    let delete = blog.place("delete: \"mine && !published || role(EDITOR)\"");
    let note = blog.place("note: String");
    let schema = blog.place("extend schema");
    let comment = blog.place("create: \"signedIn\"");
    let request =
        |id, key, method, path, content_type, body| Request { id, key, method, path, content_type, body };
    let both = format!("{delete}, {update}");
    for (asked, status, expected) in [
        (request("r1", "", "POST", "/comments", JSON, r#"{"postId": 1, "text": "a"}"#), 401, Some(&comment)),
        (request("r2", author, "PATCH", "/posts/2", PATCH, r#"{"title": "x"}"#), 403, Some(&update)),
        (request("r3", author, "DELETE", "/users/1", JSON, ""), 403, Some(&schema)),
        (request("r4", author, "PATCH", "/posts/1", PATCH, r#"{"note": "x"}"#), 403, Some(&note)),
        (request("r5", author, "GET", "/posts?fields=note", JSON, ""), 403, Some(&note)),
        (request("r6", author, "GET", "/posts?sort=note", JSON, ""), 403, Some(&note)),
        (request("r7", author, "GET", "/posts?note=x", JSON, ""), 403, Some(&note)),
        (request("r8", author, "GET", "/posts/1", JSON, ""), 200, None),
        (request("r9", editor, "PATCH", "/posts/2", PATCH, r#"{"title": "y"}"#), 200, None),
        (request("r10", "Bearer tfk_unknown", "GET", "/posts", JSON, ""), 401, None),
        (request("r11", author, "PATCH", "/posts/4", PATCH, r#"{"title": "x"}"#), 404, Some(&read)),
        (request("r12", author, "DELETE", "/posts/4", JSON, ""), 404, Some(&read)),
        (request("r13", author, "PATCH", "/posts/999", PATCH, r#"{"title": "x"}"#), 404, None),
        (request("g4", author, "POST", "/graphql", JSON, &unseen), 200, Some(&read)),
        (request("g1", author, "POST", "/graphql", JSON, &deletes), 200, Some(&both)),
        (request("g2", "", "POST", "/graphql", JSON, &hidden), 200, Some(&blog.place("email: String!"))),
        (request("g3", "", "POST", "/graphql", JSON, &shown), 200, None),
        (request("p1", author, "POST", "/posts/2", FORM, "title=z"), 403, Some(&update)),
        (request("p2", author, "POST", "/posts/2/delete", FORM, ""), 403, Some(&delete)),
        (request("p3", author, "GET", "/users/new", FORM, ""), 403, Some(&schema)),
    ] {
        assert_eq!(blog.refused_by(&asked, status).as_ref(), expected, "{}", asked.id);
    }
    let metrics = blog.process.client().send("GET", "/metrics", &[], b"").text();
    for line in [
        "trefoil_refused_total{code=\"FORBIDDEN\"} 12",
        "trefoil_refused_total{code=\"UNAUTHENTICATED\"} 2",
        "trefoil_refused_total{code=\"NOT_FOUND\"} 3",
    ] {
        assert!(metrics.contains(line), "{line} is missing in\n{metrics}");
    }
}

#[test]
fn log_says_which_rule_refused() {
    check_log(&["--database", "sqlite:"]);
}

#[test]
fn log_says_which_rule_refused_on_postgres() {
    check_log(&["--database", &postgres::database()]);
}

#[tokio::test]
async fn log_says_which_rule_refused_an_operation_on_a_socket() {
    let blog =
        tokio::task::spawn_blocking(|| Blog::new(&["--database", "sqlite:"])).await.expect("it starts");
    let headers = [
        ("sec-websocket-protocol", "graphql-transport-ws"),
        ("x-request-id", "socket-1"),
        ("authorization", blog.author.as_str()),
    ];
    let (mut line, _) = shake_at(blog.process.address, &headers).await.expect("the handshake");
    line.send(json!({ "type": "connection_init" })).await;
    assert_eq!(line.receive().await["type"], "connection_ack");
    line.subscribe("operation-7", "mutation { deletePost(id: 2) { id } }").await;
    let answer = line.receive().await;
    assert!(answer.to_string().contains("FORBIDDEN") && !answer.to_string().contains("graphqls"), "{answer}");
    let logged = blog.line("socket-1", "operation refused");
    assert_eq!(logged["operation_id"], "operation-7");
    assert_eq!(logged["refused_by"], blog.place("delete: \"mine && !published"));
    let metrics = Client::to(blog.process.address).send("GET", "/metrics", &[], b"").text();
    assert!(metrics.contains("trefoil_refused_total{code=\"FORBIDDEN\"} 1"), "{metrics}");
}
