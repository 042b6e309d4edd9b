//! Events of records with rules: judged by what they hold, without the store, and encoded once for all who see the same.

use serde_json::json;
use trefoil_engine::{AccountFacts, Actor, ActorIdentity, ActorPath};
use trefoil_graphql::RequestContext;
use trefoil_graphql::subscribe::Subscription;
use trefoil_model::{RecordId, StoredValue, Value};

use super::{On, Stage, asked, both, next, told};

both! {
    accounts_share_events,
    hidden_columns_are_not_shared,
    other_records_are_asked_of_the_store,
}

const SCHEMA: &str = r#"
type User @account(login: "name") @allow(read: true) { id: ID!  name: String! @unique }
type Team @allow(read: true, create: true) { id: ID!  open: Boolean! }
type Note @allow(read: "public || owner == me || team.open", create: true) {
  id: ID!
  public: Boolean!
  owner: User
  team: Team
}
type Memo @allow(read: "public || owner == me", create: true) { id: ID!  public: Boolean!  owner: User }
type Plan @allow(read: true, create: true) { id: ID!  text: String!  price: Int @allow(read: "owner == me")  owner: User }
type Mutation {
  createTeam(open: Boolean!): Team
  createNote(public: Boolean!, owner: ID, team: ID): Note
  createMemo(public: Boolean!, owner: ID): Memo
  createPlan(text: String!, price: Int, owner: ID): Plan
}
type Subscription { noteCreated: Note  memoCreated: Memo  planCreated: Plan }
"#;

const ACCOUNTS: i64 = 40;

/// Accounts, each subscribed to the same.
async fn crowd(on: On, query: &str) -> (Stage, Vec<Subscription>) {
    let stage = Stage::of_schema(on, SCHEMA).await;
    let names: Vec<String> = (1..=ACCOUNTS).map(|id| format!("({id}, 'user {id}')")).collect();
    stage.outside(&format!("INSERT INTO users (id, name) VALUES {}", names.join(", "))).await;
    let model = stage.face.state().engine().model().clone();
    let user = model.record(model.find_record("User").unwrap());
    let mut crowd = Vec::new();
    for id in 1..=ACCOUNTS {
        let path = ActorPath { references: Vec::new(), field: user.id_field() };
        let account = AccountFacts {
            label: String::new(),
            id: RecordId::Number(id),
            model_hash: model.hash,
            values: vec![(path, StoredValue::Int(id))],
        };
        let identity = ActorIdentity {
            name: format!("account:{id}"),
            roles: Vec::new(),
            account: Some(account),
            claims: Value::Null,
            expires: None,
        };
        let actor = Actor::of_identity(identity);
        let context = RequestContext { actor, ..RequestContext::default() };
        let subscription = stage.face.subscribe(asked(query, json!({})), context, None).await;
        crowd.push(subscription.map_err(told).unwrap());
    }
    (stage, crowd)
}

async fn done(stage: &Stage, mutation: &str) {
    let answer = stage.run(&format!("mutation {{ {mutation} {{ id }} }}")).await;
    // What was written may be out of its writer's sight.
    assert_ne!(answer["errors"][0]["extensions"]["code"], "INVALID", "{answer}");
}

async fn accounts_share_events(on: On) {
    let (stage, mut crowd) = crowd(on, "subscription { memoCreated { id public owner { id } } }").await;
    let (before, encoded) = (stage.statements(), stage.face.subscriptions().encoded_events.get());
    for memo in ["public: true", "public: false, owner: 7", "public: true, owner: 9"] {
        done(&stage, &format!("createMemo({memo})")).await;
    }
    for (position, subscription) in crowd.iter_mut().enumerate() {
        let expected = if position == 6 { vec!["1", "2", "3"] } else { vec!["1", "3"] };
        for id in expected {
            assert_eq!(next(subscription).await["data"]["memoCreated"]["id"], id, "account {}", position + 1);
        }
    }
    assert_eq!(stage.face.subscriptions().encoded_events.get() - encoded, 3);
    let statements = stage.statements() - before;
    assert!(statements < ACCOUNTS as u64, "{statements} statements");
}

async fn hidden_columns_are_not_shared(on: On) {
    let (stage, mut crowd) = crowd(on, "subscription { planCreated { id price } }").await;
    let before = stage.statements();
    done(&stage, r#"createPlan(text: "a", owner: 3)"#).await;
    stage.outside("INSERT INTO plans (text, price, \"ownerId\") VALUES ('b', 5, 3)").await;
    for (position, subscription) in crowd.iter_mut().enumerate() {
        let price = if position == 2 { json!(5) } else { json!(null) };
        assert_eq!(next(subscription).await["data"]["planCreated"]["price"], json!(null));
        assert_eq!(
            next(subscription).await["data"]["planCreated"]["price"],
            price,
            "account {}",
            position + 1
        );
    }
    let statements = stage.statements() - before;
    assert!(statements < ACCOUNTS as u64, "{statements} statements");
}

async fn other_records_are_asked_of_the_store(on: On) {
    let (stage, mut crowd) = crowd(on, "subscription { noteCreated { id } }").await;
    for open in [true, false] {
        done(&stage, &format!("createTeam(open: {open})")).await;
    }
    for note in [
        "public: true, team: 2",
        "public: false, team: 2",
        "public: false, owner: 4, team: 2",
        "public: false, team: 1",
    ] {
        done(&stage, &format!("createNote({note})")).await;
    }
    for (position, subscription) in crowd.iter_mut().enumerate() {
        let expected = if position == 3 { vec!["1", "3", "4"] } else { vec!["1", "4"] };
        for id in expected {
            assert_eq!(next(subscription).await["data"]["noteCreated"]["id"], id, "account {}", position + 1);
        }
    }
}
