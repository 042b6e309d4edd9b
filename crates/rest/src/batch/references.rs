//! References to earlier results in a batch: `$0.id` in a path or as a whole text, `$$` for a literal `$`.

use serde_json::Value;

use trefoil_model::error::PathSegment;
use trefoil_resources::collection::encode_segment;

use crate::batch::results::BatchResult;

/// The path with the values that it refers to. An error says what is wrong.
pub fn resolve_path(path: &str, results: &[BatchResult]) -> Result<String, String> {
    let mut resolved = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = rest.find('$') {
        resolved.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            resolved.push('$');
            rest = after;
            continue;
        }
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.');
        let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        let text = rest[..end].trim_end_matches('.');
        let Some(reference) = ResultReference::parse(text) else {
            return Err(format!(
                "`${text}` in a path is not a reference such as `$0.id`; write `$$` for a dollar sign"
            ));
        };
        match reference.find(results)? {
            Value::String(text) => resolved.push_str(&encode_segment(text)),
            Value::Number(number) => resolved.push_str(&number.to_string()),
            Value::Bool(flag) => resolved.push_str(&flag.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                return Err(format!("`${text}` is not a text or a number, as a part of a path must be"));
            }
        }
        rest = &rest[text.len()..];
    }
    resolved.push_str(rest);
    Ok(resolved)
}

/// Replaces the texts of a body that are references. An error has the place of the text.
pub fn resolve_body(body: &mut Value, results: &[BatchResult]) -> Result<(), (Vec<PathSegment>, String)> {
    let under = |segment: PathSegment| {
        move |(mut path, why): (Vec<PathSegment>, String)| {
            path.insert(0, segment);
            (path, why)
        }
    };
    match body {
        Value::String(text) => {
            if let Some(literal) = text.strip_prefix("$$") {
                *text = format!("${literal}");
            } else if let Some(reference) = text.strip_prefix('$').and_then(ResultReference::parse) {
                let value = reference.find(results).map_err(|why| (Vec::new(), why))?.clone();
                *body = value;
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                resolve_body(item, results).map_err(under(PathSegment::Index(index)))?;
            }
        }
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                resolve_body(member, results).map_err(under(PathSegment::Field(name.clone())))?;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    Ok(())
}

/// `0.id` without its `$`: the number of a request, and members of its result.
struct ResultReference<'t> {
    text: &'t str,
    number: &'t str,
    members: &'t str,
}

impl<'t> ResultReference<'t> {
    fn parse(text: &'t str) -> Option<ResultReference<'t>> {
        let (number, members) = text.split_once('.')?;
        let is_number = !number.is_empty() && number.bytes().all(|letter| letter.is_ascii_digit());
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
        };
        (is_number && members.split('.').all(is_name)).then_some(ResultReference { text, number, members })
    }

    fn find<'r>(&self, results: &'r [BatchResult]) -> Result<&'r Value, String> {
        let ResultReference { text, number, members } = self;
        let help = format!("write `$${text}` for the text itself");
        let result = number.parse().ok().and_then(|number: usize| results.get(number));
        let Some(result) = result else {
            return Err(format!(
                "`${text}` points nowhere: no earlier request has the number {number}; {help}"
            ));
        };
        if result.is_error() {
            return Err(format!("`${text}` points nowhere: request {number} failed; {help}"));
        }
        let mut value = &result.body;
        for member in members.split('.') {
            let found = match value {
                Value::Array(items) => member.parse().ok().and_then(|index: usize| items.get(index)),
                Value::Object(_) => value.get(member),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
            };
            let Some(found) = found else {
                return Err(format!(
                    "`${text}` points nowhere: the result of request {number} has no `{member}`; {help}"
                ));
            };
            value = found;
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn results() -> Vec<BatchResult> {
        let created = json!({ "id": "7", "code": "a/b", "lines": [{ "price": 1.50 }] });
        vec![BatchResult::new(201, created), BatchResult::new(404, json!({ "code": "NOT_FOUND" }))]
    }

    #[test]
    fn paths_take_values_and_dollar_signs() {
        let resolve = |path: &str| resolve_path(path, &results());
        assert_eq!(resolve("/users/$0.id/orders?code=$0.code"), Ok("/users/7/orders?code=a%2Fb".to_owned()));
        assert_eq!(resolve("/items?price.lte=$$5&q=$0.id."), Ok("/items?price.lte=$5&q=7.".to_owned()));
        for wrong in
            ["/users/$9.id", "/users/$0.none", "/users/$0", "/users/$x", "/users/$1.code", "/u/$0.lines"]
        {
            assert!(resolve(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bodies_take_whole_texts() {
        let mut body = json!({
            "user": "$0.id", "price": "$0.lines.0.price", "text": "$$0.id", "note": "costs $0.id", "sum": "$5 each"
        });
        resolve_body(&mut body, &results()).unwrap();
        let expected = json!({
            "user": "7", "price": 1.50, "text": "$0.id", "note": "costs $0.id", "sum": "$5 each"
        });
        assert_eq!(body, expected);
        let mut wrong = json!({ "a": ["x", "$5.50"] });
        let (path, why) = resolve_body(&mut wrong, &results()).unwrap_err();
        assert_eq!(path, [PathSegment::Field("a".to_owned()), PathSegment::Index(1)]);
        assert!(why.contains("`$$5.50`"), "{why}");
    }
}
