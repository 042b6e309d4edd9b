//! Brings rows into a store, all of them or none, and names the place of each that does not fit.
//!
//! A thread reads and parses; batches of rows go into one long write. Records whose references lead to nothing yet are
//! remembered with their places and looked at again in the end, so rows may come in any order.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::export::error_text;
use crate::import_source::ImportSource;
use crate::progress_line::{ProgressLine, ProgressTotal};
use crate::row_errors::RowErrors;
use crate::row_parser::{ParsedRow, ReadError, RowContent};
use crate::source_reader;
use crate::source_reader::{MAX_BATCH_ROWS, SourceBatch};
use crate::upsert::UpsertKey;
use crate::{DataResource, ResourceCatalog};
use trefoil_engine::{
    BulkStep, BulkWrite, Engine, ImportRecord, Operation, Outcome, PlainListAction, PlainListOperation,
    Selection,
};
use trefoil_model::error::Error;
use trefoil_model::values::thousands::group_thousands;
use trefoil_model::{FieldId, RecordTypeId};

/// Of so many records with references into the void the places are remembered: 32 MB.
const MAX_DANGLING_RECORDS: usize = 1 << 20;
/// So often rows are left out and all is read again, because others refer to what was left out.
const MAX_PASSES: usize = 50;

pub struct ImportOptions {
    /// Rows with a value of this field that is there already change that record.
    pub upsert_field: Option<String>,
    /// Rows that do not fit are left out.
    pub skip_bad: bool,
    pub max_errors: usize,
    pub max_row_bytes: usize,
}

/// What came of an import that succeeded.
pub struct ImportReport {
    pub summary: String,
    /// A line for each row that was left out, as far as they are told.
    pub errors: Vec<String>,
}

/// A row: the number of its source, and its line.
pub type RowLocation = (usize, u64);

/// The error is a line for each thing that is wrong; then the store is as it was.
pub async fn run(
    engine: &Engine,
    inventory: &ResourceCatalog,
    mut sources: Vec<ImportSource>,
    options: ImportOptions,
) -> Result<ImportReport, Vec<String>> {
    if options.skip_bad {
        for source in &mut sources {
            source.make_rereadable().map_err(|error| vec![format!("{}: {error}", source.display_name)])?;
        }
    }
    let import = ImportJob { engine, inventory, sources: Arc::new(sources), options };
    let mut without = BTreeMap::new();
    for _ in 0..MAX_PASSES {
        let mut pass = ImportPass::new(&import, &without);
        let ended = pass.run().await;
        pass.progress.clear();
        match ended? {
            PassResult::Committed => return Ok(pass.report()),
            PassResult::RetryWithout(more) => without.extend(more),
        }
    }
    Err(vec![format!(
        "nothing was imported: after {MAX_PASSES} passes there are still rows that refer to rows that were left out"
    )])
}

/// Whether records of the resource can be told apart by a field; the error is a line for whoever named them.
pub fn check_upsert_field(inventory: &ResourceCatalog, path: &str, by: &str) -> Result<(), String> {
    match inventory.find(path)? {
        DataResource::Records(record) => UpsertKey::for_field(&inventory.model, record, by).map(drop),
        DataResource::List(name) => {
            Err(format!("--by {by}: `{name}` is a plain list, its values have no fields"))
        }
    }
}

struct ImportJob<'a> {
    engine: &'a Engine,
    inventory: &'a ResourceCatalog,
    sources: Arc<Vec<ImportSource>>,
    options: ImportOptions,
}

enum PassResult {
    Committed,
    /// Nothing was written: these rows refer to nothing and are to be left out next time.
    RetryWithout(BTreeMap<RowLocation, String>),
}

/// One reading of all sources.
struct ImportPass<'a> {
    import: &'a ImportJob<'a>,
    /// Rows that are left out, and why.
    skipped_rows: &'a BTreeMap<RowLocation, String>,
    row_errors: RowErrors,
    progress: ProgressLine,
    /// Records that refer to what is not there yet.
    dangling_records: Vec<(RecordTypeId, i64, RowLocation)>,
    /// Ids of records that did not fit: who refers to them is not to blame. Of no use, and not kept, where bad rows are
    /// left out, which may be any number.
    rejected_ids: HashSet<(RecordTypeId, i64)>,
    /// How many rows each resource got.
    counts: BTreeMap<String, u64>,
    /// Lists that were looked at.
    checked_lists: Vec<Arc<str>>,
    empty_selection: Arc<Selection>,
    bytes_read: Arc<AtomicU64>,
}

impl<'a> ImportPass<'a> {
    fn new(import: &'a ImportJob<'a>, without: &'a BTreeMap<RowLocation, String>) -> ImportPass<'a> {
        let read = Arc::new(AtomicU64::new(0));
        let sizes: Option<Vec<u64>> = import.sources.iter().map(ImportSource::size).collect();
        let whole = sizes
            .map_or(ProgressTotal::Unknown, |sizes| ProgressTotal::Bytes(sizes.iter().sum(), read.clone()));
        let mut complaints = RowErrors::new(import.options.max_errors);
        without.iter().for_each(|(place, why)| complaints.add(*place, why.clone()));
        ImportPass {
            import,
            skipped_rows: without,
            row_errors: complaints,
            progress: ProgressLine::new(whole),
            dangling_records: Vec::new(),
            rejected_ids: HashSet::new(),
            counts: BTreeMap::new(),
            checked_lists: Vec::new(),
            empty_selection: Arc::default(),
            bytes_read: read,
        }
    }

    async fn run(&mut self) -> Result<PassResult, Vec<String>> {
        let skip_bad = self.import.options.skip_bad;
        let mut long =
            self.import.engine.begin_bulk_write().await.map_err(|error| vec![error_text(error)])?;
        let ImportJob { inventory, sources, options, .. } = self.import;
        let mut parts =
            source_reader::start_reading(inventory, sources, options.max_row_bytes, &self.bytes_read);
        while let Some(part) = parts.recv().await {
            match part {
                SourceBatch::Rows(source, entries) => self.import_batch(&mut long, source, entries).await?,
                // The rest of the file is unknown, so nothing can be said of it.
                SourceBatch::Failed(source, ReadError { line, message: why }) => {
                    self.row_errors.add((source, line), why);
                    return Err(self.refusal_lines());
                }
            }
            if !skip_bad && self.row_errors.is_full() {
                return Err(self.refusal_lines());
            }
        }
        let loose = self.find_still_dangling(&mut long).await?;
        if !loose.is_empty() && skip_bad {
            return Ok(PassResult::RetryWithout(loose));
        }
        loose.into_iter().for_each(|(place, why)| self.row_errors.add(place, why));
        if !skip_bad && self.row_errors.has_any() {
            return Err(self.refusal_lines());
        }
        long.commit().await.map_err(|error| {
            let is_unknown = matches!(error, Error::OutcomeUnknown);
            let outcome = if is_unknown { "look before you import it again" } else { "nothing was imported" };
            vec![format!("{outcome}: {}", error_text(error))]
        })?;
        Ok(PassResult::Committed)
    }

    /// What is told when all was in vain.
    fn refusal_lines(&self) -> Vec<String> {
        let mut lines = self.row_errors.lines_so_far(&self.import.sources);
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
            summary += &format!("; {} left out", group_thousands(self.row_errors.count()));
        }
        ImportReport { summary, errors: self.row_errors.all_lines(&self.import.sources) }
    }

    /// One batch, all of one resource.
    async fn import_batch(
        &mut self,
        long: &mut BulkWrite<'_>,
        source: usize,
        entries: Vec<ParsedRow>,
    ) -> Result<(), Vec<String>> {
        let Some(resource) = entries.first().map(|entry| entry.resource.clone()) else { return Ok(()) };
        let (mut places, mut rows) = (Vec::new(), Vec::new());
        for entry in entries {
            let place = (source, entry.line);
            match entry.content {
                _ if self.skipped_rows.contains_key(&place) => {}
                Ok(given) => {
                    places.push(place);
                    rows.push(given);
                }
                Err(why) => self.row_errors.add(place, why),
            }
        }
        match resource {
            None => Ok(()),
            Some(DataResource::List(name)) => self.append_to_list(long, &name, &places, rows).await,
            Some(DataResource::Records(record)) => self.import_records(long, record, &places, rows).await,
        }
        .map_err(|why| vec![format!("nothing was imported: {why}")])
    }

    async fn append_to_list(
        &mut self,
        long: &mut BulkWrite<'_>,
        name: &Arc<str>,
        places: &[RowLocation],
        rows: Vec<RowContent>,
    ) -> Result<(), String> {
        if self.import.options.upsert_field.is_some() && !self.checked_lists.contains(name) {
            self.checked_lists.push(name.clone());
            refuse_filled_list(long, name).await?;
        }
        let value = |given| match given {
            RowContent::Value(value) => value,
            RowContent::Record { .. } => String::new(),
        };
        let append = |value| {
            let act = PlainListAction::Append { value, expected: None };
            BulkStep::Run(Operation::PlainList(PlainListOperation { list: name.clone(), action: act }))
        };
        let steps: Vec<BulkStep> = rows.into_iter().map(value).map(append).collect();
        let outcomes = long.run(steps).await.map_err(error_text)?;
        let mut done = 0;
        for (place, outcome) in places.iter().zip(outcomes) {
            match outcome {
                Ok(_) => done += 1,
                Err(error) => self.row_errors.add(*place, error_text(error)),
            }
        }
        self.count_rows(name, done);
        Ok(())
    }

    async fn import_records(
        &mut self,
        long: &mut BulkWrite<'_>,
        record: RecordTypeId,
        mut places: &[RowLocation],
        rows: Vec<RowContent>,
    ) -> Result<(), String> {
        let model = &self.import.inventory.model;
        let Some(by) = &self.import.options.upsert_field else {
            let steps = rows
                .into_iter()
                .map(|given| Ok(BulkStep::Import(self.import_record(record, given))))
                .collect();
            return self.run_steps(long, record, places, steps).await;
        };
        let by = UpsertKey::for_field(model, record, by)?;
        let mut rows = rows.into_iter();
        while !rows.as_slice().is_empty() {
            let waiting: Vec<&RowContent> = rows.as_slice().iter().collect();
            let some = by.count_distinct(model, &waiting);
            let there = by.find_existing(model, long, &waiting[..some]).await?;
            let arrivals = rows.by_ref().take(some).map(|given| self.import_record(record, given));
            let steps = arrivals.map(|arrival| by.bulk_step(model, &there, arrival)).collect();
            self.run_steps(long, record, &places[..some], steps).await?;
            places = &places[some..];
        }
        Ok(())
    }

    fn import_record(&self, record: RecordTypeId, given: RowContent) -> ImportRecord {
        let (id, fields) = match given {
            RowContent::Record { id, fields } => (id, fields),
            RowContent::Value(_) => (None, Vec::new()),
        };
        ImportRecord { record, id, fields, selection: self.empty_selection.clone() }
    }

    async fn run_steps(
        &mut self,
        long: &mut BulkWrite<'_>,
        record: RecordTypeId,
        places: &[RowLocation],
        steps: Vec<Result<BulkStep, String>>,
    ) -> Result<(), String> {
        let (mut kept, mut ids, mut ready) = (Vec::new(), Vec::new(), Vec::new());
        for (place, step) in places.iter().zip(steps) {
            match step {
                Ok(step) => {
                    kept.push(*place);
                    ids.push(chosen_id(&step));
                    ready.push(step);
                }
                Err(why) => self.row_errors.add(*place, why),
            }
        }
        let outcomes = long.run(ready).await.map_err(error_text)?;
        let skip_bad = self.import.options.skip_bad;
        let mut done = Vec::new();
        for ((place, outcome), id) in kept.into_iter().zip(outcomes).zip(ids) {
            match outcome {
                Ok(Outcome::Created { id, .. } | Outcome::Updated { id, .. }) => done.push((id, place)),
                Ok(_) => self.row_errors.add(place, "the record was deleted meanwhile".to_owned()),
                Err(error) => {
                    self.rejected_ids.extend(id.filter(|_| !skip_bad).map(|id| (record, id)));
                    self.row_errors.add(place, error_text(error));
                }
            }
        }
        let path = self.import.inventory.model.record(record).path.clone();
        self.count_rows(&path, done.len() as u64);
        self.remember_dangling(long, record, &done).await
    }

    fn count_rows(&mut self, path: &str, rows: u64) {
        self.progress.add(rows);
        *self.counts.entry(path.to_owned()).or_default() += rows;
    }

    async fn remember_dangling(
        &mut self,
        long: &mut BulkWrite<'_>,
        record: RecordTypeId,
        done: &[(i64, RowLocation)],
    ) -> Result<(), String> {
        if done.is_empty() || !self.import.inventory.model.leads_on(record) {
            return Ok(());
        }
        let ids = done.iter().map(|(id, _)| *id).collect();
        let ends = long.dangling_references(record, ids).await.map_err(error_text)?;
        let loose: HashSet<i64> = ends.iter().map(|end| end.id).collect();
        let found = done.iter().filter(|(id, _)| loose.contains(id));
        self.dangling_records.extend(found.map(|(id, place)| (record, *id, *place)));
        if self.dangling_records.len() > MAX_DANGLING_RECORDS {
            return Err(format!(
                "more than {MAX_DANGLING_RECORDS} records refer to records that have not come yet; \
                 bring those in first, or together as a folder"
            ));
        }
        Ok(())
    }

    /// The rows that refer to nothing though everything is there that will be.
    async fn find_still_dangling(
        &mut self,
        long: &mut BulkWrite<'_>,
    ) -> Result<BTreeMap<RowLocation, String>, Vec<String>> {
        let mut found = BTreeMap::new();
        let mut loose = std::mem::take(&mut self.dangling_records);
        loose.sort_unstable();
        for some in loose.chunk_by(|one, other| one.0 == other.0).flat_map(|same| same.chunks(MAX_BATCH_ROWS))
        {
            let record = some[0].0;
            let ids: BTreeSet<i64> = some.iter().map(|(_, id, _)| *id).collect();
            let ends = long.dangling_references(record, ids.into_iter().collect()).await;
            for end in ends.map_err(|error| vec![error_text(error)])? {
                let (target, why) = end.told(&self.import.inventory.model, record);
                let is_known = self.rejected_ids.contains(&(target, end.missing_id));
                for (_, _, place) in some.iter().filter(|(_, id, _)| *id == end.id && !is_known) {
                    found.entry(*place).or_insert_with(|| why.clone());
                }
            }
        }
        Ok(found)
    }
}

/// The id that a step chooses or changes.
fn chosen_id(step: &BulkStep) -> Option<i64> {
    match step {
        BulkStep::Import(arrival) => arrival.id,
        BulkStep::Run(_) => None,
    }
}

/// A list has no ids to know its values by: a second time would double it.
async fn refuse_filled_list(long: &mut BulkWrite<'_>, name: &Arc<str>) -> Result<(), String> {
    let act = PlainListAction::Read { from: None, max_bytes: 1 };
    let one = Arc::new(Selection::new(vec![FieldId(0)], Vec::new()));
    match long.read(Operation::PlainList(PlainListOperation { list: name.clone(), action: act }), one).await {
        Ok(found) if found.is_empty() => Ok(()),
        Ok(_) => Err(format!(
            "the plain list `{name}` has values already, and with --by they would be there twice; leave its file out"
        )),
        Err(Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error_text(error)),
    }
}
