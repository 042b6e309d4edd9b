//! The one validator of all faces: turns a [`Value`] into what a field keeps, or says everything that is wrong.

use std::fmt;

use indexmap::{IndexMap, IndexSet};

use crate::error::{Segment, Violation};
use crate::naming::names;
use crate::values::{json_text, rule_checks, scalars};
use crate::{Cell, EmbeddedType, EnumType, Field, FilledBy, Kind, Model, Scalar, Stored, Value};

/// What coercion must know beyond the field itself.
#[derive(Clone, Copy)]
pub struct Types<'a> {
    pub enums: &'a IndexMap<String, EnumType>,
    pub embedded: &'a IndexMap<String, EmbeddedType>,
}

impl<'a> From<&'a Model> for Types<'a> {
    fn from(model: &'a Model) -> Self {
        Types { enums: &model.enums, embedded: &model.embedded }
    }
}

/// After so many complaints about one value, one record or one request no more are looked for: nobody reads them.
pub const MOST: usize = 100;

/// Lists and objects inside of each other in one value. What is kept can then be read again wherever it is shown, also as
/// a part of something: readers of JSON give up at 128 levels, and this one is inside of a record.
pub const DEEPEST: usize = 126;

/// A field's name as people read it, spelled only when there is something to say.
#[derive(Clone, Copy)]
pub(crate) struct Label<'a>(pub &'a str);

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&names::label(self.0))
    }
}

/// For writing: type, null and every rule. Paths are relative to the field.
pub fn field(model: &Model, field: &Field, value: &Value) -> Result<Stored, Vec<Violation>> {
    if value.depth() > DEEPEST {
        let label = Label(&field.name);
        return Err(fault("DEPTH", format!("{label} must not be nested more than {DEEPEST} levels deep")));
    }
    kept(model.into(), field, value)
}

/// For conditions and cursors: the type alone; null is allowed, rules do not matter.
pub fn comparable(model: &Model, field: &Field, value: &Value) -> Result<Stored, Vec<Violation>> {
    if !field.kind.is_comparable() {
        return Err(fault("CONDITION", format!("{} cannot be compared", Label(&field.name))));
    }
    if value.is_null() {
        return Ok(Stored::Null);
    }
    stored(model.into(), &field.kind, value, Label(&field.name))
}

/// For what a text is to contain: a part of an address or of a URL need not be a whole one.
pub fn part(field: &Field, value: &Value) -> Result<Stored, Vec<Violation>> {
    let scalar = if field.kind == Kind::Scalar(Scalar::Id) { Scalar::Id } else { Scalar::String };
    of_scalar(scalar, value, Label(&field.name))
}

/// For values of records that exist already: the type alone, whatever the rules say today.
pub fn typed(model: &Model, field: &Field, value: &Value) -> Result<Stored, Vec<Violation>> {
    stored(model.into(), &field.kind, value, Label(&field.name))
}

/// An id that was chosen for a new record. Ids go on behind the greatest there is, and the last one would be the end;
/// any other may have been given by a store, which this one is to replace.
pub fn chosen_id(id: Option<i64>) -> Result<Option<i64>, Vec<Violation>> {
    match id {
        Some(i64::MAX) => {
            let message = format!("Id must not be {}: no id would be left for the next record", i64::MAX);
            Err(vec![Violation::new("id", "RANGE", message)])
        }
        Some(_) | None => Ok(id),
    }
}

/// The ids of a link; a record twice counts once.
pub fn ids(field: &Field, value: &Value) -> Result<Vec<i64>, Vec<Violation>> {
    let label = Label(&field.name);
    let Value::List(items) = value else {
        return Err(fault("TYPE", format!("{label} must be a list of ids, not {}", value.noun())));
    };
    let mut ids = IndexSet::with_capacity(items.len());
    let mut violations = Vec::new();
    for (i, item) in items.iter().enumerate() {
        match item.as_i64() {
            Some(id) => drop(ids.insert(id)),
            None if violations.len() < MOST => {
                violations.extend(under(fault("TYPE", not_an_id(label)), Segment::Index(i)));
            }
            None => break,
        }
    }
    if violations.is_empty() { Ok(ids.into_iter().collect()) } else { Err(violations) }
}

/// [`field`] before there is a model.
pub(crate) fn kept(types: Types<'_>, field: &Field, value: &Value) -> Result<Stored, Vec<Violation>> {
    let label = Label(&field.name);
    if value.is_null() {
        return if field.required {
            Err(fault("REQUIRED", format!("{label} is required")))
        } else {
            Ok(Stored::Null)
        };
    }
    let stored = stored(types, &field.kind, value, label)?;
    let violations = rule_checks::broken(&field.rules, value, &stored, label);
    if violations.is_empty() { Ok(stored) } else { Err(violations) }
}

fn stored(types: Types<'_>, kind: &Kind, value: &Value, label: Label<'_>) -> Result<Stored, Vec<Violation>> {
    match kind {
        Kind::Scalar(scalar) => of_scalar(*scalar, value, label),
        Kind::Enum(name) => one_of(types, name, value, label),
        Kind::Embedded(name) => embedded(types, name, value, label),
        Kind::List(item) => list(types, item, value, label),
        Kind::Id | Kind::Reference { .. } => match value.as_i64() {
            Some(id) => Ok(Stored::Int(id)),
            None => Err(fault("TYPE", not_an_id(label))),
        },
        Kind::Inverse { .. } | Kind::Link { .. } | Kind::Unstored => {
            Err(fault("READ_ONLY", format!("{label} cannot be set")))
        }
    }
}

fn of_scalar(scalar: Scalar, value: &Value, label: Label<'_>) -> Result<Stored, Vec<Violation>> {
    scalars::stored(scalar, value).map_err(|wrong| fault(wrong.code, format!("{label} {}", wrong.message)))
}

fn not_an_id(label: Label<'_>) -> String {
    format!("{label} must be an id, which is a whole number")
}

fn one_of(types: Types<'_>, name: &str, value: &Value, label: Label<'_>) -> Result<Stored, Vec<Violation>> {
    let values = types.enums.get(name).map(|found| found.values.as_slice()).unwrap_or_default();
    let Value::String(text) = value else {
        return Err(fault(
            "TYPE",
            format!("{label} must be one of {}, not {}", values.join(", "), value.noun()),
        ));
    };
    if values.contains(text) {
        return Ok(Stored::Text(text.clone()));
    }
    let near = names::nearest(text, values.iter().map(String::as_str));
    let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
    Err(fault("ENUM", format!("{label} must be one of {}{hint}", values.join(", "))))
}

fn list(
    types: Types<'_>,
    item: &crate::Item,
    value: &Value,
    label: Label<'_>,
) -> Result<Stored, Vec<Violation>> {
    let Value::List(values) = value else {
        return Err(fault("TYPE", format!("{label} must be a list, not {}", value.noun())));
    };
    let mut violations = Vec::new();
    let mut text = vec![b'['];
    for (i, value) in values.iter().enumerate() {
        if i > 0 {
            text.push(b',');
        }
        let element = match (value.is_null(), item.required) {
            (true, true) => Err(fault("REQUIRED", format!("{label} must not contain null"))),
            (true, false) => Ok(Stored::Null),
            (false, _) => stored(types, &item.kind, value, label),
        };
        match element {
            Ok(element) => write(&mut text, &item.kind, element.as_cell()),
            Err(wrong) => violations.extend(under(wrong, Segment::Index(i))),
        }
        if violations.len() >= MOST {
            break;
        }
    }
    text.push(b']');
    finished(text, violations)
}

fn embedded(types: Types<'_>, name: &str, value: &Value, label: Label<'_>) -> Result<Stored, Vec<Violation>> {
    let fields = types.embedded.get(name).map(|found| found.fields.as_slice()).unwrap_or_default();
    let Value::Object(given) = value else {
        return Err(fault("TYPE", format!("{label} must be an object, not {}", value.noun())));
    };
    let mut violations: Vec<Violation> =
        given.iter().filter_map(|(key, _)| unknown_key(fields, key, label)).take(MOST).collect();
    let mut text = vec![b'{'];
    for field in fields.iter().filter(|field| field.kind != Kind::Unstored) {
        let found = value.get(&field.name).or(field.default.as_ref()).unwrap_or(&Value::Null);
        match kept(types, field, found) {
            Ok(part) => {
                if text.len() > 1 {
                    text.push(b',');
                }
                json_text::write_text(&mut text, &field.name);
                text.push(b':');
                write(&mut text, &field.kind, part.as_cell());
            }
            Err(wrong) => violations.extend(under(wrong, Segment::Field(field.name.clone()))),
        }
    }
    text.push(b'}');
    finished(text, violations)
}

fn unknown_key(fields: &[Field], key: &str, label: Label<'_>) -> Option<Violation> {
    let names =
        || fields.iter().filter(|field| field.kind != Kind::Unstored).map(|field| field.name.as_str());
    if names().any(|name| name == key) {
        return None;
    }
    let hint = names::nearest(key, names()).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
    Some(Violation::new(key, "UNKNOWN", format!("{label} has no field {key}{hint}")))
}

fn write(text: &mut Vec<u8>, kind: &Kind, cell: Cell<'_>) {
    json_text::write_cell(text, kind, cell).expect("what coercion made can be written");
}

fn finished(text: Vec<u8>, violations: Vec<Violation>) -> Result<Stored, Vec<Violation>> {
    if !violations.is_empty() {
        return Err(violations);
    }
    Ok(Stored::Text(String::from_utf8(text).expect("JSON made of text is text")))
}

fn fault(code: &'static str, message: impl Into<String>) -> Vec<Violation> {
    vec![Violation { path: Vec::new(), code, message: message.into() }]
}

fn under(violations: Vec<Violation>, segment: Segment) -> impl Iterator<Item = Violation> {
    violations.into_iter().map(move |violation| violation.under(segment.clone()))
}

impl Field {
    /// Whether clients may give it when they create or change a record.
    pub fn is_writable(&self) -> bool {
        let kept = match self.kind {
            Kind::Scalar(_) | Kind::Enum(_) | Kind::Embedded(_) | Kind::List(_) => true,
            Kind::Reference { .. } | Kind::Link { .. } => true,
            Kind::Id | Kind::Inverse { .. } | Kind::Unstored => false,
        };
        kept && self.filled_by == FilledBy::Client
    }
}
