//! The shape in which a [`Model`] is stored, as plain data: kept in the store itself, so that the next
//! start can tell what has changed since.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use trefoil_engine::Deed;
use trefoil_model::values::coerce;
use trefoil_model::{
    EmbeddedType, Field, FieldId, FilledBy, Item, Kind, Model, OnDelete, RecordType, Stored, TypeId,
};

/// Everything about a model that shows in the database.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StoredModel {
    pub tables: Vec<Table>,
    pub links: Vec<LinkTable>,
    /// The values of every enum.
    pub enums: BTreeMap<String, Vec<String>>,
    /// The fields of every embedded type.
    pub embedded: BTreeMap<String, Vec<Part>>,
}

/// The table of one record type; `id` and `_version` go without saying.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// The record type.
    pub name: String,
    pub table: String,
    pub columns: Vec<Column>,
    pub indexes: Vec<Index>,
    pub logged: Logged,
    /// What the schema says about the past is no part of the shape.
    #[serde(skip)]
    pub renamed_from: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    pub field: String,
    pub column: String,
    pub form: Form,
    pub required: bool,
    pub default: Fill,
    #[serde(skip)]
    pub renamed_from: Option<String>,
}

/// What a column holds, spelled by `Display` as a person would: `Decimal`, `enum OrderStatus`, `[String!]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Form {
    Scalar(String),
    Enum(String),
    Embedded(String),
    #[serde(rename_all = "camelCase")]
    List {
        item: Box<Form>,
        required: bool,
    },
    #[serde(rename_all = "camelCase")]
    Reference {
        /// The record type.
        to: String,
        on_delete: Action,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    Refuse,
    Cascade,
    SetNull,
}

/// What a row gets that says nothing about a column.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Fill {
    #[default]
    Nothing,
    Int(i64),
    Real(f64),
    Text(String),
    /// The time of its creation.
    Created,
    /// The time of its last change.
    Updated,
}

/// One field of an embedded type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    pub name: String,
    pub form: Form,
    pub required: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    pub name: String,
    pub columns: Vec<String>,
    pub unique: bool,
}

/// The pairs of a many-to-many relation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkTable {
    pub table: String,
    /// The side whose type stands first in the schema.
    pub first: LinkSide,
    pub second: LinkSide,
    /// The index that finds pairs by their second side.
    pub index: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkSide {
    /// The record type that the column refers to …
    pub to: String,
    /// … and the field of that type which shows the other side, if it has one.
    pub field: Option<String>,
    pub column: String,
    #[serde(skip)]
    pub renamed_from: Option<String>,
}

/// Which deeds on a type are written to the change log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Logged {
    pub created: bool,
    pub updated: bool,
    pub deleted: bool,
}

impl StoredModel {
    pub fn of(model: &Model, logged: &[(TypeId, Deed)]) -> Self {
        let mut names = Names::default();
        let mut links = links(model);
        for table in
            model.records.iter().map(|record| &record.table).chain(links.iter().map(|link| &link.table))
        {
            names.take(table.clone());
        }
        for link in &mut links {
            link.index = names.take(format!("{}_{}_index", link.table, link.second.column));
        }
        let tables = model.records.iter().enumerate().map(|(position, record)| Table {
            name: record.name.clone(),
            table: record.table.clone(),
            columns: columns(model, record),
            indexes: indexes(record, &mut names),
            logged: Logged::of(TypeId(position), logged),
            renamed_from: record.renamed_from.clone(),
        });
        StoredModel {
            tables: tables.collect(),
            links,
            enums: model.enums.iter().map(|(name, found)| (name.clone(), found.values.clone())).collect(),
            embedded: model
                .embedded
                .iter()
                .map(|(name, found)| (name.clone(), parts(model, found)))
                .collect(),
        }
    }

    pub fn table(&self, name: &str) -> Option<&Table> {
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

impl Table {
    pub fn field(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.field == name)
    }

    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.column == name)
    }
}

impl Logged {
    fn of(record: TypeId, logged: &[(TypeId, Deed)]) -> Self {
        let has = |deed| logged.contains(&(record, deed));
        Logged { created: has(Deed::Created), updated: has(Deed::Updated), deleted: has(Deed::Deleted) }
    }
}

fn columns(model: &Model, record: &RecordType) -> Vec<Column> {
    let kept = record.fields.iter().filter_map(|field| {
        let form = form(model, &field.kind)?;
        (field.is_stored() && field.filled_by != FilledBy::Version).then(|| Column {
            field: field.name.clone(),
            column: field.column.clone(),
            form,
            required: field.required,
            default: fill(model, field),
            renamed_from: field.renamed_from.clone(),
        })
    });
    kept.collect()
}

fn parts(model: &Model, embedded: &EmbeddedType) -> Vec<Part> {
    let kept = embedded.fields.iter().filter_map(|field| {
        let form = form(model, &field.kind)?;
        Some(Part { name: field.name.clone(), form, required: field.required })
    });
    kept.collect()
}

fn form(model: &Model, kind: &Kind) -> Option<Form> {
    match kind {
        Kind::Id | Kind::Inverse { .. } | Kind::Link { .. } | Kind::Unstored => None,
        Kind::Scalar(scalar) => Some(Form::Scalar(scalar.name().to_owned())),
        Kind::Enum(name) => Some(Form::Enum(name.clone())),
        Kind::Embedded(name) => Some(Form::Embedded(name.clone())),
        Kind::List(item) => list_form(model, item),
        Kind::Reference { target, on_delete } => {
            let on_delete = match on_delete {
                OnDelete::Refuse => Action::Refuse,
                OnDelete::Cascade => Action::Cascade,
                OnDelete::SetNull => Action::SetNull,
            };
            Some(Form::Reference { to: model.record(*target).name.clone(), on_delete })
        }
    }
}

fn list_form(model: &Model, item: &Item) -> Option<Form> {
    Some(Form::List { item: Box::new(form(model, &item.kind)?), required: item.required })
}

fn fill(model: &Model, field: &Field) -> Fill {
    match field.filled_by {
        FilledBy::Creation => return Fill::Created,
        FilledBy::Update => return Fill::Updated,
        FilledBy::Client | FilledBy::Version => {}
    }
    match field.default.as_ref().map(|default| coerce::field(model, field, default)) {
        // A default that breaks a rule is a mistake of the schema, which `parse` reports.
        None | Some(Err(_) | Ok(Stored::Null)) => Fill::Nothing,
        Some(Ok(Stored::Int(number))) => Fill::Int(number),
        Some(Ok(Stored::Real(number))) => Fill::Real(number),
        Some(Ok(Stored::Text(text))) => Fill::Text(text),
    }
}

/// Those of `@unique`, then of references, then of `@index`; the same columns are never indexed twice.
fn indexes(record: &RecordType, names: &mut Names) -> Vec<Index> {
    let column = |field: &FieldId| record.field(*field).column.clone();
    let stored = || record.fields.iter().filter(|field| field.is_stored());
    let unique = stored().filter(|field| field.unique && field.kind != Kind::Id);
    let references = stored().filter(|field| matches!(field.kind, Kind::Reference { .. }));
    let wanted = unique
        .map(|field| (vec![field.column.clone()], true))
        .chain(references.map(|field| (vec![field.column.clone()], false)))
        .chain(record.indexes.iter().map(|fields| (fields.iter().map(column).collect(), false)));
    let mut list: Vec<Index> = Vec::new();
    for (columns, unique) in wanted {
        if list.iter().all(|index| index.columns != columns) {
            let suffix = if unique { "unique" } else { "index" };
            let name = names.take(format!("{}_{}_{suffix}", record.table, columns.join("_")));
            list.push(Index { name, columns, unique });
        }
    }
    list
}

/// Each link table once, though both of its sides may show it.
fn links(model: &Model) -> Vec<LinkTable> {
    let mut list: Vec<LinkTable> = Vec::new();
    for record in &model.records {
        for field in &record.fields {
            let Kind::Link { target, table, own_column, other_column } = &field.kind else { continue };
            let shown = |side: &LinkSide| side.to == record.name && side.column == *own_column;
            match list.iter_mut().find(|link| link.table == *table) {
                Some(link) => {
                    let side = if shown(&link.first) { &mut link.first } else { &mut link.second };
                    side.field = Some(field.name.clone());
                    side.renamed_from = field.renamed_from.clone();
                }
                None => list.push(LinkTable {
                    table: table.clone(),
                    first: LinkSide {
                        to: record.name.clone(),
                        field: Some(field.name.clone()),
                        column: own_column.clone(),
                        renamed_from: field.renamed_from.clone(),
                    },
                    second: LinkSide {
                        to: model.record(*target).name.clone(),
                        field: None,
                        column: other_column.clone(),
                        renamed_from: None,
                    },
                    index: String::new(),
                }),
            }
        }
    }
    list
}

/// Names in use. Tables and indexes share one space, and case does not tell names apart.
#[derive(Default)]
struct Names(HashSet<String>);

impl Names {
    /// `order_line_no_index` can be wanted by `order_line(no)` and by `order(line_no)`.
    fn take(&mut self, wanted: String) -> String {
        let numbered = (2..).map(|number| format!("{wanted}_{number}"));
        let mut candidates = std::iter::once(wanted.clone()).chain(numbered);
        candidates.find(|name| self.0.insert(name.to_lowercase())).expect("numbers do not run out")
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Form::Scalar(name) | Form::Embedded(name) => f.write_str(name),
            Form::Enum(name) => write!(f, "enum {name}"),
            Form::List { item, required } => write!(f, "[{item}{}]", if *required { "!" } else { "" }),
            Form::Reference { to, .. } => f.write_str(to),
        }
    }
}
