//! Brings rows into a store, all of them or none, and names the place of each that does not fit.
//!
//! A thread reads and parses; batches of rows go into one long write. Records whose references lead to nothing yet are
//! remembered with their places and looked at again in the end, so rows may come in any order.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::export::told;
use crate::import_source::Source;
use crate::progress_line::{Progress, Whole};
use crate::row_errors::Complaints;
use crate::row_parser::{Entry, Given, Stop};
use crate::source_reader;
use crate::source_reader::{Part, ROWS};
use crate::upsert::By;
use crate::{Inventory, Resource};
use trefoil_engine::{Arrival, Engine, ListAct, Long, OnList, Operation, Outcome, Selection, Step};
use trefoil_model::error::Error;
use trefoil_model::values::thousands::grouped;
use trefoil_model::{FieldId, TypeId};

/// Of so many records with references into the void the places are remembered: 32 MB.
const REMEMBERED: usize = 1 << 20;
/// So often rows are left out and all is read again, because others refer to what was left out.
const PASSES: usize = 50;

pub struct Options {
    /// Rows with a value of this field that is there already change that record.
    pub by: Option<String>,
    /// Rows that do not fit are left out.
    pub skip_bad: bool,
    pub most_complaints: usize,
    pub longest_row: usize,
}

/// What came of an import that succeeded.
pub struct Imported {
    pub summary: String,
    /// A line for each row that was left out, as far as they are told.
    pub complaints: Vec<String>,
}

/// A row: the number of its source, and its line.
pub type Place = (usize, u64);

/// The error is a line for each thing that is wrong; then the store is as it was.
pub async fn run(
    engine: &Engine,
    inventory: &Inventory,
    mut sources: Vec<Source>,
    options: Options,
) -> Result<Imported, Vec<String>> {
    if options.skip_bad {
        for source in &mut sources {
            source.keep().map_err(|error| vec![format!("{}: {error}", source.shown)])?;
        }
    }
    let import = Import { engine, inventory, sources: Arc::new(sources), options };
    let mut without = BTreeMap::new();
    for _ in 0..PASSES {
        let mut pass = Pass::new(&import, &without);
        let ended = pass.run().await;
        pass.progress.clear();
        match ended? {
            Ended::Committed => return Ok(pass.told()),
            Ended::Without(more) => without.extend(more),
        }
    }
    Err(vec![format!(
        "nothing was imported: after {PASSES} passes there are still rows that refer to rows that were left out"
    )])
}

/// Whether records of the resource can be told apart by a field; the error is a line for whoever named them.
pub fn check_by(inventory: &Inventory, path: &str, by: &str) -> Result<(), String> {
    match inventory.named(path)? {
        Resource::Records(record) => By::named(&inventory.model, record, by).map(drop),
        Resource::List(name) => {
            Err(format!("--by {by}: `{name}` is a plain list, its values have no fields"))
        }
    }
}

struct Import<'a> {
    engine: &'a Engine,
    inventory: &'a Inventory,
    sources: Arc<Vec<Source>>,
    options: Options,
}

enum Ended {
    Committed,
    /// Nothing was written: these rows refer to nothing and are to be left out next time.
    Without(BTreeMap<Place, String>),
}

/// One reading of all sources.
struct Pass<'a> {
    import: &'a Import<'a>,
    /// Rows that are left out, and why.
    without: &'a BTreeMap<Place, String>,
    complaints: Complaints,
    progress: Progress,
    /// Records that refer to what is not there yet.
    loose: Vec<(TypeId, i64, Place)>,
    /// Ids of records that did not fit: who refers to them is not to blame. Of no use, and not kept, where bad rows are
    /// left out, which may be any number.
    failed: HashSet<(TypeId, i64)>,
    /// How many rows each resource got.
    counts: BTreeMap<String, u64>,
    /// Lists that were looked at.
    looked: Vec<Arc<str>>,
    nothing: Arc<Selection>,
    read: Arc<AtomicU64>,
}

impl<'a> Pass<'a> {
    fn new(import: &'a Import<'a>, without: &'a BTreeMap<Place, String>) -> Pass<'a> {
        let read = Arc::new(AtomicU64::new(0));
        let sizes: Option<Vec<u64>> = import.sources.iter().map(Source::size).collect();
        let whole = sizes.map_or(Whole::Unknown, |sizes| Whole::Bytes(sizes.iter().sum(), read.clone()));
        let mut complaints = Complaints::new(import.options.most_complaints);
        without.iter().for_each(|(place, why)| complaints.add(*place, why.clone()));
        Pass {
            import,
            without,
            complaints,
            progress: Progress::new(whole),
            loose: Vec::new(),
            failed: HashSet::new(),
            counts: BTreeMap::new(),
            looked: Vec::new(),
            nothing: Arc::default(),
            read,
        }
    }

    async fn run(&mut self) -> Result<Ended, Vec<String>> {
        let skip_bad = self.import.options.skip_bad;
        let mut long = self.import.engine.begin().await.map_err(|error| vec![told(error)])?;
        let Import { inventory, sources, options, .. } = self.import;
        let mut parts = source_reader::start(inventory, sources, options.longest_row, &self.read);
        while let Some(part) = parts.recv().await {
            match part {
                Part::Rows(source, entries) => self.take(&mut long, source, entries).await?,
                // The rest of the file is unknown, so nothing can be said of it.
                Part::Stop(source, Stop { line, why }) => {
                    self.complaints.add((source, line), why);
                    return Err(self.refusal());
                }
            }
            if !skip_bad && self.complaints.is_full() {
                return Err(self.refusal());
            }
        }
        let loose = self.still_loose(&mut long).await?;
        if !loose.is_empty() && skip_bad {
            return Ok(Ended::Without(loose));
        }
        loose.into_iter().for_each(|(place, why)| self.complaints.add(place, why));
        if !skip_bad && self.complaints.any() {
            return Err(self.refusal());
        }
        long.commit().await.map_err(|error| {
            let is_unknown = matches!(error, Error::OutcomeUnknown);
            let outcome = if is_unknown { "look before you import it again" } else { "nothing was imported" };
            vec![format!("{outcome}: {}", told(error))]
        })?;
        Ok(Ended::Committed)
    }

    /// What is told when all was in vain.
    fn refusal(&self) -> Vec<String> {
        let mut lines = self.complaints.so_far(&self.import.sources);
        lines.push("nothing was imported".to_owned());
        lines
    }

    fn told(&self) -> Imported {
        let counts: Vec<String> =
            self.counts.iter().map(|(path, rows)| format!("{path} {}", grouped(*rows))).collect();
        let mut summary = format!("imported {}", self.progress.summary());
        if !counts.is_empty() {
            summary += &format!(": {}", counts.join(", "));
        }
        if self.complaints.any() {
            summary += &format!("; {} left out", grouped(self.complaints.count()));
        }
        Imported { summary, complaints: self.complaints.of_all(&self.import.sources) }
    }

    /// One batch, all of one resource.
    async fn take(
        &mut self,
        long: &mut Long<'_>,
        source: usize,
        entries: Vec<Entry>,
    ) -> Result<(), Vec<String>> {
        let Some(resource) = entries.first().map(|entry| entry.resource.clone()) else { return Ok(()) };
        let (mut places, mut rows) = (Vec::new(), Vec::new());
        for entry in entries {
            let place = (source, entry.line);
            match entry.given {
                _ if self.without.contains_key(&place) => {}
                Ok(given) => {
                    places.push(place);
                    rows.push(given);
                }
                Err(why) => self.complaints.add(place, why),
            }
        }
        match resource {
            None => Ok(()),
            Some(Resource::List(name)) => self.append(long, &name, &places, rows).await,
            Some(Resource::Records(record)) => self.bring(long, record, &places, rows).await,
        }
        .map_err(|why| vec![format!("nothing was imported: {why}")])
    }

    async fn append(
        &mut self,
        long: &mut Long<'_>,
        name: &Arc<str>,
        places: &[Place],
        rows: Vec<Given>,
    ) -> Result<(), String> {
        if self.import.options.by.is_some() && !self.looked.contains(name) {
            self.looked.push(name.clone());
            refuse_filled(long, name).await?;
        }
        let value = |given| match given {
            Given::Value(value) => value,
            Given::Record { .. } => String::new(),
        };
        let append = |value| {
            let act = ListAct::Append { value, expected: None };
            Step::Do(Operation::Plain(OnList { list: name.clone(), act }))
        };
        let steps: Vec<Step> = rows.into_iter().map(value).map(append).collect();
        let outcomes = long.run(steps).await.map_err(told)?;
        let mut done = 0;
        for (place, outcome) in places.iter().zip(outcomes) {
            match outcome {
                Ok(_) => done += 1,
                Err(error) => self.complaints.add(*place, told(error)),
            }
        }
        self.count(name, done);
        Ok(())
    }

    async fn bring(
        &mut self,
        long: &mut Long<'_>,
        record: TypeId,
        mut places: &[Place],
        rows: Vec<Given>,
    ) -> Result<(), String> {
        let model = &self.import.inventory.model;
        let Some(by) = &self.import.options.by else {
            let steps = rows.into_iter().map(|given| Ok(Step::Bring(self.arrival(record, given)))).collect();
            return self.run_steps(long, record, places, steps).await;
        };
        let by = By::named(model, record, by)?;
        let mut rows = rows.into_iter();
        while !rows.as_slice().is_empty() {
            let waiting: Vec<&Given> = rows.as_slice().iter().collect();
            let some = by.distinct(model, &waiting);
            let there = by.find(model, long, &waiting[..some]).await?;
            let arrivals = rows.by_ref().take(some).map(|given| self.arrival(record, given));
            let steps = arrivals.map(|arrival| by.step(model, &there, arrival)).collect();
            self.run_steps(long, record, &places[..some], steps).await?;
            places = &places[some..];
        }
        Ok(())
    }

    fn arrival(&self, record: TypeId, given: Given) -> Arrival {
        let (id, fields) = match given {
            Given::Record { id, fields } => (id, fields),
            Given::Value(_) => (None, Vec::new()),
        };
        Arrival { record, id, fields, selection: self.nothing.clone() }
    }

    async fn run_steps(
        &mut self,
        long: &mut Long<'_>,
        record: TypeId,
        places: &[Place],
        steps: Vec<Result<Step, String>>,
    ) -> Result<(), String> {
        let (mut kept, mut ids, mut ready) = (Vec::new(), Vec::new(), Vec::new());
        for (place, step) in places.iter().zip(steps) {
            match step {
                Ok(step) => {
                    kept.push(*place);
                    ids.push(chosen(&step));
                    ready.push(step);
                }
                Err(why) => self.complaints.add(*place, why),
            }
        }
        let outcomes = long.run(ready).await.map_err(told)?;
        let skip_bad = self.import.options.skip_bad;
        let mut done = Vec::new();
        for ((place, outcome), id) in kept.into_iter().zip(outcomes).zip(ids) {
            match outcome {
                Ok(Outcome::Created { id, .. } | Outcome::Updated { id, .. }) => done.push((id, place)),
                Ok(_) => self.complaints.add(place, "the record was deleted meanwhile".to_owned()),
                Err(error) => {
                    self.failed.extend(id.filter(|_| !skip_bad).map(|id| (record, id)));
                    self.complaints.add(place, told(error));
                }
            }
        }
        let path = self.import.inventory.model.record(record).path.clone();
        self.count(&path, done.len() as u64);
        self.remember_loose(long, record, &done).await
    }

    fn count(&mut self, path: &str, rows: u64) {
        self.progress.add(rows);
        *self.counts.entry(path.to_owned()).or_default() += rows;
    }

    async fn remember_loose(
        &mut self,
        long: &mut Long<'_>,
        record: TypeId,
        done: &[(i64, Place)],
    ) -> Result<(), String> {
        if done.is_empty() || !self.import.inventory.model.leads_on(record) {
            return Ok(());
        }
        let ids = done.iter().map(|(id, _)| *id).collect();
        let ends = long.loose_ends(record, ids).await.map_err(told)?;
        let loose: HashSet<i64> = ends.iter().map(|end| end.id).collect();
        let found = done.iter().filter(|(id, _)| loose.contains(id));
        self.loose.extend(found.map(|(id, place)| (record, *id, *place)));
        if self.loose.len() > REMEMBERED {
            return Err(format!(
                "more than {REMEMBERED} records refer to records that have not come yet; \
                 bring those in first, or together as a folder"
            ));
        }
        Ok(())
    }

    /// The rows that refer to nothing though everything is there that will be.
    async fn still_loose(&mut self, long: &mut Long<'_>) -> Result<BTreeMap<Place, String>, Vec<String>> {
        let mut found = BTreeMap::new();
        let mut loose = std::mem::take(&mut self.loose);
        loose.sort_unstable();
        for some in loose.chunk_by(|one, other| one.0 == other.0).flat_map(|same| same.chunks(ROWS)) {
            let record = some[0].0;
            let ids: BTreeSet<i64> = some.iter().map(|(_, id, _)| *id).collect();
            let ends = long.loose_ends(record, ids.into_iter().collect()).await;
            for end in ends.map_err(|error| vec![told(error)])? {
                let (target, why) = end.told(&self.import.inventory.model, record);
                let is_known = self.failed.contains(&(target, end.missing));
                for (_, _, place) in some.iter().filter(|(_, id, _)| *id == end.id && !is_known) {
                    found.entry(*place).or_insert_with(|| why.clone());
                }
            }
        }
        Ok(found)
    }
}

/// The id that a step chooses or changes.
fn chosen(step: &Step) -> Option<i64> {
    match step {
        Step::Bring(arrival) => arrival.id,
        Step::Do(_) => None,
    }
}

/// A list has no ids to know its values by: a second time would double it.
async fn refuse_filled(long: &mut Long<'_>, name: &Arc<str>) -> Result<(), String> {
    let act = ListAct::Read { from: None, bytes: 1 };
    let one = Arc::new(Selection::new(vec![FieldId(0)], Vec::new()));
    match long.read(Operation::Plain(OnList { list: name.clone(), act }), one).await {
        Ok(found) if found.is_empty() => Ok(()),
        Ok(_) => Err(format!(
            "the plain list `{name}` has values already, and with --by they would be there twice; leave its file out"
        )),
        Err(Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(told(error)),
    }
}
