//! Idempotency keys: replayed, refused, in use, expired, and never left behind by a failed request.

use super::*;

both![
    idempotency_key_replays_the_first_response,
    idempotency_key_without_response_may_run_again,
    idempotency_key_expires_after_a_day,
    idempotency_key_in_use_is_refused,
    idempotency_key_lookup_writes_nothing,
];

fn keyed(bench: &Bench, name: &str, key: Option<IdempotencyKey>) -> StoreJob {
    let mut job = bench.job(vec![bench.create("User", &[("name", text(name)), ("email", text(name))], "id")]);
    let any: &mut dyn std::any::Any = job.sink.as_mut();
    any.downcast_mut::<TestSink>().unwrap().kept = Some(name.as_bytes().to_vec());
    StoreJob { idempotency_key: key, ..job }
}

async fn idempotency_key_replays_the_first_response(bench: Bench) {
    bench.run(keyed(&bench, "ada", key("k", 1))).await.unwrap();
    let Ok(JobResult::Replayed(bytes)) = bench.store.run(keyed(&bench, "ada", key("k", 1))).await else {
        panic!("not replayed")
    };
    assert_eq!(bytes, b"ada");
    assert!(matches!(bench.store.run(keyed(&bench, "bo", key("k", 2))).await, Err(Error::KeyReused)));
    assert_eq!(bench.count("User").await, 1);
}

async fn idempotency_key_lookup_writes_nothing(bench: Bench) {
    let look_up = async |name: &str, fingerprint| {
        let key = key(name, fingerprint).unwrap();
        bench.store.replay(&key).await
    };
    assert_eq!(look_up("k", 1).await.unwrap(), None);
    bench.run(keyed(&bench, "ada", key("k", 1))).await.unwrap();
    assert_eq!(look_up("k", 1).await.unwrap().as_deref(), Some(&b"ada"[..]));
    assert!(matches!(look_up("k", 2).await, Err(Error::KeyReused)));
    assert_eq!(look_up("other", 1).await.unwrap(), None);
    assert_eq!(bench.count("User").await, 1);
    // A look keeps nobody from using the key.
    bench.run(keyed(&bench, "bo", key("other", 1))).await.unwrap();
    bench.outside("UPDATE trefoil_keys SET at = at - 24 * 3600 - 1 WHERE key = 'k'").await;
    assert_eq!(look_up("k", 1).await.unwrap(), None, "it expired");
}

async fn idempotency_key_without_response_may_run_again(bench: Bench) {
    let job = bench.job(vec![bench.create("User", &[("name", text("ada"))], "id")]);
    bench.run(StoreJob { idempotency_key: key("k", 1), ..job }).await.unwrap();
    bench.run(keyed(&bench, "bo", key("k", 2))).await.unwrap();
    assert_eq!(bench.count("User").await, 2);
}

async fn idempotency_key_expires_after_a_day(bench: Bench) {
    bench.run(keyed(&bench, "ada", key("old", 1))).await.unwrap();
    bench.run(keyed(&bench, "bo", key("recent", 1))).await.unwrap();
    bench.outside("UPDATE trefoil_keys SET at = at - 24 * 3600 - 1 WHERE key = 'old'").await;
    bench.outside("UPDATE trefoil_keys SET at = at - 23 * 3600 WHERE key = 'recent'").await;
    assert!(matches!(
        bench.store.run(keyed(&bench, "bo", key("recent", 1))).await,
        Ok(JobResult::Replayed(_))
    ));
    bench.run(keyed(&bench, "cy", key("old", 2))).await.unwrap();
    assert!(matches!(bench.store.run(keyed(&bench, "cy", key("old", 2))).await, Ok(JobResult::Replayed(_))));
}

#[tokio::test]
async fn expired_idempotency_keys_are_pruned() {
    let bench = Bench::new();
    bench.outside("INSERT INTO trefoil_keys VALUES ('ancient', 'x', x'00', 5)").await;
    bench.run(keyed(&bench, "ada", key("new", 1))).await.unwrap();
    bench.on_writer(|_| ()).unwrap();
    assert_eq!(bench.outside("SELECT key FROM trefoil_keys").await, "new");
}

async fn idempotency_key_in_use_is_refused(bench: Bench) {
    let bench = Arc::new(bench);
    let outsider = bench.outsider().await;
    outsider.hold().await;
    let first = tokio::spawn({
        let bench = bench.clone();
        async move { bench.run(keyed(&bench, "ada", key("k", 1))).await }
    });
    let begun = std::time::Instant::now();
    while !matches!(bench.store.replay(&key("k", 1).unwrap()).await, Err(Error::KeyInUse)) {
        assert!(begun.elapsed() < std::time::Duration::from_secs(20), "the first never has its key");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(matches!(bench.store.run(keyed(&bench, "ada", key("k", 1))).await, Err(Error::KeyInUse)));
    outsider.release().await;
    first.await.unwrap().unwrap();
    assert!(matches!(bench.store.run(keyed(&bench, "ada", key("k", 1))).await, Ok(JobResult::Replayed(_))));
}
