//! Fills an empty store with the application's seed, all of it or nothing.
//!
//! As in an import, references and links may lead to records of any file, before or after: what leads to nothing is
//! looked for once everything is there.

use std::collections::HashSet;

use trefoil_application::{App, SeedFile, SeedRecord, SeedRows, seed};
use trefoil_engine::arguments::fields_from_object;
use trefoil_engine::{
    BulkStep, BulkWrite, Engine, Operation, Outcome, PlainListAction, PlainListOperation, Selection,
};
use trefoil_model::error::{Error, Result};
use trefoil_model::naming::names::nearest_name;
use trefoil_model::{Diagnostic, Model, RecordTypeId, Value};

/// Records and values that are sent at once.
const TOGETHER: usize = 500;

/// Loads every record and every value of a plain list, or says which ones do not fit.
pub async fn load_seed(engine: &Engine, app: &App) -> Result<(), Vec<Diagnostic>> {
    let elements = elements(engine.model(), app)?;
    if elements.is_empty() {
        return Ok(());
    }
    let failures = run_atomic(engine, &elements)
        .await
        .map_err(|error| vec![Diagnostic::in_file("seed", seed::SEED_CODE, error.to_string())])?;
    if failures.is_empty() {
        return Ok(());
    }
    Err(failures.iter().map(|(number, why)| elements[*number].seed_diagnostic(app, why)).collect())
}

/// One record or value of a seed file.
struct SeedItem<'a> {
    file: &'a SeedFile,
    content: Content<'a>,
}

enum Content<'a> {
    Record(RecordTypeId, &'a SeedRecord),
    /// The value at this index of a plain list.
    Value(usize, &'a str),
}

/// Everything that the files hold, in the order of their names.
fn elements<'a>(model: &Model, app: &'a App) -> Result<Vec<SeedItem<'a>>, Vec<Diagnostic>> {
    let (mut elements, mut unknown) = (Vec::new(), Vec::new());
    for file in &app.seed.files {
        match (&file.rows, model.find_record_by_path(&file.collection)) {
            (SeedRows::Records(rows), Some(record)) => {
                let content = |row| SeedItem { file, content: Content::Record(record, row) };
                elements.extend(rows.iter().map(content));
            }
            (SeedRows::Records(_), None) => unknown.push(no_collection(model, file)),
            (SeedRows::Texts(values), _) => {
                let content = |(index, value)| SeedItem { file, content: Content::Value(index, value) };
                elements.extend(values.iter().map(String::as_str).enumerate().map(content));
            }
        }
    }
    if unknown.is_empty() { Ok(elements) } else { Err(unknown) }
}

fn no_collection(model: &Model, file: &SeedFile) -> Diagnostic {
    let message = format!("there is no collection `{}`", file.collection);
    let mut mistake = Diagnostic::in_file(&file.name, seed::SEED_CODE, message);
    let known = model.records.iter().map(|record| record.path.as_str());
    mistake.help = nearest_name(&file.collection, known).map(|near| format!("did you mean `{near}`?"));
    mistake
}

impl SeedItem<'_> {
    fn step(&self, model: &Model) -> Result<BulkStep> {
        match &self.content {
            Content::Record(record, row) => create_operation(model, *record, row).map(BulkStep::Run),
            Content::Value(_, value) => Ok(BulkStep::Run(append_operation(&self.file.collection, value))),
        }
    }

    fn seed_diagnostic(&self, app: &App, why: &str) -> Diagnostic {
        match &self.content {
            Content::Record(_, row) => {
                let source = app.other_files.iter().find(|source| source.name == self.file.name);
                let text = source.map_or("", |source| &source.text);
                let complaint = Diagnostic::in_file(&self.file.name, seed::SEED_CODE, why);
                complaint.with_span(&self.file.name, text, row.span.clone())
            }
            Content::Value(index, _) => {
                Diagnostic::in_file(&self.file.name, seed::SEED_CODE, format!("value {index}: {why}"))
            }
        }
    }
}

/// Elements that do not fit, by their number.
type FailedOperations = Vec<(usize, String)>;

/// Brings in all of the elements or none; gives those that did not fit, and why.
async fn run_atomic(engine: &Engine, elements: &[SeedItem<'_>]) -> Result<FailedOperations> {
    let mut loading =
        Loading { engine, long: engine.begin_bulk_write().await?, made: Vec::new(), failures: Vec::new() };
    let numbers: Vec<usize> = (0..elements.len()).collect();
    // A batch is of one file: what is of one kind goes in few statements.
    for of_file in numbers.chunk_by(|a, b| std::ptr::eq(elements[*a].file, elements[*b].file)) {
        for batch in of_file.chunks(TOGETHER) {
            loading.bring(elements, batch).await?;
        }
    }
    loading.find_loose(elements).await?;
    let Loading { long, mut failures, .. } = loading;
    if failures.is_empty() {
        long.commit().await?;
    }
    failures.sort();
    Ok(failures)
}

struct Loading<'e> {
    engine: &'e Engine,
    long: BulkWrite<'e>,
    /// The records that are in: type, id and number.
    made: Vec<(RecordTypeId, i64, usize)>,
    failures: FailedOperations,
}

impl Loading<'_> {
    async fn bring(&mut self, elements: &[SeedItem<'_>], batch: &[usize]) -> Result<()> {
        let (mut numbers, mut steps) = (Vec::new(), Vec::new());
        for number in batch {
            match elements[*number].step(self.engine.model()) {
                Ok(step) => {
                    numbers.push(*number);
                    steps.push(step);
                }
                Err(error) => self.failures.push((*number, error.to_string())),
            }
        }
        for (number, outcome) in numbers.into_iter().zip(self.long.run(steps).await?) {
            match (&elements[number].content, outcome) {
                (Content::Record(record, _), Ok(Outcome::Created { id, .. })) => {
                    self.made.push((*record, id, number));
                }
                (Content::Record(..) | Content::Value(..), Ok(_)) => {}
                (_, Err(error)) => self.failures.push((number, error.to_string())),
            }
        }
        Ok(())
    }

    /// Complains of records that refer to nothing, but not where what they refer to is in a seed and did not fit.
    async fn find_loose(&mut self, elements: &[SeedItem<'_>]) -> Result<()> {
        let model = self.engine.model().clone();
        let failed: HashSet<(RecordTypeId, i64)> = self
            .failures
            .iter()
            .filter_map(|(number, _)| match &elements[*number].content {
                Content::Record(record, row) => Some((*record, row.fields.get("id")?.as_i64()?)),
                Content::Value(..) => None,
            })
            .collect();
        let mut made = std::mem::take(&mut self.made);
        made.retain(|(record, ..)| model.leads_on(*record));
        made.sort_unstable();
        for some in made.chunk_by(|a, b| a.0 == b.0).flat_map(|same| same.chunks(TOGETHER)) {
            let Some((record, ..)) = some.first().copied() else { continue };
            let ids = some.iter().map(|(_, id, _)| *id).collect();
            for end in self.long.dangling_references(record, ids).await? {
                let (target, why) = end.told(&model, record);
                if !failed.contains(&(target, end.missing_id)) {
                    let from = some.iter().filter(|(_, id, _)| *id == end.id);
                    self.failures.extend(from.map(|(_, _, number)| (*number, why.clone())));
                }
            }
        }
        Ok(())
    }
}

fn create_operation(model: &Model, record: RecordTypeId, row: &SeedRecord) -> Result<Operation> {
    let mut fields = row.fields.clone().into_fields().unwrap_or_default();
    let id = fields.iter().position(|(name, _)| name == "id").map(|place| fields.remove(place).1);
    let id = id.map(|id| parse_id(&id)).transpose()?;
    let fields = fields_from_object(model.record(record), Value::Object(fields))?;
    Ok(Operation::Create { record, id, fields, selection: Selection::default().into() })
}

fn append_operation(list: &str, value: &str) -> Operation {
    let act = PlainListAction::Append { value: value.to_owned(), expected: None };
    Operation::PlainList(PlainListOperation { list: list.into(), action: act })
}

fn parse_id(id: &Value) -> Result<i64> {
    let number = id.as_i64().filter(|id| *id > 0);
    number.ok_or_else(|| Error::invalid("id", "TYPE", "an id is a positive 64-bit integer"))
}
