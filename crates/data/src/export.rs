//! Everything of a store, or one resource, read in one snapshot and written while it is read.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::export_target::{Output, Target};
use crate::progress_line::{Progress, Whole};
use crate::row_encoder::Encoder;
use crate::{Format, Inventory, Resource};
use trefoil_engine::{Answer, Count, Engine, Listing, Operation, Outcome, Request, Row, Selection, Slice};
use trefoil_model::error::{Error, Result};
use trefoil_model::{Cell, Model};

/// How much is gathered before it is written.
const CHUNK: usize = 1 << 16;

/// What is exported.
pub struct Wanted {
    pub resources: Vec<Resource>,
    pub format: Format,
    pub target: Target,
    /// Several resources in one stream: each line names its own.
    pub is_stream: bool,
}

/// Writes it all; the answer is a line that says what was done, the error one that says why not.
pub async fn run(engine: &Engine, inventory: &Inventory, wanted: Wanted) -> Result<String, String> {
    let Wanted { resources, format, target, is_stream } = wanted;
    let output = Output::new(target)?;
    let shown = output.shown.clone();
    let parts: Vec<Part> = resources.iter().map(|one| Part::new(inventory, one, format, is_stream)).collect();
    let operations: Vec<_> = parts.iter().map(|part| Ok(part.encoder.operation())).collect();
    let mut progress = Progress::new(Whole::Unknown);
    if progress.is_shown() {
        progress = Progress::new(count(engine, &resources).await);
    }
    let model = inventory.model.clone();
    let state = State { model, parts, begun: None, output, buffer: Vec::new(), progress, failure: None };
    let writing = Writing { state: Arc::new(Mutex::new(state)), alarm: Arc::default() };
    let (shared, alarm) = (writing.state.clone(), writing.alarm.clone());
    let read = tokio::select! {
        read = engine.run(operations, Request::new(Box::new(writing))) => read.map(drop),
        () = alarm.notified() => Ok(()),
    };
    let mut state = locked(&shared);
    state.progress.clear();
    let failed = match (state.failure.take(), read) {
        (Some(failed), _) => Some(failed),
        (None, Err(error)) => Some(Failed::Because(told(error))),
        (None, Ok(())) => state.output.finish().err().map(|error| state.failed(&error)),
    };
    // The store may still have hold of it.
    state.output.give_up();
    match failed {
        Some(Failed::NobodyReads) => Ok(String::new()),
        Some(Failed::Because(why)) => Err(why),
        None => Ok(format!("exported {} to {shown}", state.progress.summary())),
    }
}

/// Only whoever runs the command sees it, so the cause is told.
pub fn told(error: Error) -> String {
    error.full_text()
}

/// One resource on its way.
struct Part {
    path: String,
    file: String,
    encoder: Encoder,
}

impl Part {
    fn new(inventory: &Inventory, resource: &Resource, format: Format, is_stream: bool) -> Part {
        let path = inventory.path(resource).to_owned();
        let file = format!("{}.{}", inventory.file_name(resource), format.extension());
        let encoder = Encoder::new(&inventory.model, resource, format);
        let encoder = if is_stream { encoder.within_stream(&path) } else { encoder };
        Part { path, file, encoder }
    }
}

enum Failed {
    /// Whoever reads has seen enough.
    NobodyReads,
    Because(String),
}

/// Takes the rows. It is shared with whoever waits, because a failure is told before the store comes to its end.
struct Writing {
    state: Arc<Mutex<State>>,
    alarm: Arc<Notify>,
}

struct State {
    model: Arc<Model>,
    parts: Vec<Part>,
    /// The part that is being written.
    begun: Option<usize>,
    output: Output,
    buffer: Vec<u8>,
    progress: Progress,
    failure: Option<Failed>,
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn row(&mut self, plan: usize, row: &dyn Row) -> Result<(), Failed> {
        self.begin(plan)?;
        let part = &mut self.parts[plan];
        if let Err(unreadable) = part.encoder.row(&self.model, row, &mut self.buffer) {
            return Err(Failed::Because(cannot_read(&part.path, &unreadable.field, row)));
        }
        self.progress.add(1);
        if self.buffer.len() >= CHUNK { self.write() } else { Ok(()) }
    }

    fn begin(&mut self, plan: usize) -> Result<(), Failed> {
        if self.begun == Some(plan) {
            return Ok(());
        }
        self.begun = Some(plan);
        self.output.begin(&self.parts[plan].file).map_err(|error| self.failed(&error))?;
        self.parts[plan].encoder.head(&self.model, &mut self.buffer);
        Ok(())
    }

    fn write(&mut self) -> Result<(), Failed> {
        let written = self.output.write(&self.buffer);
        self.buffer.clear();
        written.map_err(|error| self.failed(&error))
    }

    fn done(&mut self, plan: usize, outcome: Result<Outcome>) -> Result<(), Failed> {
        match outcome {
            // Declared, and not yet made: nobody ever put anything into it.
            Ok(_) | Err(Error::NotFound { .. }) => {}
            Err(error) => {
                return Err(Failed::Because(format!("{}: {}", self.parts[plan].path, told(error))));
            }
        }
        // An empty resource has its file too.
        self.begin(plan)?;
        self.write()?;
        self.output.end().map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> Failed {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failed::NobodyReads;
        }
        Failed::Because(format!("{}: {error}", self.output.shown))
    }
}

fn cannot_read(path: &str, field: &str, row: &dyn Row) -> String {
    // The id comes first in every export.
    let which = match row.cell(0) {
        Cell::Int(id) => format!("{path}/{id}"),
        Cell::Null | Cell::Real(_) | Cell::Text(_) | Cell::Unreadable => path.to_owned(),
    };
    format!(
        "{which}: another program has written something into `{field}` that the field cannot hold; mend it first"
    )
}

impl Writing {
    fn with(&self, work: impl FnOnce(&mut State) -> Result<(), Failed>) {
        let mut state = locked(&self.state);
        if state.failure.is_some() {
            return;
        }
        if let Err(failure) = work(&mut state) {
            state.failure = Some(failure);
            self.alarm.notify_one();
        }
    }
}

impl Answer for Writing {
    fn row(&mut self, plan: usize, row: &dyn Row) {
        self.with(|state| state.row(plan, row));
    }

    fn done(&mut self, plan: usize, outcome: Result<Outcome>) {
        self.with(|state| state.done(plan, outcome));
    }

    fn keep(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// What is written cannot be taken back.
    fn reset(&mut self) {
        self.with(|state| match state.begun {
            None => Ok(()),
            Some(_) => {
                let why = "the connection to the database was lost in the middle; run the export again";
                Err(Failed::Because(why.to_owned()))
            }
        });
    }
}

/// How many rows there will be, as far as it can be told quickly.
async fn count(engine: &Engine, resources: &[Resource]) -> Whole {
    let mut all = 0;
    for resource in resources {
        let Resource::Records(record) = resource else { continue };
        let slice = Slice::Page { page: 1, size: 1 };
        let listing = Listing { count: Count::Exact, slice, ..Listing::default() };
        let selection: Arc<Selection> = Arc::default();
        let operation = Operation::List { record: *record, listing, selection: selection.clone() };
        match engine.collect(operation, selection).await.map(|found| found.outcome) {
            Ok(Some(Ok(Outcome::Listed { total: Some(total), .. }))) => all += total,
            Ok(_) | Err(_) => return Whole::Unknown,
        }
    }
    Whole::Rows(all)
}
