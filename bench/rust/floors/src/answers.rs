//! What a floor answers: recorded answers of the server that it is the floor of, so that the bytes are the same.

use std::collections::HashMap;
use std::path::Path;

use memchr::memmem;

pub struct Answer {
    /// Name and value, in the order they came; without those that each server makes for itself.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// By the name of the workload whose request they answer.
pub struct Answers(HashMap<String, Answer>);

const OWN: &[&str] = &["date", "content-length", "transfer-encoding", "connection"];

impl Answers {
    /// `FOLDER/NAME.http` is an answer as it came over the wire.
    pub fn read(folder: &Path) -> Answers {
        let mut answers = HashMap::new();
        for entry in std::fs::read_dir(folder).expect("the folder of recorded answers") {
            let path = entry.expect("an entry of it").path();
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            answers.insert(name, parse(&std::fs::read(&path).expect("a recorded answer")));
        }
        Answers(answers)
    }

    pub fn get(&self, name: &str) -> Option<&Answer> {
        self.0.get(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }
}

fn parse(bytes: &[u8]) -> Answer {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let body = response.parse(bytes).expect("a recorded answer").unwrap();
    let value = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let kept =
        response.headers.iter().filter(|header| !OWN.contains(&header.name.to_ascii_lowercase().as_str()));
    Answer {
        headers: kept.map(|header| (header.name.to_owned(), value(header.value))).collect(),
        body: bytes[body..].to_vec(),
    }
}

/// Which workload a request belongs to.
pub fn name(method: &str, path: &str, body: &[u8]) -> &'static str {
    if method == "GET" {
        return match path.split('?').next() {
            Some("/hello") => "hello",
            Some("/items") => "items",
            _ => "products",
        };
    }
    let named = |operation: &&&str| memmem::find(body, operation.as_bytes()).is_some();
    ["getUserById", "createUser", "getAllUsers"].iter().find(named).copied().unwrap_or("change")
}
