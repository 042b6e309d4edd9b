//! Text from a URL or a form as the value that its field takes: where everything is text, the field says what it means.

use crate::control_tree::Node;
use trefoil_model::error::{Segment, Violation};
use trefoil_model::naming::names::label;
use trefoil_model::{Field, Item, Kind, Model, Scalar, Value};

/// A value to compare with. What does not look like its type stays text, so that coercion can say what is wrong.
pub fn value(kind: &Kind, text: &str) -> Value {
    let plain = || Value::String(text.to_owned());
    match kind {
        Kind::Scalar(Scalar::Int | Scalar::Float) => Value::number(text.trim_ascii()).unwrap_or_else(plain),
        Kind::Scalar(Scalar::Boolean) => match text {
            "true" | "on" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => plain(),
        },
        Kind::Scalar(Scalar::Json) | Kind::Embedded(_) => {
            serde_json::from_str(text).unwrap_or_else(|_| plain())
        }
        Kind::Scalar(
            Scalar::String
            | Scalar::Id
            | Scalar::Long
            | Scalar::Decimal
            | Scalar::Date
            | Scalar::DateTime
            | Scalar::Uuid
            | Scalar::Url
            | Scalar::Email,
        )
        | Kind::Id
        | Kind::Enum(_)
        | Kind::List(_)
        | Kind::Reference { .. }
        | Kind::Inverse { .. }
        | Kind::Link { .. }
        | Kind::Unstored => plain(),
    }
}

/// The name below a list whose control holds all of it as JSON.
pub const WHOLE: &str = "_json";

/// Reads what was typed into controls. A blank is null where the field may be, and where no text could stand for a
/// value; what is wrong is the engine's to judge, but for what it would take for a text.
pub struct Reader<'m> {
    model: &'m Model,
    /// Where in the form it is reading.
    path: Vec<Segment>,
    pub violations: Vec<Violation>,
}

impl<'m> Reader<'m> {
    pub fn new(model: &'m Model) -> Reader<'m> {
        Reader { model, path: Vec::new(), violations: Vec::new() }
    }

    pub fn field(&mut self, field: &Field, node: &Node) -> Value {
        self.within(Segment::Field(field.input_name.clone()), |reader| reader.read(field, node))
    }

    fn within<T>(&mut self, segment: Segment, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(segment);
        let value = read(self);
        self.path.pop();
        value
    }

    fn read(&mut self, field: &Field, node: &Node) -> Value {
        match &field.kind {
            Kind::Scalar(Scalar::Json) => self.json(field, node.last()),
            Kind::Scalar(Scalar::String | Scalar::Id) => match unix_lines(node.last()) {
                text if text.is_empty() && !field.required => Value::Null,
                text => Value::String(text),
            },
            kind @ (Kind::Scalar(_) | Kind::Enum(_) | Kind::Id | Kind::Reference { .. }) => {
                one(kind, node.last())
            }
            Kind::Embedded(name) if !node.below.is_empty() => {
                self.object(name, node, !field.required).unwrap_or(Value::Null)
            }
            kind @ Kind::Embedded(_) => one(kind, node.last()),
            Kind::List(item) => self.list(field, item, node),
            Kind::Link { .. } => {
                let lines = node.texts.iter().flat_map(|text| text.lines()).map(str::trim);
                Value::List(lines.filter(|line| !line.is_empty()).map(Value::from).collect())
            }
            Kind::Inverse { .. } | Kind::Unstored => Value::Null,
        }
    }

    fn json(&mut self, field: &Field, text: &str) -> Value {
        if text.trim().is_empty() {
            return Value::Null;
        }
        serde_json::from_str(text).unwrap_or_else(|_| {
            let message = format!("{} must be JSON, such as {{\"key\": [1, \"text\"]}}", label(&field.name));
            self.violations.push(Violation { path: self.path.clone(), code: "JSON", message });
            Value::Null
        })
    }

    /// An embedded value, or none where it need not be there and nothing of it was typed.
    fn object(&mut self, name: &str, node: &Node, optional: bool) -> Option<Value> {
        if optional && node.is_blank() {
            return None;
        }
        let model = self.model;
        let mut fields = Vec::new();
        for field in &model.embedded.get(name)?.fields {
            let Some(child) = node.get(&field.name) else { continue };
            // Controls of what need not be there show no defaults, so a blank one leaves its default alone.
            if optional && field.default.is_some() && child.is_blank() {
                continue;
            }
            let value = self.within(Segment::Field(field.name.clone()), |reader| reader.read(field, child));
            fields.push((field.name.clone(), value));
        }
        Some(Value::Object(fields))
    }

    fn list(&mut self, field: &Field, item: &Item, node: &Node) -> Value {
        if let Some(whole) = node.get(WHOLE) {
            return self.json(field, whole.last());
        }
        let items = match &item.kind {
            Kind::Embedded(name) if !node.below.is_empty() => self.objects(name, node),
            kind @ (Kind::Embedded(_)
            | Kind::Id
            | Kind::Scalar(_)
            | Kind::Enum(_)
            | Kind::List(_)
            | Kind::Reference { .. }
            | Kind::Inverse { .. }
            | Kind::Link { .. }
            | Kind::Unstored) => self.lines(field, kind, node),
        };
        if items.is_empty() && !field.required { Value::Null } else { Value::List(items) }
    }

    /// Groups in which nothing was typed are no values.
    fn objects(&mut self, name: &str, node: &Node) -> Vec<Value> {
        let mut values = Vec::new();
        for item in node.items() {
            let read = self.within(Segment::Index(values.len()), |reader| reader.object(name, item, true));
            values.extend(read);
        }
        values
    }

    fn lines(&mut self, field: &Field, kind: &Kind, node: &Node) -> Vec<Value> {
        let lines = node.texts.iter().flat_map(|text| text.lines()).filter(|line| !line.trim().is_empty());
        let mut values = Vec::new();
        for line in lines {
            values.push(match kind {
                Kind::Scalar(Scalar::String | Scalar::Id) => Value::from(line),
                Kind::Scalar(Scalar::Json) | Kind::List(_) => {
                    self.within(Segment::Index(values.len()), |reader| reader.json(field, line))
                }
                kind @ (Kind::Scalar(_)
                | Kind::Id
                | Kind::Enum(_)
                | Kind::Embedded(_)
                | Kind::Reference { .. }
                | Kind::Inverse { .. }
                | Kind::Link { .. }
                | Kind::Unstored) => one(kind, line),
            });
        }
        values
    }
}

/// Space around what is no free text was not meant.
fn one(kind: &Kind, text: &str) -> Value {
    match (kind, text.trim()) {
        (_, "") => Value::Null,
        (Kind::Scalar(Scalar::DateTime), text) => Value::String(moment(text)),
        (kind, text) => value(kind, text),
    }
}

/// Browsers send the lines of a text with CRLF between them, whatever was shown.
fn unix_lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// A time without a zone is in UTC, as the control says; seconds may be left out.
fn moment(text: &str) -> String {
    let parts = text.split_at_checked(10);
    let Some((day, clock)) = parts.and_then(|(day, rest)| Some((day, rest.strip_prefix(['T', 't', ' '])?)))
    else {
        return text.to_owned();
    };
    let is_local =
        clock.len() >= 5 && clock.bytes().all(|byte| byte.is_ascii_digit() || b":.".contains(&byte));
    match (is_local, clock.len()) {
        (false, _) => format!("{day}T{clock}"),
        (true, 5) => format!("{day}T{clock}:00Z"),
        (true, _) => format!("{day}T{clock}Z"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_says_what_a_text_means() {
        let of = |scalar, text| value(&Kind::Scalar(scalar), text);
        assert_eq!(of(Scalar::Int, "7"), Value::Int(7));
        assert_eq!(of(Scalar::Int, "-07"), Value::from("-07"));
        assert_eq!(Some(of(Scalar::Float, "1.50")), Value::number("1.50"));
        assert_eq!(of(Scalar::Float, "NaN"), Value::from("NaN"));
        assert_eq!(of(Scalar::Boolean, "true"), Value::Bool(true));
        assert_eq!(of(Scalar::Boolean, "yes"), Value::from("yes"));
        assert_eq!(of(Scalar::String, "7"), Value::from("7"));
        assert_eq!(of(Scalar::Json, "[1]"), Value::List(vec![Value::Int(1)]));
        assert_eq!(of(Scalar::Json, "[1"), Value::from("[1"));
    }

    #[test]
    fn a_time_without_a_zone_is_in_utc() {
        let table = [
            ("2026-03-01T09:30", "2026-03-01T09:30:00Z"),
            ("2026-03-01 09:30", "2026-03-01T09:30:00Z"),
            ("2026-03-01T09:30:15", "2026-03-01T09:30:15Z"),
            ("2026-03-01T09:30:15.5", "2026-03-01T09:30:15.5Z"),
            ("2026-03-01T09:30:15+02:00", "2026-03-01T09:30:15+02:00"),
            ("2026-03-01T09:30:15Z", "2026-03-01T09:30:15Z"),
            ("tomorrow", "tomorrow"),
            ("2026-03-01 09:30:15+02:00", "2026-03-01T09:30:15+02:00"),
            ("at T", "at T"),
            ("ten letter", "ten letter"),
        ];
        for (typed, meant) in table {
            assert_eq!(moment(typed), meant, "{typed}");
        }
    }
}
