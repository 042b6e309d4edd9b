//! Parses a case file: what is served, and the steps with the lines of their responses.

use std::ops::Range;
use std::path::Path;

#[derive(Default)]
pub struct CaseFile {
    pub schema: String,
    pub manifest: String,
    /// Names of the settings table and values, as they would be written after a flag.
    pub settings: Vec<(String, String)>,
    pub steps: Vec<CaseStep>,
}

#[derive(Default)]
pub struct CaseStep {
    pub line: usize,
    /// What follows `> `, or `! ` and a deed.
    pub request: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// None where no answer has been written yet.
    pub status: Option<u16>,
    pub expected_headers: Vec<(String, String)>,
    pub expected_body: String,
    /// The lines of the answer, counted from 0; empty, behind the request, where there is none yet.
    pub answer: Range<usize>,
}

pub fn parse(file: &Path, text: &str) -> CaseFile {
    let mut case = CaseFile::default();
    let mut in_manifest = false;
    for (number, line) in text.lines().enumerate() {
        let place = || format!("{}:{}", file.display(), number + 1);
        if line.starts_with('#') {
            continue;
        }
        let deed = line.starts_with("! ").then_some(line);
        if let Some(request) = line.strip_prefix("> ").or(deed) {
            let answer = number + 1..number + 1;
            let step =
                CaseStep { line: number + 1, request: request.to_owned(), answer, ..CaseStep::default() };
            case.steps.push(step);
        } else if let Some(step) = case.steps.last_mut() {
            step.take(number, line, &place);
        } else if let Some(setting) = line.strip_prefix("set ") {
            let (name, value) =
                setting.split_once(' ').unwrap_or_else(|| panic!("{}: a setting without a value", place()));
            case.settings.push((name.to_owned(), value.to_owned()));
        } else if let Some(line) = line.strip_prefix("    ") {
            let part = if in_manifest { &mut case.manifest } else { &mut case.schema };
            *part += &format!("{line}\n");
        } else if !line.is_empty() {
            in_manifest = line == "manifest";
            assert!(in_manifest || line == "schema", "{}: {line}", place());
        }
    }
    case
}

impl CaseStep {
    pub fn is_deed(&self) -> bool {
        self.request.starts_with("! ")
    }

    fn take(&mut self, number: usize, line: &str, place: &dyn Fn() -> String) {
        if let Some(status) = line.strip_prefix("< ") {
            let status = status.parse().unwrap_or_else(|_| panic!("{}: `{status}` is no status", place()));
            self.status = Some(status);
            self.answer = number..number + 1;
            return;
        }
        let (headers, body) = match self.status {
            None => (&mut self.headers, &mut self.body),
            Some(_) => (&mut self.expected_headers, &mut self.expected_body),
        };
        match header(line) {
            Some(header) if body.is_empty() => headers.push(header),
            _ => *body += &format!("{line}\n"),
        }
        if !line.is_empty() {
            self.answer.end = number + 1;
            if self.status.is_none() {
                self.answer.start = number + 1;
            }
        }
    }
}

/// A line `name: value`, as it may stand before a body.
pub fn header(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(": ")?;
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    is_name.then(|| (name.to_owned(), value.to_owned()))
}
