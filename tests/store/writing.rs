//! Create, update and delete: versions, links, constraints, and other writes in the same commit.

use trefoil_engine::{ChangeFeed, Engine, EngineRequest, PlanLimits, ResolverRegistry};

use super::*;

both![
    values_round_trip_exactly,
    write_returns_the_record_or_not_found,
    stale_expected_version_is_refused,
    external_write_is_seen_and_versioned,
    unique_conflict_names_every_field,
    chosen_id_is_kept_or_refused,
    dangling_references_are_all_named,
    referenced_record_is_not_deleted,
    external_constraint_violation_is_a_conflict,
    delete_returns_the_record_and_cascades,
    links_are_replaced_and_seen_from_both_sides,
    one_bad_write_in_a_hundred_spares_the_others,
    job_plans_run_in_order_and_independently,
    atomic_job_is_all_or_nothing,
    atomic_request_with_an_invalid_part_never_starts,
];

async fn values_round_trip_exactly(bench: Bench) {
    let fields = [
        ("name", text("Zoë \u{1F33F} \"'; --")),
        ("big", int(i64::MIN)),
        ("balance", text("-123456789012345678901234567890.12500")),
        ("score", Value::number("0.1").expect("a number")),
    ];
    let id = bench.make("User", &fields).await;
    let rows = bench.rows(bench.get("User", id, "name big balance score email")).await;
    let expected =
        "Zoë \u{1F33F} \"'; -- -9223372036854775808 -123456789012345678901234567890.12500 0.1 null";
    assert_eq!(show(&rows), expected);
}

async fn write_returns_the_record_or_not_found(bench: Bench) {
    let (outcome, rows) = bench.one(bench.create("User", &[("name", text("Ada"))], "name id")).await.unwrap();
    assert_eq!((outcome, show(&rows)), (Outcome::Created { id: 1.into(), version: 1 }, "Ada 1".into()));
    let (outcome, rows) = bench.one(bench.update("User", 1, &[("name", text("Bo"))], None)).await.unwrap();
    assert_eq!((outcome, show(&rows)), (Outcome::Updated { id: 1.into(), version: 2 }, "1".into()));
    let (outcome, rows) = bench.one(bench.delete("User", 1, "name")).await.unwrap();
    assert_eq!((outcome, show(&rows)), (Outcome::Deleted { id: 1.into() }, "Bo".into()));
    for operation in [
        bench.get("User", 1, "id"),
        bench.update("User", 1, &[("name", text("x"))], None),
        bench.update("User", 1, &[("name", text("x"))], Some(1)),
        bench.update("User", 1, &[], None),
        bench.delete("User", 1, "id"),
    ] {
        assert_eq!(bench.one(operation).await.unwrap(), (Outcome::NotFound, vec![]));
    }
    assert_eq!(bench.user("Cy").await, 2, "ids are not given twice");
}

async fn stale_expected_version_is_refused(bench: Bench) {
    let id = bench.user("Ada").await;
    bench.one(bench.update("User", id, &[("name", text("B"))], Some(1))).await.unwrap();
    let name = [("name", text("C"))];
    let stale = [bench.update("User", id, &name, Some(1)), bench.update("User", id, &[], Some(1)), {
        let record = bench.record("User").0;
        let selection = bench.select("User", "id");
        Operation::Delete { record, id: id.into(), expected_version: Some(1), selection }
    }];
    for operation in stale {
        let error = bench.one(operation).await.unwrap_err();
        assert!(matches!(error, Error::Stale { expected: 1, found: 2 }), "{error:?}");
    }
    let (outcome, rows) = bench.one(bench.update("User", id, &[], Some(2))).await.unwrap();
    assert_eq!(
        (outcome, show(&rows)),
        (Outcome::Updated { id: id.into(), version: 2 }, "1".into()),
        "no field, no change"
    );
}

async fn external_write_is_seen_and_versioned(bench: Bench) {
    let id = bench.user("Ada").await;
    bench.outside("UPDATE users SET name = 'Eve' WHERE id = 1").await;
    assert_eq!(show(&bench.rows(bench.get("User", id, "name")).await), "Eve");
    let error = bench.one(bench.update("User", id, &[("name", text("x"))], Some(1))).await.unwrap_err();
    assert!(matches!(error, Error::Stale { expected: 1, found: 2 }), "{error:?}");
}

async fn unique_conflict_names_every_field(bench: Bench) {
    bench.make("User", &[("name", text("A")), ("email", text("a@x")), ("balance", text("12.50"))]).await;
    let second =
        bench.make("User", &[("name", text("B")), ("nick", text("b")), ("email", text("b@x"))]).await;

    let fields =
        [("name", text("C")), ("email", text("a@x")), ("nick", text("b")), ("balance", text("12.5"))];
    let error = bench.one(bench.create("User", &fields, "id")).await.unwrap_err();
    assert!(matches!(error, Error::Conflict(_)), "{error:?}");
    assert_eq!(
        complaints(&error),
        [
            "email UNIQUE: Email is already taken",
            "nick UNIQUE: Nick is already taken",
            "balance UNIQUE: Balance is already taken",
        ]
    );
    let own = [("email", text("a@x")), ("nick", text("b"))];
    let error = bench.one(bench.update("User", second, &own, None)).await.unwrap_err();
    assert_eq!(complaints(&error), ["email UNIQUE: Email is already taken"], "its own nick is free to it");
}

async fn chosen_id_is_kept_or_refused(bench: Bench) {
    let chosen = |id: i64| Operation::Create {
        record: bench.record("User").0,
        id: Some(id.into()),
        fields: bench.fields("User", &[("name", text("Ada"))]),
        filled_fields: Vec::new(),
        selection: bench.select("User", "id"),
    };
    assert_eq!(bench.one(chosen(70)).await.unwrap().0, Outcome::Created { id: 70.into(), version: 1 });
    let error = bench.one(chosen(70)).await.unwrap_err();
    assert!(matches!(error, Error::Conflict(_)), "{error:?}");
    assert_eq!(complaints(&error), ["id UNIQUE: Id is already taken"]);
    assert_eq!(bench.user("Bo").await, 71);
}

async fn dangling_references_are_all_named(bench: Bench) {
    let known = bench.make("Course", &[("title", text("Rust"))]).await;
    let error = bench.one(bench.create("Order", &[("user", int(7))], "id")).await.unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error:?}");
    assert_eq!(complaints(&error), ["userId REFERENCE: there is no user with the id 7"]);

    let courses = Value::List(vec![int(8), int(known), int(9)]);
    let error = bench.one(bench.create("Student", &[("name", text("S")), ("courses", courses)], "id")).await;
    let expected = [
        "courseIds.0 REFERENCE: there is no course with the id 8",
        "courseIds.2 REFERENCE: there is no course with the id 9",
    ];
    assert_eq!(complaints(&error.unwrap_err()), expected);
    assert_eq!((bench.count("Order").await, bench.count("Student").await), (0, 0), "nothing is left of them");
}

async fn referenced_record_is_not_deleted(bench: Bench) {
    let boss = bench.user("Boss").await;
    for name in ["A", "B", "C"] {
        bench.make("User", &[("name", text(name)), ("manager", int(boss))]).await;
    }
    let error = bench.one(bench.delete("User", boss, "id")).await.unwrap_err();
    assert!(matches!(error, Error::Conflict(_)), "{error:?}");
    assert_eq!(complaints(&error), ["id REFERENCED: 3 users still refer to this user"]);

    let user = bench.user("Buyer").await;
    let order = bench.make("Order", &[("user", int(user))]).await;
    bench.make("OrderPart", &[("order", int(order)), ("label", text("p"))]).await;
    let error = bench.one(bench.delete("User", user, "id")).await.unwrap_err();
    assert_eq!(
        complaints(&error),
        ["id REFERENCED: 1 order part still refers to this user"],
        "through a cascade"
    );
    assert_eq!((bench.count("User").await, bench.count("Order").await), (5, 1));
}

async fn external_constraint_violation_is_a_conflict(bench: Bench) {
    bench.outside("CREATE UNIQUE INDEX theirs ON users (name, age)").await;
    let twin = [("name", text("Ada")), ("age", int(7))];
    let user = bench.make("User", &twin).await;
    let error = bench.one(bench.create("User", &twin, "id")).await.unwrap_err();
    assert!(matches!(error, Error::Conflict(_)), "{error:?}");
    assert_eq!(
        complaints(&error),
        ["name UNIQUE: Name is already taken", "age UNIQUE: Age is already taken"]
    );

    bench.outside("CREATE TABLE theirs_too (owner bigint REFERENCES users (id))").await;
    bench.outside(&format!("INSERT INTO theirs_too VALUES ({user})")).await;
    let error = bench.one(bench.delete("User", user, "id")).await.unwrap_err();
    assert!(matches!(error, Error::Conflict(_)), "{error:?}");
    assert_eq!(complaints(&error), ["id REFERENCED: other records still refer to this user"]);
}

async fn delete_returns_the_record_and_cascades(bench: Bench) {
    let user = bench.user("Ada").await;
    bench.make("Order", &[("user", int(user)), ("item", text("tea"))]).await;
    let rows = bench.rows(bench.delete("User", user, "name orders(item)")).await;
    assert_eq!(show(&rows), "Ada [tea]");
    assert_eq!(bench.count("Order").await, 0);
}

async fn links_are_replaced_and_seen_from_both_sides(bench: Bench) {
    for title in ["one", "two", "three"] {
        bench.make("Course", &[("title", text(title))]).await;
    }
    let fields = [("name", text("Sam")), ("courses", Value::List(vec![int(3), int(1)]))];
    let rows = bench.rows(bench.create("Student", &fields, "name courses(title)")).await;
    assert_eq!(show(&rows), "Sam [one | three]");
    let courses = [("courses", Value::List(vec![int(2), int(3)]))];
    let (outcome, _) = bench.one(bench.update("Student", 1, &courses, None)).await.unwrap();
    assert_eq!(outcome, Outcome::Updated { id: 1.into(), version: 2 });
    let rows = bench.rows(bench.list("Course", Listing::default(), "title students(name)")).await;
    assert_eq!(show(&rows), "one [] | two [Sam] | three [Sam]");
    let none = [("courses", Value::List(vec![]))];
    bench.one(bench.update("Student", 1, &none, Some(2))).await.unwrap();
    assert_eq!(show(&bench.rows(bench.get("Student", 1, "id courses(id)")).await), "1 []");
}

async fn one_bad_write_in_a_hundred_spares_the_others(bench: Bench) {
    let bench = Arc::new(bench);
    bench.make("User", &[("name", text("first")), ("email", text("taken"))]).await;
    let tasks = (0..100).map(|i| {
        let bench = bench.clone();
        tokio::spawn(async move {
            let email = if i == 50 { "taken".to_owned() } else { format!("{i}@x") };
            let fields = [("name", text(&i.to_string())), ("email", text(&email))];
            (i, bench.one(bench.create("User", &fields, "name")).await)
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        match task.await.unwrap() {
            (50, result) => assert!(matches!(result, Err(Error::Conflict(_)))),
            (i, result) => assert_eq!(show(&result.unwrap().1), i.to_string()),
        }
    }
    assert_eq!(bench.count("User").await, 100);
}

async fn job_plans_run_in_order_and_independently(bench: Bench) {
    let user = |email: &str| bench.create("User", &[("name", text(email)), ("email", text(email))], "id");
    let told = bench.all(vec![user("a"), user("a"), user("b"), bench.get("User", 2, "name")]).await;
    assert!(matches!(told.outcomes[&0], Ok(Outcome::Created { id: RecordId::Number(1), .. })));
    assert!(matches!(told.outcomes[&1], Err(Error::Conflict(_))));
    assert!(matches!(told.outcomes[&2], Ok(Outcome::Created { .. })));
    assert_eq!(bench.count("User").await, 2);
    assert!(matches!(told.outcomes[&3], Ok(Outcome::Found | Outcome::NotFound)));
}

async fn atomic_job_is_all_or_nothing(bench: Bench) {
    let user = |email: &str| bench.create("User", &[("name", text(email)), ("email", text(email))], "id");
    let job = |operations| StoreJob { atomic: true, ..bench.job(operations) };
    let told = bench.run(job(vec![user("a"), user("a"), user("b")])).await.unwrap();
    assert!(matches!(told.outcomes[&0], Err(Error::RolledBack)));
    assert!(matches!(told.outcomes[&1], Err(Error::Conflict(_))));
    assert!(matches!(told.outcomes[&2], Err(Error::RolledBack)));
    assert!(told.rows.is_empty(), "rows of what was undone are forgotten");
    assert_eq!(bench.count("User").await, 0);
    let told = bench.run(job(vec![user("a"), user("b")])).await.unwrap();
    assert!(told.outcomes.values().all(Result::is_ok));
    assert_eq!(bench.count("User").await, 2);
}

async fn atomic_request_with_an_invalid_part_never_starts(bench: Bench) {
    let engine = Engine::new(
        bench.model.clone(),
        Vec::new(),
        ResolverRegistry::default(),
        ChangeFeed::new(bench.store.clone()),
        PlanLimits::default(),
    );
    let user = bench.create("User", &[("name", text("Ada"))], "id");
    let operations = vec![Ok(user), Err(Error::invalid("x", "X", "refused"))];
    let request = EngineRequest { atomic: true, ..EngineRequest::new(Box::new(TestSink::default())) };
    let Ok(JobResult::Completed(answer)) = engine.run(operations, request).await else {
        panic!("not answered")
    };
    let sink = into_test_sink(answer);
    assert!(matches!(sink.outcomes[&0], Err(Error::RolledBack)));
    assert!(matches!(sink.outcomes[&1], Err(Error::Invalid(_))));
    assert_eq!(bench.count("User").await, 0);
}

#[tokio::test]
async fn change_log_is_pruned() {
    let folder = tempfile::tempdir().unwrap();
    let keep =
        SqliteOptions { keep_changes: 10, keep_changes_for: std::time::Duration::from_secs(60), ..options() };
    let store = SqliteStore::open(Some(&folder.path().join("trefoil.db")), keep).unwrap();
    let bench = Bench::with(store, folder);
    let Outsider::File(outsider) = bench.outsider().await else { panic!() };
    let outsider = outsider.into_inner().unwrap();
    for (number, at) in
        (1..=30).map(|i| (i, if i <= 25 { "2020-01-01T00:00:00.000000Z" } else { "2999-01-01" }))
    {
        let sql = "INSERT INTO trefoil_changes VALUES (?1, 'User', 'created', 1, 1, ?2, '{}')";
        outsider.execute(sql, (number, at)).unwrap();
    }
    bench.user("Ada").await;
    // Housekeeping follows the answer; the next call waits behind it.
    bench.on_writer(|_| ()).unwrap();
    let left = outsider.query_row("SELECT min(number), count(*) FROM trefoil_changes", (), |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
    });
    assert_eq!(left.unwrap(), (21, 10));
}
