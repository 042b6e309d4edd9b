//! The changes of a batch as an actor sees them: those of records in sight, with the values that are shown.

use std::borrow::Cow;
use std::sync::Arc;

use trefoil_model::access::AccessVerdict;
use trefoil_model::error::{Error, Result};
use trefoil_model::{CellValue, Field, FieldId, RecordType, RecordTypeId, Scalar, StoredValue, ValueType};

use crate::access::AccessView;
use crate::changes::image_list::{ImageList, seen_columns};
use crate::changes::{CHANGED_COLUMNS, ChangeBatch, ChangeKind, RecordChange, image_cell};
use crate::engine::{Engine, EngineRequest};
use crate::operation::{Operation, Outcome};
use crate::row::{Row, RowSink};

impl Engine {
    /// The changes of records of this type, as the actor sees them.
    pub async fn seen_changes<'b>(
        &self,
        record: RecordTypeId,
        batch: &'b ChangeBatch,
    ) -> Result<Vec<Cow<'b, RecordChange>>> {
        let owner = self.model().record(record);
        let changes = batch.changes.iter().filter(|change| change.type_name == owner.name);
        let view = self.access_view().filter(|view| !sees_everything(view, owner, record));
        let Some(view) = view else { return Ok(changes.map(Cow::Borrowed).collect()) };
        let changes: Vec<&RecordChange> = changes.collect();
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let images = changes.iter().map(|change| change.image.clone()).collect();
        let json_columns =
            owner.fields.iter().filter(|field| is_json(field)).map(|field| field.column.clone());
        let json_columns = json_columns.collect();
        let operation = Operation::SeeImages { record, list: ImageList { images, json_columns } };
        let sink = Box::new(ImageSink { columns: seen_columns(owner), seen: Vec::new(), failure: None });
        let finished = self.at_present().run(vec![Ok(operation)], EngineRequest::new(sink)).await?;
        let sink = finished.into_sink::<ImageSink>()?;
        if let Some(error) = sink.failure {
            return Err(error);
        }
        let mut seen = sink.seen;
        seen.sort_by_key(|(position, _)| *position);
        let changes = seen.into_iter().filter_map(|(position, mut image)| {
            let change = *changes.get(position)?;
            if let CellValue::Text(columns) = image_cell(&change.image, CHANGED_COLUMNS) {
                let columns = ChangedColumns { view, owner, record, names: parse_columns(columns) };
                if change.kind == ChangeKind::Updated && columns.are_unseen(&change.image, &image) {
                    return None;
                }
                image.push((CHANGED_COLUMNS.to_owned(), columns.open()));
            }
            Some(Cow::Owned(RecordChange { image: Arc::new(image), ..change.clone() }))
        });
        Ok(changes.collect())
    }
}

fn is_json(field: &Field) -> bool {
    match field.kind.value_type() {
        Some(ValueType::List(_) | ValueType::Embedded(_)) => true,
        Some(value_type) => value_type.scalar() == Some(Scalar::Json),
        None => false,
    }
}

/// True if the actor sees every value of every record.
fn sees_everything(view: &AccessView, owner: &RecordType, record: RecordTypeId) -> bool {
    let is_open = |field: usize| view.field_verdict(record, FieldId(field)) == AccessVerdict::Yes;
    view.of_type(record).read.verdict() == AccessVerdict::Yes && (0..owner.fields.len()).all(is_open)
}

fn parse_columns(json: &str) -> Vec<String> {
    serde_json::from_str(json).unwrap_or_default()
}

/// The columns that an update changed, and an actor who may not see all of them.
struct ChangedColumns<'c> {
    view: &'c AccessView,
    owner: &'c RecordType,
    record: RecordTypeId,
    names: Vec<String>,
}

impl ChangedColumns<'_> {
    /// Those that no rule hides from the actor: that the others changed would tell of their values.
    fn open(&self) -> StoredValue {
        let is_open = |name: &&String| self.verdict(name) == AccessVerdict::Yes;
        let open: Vec<&String> = self.names.iter().filter(is_open).collect();
        StoredValue::Text(serde_json::json!(open).to_string())
    }

    /// Whether the actor sees nothing of the update: each column is hidden from them, and none decides what else they see.
    fn are_unseen(&self, image: &[(String, StoredValue)], seen: &[(String, StoredValue)]) -> bool {
        let is_hidden = |name: &String| match self.verdict(name) {
            AccessVerdict::Yes => false,
            AccessVerdict::No => true,
            // It is shown where it is the same; of null this cannot be told.
            AccessVerdict::Some => {
                image_cell(image, name) != CellValue::Null && image_cell(seen, name) == CellValue::Null
            }
        };
        let is_changed = |field: FieldId| self.names.contains(&self.owner.field(field).column);
        !self.names.is_empty()
            && self.names.iter().all(is_hidden)
            && !self.view.of_type(self.record).reading_looks_at(is_changed)
    }

    /// Whether the actor sees a column. One that no field has tells nothing.
    fn verdict(&self, name: &str) -> AccessVerdict {
        let field = self.owner.fields.iter().position(|field| field.is_stored() && field.column == name);
        field.map_or(AccessVerdict::Yes, |field| self.view.field_verdict(self.record, FieldId(field)))
    }
}

/// Collects images by their position.
struct ImageSink {
    columns: Vec<String>,
    seen: Vec<(usize, Vec<(String, StoredValue)>)>,
    failure: Option<Error>,
}

impl RowSink for ImageSink {
    fn row(&mut self, _plan: usize, row: &dyn Row) {
        let Some(position) = row.cell(0).to_i64().and_then(|position| usize::try_from(position).ok()) else {
            return;
        };
        let cells = self.columns.iter().enumerate();
        let image = cells.map(|(i, column)| (column.clone(), row.cell(i + 1).to_stored())).collect();
        self.seen.push((position, image));
    }

    fn finish_plan(&mut self, _plan: usize, outcome: Result<Outcome>) {
        if let Err(error) = outcome {
            self.failure.get_or_insert(error);
        }
    }

    fn bytes_to_replay(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn reset(&mut self) {
        self.seen.clear();
        self.failure = None;
    }
}
