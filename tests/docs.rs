//! Runs the examples of the guide: schemas must be valid, requests must get the documented responses.

mod cluster;
mod errors;
mod generated;
mod links;
mod metrics;
mod operation_verbs;
mod tutorial;
mod whole;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::support::{Client, Process, Server, command, postgres};

const PAGES: &[&str] =
    &["README.md", "docs/schema.md", "docs/operations.md", "docs/graphql.md", "docs/storage.md"];

/// A fenced block: its language and its text.
struct Block {
    language: String,
    text: String,
    line: usize,
}

fn blocks(page: &str) -> Vec<Block> {
    let text = fs::read_to_string(page).expect("a page of the guide");
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for (number, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), open) {
            (Some(language), false) => {
                blocks.push(Block { language: language.to_owned(), text: String::new(), line: number + 1 });
                open = true;
            }
            (Some(_), true) => open = false,
            (None, true) => {
                let block = blocks.last_mut().expect("an open block");
                block.text += line;
                block.text.push('\n');
            }
            (None, false) => {}
        }
    }
    blocks
}

/// Everything the page says must be in the answer; what it leaves out may be there too.
fn contains(answer: &Value, said: &Value) -> bool {
    match (answer, said) {
        (Value::Object(answer), Value::Object(said)) => {
            said.iter().all(|(key, said)| answer.get(key).is_some_and(|answer| contains(answer, said)))
        }
        (Value::Array(answer), Value::Array(said)) => {
            answer.len() == said.len() && answer.iter().zip(said).all(|(answer, said)| contains(answer, said))
        }
        _ => answer == said,
    }
}

#[test]
fn guide_requests_get_the_documented_responses() {
    let server = Server::sample();
    let mut client = Client::of(&server);
    let mut compared = 0;
    for page in PAGES {
        let blocks = blocks(page);
        for (position, block) in blocks.iter().enumerate() {
            let is_request = block.language == "graphql" && !block.text.contains("type ");
            if !is_request {
                continue;
            }
            let answer = client.graphql(&block.text);
            match blocks.get(position + 1).filter(|next| next.language == "json") {
                Some(said) => {
                    let expected: Value = serde_json::from_str(&said.text).expect("JSON in the guide");
                    assert!(contains(&answer, &expected), "{page}:{}: got {answer:#}", block.line);
                    compared += 1;
                }
                None => assert!(answer.get("errors").is_none(), "{page}:{}: got {answer:#}", block.line),
            }
        }
    }
    assert!(compared >= 3, "the guide shows {compared} answers");
}

/// The commands of the README, but for those that build: each is run as it is written.
#[test]
fn readme_commands_work() {
    let server = Server::sample();
    let folder = tempfile::tempdir().expect("a folder");
    let (mut ran, mut asked) = (0, 0);
    for block in blocks("README.md").into_iter().filter(|block| block.language == "console") {
        for line in block.text.replace("\\\n", " ").lines() {
            let line =
                line.strip_prefix("$ ").expect("a command").split('#').next().unwrap_or_default().trim();
            if let Some(arguments) = line.strip_prefix("trefoil ") {
                let arguments: Vec<&str> = arguments.split_whitespace().collect();
                if arguments[0] == "serve" {
                    drop(Process::start(folder.path(), &arguments));
                } else {
                    assert!(
                        command(folder.path(), &arguments).status().expect("it runs").success(),
                        "{line}"
                    );
                }
                ran += 1;
            } else if line.starts_with("curl ") {
                let curl = Curl::read(line);
                let answered = match curl.is_stream {
                    true => curl.follow(&Server::sample(), "\"userCreated\":{\"id\":\"8\",\"name\":\"Ada\"}"),
                    false => curl.check(&mut Client::of(&server), ""),
                };
                answered.unwrap_or_else(|why| panic!("{line}\nfound {why}"));
                asked += 1;
            }
        }
    }
    assert_eq!((ran, asked), (3, 7));
}

/// One call of curl as the guide writes it.
#[derive(Default)]
struct Curl {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<String>,
    shows_head: bool,
    /// It has no end.
    is_stream: bool,
}

/// Splits a command into words as a shell does: quotes hold together.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => quote = Some(c),
            (None, ' ') => words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty())),
            (None, c) => word.push(c),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

impl Curl {
    fn read(line: &str) -> Curl {
        let mut curl = Curl::default();
        let mut words = words(line).into_iter().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().expect("a value");
            match word.as_str() {
                "-i" => curl.shows_head = true,
                "-s" => {}
                "-N" | "-sN" => curl.is_stream = true,
                "--json" => {
                    curl.body = Some(value());
                    curl.headers.push(("content-type".to_owned(), "application/json".to_owned()));
                }
                "-X" => curl.method = value(),
                "-d" => curl.body = Some(value()),
                "-H" => {
                    let header = value();
                    let (name, value) = header.split_once(": ").expect("a header");
                    curl.headers.push((name.to_owned(), value.to_owned()));
                }
                url => curl.path = url.strip_prefix("localhost:8080").expect("our address").to_owned(),
            }
        }
        if curl.method.is_empty() {
            curl.method = if curl.body.is_some() { "POST" } else { "GET" }.to_owned();
        }
        if curl.body.is_some() && !curl.headers.iter().any(|(name, _)| name == "content-type") {
            curl.headers.push(("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned()));
        }
        curl
    }

    /// What is wrong with the answer that the guide shows.
    fn check(&self, client: &mut Client, said: &str) -> Result<(), String> {
        let headers: Vec<(&str, &str)> =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let body = self.body.clone().unwrap_or_default();
        let reply = client.send(&self.method, &self.path, &headers, body.as_bytes());
        let said = if self.shows_head {
            let (head, body) = said.split_once("\n\n").unwrap_or((said, ""));
            let mut lines = head.lines();
            let status = lines.next().and_then(|line| line.split(' ').nth(1));
            if status != Some(reply.status.to_string().as_str()) {
                return Err(format!("status {}", reply.status));
            }
            for line in lines {
                let (name, value) = line.split_once(": ").ok_or(line)?;
                if reply.header(name) != Some(value) {
                    return Err(format!("{name}: {:?}", reply.header(name)));
                }
            }
            body
        } else {
            said
        };
        let text = reply.text();
        if !self.shows_head && said.is_empty() && reply.status >= 400 {
            return Err(text);
        }
        let fits = match serde_json::from_str::<Value>(said) {
            Ok(said) => serde_json::from_str(&text).is_ok_and(|answer: Value| contains(&answer, &said)),
            // A terminal shows neither a byte order mark nor the first half of a line end.
            Err(_) => {
                let shown = text.trim_start_matches('\u{feff}').replace('\r', "");
                said.is_empty() || said.trim_end() == shown.trim_end()
            }
        };
        if fits { Ok(()) } else { Err(text) }
    }
}

impl Curl {
    /// Follows a stream until it has said this, ids of events aside. The user it tells of is made once it has begun.
    fn follow(&self, server: &Server, said: &str) -> Result<(), String> {
        let ids = regex::Regex::new("[0-9a-f]{8}-[0-9]+").expect("an expression");
        let plain = |text: &str| ids.replace_all(&text.replace("\r\n", "\n"), "ID").into_owned();
        let name = said.split("\"name\":\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a name");
        let wanted = plain(said.trim_end());
        let mut stream = self.open(server.address);
        let (mut text, mut made) = (String::new(), false);
        while !plain(&text).contains(&wanted) {
            let Some(chunk) = chunk(&mut stream) else { return Err(text) };
            text += &chunk;
            if !std::mem::replace(&mut made, true) {
                let fields = serde_json::json!({ "name": name, "email": "" }).to_string();
                let headers = [("content-type", "application/json")];
                assert_eq!(
                    Client::of(server).send("POST", "/users", &headers, fields.as_bytes()).status,
                    201
                );
            }
        }
        Ok(())
    }

    fn open(&self, address: SocketAddr) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(address).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(40))).expect("a timeout");
        let mut head = format!("{} {} HTTP/1.1\r\nHost: localhost\r\n", self.method, self.path);
        self.headers.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
        let body = self.body.as_deref().unwrap_or_default();
        write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).expect("sent");
        let mut stream = BufReader::new(stream);
        assert!(line(&mut stream).contains(" 200 "), "{} {}", self.method, self.path);
        while !line(&mut stream).trim().is_empty() {}
        stream
    }
}

fn line(stream: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    let _ = stream.read_line(&mut line);
    line
}

/// None when nothing comes any more.
fn chunk(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let size = usize::from_str_radix(line(stream).trim(), 16).ok().filter(|size| *size > 0)?;
    let mut bytes = vec![0; size + 2];
    stream.read_exact(&mut bytes).ok()?;
    String::from_utf8(bytes[..size].to_vec()).ok()
}

/// The event streams of the guide and their documented events; a heartbeat may come at any time.
#[test]
fn guide_streams_send_the_documented_events() {
    let mut followed = 0;
    for page in ["docs/rest.md", "docs/graphql.md"] {
        let blocks = blocks(page);
        for (position, block) in blocks.iter().enumerate() {
            let text = block.text.replace("\\\n", " ");
            let Some(at) = text.find("curl -N ") else { continue };
            let (command, below) = text[at..].split_once('\n').expect("a line");
            let said = if below.trim().is_empty() { blocks[position + 1].text.as_str() } else { below };
            let said = said.split("\n:\n").next().unwrap_or_default();
            if let Err(found) = Curl::read(command).follow(&Server::sample(), said) {
                panic!("{page}:{}: {command}\nfound {found}", block.line);
            }
            followed += 1;
        }
    }
    assert_eq!(followed, 3);
}

/// The `trefoil.toml` examples of the REST page are valid with the schema of the sample.
#[test]
fn guide_manifests_are_valid() {
    let folder = tempfile::tempdir().expect("a folder");
    let app = folder.path().join("my-app");
    fs::create_dir_all(app.join("graphql")).expect("a folder");
    for name in ["users.graphqls", "shop.graphqls"] {
        fs::copy(format!("app/graphql/{name}"), app.join("graphql").join(name)).expect("a copy");
    }
    let blocks: Vec<Block> =
        blocks("docs/rest.md").into_iter().filter(|block| block.language == "toml").collect();
    assert!(blocks.len() >= 3);
    let manifest: Vec<&str> = blocks.iter().map(|block| block.text.as_str()).collect();
    fs::write(app.join("trefoil.toml"), manifest.join("\n")).expect("a manifest");
    assert!(command(folder.path(), &["check", "my-app"]).status().expect("it runs").success());
}

/// The SQL statement that the guide shows for other programs.
#[test]
fn guide_sql_for_writing_to_a_list_works() {
    let folder = tempfile::tempdir().expect("a folder");
    let process = Process::start(folder.path(), &[]);
    let blocks = blocks("docs/rest.md");
    let block = blocks.iter().find(|block| block.text.starts_with("$ sqlite3 ")).expect("a command");
    let words = words(&block.text.replace('\n', " "));
    let connection = rusqlite::Connection::open(folder.path().join(&words[2])).expect("the store");
    connection.busy_timeout(Duration::from_secs(10)).expect("patience");
    connection.execute_batch(&words[3]).expect("the statement is carried out");
    assert_eq!(process.client().send("GET", "/items", &[], b"").text(), "[\"bread\"]");
}

/// The commands of the page on storage, on a schema that loses the field they name.
#[test]
fn storage_page_commands_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let schema =
        |fields: &str| format!("type Product {{ id: ID! {fields} }}\ntype Query {{ products: [Product!]! }}");
    fs::create_dir_all(folder.path().join("my-app/graphql")).expect("a folder");
    let write = |fields: &str| fs::write(folder.path().join("my-app/graphql/a.graphqls"), schema(fields));
    write("name: String colour: String").expect("a schema");
    drop(Process::start(folder.path(), &["serve", "my-app"]));
    write("name: String").expect("a schema");
    let mut ran = Vec::new();
    for block in blocks("docs/storage.md").iter().filter(|block| block.language == "console") {
        for line in block.text.lines() {
            let line = line.strip_prefix("$ trefoil ").expect("a command");
            let mut arguments: Vec<&str> = line.split(' ').collect();
            // The database of this one is elsewhere: that it is understood must do.
            arguments.extend(arguments.contains(&"serve").then_some("--print-config"));
            assert!(command(folder.path(), &arguments).status().expect("it runs").success(), "{line}");
            ran.push(arguments[0].to_owned());
        }
    }
    assert_eq!(ran, ["serve", "migrate", "migrate"]);
}

#[test]
fn rest_page_commands_get_documented_responses() {
    let compared = commands("docs/rest.md");
    assert!(compared >= 20, "the page shows {compared} answers");
}

#[test]
fn pages_page_commands_get_documented_responses() {
    let compared = commands("docs/pages.md");
    assert!(compared >= 4, "the page shows {compared} answers");
}

#[test]
fn operator_pages_commands_get_documented_responses() {
    assert!(commands("docs/errors.md") >= 2);
    assert!(commands("docs/security.md") >= 5);
    assert!(commands("docs/operating.md") >= 1);
}

/// Each command of a page in order, and the answer that stands below it.
fn commands(page: &str) -> usize {
    let server = Server::sample();
    let mut client = Client::of(&server);
    let mut compared = 0;
    for block in blocks(page).into_iter().filter(|block| block.language == "console") {
        for step in block.text.split("$ ").filter(|step| step.starts_with("curl ")) {
            // A stream does not end; a test of its own holds it to its word.
            if step.starts_with("curl -N ") {
                continue;
            }
            let (line, said) = step.split_once('\n').unwrap_or((step, ""));
            if let Err(why) = Curl::read(line).check(&mut client, said) {
                panic!("{page}:{}: {line}\nfound {why}", block.line);
            }
            compared += 1;
        }
    }
    compared
}

/// The views and the manifest of the guide, put together into an application.
#[test]
fn guide_views_are_rendered() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(command(folder.path(), &["new", "my-app"]).status().expect("it runs").success());
    let app = folder.path().join("my-app");
    fs::create_dir(app.join("views")).expect("a folder");
    let mut views = 0;
    for block in blocks("docs/pages.md") {
        match block.language.as_str() {
            "toml" => fs::write(app.join("trefoil.toml"), &block.text).expect("written"),
            "html" => {
                let name = block.text.split_whitespace().nth(1).expect("a comment with the name");
                fs::write(app.join(name), &block.text).expect("written");
                views += 1;
            }
            _ => {}
        }
    }
    assert_eq!(views, 3, "views in the guide");
    assert!(command(folder.path(), &["check", "my-app"]).status().expect("it runs").success());
    let process = Process::start(folder.path(), &["serve", "my-app", "--database", "memory:"]);
    let mut client = process.client();
    for (path, part) in [
        ("/about", "<h1>About</h1>"),
        ("/about", "kept by the library."),
        ("/books", "of the books are on this page."),
        ("/books/1", "kept by the library."),
    ] {
        let reply = client.send("GET", path, &[("accept", "text/html")], b"");
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        assert!(reply.text().contains(part), "{path}: {}", reply.text());
    }
}

/// What a part of a schema in the guide takes for granted.
const AROUND: &str = "type Query { orders: [Order!]! }\nenum OrderStatus { NEW }\ntype User { id: ID! }\n\
                      type Order { id: ID! user: User status: OrderStatus! }\n";

#[test]
fn guide_schemas_are_valid() {
    let mut checked = 0;
    for page in PAGES {
        for block in blocks(page) {
            let is_part = block.language == "graphql" && block.text.starts_with("type Subscription");
            let is_schema = block.language == "graphqls" || block.text.contains("type Query");
            if !is_schema && !is_part {
                continue;
            }
            let text = if is_part { format!("{AROUND}{}", block.text) } else { block.text.clone() };
            let file = trefoil_model::SourceFile { name: (*page).to_owned(), text };
            if let Err(diagnostics) = trefoil_model::parse_schema(std::slice::from_ref(&file), &[]) {
                panic!(
                    "{page}:{}:\n{}",
                    block.line,
                    trefoil_model::diagnostic::render_all(&[file], &diagnostics)
                );
            }
            checked += 1;
        }
    }
    assert!(checked >= 4, "the guide shows {checked} schemas");
}

#[test]
fn access_page_shows_the_table_of_its_schema() {
    let page = blocks("docs/access.md");
    let text_of =
        |language: &str| page.iter().find(|block| block.language == language).expect(language).text.clone();
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(folder.path().join("my-app/graphql")).expect("a folder");
    fs::write(folder.path().join("my-app/graphql/a.graphqls"), text_of("graphqls")).expect("a schema");
    let ran = command(folder.path(), &["check", "my-app", "--rules"]).output().expect("it runs");
    let shown = String::from_utf8_lossy(&ran.stdout).into_owned();
    let table = text_of("text");
    let table = table.split_once('\n').expect("a command and its output").1;
    assert!(shown.contains(table), "{shown}\n{}", String::from_utf8_lossy(&ran.stderr));
}

/// Each command of the page in order, on an application that has records; its databases are those of the test.
#[test]
fn backup_page_commands_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |line: &str| {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let ran = command(folder.path(), &arguments).output().expect("it runs");
        assert!(ran.status.success(), "trefoil {line}\n{}", String::from_utf8_lossy(&ran.stderr));
    };
    run("new my-app");
    run("seed my-app --fake 20");
    let databases = [("copy", postgres::database()), ("shop", postgres::database())];
    let mut ran = 0;
    for block in blocks("docs/backup.md").into_iter().filter(|block| block.language == "console") {
        for line in block.text.lines() {
            let mut line = line.strip_prefix("$ trefoil ").expect("a command").to_owned();
            for (name, url) in &databases {
                line = line.replace(&format!("postgres://trefoil@db.example.org/{name}"), url);
            }
            run(&line);
            ran += 1;
        }
    }
    assert_eq!(ran, 10);
}
