//! Loads the application's seed into an empty store, in one transaction.
//!
//! As in an import, references and links may point to records of any file, earlier or later: dangling ones are looked
//! for at the end.

use std::collections::HashSet;
use std::sync::Arc;

use trefoil_application::{App, SeedFile, SeedRecord, SeedRows, seed};
use trefoil_engine::arguments::fields_from_object;
use trefoil_engine::{BulkStep, BulkWrite, Engine, Operation, Outcome, PlainListAction, PlainListOperation};
use trefoil_model::error::{Error, PathSegment, Result};
use trefoil_model::naming::names::nearest_name;
use trefoil_model::{Diagnostic, Model, RecordId, RecordTypeId};

/// Records and values per batch.
const BATCH_SIZE: usize = 500;

/// Loads every record and every value of a plain list, or returns those that do not fit.
pub async fn load_seed(engine: &Engine, app: &App) -> Result<(), Vec<Diagnostic>> {
    let items = seed_items(engine.model(), app)?;
    if items.is_empty() {
        return Ok(());
    }
    let failures = run_atomic(engine, &items)
        .await
        .map_err(|error| vec![Diagnostic::in_file("seed", seed::SEED_CODE, error.to_string())])?;
    if failures.is_empty() {
        return Ok(());
    }
    Err(failures.iter().map(|failure| items[failure.number].seed_diagnostic(app, failure)).collect())
}

/// One record or value of a seed file.
struct SeedItem<'a> {
    file: &'a SeedFile,
    content: SeedContent<'a>,
}

enum SeedContent<'a> {
    Record(RecordTypeId, &'a SeedRecord),
    /// The value at this index of a plain list.
    Value(usize, &'a str),
}

/// All records and values of the seed files, in the order of the file names.
fn seed_items<'a>(model: &Model, app: &'a App) -> Result<Vec<SeedItem<'a>>, Vec<Diagnostic>> {
    let (mut items, mut unknown) = (Vec::new(), Vec::new());
    for file in &app.seed.files {
        match (&file.rows, model.find_record_by_path(&file.collection)) {
            (SeedRows::Records(rows), Some(record)) => {
                let item = |row| SeedItem { file, content: SeedContent::Record(record, row) };
                items.extend(rows.iter().map(item));
            }
            (SeedRows::Records(_), None) => unknown.push(unknown_collection(model, file)),
            (SeedRows::Texts(values), _) => {
                let item = |(index, value)| SeedItem { file, content: SeedContent::Value(index, value) };
                items.extend(values.iter().map(String::as_str).enumerate().map(item));
            }
        }
    }
    if unknown.is_empty() { Ok(items) } else { Err(unknown) }
}

fn unknown_collection(model: &Model, file: &SeedFile) -> Diagnostic {
    let message = format!("unknown collection `{}`", file.collection);
    let mut diagnostic = Diagnostic::in_file(&file.name, seed::SEED_CODE, message);
    let known = model.records.iter().map(|record| record.path.as_str());
    diagnostic.help =
        nearest_name(&file.collection, known).map(|nearest| format!("did you mean `{nearest}`?"));
    diagnostic
}

impl SeedItem<'_> {
    fn step(&self, model: &Model) -> Result<BulkStep> {
        match &self.content {
            SeedContent::Record(record, row) => create_operation(model, *record, row).map(BulkStep::Run),
            SeedContent::Value(_, value) => Ok(BulkStep::Run(append_operation(&self.file.collection, value))),
        }
    }

    fn seed_diagnostic(&self, app: &App, failure: &FailedItem) -> Diagnostic {
        let reason = &failure.reason;
        match &self.content {
            SeedContent::Record(_, row) => {
                let source = app.other_files.iter().find(|source| source.name == self.file.name);
                let text = source.map_or("", |source| &source.text);
                let diagnostic = Diagnostic::in_file(&self.file.name, seed::SEED_CODE, reason);
                let field = failure.field.as_deref().and_then(|field| row.field_span(text, field));
                diagnostic.with_span(&self.file.name, text, field.unwrap_or_else(|| row.span.clone()))
            }
            SeedContent::Value(index, _) => {
                Diagnostic::in_file(&self.file.name, seed::SEED_CODE, format!("value {index}: {reason}"))
            }
        }
    }
}

/// An item that does not fit.
struct FailedItem {
    /// The index of the item.
    number: usize,
    /// The field that is wrong, if it is one.
    field: Option<String>,
    reason: String,
}

/// One failure for each violation of the item, because each is about a field of its own.
fn item_failures(number: usize, error: &Error) -> Vec<FailedItem> {
    let violations = error.violations().iter().map(|violation| {
        let field = violation.path.first().and_then(|segment| match segment {
            PathSegment::Field(name) => Some(name.clone()),
            PathSegment::Index(_) => None,
        });
        FailedItem { number, field, reason: violation.message.clone() }
    });
    let mut failures: Vec<FailedItem> = violations.collect();
    if failures.is_empty() {
        failures.push(FailedItem { number, field: None, reason: error.to_string() });
    }
    failures
}

/// Loads all items or none; returns those that do not fit.
async fn run_atomic(engine: &Engine, items: &[SeedItem<'_>]) -> Result<Vec<FailedItem>> {
    let mut loader = SeedLoader {
        engine,
        bulk_write: engine.begin_bulk_write().await?,
        created: Vec::new(),
        failures: Vec::new(),
    };
    let numbers: Vec<usize> = (0..items.len()).collect();
    // Batches do not span files: records of one type need fewer statements.
    for of_file in numbers.chunk_by(|a, b| std::ptr::eq(items[*a].file, items[*b].file)) {
        for batch in of_file.chunks(BATCH_SIZE) {
            loader.load_batch(items, batch).await?;
        }
    }
    loader.find_dangling(items).await?;
    let SeedLoader { bulk_write, mut failures, .. } = loader;
    if failures.is_empty() {
        bulk_write.commit().await?;
    }
    failures.sort_by_key(|failure| failure.number);
    Ok(failures)
}

struct SeedLoader<'e> {
    engine: &'e Engine,
    bulk_write: BulkWrite<'e>,
    /// The created records: type, id and index of the item.
    created: Vec<(RecordTypeId, RecordId, usize)>,
    failures: Vec<FailedItem>,
}

impl SeedLoader<'_> {
    async fn load_batch(&mut self, items: &[SeedItem<'_>], batch: &[usize]) -> Result<()> {
        let (mut numbers, mut steps) = (Vec::new(), Vec::new());
        for number in batch {
            match items[*number].step(self.engine.model()) {
                Ok(step) => {
                    numbers.push(*number);
                    steps.push(step);
                }
                Err(error) => self.failures.extend(item_failures(*number, &error)),
            }
        }
        for (number, outcome) in numbers.into_iter().zip(self.bulk_write.run(steps).await?) {
            match (&items[number].content, outcome) {
                (SeedContent::Record(record, _), Ok(Outcome::Created { id, .. })) => {
                    self.created.push((*record, id, number));
                }
                (SeedContent::Record(..) | SeedContent::Value(..), Ok(_)) => {}
                (_, Err(error)) => self.failures.extend(item_failures(number, &error)),
            }
        }
        Ok(())
    }

    /// Reports records with dangling references, unless the missing record is itself in the seed and did not fit.
    async fn find_dangling(&mut self, items: &[SeedItem<'_>]) -> Result<()> {
        let model = self.engine.model().clone();
        let failed: HashSet<(RecordTypeId, RecordId)> = self
            .failures
            .iter()
            .filter_map(|failure| match &items[failure.number].content {
                SeedContent::Record(record, row) => {
                    let record_type = model.record(*record);
                    let id = row.fields.get(&record_type.field(record_type.id_field()).name)?;
                    Some((*record, RecordId::from_value(record_type.key_form(), id).ok()?))
                }
                SeedContent::Value(..) => None,
            })
            .collect();
        let mut created = std::mem::take(&mut self.created);
        created.retain(|(record, ..)| model.has_outgoing_relations(*record));
        created.sort_unstable();
        for batch in created.chunk_by(|a, b| a.0 == b.0).flat_map(|same| same.chunks(BATCH_SIZE)) {
            let Some((record, ..)) = batch.first() else { continue };
            let record = *record;
            let ids = batch.iter().map(|(_, id, _)| id.clone()).collect();
            for dangling in self.bulk_write.dangling_references(record, ids).await? {
                let (target, reason) = dangling.describe(&model, record);
                if !failed.contains(&(target, dangling.missing_id.clone())) {
                    let sources = batch.iter().filter(|(_, id, _)| *id == dangling.id);
                    let field = Some(model.record(record).field(dangling.field).input_name.clone());
                    self.failures.extend(sources.map(|(_, _, number)| FailedItem {
                        number: *number,
                        field: field.clone(),
                        reason: reason.clone(),
                    }));
                }
            }
        }
        Ok(())
    }
}

fn create_operation(model: &Model, record: RecordTypeId, row: &SeedRecord) -> Result<Operation> {
    let record_type = model.record(record);
    let (id, fields) = fields_from_object(model, record_type, row.fields.clone())?;
    if let Some(id) = &id {
        let checked = record_type.id_from_file(&id.to_value());
        checked.map_err(|message| Error::invalid("id", "TYPE", &message))?;
    }
    Ok(Operation::Create { record, id, fields, filled_fields: Vec::new(), selection: Arc::default() })
}

fn append_operation(list: &str, value: &str) -> Operation {
    let action = PlainListAction::Append { value: value.to_owned(), expected: None };
    Operation::PlainList(PlainListOperation { list: list.into(), action })
}
