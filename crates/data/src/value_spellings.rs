//! How databases and spreadsheets write booleans, dates and times, where that is unambiguous.
//!
//! Only imports accept these: requests must use the forms of the API. A text that is none of them stays as it is, so that
//! coercion reports what is wrong with it.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};

use trefoil_model::{Field, Scalar, Value};

const TRUE_WORDS: [&str; 6] = ["true", "t", "yes", "y", "on", "1"];
const FALSE_WORDS: [&str; 6] = ["false", "f", "no", "n", "off", "0"];

/// Forms that name the year first, or the day first by custom.
const CERTAIN_FORMS: [&str; 3] = ["%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y"];
/// Forms with the day first or the month first, depending on the country.
const UNCERTAIN_FORMS: [(&str, &str); 2] = [("%d/%m/%Y", "%m/%d/%Y"), ("%d-%m-%Y", "%m-%d-%Y")];

/// The forms of the API, with zeros for digits.
const API_FORMS: [&str; 2] = ["0000-00-00", "0000-00-00T00:00:00.000000Z"];

/// A value in the form of the API.
#[derive(Debug, PartialEq)]
pub struct SpelledValue {
    pub value: Value,
    /// It is a time without a zone, taken as UTC.
    pub assumes_utc: bool,
}

impl SpelledValue {
    fn exact(value: Value) -> SpelledValue {
        SpelledValue { value, assumes_utc: false }
    }
}

/// The text of a CSV cell as a boolean.
pub fn read_boolean(value: Value) -> Value {
    let Value::String(text) = &value else { return value };
    let is_one_of = |words: [&str; 6]| words.iter().any(|word| text.trim().eq_ignore_ascii_case(word));
    match (is_one_of(TRUE_WORDS), is_one_of(FALSE_WORDS)) {
        (true, _) => Value::Bool(true),
        (_, true) => Value::Bool(false),
        (false, false) => value,
    }
}

/// The date or time of a field in the form of the API, if it is one; the error says why it is ambiguous.
pub fn read_time(field: &Field, value: &Value) -> Result<Option<SpelledValue>, String> {
    let Value::String(text) = value else { return Ok(None) };
    match field.kind.scalar() {
        // Nothing is done to an export of ours.
        Some(Scalar::Date | Scalar::DateTime | Scalar::LocalDateTime)
            if API_FORMS.iter().any(|form| has_form(text, form)) =>
        {
            Ok(None)
        }
        Some(Scalar::Date) => {
            let date = read_date(text.trim())?;
            Ok(date.map(|date| SpelledValue::exact(Value::from(date.to_string()))))
        }
        Some(Scalar::DateTime) => read_date_time(text.trim()),
        Some(Scalar::LocalDateTime) => {
            let time = read_date_time(text.trim())?.filter(|time| time.assumes_utc);
            Ok(time.map(|time| SpelledValue::exact(time.value)))
        }
        Some(_) | None => Ok(None),
    }
}

/// True if the text has digits where the form has zeros, and equals it elsewhere.
fn has_form(text: &str, form: &str) -> bool {
    let is_same = |(letter, wanted): (u8, u8)| match wanted {
        b'0' => letter.is_ascii_digit(),
        _ => letter == wanted,
    };
    text.len() == form.len() && text.bytes().zip(form.bytes()).all(is_same)
}

fn read_date(text: &str) -> Result<Option<Date>, String> {
    // Otherwise `26` would be a year.
    let parse = |form: &str| Date::strptime(form, text).ok().filter(|date| date.year() >= 1000);
    if let Some(date) = CERTAIN_FORMS.into_iter().find_map(parse) {
        return Ok(Some(date));
    }
    for (day_first, month_first) in UNCERTAIN_FORMS {
        match (parse(day_first), parse(month_first)) {
            (Some(one), Some(other)) if one != other => {
                return Err(format!("the date `{text}` is ambiguous: write {one} or {other}"));
            }
            (None, None) => {}
            (one, other) => return Ok(one.or(other)),
        }
    }
    Ok(None)
}

/// A time of PostgreSQL, SQLite, Java or a spreadsheet: `2026-01-31 09:30:00+00`, `31.01.2026 09:30`. Digits after the
/// microsecond are cut off.
fn read_date_time(text: &str) -> Result<Option<SpelledValue>, String> {
    let Some((date, time)) = text.split_once(['T', 't', ' ']) else { return Ok(None) };
    let Some(date) = read_date(date)?.filter(|_| time.contains(':')) else { return Ok(None) };
    let text = format!("{date}T{time}");
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        let utc = jiff::tz::Offset::UTC.to_datetime(timestamp);
        return Ok(Some(SpelledValue::exact(utc_value(utc))));
    }
    // With a zone that is wrong, the time would be read without it.
    let has_zone = time.contains(|letter: char| !letter.is_ascii_digit() && !":.,".contains(letter));
    let local = text.parse::<DateTime>().ok().filter(|_| !has_zone);
    Ok(local.map(|local| SpelledValue { value: utc_value(local), assumes_utc: true }))
}

fn utc_value(time: DateTime) -> Value {
    Value::from(time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> Option<String> {
        read_date(text).expect("not ambiguous").map(|date| date.to_string())
    }

    #[test]
    fn dates_are_read_where_they_are_unambiguous() {
        let same =
            ["2026-01-31", "2026/01/31", "31.01.2026", "31.1.2026", "31/01/2026", "01/31/2026", "31-01-2026"];
        for text in same {
            assert_eq!(date(text).as_deref(), Some("2026-01-31"), "{text}");
        }
        assert_eq!(date("05/05/2026").as_deref(), Some("2026-05-05"));
        for text in ["", "x", "31.01.26", "31/13/2026", "2026-02-30", "2026-01-31 ", "1.2.2026x"] {
            assert_eq!(date(text), None, "{text}");
        }
        let reason = read_date("01/02/2026").expect_err("ambiguous");
        assert_eq!(reason, "the date `01/02/2026` is ambiguous: write 2026-02-01 or 2026-01-02");
    }

    #[test]
    fn forms_of_the_api_are_recognised() {
        let is_known = |text: &str| API_FORMS.iter().any(|form| has_form(text, form));
        for text in ["2026-01-31", "0001-01-01", "2026-01-31T09:30:00.123456Z"] {
            assert!(is_known(text), "{text}");
        }
        for text in [
            "",
            "2026-1-31",
            "2026/01/31",
            "2026-01-31T09:30:00Z",
            "2026-01-31 09:30:00.123456Z",
            "2026-01-31x",
        ] {
            assert!(!is_known(text), "{text}");
        }
    }

    #[test]
    fn times_are_read_as_utc() {
        let time = |text: &str| {
            let read = read_date_time(text).expect("not ambiguous")?;
            let Value::String(text) = read.value else { return None };
            Some((text, read.assumes_utc))
        };
        for (text, expected, assumes_utc) in [
            ("2026-01-31 09:30:00+00", "2026-01-31T09:30:00.000000Z", false),
            ("2026-01-31 09:30:00.5-08", "2026-01-31T17:30:00.500000Z", false),
            ("2026-01-31 09:30:00+05:30", "2026-01-31T04:00:00.000000Z", false),
            ("2026-01-31T09:30:00.123456789Z", "2026-01-31T09:30:00.123456Z", false),
            ("2026-01-31 09:30:00.123456789", "2026-01-31T09:30:00.123456Z", true),
            ("31.01.2026 09:30", "2026-01-31T09:30:00.000000Z", true),
        ] {
            assert_eq!(time(text), Some((expected.to_owned(), assumes_utc)), "{text}");
        }
        for text in
            ["2026-01-31", "2026-01-31 25:00:00", "2026-01-31 09:30:00 CET", "2026-01-31 09:30+99", "now"]
        {
            assert_eq!(time(text), None, "{text}");
        }
        assert!(read_date_time("01/02/2026 09:30").is_err());
    }

    #[test]
    fn booleans_are_read_in_any_case() {
        for text in ["true", "TRUE", "Yes", "y", "ON", "1", "t", " yes "] {
            assert_eq!(read_boolean(Value::from(text)), Value::Bool(true), "{text}");
        }
        for text in ["false", "False", "NO", "n", "off", "0", "F"] {
            assert_eq!(read_boolean(Value::from(text)), Value::Bool(false), "{text}");
        }
        for text in ["2", "wahr", "-", "yess"] {
            assert_eq!(read_boolean(Value::from(text)), Value::from(text));
        }
    }
}
