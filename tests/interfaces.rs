//! What root fields over interfaces and unions are bound to, and why some are not.

use std::sync::Arc;

use serde_json::json;
use trefoil::Trefoil;
use trefoil_application::{App, Manifest};
use trefoil_config::{Config, DatabaseLocation, PostgresUrl};
use trefoil_engine::{ResolverBinding, ResolverRegistry, ResolverResult, binding};
use trefoil_model::{SourceFile, Value, parse_schema};

use crate::support::{Client, Server, postgres};

const TYPES: &str = "
    interface Animal { id: ID! name: String! }
    type Dog implements Animal { id: ID! name: String! barks: Boolean }
    type Cat implements Animal { id: ID! name: String! lives: Int }
    interface Person { id: UUID! name: String! }
    type Teacher implements Person { id: UUID! name: String! }
    type Student implements Person { id: UUID! name: String! }
    type Mistake { text: String }
    union SearchResult = Dog | Teacher
    union DogResult = Dog | Mistake
    union OnlyDog = Dog
    type Note { id: ID! text: String }
    union NoteResult = Dog | Note
    type AnimalConnection { edges: [AnimalEdge] }
    type AnimalEdge { node: Animal cursor: String }
    input AnimalFilter { name: String }
";

/// The bindings of queries, each as `list Animal`, or as `-` with the reason.
fn bindings(queries: &str) -> Vec<String> {
    schema_bindings(&format!("{TYPES} type Query {{ {queries} }}"))
}

fn schema_bindings(schema: &str) -> Vec<String> {
    let file = SourceFile { name: "a.graphqls".into(), text: schema.to_owned() };
    let (model, _) = parse_schema(&[file], &[]).unwrap();
    let bindings = binding::bind_root_fields(&model, &ResolverRegistry::default());
    let described = bindings.into_iter().map(|binding| match binding {
        ResolverBinding::Abstract(operation) => format!("{:?} {}", operation.verb, operation.type_name),
        ResolverBinding::Builtin(builtin) => {
            format!("{:?} {}", builtin.verb, model.record(builtin.record).name)
        }
        ResolverBinding::Registered(_) => "registered".to_owned(),
        ResolverBinding::Missing(reason) => format!("- {reason}"),
    });
    described.collect()
}

#[test]
fn names_of_interfaces_and_unions_are_bound() {
    for (query, expected) in [
        ("animals: [Animal!]!", "List Animal"),
        ("allAnimals(name: String): [Animal]", "List Animal"),
        ("getAnimals(filter: AnimalFilter): [Animal!]", "List Animal"),
        ("findAll: [Animal!]!", "List Animal"),
        ("animalsConnection(first: Int): AnimalConnection!", "List Animal"),
        ("animals(first: Int): AnimalConnection!", "List Animal"),
        ("animalByName(name: String!): Animal", "Get Animal"),
        ("animalCount: Int!", "Count Animal"),
        ("countAnimals(name: String): Int!", "Count Animal"),
        ("animalExists(name: String!): Boolean", "Exists Animal"),
        ("search(text: String!): [SearchResult!]!", "List SearchResult"),
        ("search(query: String!, first: Int): [SearchResult]", "List SearchResult"),
        ("search(name: String!): [SearchResult!]!", "List SearchResult"),
        ("search(text: String!): [NoteResult!]!", "List NoteResult"),
        ("person(id: ID!): Person", "Get Person"),
        ("personById(id: UUID!): Person!", "Get Person"),
        ("persons(ids: [ID!]!): [Person]!", "List Person"),
        ("onlyDog(id: ID!): OnlyDog", "Get OnlyDog"),
        ("pets: [Animal!]! @resolver(name: \"Animal.list\")", "List Animal"),
    ] {
        assert_eq!(bindings(query), [expected], "{query}");
    }
}

#[test]
fn what_could_mean_something_else_is_not_bound() {
    for (query, reason) in [
        ("animal(id: ID!): Animal", "the ids of `Dog` are counted"),
        ("animals(ids: [ID!]!): [Animal]", "the ids of `Dog` are counted"),
        ("hero(name: String): Animal", "no resolver for query `hero`"),
        ("animals(barks: Boolean!): [Animal]", "do not mean the same for each type of `Animal`"),
        ("animal: Animal", "`animal` has no argument that identifies the Animal"),
        ("animals: [[Animal]]", "no resolver for query `animals`"),
        ("dogResults: [DogResult]", "`Mistake` is not a record type"),
        ("me: Animal", "no resolver for query `me`"),
    ] {
        let found = bindings(query);
        assert!(found[0].starts_with("- ") && found[0].contains(reason), "{query}: {found:?}");
    }
}

/// Two interfaces, and two record types, whose names are one but for their ending.
#[test]
fn names_that_fit_two_types_equally_well_bind_to_none() {
    let schema = "
        interface PetDto { id: ID! name: String! }
        interface PetModel { id: ID! name: String! }
        type Dog implements PetDto & PetModel { id: ID! name: String! }
        type RoomDto { id: ID! name: String! }
        type RoomEntity { id: ID! name: String! }
        type Query { petCount: Int! countPets: Int! @resolver(name: \"PetModel.count\") dogs: [Dog!]! }
        type Mutation { deleteRoom(id: ID!): Boolean deleteRoomDto(id: ID!): Boolean }";
    let expected = [
        "- `petCount` has two readings; choose `@resolver(name: \"PetDto.count\")` or `@resolver(name: \"PetModel.count\")`",
        "Count PetModel",
        "List Dog",
        "- `deleteRoom` has two readings; choose `@resolver(name: \"RoomDto.delete\")` or `@resolver(name: \"RoomEntity.delete\")`",
        "Delete RoomDto",
    ];
    assert_eq!(schema_bindings(schema), expected);
}

const PLAIN_SCHEMA: &str = "
    type User { id: ID! name: String! }
    type Post { id: ID! text: String! }
    type Query { users: [User!]! }
    type Mutation { createUser(name: String!): User! }";

const NODE_SCHEMA: &str = "
    interface Node { id: ID! }
    type User implements Node { id: ID! name: String! }
    type Post implements Node { id: ID! text: String! }
    type Query { users: [User!]! node(id: ID!): Node }
    type Mutation { createUser(name: String!): User! }";

/// The id of the first user, as a server with this schema on this store shows it.
fn shown_id(schema: &str, global_ids: Option<bool>, config: &Config, query: &str) -> String {
    let mut app = App::from_schema("people", schema);
    app.manifest = Arc::new(Manifest { global_ids, ..Manifest::default() });
    let server = Server::start(Trefoil::app(app), config.clone());
    let answer = Client::of(&server).graphql(query);
    answer["data"]["users"][0]["id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

fn create_user(schema: &str, config: &Config) -> serde_json::Value {
    let server = Server::start(Trefoil::app(App::from_schema("people", schema)), config.clone());
    Client::of(&server).graphql("mutation { createUser(name: \"Ada\") { id } }")
}

/// Clients of an existing store know the plain ids; a new store has global ones from the beginning.
fn check_stores(existing: &Config, new: &Config) {
    create_user(PLAIN_SCHEMA, existing);
    let users = "{ users { id } }";
    assert_eq!(shown_id(NODE_SCHEMA, None, existing, users), "1");
    assert_eq!(shown_id(NODE_SCHEMA, Some(true), existing, users), "VXNlcjox");
    assert_eq!(shown_id(NODE_SCHEMA, None, existing, users), "1", "it was not asked for any more");
    assert_eq!(create_user(NODE_SCHEMA, new)["data"]["createUser"]["id"], "VXNlcjox");
    assert_eq!(shown_id(NODE_SCHEMA, None, new, users), "VXNlcjox", "also after the next start");
    assert_eq!(shown_id(NODE_SCHEMA, Some(false), new, users), "1");
}

#[test]
fn existing_store_keeps_plain_ids_sqlite() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [existing, new] =
        folders.each_ref().map(|folder| Config { data: folder.path().to_owned(), ..Config::default() });
    check_stores(&existing, &new);
}

#[test]
fn existing_store_keeps_plain_ids_postgres() {
    let config = || {
        let url = PostgresUrl::parse(&postgres::database()).unwrap();
        Config { database: DatabaseLocation::Postgres(url), ..Config::default() }
    };
    check_stores(&config(), &config());
}

/// Registered resolvers of a member answer its fields in lists and connections of several types.
#[test]
fn registered_resolvers_answer_fields_of_members() {
    let schema = "
        interface Animal { id: ID! name: String! }
        type Dog implements Animal { id: ID! name: String! sound: String @resolver(name: \"Dog.sound\") }
        type Cat implements Animal { id: ID! name: String! }
        type AnimalConnection { edges: [AnimalEdge!]! nodes: [Animal!]! totalCount: Int! }
        type AnimalEdge { node: Animal! }
        type Query { animals(orderBy: [String!]): [Animal!]! animalsConnection(first: Int): AnimalConnection! }
        type Mutation { createDog(name: String!): Dog! createCat(name: String!): Cat! }";
    let trefoil =
        Trefoil::app(App::from_schema("animals", schema)).resolver("Dog.sound", |call| async move {
            let name = call.parent.get("name").and_then(|name| name.as_str()).unwrap_or_default().to_owned();
            Ok(ResolverResult::Value(Value::from(format!("{name} barks"))))
        });
    let config = Config { database: DatabaseLocation::Memory, ..Config::default() };
    let server = Server::start(trefoil, config);
    let mut client = Client::of(&server);
    client.graphql("mutation { a: createDog(name: \"b\") { id } b: createCat(name: \"a\") { id } }");
    let parts = "{ name ... on Dog { sound } }";
    let answer = client.graphql(&format!(
        "{{ animals(orderBy: [\"name\"]) {parts} animalsConnection {{ totalCount nodes {parts} edges {{ node {{ name }} }} }} }}"
    ));
    let (cat, dog) = (json!({ "name": "a" }), json!({ "name": "b", "sound": "b barks" }));
    let edges = json!([{ "node": { "name": "b" } }, { "node": { "name": "a" } }]);
    let connection = json!({ "totalCount": 2, "nodes": [dog, cat], "edges": edges });
    assert_eq!(answer, json!({ "data": { "animals": [cat, dog], "animalsConnection": connection } }));
}
