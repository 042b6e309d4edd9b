//! What rules make of the claims of a token, on both stores: a claim is a value of the type that it is compared with, or
//! none.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use tempfile::TempDir;
use trefoil_config::PostgresUrl;
use trefoil_engine::{
    Actor, ActorIdentity, ChangeFeed, Engine, Listing, PlanLimits, ResolverRegistry, Store, binding,
};
use trefoil_model::error::Error;
use trefoil_model::{SourceFile, Value, parse_schema};
use trefoil_sql::migrate::MigrationMode;
use trefoil_sql::postgres::PostgresOptions;
use trefoil_sql::{SqlStore, SqliteOptions};

/// What becomes of a list with one record.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Answer {
    /// The record is in it.
    Shown,
    /// It is empty: the rule does not hold for this record.
    Empty,
    /// The rule can hold for no record.
    Refused,
}
use Answer::{Empty, Refused, Shown};

/// Rules for reading, and what they come to for a claim `c`.
fn table() -> Vec<(&'static str, Vec<(Json, Answer)>)> {
    vec![
        (
            "claim('c') >= 5",
            vec![
                (json!(5), Shown),
                (json!(12), Shown),
                (json!(4), Refused),
                // As in requests, a whole number may be a text.
                (json!("9"), Shown),
                (json!("x"), Refused),
                (json!(5.5), Refused),
                (json!(true), Refused),
                (json!([9]), Refused),
                (json!({ "a": 9 }), Refused),
                (Json::Null, Refused),
            ],
        ),
        ("!(claim('c') < 5)", vec![(json!(4), Refused), (json!(5), Shown), (json!("x"), Shown)]),
        ("claim('c') == null", vec![(Json::Null, Shown), (json!("a"), Refused), (json!(["a"]), Shown)]),
        ("claim('c') != null", vec![(Json::Null, Refused), (json!(0), Shown), (json!(false), Shown)]),
        ("claim('c') == true", vec![(json!(true), Shown), (json!(1), Refused), (json!("true"), Refused)]),
        // Names may have dots themselves.
        (
            "claim('c.a.b') == 1",
            vec![
                (json!({ "a": { "b": 1 } }), Shown),
                (json!({ "a.b": 1 }), Shown),
                (json!({ "a.b": 1, "a": { "b": 2 } }), Shown),
                (json!({ "a": 1 }), Refused),
            ],
        ),
        ("claim('c') > '9'", vec![(json!("a"), Shown), (json!("10"), Refused), (json!(10), Refused)]),
        ("claim('c') > 9.5", vec![(json!(10), Shown), (json!("9.50"), Refused), (json!("10.0"), Shown)]),
        ("claim('c') in ['a', 'b']", vec![(json!("b"), Shown), (json!("c"), Refused), (json!(1), Refused)]),
        ("claim('c') in [1, 2]", vec![(json!(2), Shown), (json!("x"), Refused)]),
        ("number == claim('c')", vec![(json!(1), Shown), (json!(2), Empty), (json!(true), Refused)]),
        ("number != claim('c')", vec![(json!(1), Empty), (json!(2), Shown), (json!("x"), Refused)]),
        ("flag == claim('c')", vec![(json!(true), Shown), (json!(1), Refused), (json!("true"), Refused)]),
        ("text == claim('c')", vec![(json!("1"), Shown), (json!(1), Refused), (json!("2"), Empty)]),
        ("amount < claim('c')", vec![(json!(10), Shown), (json!("1.5"), Empty), (json!("x"), Refused)]),
        (
            "kind == claim('c')",
            vec![(json!("OWNER"), Shown), (json!("GUEST"), Empty), (json!("KING"), Refused)],
        ),
        ("at <= claim('c')", vec![(json!("2026-05-31T12:00:00+02:00"), Shown), (json!(1), Refused)]),
        (
            "claim('c') < now",
            vec![(json!("2020-01-01T00:00:00Z"), Shown), (json!("2900-01-01T00:00:00Z"), Empty)],
        ),
        (
            "owner == claim('c')",
            vec![(json!(1), Shown), (json!("1"), Shown), (json!(2), Empty), (json!("x"), Refused)],
        ),
        ("claim('c') in tags", vec![(json!("a"), Shown), (json!("b"), Empty), (json!(1), Refused)]),
        ("number in [claim('c'), 7]", vec![(json!(1), Shown), (json!("x"), Empty)]),
        (
            "claim('c') in [amount, rate]",
            vec![(json!("1.5"), Shown), (json!(3), Empty), (json!("x"), Refused)],
        ),
        ("spot.zip == claim('c')", vec![(json!(7), Shown), (json!(8), Empty), (json!("7"), Refused)]),
    ]
}

fn schema() -> String {
    let mut text =
        "scalar Decimal\nscalar DateTime\nenum Kind { OWNER GUEST }\ntype Spot { zip: Int }\n".to_owned();
    for (number, (rule, _)) in table().iter().enumerate() {
        writeln!(
            text,
            "type Rule{number} @allow(all: \"{rule}\") {{ id: ID! text: String number: Int flag: Boolean \
             amount: Decimal rate: Decimal kind: Kind at: DateTime owner: Rule{number} tags: [String!] spot: Spot }}"
        )
        .unwrap();
    }
    text
}

async fn engine(store: SqlStore) -> Engine {
    let file = SourceFile { name: "graphql/test.graphqls".into(), text: schema() };
    let (model, _) = parse_schema(&[file], &[]).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    let model = Arc::new(model);
    let registry = ResolverRegistry::default();
    let bindings = binding::bind_root_fields(&model, &registry);
    store.migrate(&model, &[], &[], MigrationMode::Start).await.unwrap();
    let feed = ChangeFeed::new(Arc::new(store) as Arc<dyn Store>);
    Engine::new(model, bindings, registry, feed, PlanLimits::default())
}

async fn answers_follow_the_table(engine: Engine) {
    let record = json!({
        "text": "1", "number": 1, "flag": true, "amount": "1.50", "rate": "2", "kind": "OWNER",
        "at": "2026-05-31T10:00:00Z", "ownerId": 1, "tags": ["a"], "spot": { "zip": 7 },
    });
    for (number, (rule, cases)) in table().into_iter().enumerate() {
        let name = format!("Rule{number}");
        let mut own = record.clone();
        own.as_object_mut().unwrap().remove("ownerId");
        engine.as_operator().create(&name, Value::from(own)).await.unwrap();
        engine.as_operator().update(&name, 1, Value::from(json!({ "ownerId": 1 }))).await.unwrap();
        for (claim, expected) in cases {
            let identity = ActorIdentity {
                name: "token:1/a".to_owned(),
                roles: Vec::new(),
                account: None,
                claims: Value::from(json!({ "c": claim })),
                expires: None,
            };
            let actor = Actor::of_identity(identity);
            let found = match engine.for_actor(&actor).list(&name, Listing::default()).await {
                Ok(records) if records.is_empty() => Empty,
                Ok(_) => Shown,
                Err(Error::Forbidden { .. }) => Refused,
                Err(error) => panic!("{rule} of {claim}: {error:?}"),
            };
            assert_eq!(found, expected, "{rule} of {claim}");
        }
    }
}

#[tokio::test]
async fn answers_follow_the_table_on_sqlite() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("trefoil.db");
    answers_follow_the_table(
        engine(SqlStore::open_sqlite(Some(&file), SqliteOptions::default()).unwrap()).await,
    )
    .await;
}

#[tokio::test]
async fn answers_follow_the_table_on_postgres() {
    let url = PostgresUrl::parse(&crate::support::postgres::database()).unwrap();
    answers_follow_the_table(
        engine(SqlStore::open_postgres(PostgresOptions::for_url(url)).await.unwrap()).await,
    )
    .await;
}
