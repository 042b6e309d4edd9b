//! The accepted input of each scalar and its stored form, as strict as GraphQL.

use std::borrow::Cow;

use crate::values::date_times::{format_date_time, parse_date, parse_date_time, parse_local_date_time};
use crate::values::decimal::{self, DecimalError};
use crate::values::json_text;
use crate::values::rule_checks::{EMAIL_HELP, is_email};
use crate::{Scalar, StoredValue, Value};

/// The reason why a value is wrong; the message continues after the field's label.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ScalarError {
    pub code: &'static str,
    pub message: Cow<'static, str>,
}

pub(crate) fn coerce_scalar(scalar: Scalar, value: &Value) -> Result<StoredValue, ScalarError> {
    match scalar {
        Scalar::String => expect_text(value).map(StoredValue::Text),
        Scalar::Id => match value {
            Value::Int(number) => Ok(StoredValue::Text(number.to_string())),
            Value::Number(digits) => match decimal::to_i64(digits) {
                Some(number) => Ok(StoredValue::Text(number.to_string())),
                None => Err(type_error("an id (text or a whole number)", value)),
            },
            Value::Null | Value::Bool(_) | Value::String(_) | Value::List(_) | Value::Object(_) => {
                expect_text(value).map(StoredValue::Text)
            }
        },
        Scalar::Int => whole_number(value)
            .and_then(|number| i32::try_from(number).ok())
            .map(|number| StoredValue::Int(number.into()))
            .ok_or_else(|| type_error("a whole number between -2147483648 and 2147483647", value)),
        Scalar::Long => value.as_i64().map(StoredValue::Int).ok_or_else(|| type_error(LONG_RANGE, value)),
        Scalar::Float => {
            finite_float(value).map(StoredValue::Real).ok_or_else(|| type_error("a finite number", value))
        }
        Scalar::Boolean => value
            .as_bool()
            .map(|flag| StoredValue::Int(flag.into()))
            .ok_or_else(|| type_error("true or false", value)),
        Scalar::Decimal => parse_decimal(value).map(StoredValue::Text),
        Scalar::Date => {
            parse_text_as(value, "DATE", DATE_HELP, |text| parse_date(text).map(|date| date.to_string()))
        }
        Scalar::DateTime => parse_text_as(value, "DATE_TIME", DATE_TIME_HELP, |text| {
            parse_date_time(text).map(format_date_time)
        }),
        Scalar::LocalDateTime => parse_text_as(value, "DATE_TIME", LOCAL_TIME_HELP, |text| {
            parse_local_date_time(text).map(format_date_time)
        }),
        Scalar::Uuid => parse_text_as(value, "UUID", UUID_HELP, |text| {
            uuid::Uuid::try_parse(text).ok().map(|uuid| uuid.hyphenated().to_string())
        }),
        Scalar::Url => parse_text_as(value, "URL", URL_HELP, |text| is_url(text).then(|| text.to_owned())),
        Scalar::Email => {
            parse_text_as(value, "EMAIL", EMAIL_HELP, |text| is_email(text).then(|| text.to_owned()))
        }
        Scalar::Json => to_json_text(value).map(StoredValue::Text),
    }
}

const LONG_RANGE: &str = "a whole number between -9223372036854775808 and 9223372036854775807";
const DATE_HELP: &str = "must be a date such as 2026-01-31";
const DATE_TIME_HELP: &str =
    "must be a date and time with time zone and at most microseconds, such as 2026-01-31T09:30:00Z";
const LOCAL_TIME_HELP: &str =
    "must be a date and time without time zone and at most microseconds, such as 2026-01-31T09:30:00";
const UUID_HELP: &str = "must be a UUID such as 123e4567-e89b-12d3-a456-426614174000";
const URL_HELP: &str = "must be an absolute URL such as https://example.com/";

fn type_error(expected: &str, value: &Value) -> ScalarError {
    let found = match value {
        // A number of the wrong sort: the expected type says enough.
        Value::Int(_) | Value::Number(_) if expected.contains("number") => String::new(),
        // Long numbers are sent as text.
        Value::String(_) if expected == LONG_RANGE => String::new(),
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::List(_)
        | Value::Object(_) => format!(", not {}", value.type_noun()),
    };
    ScalarError { code: "TYPE", message: format!("must be {expected}{found}").into() }
}

fn expect_text(value: &Value) -> Result<String, ScalarError> {
    match value.as_str() {
        Some(text) if text.contains('\0') => Err(NUL_ERROR),
        Some(text) => Ok(text.to_owned()),
        None => Err(type_error("text", value)),
    }
}

const NUL_ERROR: ScalarError =
    ScalarError { code: "NUL", message: Cow::Borrowed("must not contain the character U+0000") };

fn parse_text_as(
    value: &Value,
    code: &'static str,
    help: &'static str,
    parse: impl FnOnce(&str) -> Option<String>,
) -> Result<StoredValue, ScalarError> {
    let text = expect_text(value)?;
    parse(&text).map(StoredValue::Text).ok_or(ScalarError { code, message: help.into() })
}

fn whole_number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        Value::Number(digits) => decimal::to_i64(digits),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::List(_) | Value::Object(_) => None,
    }
}

fn finite_float(value: &Value) -> Option<f64> {
    match value {
        Value::Int(number) => Some(*number as f64),
        Value::Number(digits) => digits.parse().ok().filter(|number: &f64| number.is_finite()),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::List(_) | Value::Object(_) => None,
    }
}

fn parse_decimal(value: &Value) -> Result<String, ScalarError> {
    let digits = match value {
        Value::Int(number) => return Ok(number.to_string()),
        Value::Number(number) => number.as_str(),
        Value::String(digits) => digits,
        Value::Null | Value::Bool(_) | Value::List(_) | Value::Object(_) => {
            return Err(type_error("a decimal number", value));
        }
    };
    decimal::normalise(digits).map_err(|reason| match reason {
        DecimalError::Malformed => {
            ScalarError { code: "DECIMAL", message: "must be a decimal number such as 12.50".into() }
        }
        DecimalError::TooLong => ScalarError {
            code: "DECIMAL",
            message: format!("must have at most {} digits", decimal::MAX_DIGITS).into(),
        },
    })
}

/// True for an absolute URL without the characters that browsers silently drop.
fn is_url(text: &str) -> bool {
    !text.chars().any(|letter| letter.is_control() || letter.is_whitespace()) && url::Url::parse(text).is_ok()
}

/// Any value as compact JSON.
fn to_json_text(value: &Value) -> Result<String, ScalarError> {
    if contains_nul(value) {
        return Err(NUL_ERROR);
    }
    let mut text = Vec::new();
    json_text::write_value(&mut text, value);
    Ok(String::from_utf8(text).expect("JSON made of text is text"))
}

fn contains_nul(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Number(_) => false,
        Value::String(text) => text.contains('\0'),
        Value::List(items) => items.iter().any(contains_nul),
        Value::Object(fields) => {
            fields.iter().any(|(name, field)| name.contains('\0') || contains_nul(field))
        }
    }
}
