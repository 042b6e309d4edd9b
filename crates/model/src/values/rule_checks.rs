//! Holds a value against the constraints of its field.

use std::sync::LazyLock;

use regex::Regex;

use crate::error::Violation;
use crate::values::coerce::Label;
use crate::values::decimal;
use crate::{Rule, Stored, Value};

/// The regular expression of the HTML Standard for `<input type=email>`.
static EMAIL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"\A[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?",
        r"(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*\z"
    ))
    .expect("the expression is constant")
});

pub(crate) fn is_email(text: &str) -> bool {
    EMAIL.is_match(text)
}

/// Every rule that is broken. `value` is what was given, `stored` what it became; neither is null.
pub(crate) fn broken(rules: &[Rule], value: &Value, stored: &Stored, label: Label<'_>) -> Vec<Violation> {
    let complaints = rules.iter().filter_map(|rule| complaint(rule, value, stored));
    complaints
        .map(|(code, text)| Violation { path: Vec::new(), code, message: format!("{label} {text}") })
        .collect()
}

fn complaint(rule: &Rule, value: &Value, stored: &Stored) -> Option<(&'static str, String)> {
    let text = match stored {
        Stored::Text(text) => text.as_str(),
        Stored::Null | Stored::Int(_) | Stored::Real(_) => "",
    };
    match rule {
        Rule::NotBlank => text.trim().is_empty().then(|| ("NOT_BLANK", "must not be blank".into())),
        Rule::Email => (!is_email(text)).then(|| ("EMAIL", EMAIL_HELP.into())),
        Rule::Pattern { source, regex } => {
            (!regex.is_match(text)).then(|| ("PATTERN", format!("must match {source}")))
        }
        Rule::Length { min, max } => length(*min, *max, value, text),
        Rule::Range { min, max } => range(min.as_deref(), max.as_deref(), stored),
    }
}

pub(crate) const EMAIL_HELP: &str = "must be an email address, such as name@example.com";

fn length(min: Option<u64>, max: Option<u64>, value: &Value, text: &str) -> Option<(&'static str, String)> {
    let (count, unit) = match value {
        Value::List(items) => (items.len() as u64, "element"),
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Object(_) => (text.chars().count() as u64, "character"),
    };
    let plural = |n: u64| if n == 1 { "" } else { "s" };
    let say =
        |bound: &str, n: u64| ("LENGTH", format!("must have {bound} {n} {unit}{}, not {count}", plural(n)));
    match (min, max) {
        (Some(min), _) if count < min => Some(say("at least", min)),
        (_, Some(max)) if count > max => Some(say("at most", max)),
        _ => None,
    }
}

fn range(min: Option<&str>, max: Option<&str>, stored: &Stored) -> Option<(&'static str, String)> {
    let number = match stored {
        Stored::Int(number) => number.to_string(),
        Stored::Real(number) => decimal::normalise(&number.to_string()).ok()?,
        Stored::Text(number) => number.clone(),
        Stored::Null => return None,
    };
    if let Some(min) = min.filter(|min| decimal::compare(&number, min).is_lt()) {
        return Some(("RANGE", format!("must be at least {min}")));
    }
    let max = max.filter(|max| decimal::compare(&number, max).is_gt())?;
    Some(("RANGE", format!("must be at most {max}")))
}
