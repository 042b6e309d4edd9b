//! What `check` says of operations that do not bind, and of those that can never succeed.

use std::fs;

use trefoil_engine::arguments::warnings::argument_warnings;
use trefoil_engine::{ResolverBinding, ResolverRegistry, binding};
use trefoil_model::{Model, SourceFile, parse_schema};

use crate::support::command;

const TYPES: &str = "
    scalar DateTime scalar LocalDateTime
    type User { id: ID! name: String! email: String tasks: [Task!]! }
    type Task { id: ID! title: String! due: DateTime pages: Int user: User! }
    type Shop { id: ID! name: String! }
    type Coupon { id: ID! code: String! uses: Int! }
    type Thing { slug: String! name: String }
    enum State { OPEN CLOSED }
    input Draft { draft: Boolean }
    input TaskInput { title: String! due: LocalDateTime pages: Float }
    input UserInput { name: String! }
    type Query { users: [User!]! tasks: [Task!]! coupon(id: ID!): Coupon things: [Thing] ROOT }
    type Mutation { createTask(title: String!, userId: ID!): Task MUTATION }
    type Subscription { taskCreated: Task SUBSCRIPTION }";

/// The types with one more root field: `Query shop: Shop`.
fn model_with(root: &str) -> Model {
    let (kind, field) = root.split_once(' ').expect("a kind and a field");
    let in_place = |place: &str, name: &str| {
        if kind == name { (place.to_owned(), field) } else { (place.to_owned(), "") }
    };
    let places = [
        in_place("ROOT", "Query"),
        in_place("MUTATION", "Mutation"),
        in_place("SUBSCRIPTION", "Subscription"),
    ];
    let text = places.iter().fold(TYPES.to_owned(), |text, (place, field)| text.replace(place, field));
    let file = SourceFile { name: "a.graphqls".into(), text };
    parse_schema(&[file], &[]).unwrap_or_else(|mistakes| panic!("{root}: {mistakes:?}")).0
}

fn name_of(root: &str) -> &str {
    let field = root.split_once(' ').expect("a kind and a field").1;
    field.split(['(', ':']).next().expect("a name")
}

/// Why a root field has no resolver; `bound` if it has one.
fn explained(root: &str) -> String {
    let model = model_with(root);
    let bindings = binding::bind_root_fields(&model, &ResolverRegistry::default());
    let position =
        model.root_fields.iter().position(|field| field.name == name_of(root)).expect("a root field");
    match &bindings[position] {
        ResolverBinding::Missing(reason) => reason.clone(),
        ResolverBinding::Builtin(_) | ResolverBinding::Abstract(_) | ResolverBinding::Registered(_) => {
            "bound".to_owned()
        }
    }
}

/// What is warned of about a root field that binds.
fn warned(root: &str) -> Vec<String> {
    let model = model_with(root);
    let bindings = binding::bind_root_fields(&model, &ResolverRegistry::default());
    let warnings = argument_warnings(&model, &bindings);
    let own = warnings.into_iter().filter(|warning| warning.field == name_of(root));
    own.map(|warning| warning.message).collect()
}

#[test]
fn unbound_operations_are_told_the_line_that_would_bind_them() {
    for (root, expected) in [
        // The only record of a type.
        ("Query shop: Shop", "bound"),
        (
            "Query mainShop: Shop",
            "no resolver for query `mainShop`; `@resolver(name: \"Shop.get\")` would bind it",
        ),
        (
            "Query usedCoupon: Coupon",
            "no resolver for query `usedCoupon`; `@resolver(name: \"Coupon.get\")` would bind it",
        ),
        ("Query user: User", "`user` has no argument that identifies the User; `id: ID!` would bind it"),
        ("Query me: User", "no resolver for query `me`"),
        ("Query latestTask: Task", "no resolver for query `latestTask`"),
        ("Query taskExists: Boolean", "`taskExists` has no argument that a Task is looked for by"),
        (
            "Query openTasks: [Task!]",
            "no resolver for query `openTasks`; `@resolver(name: \"Task.list\")` would bind it",
        ),
        // Creates.
        ("Mutation createUser(input: Draft!): User", "no argument of `createUser` sets a field of User"),
        (
            "Mutation makeUser(input: UserInput!): User",
            "no resolver for mutation `makeUser`; `@resolver(name: \"User.create\")` would bind it",
        ),
        ("Mutation addTaskToUser(name: String): User", "no resolver for mutation `addTaskToUser`"),
        (
            "Mutation createUsers(names: [String!]!): [User!]!",
            "`createUsers` requires the argument `names`, which is not a field of User",
        ),
        ("Mutation createUserTask(userId: ID!): Boolean", "no resolver for mutation `createUserTask`"),
        // Writes have no condition but the key.
        (
            "Mutation updateTaskByIdAndUserId(id: ID!, userId: ID!, title: String): Task",
            "`updateTaskByIdAndUserId` asks for more than the key, and only `id` says which Task is meant",
        ),
        (
            "Mutation deleteTaskByIdAndUserId(id: ID!, userId: ID!): Boolean",
            "`deleteTaskByIdAndUserId` asks for more than the key, and only `id` says which Task is meant",
        ),
        (
            "Mutation deleteUserByEmail(email: String!): User",
            "`deleteUserByEmail` requires the argument `email`, but a User is found by its key, `id`",
        ),
        (
            "Mutation removeTask(reason: String): Task",
            "`removeTask` has no argument that identifies the Task; `id: ID!` would bind it",
        ),
        (
            "Mutation eraseTask(id: ID!): Task",
            "no resolver for mutation `eraseTask`; `@resolver(name: \"Task.delete\")` would bind it",
        ),
        ("Mutation deleteFriend(id: ID!): User", "no resolver for mutation `deleteFriend`"),
        (
            "Mutation deleteTaks(id: ID!): Task",
            "no resolver for mutation `deleteTaks`; did you mean `deleteTask`?",
        ),
        ("Subscription taskSold: Task", "no resolver for subscription `taskSold`"),
    ] {
        assert_eq!(explained(root), expected, "{root}");
    }
}

/// The line that is offered binds the field to what it says.
#[test]
fn offered_directives_bind() {
    for (root, name) in [
        ("Query mainShop: Shop", "Shop.get"),
        ("Query openTasks: [Task!]", "Task.list"),
        ("Mutation makeUser(input: UserInput!): User", "User.create"),
        ("Mutation eraseTask(id: ID!): Task", "Task.delete"),
    ] {
        assert!(explained(root).contains(name), "{root}");
        assert_eq!(explained(&format!("{root} @resolver(name: \"{name}\")")), "bound", "{root}");
    }
}

#[test]
fn arguments_of_a_type_that_never_fits_are_reported() {
    let never = |name: &str, of: &str| vec![format!("`{name}` can never succeed: {of}")];
    let refuses = |name: &str, of: &str| vec![format!("`{name}` refuses every value of an argument: {of}")];
    for (root, expected) in [
        (
            "Mutation addTask(title: String!, pages: Boolean!, userId: ID!): Task",
            never("addTask", "`pages: Boolean!` never fits `Task.pages`, which is `Int`"),
        ),
        (
            "Mutation addTask(title: Int!, userId: ID!): Task",
            never("addTask", "`title: Int!` never fits `Task.title`, which is `String!`"),
        ),
        (
            "Mutation addTask(title: [String!], userId: ID!): Task",
            never("addTask", "`title: [String!]` never fits `Task.title`, which is `String!`"),
        ),
        (
            "Mutation addTask(input: TaskInput!, userId: ID!): Task",
            refuses("addTask", "`input.due: LocalDateTime` never fits `Task.due`, which is `DateTime`"),
        ),
        (
            "Mutation editTask(id: ID!, pages: Boolean): Task",
            refuses("editTask", "`pages: Boolean` never fits `Task.pages`, which is `Int`"),
        ),
        (
            "Query tasksByPages(pages: Boolean!): [Task!]",
            never("tasksByPages", "`pages: Boolean!` never fits `Task.pages`, which is `Int`"),
        ),
        // Digits as text are a number, a list asks for any of its values, and a Float may be whole.
        ("Mutation editTask(id: ID!, pages: String, title: State): Task", Vec::new()),
        ("Query tasksByPages(pages: [Int!]!): [Task!]", Vec::new()),
        ("Mutation editTask(id: ID!, pages: Float, userId: Int): Task", Vec::new()),
    ] {
        assert_eq!(warned(root), expected, "{root}");
    }
}

/// Schemas of which one operation does not bind, can never succeed, or ignores an argument.
#[test]
fn strict_checks_fail_for_whatever_does_not_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("app/graphql/a.graphqls");
    fs::create_dir_all(file.parent().expect("a folder")).expect("made");
    for (operation, code, said) in [
        ("createTask(title: String!): Task", 0, "creates one Task"),
        ("publishTask(id: ID!): Task", 1, "no resolver for mutation `publishTask`"),
        (
            "createTask(done: Boolean): Task",
            1,
            "`createTask` can never succeed: `Task.title` is required and no argument sets it",
        ),
        (
            "createTask(title: Int!): Task",
            1,
            "`createTask` can never succeed: `title: Int!` never fits `Task.title`, which is `String!`",
        ),
        ("createTask(title: String!, password: String): Task", 1, "`password` of `createTask` has no effect"),
        ("updateTask(id: ID!): Task", 1, "`updateTask` changes nothing: no argument sets a field of Task"),
    ] {
        let schema = format!(
            "type Task {{ id: ID! title: String! done: Boolean }}\ntype Query {{ tasks: [Task!]! }}\ntype Mutation {{ {operation} }}\n"
        );
        fs::write(&file, schema).expect("written");
        let check = |arguments: &[&str]| {
            let output = command(folder.path(), arguments).output().expect("the binary runs");
            (output.status.code(), String::from_utf8(output.stdout).expect("text"))
        };
        let (strict, out) = check(&["check", "app", "--strict"]);
        assert_eq!((strict, out.contains(said)), (Some(code), true), "{operation}: {out}");
        assert_eq!(check(&["check", "app"]).0, Some(0), "{operation}");
    }
}
