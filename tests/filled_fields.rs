//! Which required fields a create fills by itself, and that REST and forms fill none.

use serde_json::json;

use trefoil::{App, Config, Trefoil};
use trefoil_config::DatabaseLocation;
use trefoil_engine::arguments::warnings::argument_warnings;
use trefoil_engine::{ResolverBinding, ResolverRegistry, binding};
use trefoil_model::{Model, SourceFile, parse_schema};

use crate::support::{Client, Reply, Server};

fn model_of(schema: &str) -> Model {
    let file = SourceFile { name: "a.graphqls".into(), text: schema.into() };
    parse_schema(&[file], &[]).unwrap_or_else(|mistakes| panic!("{mistakes:?}")).0
}

/// `createNote fills done with false`, and what can never succeed.
fn described(schema: &str) -> (Vec<String>, Vec<String>) {
    let model = model_of(schema);
    let bindings = binding::bind_root_fields(&model, &ResolverRegistry::default());
    let mut filled = Vec::new();
    for (root, binding) in model.root_fields.iter().zip(&bindings) {
        let ResolverBinding::Builtin(builtin) = binding else { continue };
        for fill in &builtin.filled_fields {
            let field = &model.record(builtin.record).field(fill.field).name;
            filled.push(format!("{}: {field} with {}", root.name, fill.value.description()));
        }
    }
    let warnings = argument_warnings(&model, &bindings);
    let impossible = warnings.iter().filter(|warning| warning.message.contains("can never succeed"));
    (filled, impossible.map(|warning| warning.message.clone()).collect())
}

/// A value that nobody gave would decide who may do what.
#[test]
fn fields_that_rules_use_are_never_filled() {
    let schema = r#"
        enum Role { ADMIN EDITOR }
        type User @account(login: "email", roles: "roles", if: "!blocked")
            @allow(read: true, create: true, update: "this == me && me.trusted") {
          id: ID!
          email: String! @unique
          roles: [Role!]! @allow(write: "role(ADMIN)")
          blocked: Boolean! @allow(write: "role(ADMIN)")
          trusted: Boolean! @allow(write: "role(ADMIN)")
          newsletter: Boolean!
        }
        type Post @allow(read: "published || author == me", create: "signedIn", update: "author == me", updateTo: "old.locked == locked") {
          id: ID!
          title: String!
          author: User @default(from: "me")
          published: Boolean!
          locked: Boolean!
          pinned: Boolean! @allow(write: "role(EDITOR)")
          draft: Boolean!
          labels: [String!]!
          comments: [Comment!]!
        }
        type Comment @allow(read: "!post.archive.hidden && post.published", write: true) {
          id: ID!
          text: String!
          post: Post
          flagged: Boolean!
        }
        type Archive @allow(all: "posts.exists(p, p.draft)") { id: ID! hidden: Boolean! closed: Boolean! posts: [Post!]! }
        extend type Post { archive: Archive }
        type Query { posts: [Post!]! }
        type Mutation {
          createUser(email: String!): User
          createPost(title: String!): Post
          createComment(text: String!): Comment
          createArchive: Archive
        }"#;
    let (filled, impossible) = described(schema);
    assert_eq!(
        filled,
        [
            "createUser: newsletter with false",
            "createPost: labels with an empty list",
            "createComment: flagged with false",
            "createArchive: closed with false",
        ]
    );
    let ends = "are required and no argument sets them";
    assert_eq!(
        impossible,
        [
            format!("`createUser` can never succeed: `User.roles`, `User.blocked` and `User.trusted` {ends}"),
            format!(
                "`createPost` can never succeed: `Post.published`, `Post.locked`, `Post.pinned` and `Post.draft` {ends}"
            ),
            "`createArchive` can never succeed: `Archive.hidden` is required and no argument sets it"
                .to_owned(),
        ]
    );
}

/// Times of the record, Booleans and lists; neither numbers and enums, nor texts that are called like an event.
#[test]
fn only_values_that_are_safe_to_assume_are_filled() {
    let schema = "
        scalar DateTime scalar Date
        enum State { OPEN CLOSED }
        type Query { notes: [Note!]! tasks: [Task!]! scores: [Score!]! }
        type Note { id: ID! text: String! createdAt: String! updatedAt: DateTime! postedOn: Date! done: Boolean! labels: [String!]! }
        type Task { id: ID! text: String! state: State! posted: String! birthDate: Date! }
        type Score { id: ID! name: String! likes: Int! viewCount: Int! version: Int! averageRating: Float! balance: Int! }
        type Mutation { createNote(text: String!): Note createTask(text: String!): Task createScore(name: String!): Score }";
    let (filled, impossible) = described(schema);
    assert_eq!(
        filled,
        [
            "createNote: createdAt with the time",
            "createNote: updatedAt with the time",
            "createNote: postedOn with the date",
            "createNote: done with false",
            "createNote: labels with an empty list",
        ]
    );
    let ends = "are required and no argument sets them";
    assert_eq!(
        impossible,
        [
            format!(
                "`createTask` can never succeed: `Task.state`, `Task.posted` and `Task.birthDate` {ends}"
            ),
            format!(
                "`createScore` can never succeed: `Score.likes`, `Score.viewCount`, `Score.version`, `Score.averageRating` and `Score.balance` {ends}"
            ),
        ]
    );
}

/// What an argument can set is the client's to give, and REST and forms can set every field.
#[test]
fn rest_and_forms_refuse_what_graphql_fills() {
    let schema = "
        scalar DateTime
        type Note { id: ID! text: String! done: Boolean! labels: [String!]! createdAt: DateTime! lines: [Line!]! }
        type Line { id: ID! text: String! note: Note! done: Boolean! }
        type Query { notes: [Note!]! }
        type Mutation { createNote(text: String!): Note! addNote(text: String!, done: Boolean): Note! }";
    let config = Config { database: DatabaseLocation::Memory, ..Config::default() };
    let server = Server::start(Trefoil::app(App::from_schema("notes", schema)), config);
    let mut client = Client::of(&server);
    let made = client.graphql("mutation { createNote(text: \"a\") { done labels } }");
    assert_eq!(made["data"]["createNote"], json!({ "done": false, "labels": [] }), "{made}");
    let refused = client.graphql("mutation { addNote(text: \"b\") { done } }");
    assert_eq!(refused["errors"][0]["extensions"]["violations"][0]["path"], json!(["done"]), "{refused}");

    let missing = |reply: &Reply| reply.json()["errors"].as_array().map_or(0, Vec::len);
    let headers = [("Content-Type", "application/json"), ("Accept", "application/json")];
    let alone = client.send("POST", "/notes", &headers, br#"{"text":"c"}"#);
    assert_eq!((alone.status, missing(&alone)), (400, 3), "{}", alone.text());
    let nested =
        br#"{"text":"c","done":true,"labels":[],"createdAt":"2026-01-01T00:00:00Z","lines":[{"text":"d"}]}"#;
    let nested = client.send("POST", "/notes", &headers, nested);
    assert_eq!((nested.status, missing(&nested)), (400, 1), "{}", nested.text());
    let form = [("Content-Type", "application/x-www-form-urlencoded"), ("Accept", "text/html")];
    let form = client.send("POST", "/notes", &form, b"text=e");
    assert_eq!(form.status, 400, "{}", form.text());
    assert_eq!(client.graphql("{ notes { text } }")["data"]["notes"], json!([{ "text": "a" }]));
}
