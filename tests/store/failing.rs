//! A store that cannot write reports it, keeps reading, loses nothing, and recovers by itself.

use std::time::Duration;

use super::*;

both![external_lock_times_out_then_recovers, panic_fails_only_its_own_job, ping_works_on_every_store,];

async fn external_lock_times_out_then_recovers(bench: Bench) {
    bench.user("Ada").await;
    let outsider = bench.outsider().await;
    outsider.hold().await;
    let error = bench.run(bench.job(vec![bench.create("User", &[("name", text("Bo"))], "id")])).await;
    let Err(Error::Unavailable { reason, retry_after }) = error.map(drop) else { panic!("it was written") };
    assert_eq!(
        (reason.as_str(), retry_after),
        ("the database is locked by another program", Duration::from_secs(1))
    );
    assert_eq!(bench.count("User").await, 1, "reading goes on");
    outsider.release().await;
    assert_eq!(bench.user("Bo").await, 2);
}

#[tokio::test]
async fn full_database_resumes_when_there_is_room() {
    let bench = Arc::new(Bench::new());
    bench.user("Ada").await;
    bench
        .on_writer(|connection| {
            let pages: i64 = connection.query_row("PRAGMA page_count", (), |row| row.get(0)).unwrap();
            connection.pragma_update_and_check(None, "max_page_count", pages + 4, |_| Ok(())).unwrap();
        })
        .unwrap();
    let long = "x".repeat(200_000);
    let tasks = (0..20).map(|i| {
        let (bench, long) = (bench.clone(), long.clone());
        tokio::spawn(async move {
            let name = if i % 2 == 0 { long } else { "short".to_owned() };
            let job = bench.job(vec![bench.create("User", &[("name", text(&name))], "id")]);
            (i % 2, bench.run(job).await.map(|mut told| told.outcomes.remove(&0).unwrap()))
        })
    });
    let mut acknowledged = 1;
    for task in tasks.collect::<Vec<_>>() {
        match task.await.unwrap() {
            (0, result) => {
                let Err(Error::Unavailable { reason, .. }) = result else { panic!("{result:?}") };
                assert_eq!(reason, "the disk is full");
            }
            (_, Ok(Ok(Outcome::Created { .. }))) => acknowledged += 1,
            (_, other) => panic!("a small write fits: {other:?}"),
        }
    }
    assert_eq!(bench.count("User").await, acknowledged);
    bench
        .on_writer(|connection| {
            connection.pragma_update_and_check(None, "max_page_count", 1 << 30, |_| Ok(()))
        })
        .unwrap()
        .unwrap();
    bench.make("User", &[("name", text(&long))]).await;
}

async fn panic_fails_only_its_own_job(bench: Bench) {
    struct Clumsy;
    impl RowSink for Clumsy {
        fn row(&mut self, _: usize, _: &dyn Row) {
            panic!("oh no")
        }
        fn finish_plan(&mut self, _: usize, _: Result<Outcome>) {}
        fn bytes_to_replay(&mut self) -> Option<Vec<u8>> {
            None
        }
        fn reset(&mut self) {}
    }
    // With children to read a write is no single statement, which on PostgreSQL would be its own commit.
    let user = || bench.job(vec![bench.create("User", &[("name", text("Ada"))], "id orders(id)")]);
    let clumsy = |job: StoreJob| StoreJob { sink: Box::new(Clumsy), ..job };
    let jobs = [user(), clumsy(user()), user()].map(|job| bench.store.run(job));
    let ends = futures_util::future::join_all(jobs).await;
    assert_eq!(ends.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(bench.count("User").await, 2);
    let list = clumsy(bench.job(vec![bench.list("User", Listing::default(), "id orders(id)")]));
    assert!(matches!(bench.store.run(list).await, Err(Error::Internal { .. })));
    assert_eq!(bench.count("User").await, 2);
}

#[tokio::test]
async fn rollback_by_a_trigger_spares_other_jobs() {
    let bench = Bench::new();
    let trigger = "CREATE TRIGGER strict BEFORE INSERT ON users WHEN NEW.name = 'bad' \
                   BEGIN SELECT RAISE(ROLLBACK, 'not here'); END";
    bench.outside(trigger).await;
    let jobs = ["a", "bad", "c", "d"]
        .map(|name| bench.store.run(bench.job(vec![bench.create("User", &[("name", text(name))], "id")])));
    let ends = futures_util::future::join_all(jobs).await;
    assert_eq!(ends.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true, true]);
    let all = bench.rows(bench.list("User", Listing::default(), "name")).await;
    assert_eq!(show(&all), "a | c | d");
}

#[tokio::test]
async fn insert_ignored_by_a_trigger_is_an_error() {
    let bench = Bench::new();
    let user = bench.user("Ada").await;
    bench.outside("CREATE TABLE refused (name text)").await;
    let trigger = "CREATE TRIGGER strict BEFORE INSERT ON users WHEN NEW.name = 'bad' \
                   BEGIN INSERT INTO refused VALUES (NEW.name); SELECT RAISE(IGNORE); END";
    bench.outside(trigger).await;
    let create = bench.create("User", &[("name", text("bad"))], "id");
    let ignored = bench.store.run(bench.job(vec![create])).await;
    assert!(matches!(ignored, Err(Error::Internal { .. })), "beside user {user}");
    assert_eq!(bench.count("User").await, 1);
    assert_eq!(bench.outside("SELECT count(*) FROM refused").await, "0");
}

#[tokio::test]
async fn write_is_undone_when_reading_back_fails() {
    let bench = Bench::new();
    let logging = ["created", "updated", "deleted"]
        .map(|deed| format!("DROP TRIGGER IF EXISTS trefoil_orders_{deed};"));
    bench.outside(&format!("{} ALTER TABLE orders DROP COLUMN item", logging.concat())).await;
    let create = bench.create("User", &[("name", text("Ada"))], "name orders(item)");
    assert!(bench.store.run(bench.job(vec![create])).await.is_err());
    assert_eq!(bench.count("User").await, 0);
}

#[tokio::test]
async fn write_deleted_by_a_trigger_is_rolled_back() {
    let bench = Bench::new();
    let user = bench.user("Ada").await;
    bench.outside("CREATE TABLE archive (name text)").await;
    let archive = "BEGIN INSERT INTO archive VALUES (NEW.name); DELETE FROM users WHERE id = NEW.id; END";
    bench.outside(&format!("CREATE TRIGGER made AFTER INSERT ON users {archive}")).await;
    bench.outside(&format!("CREATE TRIGGER changed AFTER UPDATE OF name ON users {archive}")).await;
    let fields = [("name", text("Bob"))];
    for write in [bench.create("User", &fields, "id"), bench.update("User", user, &fields, None)] {
        let gone = bench.store.run(bench.job(vec![write])).await;
        assert!(matches!(gone, Err(Error::Internal { .. })));
    }
    assert_eq!(bench.outside("SELECT count(*) FROM archive").await, "0");
    assert_eq!(show(&bench.rows(bench.list("User", Listing::default(), "name")).await), "Ada");
}

#[tokio::test]
async fn version_includes_updates_by_triggers() {
    let bench = Bench::new();
    let trigger = "CREATE TRIGGER small AFTER INSERT ON users \
                   BEGIN UPDATE users SET name = lower(NEW.name) WHERE id = NEW.id; END";
    bench.outside(trigger).await;
    let (outcome, rows) = bench.one(bench.create("User", &[("name", text("ADA"))], "name")).await.unwrap();
    let Outcome::Created { id, version } = outcome else { panic!("{outcome:?}") };
    assert_eq!((show(&rows).as_str(), version), ("ada", 2));
    let (outcome, _) = bench.one(bench.update("User", number(&id), &[], Some(version))).await.unwrap();
    assert!(matches!(outcome, Outcome::Updated { version: 2, .. }), "{outcome:?}");
}

#[tokio::test]
async fn panic_leaves_no_connection_setting_behind() {
    let bench = Bench::new();
    let panic = bench.on_writer(|connection: &mut rusqlite::Connection| {
        connection.pragma_update(None, "foreign_keys", false).unwrap();
        panic!("oh no")
    });
    assert!(matches!(panic, Err(Error::Internal { .. })));
    let dangling = bench.one(bench.create("Order", &[("user", int(7))], "id")).await;
    assert!(matches!(dangling, Err(Error::Invalid(_))), "{dangling:?}");
}

async fn ping_works_on_every_store(bench: Bench) {
    bench.store.ping().await.unwrap();
    Bench::in_memory().store.ping().await.unwrap();
}

#[tokio::test]
async fn acknowledged_writes_survive_reopening() {
    let bench = Bench::new();
    bench.user("Ada").await;
    let Bench { store, place: Place::Folder(folder), .. } = bench else { panic!("no folder") };
    drop(store);
    let store = SqliteStore::open(Some(&folder.path().join("trefoil.db")), options()).unwrap();
    let bench = Bench::with(store, folder);
    assert_eq!(show(&bench.rows(bench.get("User", 1, "name")).await), "Ada");
}

/// All of them are looked up together.
#[tokio::test]
async fn damaged_page_fails_only_its_readers() {
    let bench = Bench::new();
    for number in 1..=40 {
        let name = format!("student {number} {}", "x".repeat(1_500));
        bench.make("Student", &[("name", text(&name))]).await;
    }
    let Bench { store, place: Place::Folder(folder), .. } = bench else { panic!("no folder") };
    drop(store);
    let file = folder.path().join("trefoil.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let at = bytes.windows(11).position(|part| part == b"student 20 ").unwrap();
    let page = at / 4096 * 4096;
    assert_eq!(bytes[page], 0x0d, "a leaf of a table");
    bytes[page] = 0xff;
    std::fs::write(&file, bytes).unwrap();
    let bench = Bench::with(SqliteStore::open(Some(&file), options()).unwrap(), folder);
    let jobs = (1..=40).map(|id| bench.store.run(bench.job(vec![bench.get("Student", id, "name")])));
    let ends = futures_util::future::join_all(jobs).await;
    let failed: Vec<usize> = (1..=40).filter(|id| ends[id - 1].is_err()).collect();
    assert!(failed.contains(&20) && failed.len() <= 2, "{failed:?}");
}
