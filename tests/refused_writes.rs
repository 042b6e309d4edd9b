//! Writes that are refused, on both stores: what is told first, what a refusal tells of others, and whether an answer is
//! given again.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::sync::Arc;

use tempfile::TempDir;
use trefoil_config::PostgresUrl;
use trefoil_engine::{
    AccountFacts, Actor, ActorIdentity, ActorPath, ChangeFeed, Condition, Engine, EngineRequest,
    IdempotencyKey, JobResult, MissingFields, NestedWrite, Operation, Outcome, PlanLimits, RecordInput,
    RelatedInput, ResolverRegistry, Row, RowSink, Store, binding,
};
use trefoil_model::error::{Error, Result};
use trefoil_model::{FieldId, RecordId, RecordTypeId, SourceFile, StoredValue, Value, parse_schema};
use trefoil_sql::migrate::MigrationMode;
use trefoil_sql::postgres::PostgresOptions;
use trefoil_sql::{SqlStore, SqliteOptions};

const SCHEMA: &str = r#"
enum Role { EDITOR ADMIN }
extend schema @allow(all: "role(ADMIN)")
type User @account(login: "name") @allow(read: true) {
  id: ID!
  name: String! @unique
  blocked: Boolean! @default(value: false)
}
type Team @allow(read: true, update: true) {
  id: ID!
  name: String!
  badges: [Badge!]!
}
type Badge @allow(read: "holder == me || role(EDITOR)", create: "holder == me && !holder.blocked",
                  update: "holder == me", updateTo: "holder == me && rank >= old.rank", delete: "signedIn") {
  id: ID!
  code: String! @unique
  holder: User!
  rank: Int! @default(value: 0)
  team: Team @allow(read: "role(EDITOR)")
}
type Mark @allow(read: "owner == me") { id: ID! owner: User! badge: Badge! }
"#;

struct Application {
    engine: Engine,
    store: Arc<SqlStore>,
    _folder: Option<TempDir>,
}

impl Application {
    /// Users 1 to 3 and a team. The first has badges `a` (in the team) and `b`, the second has `c`, in the team, too.
    /// Two marks of the first user and one of the second are on the first badge.
    async fn new(store: SqlStore, folder: Option<TempDir>) -> Application {
        let file = SourceFile { name: "graphql/test.graphqls".into(), text: SCHEMA.into() };
        let (model, _) = parse_schema(&[file], &[]).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
        let model = Arc::new(model);
        let registry = ResolverRegistry::default();
        let bindings = binding::bind_root_fields(&model, &registry);
        store.migrate(&model, &[], &[], MigrationMode::Start).await.unwrap();
        let store = Arc::new(store);
        let feed = ChangeFeed::new(store.clone() as Arc<dyn Store>);
        let engine = Engine::new(model, bindings, registry, feed, PlanLimits::default());
        let operator = engine.as_operator();
        for name in ["ann", "bob", "cyd"] {
            operator.create("User", object(&[("name", text(name))])).await.unwrap();
        }
        operator.create("Team", object(&[("name", text("one"))])).await.unwrap();
        for (code, holder, team) in [("a", 1, Value::Int(1)), ("b", 1, Value::Null), ("c", 2, Value::Int(1))]
        {
            let fields = [
                ("code", text(code)),
                ("holderId", Value::Int(holder)),
                ("teamId", team),
                ("rank", Value::Int(5)),
            ];
            operator.create("Badge", object(&fields)).await.unwrap();
        }
        for owner in [1, 1, 2] {
            let fields = [("ownerId", Value::Int(owner)), ("badgeId", Value::Int(1))];
            operator.create("Mark", object(&fields)).await.unwrap();
        }
        Application { engine, store, _folder: folder }
    }

    fn as_actor(&self, account: i64, roles: &[&str]) -> Engine {
        let model = self.engine.model();
        let user = model.record(model.find_record("User").unwrap());
        let path = ActorPath { references: Vec::new(), field: user.id_field() };
        let account = AccountFacts {
            label: String::new(),
            id: RecordId::Number(account),
            model_hash: model.hash,
            values: vec![(path, StoredValue::Int(account))],
        };
        let identity = ActorIdentity {
            name: format!("account:{:?}", account.id),
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            account: Some(account),
            claims: Value::Null,
            expires: None,
        };
        self.engine.for_actor(&Actor::of_identity(identity))
    }

    /// Statements run so far.
    fn statements(&self) -> u64 {
        match &*self.store {
            SqlStore::Sqlite(store) => store.statement_count(),
            SqlStore::Postgres(store) => store.statement_count(),
        }
    }

    fn record(&self, name: &str) -> RecordTypeId {
        self.engine.model().find_record(name).unwrap()
    }

    fn fields(&self, name: &str, fields: &[(&str, Value)]) -> Vec<(FieldId, Value)> {
        let record = self.engine.model().record(self.record(name));
        fields.iter().map(|(name, value)| (record.find_field(name).unwrap(), value.clone())).collect()
    }
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn object(members: &[(&str, Value)]) -> Value {
    Value::Object(members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
}

/// The code of a refusal with those of its violations, or `ok`.
fn ending<T>(written: Result<T>) -> String {
    match written {
        Ok(_) => "ok".to_owned(),
        Err(error) => {
            let codes = error.violations().iter().map(|violation| format!(" {}", violation.code));
            format!("{}{}", error.code(), codes.collect::<String>())
        }
    }
}

macro_rules! both {
    ($($name:ident),+ $(,)?) => {
        $(mod $name {
            use super::*;

            #[tokio::test]
            async fn sqlite() {
                let folder = TempDir::new().unwrap();
                let file = folder.path().join("trefoil.db");
                let store = SqlStore::open_sqlite(Some(&file), SqliteOptions::default()).unwrap();
                super::$name(Application::new(store, Some(folder)).await).await;
            }

            #[tokio::test]
            async fn postgres() {
                let url = PostgresUrl::parse(&crate::support::postgres::database()).unwrap();
                let store = SqlStore::open_postgres(PostgresOptions::for_url(url)).await.unwrap();
                super::$name(Application::new(store, None).await).await;
            }
        })+
    };
}

both!(
    values_that_are_taken_are_told_last,
    the_rule_of_the_schema_holds_for_what_a_record_becomes,
    referrers_out_of_sight_are_not_counted,
    hidden_references_tell_nothing_inside_a_write,
    answers_are_given_again_to_who_may_still_ask,
    writes_that_no_rule_can_refuse_take_no_more_statements,
);

async fn values_that_are_taken_are_told_last(application: Application) {
    let ann = application.as_actor(1, &[]);
    let badge = |code: &str, holder: i64| object(&[("code", text(code)), ("holderId", Value::Int(holder))]);
    assert_eq!(ending(ann.create("Badge", badge("c", 1)).await), "CONFLICT UNIQUE");
    assert_eq!(ending(ann.create("Badge", badge("c", 2)).await), "FORBIDDEN");
    assert_eq!(ending(ann.create("Badge", badge("c", 99)).await), "INVALID REFERENCE");
    let change = |code: &str, rank: i64| object(&[("code", text(code)), ("rank", Value::Int(rank))]);
    assert_eq!(ending(ann.update("Badge", 1, change("c", 6)).await), "CONFLICT UNIQUE");
    assert_eq!(ending(ann.update("Badge", 1, change("c", 4)).await), "FORBIDDEN");
    let to_bob = object(&[("code", text("c")), ("holderId", Value::Int(2))]);
    assert_eq!(ending(ann.update("Badge", 1, to_bob).await), "FORBIDDEN");
    assert_eq!(ending(ann.update("Badge", 3, change("a", 6)).await), "NOT_FOUND");
    // One that would be found by the value, if it were in sight.
    let record = application.record("Badge");
    let upsert = |code: &str, holder: i64| {
        let operation = Operation::Upsert {
            record,
            id: None,
            by: vec![application.fields("Badge", &[("code", text(code))])[0].0],
            fields: application.fields("Badge", &[("code", text(code)), ("holder", Value::Int(holder))]),
            filled_fields: Vec::new(),
            selection: Arc::default(),
        };
        ann.collect(operation, Arc::default())
    };
    assert_eq!(ending(upsert("c", 1).await), "CONFLICT UNIQUE");
    assert_eq!(ending(upsert("c", 2).await), "FORBIDDEN");
    // Many at once.
    let items = |holder: i64| {
        let item =
            |code: &str| application.fields("Badge", &[("code", text(code)), ("holder", Value::Int(holder))]);
        let operation = Operation::CreateMany {
            record,
            items: vec![item("new"), item("c")],
            filled_fields: Vec::new(),
            selection: Arc::default(),
        };
        ann.collect(operation, Arc::default())
    };
    assert_eq!(ending(items(1).await), "CONFLICT UNIQUE");
    assert_eq!(ending(items(2).await), "FORBIDDEN FORBIDDEN");
    let many = |rank: i64| {
        let code = application.fields("Badge", &[("code", text("b"))]).remove(0);
        let operation = Operation::UpdateMany {
            record,
            conditions: vec![Condition::equals(code.0, code.1)],
            fields: application.fields("Badge", &[("code", text("c")), ("rank", Value::Int(rank))]),
            filled_fields: Vec::new(),
        };
        ann.collect(operation, Arc::default())
    };
    assert_eq!(ending(many(6).await), "CONFLICT UNIQUE");
    assert_eq!(ending(many(4).await), "FORBIDDEN");
    // Inside another record.
    let inside = |holder: i64| {
        let fields = application.fields("Badge", &[("code", text("c")), ("holder", Value::Int(holder))]);
        let input = RecordInput { fields, ..RecordInput::default() };
        write_inside(&application, &ann, |badges| RelatedInput {
            create: vec![input],
            ..RelatedInput::new(badges)
        })
    };
    assert_eq!(ending(inside(1).await), "CONFLICT UNIQUE");
    assert_eq!(ending(inside(2).await), "FORBIDDEN");
    assert_eq!(application.engine.as_operator().list("Badge", Default::default()).await.unwrap().len(), 3);
}

async fn writes_that_no_rule_can_refuse_take_no_more_statements(application: Application) {
    let (ann, operator) = (application.as_actor(1, &[]), application.engine.as_operator());
    let mut counted = Vec::new();
    for engine in [&operator, &ann] {
        let before = application.statements();
        engine.update("Team", 1, object(&[("name", text("two"))])).await.unwrap();
        let middle = application.statements();
        engine.update("Badge", 1, object(&[("rank", Value::Int(6))])).await.unwrap();
        counted.push([middle - before, application.statements() - middle]);
    }
    // Everybody may change teams; the rule of badges compares with what they were.
    assert_eq!(counted[1][0], counted[0][0]);
    assert!(counted[1][1] > counted[0][1], "{counted:?}");
}

/// An update of the team with what happens to its badges.
async fn write_inside(
    application: &Application,
    engine: &Engine,
    related: impl FnOnce(FieldId) -> RelatedInput,
) -> Result<Outcome> {
    let record = application.record("Team");
    let badges = engine.model().record(record).find_field("badges").unwrap();
    let input = RecordInput { related: vec![related(badges)], ..RecordInput::default() };
    let write = NestedWrite::Update {
        id: 1.into(),
        input,
        missing_fields: MissingFields::Keep,
        expected_version: None,
    };
    let operation = Operation::Nested { record, write, selection: Arc::default() };
    engine.collect(operation, Arc::default()).await?.outcome.unwrap()
}

async fn the_rule_of_the_schema_holds_for_what_a_record_becomes(application: Application) {
    let admin = application.as_actor(3, &["ADMIN"]);
    assert_eq!(ending(admin.update("Badge", 1, object(&[("rank", Value::Int(1))])).await), "ok");
}

async fn referrers_out_of_sight_are_not_counted(application: Application) {
    let message = |refused: Result<bool>| match refused {
        Err(error @ Error::Conflict(_)) => error.violations()[0].message.clone(),
        other => panic!("{other:?}"),
    };
    let delete = async |engine: Engine| message(engine.delete("Badge", 1).await.map(|_| true));
    assert_eq!(delete(application.as_actor(1, &[])).await, "2 marks still refer to this badge, and others");
    assert_eq!(delete(application.as_actor(3, &["EDITOR"])).await, "other records still refer to this badge");
    assert_eq!(delete(application.as_actor(3, &["ADMIN"])).await, "3 marks still refer to this badge");
    assert_eq!(delete(application.engine.as_operator()).await, "3 marks still refer to this badge");
    assert_eq!(ending(application.as_actor(2, &[]).delete("Badge", 1).await), "NOT_FOUND");
}

async fn hidden_references_tell_nothing_inside_a_write(application: Application) {
    let (ann, editor) = (application.as_actor(1, &[]), application.as_actor(1, &["EDITOR"]));
    let change = async |engine: &Engine, id: i64| {
        let fields = application.fields("Badge", &[("rank", Value::Int(9))]);
        let input = RecordInput { fields, ..RecordInput::default() };
        let related = |badges| RelatedInput { update: vec![(id.into(), input)], ..RelatedInput::new(badges) };
        ending(write_inside(&application, engine, related).await)
    };
    // Badge 1 is in the team, badge 2 is not.
    let first = change(&ann, 1).await;
    assert_eq!(first, "INVALID NOT_RELATED");
    assert_eq!(change(&ann, 2).await, first);
    assert_eq!(change(&editor, 1).await, "ok");
    assert_eq!(change(&editor, 2).await, first);
    // What is replaced is what is seen.
    let none = |badges| RelatedInput { set: Some(Vec::new()), ..RelatedInput::new(badges) };
    assert_eq!(ending(write_inside(&application, &ann, none).await), "ok");
    let badge = application.engine.as_operator().get("Badge", 1).await.unwrap().unwrap();
    assert!(badge.get("teamId").is_some_and(|team| !team.is_null()), "{badge:?}");
}

/// A sink whose answer is kept.
#[derive(Default)]
struct AnswerSink(Option<Result<Outcome>>);

impl RowSink for AnswerSink {
    fn row(&mut self, _plan: usize, _row: &dyn Row) {}

    fn finish_plan(&mut self, _plan: usize, outcome: Result<Outcome>) {
        self.0 = Some(outcome);
    }

    fn bytes_to_replay(&mut self) -> Option<Vec<u8>> {
        self.0.as_ref().is_some_and(Result::is_ok).then(|| b"answer".to_vec())
    }

    fn reset(&mut self) {}
}

async fn answers_are_given_again_to_who_may_still_ask(application: Application) {
    let send = async |engine: &Engine, key: &str, operation: Operation| {
        let idempotency_key = Some(IdempotencyKey { key: key.to_owned(), fingerprint: 1 });
        let request =
            EngineRequest { idempotency_key, ..EngineRequest::new(Box::new(AnswerSink::default())) };
        match engine.run(vec![Ok(operation)], request).await {
            Ok(JobResult::Replayed(_)) => "again".to_owned(),
            Ok(JobResult::Completed(sink)) => {
                let sink: Box<AnswerSink> = trefoil_engine::downcast_sink(sink).unwrap();
                match sink.0.unwrap() {
                    Ok(Outcome::NotFound | Outcome::OutOfSight(_)) => "NOT_FOUND".to_owned(),
                    outcome => ending(outcome),
                }
            }
            Err(error) => ending(Err::<(), _>(error)),
        }
    };
    let update = || Operation::Update {
        record: application.record("Badge"),
        id: 1.into(),
        fields: application.fields("Badge", &[("rank", Value::Int(7))]),
        filled_fields: Vec::new(),
        missing_fields: MissingFields::Keep,
        expected_version: None,
        selection: Arc::default(),
    };
    let create = || Operation::Create {
        record: application.record("Badge"),
        id: None,
        fields: application.fields("Badge", &[("code", text("new")), ("holder", Value::Int(1))]),
        filled_fields: Vec::new(),
        selection: Arc::default(),
    };
    let delete = || Operation::Delete {
        record: application.record("Badge"),
        id: 2.into(),
        expected_version: None,
        selection: Arc::default(),
    };
    let (ann, bob, operator) =
        (application.as_actor(1, &[]), application.as_actor(2, &[]), application.engine.as_operator());
    for expected in ["ok", "again"] {
        assert_eq!(send(&ann, "update", update()).await, expected);
        assert_eq!(send(&ann, "create", create()).await, expected);
        assert_eq!(send(&ann, "delete", delete()).await, expected);
    }
    // Another's key is another key.
    assert_eq!(send(&bob, "update", update()).await, "NOT_FOUND");
    operator.update("Badge", 1, object(&[("holderId", Value::Int(2))])).await.unwrap();
    assert_eq!(send(&ann, "update", update()).await, "FORBIDDEN");
    assert_eq!(send(&ann, "create", create()).await, "again");
    operator.update("User", 1, object(&[("blocked", Value::Bool(true))])).await.unwrap();
    assert_eq!(send(&ann, "create", create()).await, "FORBIDDEN");
    // A record that is gone has no rules.
    assert_eq!(send(&ann, "delete", delete()).await, "again");
}
