//! Writes to many records at once, and upserts: their limit, their statements, and others that do the same meanwhile.

use super::*;

both![
    sessions_that_upsert_the_same_record_create_one,
    more_records_than_the_limit_are_refused,
    many_records_take_few_statements,
];

fn create_many(bench: &Bench, count: usize) -> Operation {
    let record = bench.record("Course").0;
    let items = (0..count).map(|i| bench.fields("Course", &[("title", text(&format!("c{i}")))])).collect();
    Operation::CreateMany {
        record,
        filled_fields: Vec::new(),
        items,
        selection: bench.select("Course", "id title"),
    }
}

fn any_title(bench: &Bench) -> Vec<Condition> {
    vec![bench.condition("Course", "title", "contains", text("c"))]
}

async fn sessions_that_upsert_the_same_record_create_one(bench: Bench) {
    let upsert = |age: i64| {
        let fields = [("name", text("Ada")), ("email", text("ada@example.org")), ("age", int(age))];
        Operation::Upsert {
            id: None,
            record: bench.record("User").0,
            by: vec![bench.field("User", "email")],
            fields: bench.fields("User", &fields),
            filled_fields: Vec::new(),
            selection: bench.select("User", "age"),
        }
    };
    let outcomes = futures_util::future::join_all((0..20).map(|age| bench.one(upsert(age)))).await;
    let (mut created, mut versions) = (0, Vec::new());
    for outcome in outcomes {
        match outcome.unwrap().0 {
            Outcome::Created { version, .. } => {
                created += 1;
                versions.push(version);
            }
            Outcome::Updated { version, .. } => versions.push(version),
            other @ (Outcome::Found
            | Outcome::NotFound
            | Outcome::OutOfSight(_)
            | Outcome::Listed { .. }
            | Outcome::Deleted { .. }
            | Outcome::ChangedMany { .. }
            | Outcome::PlainList { .. }) => panic!("{other:?}"),
        }
    }
    versions.sort();
    assert_eq!((created, bench.count("User").await), (1, 1));
    assert_eq!(versions, (1..=20).collect::<Vec<i64>>(), "each is a change of its own");
}

async fn more_records_than_the_limit_are_refused(bench: Bench) {
    let too_many = Plan::prove(
        &bench.model,
        &PlanLimits::default(),
        &Authority::operator(),
        create_many(&bench, 10_001),
        &jiff::Timestamp::UNIX_EPOCH.into(),
    );
    assert!(matches!(too_many.unwrap_err(), Error::Limit(_)));
    let (outcome, rows) = bench.one(create_many(&bench, 10_000)).await.unwrap();
    assert_eq!((outcome, rows.len()), (Outcome::ChangedMany { count: 10_000 }, 10_000));
    let record = bench.record("Course").0;
    let update = || {
        let fields = bench.fields("Course", &[("title", text("changed"))]);
        Operation::UpdateMany { record, filled_fields: Vec::new(), conditions: any_title(&bench), fields }
    };
    let delete = || Operation::DeleteMany { record, conditions: any_title(&bench) };
    assert_eq!(bench.one(update()).await.unwrap().0, Outcome::ChangedMany { count: 10_000 });
    bench.make("Course", &[("title", text("one more: c"))]).await;
    for operation in [update(), delete()] {
        let error = bench.one(operation).await.unwrap_err();
        assert!(matches!(&error, Error::Limit(text) if text.contains("limits.bulk")), "{error:?}");
    }
    assert_eq!(bench.count("Course").await, 10_001);
    bench.one(bench.delete("Course", 1, "id")).await.unwrap();
    assert_eq!(bench.one(delete()).await.unwrap().0, Outcome::ChangedMany { count: 10_000 });
    assert_eq!(bench.count("Course").await, 0);
}

async fn many_records_take_few_statements(bench: Bench) {
    bench.one(create_many(&bench, 512)).await.unwrap();
    let record = bench.record("Course").0;
    let fields = bench.fields("Course", &[("title", text("c changed"))]);
    let update =
        Operation::UpdateMany { record, filled_fields: Vec::new(), conditions: any_title(&bench), fields };
    let delete = Operation::DeleteMany { record, conditions: any_title(&bench) };
    // The count, the write, and the limits of the transaction.
    for operation in [update, delete] {
        let cost = bench.cost(operation).await;
        assert!(cost <= 6, "{cost} statements");
    }
    if !bench.is_sqlite() {
        let cost = bench.cost(create_many(&bench, 512)).await;
        assert!(cost <= 12, "{cost} statements for 512 new records");
    }
}
