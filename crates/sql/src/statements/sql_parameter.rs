//! The parameters of statements.

use trefoil_model::{CellValue, RecordId, StoredValue};

/// A parameter of a statement.
#[derive(Debug)]
pub enum SqlParameter<'a> {
    Cell(CellValue<'a>),
    Owned(StoredValue),
    /// A list in one parameter: a JSON array on SQLite, an array on PostgreSQL.
    List(&'a [StoredValue]),
    /// Ids of records, in one parameter like [`SqlParameter::List`].
    Keys(Vec<CellValue<'a>>),
}

impl SqlParameter<'_> {
    pub fn integer(number: i64) -> SqlParameter<'static> {
        SqlParameter::Cell(CellValue::Int(number))
    }
}

impl<'a> SqlParameter<'a> {
    pub fn id(id: &'a RecordId) -> SqlParameter<'a> {
        SqlParameter::Cell(id.as_cell())
    }

    pub fn ids(ids: &'a [RecordId]) -> SqlParameter<'a> {
        SqlParameter::Keys(ids.iter().map(RecordId::as_cell).collect())
    }
}
