//! Compares a response with the one that a case file expects.

use serde_json::Value;

use super::file::CaseStep;
use crate::support::Reply;

/// The first thing that is wrong with the answer to a step.
pub fn judge(step: &CaseStep, reply: &Reply) -> Result<(), String> {
    let status = step.status.ok_or("no answer is written: BLESS=1 writes it")?;
    if reply.status != status {
        return Err(format!("expected status {status}"));
    }
    for (name, pattern) in &step.expected_headers {
        match reply.header(name) {
            Some(value) if fits(pattern, value) => {}
            found => return Err(format!("expected {name}: {pattern}, found {found:?}")),
        }
    }
    judge_body(step, reply)
}

pub fn judge_body(step: &CaseStep, reply: &Reply) -> Result<(), String> {
    let expected = step.expected_body.trim();
    match expected.chars().next() {
        None => Ok(()),
        Some('{' | '[') => {
            let wanted: Value = serde_json::from_str(expected).map_err(|error| error.to_string())?;
            let found: Value = serde_json::from_slice(&reply.body).map_err(|error| error.to_string())?;
            compare("", &wanted, &found)
        }
        Some(_) if fits(expected, reply.text().trim()) => Ok(()),
        Some(_) => Err(format!("expected {expected}")),
    }
}

/// The first difference, with the way to it.
pub fn compare(at: &str, wanted: &Value, found: &Value) -> Result<(), String> {
    match (wanted, found) {
        (Value::String(pattern), _) if pattern == "*" => Ok(()),
        (Value::String(pattern), Value::String(text)) if fits(pattern, text) => Ok(()),
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => {
            let mut pairs = wanted.iter().zip(found).enumerate();
            pairs.try_for_each(|(i, (wanted, found))| compare(&format!("{at}[{i}]"), wanted, found))
        }
        (Value::Object(wanted), Value::Object(found)) => {
            let open = wanted.contains_key("*");
            let keys: Vec<&String> = wanted.keys().filter(|key| *key != "*").collect();
            let theirs: Vec<&String> =
                found.keys().take(if open { keys.len() } else { usize::MAX }).collect();
            if keys != theirs {
                return Err(format!("at {at}: expected the keys {keys:?}, found {theirs:?}"));
            }
            keys.iter().try_for_each(|key| compare(&format!("{at}.{key}"), &wanted[*key], &found[*key]))
        }
        _ if wanted == found => Ok(()),
        _ => Err(format!("at {at}: expected {wanted}, found {found}")),
    }
}

/// `*` stands for anything.
pub fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}
