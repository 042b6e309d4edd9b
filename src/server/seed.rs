//! Fills an empty store with the application's seed, all of it or nothing.

use crate::app::{App, Rows, SeedFile, SeedRecord, seed};
use crate::engine::arguments::named_fields;
use crate::engine::{
    Answer, Done, Engine, ListAct, OnList, Operation, Outcome, Request, Row, Selection, answer_as,
};
use crate::error::{Error, Result};
use crate::model::naming::nearest;
use crate::model::{Diagnostic, FieldId, Kind, Model, TypeId, Value};

/// Loads every record and every value of a plain list, or says which ones do not fit.
pub async fn load(engine: &Engine, app: &App) -> Result<(), Vec<Diagnostic>> {
    let mut operations = Vec::new();
    let mut places = Vec::new();
    for (record, file) in in_order(engine.model(), app)? {
        let Rows::Records(rows) = &file.rows else { continue };
        for row in rows {
            operations.push(creation(engine.model(), record, row));
            places.push((file, Element::Record(row)));
        }
    }
    for file in &app.seed.files {
        let Rows::Texts(values) = &file.rows else { continue };
        for (index, value) in values.iter().enumerate() {
            operations.push(Ok(addition(&file.collection, value)));
            places.push((file, Element::Value(index)));
        }
    }
    if operations.is_empty() {
        return Ok(());
    }
    let failures = run(engine, operations)
        .await
        .map_err(|error| vec![Diagnostic::in_file("seed", seed::CODE, error.to_string())])?;
    if failures.is_empty() {
        return Ok(());
    }
    let complaint = |(number, error): &(usize, Error)| {
        let (file, element) = &places[*number];
        complaint(app, file, element, error)
    };
    Err(failures.iter().map(complaint).collect())
}

/// What a line of a seed file stands for.
enum Element<'a> {
    Record(&'a SeedRecord),
    /// The value at this index of a plain list.
    Value(usize),
}

fn complaint(app: &App, file: &SeedFile, element: &Element<'_>, error: &Error) -> Diagnostic {
    match element {
        Element::Record(row) => {
            let source = app.others.iter().find(|source| source.name == file.name);
            let text = source.map_or("", |source| &source.text);
            let complaint = Diagnostic::in_file(&file.name, seed::CODE, error.to_string());
            complaint.at(&file.name, text, row.span.clone())
        }
        Element::Value(index) => {
            Diagnostic::in_file(&file.name, seed::CODE, format!("value {index}: {error}"))
        }
    }
}

/// All of the operations or none; gives those that failed, and why.
async fn run(engine: &Engine, operations: Vec<Result<Operation>>) -> Result<Vec<(usize, Error)>> {
    let request = Request { atomic: true, ..Request::new(Box::new(Failures::default())) };
    match engine.run(operations, request).await? {
        Done::Answered(answer) => Ok(answer_as::<Failures>(answer)?.0),
        Done::Replayed(_) => Ok(Vec::new()),
    }
}

/// The seed files with their types, a referenced type before those that refer to it.
fn in_order<'a>(model: &Model, app: &'a App) -> Result<Vec<(TypeId, &'a SeedFile)>, Vec<Diagnostic>> {
    let (mut waiting, mut unknown) = (Vec::new(), Vec::new());
    for file in &app.seed.files {
        match (model.record_at(&file.collection), &file.rows) {
            (Some(record), _) => waiting.push((record, file)),
            (None, Rows::Texts(_)) => {}
            (None, Rows::Records(_)) => {
                let message = format!("there is no collection `{}`", file.collection);
                let mut mistake = Diagnostic::in_file(&file.name, seed::CODE, message);
                let known = model.records.iter().map(|record| record.path.as_str());
                mistake.help = nearest(&file.collection, known).map(|near| format!("did you mean `{near}`?"));
                unknown.push(mistake);
            }
        }
    }
    if !unknown.is_empty() {
        return Err(unknown);
    }
    let mut ordered: Vec<(TypeId, &SeedFile)> = Vec::new();
    while !waiting.is_empty() {
        let names: Vec<TypeId> = waiting.iter().map(|(record, _)| *record).collect();
        let free = |(record, file): &(TypeId, &SeedFile)| {
            !needs(model, *record, file).any(|other| other != *record && names.contains(&other))
        };
        // A circle of references has no beginning: then the files go in the order of their names.
        let next = waiting.iter().position(free).unwrap_or(0);
        ordered.push(waiting.remove(next));
    }
    Ok(ordered)
}

/// The types whose records must be there first: those it refers to, and those its file links to.
fn needs(model: &Model, record: TypeId, file: &SeedFile) -> impl Iterator<Item = TypeId> {
    let links = move |name: &str| match &file.rows {
        Rows::Records(rows) => rows.iter().any(|row| row.fields.contains_key(name)),
        Rows::Texts(_) => false,
    };
    model.record(record).fields.iter().filter_map(move |field| match &field.kind {
        Kind::Reference { target, .. } => Some(*target),
        Kind::Link { target, .. } => links(&field.input_name).then_some(*target),
        Kind::Id
        | Kind::Scalar(_)
        | Kind::Enum(_)
        | Kind::Embedded(_)
        | Kind::List(_)
        | Kind::Inverse { .. }
        | Kind::Unstored => None,
    })
}

fn creation(model: &Model, record: TypeId, row: &SeedRecord) -> Result<Operation> {
    let mut object = row.fields.clone();
    let id = match object.shift_remove("id") {
        Some(id) => Some(seed_id(&id)?),
        None => None,
    };
    let value = Value::from(serde_json::Value::Object(object));
    let fields: Vec<(FieldId, Value)> = named_fields(model.record(record), value)?;
    Ok(Operation::Create { record, id, fields, selection: Selection::default().into() })
}

fn addition(list: &str, value: &str) -> Operation {
    let act = ListAct::Append { value: value.to_owned(), expected: None };
    Operation::Plain(OnList { list: list.into(), act })
}

fn seed_id(id: &serde_json::Value) -> Result<i64> {
    let number = id.as_i64().or_else(|| id.as_str().and_then(|text| text.parse().ok()));
    number
        .filter(|id| *id > 0)
        .ok_or_else(|| Error::invalid("id", "TYPE", "an id is a positive 64-bit integer"))
}

/// The operations that failed, and why; not those that were only undone with them.
#[derive(Default)]
struct Failures(Vec<(usize, Error)>);

impl Answer for Failures {
    fn row(&mut self, _plan: usize, _row: &dyn Row) {}

    fn done(&mut self, plan: usize, outcome: Result<Outcome>) {
        match outcome {
            Ok(_) | Err(Error::Cancelled) => {}
            Err(error) => self.0.push((plan, error)),
        }
    }

    fn keep(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn reset(&mut self) {
        self.0.clear();
    }
}
