//! `trefoil seed --fake`: fills a store with made-up records, for demonstrations and load tests.

use clap::{Arg, ArgMatches, Command, value_parser};

use trefoil_application::App;
use trefoil_config::Config;
use trefoil_data::export::error_text;
use trefoil_data::progress_line::{ProgressLine, ProgressTotal};
use trefoil_engine::{
    BulkStep, BulkWrite, Engine, Listing, Operation, PreparedSelection, ResolverRegistry, Row, Selection,
};
use trefoil_fake::{ExistingKeys, FakeRecords};
use trefoil_model::error::Error;
use trefoil_model::values::digit_grouping::group_thousands;
use trefoil_model::{KeySource, RecordId, RecordTypeId};
use trefoil_server::lifecycle;
use trefoil_sql::transfer::{self, StoreLocation};

use crate::application_argument::folder_argument;
use crate::command_error::CommandError;
use crate::store_arguments;
use crate::terminal_output::print_output;

/// Records per batch.
const BATCH_SIZE: usize = 500;

const NOTHING_CREATED: &str = "no records were generated";

pub fn command() -> Command {
    let fake = Arg::new("fake")
        .long("fake")
        .value_name("N")
        .value_parser(value_parser!(i64).range(1..=100_000_000))
        .required(true)
        .help("Generate N records of each type");
    let seed = Arg::new("seed")
        .long("seed")
        .value_name("S")
        .value_parser(value_parser!(u64))
        .default_value("1")
        .help("The same seed generates the same records");
    let command = Command::new("seed")
        .about("Fill the store with generated records that fit the schema")
        .arg(folder_argument())
        .args([fake, seed]);
    store_arguments::add_store_flags(command)
}

pub fn run(matches: &ArgMatches, registry: &ResolverRegistry) -> Result<(), CommandError> {
    let (app, config) = store_arguments::load_app_and_config(matches)?;
    let location = store_arguments::store_location(&config)?;
    let count = *matches.get_one::<i64>("fake").expect("clap asks for it");
    let seed = *matches.get_one::<u64>("seed").expect("it has a default");
    let created =
        store_arguments::block_on(create_fake_records(&app, &config, registry, &location, (count, seed)))??;
    print_output(&format!("{location}: {} records generated from seed {seed}\n", group_thousands(created)))
}

async fn create_fake_records(
    app: &App,
    config: &Config,
    registry: &ResolverRegistry,
    location: &StoreLocation,
    (count, seed): (i64, u64),
) -> Result<u64, CommandError> {
    let (_lock, engine) = lifecycle::open_engine(app, config, registry).await.map_err(CommandError::Start)?;
    let last_ids = transfer::last_ids(location).await.map_err(CommandError::failed)?;
    let model = engine.model().clone();
    let mut existing = Vec::new();
    for (position, record) in model.records.iter().enumerate() {
        existing.push(match record.key_source {
            KeySource::Counter => {
                let last = last_ids.iter().find(|(table, _)| *table == record.table);
                ExistingKeys::Counted { last: last.map_or(0, |(_, last)| *last) }
            }
            KeySource::Generator | KeySource::Client => {
                existing_keys(&engine, RecordTypeId(position)).await.map_err(CommandError::failed)?
            }
        });
    }
    let fakes = FakeRecords::new(&model, seed, count, existing).map_err(CommandError::failed)?;
    let failed =
        |outcome: &str, reason: String| CommandError::failed(format_args!("{location}: {outcome}: {reason}"));
    let total = fakes.creation_order.len() as u64 * count.unsigned_abs();
    let bulk_write = write_records(&engine, &fakes, count, total)
        .await
        .map_err(|reason| failed(NOTHING_CREATED, reason))?;
    bulk_write.commit().await.map_err(|error| {
        let is_unknown = matches!(error, Error::OutcomeUnknown);
        failed(
            if is_unknown { "check the data before you run this again" } else { NOTHING_CREATED },
            error_text(error),
        )
    })?;
    Ok(total)
}

/// The keys of all records of a type whose keys the store does not number.
async fn existing_keys(engine: &Engine, record: RecordTypeId) -> Result<ExistingKeys, Error> {
    let key = engine.model().record(record).id_field();
    let selection = PreparedSelection::new(Selection::new(vec![key], Vec::new()));
    let operation = Operation::List { record, listing: Listing::default(), selection: selection.clone() };
    let rows = engine.collect(operation, selection).await?.rows;
    Ok(ExistingKeys::Others(rows.iter().filter_map(|row| RecordId::from_cell(row.cell(0))).collect()))
}

/// Writes all records, without the commit.
async fn write_records<'e>(
    engine: &'e Engine,
    fakes: &FakeRecords<'_>,
    count: i64,
    total: u64,
) -> Result<BulkWrite<'e>, String> {
    let mut bar = ProgressLine::new(ProgressTotal::Unknown);
    bar.begin("generating", "records", ProgressTotal::Rows(total));
    let mut bulk_write = engine.begin_bulk_write().await.map_err(error_text)?;
    for record in fakes.creation_order.iter().copied() {
        for first in (1..=count).step_by(BATCH_SIZE) {
            let numbers = first..=count.min(first + BATCH_SIZE as i64 - 1);
            let failed = |number: i64, error: Error| {
                let name = &engine.model().record(record).name;
                format!("{name} {}: {}", fakes.record_id(record, number), error_text(error))
            };
            let step = |number| fakes.create_operation(record, number).map_err(|error| failed(number, error));
            let steps =
                numbers.clone().map(|number| step(number).map(BulkStep::Run)).collect::<Result<_, _>>()?;
            let outcomes = bulk_write.run(steps).await.map_err(error_text)?;
            for (number, outcome) in numbers.zip(outcomes) {
                outcome.map_err(|error| failed(number, error))?;
                bar.add(1);
            }
        }
    }
    Ok(bulk_write)
}
