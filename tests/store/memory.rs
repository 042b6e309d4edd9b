//! A store in memory behaves like one on disk, and a long list never fills the memory of either.

use super::*;
use crate::support::is_long;

#[cfg(target_os = "linux")]
both![long_list_streams_in_bounded_memory];

#[tokio::test]
async fn memory_store_reads_writes_and_refuses() {
    let bench = Bench::in_memory();
    let id = bench.make("User", &[("name", text("Ada")), ("email", text("a"))]).await;
    bench.make("Order", &[("user", int(id)), ("item", text("tea"))]).await;
    assert_eq!(show(&bench.rows(bench.get("User", id, "name orders(item)")).await), "Ada [tea]");
    let twice = bench.one(bench.create("User", &[("name", text("B")), ("email", text("a"))], "id")).await;
    assert!(matches!(twice, Err(Error::Conflict(_))));
    let reads = (0..50).map(|_| bench.get("User", id, "name")).collect();
    assert_eq!(bench.all(reads).await.rows.len(), 50);
}

/// Counts rows and keeps the largest the process ever was meanwhile.
#[derive(Default)]
struct Weigh {
    has_children: bool,
    rows: usize,
    children: usize,
    peak_kib: usize,
}

impl RowSink for Weigh {
    fn row(&mut self, _: usize, row: &dyn Row) {
        self.rows += 1;
        if self.has_children {
            row.each_child(0, &mut |_| self.children += 1);
        }
        if self.rows.is_multiple_of(500) {
            self.peak_kib = self.peak_kib.max(resident_kib());
        }
    }
    fn finish_plan(&mut self, _: usize, outcome: Result<Outcome>) {
        outcome.unwrap();
    }
    fn bytes_to_replay(&mut self) -> Option<Vec<u8>> {
        None
    }
    fn reset(&mut self) {}
}

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Runs the current test again in a process of its own, whose memory no other test changes; true there.
fn is_alone() -> bool {
    let test = std::thread::current().name().expect("the name of the test").to_owned();
    // Tests that run one after another are on the main thread.
    if test == "main" || std::env::var_os("MEASURED_ALONE").is_some() {
        return true;
    }
    let again = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &test, "--nocapture"])
        .env("MEASURED_ALONE", "1")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&again.stdout) + String::from_utf8_lossy(&again.stderr);
    assert!(again.status.success() && printed.contains("1 passed"), "{printed}");
    false
}

async fn long_list_streams_in_bounded_memory(bench: Bench) {
    if !is_alone() {
        return;
    }
    let rows = if is_long() { 100_000 } else { 40_000 };
    let fill = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) \
         INSERT INTO users (name, price) SELECT {}, 0 FROM n",
        bench.noise(2_016)
    );
    bench.outside(&fill).await;
    bench.outside("INSERT INTO orders (\"userId\", item) SELECT id, 'x' FROM users").await;
    for (select, children) in [("name", 0), ("name orders(id)", rows)] {
        let job = bench.job(vec![bench.list("User", Listing::default(), select)]);
        let before = resident_kib();
        let answer = Box::new(Weigh { has_children: children > 0, ..Weigh::default() });
        let JobResult::Completed(answer) = bench.store.run(StoreJob { sink: answer, ..job }).await.unwrap()
        else {
            panic!("replayed")
        };
        let any: Box<dyn std::any::Any> = answer;
        let weighed: Box<Weigh> = any.downcast().unwrap();
        assert_eq!((weighed.rows, weighed.children), (rows, children));
        // The names alone are more than twice as much.
        assert!(
            weighed.peak_kib < before + rows * 4 / 5,
            "{select}: from {before} to {} KiB",
            weighed.peak_kib
        );
    }
}
