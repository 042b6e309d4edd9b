//! Cell values formatted for people: times in words, addresses as links, JSON indented.

use std::borrow::Cow;

use trefoil_engine::Engine;
use trefoil_http::form_pairs::percent_encode;
use trefoil_model::naming::names;
use trefoil_model::values::digit_grouping::group_digits;
use trefoil_model::values::json_text;
use trefoil_model::{
    CellValue, Field, FieldRule, ListItem, Model, Scalar, ShownTime, TimePeriod, Value, ValueFormat,
    ValueType, ZoneOffsets,
};

use crate::phrases::cut_text;
use crate::snapshot_reads::TEXT_PREVIEW_BYTES;
use crate::template_data::{DisplayValue, LabelledValue};

/// The space for a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisplaySize {
    /// A table cell.
    Brief,
    /// The page of the record.
    Full,
}

/// Characters of a text in a table.
pub const BRIEF_LENGTH: usize = 80;

/// Values nested deeper than this are shown as JSON: types may be recursive, and the nesting of templates is limited.
const MAX_DEPTH: usize = 16;

/// What values are formatted with.
#[derive(Clone, Copy)]
pub struct ValueDisplay<'m> {
    pub model: &'m Model,
}

impl<'m> ValueDisplay<'m> {
    pub fn of(engine: &'m Engine) -> ValueDisplay<'m> {
        ValueDisplay { model: engine.model() }
    }
}

/// The value of a field. A value that another program wrote and the field cannot hold is shown as nothing.
pub fn display_cell(
    display: ValueDisplay<'_>,
    field: &Field,
    cell: CellValue<'_>,
    size: DisplaySize,
) -> DisplayValue {
    let is_email = field.rules.iter().any(|rule| matches!(rule, FieldRule::Email));
    let Some(value_type) = field.kind.value_type() else { return DisplayValue::Nothing };
    match (value_type, cell) {
        (_, CellValue::Text(text)) if field.kind.is_text() && field.display.format.is_some() => {
            format_text(text, field.display.format, size)
        }
        (ValueType::Scalar(Scalar::String), CellValue::Text(text)) if is_email => display_email(text, size),
        (value_type, cell) => match typed_value(value_type, cell) {
            Some(value) => {
                format_number(display_json(display, value_type, &value, size, 0), field.display.format)
            }
            None => DisplayValue::Nothing,
        },
    }
}

/// The cell in the JSON form that GraphQL and REST use too; `None` for null and for what the type cannot hold.
pub fn typed_value(value_type: &ValueType, cell: CellValue<'_>) -> Option<Value> {
    if matches!(cell, CellValue::Null | CellValue::Unreadable) {
        return None;
    }
    let mut text = Vec::new();
    json_text::write_cell(&mut text, value_type, cell).ok()?;
    serde_json::from_slice(&text).ok()
}

/// A value that [`typed_value`] found.
pub fn display_typed(display: ValueDisplay<'_>, value_type: &ValueType, value: &Value) -> DisplayValue {
    display_json(display, value_type, value, DisplaySize::Brief, 0)
}

/// The value in a title; `None` for one that is missing or has parts.
pub fn title_text<'c>(display: ValueDisplay<'_>, field: &Field, cell: CellValue<'c>) -> Option<Cow<'c, str>> {
    if let (true, CellValue::Text(text)) = (field.kind.is_text(), cell) {
        return Some(Cow::Borrowed(text));
    }
    let text = match display_cell(display, field, cell, DisplaySize::Brief) {
        DisplayValue::Boolean { yes } => if yes { "Yes" } else { "No" }.to_owned(),
        DisplayValue::Text { text, .. }
        | DisplayValue::Number { text }
        | DisplayValue::Choice { text, .. }
        | DisplayValue::Time { text, .. }
        | DisplayValue::Address { text, .. }
        | DisplayValue::Color { text }
        | DisplayValue::Code { text } => text,
        DisplayValue::Nothing
        | DisplayValue::Record { .. }
        | DisplayValue::Json { .. }
        | DisplayValue::List { .. }
        | DisplayValue::Object { .. } => return None,
    };
    Some(Cow::Owned(text))
}

fn display_json(
    display: ValueDisplay<'_>,
    value_type: &ValueType,
    value: &Value,
    size: DisplaySize,
    depth: usize,
) -> DisplayValue {
    match (value_type, value) {
        (ValueType::Scalar(Scalar::Json), value) => DisplayValue::Json { text: pretty_json(value) },
        (_, Value::Null) => DisplayValue::Nothing,
        (ValueType::List(_) | ValueType::Embedded(_), value) if depth == MAX_DEPTH => {
            DisplayValue::Json { text: pretty_json(value) }
        }
        (ValueType::Scalar(scalar), value) => display_scalar(display.model, *scalar, value, size),
        (ValueType::Enum(name), Value::String(text)) => display_enum(display.model, name, text),
        (ValueType::Key(_), Value::String(text)) => DisplayValue::Code { text: text.clone() },
        (ValueType::Key(_), Value::Int(number)) => DisplayValue::Code { text: number.to_string() },
        (ValueType::List(item), Value::List(items)) => display_list(display, item, items, size, depth),
        (ValueType::Embedded(name), Value::Object(_)) => display_embedded(display, name, value, size, depth),
        (ValueType::Key(_) | ValueType::Enum(_) | ValueType::Embedded(_) | ValueType::List(_), _) => {
            DisplayValue::Nothing
        }
    }
}

fn display_scalar(model: &Model, scalar: Scalar, value: &Value, size: DisplaySize) -> DisplayValue {
    match (scalar, value) {
        (Scalar::Boolean, Value::Bool(yes)) => DisplayValue::Boolean { yes: *yes },
        (Scalar::Int | Scalar::Float, Value::Int(number)) => {
            DisplayValue::Number { text: number.to_string() }
        }
        (Scalar::Int | Scalar::Float, Value::Number(number)) => {
            DisplayValue::Number { text: number.to_string() }
        }
        (Scalar::Long | Scalar::Decimal, Value::String(text)) => DisplayValue::Number { text: text.clone() },
        (Scalar::String, Value::String(text)) => display_text(text, size),
        (Scalar::Id | Scalar::Uuid, Value::String(text)) => DisplayValue::Code { text: text.clone() },
        (Scalar::Email, Value::String(text)) => display_email(text, size),
        (Scalar::Url, Value::String(text)) => display_url(text, size),
        (Scalar::Date, Value::String(text)) => display_time(text, format_day(text)),
        (Scalar::DateTime, Value::String(text)) => {
            display_time(text, format_datetime(model.time_zone(), text))
        }
        (Scalar::LocalDateTime, Value::String(text)) => display_time(text, format_clock(text)),
        (
            Scalar::Boolean
            | Scalar::Int
            | Scalar::Float
            | Scalar::Long
            | Scalar::Decimal
            | Scalar::String
            | Scalar::Id
            | Scalar::Uuid
            | Scalar::Email
            | Scalar::Url
            | Scalar::Date
            | Scalar::DateTime
            | Scalar::LocalDateTime
            | Scalar::Json,
            _,
        ) => DisplayValue::Nothing,
    }
}

fn display_text(text: &str, size: DisplaySize) -> DisplayValue {
    let (text, is_cut) = fit_text(text, size);
    DisplayValue::Text { text, cut: is_cut }
}

/// The part of the text that fits, and whether it was cut.
pub fn fit_text(text: &str, size: DisplaySize) -> (String, bool) {
    match (size, cut_text(text, BRIEF_LENGTH)) {
        (DisplaySize::Brief, Some(part)) => (part.to_owned(), true),
        (DisplaySize::Brief | DisplaySize::Full, _) => (text.to_owned(), false),
    }
}

fn display_email(text: &str, size: DisplaySize) -> DisplayValue {
    match text.rsplit_once('@') {
        Some((name, host)) if !name.is_empty() && !host.is_empty() => {
            let href = format!("mailto:{}@{}", percent_encode(name), percent_encode(host));
            DisplayValue::Address { href, text: fit_text(text, size).0 }
        }
        Some(_) | None => display_text(text, size),
    }
}

/// Only web URLs become links: others, such as `javascript:`, may be dangerous.
fn display_url(text: &str, size: DisplaySize) -> DisplayValue {
    let scheme = text.split(':').next().unwrap_or_default();
    let is_web = scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http");
    // For a table the URL may have been cut when it was read.
    match is_web && (size == DisplaySize::Full || text.len() < TEXT_PREVIEW_BYTES) {
        true => DisplayValue::Address { href: text.to_owned(), text: fit_text(text, size).0 },
        false => display_text(text, size),
    }
}

fn display_enum(model: &Model, name: &str, text: &str) -> DisplayValue {
    let known = model.enums.get(name);
    let label = known.map_or_else(|| names::display_label(text), |known| known.label(text));
    DisplayValue::Choice { text: label, tone: known.map_or(0, |known| known.tone(text)) }
}

/// A text as the format of its field wants it.
fn format_text(text: &str, format: Option<ValueFormat>, size: DisplaySize) -> DisplayValue {
    match format {
        Some(ValueFormat::Code) => DisplayValue::Json { text: fit_text(text, size).0 },
        Some(ValueFormat::Color) if is_color(text) => DisplayValue::Color { text: text.to_owned() },
        Some(ValueFormat::Link) => display_url(text, size),
        Some(ValueFormat::Color | ValueFormat::Multiline | ValueFormat::Currency | ValueFormat::Percent)
        | None => display_text(text, size),
    }
}

/// `#0b6b52` or `#0b6`
fn is_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or_default();
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// A number as the format of its field wants it.
pub fn format_number(value: DisplayValue, format: Option<ValueFormat>) -> DisplayValue {
    match (value, format) {
        (DisplayValue::Number { text }, Some(ValueFormat::Currency)) => {
            DisplayValue::Number { text: currency_text(&text) }
        }
        (DisplayValue::Number { text }, Some(ValueFormat::Percent)) => {
            DisplayValue::Number { text: format!("{text}%") }
        }
        (value, _) => value,
    }
}

/// "-1,234.50" of `-1234.5`; more digits after the point stay.
fn currency_text(text: &str) -> String {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    if !whole.bytes().chain(part.bytes()).all(|digit| digit.is_ascii_digit()) {
        return text.to_owned();
    }
    format!("{sign}{}.{part:0<2}", group_digits(whole))
}

fn display_list(
    display: ValueDisplay<'_>,
    item: &ListItem,
    items: &[Value],
    size: DisplaySize,
    depth: usize,
) -> DisplayValue {
    let items = items.iter().map(|value| display_json(display, &item.value_type, value, size, depth + 1));
    DisplayValue::List { items: items.collect() }
}

fn display_embedded(
    display: ValueDisplay<'_>,
    name: &str,
    object: &Value,
    size: DisplaySize,
    depth: usize,
) -> DisplayValue {
    let fields = display.model.embedded.get(name).map_or(&[][..], |known| &known.fields);
    let fields = fields.iter().map(|field| {
        let value = object.get(&field.name).unwrap_or(&Value::Null);
        let value = match field.kind.value_type() {
            Some(value_type) => {
                let shown = display_json(display, value_type, value, size, depth + 1);
                format_number(shown, field.display.format)
            }
            None => DisplayValue::Nothing,
        };
        LabelledValue { label: field.label(), value }
    });
    DisplayValue::Object { fields: fields.collect() }
}

fn pretty_json(value: &Value) -> String {
    serde_json::to_string_pretty(&value.to_json()).unwrap_or_default()
}

fn display_time(datetime: &str, text: Option<String>) -> DisplayValue {
    let text = text.unwrap_or_else(|| datetime.to_owned());
    DisplayValue::Time { datetime: datetime.to_owned(), text }
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// "16 Nov 2026" of `2026-11-16`.
fn format_day(text: &str) -> Option<String> {
    let mut parts = text.splitn(3, '-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let month = MONTHS.get(month.parse::<usize>().ok()?.checked_sub(1)?)?;
    Some(format!("{} {month} {}", day.trim_start_matches('0'), year.trim_start_matches('0')))
}

/// "16 Nov 2026, 10:30 CET" of `2026-11-16T09:30:00Z`.
fn format_datetime(zone: &ZoneOffsets, text: &str) -> Option<String> {
    let ShownTime { local, zone, .. } = zone.show(text)?;
    Some(format!("{} {zone}", format_clock(&local)?))
}

/// "16 Nov 2026, 10:30" of `2026-11-16T10:30:00`; seconds only where there are any.
fn format_clock(local: &str) -> Option<String> {
    let (date, time) = local.split_once('T')?;
    let clock = time.get(..8)?;
    let clock = clock.strip_suffix(":00").unwrap_or(clock);
    Some(format!("{}, {clock}", format_day(date)?))
}

const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// "Nov 2026" of the month `2026-11`; "Tuesday" of the weekday 2. Others stay as they are.
pub fn format_period(period: TimePeriod, text: &str) -> String {
    let formatted = match period {
        TimePeriod::Month => format_day(&format!("{text}-00")).map(|day| day.trim_start().to_owned()),
        TimePeriod::Day => format_day(text),
        TimePeriod::Weekday => {
            let position = text.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            position.and_then(|position| WEEKDAYS.get(position)).map(|name| (*name).to_owned())
        }
        TimePeriod::Hour => Some(format!("{text:0>2}:00")),
        TimePeriod::Year | TimePeriod::Quarter | TimePeriod::Week => None,
    };
    formatted.unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_formatted_in_words() {
        for (period, text, expected) in [
            (TimePeriod::Year, "2026", "2026"),
            (TimePeriod::Quarter, "2026-Q4", "2026-Q4"),
            (TimePeriod::Month, "2026-11", "Nov 2026"),
            (TimePeriod::Month, "nonsense", "nonsense"),
            (TimePeriod::Day, "2026-11-07", "7 Nov 2026"),
            (TimePeriod::Weekday, "7", "Sunday"),
            (TimePeriod::Weekday, "0", "0"),
            (TimePeriod::Hour, "9", "09:00"),
        ] {
            assert_eq!(format_period(period, text), expected);
        }
    }

    #[test]
    fn currency_has_groups_and_two_digits() {
        for (text, expected) in [
            ("0", "0.00"),
            ("-1234.5", "-1,234.50"),
            ("123456", "123,456.00"),
            ("1234567.125", "1,234,567.125"),
            ("1e9", "1e9"),
        ] {
            assert_eq!(currency_text(text), expected);
        }
        assert!(is_color("#0b6B52") && is_color("#fff") && !is_color("red") && !is_color("#ggg"));
    }

    #[test]
    fn times_are_formatted_in_words() {
        assert_eq!(format_day("2026-11-16").as_deref(), Some("16 Nov 2026"));
        assert_eq!(format_day("0099-01-02").as_deref(), Some("2 Jan 99"));
        assert_eq!(format_day("2026-13-01"), None);
        let utc = ZoneOffsets::utc();
        let berlin = ZoneOffsets::load("Europe/Berlin").expect("a zone");
        for (zone, text, expected) in [
            (&utc, "2026-11-16T09:30:00Z", "16 Nov 2026, 09:30 UTC"),
            (&utc, "2026-11-16T09:30:05.25Z", "16 Nov 2026, 09:30:05 UTC"),
            (&berlin, "2026-11-16T23:30:00Z", "17 Nov 2026, 00:30 CET"),
            (&berlin, "2026-10-25T00:30:00Z", "25 Oct 2026, 02:30 CEST"),
        ] {
            assert_eq!(format_datetime(zone, text).as_deref(), Some(expected));
        }
    }

    #[test]
    fn only_web_and_mail_addresses_become_links() {
        let text = |text: &str| DisplayValue::Text { text: text.into(), cut: false };
        assert_eq!(display_url("javascript:alert(1)", DisplaySize::Full), text("javascript:alert(1)"));
        let href = |shown| if let DisplayValue::Address { href, .. } = shown { Some(href) } else { None };
        assert_eq!(
            href(display_url("HTTPS://example.com/?a=b", DisplaySize::Full)),
            Some("HTTPS://example.com/?a=b".into())
        );
        assert_eq!(
            href(display_email("a?b&c@example.com", DisplaySize::Full)),
            Some("mailto:a%3Fb%26c@example.com".into())
        );
        assert_eq!(display_email("nobody", DisplaySize::Full), text("nobody"));
    }

    #[test]
    fn long_text_is_cut_in_tables() {
        let long = "x".repeat(100);
        assert_eq!(
            display_text(&long, DisplaySize::Brief),
            DisplayValue::Text { text: "x".repeat(80), cut: true }
        );
        assert_eq!(
            display_text(&long, DisplaySize::Full),
            DisplayValue::Text { text: long.clone(), cut: false }
        );
    }
}
