//! A cell as people read it: times in words, addresses as links, JSON laid out.

use crate::multi_read::PART;
use crate::phrases::cut;
use crate::view::{Labelled, Shown};
use trefoil_http::form_pairs::encoded;
use trefoil_model::naming::names;
use trefoil_model::values::json_text;
use trefoil_model::{Cell, Field, Item, Kind, Model, Rule, Scalar, Value};

/// How much of a value is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// A cell of a table.
    Brief,
    /// The page of the record.
    Whole,
}

/// How many characters of a text a table has room for.
pub const BRIEF: usize = 80;

/// Values further inside of each other than this are laid out as JSON: a type may hold its own kind, and a template
/// goes only so deep.
const DEEPEST: usize = 16;

/// A field's value. What another program wrote and the field cannot hold is nothing.
pub fn shown(model: &Model, field: &Field, cell: Cell<'_>, room: Room) -> Shown {
    let is_email = field.rules.iter().any(|rule| matches!(rule, Rule::Email));
    let mut text = Vec::new();
    let Ok(()) = json_text::write_cell(&mut text, &field.kind, cell) else { return Shown::Nothing };
    match (&field.kind, cell) {
        (_, Cell::Null | Cell::Unreadable) => Shown::Nothing,
        (Kind::Scalar(Scalar::String), Cell::Text(text)) if is_email => mailbox(text, room),
        (kind, _) => match serde_json::from_slice(&text) {
            Ok(value) => of_json(model, kind, &value, room, 0),
            Err(_) => Shown::Nothing,
        },
    }
}

/// A value in the form that every face shows it in.
fn of_json(model: &Model, kind: &Kind, value: &Value, room: Room, depth: usize) -> Shown {
    match (kind, value) {
        (Kind::Scalar(Scalar::Json), value) => Shown::Json { text: laid_out(value) },
        (_, Value::Null) => Shown::Nothing,
        (Kind::List(_) | Kind::Embedded(_), value) if depth == DEEPEST => {
            Shown::Json { text: laid_out(value) }
        }
        (Kind::Scalar(scalar), value) => scalar_shown(*scalar, value, room),
        (Kind::Enum(name), Value::String(text)) => choice(model, name, text),
        (Kind::Id | Kind::Reference { .. }, Value::String(text)) => Shown::Code { text: text.clone() },
        (Kind::List(item), Value::List(items)) => list(model, item, items, room, depth),
        (Kind::Embedded(name), Value::Object(_)) => embedded(model, name, value, room, depth),
        (
            Kind::Id
            | Kind::Enum(_)
            | Kind::Embedded(_)
            | Kind::List(_)
            | Kind::Reference { .. }
            | Kind::Inverse { .. }
            | Kind::Link { .. }
            | Kind::Unstored,
            _,
        ) => Shown::Nothing,
    }
}

fn scalar_shown(scalar: Scalar, value: &Value, room: Room) -> Shown {
    match (scalar, value) {
        (Scalar::Boolean, Value::Bool(yes)) => Shown::Truth { yes: *yes },
        (Scalar::Int | Scalar::Float, Value::Int(number)) => Shown::Number { text: number.to_string() },
        (Scalar::Int | Scalar::Float, Value::Number(number)) => Shown::Number { text: number.to_string() },
        (Scalar::Long | Scalar::Decimal, Value::String(text)) => Shown::Number { text: text.clone() },
        (Scalar::String, Value::String(text)) => prose(text, room),
        (Scalar::Id | Scalar::Uuid, Value::String(text)) => Shown::Code { text: text.clone() },
        (Scalar::Email, Value::String(text)) => mailbox(text, room),
        (Scalar::Url, Value::String(text)) => web(text, room),
        (Scalar::Date, Value::String(text)) => time(text, day(text)),
        (Scalar::DateTime, Value::String(text)) => time(text, moment(text)),
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
            | Scalar::Json,
            _,
        ) => Shown::Nothing,
    }
}

fn prose(text: &str, room: Room) -> Shown {
    let (text, is_cut) = fitted(text, room);
    Shown::Text { text, cut: is_cut }
}

/// As much of it as there is room for, and whether there is more.
pub fn fitted(text: &str, room: Room) -> (String, bool) {
    match (room, cut(text, BRIEF)) {
        (Room::Brief, Some(part)) => (part.to_owned(), true),
        (Room::Brief | Room::Whole, _) => (text.to_owned(), false),
    }
}

fn mailbox(text: &str, room: Room) -> Shown {
    match text.rsplit_once('@') {
        Some((name, host)) if !name.is_empty() && !host.is_empty() => {
            let href = format!("mailto:{}@{}", encoded(name), encoded(host));
            Shown::Address { href, text: fitted(text, room).0 }
        }
        Some(_) | None => prose(text, room),
    }
}

/// Other schemes than the web's are read, not followed: `javascript:` is one.
fn web(text: &str, room: Room) -> Shown {
    let scheme = text.split(':').next().unwrap_or_default();
    let is_webs = scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http");
    // A table was perhaps not given all of it.
    match is_webs && (room == Room::Whole || text.len() < PART) {
        true => Shown::Address { href: text.to_owned(), text: fitted(text, room).0 },
        false => prose(text, room),
    }
}

fn choice(model: &Model, name: &str, text: &str) -> Shown {
    let values = model.enums.get(name).map_or(&[][..], |known| &known.values);
    let tone = values.iter().position(|value| value == text).unwrap_or(values.len());
    Shown::Choice { text: names::label(text), tone }
}

fn list(model: &Model, item: &Item, items: &[Value], room: Room, depth: usize) -> Shown {
    let items = items.iter().map(|value| of_json(model, &item.kind, value, room, depth + 1));
    Shown::List { items: items.collect() }
}

fn embedded(model: &Model, name: &str, object: &Value, room: Room, depth: usize) -> Shown {
    let fields = model.embedded.get(name).map_or(&[][..], |known| &known.fields);
    let fields = fields.iter().map(|field| {
        let value = object.get(&field.name).unwrap_or(&Value::Null);
        let value = of_json(model, &field.kind, value, room, depth + 1);
        Labelled { label: names::label(&field.name), value }
    });
    Shown::Object { fields: fields.collect() }
}

fn laid_out(value: &Value) -> String {
    serde_json::to_string_pretty(&value.to_json()).unwrap_or_default()
}

fn time(datetime: &str, text: Option<String>) -> Shown {
    let text = text.unwrap_or_else(|| datetime.to_owned());
    Shown::Time { datetime: datetime.to_owned(), text }
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// "16 Nov 2026" of `2026-11-16`.
fn day(text: &str) -> Option<String> {
    let mut parts = text.splitn(3, '-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let month = MONTHS.get(month.parse::<usize>().ok()?.checked_sub(1)?)?;
    Some(format!("{} {month} {}", day.trim_start_matches('0'), year.trim_start_matches('0')))
}

/// "16 Nov 2026, 09:30 UTC" of `2026-11-16T09:30:00Z`; seconds only where there are any.
fn moment(text: &str) -> Option<String> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let clock = time.get(..8)?;
    let clock = clock.strip_suffix(":00").unwrap_or(clock);
    Some(format!("{}, {clock} UTC", day(date)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_words() {
        assert_eq!(day("2026-11-16").as_deref(), Some("16 Nov 2026"));
        assert_eq!(day("0099-01-02").as_deref(), Some("2 Jan 99"));
        assert_eq!(day("2026-13-01"), None);
        assert_eq!(moment("2026-11-16T09:30:00Z").as_deref(), Some("16 Nov 2026, 09:30 UTC"));
        assert_eq!(moment("2026-11-16T09:30:05.25Z").as_deref(), Some("16 Nov 2026, 09:30:05 UTC"));
    }

    #[test]
    fn only_addresses_of_the_web_and_of_mailboxes_can_be_followed() {
        let text = |text: &str| Shown::Text { text: text.into(), cut: false };
        assert_eq!(web("javascript:alert(1)", Room::Whole), text("javascript:alert(1)"));
        let href = |shown| if let Shown::Address { href, .. } = shown { Some(href) } else { None };
        assert_eq!(
            href(web("HTTPS://example.com/?a=b", Room::Whole)),
            Some("HTTPS://example.com/?a=b".into())
        );
        assert_eq!(
            href(mailbox("a?b&c@example.com", Room::Whole)),
            Some("mailto:a%3Fb%26c@example.com".into())
        );
        assert_eq!(mailbox("nobody", Room::Whole), text("nobody"));
    }

    #[test]
    fn a_table_has_room_for_a_part() {
        let long = "x".repeat(100);
        assert_eq!(prose(&long, Room::Brief), Shown::Text { text: "x".repeat(80), cut: true });
        assert_eq!(prose(&long, Room::Whole), Shown::Text { text: long.clone(), cut: false });
    }
}
