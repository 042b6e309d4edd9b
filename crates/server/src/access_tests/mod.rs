//! Tests of what each face refuses and leaves out for an actor who may not do everything.

mod descriptions;

use std::sync::Arc;

use axum::body::Body;
use http::header::{ACCEPT, CONTENT_TYPE, ETAG, LOCATION};
use http::{HeaderMap, Request, StatusCode};
use serde_json::{Value as Json, json};

use trefoil_application::App;
use trefoil_config::{Config, DatabaseLocation};
use trefoil_engine::{Actor, ActorIdentity, ChangeFeed, Engine, Operation, ResolverRegistry};
use trefoil_graphql::{GraphqlReply, GraphqlRequest, GraphqlState, RequestContext};
use trefoil_http::client_info::ClientInfo;
use trefoil_http::errors::problem::Problem;
use trefoil_http::monitoring::metrics::Metrics;
use trefoil_http::response_cache::ResponseCache;
use trefoil_http::service::HandlerResponse;
use trefoil_http::shutdown::Shutdown;
use trefoil_model::error::Error;
use trefoil_model::{FieldId, RecordTypeId, Value};
use trefoil_sql::migrate::MigrationMode;

use crate::lifecycle::{build_engine, migrate_store, open_store};
use crate::load_application::load_application;
use crate::routes::{ResourceRouter, ResourceState};

const SCHEMA: &str = r#"
type Query { posts: [Post!]!  post(id: ID!): Post  notes: [Note!]!  postCount: Int! }
type Mutation {
  createPost(title: String!, score: Int): Post
  updatePost(id: ID!, title: String, score: Int): Post
  deletePost(id: ID!): Post
}
type Subscription { postCreated: Post  noteCreated: Note }
type Post @allow(read: true, create: "role(EDITOR)", update: "role(EDITOR)", delete: false) {
  id: ID!
  title: String!
  score: Int @allow(read: "role(EDITOR)", write: "role(CHIEF)")
  notes: [Note!]!
}
type Note @allow(read: "role(EDITOR)", write: "role(EDITOR)") {
  id: ID!
  text: String!
  post: Post @reference
}
"#;

struct FaceStage {
    engine: Engine,
    graphql: GraphqlState,
    router: ResourceRouter,
}

/// Status, headers, body and what the service would make its body of.
struct FaceReply {
    status: StatusCode,
    headers: HeaderMap,
    problem: Option<Problem>,
    body: String,
}

async fn stage() -> FaceStage {
    let stage = stage_of(SCHEMA).await;
    let created = stage.graphql(&["EDITOR"], "mutation { createPost(title: \"One\") { id } }").await;
    assert!(created["errors"].is_null(), "{created}");
    stage
}

/// Without records.
async fn stage_of(schema: &str) -> FaceStage {
    let (app, config) = (
        App::from_schema("Shop", schema),
        Config { database: DatabaseLocation::Memory, ..Config::default() },
    );
    let registry = ResolverRegistry::default();
    let application = load_application(&app, &registry).expect("a valid schema");
    let store = Arc::new(open_store(&config).await.expect("a store").1);
    migrate_store(&store, &application, &app, MigrationMode::Start).await.expect("new tables");
    let feed = ChangeFeed::new(store);
    let engine = build_engine(&application, &registry, &feed, &config);
    let (metrics, shutdown) = (Metrics::new(), Shutdown::new());
    let cache = Arc::new(ResponseCache::new(engine.clone(), config.limits.answer_cache, &metrics));
    let streams = trefoil_rest::StreamSettings { heartbeat: config.heartbeat, metrics, shutdown };
    let state = ResourceState::new(&app, engine.clone(), cache.clone(), "store", streams, &config);
    let graphql = GraphqlState::new(engine.clone(), &config).with_response_cache(cache);
    FaceStage { engine, graphql, router: ResourceRouter::new(state) }
}

fn asked(query: &str) -> GraphqlRequest<'static> {
    GraphqlRequest { query: query.to_owned().into(), operation_name: None, variables: Vec::new() }
}

/// Anonymous without roles.
fn actor(roles: &[&str]) -> Actor {
    let identity = ActorIdentity {
        name: format!("key:{}", roles.join("-")),
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
        account: None,
        claims: Value::Null,
        expires: None,
    };
    Actor { identity: (!roles.is_empty()).then(|| Arc::new(identity)), ..Actor::default() }
}

impl FaceStage {
    async fn graphql(&self, roles: &[&str], query: &str) -> Json {
        let request = asked(query);
        let context = RequestContext { actor: actor(roles), ..RequestContext::default() };
        match self.graphql.execute_request(request, context).await {
            GraphqlReply::Executed(executed) => serde_json::from_slice(&executed.body).expect("JSON"),
            GraphqlReply::Rejected(errors) => panic!("{errors:?}"),
            GraphqlReply::Failed(error) => panic!("{error}"),
            GraphqlReply::PostRequired => panic!("not safe"),
        }
    }

    async fn send(
        &self,
        roles: &[&str],
        method: &str,
        path: &str,
        head: &[(&str, &str)],
        body: &str,
    ) -> FaceReply {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in head {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_owned())).expect("a request");
        let mut client = ClientInfo::default();
        client.identity = actor(roles).identity;
        let response = match (self.router.request_handler())(request, client) {
            HandlerResponse::Ready(response) => response,
            HandlerResponse::Pending(response) => response.await,
        };
        let (parts, body) = response.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.expect("a body");
        FaceReply {
            status: parts.status,
            problem: parts.extensions.get::<Problem>().cloned(),
            headers: parts.headers,
            body: String::from_utf8(body.to_vec()).expect("UTF-8"),
        }
    }

    async fn json(&self, roles: &[&str], method: &str, path: &str, body: &str) -> FaceReply {
        let head = [(ACCEPT.as_str(), "application/json"), (CONTENT_TYPE.as_str(), "application/json")];
        self.send(roles, method, path, &head, body).await
    }

    async fn page(&self, roles: &[&str], path: &str) -> FaceReply {
        self.send(roles, "GET", path, &[(ACCEPT.as_str(), "text/html")], "").await
    }
}

impl FaceReply {
    fn code(&self) -> Option<(u16, &str)> {
        self.problem.as_ref().map(|problem| (problem.status.as_u16(), &*problem.code))
    }
}

#[tokio::test]
async fn graphql_refuses_root_fields() {
    let stage = stage().await;
    for (roles, code) in [(&[][..], "UNAUTHENTICATED"), (&["READER"][..], "FORBIDDEN")] {
        for query in [
            "mutation { createPost(title: \"Two\") { id } }",
            "mutation { updatePost(id: 1, title: \"Two\") { id } }",
            "mutation { deletePost(id: 1) { id } }",
            "{ notes { text } }",
        ] {
            let answer = stage.graphql(roles, query).await;
            assert_eq!(answer["errors"][0]["extensions"]["code"], code, "{query} {answer}");
        }
    }
    let refused = stage.graphql(&["EDITOR"], "mutation { deletePost(id: 1) { id } }").await;
    assert_eq!(refused["errors"][0]["extensions"]["code"], "FORBIDDEN", "{refused}");
    let given = "mutation { updatePost(id: 1, title: \"Two\", score: 3) { id } }";
    let refused = stage.graphql(&["EDITOR"], given).await;
    let violations = &refused["errors"][0]["extensions"]["violations"];
    assert_eq!(violations[0]["path"], json!(["score"]), "{refused}");
    assert_eq!(stage.graphql(&["EDITOR", "CHIEF"], given).await["errors"], Json::Null);
}

#[tokio::test]
async fn graphql_reports_each_hidden_selection_once() {
    let stage = stage().await;
    let answer =
        stage.graphql(&["READER"], "{ post(id: 1) { title score notes { text } } posts { score } }").await;
    let errors: Vec<Json> = { answer["errors"].as_array() }
        .into_iter()
        .flatten()
        .map(|error| json!([error["extensions"]["code"], error["extensions"]["field"], error["path"]]))
        .collect();
    let expected = [
        json!(["FORBIDDEN", "Post.score", ["post", "score"]]),
        json!(["FORBIDDEN", "Post.notes", ["post", "notes"]]),
        json!(["FORBIDDEN", "Post.score", null]),
    ];
    assert_eq!(errors, expected, "{answer}");
    assert!(answer["errors"][0]["locations"][0]["line"].is_number(), "{answer}");
    let answer = stage.graphql(&["EDITOR"], "{ post(id: 1) { title score notes { text } } }").await;
    assert!(answer["errors"].is_null(), "{answer}");
}

#[tokio::test]
async fn rest_refuses_actions() {
    let stage = stage().await;
    let (anonymous, reader) = (Some((401, "UNAUTHENTICATED")), Some((403, "FORBIDDEN")));
    for (method, path, body) in [
        ("GET", "/notes", ""),
        ("GET", "/notes/1", ""),
        ("GET", "/posts/1/notes", ""),
        ("POST", "/posts", "not even JSON"),
        ("PUT", "/posts/1", "{\"title\": \"Two\"}"),
        ("PATCH", "/posts/1", "{\"title\": \"Two\"}"),
        ("PATCH", "/posts?all=true", "{\"title\": \"Two\"}"),
        ("DELETE", "/posts/1", ""),
        ("DELETE", "/posts?all=true", ""),
        ("GET", "/notes?aggregate=count", ""),
    ] {
        assert_eq!(stage.json(&[], method, path, body).await.code(), anonymous, "{method} {path}");
        assert_eq!(stage.json(&["READER"], method, path, body).await.code(), reader, "{method} {path}");
    }
    let created = stage.json(&["EDITOR"], "POST", "/posts", "{\"title\": \"Two\"}").await;
    assert_eq!((created.status, created.headers.contains_key(LOCATION)), (StatusCode::CREATED, true));
    let given = stage.json(&["EDITOR"], "PATCH", "/posts/1", "{\"score\": 2, \"title\": \"Two\"}").await;
    let problem = given.problem.expect("refused");
    assert_eq!((problem.status.as_u16(), problem.violations.len()), (403, 1));
}

#[tokio::test]
async fn rest_leaves_out_hidden_fields_unless_they_are_named() {
    let stage = stage().await;
    for (roles, expected) in [
        (&["READER"][..], json!({ "id": "1", "title": "One" })),
        (&["EDITOR"][..], json!({ "id": "1", "title": "One", "score": null })),
    ] {
        let one = stage.json(roles, "GET", "/posts/1", "").await;
        assert_eq!(serde_json::from_str::<Json>(&one.body).expect("JSON"), expected);
        let list = stage.json(roles, "GET", "/posts", "").await;
        assert_eq!(serde_json::from_str::<Json>(&list.body).expect("JSON")[0], expected);
        let csv = stage.json(roles, "GET", "/posts?format=csv", "").await.body;
        assert_eq!(csv.contains("score"), roles == ["EDITOR"], "{csv}");
    }
    for query in [
        "fields=score",
        "sort=score",
        "score=1",
        "include=notes",
        "notes.text=a",
        "or=(score.eq=1,title.eq=One)",
        "aggregate=sum(score)",
        "aggregate=count&group=score",
    ] {
        let refused = stage.json(&["READER"], "GET", &format!("/posts?{query}"), "").await;
        assert_eq!(refused.code(), Some((403, "FORBIDDEN")), "{query}");
        assert!(!refused.problem.expect("refused").violations.is_empty(), "{query}");
    }
}

#[tokio::test]
async fn tags_and_kept_answers_belong_to_a_class() {
    let stage = stage().await;
    let tag = async |roles: &[&str], path: &str| {
        stage.json(roles, "GET", path, "").await.headers[ETAG].to_str().expect("ASCII").to_owned()
    };
    let (reader, other, editor) = (
        tag(&["READER"], "/posts/1").await,
        tag(&["GUEST"], "/posts/1").await,
        tag(&["EDITOR"], "/posts/1").await,
    );
    assert_eq!(reader, other);
    assert_ne!(reader, editor);
    // The second of equal requests is answered from what is kept.
    for _ in 0..2 {
        for roles in [&[][..], &["EDITOR"]] {
            let body = stage.json(roles, "GET", "/posts", "").await.body;
            assert_eq!(body.contains("score"), !roles.is_empty(), "{body}");
            let page = stage.page(roles, "/posts").await.body;
            assert_eq!(page.contains("Score"), !roles.is_empty());
        }
    }
}

#[tokio::test]
async fn idempotency_keys_belong_to_the_actor() {
    let stage = stage().await;
    let head =
        [("accept", "application/json"), ("content-type", "application/json"), ("idempotency-key", "k")];
    let body = "{\"title\": \"Two\"}";
    let mut locations = Vec::new();
    for roles in [&["EDITOR"][..], &["EDITOR", "CHIEF"], &["EDITOR"]] {
        let created = stage.send(roles, "POST", "/posts", &head, body).await;
        locations.push(created.headers[LOCATION].clone());
    }
    assert_eq!(locations, ["/posts/2", "/posts/3", "/posts/2"]);
    let refused = stage.send(&["READER"], "POST", "/posts", &head, body).await;
    assert_eq!(refused.code(), Some((403, "FORBIDDEN")));
}

#[tokio::test]
async fn pages_offer_what_the_actor_may_do() {
    let stage = stage().await;
    let all = ["/posts/new", "/posts/1/edit", "href=\"/notes\"", "Score"];
    for (roles, path, shown) in [
        (&["READER"][..], "/posts", &[][..]),
        (&["READER"], "/posts/1", &[]),
        (&["EDITOR"], "/posts", &["/posts/new", "/posts/1/edit", "href=\"/notes\"", "Score"]),
        (&["EDITOR"], "/posts/1", &["/posts/1/edit", "href=\"/notes\"", "Score"]),
        // The field is seen by editors, and set by chiefs.
        (&["EDITOR"], "/posts/new", &["href=\"/notes\""]),
        (&["EDITOR", "CHIEF"], "/posts/new", &["href=\"/notes\"", "Score"]),
    ] {
        let page = stage.page(roles, path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        for word in all {
            assert_eq!(
                page.body.contains(word),
                shown.contains(&word),
                "{roles:?} {path} {word}\n{}",
                page.body
            );
        }
        assert!(!page.body.contains("/posts/1/delete"), "nobody deletes posts: {path}");
    }
    for (path, status) in
        [("/posts/new", 403), ("/posts/1/edit", 403), ("/posts/1/delete", 403), ("/notes", 403)]
    {
        assert_eq!(stage.page(&["READER"], path).await.code().map(|code| code.0), Some(status), "{path}");
        assert_eq!(stage.page(&[], path).await.code().map(|code| code.0), Some(401), "{path}");
    }
}

#[tokio::test]
async fn the_api_is_described_for_who_asks() {
    let stage = stage().await;
    let describe = async |roles: &[&str]| {
        let state = stage.router.current();
        let resources = state.catalog.for_actor(|| actor(roles)).into_owned();
        let response = state.rest.openapi_response(&resources, &[], &HeaderMap::new());
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        serde_json::from_slice::<Json>(&body).expect("JSON")
    };
    let reader = describe(&["READER"]).await;
    let methods = |document: &Json, path: &str| -> Vec<String> {
        let item = document["paths"][path].as_object().into_iter().flatten();
        item.map(|(method, _)| method.clone()).filter(|method| method != "parameters").collect()
    };
    assert_eq!(methods(&reader, "/posts"), ["get"]);
    assert_eq!(methods(&reader, "/posts/{id}"), ["get"]);
    let text = reader.to_string();
    for word in ["score", "/notes", "Note", "createPost", "\"summary\":\"Delete"] {
        assert!(!text.contains(word), "{word}");
    }
    let editor = describe(&["EDITOR"]).await;
    assert_eq!(methods(&editor, "/posts"), ["get", "post", "patch"]);
    assert!(editor["components"]["schemas"]["Post"]["properties"]["score"].is_object());
    assert!(editor["components"]["schemas"]["Post.New"]["properties"]["score"].is_null());
    assert!(editor["paths"]["/notes"].is_object());
}

#[tokio::test]
async fn refused_forms_come_back_with_what_was_typed() {
    let stage = stage().await;
    let head = [("accept", "text/html"), ("content-type", "application/x-www-form-urlencoded")];
    for (roles, status) in [(&[][..], 401), (&["READER"][..], 403)] {
        let form = stage.send(roles, "POST", "/posts", &head, "title=Long+text").await;
        assert_eq!(form.status.as_u16(), status);
        assert!(form.body.contains("Long text"), "{}", form.body);
    }
    let edited = stage.send(&["EDITOR"], "POST", "/posts/1", &head, "title=Changed&-version=1").await;
    assert_eq!(edited.status, StatusCode::SEE_OTHER, "{}", edited.body);
}

#[tokio::test]
async fn subscriptions_need_records_that_may_be_read() {
    let stage = stage().await;
    let config = Config::default();
    let service = trefoil_graphql::GraphqlService::new(stage.graphql, &config);
    let subscribe = async |roles: &[&str], query: &str| {
        let request = asked(query);
        let context = RequestContext { actor: actor(roles), ..RequestContext::default() };
        service.subscribe(request, context, None).await
    };
    let refused = subscribe(&["READER"], "subscription { noteCreated { text } }").await;
    let Err(GraphqlReply::Rejected(errors)) = refused else { panic!("it may not begin") };
    assert_eq!(&*errors[0].code, "FORBIDDEN");
    let query = "subscription { postCreated { title } }";
    let mut open = Vec::new();
    for (roles, channels) in [(&["READER"][..], 1), (&["GUEST"], 1), (&["EDITOR"], 2)] {
        open.push(subscribe(roles, query).await.unwrap_or_else(|_| panic!("{roles:?}")));
        assert_eq!(service.state().channels().len(), channels, "{roles:?}");
    }
}

#[tokio::test]
async fn engines_without_an_actor_are_anonymous() {
    let stage = stage().await;
    let (note, key) = (RecordTypeId(1), FieldId(0));
    let read = || Operation::Get { record: note, id: 1.into(), selection: Arc::default() };
    assert_eq!(stage.engine.model().record(note).field(key).name, "id");
    let found = stage.engine.collect(read(), Arc::default()).await;
    let refused =
        |outcome: trefoil_model::error::Result<()>| matches!(outcome, Err(Error::Unauthenticated { .. }));
    assert!(refused(found.and_then(|found| found.outcome.transpose().map(drop))));
    assert!(stage.engine.begin_bulk_write().await.is_err());
    let found = stage.engine.as_operator().collect(read(), Arc::default()).await;
    assert!(!refused(found.and_then(|found| found.outcome.transpose().map(drop))));
}
