//! Runs the examples of the guide: schemas must be served, requests must get the answer that stands below them.

use std::fs;

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
fn requests_of_the_guide_get_the_answers_below_them() {
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
fn commands_of_the_readme_work() {
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
            } else if let Some((_, body)) = line.split_once(" -d '") {
                assert!(
                    line.starts_with("curl -s localhost:8080/graphql -H 'content-type: application/json'"),
                    "{line}"
                );
                let headers = [("content-type", "application/json")];
                let body = body.trim_end_matches('\'').as_bytes();
                let answer = Client::of(&server).send("POST", "/graphql", &headers, body).json();
                assert!(answer.get("errors").is_none() && answer.get("data").is_some(), "{line}\n{answer:#}");
                asked += 1;
            }
        }
    }
    assert_eq!((ran, asked), (3, 2));
}

/// One call of curl as the guide writes it.
#[derive(Default)]
struct Curl {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<String>,
    shows_head: bool,
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
        let fits = match serde_json::from_str::<Value>(said) {
            Ok(said) => serde_json::from_str(&text).is_ok_and(|answer: Value| contains(&answer, &said)),
            Err(_) => said.is_empty() || said.trim_end() == text.trim_end(),
        };
        if fits { Ok(()) } else { Err(text) }
    }
}

/// Each command of the REST page in order, and the answer that stands below it.
#[test]
fn commands_of_the_rest_page_get_the_answers_below_them() {
    let server = Server::sample();
    let mut client = Client::of(&server);
    let mut compared = 0;
    for block in blocks("docs/rest.md").into_iter().filter(|block| block.language == "console") {
        for step in block.text.split("$ ").filter(|step| step.starts_with("curl ")) {
            // A stream does not end; tests of its own hold it to its word.
            if step.starts_with("curl -N ") {
                continue;
            }
            let (line, said) = step.split_once('\n').unwrap_or((step, ""));
            if let Err(why) = Curl::read(line).check(&mut client, said) {
                panic!("docs/rest.md:{}: {line}\nfound {why}", block.line);
            }
            compared += 1;
        }
    }
    assert!(compared >= 20, "the page shows {compared} answers");
}

#[test]
fn schemas_of_the_guide_have_no_mistakes() {
    let mut checked = 0;
    for page in PAGES {
        for block in blocks(page) {
            let is_schema = block.language == "graphqls" || block.text.contains("type Query");
            if !is_schema {
                continue;
            }
            let file = trefoil::model::SourceFile { name: (*page).to_owned(), text: block.text.clone() };
            if let Err(diagnostics) = trefoil::model::parse(std::slice::from_ref(&file), &[]) {
                panic!(
                    "{page}:{}:\n{}",
                    block.line,
                    trefoil::model::diagnostic::render(&[file], &diagnostics)
                );
            }
            checked += 1;
        }
    }
    assert!(checked >= 3, "the guide shows {checked} schemas");
}

/// Each command of the page in order, on an application that has records; its databases are those of the test.
#[test]
fn commands_of_the_backup_page_work() {
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
