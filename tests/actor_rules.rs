//! Rules about the actor alone: of calls, plain lists and text endpoints.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::sync::Arc;

use serde_json::{Value as Json, json};
use trefoil_application::App;
use trefoil_config::Config;
use trefoil_engine::{
    Actor, ActorIdentity, ChangeFeed, Engine, EngineRequest, Operation, Outcome, PlainListAction,
    PlainListOperation, PlanLimits, ResolverRegistry, Row, RowSink,
};
use trefoil_graphql::{GraphqlReply, GraphqlRequest, GraphqlState, RequestContext};
use trefoil_model::Value;
use trefoil_model::error::Result;
use trefoil_server::load_application::{LoadedApplication, load_application};
use trefoil_sql::migrate::MigrationMode;
use trefoil_sql::{SqlStore, SqliteOptions};

const SCHEMA: &str = r#"
type Post @allow(read: true) { id: ID! title: String }
type Query {
  posts: [Post!]!
  today: String @allow(call: "signedIn")
  secret: String @allow(call: "role(EDITOR) && claim('org') == 'main'")
  open: String
}
"#;

const MANIFEST: &str = r#"
[[list]]
path = "/items"
read = true
write = "role(EDITOR)"
[[list]]
path = "/closed"
[[text]]
path = "/public"
text = "a"
[[text]]
path = "/internal"
text = "b"
allow = "signedIn"
"#;

fn registry() -> ResolverRegistry {
    let mut registry = ResolverRegistry::default();
    for name in ["Query.today", "Query.secret", "Query.open"] {
        registry.register(
            name,
            Arc::new(|_| {
                Box::pin(async { Ok(trefoil::ResolverResult::Value(Value::String("said".into()))) })
            }),
        );
    }
    registry
}

fn app(schema: &str) -> App {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("graphql")).unwrap();
    std::fs::write(folder.path().join("graphql/a.graphqls"), schema).unwrap();
    std::fs::write(folder.path().join("trefoil.toml"), MANIFEST).unwrap();
    App::load(folder.path()).unwrap()
}

/// An engine over an empty store, anonymous.
async fn engine() -> Engine {
    let LoadedApplication { model, bindings, .. } = load_application(&app(SCHEMA), &registry()).unwrap();
    let store = Arc::new(SqlStore::open_sqlite(None, SqliteOptions::default()).unwrap());
    let lists = ["items".to_owned(), "closed".to_owned()];
    store.migrate(&model, &[], &lists, MigrationMode::Start).await.unwrap();
    let feed = ChangeFeed::with_cache_bytes(store, 1 << 20);
    Engine::new(model, bindings, registry(), feed, PlanLimits::default())
}

fn editor(org: &str) -> Actor {
    let identity = ActorIdentity {
        name: "key:ci".into(),
        roles: vec!["EDITOR".into()],
        account: None,
        claims: Value::Object(vec![("org".into(), Value::String(org.into()))]),
        expires: None,
    };
    Actor::of_identity(identity)
}

async fn asked(engine: &Engine, actor: Actor, query: &str) -> Json {
    let state = GraphqlState::new(engine.clone(), &Config::default());
    let request =
        GraphqlRequest { query: query.to_owned().into(), operation_name: None, variables: Vec::new() };
    match state.execute_request(request, RequestContext { actor, ..RequestContext::default() }).await {
        GraphqlReply::Executed(executed) => serde_json::from_slice(&executed.body).unwrap(),
        GraphqlReply::Rejected(_) | GraphqlReply::Failed(_) | GraphqlReply::PostRequired => panic!("refused"),
    }
}

#[tokio::test]
async fn calls_are_refused_field_by_field() {
    let engine = engine().await;
    let query = "{ posts { id } day: today secret open }";
    let codes = |answer: &Json| {
        let errors = answer["errors"].as_array().cloned().unwrap_or_default();
        let shown = errors.iter().map(|error| {
            format!(
                "{} {}",
                error["path"][0].as_str().unwrap(),
                error["extensions"]["code"].as_str().unwrap()
            )
        });
        shown.collect::<Vec<_>>()
    };
    let nobody = asked(&engine, Actor::default(), query).await;
    assert_eq!(
        nobody["data"],
        json!({ "posts": [], "day": null, "secret": null, "open": "said" }),
        "{nobody}"
    );
    assert_eq!(codes(&nobody), ["day UNAUTHENTICATED", "secret UNAUTHENTICATED"]);
    let other = asked(&engine, editor("other"), query).await;
    assert_eq!(
        other["data"],
        json!({ "posts": [], "day": "said", "secret": null, "open": "said" }),
        "{other}"
    );
    assert_eq!(codes(&other), ["secret FORBIDDEN"]);
    let own = asked(&engine, editor("main"), query).await;
    assert_eq!(own["data"]["secret"], "said", "{own}");
    assert!(own["errors"].is_null(), "{own}");
}

#[test]
fn calls_that_the_store_answers_follow_their_types() {
    let schema =
        "type Post @allow(read: true) { id: ID! }\ntype Query { posts: [Post!]! @allow(call: true) }\n";
    let mistakes = load_application(&app(schema), &ResolverRegistry::default()).err().unwrap();
    let shown: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    let expected = "graphql/a.graphqls:2:14: `@allow(call: …)` is for registered resolvers, and the store answers \
                    `posts`; write the rule at `Post`, where it holds on every face";
    assert_eq!(shown, [expected]);
}

#[derive(Default)]
struct ListSink(Option<Result<Outcome>>);

impl RowSink for ListSink {
    fn row(&mut self, _plan: usize, _row: &dyn Row) {}

    fn finish_plan(&mut self, _plan: usize, outcome: Result<Outcome>) {
        self.0 = Some(outcome);
    }

    fn bytes_to_replay(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn reset(&mut self) {}
}

async fn list_code(engine: &Engine, list: &str, value: Option<&str>) -> String {
    let action = match value {
        Some(value) => PlainListAction::Append { value: value.to_owned(), expected: None },
        None => PlainListAction::ReadVersion,
    };
    let operation = Operation::PlainList(PlainListOperation { list: list.into(), action });
    let request = EngineRequest::new(Box::new(ListSink::default()));
    let sink = engine.run(vec![Ok(operation)], request).await.unwrap().into_sink::<ListSink>().unwrap();
    match sink.0.unwrap() {
        Ok(_) => "ok".to_owned(),
        Err(error) => error.code().to_owned(),
    }
}

#[tokio::test]
async fn lists_have_rules_of_their_own() {
    let nobody = engine().await;
    let (editor, operator) = (nobody.for_actor(&editor("main")), nobody.as_operator());
    for (engine, list, value, expected) in [
        (&nobody, "items", None, "ok"),
        (&nobody, "items", Some("a"), "UNAUTHENTICATED"),
        // Who may not write is not told what would be wrong.
        (&nobody, "items", Some(" "), "UNAUTHENTICATED"),
        (&editor, "items", Some(" "), "INVALID"),
        (&editor, "items", Some("a"), "ok"),
        (&nobody, "closed", None, "UNAUTHENTICATED"),
        (&editor, "closed", None, "FORBIDDEN"),
        (&editor, "closed", Some("a"), "FORBIDDEN"),
        (&operator, "closed", Some("a"), "ok"),
    ] {
        assert_eq!(list_code(engine, list, value).await, expected, "{list} {value:?}");
    }
}

#[tokio::test]
async fn texts_are_public_unless_they_say_otherwise() {
    let nobody = engine().await;
    let editor = nobody.for_actor(&editor("main"));
    assert!(nobody.check_text(0).is_ok() && editor.check_text(0).is_ok() && editor.check_text(1).is_ok());
    assert_eq!(nobody.check_text(1).unwrap_err().code(), "UNAUTHENTICATED");
}
