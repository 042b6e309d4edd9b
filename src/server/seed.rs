//! Fills an empty store with the application's seed, all of it or nothing.

use crate::app::{App, Rows, SeedFile, SeedRecord};
use crate::engine::arguments::named_fields;
use crate::engine::{
    Answer, Done, Engine, ListAct, OnList, Operation, Outcome, Request, Row, Selection, answer_as,
};
use crate::error::{Error, Result};
use crate::model::{FieldId, Kind, Model, TypeId, Value};

/// Loads every record and every value of a plain list; the message of a failure names file and line.
pub async fn load(engine: &Engine, app: &App) -> Result<(), String> {
    let mut operations = Vec::new();
    let mut places = Vec::new();
    for (record, file) in in_order(engine.model(), app)? {
        let Rows::Records(rows) = &file.rows else { continue };
        for row in rows {
            let place = format!("{}:{}", file.name, row.line);
            let operation = creation(engine.model(), record, row);
            operations.push(Ok(operation.map_err(|error| format!("{place}: {error}"))?));
            places.push(place);
        }
    }
    for file in &app.seed.files {
        let Rows::Texts(values) = &file.rows else { continue };
        for (index, value) in values.iter().enumerate() {
            operations.push(Ok(addition(&file.collection, value)));
            places.push(format!("{}: value {index}", file.name));
        }
    }
    if operations.is_empty() {
        return Ok(());
    }
    let request = Request { atomic: true, ..Request::new(Box::new(FirstFailure(None))) };
    let done = engine.run(operations, request).await.map_err(|error| format!("seed: {error}"))?;
    match done {
        Done::Answered(answer) => match answer_as::<FirstFailure>(answer).map(|answer| answer.0) {
            Ok(None) => Ok(()),
            Ok(Some((number, error))) => Err(format!("{}: {error}", places[number])),
            Err(error) => Err(error.to_string()),
        },
        Done::Replayed(_) => Ok(()),
    }
}

/// The seed files with their types, a referenced type before those that refer to it.
fn in_order<'a>(model: &Model, app: &'a App) -> Result<Vec<(TypeId, &'a SeedFile)>, String> {
    let mut waiting = Vec::new();
    for file in &app.seed.files {
        match (model.record_at(&file.collection), &file.rows) {
            (Some(record), _) => waiting.push((record, file)),
            (None, Rows::Texts(_)) => {}
            (None, Rows::Records(_)) => {
                return Err(format!("{}: there is no collection `{}`", file.name, file.collection));
            }
        }
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

/// Remembers the first operation that failed; the others of an undone request count as cancelled.
struct FirstFailure(Option<(usize, Error)>);

impl Answer for FirstFailure {
    fn row(&mut self, _plan: usize, _row: &dyn Row) {}

    fn done(&mut self, plan: usize, outcome: Result<Outcome>) {
        let told = matches!(&self.0, Some((_, known)) if !matches!(known, Error::Cancelled));
        if let (false, Err(error)) = (told, outcome) {
            self.0 = Some((plan, error));
        }
    }

    fn keep(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn reset(&mut self) {
        self.0 = None;
    }
}
