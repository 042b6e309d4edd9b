//! A job whose caller is gone stops soon, whether it is running or queued.

use std::time::{Duration, Instant};

use super::*;

both![list_stops_when_its_reader_leaves, queued_job_never_runs_once_cancelled];

/// Cancels its own job after so many rows.
struct Leave {
    after: usize,
    seen: Arc<std::sync::atomic::AtomicUsize>,
    cancel: CancelFlag,
}

impl RowSink for Leave {
    fn row(&mut self, _: usize, _: &dyn Row) {
        let seen = self.seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        if seen == self.after {
            self.cancel.cancel();
        }
    }
    fn finish_plan(&mut self, _: usize, _: Result<Outcome>) {}
    fn bytes_to_replay(&mut self) -> Option<Vec<u8>> {
        None
    }
    fn reset(&mut self) {}
}

async fn fill(bench: &Bench, rows: u32) {
    let fill = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) \
         INSERT INTO users (name, price) SELECT {}, i + 0.5 FROM n",
        bench.noise(224)
    );
    bench.outside(&fill).await;
}

async fn list_stops_when_its_reader_leaves(bench: Bench) {
    fill(&bench, 50_000).await;
    let seen = Arc::<std::sync::atomic::AtomicUsize>::default();
    let job = bench.job(vec![bench.list("User", Listing::default(), "name")]);
    let leave = Leave { after: 100, seen: seen.clone(), cancel: job.cancel_flag.clone() };
    let end = bench.store.run(StoreJob { sink: Box::new(leave), ..job }).await;
    assert!(matches!(end, Err(Error::Cancelled)));
    let seen = seen.load(std::sync::atomic::Ordering::Relaxed);
    assert!((100..5_000).contains(&seen), "{seen} rows");
    assert_eq!(bench.count("User").await, 50_000, "the reader is fit for the next");
}

#[tokio::test]
async fn search_without_matches_stops() {
    let bench = Bench::new();
    fill(&bench, 200_000).await;
    let needle = text(&"zz".repeat(10));
    let conditions = vec![bench.condition("User", "name", "contains", needle)];
    let listing =
        Listing { conditions, sort_keys: bench.order("User", &["-price", "name"]), ..Listing::default() };
    let long = Instant::now();
    bench.one(bench.list("User", listing.clone(), "id")).await.unwrap();
    let long = long.elapsed();
    let job = bench.job(vec![bench.list("User", listing, "id")]);
    let cancel = job.cancel_flag.clone();
    let begun = Instant::now();
    let (end, ()) = tokio::join!(bench.store.run(job), async {
        tokio::time::sleep(long / 20).await;
        cancel.cancel();
    });
    assert!(matches!(end, Err(Error::Cancelled)));
    assert!(begun.elapsed() < long / 2 + Duration::from_millis(20), "{:?} of {long:?}", begun.elapsed());
}

async fn queued_job_never_runs_once_cancelled(bench: Bench) {
    let bench = Arc::new(bench);
    let outsider = bench.outsider().await;
    outsider.hold().await;
    let first = tokio::spawn({
        let bench = bench.clone();
        async move { bench.user("first").await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let job = bench.job(vec![bench.create("User", &[("name", text("second"))], "id orders(id)")]);
    let cancel = job.cancel_flag.clone();
    let (end, ()) = tokio::join!(bench.store.run(job), async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        cancel.cancel();
        tokio::time::sleep(Duration::from_millis(40)).await;
        outsider.release().await;
    });
    assert!(matches!(end, Err(Error::Cancelled)));
    first.await.unwrap();
    assert_eq!(bench.count("User").await, 1);
}
