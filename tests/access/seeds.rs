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

/// The same at each `./test`, others at each `./test --long`.
fn seeds(trial: &Trial) -> Vec<u64> {
    if let Ok(seed) = std::env::var("ACCESS_SEED") {
        return vec![seed.parse().expect("ACCESS_SEED is a number")];
    }
    match is_long() {
        false => (1..=trial.short).collect(),
        true => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
            (0..trial.long).map(|number| now * 100_000 + number).collect()
        }
    }
}
