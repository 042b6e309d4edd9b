//! What a copy consists of: tables with their columns in the order of their keys, and what their rows sum up to.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::migrate::{Form, LinkTable, StoredModel, Table};

/// One value on its way.
#[derive(Debug, Clone, PartialEq)]
pub enum Datum {
    Null,
    Int(i64),
    Real(f64),
    Text(String),
    Bytes(Vec<u8>),
}

pub type Row = Vec<Datum>;

/// A table that is copied.
#[derive(Debug, Clone)]
pub struct Section {
    pub table: String,
    pub columns: Vec<Column>,
    /// So many of the first columns are the key.
    pub key: usize,
}

#[derive(Debug, Clone)]
pub struct Column {
    pub name: String,
    pub holds: Holds,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Holds {
    /// What a field of a record may hold.
    Form(Form),
    Bytes,
}

/// The log and what goes with it, by the names of its columns.
pub const CHANGES: &str = "trefoil_changes";

/// Everything of a store but what it knows of itself, what is referred to first.
pub fn sections(shape: &StoredModel) -> Vec<Section> {
    let records = shape.tables.iter().map(of_records);
    let links = shape.links.iter().map(of_links);
    let (int, text) = ("Long", "String");
    let lists = Section::of(
        "trefoil_lists",
        1,
        &[("id", int), ("name", text), ("version", int), ("length", int), ("next", int)],
    );
    let values = Section::of("trefoil_list_values", 2, &[("list", int), ("position", int), ("value", text)]);
    let counts = Section::of(
        "trefoil_list_counts",
        3,
        &[("list", int), ("level", int), ("block", int), ("count", int)],
    );
    let mut keys = Section::of("trefoil_keys", 1, &[("key", text), ("fingerprint", text), ("at", int)]);
    keys.columns.push(Column { name: "answer".to_owned(), holds: Holds::Bytes });
    records.chain(links).chain([lists, values, counts, changes("number", CHANGES), keys]).collect()
}

/// Changes, known by their number or, before they have one, by their place.
pub fn changes(key: &str, table: &str) -> Section {
    let (int, text) = ("Long", "String");
    Section::of(
        table,
        1,
        &[
            (key, int),
            ("resource", text),
            ("deed", text),
            ("record", int),
            ("version", int),
            ("at", "DateTime"),
            ("image", "JSON"),
        ],
    )
}

fn of_records(table: &Table) -> Section {
    let mut section = Section::of(&table.table, 1, &[("id", "Long"), ("_version", "Long")]);
    section.columns.extend(
        table
            .columns
            .iter()
            .map(|column| Column { name: column.column.clone(), holds: Holds::Form(column.form.clone()) }),
    );
    section
}

fn of_links(link: &LinkTable) -> Section {
    Section::of(&link.table, 2, &[(&link.first.column, "Long"), (&link.second.column, "Long")])
}

impl Section {
    fn of(table: &str, key: usize, columns: &[(&str, &str)]) -> Section {
        let column = |(name, scalar): &(&str, &str)| Column {
            name: (*name).to_owned(),
            holds: Holds::Form(Form::Scalar((*scalar).to_owned())),
        };
        Section { table: table.to_owned(), columns: columns.iter().map(column).collect(), key }
    }
}

/// What the rows of a table come to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    pub table: String,
    pub rows: u64,
    /// Of every value, in the order of the key.
    pub hash: String,
}

/// A sum in the making.
pub struct Summing {
    table: String,
    rows: u64,
    hash: Xxh3,
    /// Which columns are the same whatever case they are written in.
    caseless: Vec<bool>,
}

impl Summing {
    pub fn new(section: &Section) -> Summing {
        let is_uuid = |column: &Column| column.holds == Holds::Form(Form::Scalar("UUID".to_owned()));
        let caseless = section.columns.iter().map(is_uuid).collect();
        Summing { table: section.table.clone(), rows: 0, hash: Xxh3::new(), caseless }
    }

    pub fn add(&mut self, row: &[Datum]) {
        self.rows += 1;
        let Summing { hash, caseless, .. } = self;
        for (value, caseless) in row.iter().zip(caseless) {
            match value {
                Datum::Null => take(hash, 0, &[]),
                Datum::Int(number) => take(hash, 1, &number.to_le_bytes()),
                // SQLite keeps a zero without its sign.
                Datum::Real(number) => take(hash, 2, &(number + 0.0).to_bits().to_le_bytes()),
                Datum::Text(text) if *caseless => take(hash, 3, text.to_lowercase().as_bytes()),
                Datum::Text(text) => take(hash, 3, text.as_bytes()),
                Datum::Bytes(bytes) => take(hash, 4, bytes),
            }
        }
    }

    pub fn done(self) -> Sum {
        Sum { table: self.table, rows: self.rows, hash: format!("{:032x}", self.hash.digest128()) }
    }
}

/// With its kind and its length, so that no two rows look alike.
fn take(hash: &mut Xxh3, kind: u8, bytes: &[u8]) {
    hash.update(&[kind]);
    hash.update(&(bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}
