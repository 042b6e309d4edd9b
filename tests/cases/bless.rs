//! Rewrites the responses of a case file from those of the server.
//!
//! What still fits stays as it is written, wildcards and comments included. Where two runs of the same case answered
//! differently a `*` is written. A text with `*` that fits no more is left to its author, who meant a part of the answer.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use serde_json::{Map, Value};

use super::file::{CaseFile, CaseStep, header, parse};
use super::judge::{compare, fits, judge_body};
use super::run::StepResult;
use crate::support::Reply;

/// A line of JSON that is longer is broken.
const WIDEST: usize = 150;

/// The text of the file with the answers of two runs.
pub fn blessed(text: &str, case: &CaseFile, runs: &[Vec<StepResult>; 2]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let [first, second] = runs;
    for ((step, first), second) in case.steps.iter().zip(first).zip(second).rev() {
        if let (StepResult::Answered(first), StepResult::Answered(second)) = (first, second) {
            let answer = answer(step, &lines[step.answer.clone()], first, second);
            lines.splice(step.answer.clone(), answer);
        }
    }
    lines.join("\n") + "\n"
}

fn answer(step: &CaseStep, written: &[String], reply: &Reply, other: &Reply) -> Vec<String> {
    let mut lines = vec![format!("< {}", reply.status)];
    if step.status.is_none() {
        lines.extend(body(step, reply, other));
        return lines;
    }
    let mut new_body = judge_body(step, reply).is_err().then(|| body(step, reply, other));
    let is_new = new_body.is_some();
    let mut in_body = false;
    for line in &written[1..] {
        let found = header(line).filter(|_| !in_body);
        if line.starts_with('#') {
            lines.push(line.clone());
        } else if let Some((name, pattern)) = found {
            lines.extend(header_line(&name, &pattern, reply, other));
        } else {
            in_body = true;
            lines.extend(new_body.take().unwrap_or_default());
            if !is_new {
                lines.push(line.clone());
            }
        }
    }
    lines
}

/// None when the answer has no such header any more.
fn header_line(name: &str, pattern: &str, reply: &Reply, other: &Reply) -> Option<String> {
    let value = reply.header(name)?;
    let value = if fits(pattern, value) {
        pattern.to_owned()
    } else {
        other.header(name).map_or("*".to_owned(), |other| common_text(value, other))
    };
    Some(format!("{name}: {value}"))
}

fn body(step: &CaseStep, reply: &Reply, other: &Reply) -> Vec<String> {
    let expected = step.expected_body.trim();
    let json = |reply: &Reply| {
        let value: Value = serde_json::from_slice(&reply.body).ok()?;
        (value.is_object() || value.is_array()).then_some(value)
    };
    if let Some(found) = json(reply) {
        let stable = json(other).map_or(found.clone(), |other| common(&found, &other));
        let wanted = serde_json::from_str(expected).unwrap_or(Value::Null);
        let mut text = String::new();
        write(&renewed(&wanted, &found, &stable), 0, &mut text);
        return text.lines().map(str::to_owned).collect();
    }
    if expected.contains('*') && !expected.starts_with(['{', '[']) {
        return expected.lines().map(str::to_owned).collect();
    }
    let text = common_text(reply.text().trim(), other.text().trim());
    text.lines().enumerate().map(|(number, line)| text_line(number, line)).collect()
}

/// A line of a text that would be read as something else begins with a `*` instead of its first letter.
fn text_line(number: usize, line: &str) -> String {
    let is_other = line.starts_with('#') || ["> ", "< ", "! "].iter().any(|mark| line.starts_with(mark));
    let is_first = number == 0 && (header(line).is_some() || line.starts_with(['{', '[']));
    let mut letters = line.chars();
    if is_other || is_first {
        letters.next();
        return format!("*{}", letters.as_str());
    }
    line.to_owned()
}

/// What was found, in the words of what was wanted where those still fit, else with a `*` for what is not stable.
fn renewed(wanted: &Value, found: &Value, stable: &Value) -> Value {
    if compare("", wanted, found).is_ok() {
        return wanted.clone();
    }
    match (wanted, found, stable) {
        (Value::Array(wanted), Value::Array(found), Value::Array(stable)) => {
            let known = |index: usize| wanted.get(index).unwrap_or(&Value::Null);
            let pairs = found.iter().zip(stable).enumerate();
            Value::Array(pairs.map(|(index, (found, stable))| renewed(known(index), found, stable)).collect())
        }
        (Value::Object(wanted), Value::Object(found), Value::Object(stable)) => {
            let last = found.keys().rposition(|key| wanted.contains_key(key)).map_or(0, |last| last + 1);
            let shown = if wanted.contains_key("*") { last } else { found.len() };
            let known = |key: &str| wanted.get(key).unwrap_or(&Value::Null);
            let members = found.iter().take(shown);
            let mut members: Map<String, Value> =
                members.map(|(key, found)| (key.clone(), renewed(known(key), found, &stable[key]))).collect();
            members.extend(wanted.get("*").map(|any| ("*".to_owned(), any.clone())));
            Value::Object(members)
        }
        _ => stable.clone(),
    }
}

/// What two answers have in common, `*` where they differ.
fn common(one: &Value, other: &Value) -> Value {
    match (one, other) {
        _ if one == other => one.clone(),
        (Value::Array(ones), Value::Array(others)) if ones.len() == others.len() => {
            Value::Array(ones.iter().zip(others).map(|(one, other)| common(one, other)).collect())
        }
        (Value::Object(ones), Value::Object(others)) if ones.keys().eq(others.keys()) => {
            let members = ones.iter().map(|(key, one)| (key.clone(), common(one, &others[key])));
            Value::Object(members.collect())
        }
        _ => Value::String("*".to_owned()),
    }
}

fn common_text(one: &str, other: &str) -> String {
    if one == other {
        return one.to_owned();
    }
    let same = |(one, other): &(char, char)| one == other;
    let head: String = one.chars().zip(other.chars()).take_while(same).map(|(letter, _)| letter).collect();
    let (one, other) = (&one[head.len()..], &other[head.len()..]);
    let tail: Vec<char> =
        one.chars().rev().zip(other.chars().rev()).take_while(same).map(|(letter, _)| letter).collect();
    format!("{head}*{}", tail.into_iter().rev().collect::<String>())
}

/// As case files are written: on one line, or broken where that would be too wide.
fn write(value: &Value, depth: usize, text: &mut String) {
    let line = one_line(value);
    if line.len() + 2 * depth <= WIDEST {
        *text += &line;
        return;
    }
    let indent = "  ".repeat(depth + 1);
    let separator = |index: usize| format!("{}\n{indent}", if index == 0 { "" } else { "," });
    match value {
        Value::Array(items) => {
            *text += "[";
            for (index, item) in items.iter().enumerate() {
                *text += &separator(index);
                write(item, depth + 1, text);
            }
            *text += "]";
        }
        Value::Object(members) => {
            *text += "{";
            for (index, (key, member)) in members.iter().enumerate() {
                *text += &format!("{}{}: ", separator(index), Value::from(key.as_str()));
                write(member, depth + 1, text);
            }
            *text += "}";
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => *text += &line,
    }
}

/// JSON with a space after commas and colons.
fn one_line(value: &Value) -> String {
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, SpacedFormat);
    value.serialize(&mut serializer).expect("a value can be written");
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

struct SpacedFormat;

impl Formatter for SpacedFormat {
    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.begin_array_value(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

/// A case whose answers are old, and what becomes of it.
pub fn keeps_what_still_fits() {
    let old = "\
# A comment.
> GET /a
< 200
etag: *
age: 1
# Another comment.
{\"id\": \"1\", \"at\": \"20*\", \"gone\": 1, \"tags\": [\"*\"], \"*\": 1}

# Of the next one.
> GET /b

> GET /c
< 200
*part*
";
    let reply = |body: &str, tag: &str| {
        let headers = vec![("etag".to_owned(), tag.to_owned()), ("age".to_owned(), "2".to_owned())];
        StepResult::Answered(Reply { status: 201, headers, body: body.as_bytes().to_vec() })
    };
    let run = |now: &str| {
        let record = format!(r#"{{"id":"2","at":"20{now}","new":"{now}","tags":["x",1.50],"more":1}}"#);
        vec![reply(&record, now), reply(&format!("error: {now} o'clock\n# no"), now), reply("other", now)]
    };
    let case = parse(Path::new("old"), old);
    assert_eq!(
        blessed(old, &case, &[run("11"), run("12")]),
        "\
# A comment.
> GET /a
< 201
etag: *
age: 2
# Another comment.
{\"id\": \"2\", \"at\": \"20*\", \"new\": \"*\", \"tags\": [\"*\", 1.50], \"*\": 1}

# Of the next one.
> GET /b
< 201
*rror: 1* o'clock
* no

> GET /c
< 201
*part*
"
    );
}
