//! Engines that only ask whether a request would be allowed again: they write nothing, however they are used.

use trefoil_application::App;
use trefoil_config::{Config, DatabaseLocation, PostgresUrl};
use trefoil_engine::{
    Actor, AskedWrites, Engine, Listing, ResolverRegistry, TransactionEnd, TransactionResult,
};
use trefoil_model::Value;
use trefoil_model::error::Error;
use trefoil_server::lifecycle::open_engine;

use crate::support::postgres::TemporaryDatabase;

const SCHEMA: &str = r#"
type Note @allow(read: true, create: "label != 'secret'") { id: ID! label: String! }
type Query { notes: [Note!]! }
"#;

fn note(label: &str) -> Value {
    Value::object([("label", Value::String(label.to_owned()))])
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_again_is_never_written() {
    for database in [None, Some(TemporaryDatabase::new())] {
        let location = match &database {
            None => DatabaseLocation::Memory,
            Some(database) => DatabaseLocation::Postgres(PostgresUrl::parse(&database.url).expect("a URL")),
        };
        let config = Config { database: location, ..Config::default() };
        let app = App::from_schema("notes", SCHEMA);
        let (_, engine) = open_engine(&app, &config, &ResolverRegistry::default()).await.expect("a store");
        let (asked, anonymous) = (AskedWrites::default(), engine.for_actor(&Actor::anonymous(None)));
        let asking = anonymous.asking_again(&asked);
        let end = asking.create("Note", note("open")).await;
        assert!(matches!(end, Err(Error::RolledBack)), "{end:?}");
        assert!(asked.take_allowed() && !asked.take_allowed());
        let end = asking.create("Note", note("secret")).await;
        assert!(matches!(end, Err(Error::Unauthenticated { .. })), "{end:?}");
        assert!(!asked.take_allowed());
        // A transaction would write, and be committed.
        let commit = async |engine: Engine| {
            let result = engine.create("Note", note("open")).await.map(|_| ());
            TransactionEnd::Commit { result, answer: Vec::new() }
        };
        let refused = asking.run_in_transaction(None, commit).await.map(|_| ());
        assert!(matches!(refused, Err(Error::Internal { .. })), "{refused:?}");
        let refused = asking.as_operator().begin_bulk_write().await.map(|_| ());
        assert!(matches!(refused, Err(Error::Internal { .. })), "{refused:?}");
        let commit = async |engine: Engine| {
            let result = engine.asking_again(&asked).create("Note", note("open")).await.map(|_| ());
            TransactionEnd::Commit { result, answer: Vec::new() }
        };
        let Ok(TransactionResult::Ended(refused)) = anonymous.run_in_transaction(None, commit).await else {
            panic!("the transaction itself is no question");
        };
        assert!(matches!(refused, Err(Error::Internal { .. })), "{refused:?}");
        assert!(!asked.take_allowed());
        assert_eq!(engine.list("Note", Listing::default()).await.expect("a list").len(), 0);
    }
}
