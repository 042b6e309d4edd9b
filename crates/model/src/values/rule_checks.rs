//! Checks a value against the rules of its field.

use std::fmt;
use std::sync::LazyLock;

use regex::Regex;

use crate::error::Violation;
use crate::naming::names;
use crate::values::decimal;
use crate::values::pattern_words::pattern_words;
use crate::{Field, FieldRule, StoredValue, Value};

/// The regular expression of the HTML Standard for `<input type=email>`.
static EMAIL_REGEX: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"\A[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?",
        r"(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*\z"
    ))
    .expect("the expression is constant")
});

pub(crate) fn is_email(text: &str) -> bool {
    EMAIL_REGEX.is_match(text)
}

/// Label of a field, formatted only when a message needs it.
#[derive(Clone, Copy)]
pub(crate) enum FieldLabel<'a> {
    Name(&'a str),
    Field(&'a Field),
}

impl fmt::Display for FieldLabel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldLabel::Name(name) => f.write_str(&names::display_label(name)),
            FieldLabel::Field(field) => f.write_str(&field.label()),
        }
    }
}

/// All violated rules of a field. `value` is the input and `stored` its coerced form; neither is null.
pub(crate) fn rule_violations(field: &Field, value: &Value, stored: &StoredValue) -> Vec<Violation> {
    let violated = field.rules.iter().filter_map(|rule| rule_violation(rule, value, stored));
    let violation = |(code, message): (&'static str, String)| {
        let own = field.messages.iter().find(|(known, _)| *known == code);
        let message = own.map_or_else(|| format!("{} {message}", field.label()), |(_, own)| own.clone());
        Violation { path: Vec::new(), code, message }
    };
    violated.map(violation).collect()
}

fn rule_violation(rule: &FieldRule, value: &Value, stored: &StoredValue) -> Option<(&'static str, String)> {
    let text = match stored {
        StoredValue::Text(text) => text.as_str(),
        StoredValue::Null | StoredValue::Int(_) | StoredValue::Real(_) => "",
    };
    match rule {
        FieldRule::NotBlank => text.trim().is_empty().then(|| ("NOT_BLANK", "must not be blank".into())),
        FieldRule::Email => (!is_email(text)).then(|| ("EMAIL", EMAIL_HELP.into())),
        FieldRule::Pattern { pattern, regex } => {
            (!regex.is_match(text)).then(|| ("PATTERN", pattern_help(pattern)))
        }
        FieldRule::Length { min, max } => check_length(*min, *max, value, text),
        FieldRule::Range { min, max } => check_range(min.as_deref(), max.as_deref(), stored),
    }
}

/// What a text must be, without the expression if there are no simple words for it.
fn pattern_help(pattern: &str) -> String {
    match pattern_words(pattern) {
        Some(words) => format!("must be {words}"),
        None => "is not written as it must be".to_owned(),
    }
}

pub(crate) const EMAIL_HELP: &str = "must be an email address, such as name@example.com";

fn check_length(
    min: Option<u64>,
    max: Option<u64>,
    value: &Value,
    text: &str,
) -> Option<(&'static str, String)> {
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
    let violation =
        |bound: &str, n: u64| ("LENGTH", format!("must have {bound} {n} {unit}{}, not {count}", plural(n)));
    match (min, max) {
        (Some(min), _) if count < min => Some(violation("at least", min)),
        (_, Some(max)) if count > max => Some(violation("at most", max)),
        _ => None,
    }
}

fn check_range(min: Option<&str>, max: Option<&str>, stored: &StoredValue) -> Option<(&'static str, String)> {
    let number = match stored {
        StoredValue::Int(number) => number.to_string(),
        StoredValue::Real(number) => decimal::normalise(&number.to_string()).ok()?,
        StoredValue::Text(number) => number.clone(),
        StoredValue::Null => return None,
    };
    if let Some(min) = min.filter(|min| decimal::compare(&number, min).is_lt()) {
        return Some(("RANGE", format!("must be at least {min}")));
    }
    let max = max.filter(|max| decimal::compare(&number, max).is_gt())?;
    Some(("RANGE", format!("must be at most {max}")))
}
