//! Exports all resources or one, from one snapshot, writing rows while they are read.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use trefoil_engine::{
    CountMode, Engine, EngineRequest, ListSlice, Listing, Operation, Outcome, PreparedSelection, Row, RowSink,
};
use trefoil_model::error::{Error, Result};
use trefoil_model::{CellValue, Model};

use crate::export_target::{ExportOutput, ExportTarget};
use crate::progress_line::{ProgressLine, ProgressTotal};
use crate::row_encoder::RowEncoder;
use crate::{DataFormat, DataResource, ResourceCatalog};

/// The buffer is written when it reaches this size.
const WRITE_CHUNK: usize = 1 << 16;

/// The resources to export, their format and target.
pub struct ExportRequest {
    pub resources: Vec<DataResource>,
    pub format: DataFormat,
    pub target: ExportTarget,
    /// Several resources in one stream: each line names its resource.
    pub is_stream: bool,
}

/// Runs an export; returns a summary or an error of one line.
pub async fn run(
    engine: &Engine,
    catalog: &ResourceCatalog,
    request: ExportRequest,
) -> Result<String, String> {
    let ExportRequest { resources, format, target, is_stream } = request;
    let output = ExportOutput::new(target)?;
    let display_name = output.display_name.clone();
    let parts: Vec<ExportPart> =
        resources.iter().map(|resource| ExportPart::new(catalog, resource, format, is_stream)).collect();
    let operations: Vec<_> = parts.iter().map(|part| Ok(part.encoder.read_operation())).collect();
    let mut progress = ProgressLine::new(ProgressTotal::Unknown);
    if progress.is_shown() {
        progress = ProgressLine::new(count_rows(engine, &resources).await);
    }
    let model = catalog.model.clone();
    let state =
        ExportState { model, parts, current_part: None, output, buffer: Vec::new(), progress, failure: None };
    let sink = ExportSink { state: Arc::new(Mutex::new(state)), failure_signal: Arc::default() };
    let (shared_state, failure_signal) = (sink.state.clone(), sink.failure_signal.clone());
    let read = tokio::select! {
        read = engine.run(operations, EngineRequest::new(Box::new(sink))) => read.map(drop),
        () = failure_signal.notified() => Ok(()),
    };
    let mut state = shared_state.lock();
    state.progress.clear();
    let failure = match (state.failure.take(), read) {
        (Some(failure), _) => Some(failure),
        (None, Err(error)) => Some(ExportError::Message(error_text(error))),
        (None, Ok(())) => state.output.finish().err().map(|error| state.io_failure(&error)),
    };
    // The store may still hold the sink, so the output is closed here.
    state.output.abandon();
    match failure {
        Some(ExportError::ReaderClosed) => Ok(String::new()),
        Some(ExportError::Message(message)) => Err(message),
        None => Ok(format!("exported {} to {display_name}", state.progress.summary())),
    }
}

/// The full text of an error with its cause, since only the user of the command sees it.
pub fn error_text(error: Error) -> String {
    error.full_text()
}

/// One resource being exported.
struct ExportPart {
    path: String,
    file: String,
    encoder: RowEncoder,
}

impl ExportPart {
    fn new(
        catalog: &ResourceCatalog,
        resource: &DataResource,
        format: DataFormat,
        is_stream: bool,
    ) -> ExportPart {
        let path = catalog.path(resource).to_owned();
        let file = format!("{}.{}", catalog.file_name(resource), format.extension());
        let encoder = RowEncoder::new(&catalog.model, resource, format);
        let encoder = if is_stream { encoder.with_envelope(&path) } else { encoder };
        ExportPart { path, file, encoder }
    }
}

enum ExportError {
    /// The reader of the pipe has closed it.
    ReaderClosed,
    Message(String),
}

/// Receives the rows. The state is shared with [`run`], which reports a failure before the store has finished.
struct ExportSink {
    state: Arc<Mutex<ExportState>>,
    failure_signal: Arc<Notify>,
}

struct ExportState {
    model: Arc<Model>,
    parts: Vec<ExportPart>,
    /// The part that is being written.
    current_part: Option<usize>,
    output: ExportOutput,
    buffer: Vec<u8>,
    progress: ProgressLine,
    failure: Option<ExportError>,
}

impl ExportState {
    fn row(&mut self, plan: usize, row: &dyn Row) -> Result<(), ExportError> {
        self.begin(plan)?;
        let part = &mut self.parts[plan];
        if let Err(unreadable) = part.encoder.write_row(&self.model, row, &mut self.buffer) {
            return Err(ExportError::Message(unreadable_row_message(&part.path, &unreadable.field, row)));
        }
        self.progress.add(1);
        if self.buffer.len() >= WRITE_CHUNK { self.write() } else { Ok(()) }
    }

    fn begin(&mut self, plan: usize) -> Result<(), ExportError> {
        if self.current_part == Some(plan) {
            return Ok(());
        }
        self.current_part = Some(plan);
        self.output.begin_part(&self.parts[plan].file).map_err(|error| self.io_failure(&error))?;
        self.parts[plan].encoder.write_header(&self.model, &mut self.buffer);
        Ok(())
    }

    fn write(&mut self) -> Result<(), ExportError> {
        let written = self.output.write(&self.buffer);
        self.buffer.clear();
        written.map_err(|error| self.io_failure(&error))
    }

    fn done(&mut self, plan: usize, outcome: Result<Outcome>) -> Result<(), ExportError> {
        match outcome {
            // A declared list that was never written to does not exist yet.
            Ok(_) | Err(Error::NotFound { .. }) => {}
            Err(error) => {
                return Err(ExportError::Message(format!(
                    "{}: {}",
                    self.parts[plan].path,
                    error_text(error)
                )));
            }
        }
        // An empty resource gets its file too.
        self.begin(plan)?;
        self.write()?;
        self.output.end_part().map_err(|error| self.io_failure(&error))
    }

    fn io_failure(&self, error: &io::Error) -> ExportError {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return ExportError::ReaderClosed;
        }
        ExportError::Message(format!("{}: {error}", self.output.display_name))
    }
}

fn unreadable_row_message(path: &str, field: &str, row: &dyn Row) -> String {
    // The id comes first in every export.
    let location = match row.cell(0) {
        CellValue::Int(id) => format!("{path}/{id}"),
        CellValue::Null | CellValue::Real(_) | CellValue::Text(_) | CellValue::Unreadable => path.to_owned(),
    };
    format!("{location}: invalid value in `{field}`, written by another program; correct it first")
}

impl ExportSink {
    fn run_unless_failed(&self, work: impl FnOnce(&mut ExportState) -> Result<(), ExportError>) {
        let mut state = self.state.lock();
        if state.failure.is_some() {
            return;
        }
        if let Err(failure) = work(&mut state) {
            state.failure = Some(failure);
            self.failure_signal.notify_one();
        }
    }
}

impl RowSink for ExportSink {
    fn row(&mut self, plan: usize, row: &dyn Row) {
        self.run_unless_failed(|state| state.row(plan, row));
    }

    fn finish_plan(&mut self, plan: usize, outcome: Result<Outcome>) {
        self.run_unless_failed(|state| state.done(plan, outcome));
    }

    fn bytes_to_replay(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// Rows that are already written cannot be taken back.
    fn reset(&mut self) {
        self.run_unless_failed(|state| match state.current_part {
            None => Ok(()),
            Some(_) => {
                let message = "the connection to the database was lost during the export; run it again";
                Err(ExportError::Message(message.to_owned()))
            }
        });
    }
}

/// The number of rows, if it can be counted.
async fn count_rows(engine: &Engine, resources: &[DataResource]) -> ProgressTotal {
    let mut rows = 0;
    for resource in resources {
        let DataResource::Records(record) = resource else { continue };
        let slice = ListSlice::Page { page: 1, size: 1 };
        let listing = Listing { count: CountMode::Exact, slice, ..Listing::default() };
        let selection: Arc<PreparedSelection> = Arc::default();
        let operation = Operation::List { record: *record, listing, selection: selection.clone() };
        match engine.collect(operation, selection).await.map(|found| found.outcome) {
            Ok(Some(Ok(Outcome::Listed { total: Some(total), .. }))) => rows += total,
            Ok(_) | Err(_) => return ProgressTotal::Unknown,
        }
    }
    ProgressTotal::Rows(rows)
}
