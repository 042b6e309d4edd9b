//! Follows the tutorial from top to bottom: writes its files, runs its commands, and compares their output.

use std::fs;
use std::io::BufReader;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use super::{Block, Curl, blocks, chunk};
use crate::support::{Client, Process, command};

const PAGE: &str = "docs/tutorial.md";

/// A reader of the tutorial: their folder, the server they started, the subscription in their other terminal.
struct Reader {
    folder: tempfile::TempDir,
    server: Option<Process>,
    stream: Option<BufReader<TcpStream>>,
}

#[test]
fn tutorial_works_from_top_to_bottom() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut reader = Reader { folder, server: None, stream: None };
    for block in blocks(PAGE) {
        match block.language.as_str() {
            "console" => reader.run(&block),
            "graphqls" => reader.write(&block),
            "text" => reader.read_stream(&block),
            other => panic!("{PAGE}:{}: nothing runs `{other}`", block.line),
        }
    }
    reader.open_pages();
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
                "trefoil" => self.trefoil(rest, shown),
                "curl" => self.curl(line, shown, block.line),
                other => panic!("{PAGE}:{}: nothing runs `{other}`", block.line),
            }
        }
    }

    fn make_folder(&self, line: &str) {
        let made = Command::new("sh").current_dir(self.path()).args(["-c", line]).status();
        assert!(made.expect("a shell").success(), "{line}");
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
            panic!("{PAGE}:{place}: {line}\nfound {found}");
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
    fn open_pages(&self) {
        let text = fs::read_to_string(PAGE).expect("the tutorial");
        let mut opened = 0;
        for rest in text.split("<http://localhost:8080").skip(1) {
            let path = rest.split('>').next().expect("an address");
            let reply = self.client().send("GET", path, &[("accept", "text/html")], b"");
            assert_eq!(reply.status, 200, "{path}");
            assert!(reply.text().starts_with("<!"), "{path}: {}", reply.text());
            opened += 1;
        }
        assert!(opened >= 4, "the tutorial opens {opened} pages");
    }
}
