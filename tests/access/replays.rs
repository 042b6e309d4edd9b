//! Replays are judged by the records of now, whatever others were told of the same changes before.

use std::time::Duration;

use tempfile::TempDir;
use trefoil_application::App;
use trefoil_config::{Config, DatabaseLocation, PostgresUrl};
use trefoil_engine::ResolverRegistry;
use trefoil_graphql::subscribe::{Subscription, SubscriptionStep};
use trefoil_graphql::{GraphqlReply, GraphqlRequest, GraphqlService, GraphqlState, RequestContext};
use trefoil_server::lifecycle::open_engine;

use crate::support::postgres::TemporaryDatabase;

/// Changes of teams are in no log.
const SCHEMA: &str = r#"
type Team @allow(all: true) { id: ID! open: Boolean! }
type Note @allow(read: "team.open", create: true) { id: ID! text: String! team: Team! }
type Query { notes: [Note!]! }
type Mutation { createTeam(open: Boolean!): Team updateTeam(id: ID!, open: Boolean!): Team createNote(text: String!, teamId: ID!): Note }
type Subscription { noteCreated: Note! }
"#;

struct ReplayStage {
    face: GraphqlService,
    _folder: TempDir,
}

impl ReplayStage {
    async fn new(database: DatabaseLocation) -> ReplayStage {
        let folder = tempfile::tempdir().expect("a folder");
        let config = Config { database, data: folder.path().to_owned(), ..Config::default() };
        let app = App::from_schema("notes", SCHEMA);
        let (_, engine) = open_engine(&app, &config, &ResolverRegistry::default()).await.expect("a store");
        let face = GraphqlService::new(GraphqlState::new(engine, &config), &config);
        ReplayStage { face, _folder: folder }
    }

    async fn write(&self, document: &str) {
        let reply = self.face.state().execute_request(request(document), RequestContext::default()).await;
        let GraphqlReply::Executed(executed) = reply else { panic!("{document} is refused") };
        let text = String::from_utf8(executed.body).expect("UTF-8");
        assert!(!text.contains("INVALID") && !text.contains("rejected"), "{document}: {text}");
    }

    async fn set_open(&self, open: bool) {
        self.write(&format!("mutation {{ updateTeam(id: 1, open: {open}) {{ id }} }}")).await;
    }

    async fn follow(&self, last: Option<&str>) -> Subscription {
        let document = "subscription { noteCreated { id text } }";
        let begun = self.face.subscribe(request(document), RequestContext::default(), last).await;
        begun.unwrap_or_else(|_| panic!("a subscription"))
    }

    /// The note that a replay begins with.
    async fn replayed(&self, last: &str) -> Option<String> {
        told(&mut self.follow(Some(last)).await).await
    }
}

fn request(document: &str) -> GraphqlRequest<'static> {
    GraphqlRequest { query: document.to_owned().into(), operation_name: None, variables: Vec::new() }
}

/// The text of the next note, if one is told of within some time.
async fn told(subscription: &mut Subscription) -> Option<String> {
    let step = tokio::time::timeout(Duration::from_millis(500), subscription.next()).await;
    let SubscriptionStep::Event(event) = step.ok()? else { panic!("the subscription ended") };
    let json: serde_json::Value = serde_json::from_slice(&event.payload).expect("JSON");
    json["data"]["noteCreated"]["text"].as_str().map(str::to_owned)
}

#[tokio::test(flavor = "multi_thread")]
async fn replays_are_judged_by_the_records_of_now() {
    for database in [None, Some(TemporaryDatabase::new())] {
        let location = match &database {
            None => DatabaseLocation::Memory,
            Some(database) => DatabaseLocation::Postgres(PostgresUrl::parse(&database.url).expect("a URL")),
        };
        let stage = ReplayStage::new(location).await;
        stage.write("mutation { createTeam(open: false) { id } }").await;
        let mut live = stage.follow(None).await;
        let begin = live.last_event_id().to_string();
        assert_eq!(told(&mut live).await, None);
        stage.write("mutation { createNote(text: \"one\", teamId: 1) { id } }").await;
        assert_eq!(told(&mut live).await, None);
        // What waits for the next change has judged this one.
        stage.set_open(true).await;
        assert_eq!(stage.replayed(&begin).await.as_deref(), Some("one"), "{database:?}");
        stage.set_open(false).await;
        assert_eq!(stage.replayed(&begin).await, None, "{database:?}");
        stage.set_open(true).await;
        assert_eq!(stage.replayed(&begin).await.as_deref(), Some("one"), "{database:?}");
        // Whoever has come to the end is told of the next change, and only once.
        let mut other = stage.follow(Some(&begin)).await;
        assert_eq!(told(&mut other).await.as_deref(), Some("one"));
        assert_eq!(told(&mut other).await, None);
        stage.write("mutation { createNote(text: \"two\", teamId: 1) { id } }").await;
        for subscription in [&mut live, &mut other] {
            assert_eq!(told(subscription).await.as_deref(), Some("two"));
            assert_eq!(told(subscription).await, None);
        }
    }
}
