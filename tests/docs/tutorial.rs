//! Follows pages from top to bottom: writes their files, runs their commands, and compares the output.

use std::fs;
use std::io::BufReader;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use super::{Block, Curl, blocks, chunk};
use crate::support::{Client, Process, command};

/// A reader of a page: their folder, the server they started, the subscription in their other terminal.
struct Reader {
    page: &'static str,
    folder: tempfile::TempDir,
    server: Option<Process>,
    stream: Option<BufReader<TcpStream>>,
}

#[test]
fn tutorial_works_from_top_to_bottom() {
    follow("docs/tutorial.md").open_pages(4);
}

/// Its first pages are of another application than its last server.
#[test]
fn page_for_spring_developers_works_from_top_to_bottom() {
    follow("docs/from-spring.md");
}

fn follow(page: &'static str) -> Reader {
    let folder = tempfile::tempdir().expect("a folder");
    let mut reader = Reader { page, folder, server: None, stream: None };
    for block in blocks(page) {
        match block.language.as_str() {
            "console" => reader.run(&block),
            "graphqls" => reader.write(&block),
            "text" => reader.read_stream(&block),
            other => panic!("{page}:{}: nothing runs `{other}`", block.line),
        }
    }
    reader
}

impl Reader {
    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn client(&self) -> Client {
        self.server.as_ref().expect("the server was started").client()
    }

    /// The first line of a schema names its file. A running server has to notice it.
    fn write(&self, block: &Block) {
        let name = block.text.lines().next().and_then(|line| line.strip_prefix("# ")).expect("a file name");
        fs::write(self.path().join(name), &block.text).expect("written");
        if let Some(server) = &self.server {
            server.wait_for("reloaded the schema");
        }
    }

    fn run(&mut self, block: &Block) {
        for step in block.text.split("$ ").skip(1) {
            let (line, shown) = step.split_once('\n').unwrap_or((step, ""));
            let (program, rest) = line.split_once(' ').expect("a command with arguments");
            match program {
                "cargo" => {}
                "mkdir" => self.make_folder(line),
                "cp" => self.copy_schema(rest),
                "trefoil" => self.trefoil(rest, shown),
                "curl" => self.curl(line, shown, block.line),
                other => panic!("{}:{}: nothing runs `{other}`", self.page, block.line),
            }
        }
    }

    fn make_folder(&self, line: &str) {
        let made = Command::new("sh").current_dir(self.path()).args(["-c", line]).status();
        assert!(made.expect("a shell").success(), "{line}");
    }

    /// A schema of another project, which the tests have, too.
    fn copy_schema(&self, arguments: &str) {
        let (from, to) = arguments.split_once(' ').expect("two paths");
        let name = Path::new(from).file_stem().and_then(|name| name.to_str()).expect("a name");
        let ours = format!("tests/schemas/spring_{name}.graphqls");
        fs::copy(ours, self.path().join(to).join("schema.graphqls")).expect("copied");
    }

    fn trefoil(&mut self, arguments: &str, shown: &str) {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        if arguments[0] == "serve" {
            // The one before lets go of the data folder first.
            self.server = None;
            self.server = Some(Process::start(self.path(), &arguments));
            return;
        }
        let ran = command(self.path(), &arguments).output().expect("it runs");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let said = String::from_utf8(ran.stdout).expect("UTF-8");
        assert!(shown.is_empty() || said.trim_end() == shown.trim_end(), "{said}");
    }

    fn curl(&mut self, line: &str, shown: &str, place: usize) {
        let curl = Curl::read(line);
        if curl.is_stream {
            let address = self.server.as_ref().expect("the server was started").address;
            self.stream = Some(curl.open(address));
        } else if let Err(found) = curl.check(&mut self.client(), shown) {
            panic!("{}:{place}: {line}\nfound {found}", self.page);
        }
    }

    /// What the subscription shows, but for the ids of events.
    fn read_stream(&mut self, block: &Block) {
        let ids = regex::Regex::new("[0-9a-f]{8}-[0-9]+").expect("an expression");
        let plain = |text: &str| ids.replace_all(&text.replace("\r\n", "\n"), "ID").into_owned();
        let mut stream = self.stream.take().expect("a subscription");
        let mut text = String::new();
        while !plain(&text).contains(plain(&block.text).trim_end()) {
            text += &chunk(&mut stream).unwrap_or_else(|| panic!("the stream ended:\n{text}"));
        }
    }

    /// Every address that the page asks the reader to open is a page.
    fn open_pages(&self, at_least: usize) {
        let text = fs::read_to_string(self.page).expect("the page");
        let mut opened = 0;
        for rest in text.split("<http://localhost:8080").skip(1) {
            let path = rest.split('>').next().expect("an address");
            let reply = self.client().send("GET", path, &[("accept", "text/html")], b"");
            assert_eq!(reply.status, 200, "{path}");
            assert!(reply.text().starts_with("<!"), "{path}: {}", reply.text());
            opened += 1;
        }
        assert!(opened >= at_least, "{} opens {opened} pages", self.page);
    }
}
