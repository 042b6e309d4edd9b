//! `trefoil seed --fake`: fills a store with made-up records, for demonstrations and load tests.

use clap::{Arg, ArgMatches, Command, value_parser};
use serde::{Deserialize, Serialize};

use super::bar::bar;
use super::{Failure, folder_argument, say, stores};
use crate::app::App;
use crate::config::Config;
use crate::data::progress::Whole;
use crate::engine::{Engine, Registry};
use crate::fake::Fakes;
use crate::model::digits::grouped;
use crate::server::{life, seed};
use crate::sql::transfer::{self, Place};

/// Records of one transaction.
const TOGETHER: i64 = 500;

/// What is noted in the store while records are being made: with it an interrupted command goes on where it was.
#[derive(Serialize, Deserialize)]
struct Note {
    count: i64,
    seed: u64,
    /// The last id of each table before.
    bases: Vec<(String, i64)>,
}

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
    stores::with_store(command)
}

pub fn run(matches: &ArgMatches, registry: &Registry) -> Result<(), Failure> {
    let (app, config) = stores::settle(matches)?;
    let place = stores::place(&config)?;
    let count = *matches.get_one::<i64>("fake").expect("clap asks for it");
    let seed = *matches.get_one::<u64>("seed").expect("it has a default");
    let made = stores::run(fill(&app, &config, registry, &place, (count, seed)))??;
    say(&format!("{place}: {} records made up from seed {seed}\n", grouped(made)))
}

async fn fill(
    app: &App,
    config: &Config,
    registry: &Registry,
    place: &Place,
    (count, seed): (i64, u64),
) -> Result<u64, Failure> {
    let (_lock, engine) = life::ready(app, config, registry).await.map_err(Failure::Start)?;
    let (counters, noted) = transfer::noted(place).await.map_err(Failure::run)?;
    let noted = noted.and_then(|text| serde_json::from_str::<Note>(&text).ok());
    let note = match noted.filter(|note| note.count == count && note.seed == seed) {
        Some(note) => note,
        None => Note { count, seed, bases: counters },
    };
    let text = serde_json::to_string(&note).map_err(Failure::run)?;
    transfer::note(place, Some(&text)).await.map_err(Failure::run)?;
    let model = engine.model().clone();
    let base = |table: &str| note.bases.iter().find(|(name, _)| name == table).map_or(0, |(_, last)| *last);
    let bases = model.records.iter().map(|record| base(&record.table)).collect();
    let fakes = Fakes::new(&model, seed, count, bases).map_err(Failure::run)?;
    let made = write(&engine, &fakes, place, count).await?;
    transfer::note(place, None).await.map_err(Failure::run)?;
    Ok(made)
}

async fn write(engine: &Engine, fakes: &Fakes<'_>, place: &Place, count: i64) -> Result<u64, Failure> {
    let mut bar = bar();
    let all = fakes.order.len() as u64 * count.unsigned_abs();
    bar.begin("making up", "records", Whole::Rows(all));
    let mut made = 0;
    for record in fakes.order.iter().copied() {
        let (table, base) = (&engine.model().record(record).table, fakes.base(record));
        // What is there of them was written whole, in this order.
        let there = transfer::present(place, table, base, base + count).await.map_err(Failure::run)?;
        bar.add(there.unsigned_abs());
        let mut next = there + 1;
        while next <= count {
            let last = count.min(next + TOGETHER - 1);
            let operations = (next..=last).map(|number| fakes.record(record, number)).collect();
            let failures = seed::run(engine, operations).await.map_err(Failure::run)?;
            if let Some((at, error)) = failures.first() {
                let name = &engine.model().record(record).name;
                return Err(Failure::run(format_args!("{name} {}: {error}", base + next + *at as i64)));
            }
            bar.add((last - next + 1).unsigned_abs());
            made += (last - next + 1).unsigned_abs();
            next = last + 1;
        }
        made += there.unsigned_abs();
    }
    Ok(made)
}
