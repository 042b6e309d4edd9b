//! Random rows of a schema, with many nulls and equal values, and how they are written to a server.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::exact::ExactNumber;
use super::letters;
use super::schema::{COLORS, Content, PlainField, PlainSchema, ValueKind};
use super::values::PlainValue;
use crate::power::chance::Chance;
use crate::support::Client;

/// The rows of each record type, in the order of their positions.
pub struct PlainData {
    pub rows: Vec<Vec<PlainRow>>,
}

/// What each field of a record contains.
pub struct PlainRow {
    pub cells: Vec<PlainCell>,
}

#[derive(Clone, Debug)]
pub enum PlainCell {
    Value(PlainValue),
    /// The position of another row.
    One(Option<usize>),
    /// Positions of other rows, ascending.
    Many(Vec<usize>),
}

const WHOLE: [i64; 9] = [0, 1, 1, -1, 2, 7, 42, i32::MAX as i64, i32::MIN as i64];
const LONG: [i64; 9] =
    [0, 1, -1, 5, i64::MAX, i64::MIN, 9_007_199_254_740_993, 9_007_199_254_740_992, i32::MAX as i64 + 1];
const REAL: [f64; 16] = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.0,
    2.25,
    0.1,
    0.2,
    0.3,
    0.7,
    -1e-7,
    1e15,
    123456.789,
    5e-324,
    1.7976931348623157e308,
    -1e300,
];
const EXACT: [&str; 16] = [
    "0",
    "0.0",
    "0.10",
    "0.1",
    "1",
    "1.0",
    "1.00",
    "-1",
    "10",
    "9.99",
    "-0.05",
    "2.50",
    "99999999999999999999",
    "123456789012345678901234567890.5",
    "0.000000000000000000001",
    "-7.000",
];
const DAYS: [&str; 8] = [
    "0001-01-05",
    "2024-02-29",
    "2024-12-30",
    "2026-03-29",
    "2026-10-25",
    "2026-12-31",
    "2027-01-03",
    "9999-12-20",
];
/// The changes of summer time in the zones of the schemas, the ends of years, and what is far away.
const MOMENTS: [&str; 14] = [
    "0001-01-05T12:00:00Z",
    "1969-12-31T23:59:59.999999Z",
    "2026-03-29T00:59:59.999999Z",
    "2026-03-29T01:00:00Z",
    "2026-10-25T00:59:59.5Z",
    "2026-10-25T01:00:00Z",
    "2026-03-08T06:59:59Z",
    "2026-03-08T07:00:00Z",
    "2026-11-01T06:00:00Z",
    "2026-04-04T14:59:59Z",
    "2026-10-03T15:30:00Z",
    "2026-12-31T18:30:00Z",
    "2026-12-31T23:00:00Z",
    "2499-07-01T12:00:00Z",
];
const UUIDS: [&str; 5] = [
    "00000000-0000-0000-0000-000000000000",
    "123e4567-e89b-12d3-a456-426614174000",
    "123e4567-e89b-12d3-a456-426614174001",
    "ffffffff-ffff-4fff-bfff-ffffffffffff",
    "9f000000-0000-7000-8000-00000000000a",
];

/// A value that is not null. Few different ones, so that equal ones are frequent.
pub fn value(chance: &mut Chance, kind: ValueKind) -> PlainValue {
    match kind {
        ValueKind::Digits => PlainValue::Whole(1 + chance.below(16) as i64),
        ValueKind::Int => PlainValue::Whole(*chance.pick(&WHOLE).unwrap()),
        ValueKind::Long => PlainValue::Whole(*chance.pick(&LONG).unwrap()),
        ValueKind::Float => PlainValue::Real(*chance.pick(&REAL).unwrap()),
        ValueKind::Decimal => PlainValue::Exact(ExactNumber::parse(chance.pick(&EXACT).unwrap())),
        ValueKind::Text => PlainValue::Text(letters::text(chance)),
        ValueKind::Flag => PlainValue::Flag(chance.percent(50)),
        ValueKind::Date => PlainValue::Day(chance.pick(&DAYS).unwrap().parse().unwrap()),
        ValueKind::DateTime => {
            let moment: Timestamp = chance.pick(&MOMENTS).unwrap().parse().unwrap();
            PlainValue::Moment(moment)
        }
        ValueKind::Color => PlainValue::Text((*chance.pick(&COLORS).unwrap()).to_owned()),
        ValueKind::Uuid => PlainValue::Text((*chance.pick(&UUIDS).unwrap()).to_owned()),
    }
}

/// The key of the row at a position: counted, or such that the order of the keys is not that of the positions.
pub fn key(kind: ValueKind, position: usize) -> PlainValue {
    let mixed = (position * 7 + 3) % 16;
    match kind {
        ValueKind::Uuid => PlainValue::Text(format!("{mixed:08x}-0000-4000-8000-{position:012x}")),
        ValueKind::Text => {
            let first = ["b", "B", "é", "Z", "a"][position % 5];
            PlainValue::Text(format!("{first}{mixed}"))
        }
        _ => PlainValue::Whole(position as i64 + 1),
    }
}

impl PlainData {
    pub fn random(chance: &mut Chance, schema: &PlainSchema) -> PlainData {
        let counts: Vec<usize> =
            schema.records.iter().map(|_| if chance.percent(8) { 1 } else { 4 + chance.below(11) }).collect();
        let mut rows: Vec<Vec<PlainRow>> = Vec::new();
        for (own, record) in schema.records.iter().enumerate() {
            let row = |position: usize| PlainRow {
                cells: record
                    .fields
                    .iter()
                    .map(|field| cell(chance, schema, &counts, field, position))
                    .collect(),
            };
            rows.push((0..counts[own]).map(row).collect());
        }
        let mut data = PlainData { rows };
        data.fill_other_sides(schema);
        data
    }

    /// Inverse lists and the other directions of links follow from what rows set.
    fn fill_other_sides(&mut self, schema: &PlainSchema) {
        for (own, record) in schema.records.iter().enumerate() {
            for (position, field) in record.fields.iter().enumerate() {
                let (target, other) = match field.content {
                    Content::Inverse { target, reference } => (target, reference),
                    Content::Link { target, back: Some(back), is_owner: false } => (target, back),
                    _ => continue,
                };
                for at in 0..self.rows[own].len() {
                    let leads_here = |row: &PlainRow| match &row.cells[other] {
                        PlainCell::One(one) => *one == Some(at),
                        PlainCell::Many(many) => many.contains(&at),
                        PlainCell::Value(_) => false,
                    };
                    let rows = self.rows[target].iter().enumerate();
                    let found = rows.filter(|(_, row)| leads_here(row)).map(|(at, _)| at).collect();
                    self.rows[own][at].cells[position] = PlainCell::Many(found);
                }
            }
        }
    }

    /// Creates the records, then sets what leads to records that were not there yet.
    pub fn write(&self, schema: &PlainSchema, client: &mut Client) -> Result<(), String> {
        for (own, record) in schema.records.iter().enumerate() {
            let bodies: Vec<Value> =
                self.rows[own].iter().map(|row| self.body(schema, own, row, false)).collect();
            send(client, "POST", &format!("/{}?fields=id", record.plural), &json!(bodies), 201)?;
        }
        for (own, record) in schema.records.iter().enumerate() {
            for row in &self.rows[own] {
                let body = self.body(schema, own, row, true);
                if body.as_object().is_some_and(|body| !body.is_empty()) {
                    let id = super::rest_text::encoded(&row.key_text());
                    send(client, "PATCH", &format!("/{}/{id}", record.plural), &body, 200)?;
                }
            }
        }
        Ok(())
    }

    fn body(&self, schema: &PlainSchema, own: usize, row: &PlainRow, is_later: bool) -> Value {
        let mut body = serde_json::Map::new();
        for (field, cell) in schema.records[own].fields.iter().zip(&row.cells) {
            let id = |target: usize, at: usize| {
                let kind = schema.records[target].fields[0].single(schema).unwrap();
                self.rows[target][at].key().to_json(kind)
            };
            let (is_own_time, value) = match (field.content, cell) {
                (Content::Key(ValueKind::Digits | ValueKind::Int), _) => continue,
                (Content::Reference { target, .. }, PlainCell::One(one)) => {
                    (is_later == (target >= own), one.map_or(Value::Null, |at| id(target, at)))
                }
                (Content::Link { target, is_owner: true, .. }, PlainCell::Many(many)) => {
                    (is_later, many.iter().map(|at| id(target, *at)).collect())
                }
                (Content::Inverse { .. } | Content::Link { .. }, _) => continue,
                (_, PlainCell::Value(value)) => (!is_later, cell_json(schema, field, value)),
                (_, PlainCell::One(_) | PlainCell::Many(_)) => panic!("{} is a value", field.name),
            };
            if is_own_time {
                body.insert(field.input_name(), value);
            }
        }
        body.into()
    }
}

impl PlainRow {
    pub fn key(&self) -> &PlainValue {
        match &self.cells[0] {
            PlainCell::Value(key) => key,
            PlainCell::One(_) | PlainCell::Many(_) => panic!("the first field is the key"),
        }
    }

    pub fn key_text(&self) -> String {
        match self.key() {
            PlainValue::Text(text) => text.clone(),
            PlainValue::Whole(number) => number.to_string(),
            other => panic!("{other:?} is no key"),
        }
    }
}

fn cell(
    chance: &mut Chance,
    schema: &PlainSchema,
    counts: &[usize],
    field: &PlainField,
    position: usize,
) -> PlainCell {
    let is_null = !field.required && chance.percent(30);
    match field.content {
        Content::Key(kind) => PlainCell::Value(key(kind, position)),
        Content::Reference { target, .. } => PlainCell::One((!is_null).then(|| chance.below(counts[target]))),
        Content::Link { target, .. } => {
            PlainCell::Many((0..counts[target]).filter(|_| chance.percent(20)).collect())
        }
        Content::Inverse { .. } => PlainCell::Many(Vec::new()),
        Content::Single(_) | Content::List(_) | Content::Part(_) => {
            PlainCell::Value(field_value(chance, schema, field))
        }
    }
}

fn field_value(chance: &mut Chance, schema: &PlainSchema, field: &PlainField) -> PlainValue {
    if !field.required && chance.percent(30) {
        return PlainValue::Null;
    }
    match field.content {
        Content::Single(kind) => value(chance, kind),
        Content::List(kind) => PlainValue::List((0..chance.below(4)).map(|_| value(chance, kind)).collect()),
        Content::Part(part) => {
            let fields = &schema.parts[part].fields;
            PlainValue::Parts(fields.iter().map(|field| field_value(chance, schema, field)).collect())
        }
        _ => panic!("{} is no value", field.name),
    }
}

fn cell_json(schema: &PlainSchema, field: &PlainField, value: &PlainValue) -> Value {
    match (field.content, value) {
        (Content::Part(part), PlainValue::Parts(values)) => {
            let fields = schema.parts[part].fields.iter().zip(values);
            let members = fields.map(|(field, value)| (field.name.clone(), cell_json(schema, field, value)));
            Value::Object(members.collect())
        }
        (Content::Key(kind) | Content::Single(kind) | Content::List(kind), value) => value.to_json(kind),
        _ => Value::Null,
    }
}

fn send(client: &mut Client, method: &str, path: &str, body: &Value, expected: u16) -> Result<(), String> {
    let headers = [("content-type", "application/json"), ("accept", "application/json")];
    let reply = client.send(method, path, &headers, body.to_string().as_bytes());
    match reply.status == expected {
        true => Ok(()),
        false => Err(format!("{method} {path} {body}: {}", reply.text())),
    }
}
