//! Imports rows into a store, all of them or none, and reports the location of each row that does not fit.
//!
//! A thread reads and parses; batches of rows go into one bulk write. Records with dangling references are remembered
//! with their locations and checked again at the end, so that rows may come in any order.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use trefoil_engine::{
    BulkStep, BulkWrite, Engine, ImportedRecord, Operation, Outcome, PlainListAction, PlainListOperation,
    PreparedSelection, Selection,
};
use trefoil_model::error::Error;
use trefoil_model::values::digit_grouping::group_thousands;
use trefoil_model::{FieldId, RecordId, RecordTypeId};

use crate::export::error_text;
use crate::import_source::ImportSource;
use crate::progress_line::{ProgressLine, ProgressTotal};
use crate::row_errors::{RowErrors, RowLocation};
use crate::row_parser::{ParsedRow, ReadError, RowContent};
use crate::source_reader::{self, MAX_BATCH_ROWS, SourceBatch};
use crate::upsert::UpsertKey;
use crate::{DataResource, ResourceCatalog};

/// The limit of remembered records with dangling references: 32 MB.
const MAX_DANGLING_RECORDS: usize = 1 << 20;
/// The limit of passes that each leave out rows, because other rows refer to rows left out before.
const MAX_PASSES: usize = 50;

pub struct ImportOptions {
    /// A row whose value of this field exists already updates that record.
    pub upsert_field: Option<String>,
    /// Leave out rows that do not fit.
    pub skip_bad: bool,
    pub max_errors: usize,
    pub max_row_bytes: usize,
}

/// The result of a successful import.
pub struct ImportReport {
    pub summary: String,
    /// One line per row left out, up to `max_errors`.
    pub errors: Vec<String>,
    /// What was assumed about the rows.
    pub notes: Vec<String>,
}

/// Runs an import. The error has one line per mistake, and then the store is unchanged.
pub async fn run(
    engine: &Engine,
    catalog: &ResourceCatalog,
    mut sources: Vec<ImportSource>,
    options: ImportOptions,
) -> Result<ImportReport, Vec<String>> {
    if options.skip_bad {
        for source in &mut sources {
            source.make_rereadable().map_err(|error| vec![format!("{}: {error}", source.display_name)])?;
        }
    }
    let job = ImportJob { engine, catalog, sources: Arc::new(sources), options };
    let mut skipped_rows = BTreeMap::new();
    for _ in 0..MAX_PASSES {
        let mut pass = ImportPass::new(&job, &skipped_rows);
        let result = pass.run().await;
        pass.progress.clear();
        match result? {
            PassResult::Committed => return Ok(pass.report()),
            PassResult::RetryWithout(more) => skipped_rows.extend(more),
        }
    }
    Err(vec![format!(
        "nothing was imported: after {MAX_PASSES} passes, some rows still refer to skipped rows"
    )])
}

/// Checks that a field can identify records of the resource.
pub fn check_upsert_field(catalog: &ResourceCatalog, path: &str, field: &str) -> Result<(), String> {
    match catalog.find(path)? {
        DataResource::Records(record) => UpsertKey::for_field(&catalog.model, record, field).map(drop),
        DataResource::List(name) => {
            Err(format!("--by {field}: `{name}` is a plain list, whose values have no fields"))
        }
    }
}

struct ImportJob<'a> {
    engine: &'a Engine,
    catalog: &'a ResourceCatalog,
    sources: Arc<Vec<ImportSource>>,
    options: ImportOptions,
}

enum PassResult {
    Committed,
    /// Nothing was written: these rows have dangling references and are to be left out in the next pass.
    RetryWithout(BTreeMap<RowLocation, String>),
}

/// One reading of all sources.
struct ImportPass<'a> {
    job: &'a ImportJob<'a>,
    /// Rows that are left out, with the reason.
    skipped_rows: &'a BTreeMap<RowLocation, String>,
    row_errors: RowErrors,
    progress: ProgressLine,
    /// Records with references to records that do not exist yet.
    dangling_records: Vec<(RecordTypeId, RecordId, RowLocation)>,
    /// Ids of rejected records, so that rows referencing them are not reported too. Empty with `--skip-bad`, where the
    /// set could be unbounded.
    rejected_ids: HashSet<(RecordTypeId, RecordId)>,
    /// The number of imported rows by resource.
    counts: BTreeMap<String, u64>,
    /// Lists already checked for existing values.
    checked_lists: Vec<Arc<str>>,
    /// Nothing is read of imported records; a selection for each record type.
    empty_selections: Vec<Arc<PreparedSelection>>,
    bytes_read: Arc<AtomicU64>,
    /// The first row with a time that was taken as UTC.
    assumed_utc: Option<RowLocation>,
}

impl<'a> ImportPass<'a> {
    fn new(job: &'a ImportJob<'a>, skipped_rows: &'a BTreeMap<RowLocation, String>) -> ImportPass<'a> {
        let bytes_read = Arc::new(AtomicU64::new(0));
        let sizes: Option<Vec<u64>> = job.sources.iter().map(ImportSource::size).collect();
        let total = sizes.map_or(ProgressTotal::Unknown, |sizes| {
            ProgressTotal::Bytes(sizes.iter().sum(), bytes_read.clone())
        });
        let mut row_errors = RowErrors::new(job.options.max_errors);
        skipped_rows.iter().for_each(|(location, reason)| row_errors.add(*location, reason.clone()));
        ImportPass {
            job,
            skipped_rows,
            row_errors,
            progress: ProgressLine::new(total),
            dangling_records: Vec::new(),
            rejected_ids: HashSet::new(),
            counts: BTreeMap::new(),
            checked_lists: Vec::new(),
            empty_selections: job.engine.model().records.iter().map(|_| Arc::default()).collect(),
            bytes_read,
            assumed_utc: None,
        }
    }

    async fn run(&mut self) -> Result<PassResult, Vec<String>> {
        let skip_bad = self.job.options.skip_bad;
        let mut bulk_write =
            self.job.engine.begin_bulk_write().await.map_err(|error| vec![error_text(error)])?;
        let ImportJob { catalog, sources, options, .. } = self.job;
        let mut batches =
            source_reader::start_reading(catalog, sources, options.max_row_bytes, &self.bytes_read);
        while let Some(batch) = batches.recv().await {
            match batch {
                SourceBatch::Rows(source, rows) => self.import_batch(&mut bulk_write, source, rows).await?,
                // The rest of the file cannot be read, so nothing can be said about it.
                SourceBatch::Failed(source, ReadError { line, message }) => {
                    self.row_errors.add((source, line), message);
                    return Err(self.refusal_lines());
                }
            }
            if !skip_bad && self.row_errors.is_full() {
                return Err(self.refusal_lines());
            }
        }
        let dangling = self.find_still_dangling(&mut bulk_write).await?;
        if !dangling.is_empty() && skip_bad {
            return Ok(PassResult::RetryWithout(dangling));
        }
        dangling.into_iter().for_each(|(location, reason)| self.row_errors.add(location, reason));
        if !skip_bad && self.row_errors.has_any() {
            return Err(self.refusal_lines());
        }
        bulk_write.commit().await.map_err(|error| {
            let is_unknown = matches!(error, Error::OutcomeUnknown);
            let outcome =
                if is_unknown { "check the data before you import it again" } else { "nothing was imported" };
            vec![format!("{outcome}: {}", error_text(error))]
        })?;
        Ok(PassResult::Committed)
    }

    /// The messages of a failed import.
    fn refusal_lines(&self) -> Vec<String> {
        let mut lines = self.row_errors.lines_so_far(&self.job.sources);
        lines.push("nothing was imported".to_owned());
        lines
    }

    fn report(&self) -> ImportReport {
        let counts: Vec<String> =
            self.counts.iter().map(|(path, rows)| format!("{path} {}", group_thousands(*rows))).collect();
        let mut summary = format!("imported {}", self.progress.summary());
        if !counts.is_empty() {
            summary += &format!(": {}", counts.join(", "));
        }
        if self.row_errors.has_any() {
            summary += &format!("; {} skipped", group_thousands(self.row_errors.count()));
        }
        let assumed_utc = self.assumed_utc.map(|(source, line)| {
            let name = &self.job.sources[source].display_name;
            format!("{name}:{line}: times without a zone were taken as UTC, here first")
        });
        let errors = self.row_errors.all_lines(&self.job.sources);
        ImportReport { summary, errors, notes: assumed_utc.into_iter().collect() }
    }

    /// Imports one batch; all its rows are of one resource.
    async fn import_batch(
        &mut self,
        bulk_write: &mut BulkWrite<'_>,
        source: usize,
        parsed_rows: Vec<ParsedRow>,
    ) -> Result<(), Vec<String>> {
        let Some(resource) = parsed_rows.first().map(|row| row.resource.clone()) else { return Ok(()) };
        let (mut locations, mut rows) = (Vec::new(), Vec::new());
        for row in parsed_rows {
            let location = (source, row.line);
            match row.content {
                _ if self.skipped_rows.contains_key(&location) => {}
                Ok(content) => {
                    self.assumed_utc = self.assumed_utc.or(row.assumes_utc.then_some(location));
                    locations.push(location);
                    rows.push(content);
                }
                Err(reason) => self.row_errors.add(location, reason),
            }
        }
        match resource {
            None => Ok(()),
            Some(DataResource::List(name)) => self.append_to_list(bulk_write, &name, &locations, rows).await,
            Some(DataResource::Records(record)) => {
                self.import_records(bulk_write, record, &locations, rows).await
            }
        }
        .map_err(|reason| vec![format!("nothing was imported: {reason}")])
    }

    async fn append_to_list(
        &mut self,
        bulk_write: &mut BulkWrite<'_>,
        name: &Arc<str>,
        locations: &[RowLocation],
        rows: Vec<RowContent>,
    ) -> Result<(), String> {
        if self.job.options.upsert_field.is_some() && !self.checked_lists.contains(name) {
            self.checked_lists.push(name.clone());
            refuse_filled_list(bulk_write, name).await?;
        }
        let value = |content| match content {
            RowContent::Value(value) => value,
            RowContent::Record { .. } => String::new(),
        };
        let append = |value| {
            let action = PlainListAction::Append { value, expected: None };
            BulkStep::Run(Operation::PlainList(PlainListOperation { list: name.clone(), action }))
        };
        let steps: Vec<BulkStep> = rows.into_iter().map(value).map(append).collect();
        let outcomes = bulk_write.run(steps).await.map_err(error_text)?;
        let mut imported = 0;
        for (location, outcome) in locations.iter().zip(outcomes) {
            match outcome {
                Ok(_) => imported += 1,
                Err(error) => self.row_errors.add(*location, error_text(error)),
            }
        }
        self.count_rows(name, imported);
        Ok(())
    }

    async fn import_records(
        &mut self,
        bulk_write: &mut BulkWrite<'_>,
        record: RecordTypeId,
        mut locations: &[RowLocation],
        rows: Vec<RowContent>,
    ) -> Result<(), String> {
        let model = &self.job.catalog.model;
        let Some(field) = &self.job.options.upsert_field else {
            let steps = rows
                .into_iter()
                .map(|content| Ok(BulkStep::Import(self.import_record(record, content))))
                .collect();
            return self.run_steps(bulk_write, record, locations, steps).await;
        };
        let key = UpsertKey::for_field(model, record, field)?;
        let mut rows = rows.into_iter();
        while !rows.as_slice().is_empty() {
            let remaining: Vec<&RowContent> = rows.as_slice().iter().collect();
            let count = key.count_distinct(model, &remaining);
            let existing = key.find_existing(model, bulk_write, &remaining[..count]).await?;
            let records = rows.by_ref().take(count).map(|content| self.import_record(record, content));
            let steps = records.map(|row| key.bulk_step(model, &existing, row)).collect();
            self.run_steps(bulk_write, record, &locations[..count], steps).await?;
            locations = &locations[count..];
        }
        Ok(())
    }

    fn import_record(&self, record: RecordTypeId, content: RowContent) -> ImportedRecord {
        let (id, fields) = match content {
            RowContent::Record { id, fields } => (id, fields),
            RowContent::Value(_) => (None, Vec::new()),
        };
        ImportedRecord { record, id, fields, selection: self.empty_selections[record.0].clone() }
    }

    async fn run_steps(
        &mut self,
        bulk_write: &mut BulkWrite<'_>,
        record: RecordTypeId,
        locations: &[RowLocation],
        steps: Vec<Result<BulkStep, String>>,
    ) -> Result<(), String> {
        let (mut ready_locations, mut ids, mut ready) = (Vec::new(), Vec::new(), Vec::new());
        for (location, step) in locations.iter().zip(steps) {
            match step {
                Ok(step) => {
                    ready_locations.push(*location);
                    ids.push(chosen_id(&step));
                    ready.push(step);
                }
                Err(reason) => self.row_errors.add(*location, reason),
            }
        }
        let outcomes = bulk_write.run(ready).await.map_err(error_text)?;
        let skip_bad = self.job.options.skip_bad;
        let mut imported = Vec::new();
        for ((location, outcome), id) in ready_locations.into_iter().zip(outcomes).zip(ids) {
            match outcome {
                Ok(Outcome::Created { id, .. } | Outcome::Updated { id, .. }) => {
                    imported.push((id, location))
                }
                Ok(_) => self.row_errors.add(location, "the record was deleted during the import".to_owned()),
                Err(error) => {
                    self.rejected_ids.extend(id.filter(|_| !skip_bad).map(|id| (record, id)));
                    self.row_errors.add(location, error_text(error));
                }
            }
        }
        let path = self.job.catalog.model.record(record).path.clone();
        self.count_rows(&path, imported.len() as u64);
        self.remember_dangling(bulk_write, record, &imported).await
    }

    fn count_rows(&mut self, path: &str, rows: u64) {
        self.progress.add(rows);
        *self.counts.entry(path.to_owned()).or_default() += rows;
    }

    async fn remember_dangling(
        &mut self,
        bulk_write: &mut BulkWrite<'_>,
        record: RecordTypeId,
        imported: &[(RecordId, RowLocation)],
    ) -> Result<(), String> {
        if imported.is_empty() || !self.job.catalog.model.has_outgoing_relations(record) {
            return Ok(());
        }
        let ids = imported.iter().map(|(id, _)| id.clone()).collect();
        let references = bulk_write.dangling_references(record, ids).await.map_err(error_text)?;
        let dangling: HashSet<&RecordId> = references.iter().map(|reference| &reference.id).collect();
        let found = imported.iter().filter(|(id, _)| dangling.contains(id));
        self.dangling_records.extend(found.map(|(id, location)| (record, id.clone(), *location)));
        if self.dangling_records.len() > MAX_DANGLING_RECORDS {
            return Err(format!(
                "more than {MAX_DANGLING_RECORDS} records refer to records that were not imported yet; import those first, or all files together as a folder"
            ));
        }
        Ok(())
    }

    /// The rows whose references still dangle after everything is imported.
    async fn find_still_dangling(
        &mut self,
        bulk_write: &mut BulkWrite<'_>,
    ) -> Result<BTreeMap<RowLocation, String>, Vec<String>> {
        let mut found = BTreeMap::new();
        let mut dangling = std::mem::take(&mut self.dangling_records);
        dangling.sort_unstable();
        for batch in
            dangling.chunk_by(|one, other| one.0 == other.0).flat_map(|same| same.chunks(MAX_BATCH_ROWS))
        {
            let record = batch[0].0;
            let ids: BTreeSet<&RecordId> = batch.iter().map(|(_, id, _)| id).collect();
            let references = bulk_write.dangling_references(record, ids.into_iter().cloned().collect()).await;
            for reference in references.map_err(|error| vec![error_text(error)])? {
                let (target, reason) = reference.describe(&self.job.catalog.model, record);
                let is_known = self.rejected_ids.contains(&(target, reference.missing_id.clone()));
                for (_, _, location) in batch.iter().filter(|(_, id, _)| *id == reference.id && !is_known) {
                    found.entry(*location).or_insert_with(|| reason.clone());
                }
            }
        }
        Ok(found)
    }
}

/// The id that a step sets or changes.
fn chosen_id(step: &BulkStep) -> Option<RecordId> {
    match step {
        BulkStep::Import(record) => record.id.clone(),
        BulkStep::Run(_) => None,
    }
}

/// Values of a list have no ids, so that importing them again would duplicate them.
async fn refuse_filled_list(bulk_write: &mut BulkWrite<'_>, name: &Arc<str>) -> Result<(), String> {
    let action = PlainListAction::Read { from: None, max_bytes: 1 };
    let selection = PreparedSelection::new(Selection::new(vec![FieldId(0)], Vec::new()));
    let operation = Operation::PlainList(PlainListOperation { list: name.clone(), action });
    match bulk_write.read(operation, selection).await {
        Ok(found) if found.is_empty() => Ok(()),
        Ok(_) => Err(format!(
            "the plain list `{name}` already has values, which --by would duplicate; omit its file"
        )),
        Err(Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error_text(error)),
    }
}
