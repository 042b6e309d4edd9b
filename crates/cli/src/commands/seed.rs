//! `trefoil seed --fake`: fills a store with made-up records, for demonstrations and load tests.

use clap::{Arg, ArgMatches, Command, value_parser};

use crate::{Failure, folder_argument, say, store_arguments};
use trefoil_application::App;
use trefoil_config::Config;
use trefoil_data::export::told;
use trefoil_data::progress_line::{Progress, Whole};
use trefoil_engine::{Engine, Long, Registry, Step};
use trefoil_fake::Fakes;
use trefoil_model::error::Error;
use trefoil_model::values::thousands::grouped;
use trefoil_server::lifecycle;
use trefoil_sql::transfer;
use trefoil_sql::transfer::Place;

/// Records that are sent at once.
const TOGETHER: usize = 500;

const NOTHING: &str = "no record was made up";

pub fn command() -> Command {
    let fake = Arg::new("fake")
        .long("fake")
        .value_name("N")
        .value_parser(value_parser!(i64).range(1..=100_000_000))
        .required(true)
        .help("Make up N records of every type");
    let seed = Arg::new("seed")
        .long("seed")
        .value_name("S")
        .value_parser(value_parser!(u64))
        .default_value("1")
        .help("The same number makes the same records");
    let command = Command::new("seed")
        .about("Fill the store with made-up records that fit the schema")
        .arg(folder_argument())
        .args([fake, seed]);
    store_arguments::with_store(command)
}

pub fn run(matches: &ArgMatches, registry: &Registry) -> Result<(), Failure> {
    let (app, config) = store_arguments::settle(matches)?;
    let place = store_arguments::place(&config)?;
    let count = *matches.get_one::<i64>("fake").expect("clap asks for it");
    let seed = *matches.get_one::<u64>("seed").expect("it has a default");
    let made = store_arguments::run(fill(&app, &config, registry, &place, (count, seed)))??;
    say(&format!("{place}: {} records made up from seed {seed}\n", grouped(made)))
}

async fn fill(
    app: &App,
    config: &Config,
    registry: &Registry,
    place: &Place,
    (count, seed): (i64, u64),
) -> Result<u64, Failure> {
    let (_lock, engine) = lifecycle::ready(app, config, registry).await.map_err(Failure::Start)?;
    let last_ids = transfer::last_ids(place).await.map_err(Failure::run)?;
    let model = engine.model().clone();
    let base = |table: &str| last_ids.iter().find(|(name, _)| name == table).map_or(0, |(_, last)| *last);
    let bases = model.records.iter().map(|record| base(&record.table)).collect();
    let fakes = Fakes::new(&model, seed, count, bases).map_err(Failure::run)?;
    let failed = |outcome: &str, why: String| Failure::run(format_args!("{place}: {outcome}: {why}"));
    let all = fakes.order.len() as u64 * count.unsigned_abs();
    let long = write(&engine, &fakes, count, all).await.map_err(|why| failed(NOTHING, why))?;
    long.commit().await.map_err(|error| {
        let is_unknown = matches!(error, Error::OutcomeUnknown);
        failed(if is_unknown { "look before you run it again" } else { NOTHING }, told(error))
    })?;
    Ok(all)
}

/// All of them, to be committed.
async fn write<'e>(engine: &'e Engine, fakes: &Fakes<'_>, count: i64, all: u64) -> Result<Long<'e>, String> {
    let mut bar = Progress::new(Whole::Unknown);
    bar.begin("making up", "records", Whole::Rows(all));
    let mut long = engine.begin().await.map_err(told)?;
    for record in fakes.order.iter().copied() {
        for first in (1..=count).step_by(TOGETHER) {
            let numbers = first..=count.min(first + TOGETHER as i64 - 1);
            let failed = |number: i64, error: Error| {
                let name = &engine.model().record(record).name;
                format!("{name} {}: {}", fakes.base(record) + number, told(error))
            };
            let step = |number| fakes.record(record, number).map_err(|error| failed(number, error));
            let steps = numbers.clone().map(|number| step(number).map(Step::Do)).collect::<Result<_, _>>()?;
            let outcomes = long.run(steps).await.map_err(told)?;
            for (number, outcome) in numbers.zip(outcomes) {
                outcome.map_err(|error| failed(number, error))?;
                bar.add(1);
            }
        }
    }
    Ok(long)
}
