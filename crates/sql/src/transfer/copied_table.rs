//! The tables of a copy with their columns, the values in their rows, and digests of tables.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::accounts::ACCOUNT_TABLES;
use crate::api_keys::API_KEYS_TABLE;
use crate::audit::AUDIT_TABLE;
use crate::migrate::{LinkTable, StoredKey, StoredModel, StoredTable, StoredType, quote_name};

/// A value that is copied.
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
    pub name: String,
    pub columns: Vec<CopiedColumn>,
    /// Number of columns, from the first, that are the key.
    pub key_columns: usize,
}

#[derive(Debug, Clone)]
pub struct CopiedColumn {
    pub name: String,
    pub value_type: CopiedType,
}

#[derive(Debug, Clone, PartialEq)]
pub enum CopiedType {
    /// The type of a record's field.
    Stored(StoredType),
    Bytes,
}

/// The table of the change log.
pub const CHANGES_TABLE: &str = "trefoil_changes";

/// Which tables of credentials, and of the audit, a store has: each is made when it is first needed.
#[derive(Debug, Clone, Copy, Default)]
pub struct CredentialTables {
    pub api_keys: bool,
    /// Passwords, sessions, links and identities.
    pub accounts: bool,
    pub audit: bool,
}

/// All tables of a store except `trefoil_meta`, referenced tables first.
pub fn copied_tables(stored_model: &StoredModel, credentials: CredentialTables) -> Vec<CopiedTable> {
    let records = stored_model.tables.iter().map(record_table);
    let links = stored_model.links.iter().map(link_table);
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
        .chain(credentials.api_keys.then(api_keys_table))
        .chain(credentials.accounts.then(account_tables).into_iter().flatten())
        .chain(credentials.audit.then(audit_table))
        .collect()
}

fn api_keys_table() -> CopiedTable {
    let (int, text) = ("Long", "String");
    CopiedTable::new(
        API_KEYS_TABLE,
        1,
        &[
            ("hash", text),
            ("name", text),
            ("roles", text),
            ("account_type", text),
            ("account", text),
            ("expires", int),
            ("networks", text),
            ("created", int),
            ("used", text),
        ],
    )
}

fn audit_table() -> CopiedTable {
    let (int, text) = ("Long", "String");
    let subject = [("type", text), ("record", text), ("version", int), ("fields", text)];
    let columns = [
        &[
            ("at", int),
            ("number", int),
            ("actor", text),
            ("address", text),
            ("request", text),
            ("action", text),
        ],
        &subject[..],
        &[("name", text), ("count", int)],
    ];
    CopiedTable::new(AUDIT_TABLE, 2, &columns.concat())
}

fn account_tables() -> [CopiedTable; 4] {
    let (int, text) = ("Long", "String");
    let [passwords, sessions, links, identities] = ACCOUNT_TABLES;
    let [account_type, account] = [("account_type", text), ("account", text)];
    let session = [account_type, account, ("roles", text), ("created", int), ("seen", int), ("expires", int)];
    let session = [&[("hash", text)], &session[..], &[("address", text), ("browser", text)]].concat();
    [
        CopiedTable::new(passwords, 2, &[account_type, account, ("hash", text), ("networks", text)]),
        CopiedTable::new(sessions, 1, &session),
        CopiedTable::new(links, 1, &[("hash", text), account_type, account, ("expires", int)]),
        CopiedTable::new(
            identities,
            2,
            &[("issuer", text), ("subject", text), account_type, account, ("linked", int)],
        ),
    ]
}

/// A table of changes; the key is their number or, before they have one, their sequence.
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
    let mut copied = CopiedTable::new(&table.table, 1, &[("_version", "Long")]);
    copied.columns.insert(0, key_column("id", table.key));
    copied.columns.extend(table.columns.iter().map(|column| CopiedColumn {
        name: column.column.clone(),
        value_type: CopiedType::Stored(column.form.clone()),
    }));
    copied
}

fn link_table(link: &LinkTable) -> CopiedTable {
    let columns = [&link.first, &link.second].map(|side| key_column(&side.column, side.key));
    CopiedTable { name: link.table.clone(), columns: columns.into(), key_columns: 2 }
}

fn key_column(name: &str, key: StoredKey) -> CopiedColumn {
    CopiedColumn { name: name.to_owned(), value_type: CopiedType::Stored(key.column_form()) }
}

impl CopiedTable {
    fn new(name: &str, key_columns: usize, columns: &[(&str, &str)]) -> CopiedTable {
        let column = |(column, scalar): &(&str, &str)| CopiedColumn {
            name: (*column).to_owned(),
            value_type: CopiedType::Stored(StoredType::Scalar((*scalar).to_owned())),
        };
        CopiedTable { name: name.to_owned(), columns: columns.iter().map(column).collect(), key_columns }
    }

    /// The query for a page of rows. It is the same on both databases, which compare row values column by column.
    pub fn page_sql(&self, columns: &[String], has_after: bool, limit: usize) -> String {
        let keys: Vec<String> =
            self.columns[..self.key_columns].iter().map(|column| quote_name(&column.name)).collect();
        let marks: Vec<String> = (1..=self.key_columns).map(|number| format!("${number}")).collect();
        let keys = keys.join(", ");
        let condition =
            if has_after { format!("WHERE ({keys}) > ({}) ", marks.join(", ")) } else { String::new() };
        let name = quote_name(&self.name);
        format!("SELECT {} FROM {name} {condition}ORDER BY {keys} LIMIT {limit}", columns.join(", "))
    }
}

/// Number and hash of the rows of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableDigest {
    pub table: String,
    pub rows: u64,
    /// Hash of all values, in the order of the key.
    pub hash: String,
}

/// Computes a [`TableDigest`] row by row.
pub struct DigestBuilder {
    table: String,
    rows: u64,
    hash: Xxh3,
    /// For each column, whether case is ignored.
    caseless: Vec<bool>,
}

impl DigestBuilder {
    pub fn new(table: &CopiedTable) -> DigestBuilder {
        let is_uuid = |column: &CopiedColumn| {
            column.value_type == CopiedType::Stored(StoredType::Scalar("UUID".to_owned()))
        };
        let caseless = table.columns.iter().map(is_uuid).collect();
        DigestBuilder { table: table.name.clone(), rows: 0, hash: Xxh3::new(), caseless }
    }

    pub fn add_row(&mut self, row: &[CopiedValue]) {
        self.rows += 1;
        let DigestBuilder { hash, caseless, .. } = self;
        for (value, caseless) in row.iter().zip(caseless) {
            match value {
                CopiedValue::Null => hash_value(hash, 0, &[]),
                CopiedValue::Int(number) => hash_value(hash, 1, &number.to_le_bytes()),
                // SQLite stores zero without its sign.
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

/// Hashes a value with its kind and length, so that different rows never have the same bytes.
fn hash_value(hash: &mut Xxh3, kind: u8, bytes: &[u8]) {
    hash.update(&[kind]);
    hash.update(&(bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}
