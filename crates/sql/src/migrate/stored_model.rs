//! The tables of a [`Model`] as plain data, recorded in the store so that the next start can find what changed.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use trefoil_engine::ChangeKind;
use trefoil_model::values::coerce;
use trefoil_model::{
    EmbeddedType, Field, FieldId, FieldKind, KeyForm, Link, Model, OnDelete, RecordType, RecordTypeId,
    StoredValue, ValueSource, ValueType,
};

/// The store format that this version writes.
pub const STORE_FORMAT: u32 = 1;

/// The parts of a model that affect the database.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StoredModel {
    pub tables: Vec<StoredTable>,
    pub links: Vec<LinkTable>,
    /// The values of every enum.
    pub enums: BTreeMap<String, Vec<String>>,
    /// The fields of every embedded type.
    pub embedded: BTreeMap<String, Vec<EmbeddedField>>,
    /// The store was created for clients that get global ids. It stays as it was created.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub global_ids: bool,
}

/// The table of one record type. Every table also has `id` and `_version`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredTable {
    /// The name of the record type.
    pub name: String,
    pub table: String,
    #[serde(default, skip_serializing_if = "StoredKey::is_counted")]
    pub key: StoredKey,
    pub columns: Vec<StoredColumn>,
    pub indexes: Vec<StoredIndex>,
    /// The columns of the full-text index; without any there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub search: Vec<String>,
    pub logged: LoggedChanges,
    /// Its records are accounts, which credentials belong to.
    #[serde(default, skip_serializing_if = "is_false")]
    pub has_accounts: bool,
    /// Its writes may be noted in the audit.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_audited: bool,
    /// From `@renamedFrom`; not recorded, since it does not describe the table.
    #[serde(skip)]
    pub renamed_from: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredColumn {
    pub field: String,
    pub column: String,
    pub form: StoredType,
    pub required: bool,
    pub default: ColumnDefault,
    #[serde(skip)]
    pub renamed_from: Option<String>,
}

/// The type of a column. `Display` writes it for people: `Decimal`, `enum OrderStatus`, `[String!]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StoredType {
    Scalar(String),
    Enum(String),
    Embedded(String),
    #[serde(rename_all = "camelCase")]
    List {
        item: Box<StoredType>,
        required: bool,
    },
    #[serde(rename_all = "camelCase")]
    Reference {
        /// The record type.
        to: String,
        on_delete: DeleteAction,
        /// That of the record type.
        #[serde(default, skip_serializing_if = "StoredKey::is_counted")]
        key: StoredKey,
    },
}

/// The ids in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StoredKey {
    /// Integers that the database counts up.
    #[default]
    Counted,
    Uuid,
    Text,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DeleteAction {
    Refuse,
    Cascade,
    SetNull,
}

/// The value of a column in a new row that does not set it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ColumnDefault {
    #[default]
    Nothing,
    Int(i64),
    Real(f64),
    Text(String),
    /// The time of the record's creation.
    Created,
    /// The time of the record's last change.
    Updated,
}

/// One field of an embedded type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EmbeddedField {
    pub name: String,
    pub form: StoredType,
    pub required: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredIndex {
    pub name: String,
    pub columns: Vec<String>,
    pub unique: bool,
    /// Texts in the last column that differ only in case are equal.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ignores_case: bool,
}

// Serde passes a reference.
#[expect(clippy::trivially_copy_pass_by_ref)]
fn is_false(value: &bool) -> bool {
    !*value
}

/// The pairs of a many-to-many relation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkTable {
    pub table: String,
    /// The side whose type comes first in the schema.
    pub first: LinkSide,
    pub second: LinkSide,
    /// The index that finds pairs by their second side.
    pub index: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkSide {
    /// The record type that the column refers to.
    pub to: String,
    /// The field of that type that shows the other side, if it has one.
    pub field: Option<String>,
    pub column: String,
    #[serde(default, skip_serializing_if = "StoredKey::is_counted")]
    pub key: StoredKey,
    #[serde(skip)]
    pub renamed_from: Option<String>,
}

/// The kinds of changes to a record type that are written to the change log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LoggedChanges {
    pub created: bool,
    pub updated: bool,
    pub deleted: bool,
    /// The columns that an update changed are logged, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed_columns: bool,
}

impl StoredModel {
    pub fn from_model(model: &Model, logged: &[(RecordTypeId, ChangeKind)]) -> Self {
        let mut names = UsedNames::default();
        let mut links = link_tables(model);
        for table in
            model.records.iter().map(|record| &record.table).chain(links.iter().map(|link| &link.table))
        {
            names.take_name(table.clone());
        }
        for link in &mut links {
            link.index = names.take_name(format!("{}_{}_index", link.table, link.second.column));
        }
        let account = model.access.as_ref().and_then(|access| access.account.as_ref());
        let login_of =
            |record| account.filter(|account| account.record == record).map(|account| account.login);
        let tables = model.records.iter().enumerate().map(|(position, record)| StoredTable {
            name: record.name.clone(),
            table: record.table.clone(),
            key: StoredKey::of(record),
            columns: stored_columns(model, record),
            indexes: stored_indexes(record, login_of(RecordTypeId(position)), &mut names),
            search: record.search_fields().map(|field| field.column.clone()).collect(),
            logged: LoggedChanges::for_record(model, RecordTypeId(position), logged),
            is_audited: model.access.is_some(),
            has_accounts: account.is_some_and(|account| account.record == RecordTypeId(position)),
            renamed_from: record.renamed_from.clone(),
        });
        StoredModel {
            tables: tables.collect(),
            links,
            enums: model.enums.iter().map(|(name, found)| (name.clone(), found.values.clone())).collect(),
            embedded: model
                .embedded
                .iter()
                .map(|(name, found)| (name.clone(), embedded_fields(found)))
                .collect(),
            global_ids: model.global_ids,
        }
    }

    pub fn table(&self, name: &str) -> Option<&StoredTable> {
        self.tables.iter().find(|table| table.name == name)
    }

    pub fn index_names(&self) -> impl Iterator<Item = &str> {
        let records = self.tables.iter().flat_map(|table| &table.indexes).map(|index| index.name.as_str());
        records.chain(self.links.iter().map(|link| link.index.as_str()))
    }

    /// The names of all tables, those of links too.
    pub fn table_names(&self) -> impl Iterator<Item = &str> {
        let records = self.tables.iter().map(|table| table.table.as_str());
        records.chain(self.links.iter().map(|link| link.table.as_str()))
    }
}

impl StoredKey {
    fn of(record: &RecordType) -> StoredKey {
        match record.key_form() {
            KeyForm::Digits | KeyForm::Number => StoredKey::Counted,
            KeyForm::Uuid => StoredKey::Uuid,
            KeyForm::Text => StoredKey::Text,
        }
    }

    // Serde passes a reference.
    #[expect(clippy::trivially_copy_pass_by_ref)]
    fn is_counted(&self) -> bool {
        *self == StoredKey::Counted
    }

    /// The type of a column with such ids.
    pub fn column_form(self) -> StoredType {
        let scalar = match self {
            StoredKey::Counted => "Long",
            StoredKey::Uuid => "UUID",
            StoredKey::Text => "String",
        };
        StoredType::Scalar(scalar.to_owned())
    }
}

impl fmt::Display for StoredKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StoredKey::Counted => "counted integers",
            StoredKey::Uuid => "UUIDs",
            StoredKey::Text => "texts",
        })
    }
}

impl StoredTable {
    pub fn column_of_field(&self, name: &str) -> Option<&StoredColumn> {
        self.columns.iter().find(|column| column.field == name)
    }

    pub fn column(&self, name: &str) -> Option<&StoredColumn> {
        self.columns.iter().find(|column| column.column == name)
    }
}

impl LoggedChanges {
    fn for_record(model: &Model, record: RecordTypeId, logged: &[(RecordTypeId, ChangeKind)]) -> Self {
        let is_logged = |kind| logged.contains(&(record, kind));
        // Of an update whose fields are all hidden from an actor, they are told nothing.
        let needs_columns = model.tells_changed_fields(record)
            || model.record(record).fields.iter().any(|field| field.may_be_hidden);
        LoggedChanges {
            created: is_logged(ChangeKind::Created),
            updated: is_logged(ChangeKind::Updated),
            deleted: is_logged(ChangeKind::Deleted),
            changed_columns: is_logged(ChangeKind::Updated) && needs_columns,
        }
    }
}

fn stored_columns(model: &Model, record: &RecordType) -> Vec<StoredColumn> {
    let columns = record.fields.iter().filter_map(|field| {
        let form = stored_type(model, &field.kind)?;
        (field.is_stored() && field.value_source != ValueSource::RecordVersion).then(|| StoredColumn {
            field: field.name.clone(),
            column: field.column.clone(),
            form,
            required: field.required,
            default: column_default(model, field),
            renamed_from: field.renamed_from.clone(),
        })
    });
    columns.collect()
}

fn embedded_fields(embedded: &EmbeddedType) -> Vec<EmbeddedField> {
    let fields = embedded.stored_fields().filter_map(|(field, value_type)| {
        let form = value_form(value_type)?;
        Some(EmbeddedField { name: field.name.clone(), form, required: field.required })
    });
    fields.collect()
}

fn stored_type(model: &Model, kind: &FieldKind) -> Option<StoredType> {
    let Some(reference) = kind.reference() else { return kind.own_value().and_then(value_form) };
    let on_delete = match reference.on_delete {
        OnDelete::Refuse => DeleteAction::Refuse,
        OnDelete::Cascade => DeleteAction::Cascade,
        OnDelete::SetNull => DeleteAction::SetNull,
    };
    let target = model.record(reference.target);
    Some(StoredType::Reference { to: target.name.clone(), on_delete, key: StoredKey::of(target) })
}

fn value_form(value_type: &ValueType) -> Option<StoredType> {
    match value_type {
        // A reference names its target; the id of a record is no column of the stored model.
        ValueType::Key(_) => None,
        ValueType::Scalar(scalar) => Some(StoredType::Scalar(scalar.column_scalar().name().to_owned())),
        ValueType::Enum(name) => Some(StoredType::Enum(name.clone())),
        ValueType::Embedded(name) => Some(StoredType::Embedded(name.clone())),
        ValueType::List(item) => {
            let inner = Box::new(value_form(&item.value_type)?);
            Some(StoredType::List { item: inner, required: item.required })
        }
    }
}

fn column_default(model: &Model, field: &Field) -> ColumnDefault {
    match field.value_source {
        ValueSource::CreationTime => return ColumnDefault::Created,
        ValueSource::UpdateTime => return ColumnDefault::Updated,
        ValueSource::Client
        | ValueSource::RecordVersion
        | ValueSource::CreatingAccount
        | ValueSource::UpdatingAccount => {}
    }
    match field.default.as_ref().map(|default| coerce::coerce_field(model, field, default)) {
        // A default that breaks a rule is an error in the schema, which its parser reports.
        None | Some(Err(_) | Ok(StoredValue::Null)) => ColumnDefault::Nothing,
        Some(Ok(StoredValue::Int(number))) => ColumnDefault::Int(number),
        Some(Ok(StoredValue::Real(number))) => ColumnDefault::Real(number),
        Some(Ok(StoredValue::Text(text))) => ColumnDefault::Text(text),
    }
}

/// The indexes of `@unique`, then of references, then of `@index`, without duplicates of the same columns; and the one that
/// finds logins in any case.
fn stored_indexes(record: &RecordType, login: Option<FieldId>, names: &mut UsedNames) -> Vec<StoredIndex> {
    let column = |field: &FieldId| record.field(*field).column.clone();
    let stored = || record.fields.iter().filter(|field| field.is_stored());
    let unique = stored().filter(|field| field.is_distinct() && !field.kind.is_id());
    let references = stored().filter(|field| field.kind.is_reference());
    let columns_of = |field: &Field| {
        let within = field.unique_within.map(|within| record.field(within).column.clone());
        within.into_iter().chain([field.column.clone()]).collect::<Vec<String>>()
    };
    let required = unique
        .map(|field| (columns_of(field), true))
        .chain(references.map(|field| (vec![field.column.clone()], false)))
        .chain(record.indexes.iter().map(|fields| (fields.iter().map(column).collect(), false)));
    let ignoring_case: Vec<Vec<String>> =
        stored().filter(|field| field.ignores_case).map(columns_of).collect();
    let mut list: Vec<StoredIndex> = Vec::new();
    for (columns, unique) in required {
        if list.iter().all(|index| index.columns != columns) {
            let suffix = if unique { "unique" } else { "index" };
            let name = names.take_name(format!("{}_{}_{suffix}", record.table, columns.join("_")));
            let ignores_case = unique && ignoring_case.contains(&columns);
            list.push(StoredIndex { name, columns, unique, ignores_case });
        }
    }
    if let Some(login) = login.filter(|login| !record.field(*login).ignores_case) {
        let name = names.take_name(format!("{}_{}_login", record.table, column(&login)));
        list.push(StoredIndex { name, columns: vec![column(&login)], unique: false, ignores_case: true });
    }
    list
}

/// All link tables, each once even if fields on both sides show it.
fn link_tables(model: &Model) -> Vec<LinkTable> {
    let mut list: Vec<LinkTable> = Vec::new();
    for record in &model.records {
        for field in &record.fields {
            let Some(Link { target, table, own_column, other_column, .. }) = field.kind.link() else {
                continue;
            };
            let is_own_side = |side: &LinkSide| side.to == record.name && side.column == *own_column;
            match list.iter_mut().find(|link| link.table == *table) {
                Some(link) => {
                    let side = if is_own_side(&link.first) { &mut link.first } else { &mut link.second };
                    side.field = Some(field.name.clone());
                    side.renamed_from = field.renamed_from.clone();
                }
                None => list.push(LinkTable {
                    table: table.clone(),
                    first: LinkSide {
                        to: record.name.clone(),
                        field: Some(field.name.clone()),
                        column: own_column.clone(),
                        key: StoredKey::of(record),
                        renamed_from: field.renamed_from.clone(),
                    },
                    second: LinkSide {
                        to: model.record(*target).name.clone(),
                        field: None,
                        column: other_column.clone(),
                        key: StoredKey::of(model.record(*target)),
                        renamed_from: None,
                    },
                    index: String::new(),
                }),
            }
        }
    }
    list
}

/// Names in use. Tables and indexes share one namespace, and case does not distinguish names.
#[derive(Default)]
struct UsedNames(HashSet<String>);

impl UsedNames {
    /// Reserves `preferred`, or else the name with a number: both `order_line(no)` and `order(line_no)` prefer
    /// `order_line_no_index`.
    fn take_name(&mut self, preferred: String) -> String {
        let numbered = (2..).map(|number| format!("{preferred}_{number}"));
        let mut candidates = std::iter::once(preferred.clone()).chain(numbered);
        candidates.find(|name| self.0.insert(name.to_lowercase())).expect("numbers do not run out")
    }
}

impl StoredType {
    /// The embedded type of a value or of the items of a list.
    pub fn embedded_name(&self) -> Option<&str> {
        match self {
            StoredType::Embedded(name) => Some(name),
            StoredType::List { item, .. } => item.embedded_name(),
            StoredType::Scalar(_) | StoredType::Enum(_) | StoredType::Reference { .. } => None,
        }
    }
}

impl fmt::Display for StoredType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoredType::Scalar(name) | StoredType::Embedded(name) => f.write_str(name),
            StoredType::Enum(name) => write!(f, "enum {name}"),
            StoredType::List { item, required } => write!(f, "[{item}{}]", if *required { "!" } else { "" }),
            StoredType::Reference { to, .. } => f.write_str(to),
        }
    }
}
