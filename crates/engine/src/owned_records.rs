//! Records as owned values, for embedding programs and for fields that Rust code resolves.

use std::sync::Arc;

use trefoil_model::error::{Error, Result};
use trefoil_model::{CellValue, FieldId, Model, RecordId, RecordType, RecordTypeId, StoredValue, Value};

use crate::arguments::fields_from_object;
use crate::engine::{Engine, EngineRequest};
use crate::operation::{AggregateQuery, Listing, MissingFields, Operation, Outcome, Selection};
use crate::plan::PreparedSelection;
use crate::row::{Row, RowSink};

/// A row that outlives the query that read it.
#[derive(Debug, Clone, Default)]
pub struct OwnedRow {
    pub cells: Vec<StoredValue>,
    pub children: Vec<Vec<OwnedRow>>,
}

impl OwnedRow {
    /// Copies a row with its children, and `extra` cells after the selected columns, such as those of cursors.
    pub fn from_row(row: &dyn Row, selection: &Selection, extra: usize) -> OwnedRow {
        let cells = (0..selection.columns.len() + extra).map(|i| row.cell(i).to_stored()).collect();
        let children = selection.children.iter().enumerate().map(|(i, child)| {
            let mut rows = Vec::new();
            let extra = child.aggregate.as_ref().map_or(0, AggregateQuery::cell_count);
            let extra = extra + child.listing.cursor_cells();
            row.each_child(i, &mut |row| rows.push(OwnedRow::from_row(row, &child.selection, extra)));
            rows
        });
        OwnedRow { cells, children: children.collect() }
    }
}

impl Row for OwnedRow {
    fn cell(&self, column: usize) -> CellValue<'_> {
        self.cells[column].as_cell()
    }

    fn each_child(&self, child: usize, visit: &mut dyn FnMut(&dyn Row)) {
        self.children[child].iter().for_each(|row| visit(row));
    }
}

/// A sink that collects the rows of one plan.
pub struct RowCollector {
    pub selection: Arc<PreparedSelection>,
    pub rows: Vec<OwnedRow>,
    pub outcome: Option<Result<Outcome>>,
}

impl RowCollector {
    fn new(selection: Arc<PreparedSelection>) -> RowCollector {
        RowCollector { selection, rows: Vec::new(), outcome: None }
    }
}

impl RowSink for RowCollector {
    fn row(&mut self, _plan: usize, row: &dyn Row) {
        self.rows.push(OwnedRow::from_row(
            row,
            &self.selection,
            usize::from(self.selection.includes_version),
        ));
    }

    fn finish_plan(&mut self, _plan: usize, outcome: Result<Outcome>) {
        self.outcome = Some(outcome);
    }

    fn bytes_to_replay(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn reset(&mut self) {
        self.rows.clear();
        self.outcome = None;
    }
}

impl Engine {
    /// Reads a record with its stored fields by name.
    pub async fn get(&self, type_name: &str, id: impl Into<RecordId>) -> Result<Option<Value>> {
        let (record, selection) = self.select_all_stored(type_name)?;
        let rows = self
            .collect(Operation::Get { record, id: id.into(), selection: selection.clone() }, selection)
            .await?;
        Ok(rows.rows.first().map(|row| row_to_object(self.model().record(record), &rows.selection, row)))
    }

    /// Reads all records of a listing.
    pub async fn list(&self, type_name: &str, listing: Listing) -> Result<Vec<Value>> {
        let (record, selection) = self.select_all_stored(type_name)?;
        let operation = Operation::List { record, listing, selection: selection.clone() };
        let rows = self.collect(operation, selection).await?;
        let record_type = self.model().record(record);
        Ok(rows.rows.iter().map(|row| row_to_object(record_type, &rows.selection, row)).collect())
    }

    /// Creates a record from an object of fields and returns it as stored.
    pub async fn create(&self, type_name: &str, fields: Value) -> Result<Value> {
        let (record, selection) = self.select_all_stored(type_name)?;
        let (id, fields) = fields_from_object(self.model(), self.model().record(record), fields)?;
        let (filled_fields, selected) = (Vec::new(), selection.clone());
        let operation = Operation::Create { record, id, fields, filled_fields, selection: selected };
        self.run_write(record, type_name, operation, selection).await
    }

    /// Creates a record and returns its id, which is told also where the actor may not read the record.
    pub async fn create_for_id(&self, type_name: &str, fields: Value) -> Result<RecordId> {
        let (record, _) = self.select_all_stored(type_name)?;
        let record_type = self.model().record(record);
        let selection = PreparedSelection::new(Selection::new(vec![record_type.id_field()], Vec::new()));
        let (id, fields) = fields_from_object(self.model(), record_type, fields)?;
        let (filled_fields, selected) = (Vec::new(), selection.clone());
        let operation = Operation::Create { record, id, fields, filled_fields, selection: selected };
        match self.collect(operation, selection).await?.outcome {
            Some(Ok(Outcome::Created { id, .. })) => Ok(id),
            _ => Err(Error::internal("a record was created without an outcome")),
        }
    }

    /// Changes the given fields and returns the record.
    pub async fn update(&self, type_name: &str, id: impl Into<RecordId>, fields: Value) -> Result<Value> {
        let (record, selection) = self.select_all_stored(type_name)?;
        let (_, fields) = fields_from_object(self.model(), self.model().record(record), fields)?;
        let operation = Operation::Update {
            record,
            id: id.into(),
            fields,
            filled_fields: Vec::new(),
            missing_fields: MissingFields::Keep,
            expected_version: None,
            selection: selection.clone(),
        };
        self.run_write(record, type_name, operation, selection).await
    }

    /// Deletes a record and returns it as it was.
    pub async fn delete(&self, type_name: &str, id: impl Into<RecordId>) -> Result<Value> {
        let (record, selection) = self.select_all_stored(type_name)?;
        let operation =
            Operation::Delete { record, id: id.into(), expected_version: None, selection: selection.clone() };
        self.run_write(record, type_name, operation, selection).await
    }

    /// Runs one operation and collects its rows.
    pub async fn collect(
        &self,
        operation: Operation,
        selection: Arc<PreparedSelection>,
    ) -> Result<RowCollector> {
        let sink = Box::new(RowCollector::new(selection));
        let finished = self.run(vec![Ok(operation)], EngineRequest::new(sink)).await?;
        let mut collected = finished.into_sink::<RowCollector>()?;
        match collected.outcome.take() {
            Some(Err(error)) => Err(error),
            outcome => Ok(RowCollector { outcome, ..*collected }),
        }
    }

    async fn run_write(
        &self,
        record: RecordTypeId,
        type_name: &str,
        operation: Operation,
        selection: Arc<PreparedSelection>,
    ) -> Result<Value> {
        let rows = self.collect(operation, selection).await?;
        let row = rows.rows.first().ok_or_else(|| Error::not_found(type_name))?;
        Ok(row_to_object(self.model().record(record), &rows.selection, row))
    }

    fn select_all_stored(&self, type_name: &str) -> Result<(RecordTypeId, Arc<PreparedSelection>)> {
        let record = self
            .model()
            .find_record(type_name)
            .ok_or_else(|| Error::not_found(format!("record type `{type_name}`")))?;
        Ok((record, PreparedSelection::new(stored_fields_selection(self.model(), record))))
    }
}

/// Selects every field that has a column.
fn stored_fields_selection(model: &Model, record: RecordTypeId) -> Selection {
    let fields = model.record(record).fields.iter().enumerate();
    let columns = fields.filter(|(_, field)| field.is_stored()).map(|(i, _)| FieldId(i)).collect();
    Selection::new(columns, Vec::new())
}

/// The row as an object with the fields by input name: a reference is `userId`.
pub fn row_to_object(record: &RecordType, selection: &Selection, row: &dyn Row) -> Value {
    let fields = selection.columns.iter().enumerate().map(|(i, id)| {
        let field = record.field(*id);
        (field.input_name.clone(), field.cell_value(row.cell(i)))
    });
    Value::Object(fields.collect())
}
