//! The changes of a batch as an actor sees them: those of records in sight, with the values that are shown.

use std::borrow::Cow;
use std::sync::Arc;

use trefoil_model::access::AccessVerdict;
use trefoil_model::error::{Error, Result};
use trefoil_model::{CellValue, Field, FieldId, RecordType, RecordTypeId, Scalar, StoredValue, ValueType};

use crate::changes::image_list::{ImageList, seen_columns};
use crate::changes::image_rules::{ImageRules, ShownImage};
use crate::changes::{CHANGED_COLUMNS, ChangeBatch, ChangeKind, RecordChange, RecordImage, image_cell};
use crate::engine::{Engine, EngineRequest};
use crate::operation::{Operation, Outcome};
use crate::row::{Row, RowSink};

/// An image of a batch, by the number of its change.
type VisibleImage = (usize, Vec<(String, StoredValue)>);

impl Engine {
    /// The changes of records of this type, as the actor sees them. The store is asked only of those that the rules judge by
    /// other records.
    pub async fn visible_changes<'b>(
        &self,
        record: RecordTypeId,
        batch: &'b ChangeBatch,
    ) -> Result<Vec<Cow<'b, RecordChange>>> {
        let owner = self.model().record(record);
        let changes = batch.changes.iter().filter(|change| change.type_name == owner.name);
        if self.access_view().is_none() {
            return Ok(changes.map(Cow::Borrowed).collect());
        }
        let engine = self.at_present();
        let Some(view) = engine.access_view() else { return Ok(Vec::new()) };
        let rules = ImageRules { model: self.model(), view, record };
        let changes: Vec<&RecordChange> = changes.collect();
        let (mut seen, mut unknown) = (Vec::with_capacity(changes.len()), Vec::new());
        for (position, change) in changes.iter().enumerate() {
            match rules.shown(&change.image) {
                ShownImage::Nothing => {}
                ShownImage::Whole => seen.push((position, Cow::Borrowed(*change))),
                ShownImage::Part(image) => {
                    let change = part_of(rules, change, image);
                    seen.extend(change.map(|change| (position, change)));
                }
                ShownImage::Unknown => unknown.push(position),
            }
        }
        if !unknown.is_empty() {
            let images = unknown.iter().map(|position| changes[*position].image.clone()).collect();
            for (position, image) in engine.seen_images(record, images).await? {
                let Some(position) = unknown.get(position).copied() else { continue };
                let change = part_of(rules, changes[position], image);
                seen.extend(change.map(|change| (position, change)));
            }
            seen.sort_by_key(|(position, _)| *position);
        }
        Ok(seen.into_iter().map(|(_, change)| change).collect())
    }

    /// Those of these images that the actor sees, in one statement.
    async fn seen_images(
        &self,
        record: RecordTypeId,
        images: Arc<[RecordImage]>,
    ) -> Result<Vec<VisibleImage>> {
        let owner = self.model().record(record);
        let json_columns =
            owner.fields.iter().filter(|field| is_json(field)).map(|field| field.column.clone());
        let json_columns = json_columns.collect();
        let operation = Operation::SeeImages { record, list: ImageList { images, json_columns } };
        let sink = Box::new(ImageSink { columns: seen_columns(owner), seen: Vec::new(), failure: None });
        let finished = self.run(vec![Ok(operation)], EngineRequest::new(sink)).await?;
        let sink = finished.into_sink::<ImageSink>()?;
        sink.failure.map_or(Ok(sink.seen), Err)
    }
}

/// A change with what the actor sees of its image; `None` if they see nothing of it.
fn part_of<'b>(
    rules: ImageRules<'_>,
    change: &RecordChange,
    mut image: Vec<(String, StoredValue)>,
) -> Option<Cow<'b, RecordChange>> {
    if let CellValue::Text(columns) = image_cell(&change.image, CHANGED_COLUMNS) {
        let columns = ChangedColumns { rules, names: parse_columns(columns) };
        if change.kind == ChangeKind::Updated && columns.are_unseen(&change.image, &image) {
            return None;
        }
        image.push((CHANGED_COLUMNS.to_owned(), columns.open()));
    }
    Some(Cow::Owned(RecordChange { image: Arc::new(image), ..change.clone() }))
}

fn is_json(field: &Field) -> bool {
    match field.kind.value_type() {
        Some(ValueType::List(_) | ValueType::Embedded(_)) => true,
        Some(value_type) => value_type.scalar() == Some(Scalar::Json),
        None => false,
    }
}

fn parse_columns(json: &str) -> Vec<String> {
    serde_json::from_str(json).unwrap_or_default()
}

/// The columns that an update changed, and an actor who may not see all of them.
struct ChangedColumns<'c> {
    rules: ImageRules<'c>,
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
            // It is shown where it is the same. Of null only its rule tells that, unless it asks other records.
            AccessVerdict::Some if image_cell(image, name) == CellValue::Null => self.is_denied(name, image),
            AccessVerdict::Some => image_cell(seen, name) == CellValue::Null,
        };
        let is_changed = |field: FieldId| self.names.contains(&self.owner().field(field).column);
        !self.names.is_empty()
            && self.names.iter().all(is_hidden)
            && !self.rules.view.of_type(self.rules.record).reading_looks_at(is_changed)
    }

    /// Whether the actor sees a column. One that no field has tells nothing.
    fn verdict(&self, name: &str) -> AccessVerdict {
        let ImageRules { view, record, .. } = self.rules;
        self.field(name).map_or(AccessVerdict::Yes, |field| view.field_verdict(record, field))
    }

    /// Whether the rule of a column's field does not let the actor read it, as far as the image tells.
    fn is_denied(&self, name: &str, image: &[(String, StoredValue)]) -> bool {
        let ImageRules { view, record, .. } = self.rules;
        let rule = self.field(name).map(|field| &view.of_type(record).fields[field.0].read.test);
        rule.is_some_and(|rule| self.rules.holds(rule, image) == Some(false))
    }

    fn owner(&self) -> &RecordType {
        self.rules.model.record(self.rules.record)
    }

    fn field(&self, column: &str) -> Option<FieldId> {
        let fields = &self.owner().fields;
        fields.iter().position(|field| field.is_stored() && field.column == column).map(FieldId)
    }
}

/// Collects images by their position.
struct ImageSink {
    columns: Vec<String>,
    seen: Vec<VisibleImage>,
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
