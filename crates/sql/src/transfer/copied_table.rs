//! What a copy consists of: tables with their columns in the order of their keys, and what their rows sum up to.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::migrate::{LinkTable, StoredModel, StoredTable, StoredType};

/// One value on its way.
#[derive(Debug, Clone, PartialEq)]
pub enum CopiedValue {
    Null,
    Int(i64),
    Real(f64),
    Text(String),
    Bytes(Vec<u8>),
}

pub type CopiedRow = Vec<CopiedValue>;

/// A table that is copied.
#[derive(Debug, Clone)]
pub struct CopiedTable {
    pub table: String,
    pub columns: Vec<CopiedColumn>,
    /// So many of the first columns are the key.
    pub key_columns: usize,
}

#[derive(Debug, Clone)]
pub struct CopiedColumn {
    pub name: String,
    pub value_type: CopiedType,
}

#[derive(Debug, Clone, PartialEq)]
pub enum CopiedType {
    /// What a field of a record may hold.
    Stored(StoredType),
    Bytes,
}

/// The log and what goes with it, by the names of its columns.
pub const CHANGES_TABLE: &str = "trefoil_changes";

/// Everything of a store but what it knows of itself, what is referred to first.
pub fn copied_tables(shape: &StoredModel) -> Vec<CopiedTable> {
    let records = shape.tables.iter().map(record_table);
    let links = shape.links.iter().map(link_table);
    let (int, text) = ("Long", "String");
    let lists = CopiedTable::new(
        "trefoil_lists",
        1,
        &[("id", int), ("name", text), ("version", int), ("length", int), ("next", int)],
    );
    let values =
        CopiedTable::new("trefoil_list_values", 2, &[("list", int), ("position", int), ("value", text)]);
    let counts = CopiedTable::new(
        "trefoil_list_counts",
        3,
        &[("list", int), ("level", int), ("block", int), ("count", int)],
    );
    let mut keys = CopiedTable::new("trefoil_keys", 1, &[("key", text), ("fingerprint", text), ("at", int)]);
    keys.columns.push(CopiedColumn { name: "answer".to_owned(), value_type: CopiedType::Bytes });
    records
        .chain(links)
        .chain([lists, values, counts, changes_table("number", CHANGES_TABLE), keys])
        .collect()
}

/// Changes, known by their number or, before they have one, by their place.
pub fn changes_table(key: &str, table: &str) -> CopiedTable {
    let (int, text) = ("Long", "String");
    CopiedTable::new(
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

fn record_table(table: &StoredTable) -> CopiedTable {
    let mut section = CopiedTable::new(&table.table, 1, &[("id", "Long"), ("_version", "Long")]);
    section.columns.extend(table.columns.iter().map(|column| CopiedColumn {
        name: column.column.clone(),
        value_type: CopiedType::Stored(column.form.clone()),
    }));
    section
}

fn link_table(link: &LinkTable) -> CopiedTable {
    CopiedTable::new(&link.table, 2, &[(&link.first.column, "Long"), (&link.second.column, "Long")])
}

impl CopiedTable {
    fn new(table: &str, key: usize, columns: &[(&str, &str)]) -> CopiedTable {
        let column = |(name, scalar): &(&str, &str)| CopiedColumn {
            name: (*name).to_owned(),
            value_type: CopiedType::Stored(StoredType::Scalar((*scalar).to_owned())),
        };
        CopiedTable {
            table: table.to_owned(),
            columns: columns.iter().map(column).collect(),
            key_columns: key,
        }
    }
}

/// What the rows of a table come to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableDigest {
    pub table: String,
    pub rows: u64,
    /// Of every value, in the order of the key.
    pub hash: String,
}

/// A sum in the making.
pub struct DigestBuilder {
    table: String,
    rows: u64,
    hash: Xxh3,
    /// Which columns are the same whatever case they are written in.
    caseless: Vec<bool>,
}

impl DigestBuilder {
    pub fn new(section: &CopiedTable) -> DigestBuilder {
        let is_uuid = |column: &CopiedColumn| {
            column.value_type == CopiedType::Stored(StoredType::Scalar("UUID".to_owned()))
        };
        let caseless = section.columns.iter().map(is_uuid).collect();
        DigestBuilder { table: section.table.clone(), rows: 0, hash: Xxh3::new(), caseless }
    }

    pub fn add_row(&mut self, row: &[CopiedValue]) {
        self.rows += 1;
        let DigestBuilder { hash, caseless, .. } = self;
        for (value, caseless) in row.iter().zip(caseless) {
            match value {
                CopiedValue::Null => hash_value(hash, 0, &[]),
                CopiedValue::Int(number) => hash_value(hash, 1, &number.to_le_bytes()),
                // SQLite keeps a zero without its sign.
                CopiedValue::Real(number) => hash_value(hash, 2, &(number + 0.0).to_bits().to_le_bytes()),
                CopiedValue::Text(text) if *caseless => hash_value(hash, 3, text.to_lowercase().as_bytes()),
                CopiedValue::Text(text) => hash_value(hash, 3, text.as_bytes()),
                CopiedValue::Bytes(bytes) => hash_value(hash, 4, bytes),
            }
        }
    }

    pub fn finish(self) -> TableDigest {
        TableDigest { table: self.table, rows: self.rows, hash: format!("{:032x}", self.hash.digest128()) }
    }
}

/// With its kind and its length, so that no two rows look alike.
fn hash_value(hash: &mut Xxh3, kind: u8, bytes: &[u8]) {
    hash.update(&[kind]);
    hash.update(&(bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}
