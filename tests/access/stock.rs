//! Records of a schema, with many nulls and equal values; as JSON for seeds, and read back from it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::shape::{AccessShape, COLORS, Content, Kind, ROLES, ShapeField};
use crate::power::chance::Chance;

/// The records of each type, by id.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessStock {
    pub rows: Vec<BTreeMap<i64, AccessRow>>,
}

/// What each field contains, in the order of the fields.
pub type AccessRow = Vec<Cell>;

#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Null,
    Text(String),
    Whole(i64),
    Flag(bool),
    /// In hundredths.
    Exact(i64),
    /// As it is sent and shown.
    Moment(String),
    /// The value of an enum.
    Word(String),
    Texts(Vec<String>),
    Words(Vec<String>),
    Spot(Option<String>, Option<i64>),
    /// The id of another record.
    One(i64),
    /// The ids of other records, ascending.
    Many(Vec<i64>),
}

const TEXTS: [&str; 6] = ["a", "ab", "b", "Ba", "mill pond", "pond"];
const MOMENTS: [&str; 4] =
    ["2001-05-01T00:00:00Z", "2020-02-29T12:30:00Z", "2400-01-01T00:00:00Z", "2400-01-01T00:00:01Z"];

impl Cell {
    /// As a literal of a rule.
    pub fn rule_text(&self) -> String {
        match self {
            Cell::Text(text) | Cell::Moment(text) => format!("'{text}'"),
            Cell::Whole(number) => number.to_string(),
            Cell::Flag(flag) => flag.to_string(),
            Cell::Exact(hundredths) => decimal(*hundredths),
            Cell::Word(word) => word.clone(),
            Cell::Null | Cell::Texts(_) | Cell::Words(_) | Cell::Spot(..) | Cell::One(_) | Cell::Many(_) => {
                panic!("{self:?} is no literal")
            }
        }
    }

    pub fn json(&self) -> Value {
        match self {
            Cell::Null => Value::Null,
            Cell::Text(text) | Cell::Moment(text) | Cell::Word(text) => json!(text),
            Cell::Whole(number) => json!(number),
            Cell::Flag(flag) => json!(flag),
            Cell::Exact(hundredths) => json!(decimal(*hundredths)),
            Cell::Texts(texts) | Cell::Words(texts) => json!(texts),
            Cell::Spot(city, zip) => json!({ "city": city, "zip": zip }),
            Cell::One(id) => json!(id.to_string()),
            Cell::Many(ids) => ids.iter().map(|id| json!(id.to_string())).collect(),
        }
    }

    /// `None` where one of them is absent.
    pub fn compare(&self, other: &Cell) -> Option<Ordering> {
        Some(match (self, other) {
            (Cell::Null, _) | (_, Cell::Null) => return None,
            (Cell::Text(left), Cell::Text(right))
            | (Cell::Moment(left), Cell::Moment(right))
            | (Cell::Word(left), Cell::Word(right)) => left.as_bytes().cmp(right.as_bytes()),
            (Cell::Whole(left), Cell::Whole(right))
            | (Cell::Exact(left), Cell::Exact(right))
            | (Cell::One(left), Cell::One(right)) => left.cmp(right),
            (Cell::Flag(left), Cell::Flag(right)) => left.cmp(right),
            (left, right) => panic!("{left:?} and {right:?} are of different types"),
        })
    }
}

/// `1.50`.
fn decimal(hundredths: i64) -> String {
    let sign = if hundredths < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", hundredths.abs() / 100, hundredths.abs() % 100)
}

/// A value that is not null.
pub fn value(chance: &mut Chance, kind: Kind) -> Cell {
    match kind {
        Kind::Text => Cell::Text((*chance.pick(&TEXTS).unwrap()).to_owned()),
        Kind::Int => Cell::Whole(chance.below(5) as i64),
        Kind::Flag => Cell::Flag(chance.percent(50)),
        Kind::Decimal => Cell::Exact(*chance.pick(&[-5, 0, 50, 100, 1050]).unwrap()),
        Kind::Moment => Cell::Moment((*chance.pick(&MOMENTS).unwrap()).to_owned()),
        Kind::Color => Cell::Word((*chance.pick(&COLORS).unwrap()).to_owned()),
    }
}

impl AccessStock {
    pub fn random(chance: &mut Chance, shape: &AccessShape) -> AccessStock {
        let counts: Vec<i64> = shape.types.iter().map(|_| 3 + chance.below(9) as i64).collect();
        let mut stock = AccessStock { rows: Vec::new() };
        for (own, of) in shape.types.iter().enumerate() {
            let row = |id: i64| {
                (id, of.fields.iter().map(|field| cell(chance, shape, &counts, field, id)).collect())
            };
            stock.rows.push((1..=counts[own]).map(row).collect());
        }
        stock.fill_other_sides(shape);
        stock
    }

    /// The same records with a text of its own in each place: whoever reads it has read that place.
    pub fn marked(mut self) -> AccessStock {
        for (of, rows) in self.rows.iter_mut().enumerate() {
            for (id, row) in rows.iter_mut() {
                for (at, cell) in row.iter_mut().enumerate() {
                    let mark = format!("mark{of}x{id}x{at}end");
                    match cell {
                        // Logins stay: requests are made with them.
                        Cell::Text(text) if !text.starts_with("login") => *text = mark,
                        Cell::Texts(texts) => texts.iter_mut().for_each(|text| *text = mark.clone()),
                        Cell::Spot(Some(city), _) => *city = mark,
                        _ => {}
                    }
                }
            }
        }
        self
    }

    /// The marks of [`AccessStock::marked`] that are in it.
    pub fn marks(&self) -> BTreeSet<String> {
        let cells = self.rows.iter().flat_map(BTreeMap::values).flatten();
        let texts = cells.flat_map(|cell| match cell {
            Cell::Text(text) | Cell::Spot(Some(text), _) => vec![text.clone()],
            Cell::Texts(texts) => texts.clone(),
            _ => Vec::new(),
        });
        texts.filter(|text| text.starts_with("mark")).collect()
    }

    /// Inverse lists and the other directions of links follow from what records hold.
    pub fn fill_other_sides(&mut self, shape: &AccessShape) {
        for (own, of) in shape.types.iter().enumerate() {
            for (position, field) in of.fields.iter().enumerate() {
                let (target, other) = match field.content {
                    Content::Inverse { target, reference } => (target, reference),
                    Content::Link { target, back: Some(back), is_owner: false } => (target, back),
                    _ => continue,
                };
                let ids: Vec<i64> = self.rows[own].keys().copied().collect();
                for id in ids {
                    let leads_here = |row: &AccessRow| match &row[other] {
                        Cell::One(one) => *one == id,
                        Cell::Many(many) => many.contains(&id),
                        _ => false,
                    };
                    let rows = self.rows[target].iter();
                    let found = rows.filter(|(_, row)| leads_here(row)).map(|(id, _)| *id).collect();
                    self.rows[own].get_mut(&id).expect("a row")[position] = Cell::Many(found);
                }
            }
        }
    }

    /// The file of each type in `seed/`.
    pub fn seeds(&self, shape: &AccessShape) -> Vec<(&'static str, String)> {
        let rows = |(of, rows): (usize, &BTreeMap<i64, AccessRow>)| {
            let bodies = rows.iter().map(|(id, row)| {
                let mut body = body(&shape.types[of].fields, row);
                body.insert("id".to_owned(), json!(id));
                Value::Object(body)
            });
            (shape.types[of].plural, Value::from_iter(bodies).to_string())
        };
        self.rows.iter().enumerate().map(rows).collect()
    }

    /// The fields of a document that reads everything of a type that is stored.
    pub fn selection(shape: &AccessShape, of: usize) -> String {
        let fields = shape.types[of].fields.iter().filter_map(|field| match field.content {
            Content::Value(_) | Content::Texts | Content::Roles | Content::Login => Some(field.name.clone()),
            Content::Spot => Some(format!("{} {{ city zip }}", field.name)),
            Content::Reference { .. } | Content::Link { is_owner: true, .. } => {
                Some(format!("{} {{ id }}", field.name))
            }
            Content::Inverse { .. } | Content::Link { is_owner: false, .. } => None,
        });
        format!("id {}", fields.collect::<Vec<_>>().join(" "))
    }

    /// What [`AccessStock::selection`] was answered with.
    pub fn read_row(shape: &AccessShape, of: usize, object: &Value) -> AccessRow {
        let id = |object: &Value| object["id"].as_str().and_then(|id| id.parse::<i64>().ok());
        let cell = |field: &ShapeField| {
            let value = &object[field.name.as_str()];
            let text = || value.as_str().map(str::to_owned);
            let texts = || value.as_array().map(|items| items.iter().map(word).collect());
            match field.content {
                Content::Inverse { .. } => Some(Cell::Many(Vec::new())),
                Content::Link { .. } => {
                    Some(Cell::Many(value.as_array().into_iter().flatten().filter_map(id).collect()))
                }
                Content::Reference { .. } => id(value).map(Cell::One),
                Content::Value(Kind::Text) | Content::Login => text().map(Cell::Text),
                Content::Value(Kind::Int) => value.as_i64().map(Cell::Whole),
                Content::Value(Kind::Flag) => value.as_bool().map(Cell::Flag),
                Content::Value(Kind::Decimal) => value.as_str().map(|text| Cell::Exact(hundredths(text))),
                Content::Value(Kind::Moment) => text().map(Cell::Moment),
                Content::Value(Kind::Color) => text().map(Cell::Word),
                Content::Texts => texts().map(Cell::Texts),
                Content::Roles if shape.has_role_list => texts().map(Cell::Words),
                Content::Roles => text().map(Cell::Word),
                Content::Spot if value.is_null() => None,
                Content::Spot => {
                    Some(Cell::Spot(value["city"].as_str().map(str::to_owned), value["zip"].as_i64()))
                }
            }
        };
        shape.types[of].fields.iter().map(|field| cell(field).unwrap_or(Cell::Null)).collect()
    }
}

fn word(item: &Value) -> String {
    item.as_str().expect("a text").to_owned()
}

fn hundredths(text: &str) -> i64 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let fraction: i64 = format!("{fraction:0<2}")[..2].parse().expect("digits");
    let whole: i64 = whole.trim_start_matches('-').parse().expect("digits");
    sign * (whole * 100 + fraction)
}

/// A record as it is sent: without what follows from other records.
pub fn body(fields: &[ShapeField], row: &AccessRow) -> Map<String, Value> {
    let mut body = Map::new();
    for (field, cell) in fields.iter().zip(row) {
        if !matches!(field.content, Content::Inverse { .. } | Content::Link { is_owner: false, .. }) {
            body.insert(field.input_name(), cell.json());
        }
    }
    body
}

fn cell(chance: &mut Chance, shape: &AccessShape, counts: &[i64], field: &ShapeField, id: i64) -> Cell {
    let is_null = !field.required && chance.percent(25);
    match field.content {
        Content::Login => Cell::Text(format!("login{id}")),
        Content::Inverse { .. } => Cell::Many(Vec::new()),
        Content::Link { target, .. } => {
            Cell::Many((1..=counts[target]).filter(|_| chance.percent(25)).collect())
        }
        Content::Roles if shape.has_role_list => {
            let roles = ROLES.iter().filter(|_| chance.percent(40));
            Cell::Words(roles.map(|role| (*role).to_owned()).collect())
        }
        _ if is_null => Cell::Null,
        Content::Roles => Cell::Word((*chance.pick(&ROLES).unwrap()).to_owned()),
        Content::Reference { target, .. } => Cell::One(1 + chance.below(counts[target] as usize) as i64),
        Content::Value(kind) => value(chance, kind),
        Content::Texts => {
            let texts = (0..chance.below(3)).map(|_| (*chance.pick(&TEXTS).unwrap()).to_owned());
            Cell::Texts(texts.collect())
        }
        Content::Spot => {
            let city = chance.percent(80).then(|| (*chance.pick(&TEXTS).unwrap()).to_owned());
            Cell::Spot(city, chance.percent(80).then(|| chance.below(4) as i64))
        }
    }
}

/// A random value for a field.
pub fn random_cell(
    chance: &mut Chance,
    shape: &AccessShape,
    stock: &AccessStock,
    field: &ShapeField,
) -> Cell {
    let counts: Vec<i64> = stock.rows.iter().map(|rows| rows.len() as i64).collect();
    let id = 1000 + chance.below(1_000_000) as i64;
    match cell(chance, shape, &counts, field, id) {
        // Positions stand for the records that are still there.
        Cell::One(position) => {
            let target = field.content.target().expect("a reference");
            stock.rows[target].keys().nth(position as usize - 1).map_or(Cell::Null, |id| Cell::One(*id))
        }
        Cell::Many(positions) => {
            let target = field.content.target().expect("a list");
            let ids: Vec<i64> = stock.rows[target].keys().copied().collect();
            Cell::Many(positions.into_iter().map(|position| ids[position as usize - 1]).collect())
        }
        other => other,
    }
}
