//! Runs generated trials from seeds, a few at a time; a failure names its seed.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::support::is_long;

/// A trial that is generated from a number.
pub struct Trial {
    /// The filter that runs it alone.
    pub name: &'static str,
    /// How many there are in `./test`, and in `./test --long`.
    pub short: u64,
    pub long: u64,
}

/// Runs a trial for each seed; panics with everything that went wrong.
pub fn run<F: Future<Output = Result<(), String>>>(trial: &Trial, one: impl Fn(u64) -> F + Sync) {
    let seeds = seeds(trial);
    let next = AtomicUsize::new(0);
    let work = || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let mut failures = Vec::new();
        while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(failure) = runtime.block_on(one(*seed)) {
                failures.push(format!(
                    "{failure}\nAgain: ACCESS_SEED={seed} cargo test --test tests {}",
                    trial.name
                ));
                break;
            }
        }
        failures
    };
    let failures: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// The same at each `./test`, others at each `./test --long`, or as many others as `ACCESS_COUNT` says.
fn seeds(trial: &Trial) -> Vec<u64> {
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        Some(text.parse::<u64>().unwrap_or_else(|_| panic!("{name} is a number")))
    };
    let count = match (number("ACCESS_SEED"), number("ACCESS_COUNT")) {
        (Some(seed), None) => return vec![seed],
        (_, Some(count)) => count,
        (None, None) if is_long() => trial.long,
        (None, None) => return (1..=trial.short).collect(),
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let first = number("ACCESS_SEED").unwrap_or(now * 100_000);
    eprintln!("{}: {count} trials from the seed {first} on", trial.name);
    (first..first + count).collect()
}
