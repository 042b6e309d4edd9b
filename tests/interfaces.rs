//! What root fields over interfaces and unions are bound to, and why some are not.

use trefoil_engine::{ResolverBinding, ResolverRegistry, binding};
use trefoil_model::{SourceFile, parse_schema};

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
    type AnimalConnection { edges: [AnimalEdge] }
    type AnimalEdge { node: Animal cursor: String }
    input AnimalFilter { name: String }
";

/// The bindings of queries, each as `list Animal`, or as `-` with the reason.
fn bindings(queries: &str) -> Vec<String> {
    let text = format!("{TYPES} type Query {{ {queries} }}");
    let (model, _) = parse_schema(&[SourceFile { name: "a.graphqls".into(), text }], &[]).unwrap();
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
