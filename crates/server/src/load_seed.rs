//! Fills an empty store with the application's seed, all of it or nothing.
//!
//! As in an import, references and links may lead to records of any file, before or after: what leads to nothing is
//! looked for once everything is there.

use std::collections::HashSet;

use trefoil_application::{App, Rows, SeedFile, SeedRecord, seed};
use trefoil_engine::arguments::named_fields;
use trefoil_engine::{Engine, ListAct, Long, OnList, Operation, Outcome, Selection, Step};
use trefoil_model::error::{Error, Result};
use trefoil_model::naming::names::nearest;
use trefoil_model::{Diagnostic, Model, TypeId, Value};

/// Records and values that are sent at once.
const TOGETHER: usize = 500;

/// Loads every record and every value of a plain list, or says which ones do not fit.
pub async fn load(engine: &Engine, app: &App) -> Result<(), Vec<Diagnostic>> {
    let elements = elements(engine.model(), app)?;
    if elements.is_empty() {
        return Ok(());
    }
    let failures = run(engine, &elements)
        .await
        .map_err(|error| vec![Diagnostic::in_file("seed", seed::CODE, error.to_string())])?;
    if failures.is_empty() {
        return Ok(());
    }
    Err(failures.iter().map(|(number, why)| elements[*number].complaint(app, why)).collect())
}

/// One record or value of a seed file.
struct Element<'a> {
    file: &'a SeedFile,
    content: Content<'a>,
}

enum Content<'a> {
    Record(TypeId, &'a SeedRecord),
    /// The value at this index of a plain list.
    Value(usize, &'a str),
}

/// Everything that the files hold, in the order of their names.
fn elements<'a>(model: &Model, app: &'a App) -> Result<Vec<Element<'a>>, Vec<Diagnostic>> {
    let (mut elements, mut unknown) = (Vec::new(), Vec::new());
    for file in &app.seed.files {
        match (&file.rows, model.record_at(&file.collection)) {
            (Rows::Records(rows), Some(record)) => {
                let content = |row| Element { file, content: Content::Record(record, row) };
                elements.extend(rows.iter().map(content));
            }
            (Rows::Records(_), None) => unknown.push(no_collection(model, file)),
            (Rows::Texts(values), _) => {
                let content = |(index, value)| Element { file, content: Content::Value(index, value) };
                elements.extend(values.iter().map(String::as_str).enumerate().map(content));
            }
        }
    }
    if unknown.is_empty() { Ok(elements) } else { Err(unknown) }
}

fn no_collection(model: &Model, file: &SeedFile) -> Diagnostic {
    let message = format!("there is no collection `{}`", file.collection);
    let mut mistake = Diagnostic::in_file(&file.name, seed::CODE, message);
    let known = model.records.iter().map(|record| record.path.as_str());
    mistake.help = nearest(&file.collection, known).map(|near| format!("did you mean `{near}`?"));
    mistake
}

impl Element<'_> {
    fn step(&self, model: &Model) -> Result<Step> {
        match &self.content {
            Content::Record(record, row) => creation(model, *record, row).map(Step::Do),
            Content::Value(_, value) => Ok(Step::Do(addition(&self.file.collection, value))),
        }
    }

    fn complaint(&self, app: &App, why: &str) -> Diagnostic {
        match &self.content {
            Content::Record(_, row) => {
                let source = app.others.iter().find(|source| source.name == self.file.name);
                let text = source.map_or("", |source| &source.text);
                let complaint = Diagnostic::in_file(&self.file.name, seed::CODE, why);
                complaint.at(&self.file.name, text, row.span.clone())
            }
            Content::Value(index, _) => {
                Diagnostic::in_file(&self.file.name, seed::CODE, format!("value {index}: {why}"))
            }
        }
    }
}

/// Elements that do not fit, by their number.
type Failures = Vec<(usize, String)>;

/// Brings in all of the elements or none; gives those that did not fit, and why.
async fn run(engine: &Engine, elements: &[Element<'_>]) -> Result<Failures> {
    let mut loading = Loading { engine, long: engine.begin().await?, made: Vec::new(), failures: Vec::new() };
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
    long: Long<'e>,
    /// The records that are in: type, id and number.
    made: Vec<(TypeId, i64, usize)>,
    failures: Failures,
}

impl Loading<'_> {
    async fn bring(&mut self, elements: &[Element<'_>], batch: &[usize]) -> Result<()> {
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
    async fn find_loose(&mut self, elements: &[Element<'_>]) -> Result<()> {
        let model = self.engine.model().clone();
        let failed: HashSet<(TypeId, i64)> = self
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
            for end in self.long.loose_ends(record, ids).await? {
                let (target, why) = end.told(&model, record);
                if !failed.contains(&(target, end.missing)) {
                    let from = some.iter().filter(|(_, id, _)| *id == end.id);
                    self.failures.extend(from.map(|(_, _, number)| (*number, why.clone())));
                }
            }
        }
        Ok(())
    }
}

fn creation(model: &Model, record: TypeId, row: &SeedRecord) -> Result<Operation> {
    let mut fields = row.fields.clone().into_fields().unwrap_or_default();
    let id = fields.iter().position(|(name, _)| name == "id").map(|place| fields.remove(place).1);
    let id = id.map(|id| seed_id(&id)).transpose()?;
    let fields = named_fields(model.record(record), Value::Object(fields))?;
    Ok(Operation::Create { record, id, fields, selection: Selection::default().into() })
}

fn addition(list: &str, value: &str) -> Operation {
    let act = ListAct::Append { value: value.to_owned(), expected: None };
    Operation::Plain(OnList { list: list.into(), act })
}

fn seed_id(id: &Value) -> Result<i64> {
    let number = id.as_i64().filter(|id| *id > 0);
    number.ok_or_else(|| Error::invalid("id", "TYPE", "an id is a positive 64-bit integer"))
}
