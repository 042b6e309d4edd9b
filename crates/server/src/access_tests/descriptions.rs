//! Tests of the names that errors and descriptions tell actors.

use serde_json::json;

use trefoil_graphql::{GraphqlReply, GraphqlRequest, RequestContext};
use trefoil_model::Value;

use super::{FaceStage, actor, stage, stage_of};

impl FaceStage {
    /// The messages of a rejected document.
    async fn rejection(
        &self,
        roles: &[&str],
        query: &str,
        variables: &[(&str, serde_json::Value)],
    ) -> String {
        let variables =
            variables.iter().map(|(name, value)| ((*name).to_owned(), Value::from(value.clone())));
        let request = GraphqlRequest {
            query: query.to_owned().into(),
            operation_name: None,
            variables: variables.collect(),
        };
        let context = RequestContext { actor: actor(roles), ..RequestContext::default() };
        match self.graphql.execute_request(request, context).await {
            GraphqlReply::Rejected(errors) => errors.into_iter().map(|error| error.message).collect(),
            GraphqlReply::Executed(executed) => String::from_utf8(executed.body).expect("UTF-8"),
            GraphqlReply::Failed(error) => error.to_string(),
            GraphqlReply::PostRequired => "only by POST".to_owned(),
        }
    }
}

#[tokio::test]
async fn suggestions_offer_what_the_actor_may_use() {
    let stage = stage().await;
    // The document is parsed once, whoever sends it first.
    for (query, near, to_readers) in [
        ("{ posts { scor } }", "score", false),
        ("{ posts { titl } }", "title", true),
        ("{ posts { notez { id } } }", "notes", false),
        ("{ note { id } }", "notes", false),
        ("{ pots { id } }", "posts", true),
        ("{ post(iid: 1) { id } }", "id", true),
        ("mutation { createPots(title: \"a\") { id } }", "createPost", false),
        ("mutation { createPost(titel: \"a\") { id } }", "title", false),
    ] {
        let hint = format!("Did you mean \"{near}\"?");
        for (roles, is_told) in [(&["READER"][..], to_readers), (&["EDITOR"], true), (&[], to_readers)] {
            let told = stage.rejection(roles, query, &[]).await;
            assert_eq!(told.contains(&hint), is_told, "{roles:?} {query}: {told}");
        }
    }
}

#[tokio::test]
async fn introspection_tells_what_the_actor_may_use() {
    let stage = stage().await;
    let names = async |roles: &[&str], ty: &str| -> Vec<String> {
        let query = format!("{{ __type(name: \"{ty}\") {{ fields {{ name args {{ name }} }} }} }}");
        let told = stage.graphql(roles, &query).await;
        let fields = told["data"]["__type"]["fields"].as_array().cloned().unwrap_or_default();
        let arguments = fields.iter().flat_map(|field| field["args"].as_array().cloned().unwrap_or_default());
        let all = fields.iter().cloned().chain(arguments);
        all.map(|part| part["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names(&["READER"], "Query").await, ["posts", "post", "postCount", "id"]);
    assert_eq!(names(&["READER"], "Post").await, ["id", "title"]);
    assert_eq!(names(&["READER"], "Subscription").await, ["postCreated"]);
    assert!(names(&["READER"], "Mutation").await.is_empty());
    assert!(names(&["READER"], "Note").await.is_empty());
    // Editors see the score, chiefs set it, and nobody deletes posts.
    assert_eq!(names(&["EDITOR"], "Post").await, ["id", "title", "score", "notes"]);
    let mutations = ["createPost", "updatePost", "title", "id", "title"];
    assert_eq!(names(&["EDITOR"], "Mutation").await, mutations);
    let of_chiefs = names(&["EDITOR", "CHIEF"], "Mutation").await;
    assert_eq!(of_chiefs.iter().filter(|name| *name == "score").count(), 2);
    // What is not told of is a name that a document may use.
    let told = stage.graphql(&["READER"], "{ notes { id } }").await;
    assert_eq!(told["errors"][0]["extensions"]["code"], json!("FORBIDDEN"));
}

#[tokio::test]
async fn parameters_and_bodies_suggest_what_is_open_to_all() {
    let stage = stage().await;
    for (method, path, body, near, is_told) in [
        ("GET", "/posts?sort=titel", "", "title", true),
        ("GET", "/posts?sort=scoer", "", "score", false),
        ("GET", "/posts?fields=scoer", "", "score", false),
        ("GET", "/posts?fields=titel", "", "title", true),
        ("GET", "/posts?scoer=1", "", "score", false),
        ("GET", "/posts?titel=1", "", "title", true),
        ("GET", "/posts?include=notse", "", "notes", false),
        ("GET", "/posts?aggregate=count&group=scoer", "", "score", false),
        ("POST", "/posts", "{\"titel\": \"a\"}", "title", true),
        ("POST", "/posts", "{\"scoer\": 1}", "score", false),
    ] {
        for roles in [&["READER"][..], &["EDITOR"]] {
            let reply = stage.json(roles, method, path, body).await;
            let violations = reply.problem.as_ref().map(|problem| format!("{problem:?}"));
            let told = format!("{}{}", reply.body, violations.unwrap_or_default());
            let is_refused = method == "POST" && roles == ["READER"];
            assert_eq!(
                told.contains(&format!("did you mean `{near}`")),
                is_told && !is_refused,
                "{path} {told}"
            );
            assert_eq!(reply.status.as_u16(), if is_refused { 403 } else { 400 }, "{path} {told}");
        }
    }
}

const ABSTRACT_SCHEMA: &str = r#"
interface Node { id: ID! }
interface Named { name: String }
union Found = Thing | Secret
enum ThingOrder { NAME_ASC CODE_DESC }
input ThingInput { name: String! code: String! }
input NameInput { name: String }
type Query {
  node(id: ID!): Node
  allNamed: [Named!]!
  founds: [Found!]!
  things(orderBy: ThingOrder = CODE_DESC): [Thing!]!
  thingByCode(code: String!): Thing
  secrets: [Secret!]!
}
type Mutation {
  createThing(input: ThingInput!): Thing
  updateThing(id: ID!, input: NameInput!): Thing
  createSecret(name: String): Secret
}
type Thing implements Node & Named @allow(read: "signedIn", write: "role(READER, EDITOR)") {
  id: ID!
  name: String
  code: String @unique @allow(read: "role(EDITOR)", write: "role(EDITOR)")
}
type Secret implements Node & Named @allow(read: "role(EDITOR)", create: "role(READER, EDITOR)") {
  id: ID!
  name: String @allow(read: "role(CHIEF)")
}
"#;

/// All names of a description, as they would stand in a schema. That it is valid is asserted where it is made.
async fn described(stage: &FaceStage, roles: &[&str]) -> Vec<String> {
    let query = "{ __schema { types { name fields { name args { name defaultValue } } inputFields { name }
        enumValues { name } possibleTypes { name } } } }";
    let told = stage.graphql(roles, query).await;
    let list = |part: &serde_json::Value| part.as_array().cloned().unwrap_or_default();
    let name = |part: &serde_json::Value| part["name"].as_str().expect("a name").to_owned();
    let mut found = Vec::new();
    for ty in list(&told["data"]["__schema"]["types"]) {
        let own = name(&ty);
        if own.starts_with("__") {
            continue;
        }
        for kind in ["fields", "inputFields", "enumValues", "possibleTypes"] {
            found.extend(list(&ty[kind]).iter().map(|part| format!("{own}.{}", name(part))));
        }
        for field in list(&ty["fields"]) {
            for argument in list(&field["args"]) {
                let default = argument["defaultValue"].as_str().map(|text| format!("={text}"));
                let path = format!("{own}.{}.{}", name(&field), name(&argument));
                found.push(format!("{path}{}", default.unwrap_or_default()));
            }
        }
    }
    found.retain(|name| !name.starts_with("_"));
    found.sort();
    found
}

#[tokio::test]
async fn interfaces_unions_and_inputs_shrink_to_what_is_open() {
    let stage = stage_of(ABSTRACT_SCHEMA).await;
    let reader = described(&stage, &["READER"]).await;
    let expected = [
        "Mutation.createSecret",
        "Mutation.createSecret.name",
        "Mutation.updateThing",
        "Mutation.updateThing.id",
        "Mutation.updateThing.input",
        "NameInput.name",
        // By way of its type: what leads to all named records is closed.
        "Named.Thing",
        "Named.name",
        "Node.Thing",
        "Node.id",
        "Query.node",
        "Query.node.id",
        "Query.things",
        "Query.things.orderBy",
        // It may be written and not read, so that its id is all that is told of it.
        "Secret.id",
        "Thing.id",
        "Thing.name",
        "ThingOrder.NAME_ASC",
    ];
    assert_eq!(reader, expected);
    let editor = described(&stage, &["EDITOR"]).await;
    for open in ["Query.things.orderBy=CODE_DESC", "Found.Secret", "Named.Thing", "ThingInput.code"] {
        assert!(editor.iter().any(|name| name == open), "{open}: {editor:?}");
    }
    // The interface has a name, the secret has none for an editor, so that it is none of its types.
    assert!(!editor.iter().any(|name| name == "Named.Secret" || name == "Secret.name"), "{editor:?}");
    let chief = described(&stage, &["EDITOR", "CHIEF"]).await;
    assert!(chief.iter().any(|name| name == "Named.Secret"), "{chief:?}");
    // A schema needs a query.
    assert_eq!(described(&stage, &[]).await, ["Node.id", "Query.node"]);
}
