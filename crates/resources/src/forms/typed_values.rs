//! Text from a URL or a form as a value of the field's type.

use trefoil_model::error::{PathSegment, Violation};
use trefoil_model::{Field, JsonForm, ListItem, LocalTime, Model, Scalar, Value, ValueType, ZoneOffsets};

use crate::forms::form_tree::ControlNode;

/// A filter value. Text that does not fit the type stays a string, so that coercion reports the error.
pub fn typed_value(scalar: Option<Scalar>, text: &str) -> Value {
    let plain = || Value::String(text.to_owned());
    match scalar.map(Scalar::json_form) {
        Some(JsonForm::Number) => Value::number(text.trim_ascii()).unwrap_or_else(plain),
        Some(JsonForm::Boolean) => match text {
            "true" | "on" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => plain(),
        },
        Some(JsonForm::Any) => json_or_text(text),
        Some(JsonForm::Text) | None => plain(),
    }
}

fn json_or_text(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

/// The child of a list whose control contains the whole list as JSON.
pub const JSON_CONTROL: &str = "_json";

/// Reads the controls of a form as values. A blank is null if the field is nullable or its type has no blank value.
/// Values are checked by the engine, except invalid JSON, which it would accept as text.
pub struct ControlReader<'m> {
    model: &'m Model,
    /// The path of the current control.
    path: Vec<PathSegment>,
    pub violations: Vec<Violation>,
}

impl<'m> ControlReader<'m> {
    pub fn new(model: &'m Model) -> ControlReader<'m> {
        ControlReader { model, path: Vec::new(), violations: Vec::new() }
    }

    pub fn read_field(&mut self, field: &Field, node: &ControlNode) -> Value {
        self.at_segment(PathSegment::Field(field.input_name.clone()), |reader| reader.read_value(field, node))
    }

    fn at_segment<T>(&mut self, segment: PathSegment, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(segment);
        let value = read(self);
        self.path.pop();
        value
    }

    fn read_value(&mut self, field: &Field, node: &ControlNode) -> Value {
        match field.kind.value_type() {
            Some(ValueType::Scalar(Scalar::Json)) => self.read_json(field, node.last_text()),
            Some(ValueType::Scalar(Scalar::String | Scalar::Id)) => match normalize_lines(node.last_text()) {
                text if text.is_empty() && !field.required => Value::Null,
                text => Value::String(text),
            },
            Some(ValueType::Scalar(Scalar::DateTime)) => self.read_time(&field.label(), node.last_text()),
            Some(value_type @ (ValueType::Key(_) | ValueType::Scalar(_) | ValueType::Enum(_))) => {
                single_value(value_type, node.last_text())
            }
            Some(ValueType::Embedded(name)) if !node.children.is_empty() => {
                self.read_embedded(name, node, !field.required).unwrap_or(Value::Null)
            }
            Some(value_type @ ValueType::Embedded(_)) => single_value(value_type, node.last_text()),
            Some(ValueType::List(item)) => self.read_list(field, item, node),
            None if field.kind.is_link() => {
                let lines = node.texts.iter().flat_map(|text| text.lines()).map(str::trim);
                Value::List(lines.filter(|line| !line.is_empty()).map(Value::from).collect())
            }
            None => Value::Null,
        }
    }

    fn read_json(&mut self, field: &Field, text: &str) -> Value {
        if text.trim().is_empty() {
            return Value::Null;
        }
        serde_json::from_str(text).unwrap_or_else(|_| {
            let message = format!("{} must be JSON, such as {{\"key\": [1, \"text\"]}}", field.label());
            self.violations.push(Violation { path: self.path.clone(), code: "JSON", message });
            Value::Null
        })
    }

    /// A time; one without an offset is in the zone of the application.
    fn read_time(&mut self, subject: &str, text: &str) -> Value {
        let text = text.trim();
        let found = match local_time(self.model.time_zone(), text) {
            None => return single_value(&ValueType::Scalar(Scalar::DateTime), text),
            Some(LocalTime::Exact(time)) => return Value::String(time),
            Some(found) => found,
        };
        let message = found.mistake(subject).unwrap_or_default();
        self.violations.push(Violation { path: self.path.clone(), code: "TIME", message });
        Value::Null
    }

    /// An embedded value, or `None` if it is optional and blank.
    fn read_embedded(&mut self, name: &str, node: &ControlNode, optional: bool) -> Option<Value> {
        if optional && node.is_blank() {
            return None;
        }
        let model = self.model;
        let mut fields = Vec::new();
        for field in &model.embedded.get(name)?.fields {
            let Some(child) = node.child(&field.name) else { continue };
            // The controls of an optional value do not show defaults, so a blank one means its default.
            if optional && field.default.is_some() && child.is_blank() {
                continue;
            }
            let value = self
                .at_segment(PathSegment::Field(field.name.clone()), |reader| reader.read_value(field, child));
            fields.push((field.name.clone(), value));
        }
        Some(Value::Object(fields))
    }

    fn read_list(&mut self, field: &Field, item: &ListItem, node: &ControlNode) -> Value {
        if let Some(json) = node.child(JSON_CONTROL) {
            return self.read_json(field, json.last_text());
        }
        let items = match item.value_type.embedded_name() {
            Some(name) if !node.children.is_empty() => self.read_groups(name, node),
            Some(_) | None => self.read_lines(field, &item.value_type, node),
        };
        if items.is_empty() && !field.required { Value::Null } else { Value::List(items) }
    }

    /// The values of a list of groups, without blank groups.
    fn read_groups(&mut self, name: &str, node: &ControlNode) -> Vec<Value> {
        let mut values = Vec::new();
        for item in node.numbered_children() {
            let read = self.at_segment(PathSegment::Index(values.len()), |reader| {
                reader.read_embedded(name, item, true)
            });
            values.extend(read);
        }
        values
    }

    fn read_lines(&mut self, field: &Field, value_type: &ValueType, node: &ControlNode) -> Vec<Value> {
        let lines = node.texts.iter().flat_map(|text| text.lines()).filter(|line| !line.trim().is_empty());
        let is_text = matches!(value_type.scalar(), Some(Scalar::String | Scalar::Id));
        let is_json = value_type.is_json() && value_type.embedded_name().is_none();
        let is_time = value_type.scalar() == Some(Scalar::DateTime);
        let mut values = Vec::new();
        for line in lines {
            values.push(if is_text {
                Value::from(line)
            } else if is_time {
                // Of several lines the message says which one it is about.
                self.at_segment(PathSegment::Index(values.len()), |reader| {
                    reader.read_time(line.trim(), line)
                })
            } else if is_json {
                self.at_segment(PathSegment::Index(values.len()), |reader| reader.read_json(field, line))
            } else {
                single_value(value_type, line)
            });
        }
        values
    }
}

/// A value that is not free text, without surrounding white space.
fn single_value(value_type: &ValueType, text: &str) -> Value {
    match (value_type.scalar(), text.trim()) {
        (_, "") => Value::Null,
        (Some(Scalar::DateTime | Scalar::LocalDateTime), text) => Value::String(utc_datetime(text)),
        (None, text) if value_type.is_json() => json_or_text(text),
        (scalar, text) => typed_value(scalar, text),
    }
}

/// Browsers submit line breaks as CRLF.
fn normalize_lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// The day and the clock of a time.
fn day_and_clock(text: &str) -> Option<(&str, &str)> {
    let (day, rest) = text.split_at_checked(10)?;
    Some((day, rest.strip_prefix(['T', 't', ' '])?))
}

/// What a text without an offset stands for in a zone; `None` if it has one, or is no time.
pub(crate) fn local_time(zone: &ZoneOffsets, text: &str) -> Option<LocalTime> {
    if is_local(text) { zone.read_local(text) } else { None }
}

/// True for a time without an offset.
fn is_local(text: &str) -> bool {
    day_and_clock(text).is_some_and(|(_, clock)| {
        clock.len() >= 5 && clock.bytes().all(|byte| byte.is_ascii_digit() || b":.".contains(&byte))
    })
}

/// A time without an offset is in UTC where there is no form that says another zone; seconds are optional.
pub(crate) fn utc_datetime(text: &str) -> String {
    let Some((day, clock)) = day_and_clock(text) else { return text.to_owned() };
    match (is_local(text), clock.len()) {
        // Seconds are optional here, too: 02:30+01:00
        (false, 6..) if clock.is_char_boundary(5) && clock[5..].starts_with(['+', '-', 'Z', 'z']) => {
            format!("{day}T{}:00{}", &clock[..5], &clock[5..])
        }
        (false, _) => format!("{day}T{clock}"),
        (true, 5) => format!("{day}T{clock}:00Z"),
        (true, _) => format!("{day}T{clock}Z"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_value_follows_the_field_kind() {
        let value = |scalar, text| typed_value(Some(scalar), text);
        assert_eq!(value(Scalar::Int, "7"), Value::Int(7));
        assert_eq!(value(Scalar::Int, "-07"), Value::from("-07"));
        assert_eq!(Some(value(Scalar::Float, "1.50")), Value::number("1.50"));
        assert_eq!(value(Scalar::Float, "NaN"), Value::from("NaN"));
        assert_eq!(value(Scalar::Boolean, "true"), Value::Bool(true));
        assert_eq!(value(Scalar::Boolean, "yes"), Value::from("yes"));
        assert_eq!(value(Scalar::String, "7"), Value::from("7"));
        assert_eq!(value(Scalar::Json, "[1]"), Value::List(vec![Value::Int(1)]));
        assert_eq!(value(Scalar::Json, "[1"), Value::from("[1"));
    }

    #[test]
    fn time_without_zone_is_utc() {
        let table = [
            ("2026-03-01T09:30", "2026-03-01T09:30:00Z"),
            ("2026-03-01 09:30", "2026-03-01T09:30:00Z"),
            ("2026-03-01T09:30:15", "2026-03-01T09:30:15Z"),
            ("2026-03-01T09:30:15.5", "2026-03-01T09:30:15.5Z"),
            ("2026-03-01T09:30:15+02:00", "2026-03-01T09:30:15+02:00"),
            ("2026-03-01T09:30:15Z", "2026-03-01T09:30:15Z"),
            ("2026-03-01T09:30+02:00", "2026-03-01T09:30:00+02:00"),
            ("tomorrow", "tomorrow"),
            ("2026-03-01 09:30:15+02:00", "2026-03-01T09:30:15+02:00"),
            ("at T", "at T"),
            ("ten letter", "ten letter"),
        ];
        for (input, expected) in table {
            assert_eq!(utc_datetime(input), expected, "{input}");
        }
    }
}
