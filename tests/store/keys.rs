//! Idempotency keys: replayed, refused, in use, expired, and never left behind by what failed.

use super::*;

fn keyed(bench: &Bench, name: &str, key: Option<Key>) -> Job {
    let mut job = bench.job(vec![bench.create("User", &[("name", text(name)), ("email", text(name))], "id")]);
    let any: &mut dyn std::any::Any = job.answer.as_mut();
    any.downcast_mut::<Told>().unwrap().kept = Some(name.as_bytes().to_vec());
    Job { key, ..job }
}

#[tokio::test]
async fn the_same_request_is_answered_from_its_first_answer() {
    let bench = Bench::new();
    bench.run(keyed(&bench, "ada", key("k", 1))).await.unwrap();
    let Ok(Done::Replayed(bytes)) = bench.store.run(keyed(&bench, "ada", key("k", 1))).await else {
        panic!("not replayed")
    };
    assert_eq!(bytes, b"ada");
    assert!(matches!(bench.store.run(keyed(&bench, "bo", key("k", 2))).await, Err(Error::KeyReused)));
    assert_eq!(bench.count("User").await, 1);
}

#[tokio::test]
async fn what_kept_nothing_may_run_again() {
    let bench = Bench::new();
    let job = bench.job(vec![bench.create("User", &[("name", text("ada"))], "id")]);
    bench.run(Job { key: key("k", 1), ..job }).await.unwrap();
    bench.run(keyed(&bench, "bo", key("k", 2))).await.unwrap();
    assert_eq!(bench.count("User").await, 2);
}

#[tokio::test]
async fn a_key_expires_after_a_day_and_is_forgotten() {
    let bench = Bench::new();
    bench.run(keyed(&bench, "ada", key("old", 1))).await.unwrap();
    bench.run(keyed(&bench, "bo", key("recent", 1))).await.unwrap();
    let outsider = bench.outsider();
    outsider.execute("UPDATE trefoil_keys SET at = at - 24 * 3600 - 1 WHERE key = 'old'", ()).unwrap();
    outsider.execute("UPDATE trefoil_keys SET at = at - 23 * 3600 WHERE key = 'recent'", ()).unwrap();
    assert!(matches!(bench.store.run(keyed(&bench, "bo", key("recent", 1))).await, Ok(Done::Replayed(_))));
    bench.run(keyed(&bench, "cy", key("old", 2))).await.unwrap();
    assert!(matches!(bench.store.run(keyed(&bench, "cy", key("old", 2))).await, Ok(Done::Replayed(_))));
}

#[tokio::test]
async fn expired_keys_are_pruned() {
    let bench = Bench::new();
    let outsider = bench.outsider();
    outsider.execute("INSERT INTO trefoil_keys VALUES ('ancient', 'x', x'00', 5)", ()).unwrap();
    bench.run(keyed(&bench, "ada", key("new", 1))).await.unwrap();
    bench.store.call(|_| ()).unwrap();
    let left: String =
        outsider.query_row("SELECT group_concat(key) FROM trefoil_keys", (), |row| row.get(0)).unwrap();
    assert_eq!(left, "new");
}

#[tokio::test]
async fn while_the_first_still_runs_the_second_is_told_so() {
    let bench = Arc::new(Bench::new());
    let outsider = bench.outsider();
    outsider.execute_batch("BEGIN IMMEDIATE").unwrap();
    let first = tokio::spawn({
        let bench = bench.clone();
        async move { bench.run(keyed(&bench, "ada", key("k", 1))).await }
    });
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    assert!(matches!(bench.store.run(keyed(&bench, "ada", key("k", 1))).await, Err(Error::KeyInUse)));
    outsider.execute_batch("ROLLBACK").unwrap();
    first.await.unwrap().unwrap();
    assert!(matches!(bench.store.run(keyed(&bench, "ada", key("k", 1))).await, Ok(Done::Replayed(_))));
}
