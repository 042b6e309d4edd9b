//! Rules on both stores, asked through the engine: what an actor sees, and what they may write.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::sync::Arc;

use tempfile::TempDir;
use trefoil_config::PostgresUrl;
use trefoil_engine::arguments::sort_keys::parse_sort_key;
use trefoil_engine::{
    AccountFacts, Actor, ActorIdentity, ActorPath, ChangeFeed, ChangeKind, Condition, Engine, Listing,
    Operation, PlanLimits, ResolverRegistry, Store, binding,
};
use trefoil_model::access::AccessAction;
use trefoil_model::error::Error;
use trefoil_model::{FieldId, RecordId, SourceFile, StoredValue, Value, parse_schema};
use trefoil_sql::migrate::MigrationMode;
use trefoil_sql::postgres::PostgresOptions;
use trefoil_sql::{SqlStore, SqliteOptions};

const SCHEMA: &str = r#"
enum Role { AUTHOR EDITOR ADMIN }
enum Kind { OWNER GUEST }
extend schema @allow(all: "role(ADMIN)")
type User @account(login: "email", roles: "role", if: "!blocked")
  @allow(read: "!blocked || this == me", update: "this == me") {
  id: ID!
  name: String!
  email: String! @unique @allow(read: "this == me || role(EDITOR)")
  role: Role @allow(write: "role(EDITOR)")
  blocked: Boolean! @default(value: false) @allow(read: "role(EDITOR)", write: "role(EDITOR)")
  team: Team
  posts: [Post!]!
}
type Team @allow(read: "members.exists(m, m == me) || role(EDITOR)") {
  id: ID!
  name: String!
  members: [User!]!
}
type Post @rule(name: "mine", is: "author == me")
  @allow(read: "published || mine || role(EDITOR)", create: "role(AUTHOR, EDITOR) && mine",
         update: "mine || role(EDITOR)", updateTo: "mine && words >= old.words || role(EDITOR)",
         delete: "mine && !published || role(EDITOR)") {
  id: ID!
  title: String! @notBlank
  author: User!
  published: Boolean! @default(value: false) @allow(write: "role(EDITOR)")
  note: String @allow(read: "mine || role(EDITOR)", write: "role(EDITOR)")
  words: Int! @default(value: 0)
  tags: [Tag!]
  comments: [Comment!]!
}
type Tag @allow(read: "!secret", write: "signedIn") { id: ID!  name: String!  secret: Boolean! @default(value: false) posts: [Post!] }
type Comment @allow(read: "can(read, post)", create: "signedIn", update: "signedIn") {
  id: ID!
  secret: String @allow(read: "post.author == me", write: "post.author == me")
  post: Post! @reference(onDelete: CASCADE)
  text: String!
}
type Memo @allow(read: true, create: "signedIn", update: "owner == me") {
  id: ID!
  text: String!
  team: Team! @default(from: "me.team") @allow(write: false)
  owner: User! @default(from: "me") @allow(write: "owner == me")
}
type Call @allow(read: "!post.published") { id: ID! text: String! post: Post! @reference(onDelete: CASCADE) }
type Query { posts: [Post!]! }
"#;

struct Application {
    engine: Engine,
    _folder: Option<TempDir>,
}

impl Application {
    async fn new(store: SqlStore, folder: Option<TempDir>) -> Application {
        let file = SourceFile { name: "graphql/test.graphqls".into(), text: SCHEMA.into() };
        let (model, _) = parse_schema(&[file], &[]).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
        let model = Arc::new(model);
        let registry = ResolverRegistry::default();
        let bindings = binding::bind_root_fields(&model, &registry);
        let call = model.find_record("Call").unwrap();
        let logged = [(call, ChangeKind::Created), (call, ChangeKind::Deleted)];
        store.migrate(&model, &logged, &[], MigrationMode::Start).await.unwrap();
        let feed = ChangeFeed::new(Arc::new(store) as Arc<dyn Store>);
        let engine = Engine::new(model, bindings, registry, feed, PlanLimits::default());
        Application { engine, _folder: folder }
    }

    /// Users 1 to 4 (4 is blocked) in teams 1, 1, 2; posts, tags and comments.
    async fn filled(self) -> Application {
        let operator = self.engine.as_operator();
        for name in ["one", "two"] {
            operator.create("Team", object(&[("name", text(name))])).await.unwrap();
        }
        for (name, team, blocked) in
            [("ann", 1, false), ("bob", 1, false), ("cyd", 2, false), ("dan", 2, true)]
        {
            let email = text(&format!("{name}@example.org"));
            let fields = [
                ("name", text(name)),
                ("email", email),
                ("teamId", Value::Int(team)),
                ("blocked", Value::Bool(blocked)),
            ];
            operator.create("User", object(&fields)).await.unwrap();
        }
        for (name, secret) in [("open", false), ("hidden", true)] {
            operator
                .create("Tag", object(&[("name", text(name)), ("secret", Value::Bool(secret))]))
                .await
                .unwrap();
        }
        for (title, author, published, note, words) in [
            ("a1", 1, true, "n1", 10),
            ("a2", 1, false, "n2", 20),
            ("b1", 2, true, "n3", 30),
            ("d1", 4, true, "n4", 40),
        ] {
            let fields = [
                ("title", text(title)),
                ("authorId", Value::Int(author)),
                ("published", Value::Bool(published)),
                ("note", text(note)),
                ("words", Value::Int(words)),
                ("tagIds", Value::List(vec![Value::Int(1), Value::Int(2)])),
            ];
            operator.create("Post", object(&fields)).await.unwrap();
        }
        for post in [1, 2, 3] {
            let fields = [("postId", Value::Int(post)), ("text", text("hi")), ("secret", text("s"))];
            operator.create("Comment", object(&fields)).await.unwrap();
        }
        self
    }

    fn as_actor(&self, account: Option<i64>, roles: &[&str]) -> Engine {
        let model = self.engine.model();
        let user = model.record(model.find_record("User").unwrap());
        let value = |field: &str, value: StoredValue| {
            let field = user.find_field(field).unwrap();
            (ActorPath { references: Vec::new(), field }, value)
        };
        let account = account.map(|id| AccountFacts {
            label: String::new(),
            id: RecordId::Number(id),
            model_hash: model.hash,
            values: vec![
                value("id", StoredValue::Int(id)),
                value("team", StoredValue::Int(if id < 3 { 1 } else { 2 })),
            ],
        });
        let identity = ActorIdentity {
            name: "test".to_owned(),
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            account,
            claims: Value::Null,
            expires: None,
        };
        self.engine.for_actor(&Actor::of_identity(identity))
    }
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn object(members: &[(&str, Value)]) -> Value {
    Value::Object(members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
}

/// The values of a field of all records of a type, as shown.
async fn values(engine: &Engine, type_name: &str, field: &str, listing: Listing) -> Vec<String> {
    let records = engine.list(type_name, listing).await.unwrap();
    records.iter().map(|record| format!("{:?}", record.get(field).unwrap())).collect()
}

async fn titles(engine: &Engine, listing: Listing) -> Vec<String> {
    let records = engine.list("Post", listing).await.unwrap();
    records.iter().map(|record| record.get("title").and_then(Value::as_str).unwrap().to_owned()).collect()
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
                let application = Application::new(store, Some(folder)).await;
                super::$name(application.filled().await).await;
            }

            #[tokio::test]
            async fn postgres() {
                let url = PostgresUrl::parse(&crate::support::postgres::database()).unwrap();
                let store = SqlStore::open_postgres(PostgresOptions::for_url(url)).await.unwrap();
                let application = Application::new(store, None).await;
                super::$name(application.filled().await).await;
            }
        })+
    };
}

both!(
    records_out_of_sight_are_not_there,
    hidden_values_are_null,
    conditions_know_of_nothing_else,
    writes_are_judged,
    links_out_of_sight_stay,
    lists_of_records_out_of_sight_have_nothing,
    values_that_the_server_fills_are_allowed,
    allowed_records_are_found_at_once,
    records_that_go_along_are_not_told,
    guesses_of_hidden_values_are_all_refused,
    many_records_are_written_or_none
);

async fn records_out_of_sight_are_not_there(application: Application) {
    let anonymous = application.engine.clone();
    assert_eq!(titles(&anonymous, Listing::default()).await, ["a1", "b1", "d1"]);
    let ann = application.as_actor(Some(1), &[]);
    assert_eq!(titles(&ann, Listing::default()).await, ["a1", "a2", "b1", "d1"]);
    let bob = application.as_actor(Some(2), &[]);
    assert_eq!(titles(&bob, Listing::default()).await, ["a1", "b1", "d1"]);
    assert_eq!(bob.get("Post", 2).await.unwrap(), None);
    assert!(ann.get("Post", 2).await.unwrap().is_some());
    // Of a rule that asks other records, and one that asks a rule.
    assert_eq!(values(&bob, "Team", "name", Listing::default()).await, ["String(\"one\")"]);
    assert_eq!(values(&bob, "Comment", "id", Listing::default()).await.len(), 2);
    assert_eq!(values(&ann, "Comment", "id", Listing::default()).await.len(), 3);
    // Whoever belongs to no team may read none, whatever it is.
    assert_eq!(ending(anonymous.list("Team", Listing::default()).await), "UNAUTHENTICATED");
}

async fn hidden_values_are_null(application: Application) {
    let bob = application.as_actor(Some(2), &[]);
    assert_eq!(values(&bob, "Post", "note", Listing::default()).await, ["Null", "String(\"n3\")", "Null"]);
    // The author of the last post is blocked.
    let author = values(&bob, "Post", "authorId", Listing::default()).await;
    assert_eq!(author.len(), 3);
    assert_eq!(author[2], "Null", "{author:?}");
    let editor = application.as_actor(None, &["EDITOR"]);
    assert_eq!(values(&editor, "Post", "note", Listing::default()).await.len(), 4);
    assert!(!values(&editor, "Post", "note", Listing::default()).await.contains(&"Null".to_owned()));
}

async fn conditions_know_of_nothing_else(application: Application) {
    let model = application.engine.model();
    let post = model.record(model.find_record("Post").unwrap());
    let user = model.record(model.find_record("User").unwrap());
    let field = |name: &str| post.find_field(name).unwrap();
    let equals = |field: FieldId, value: Value| Condition::equals(field, value);
    let with = |condition: Condition| Listing { conditions: vec![condition], ..Listing::default() };
    let bob = application.as_actor(Some(2), &[]);
    assert_eq!(titles(&bob, with(equals(field("note"), text("n1")))).await, Vec::<String>::new());
    assert_eq!(titles(&bob, with(equals(field("note"), text("n3")))).await, ["b1"]);
    assert_eq!(titles(&bob, with(equals(field("note"), Value::Null))).await, ["a1", "d1"]);
    // A reference to a record out of sight leads nowhere, whatever is asked of it.
    let dan = equals(user.find_field("name").unwrap(), text("dan"));
    let of_dan = Condition::some_related(field("author"), vec![dan.clone()]);
    assert_eq!(titles(&bob, with(of_dan)).await, Vec::<String>::new());
    let not_dan = Condition::Not(Box::new(Condition::some_related(field("author"), vec![dan])));
    assert_eq!(titles(&bob, with(not_dan)).await, ["a1", "b1", "d1"]);
    // Values out of sight sort as nulls do.
    let order = |text: &str| parse_sort_key(model, post, "sort", text).unwrap();
    let by_author = Listing { sort_keys: vec![order("-author.name")], ..Listing::default() };
    assert_eq!(titles(&bob, by_author).await, ["b1", "a1", "d1"]);
    let by_note = Listing { sort_keys: vec![order("note")], ..Listing::default() };
    assert_eq!(titles(&bob, by_note).await, ["b1", "a1", "d1"]);
    let refused = bob.get("Post", 2).await;
    assert!(matches!(refused, Ok(None) | Err(Error::Forbidden { .. })));
}

/// What became of a write: its error's code, or `ok`.
fn ending<T>(written: Result<T, Error>) -> String {
    match written {
        Ok(_) => "ok".to_owned(),
        Err(error) => {
            let names = error
                .violations()
                .iter()
                .map(|violation| format!(" {:?} {}", violation.path, violation.code));
            format!(
                "{}{}{}",
                error.code(),
                names.collect::<String>(),
                error.cause().map(ToString::to_string).unwrap_or_default()
            )
        }
    }
}

async fn writes_are_judged(application: Application) {
    let (ann, bob) = (application.as_actor(Some(1), &[]), application.as_actor(Some(2), &["AUTHOR"]));
    let (editor, anonymous) = (application.as_actor(Some(3), &["EDITOR"]), application.engine.clone());
    let by = |author: i64| [("title", text("new")), ("authorId", Value::Int(author))];
    // Create: the rule is about the record as it would be.
    assert_eq!(ending(ann.create("Post", object(&by(1))).await), "FORBIDDEN");
    assert_eq!(ending(bob.create("Post", object(&by(2))).await), "ok");
    assert_eq!(ending(bob.create("Post", object(&by(1))).await), "FORBIDDEN");
    assert_eq!(ending(anonymous.create("Post", object(&by(1))).await), "UNAUTHENTICATED");
    // References lead to visible records only; those of a blocked user do not exist.
    let unseen = "INVALID [Field(\"authorId\")] REFERENCE";
    assert_eq!(ending(editor.create("Post", object(&by(99))).await), unseen);
    let operator = application.engine.as_operator();
    assert_eq!(titles(&operator, Listing::default()).await, ["a1", "a2", "b1", "d1", "new"]);
    // Update: out of sight, in sight but not allowed, allowed, a field that may not be set, and updateTo.
    let title = || object(&[("title", text("changed"))]);
    assert_eq!(ending(bob.update("Post", 2, title()).await), "NOT_FOUND");
    assert_eq!(ending(bob.update("Post", 1, title()).await), "FORBIDDEN");
    assert_eq!(ending(ann.update("Post", 1, title()).await), "ok");
    let published = |value: bool| object(&[("published", Value::Bool(value))]);
    assert_eq!(
        ending(ann.update("Post", 1, published(false)).await),
        "FORBIDDEN [Field(\"published\")] FORBIDDEN"
    );
    let words = |count: i64| object(&[("words", Value::Int(count))]);
    assert_eq!(ending(ann.update("Post", 2, words(19)).await), "FORBIDDEN");
    assert_eq!(ending(ann.update("Post", 2, words(21)).await), "ok");
    assert_eq!(ending(editor.update("Post", 2, words(1)).await), "ok");
    assert_eq!(ending(ann.update("Post", 2, object(&[("authorId", Value::Int(2))])).await), "FORBIDDEN");
    // Delete.
    assert_eq!(ending(ann.delete("Post", 1).await), "FORBIDDEN");
    assert_eq!(ending(bob.delete("Post", 2).await), "NOT_FOUND");
    assert_eq!(ending(ann.delete("Post", 2).await), "ok");
    let of_two = object(&[("postId", Value::Int(2)), ("text", text("x"))]);
    assert_eq!(ending(ann.create("Comment", of_two).await), "INVALID [Field(\"postId\")] REFERENCE");
    let left = values(&operator, "Post", "words", Listing::default()).await;
    assert_eq!(left, ["Int(10)", "Int(30)", "Int(40)", "Int(0)"]);
}

async fn links_out_of_sight_stay(application: Application) {
    let ann = application.as_actor(Some(1), &[]);
    let tags =
        |ids: &[i64]| object(&[("tagIds", Value::List(ids.iter().copied().map(Value::Int).collect()))]);
    // Tag 2 is secret.
    assert_eq!(
        ending(ann.update("Post", 1, tags(&[1, 2])).await),
        "INVALID [Field(\"tagIds\"), Index(1)] REFERENCE"
    );
    assert_eq!(ending(ann.update("Post", 1, tags(&[])).await), "ok");
    let operator = application.engine.as_operator();
    let model = application.engine.model();
    let tag = model.record(model.find_record("Tag").unwrap());
    let of_first = Condition::some_related(
        tag.find_field("posts").unwrap(),
        vec![Condition::equals(
            model.record(model.find_record("Post").unwrap()).find_field("title").unwrap(),
            text("a1"),
        )],
    );
    let listing = Listing { conditions: vec![of_first], ..Listing::default() };
    assert_eq!(values(&operator, "Tag", "name", listing).await, ["String(\"hidden\")"]);
}

async fn lists_of_records_out_of_sight_have_nothing(application: Application) {
    let model = application.engine.model();
    let in_list = |owner: &str, id: i64| {
        let owner = model.find_record(owner).unwrap();
        let field = model.record(owner).find_field("posts").unwrap();
        let condition = Condition::LinkedFrom { owner, field, id: RecordId::Number(id) };
        Listing { conditions: vec![condition], ..Listing::default() }
    };
    let (bob, operator) = (application.as_actor(Some(2), &[]), application.engine.as_operator());
    // The second tag is secret, the fourth user is blocked.
    assert_eq!(titles(&bob, in_list("Tag", 1)).await, ["a1", "b1", "d1"]);
    assert_eq!(titles(&bob, in_list("Tag", 2)).await, Vec::<String>::new());
    assert_eq!(titles(&bob, in_list("User", 2)).await, ["b1"]);
    assert_eq!(titles(&bob, in_list("User", 4)).await, Vec::<String>::new());
    assert_eq!(titles(&operator, in_list("Tag", 2)).await, ["a1", "a2", "b1", "d1"]);
    assert_eq!(titles(&operator, in_list("User", 4)).await, ["d1"]);
}

async fn values_that_the_server_fills_are_allowed(application: Application) {
    let bob = application.as_actor(Some(2), &[]);
    let memo = |field: &str, id: i64| object(&[("text", text("m")), (field, Value::Int(id))]);
    assert_eq!(ending(bob.create("Memo", object(&[("text", text("m"))])).await), "ok");
    assert_eq!(ending(bob.create("Memo", memo("ownerId", 2)).await), "ok");
    let owner = "FORBIDDEN [Field(\"ownerId\")] FORBIDDEN";
    assert_eq!(ending(bob.create("Memo", memo("ownerId", 1)).await), owner);
    let team = "FORBIDDEN [Field(\"teamId\")] FORBIDDEN";
    assert_eq!(ending(bob.create("Memo", memo("teamId", 1)).await), team);
    let operator = application.engine.as_operator();
    assert_eq!(values(&operator, "Memo", "teamId", Listing::default()).await.len(), 2);
}

async fn allowed_records_are_found_at_once(application: Application) {
    let post = application.engine.model().find_record("Post").unwrap();
    let ids = || (1..=4).map(RecordId::Number).collect::<Vec<_>>();
    let allowed = async |engine: Engine, action: AccessAction| {
        let found = engine.allowed_records(action, post, ids).await.unwrap();
        ids().iter().map(|id| found.contains(id)).collect::<Vec<bool>>()
    };
    let ann = || application.as_actor(Some(1), &[]);
    assert_eq!(allowed(ann(), AccessAction::Update).await, [true, true, false, false]);
    assert_eq!(allowed(ann(), AccessAction::Delete).await, [false, true, false, false]);
    let editor = application.as_actor(None, &["EDITOR"]);
    assert_eq!(allowed(editor, AccessAction::Delete).await, [true; 4]);
    assert_eq!(allowed(application.engine.clone(), AccessAction::Update).await, [false; 4]);
    assert_eq!(allowed(application.engine.as_operator(), AccessAction::Update).await, [true; 4]);
    let refused = ann().require_allowed(AccessAction::Delete, post, &RecordId::Number(1)).await;
    assert_eq!(ending(refused), "FORBIDDEN");
}

async fn records_that_go_along_are_not_told(application: Application) {
    let (anonymous, operator) = (application.engine.clone(), application.engine.as_operator());
    let feed = application.engine.feed();
    let begin = feed.last_change_number().await.unwrap();
    for post in [2, 3] {
        let fields = [("text", text("call")), ("postId", Value::Int(post))];
        operator.create("Call", object(&fields)).await.unwrap();
    }
    let call = application.engine.model().find_record("Call").unwrap();
    // The third post is published, so its call is hidden, also when the post is gone.
    let told = async |engine: &Engine, after: i64| {
        let batch = feed.changes_after(after).await.unwrap();
        let seen = engine.visible_changes(call, &batch).await.unwrap();
        seen.iter().map(|change| format!("{:?} {}", change.kind, change.record_id)).collect::<Vec<_>>()
    };
    assert_eq!(told(&anonymous, begin).await, ["Created 1"]);
    let created = feed.last_change_number().await.unwrap();
    operator.delete("Post", 3).await.unwrap();
    assert_eq!(told(&operator, created).await, ["Deleted 2"]);
    assert_eq!(told(&anonymous, created).await, Vec::<String>::new());
    // Replayed, too.
    assert_eq!(told(&anonymous, begin).await, ["Created 1"]);
}

async fn guesses_of_hidden_values_are_all_refused(application: Application) {
    let (ann, bob) = (application.as_actor(Some(1), &[]), application.as_actor(Some(2), &[]));
    let secret = |guess: &str| object(&[("secret", text(guess))]);
    let refused = "FORBIDDEN [Field(\"secret\")] FORBIDDEN";
    // The comment is on a post of Ann's.
    assert_eq!(ending(bob.update("Comment", 1, secret("wrong")).await), refused);
    assert_eq!(ending(bob.update("Comment", 1, secret("s")).await), refused);
    assert_eq!(ending(ann.update("Comment", 1, secret("s")).await), "ok");
    assert_eq!(ending(bob.update("Comment", 1, object(&[("text", text("ho"))])).await), "ok");
}

async fn many_records_are_written_or_none(application: Application) {
    let model = application.engine.model().clone();
    let record = model.find_record("Post").unwrap();
    let words = model.record(record).find_field("words").unwrap();
    let many = async |engine: &Engine, author: i64, count: Option<i64>| {
        let author_field = model.record(record).find_field("author").unwrap();
        let conditions = vec![Condition::equals(author_field, Value::Int(author))];
        let operation = match count {
            None => Operation::DeleteMany { record, conditions },
            Some(count) => {
                let fields = vec![(words, Value::Int(count))];
                Operation::UpdateMany { record, conditions, fields, filled_fields: Vec::new() }
            }
        };
        ending(engine.collect(operation, Default::default()).await)
    };
    let ann = application.as_actor(Some(1), &[]);
    let words_now =
        async || values(&application.engine.as_operator(), "Post", "words", Listing::default()).await;
    // One of Ann's two posts has more words already, and the rule compares each with its own.
    assert_eq!(many(&ann, 1, Some(15)).await, "FORBIDDEN");
    assert_eq!(words_now().await, ["Int(10)", "Int(20)", "Int(30)", "Int(40)"]);
    assert_eq!(many(&ann, 1, Some(25)).await, "ok");
    assert_eq!(words_now().await, ["Int(25)", "Int(25)", "Int(30)", "Int(40)"]);
    assert_eq!(many(&ann, 2, Some(50)).await, "FORBIDDEN");
    // The published one may not be deleted.
    assert_eq!(many(&ann, 1, None).await, "FORBIDDEN");
    assert_eq!(words_now().await.len(), 4);
    assert_eq!(many(&application.as_actor(None, &["EDITOR"]), 1, None).await, "ok");
    assert_eq!(words_now().await, ["Int(30)", "Int(40)"]);
}
