//! Parsing of schema files: the model they give, and the errors of invalid ones.

use std::path::Path;

use apollo_compiler::Schema;
use proptest::prelude::*;
use trefoil_model::sdl::directives::{BUILTIN_DIRECTIVES, HELPER_TYPES};
use trefoil_model::{
    Diagnostic, FieldId, Link, Model, RecordTypeId, Reference, Relation, ReservedPath, Severity, SourceFile,
    parse_schema,
};

const SAMPLE: &str = r#"
type User { id: ID!  name: String! @notBlank  email: String! }
type Query { getAllUsers: [User] getUserById(id: ID!): User }
type Mutation { createUser(name: String!, email: String!): User }
type Subscription { userCreated: User }
"#;

const SHOP: &str = r#"
scalar Decimal
scalar Date
scalar DateTime
enum OrderStatus { NEW PAID SHIPPED }
extend type User { orders: [Order] }
type Product  { id: ID!  name: String! @notBlank @default(value: "Unnamed product")  category: String  price: Decimal @range(min: 0)  description: String }
type Order    { id: ID!  user: User @reference(onDelete: CASCADE)  item: String! @notBlank @default(value: "Unnamed item")  quantity: Int! @default(value: 1) @range(min: 1)  status: OrderStatus! @default(value: NEW)  placedAt: DateTime }
type Customer { id: ID!  name: String! @notBlank @default(value: "Unnamed customer")  email: String @email  phone: String }
type Article  { id: ID!  title: String! @notBlank @default(value: "Untitled")  body: String  publishedOn: Date }
extend type Query { products(category: String): [Product!]! product(id: ID!): Product }
"#;

fn file(name: &str, text: &str) -> SourceFile {
    SourceFile { name: name.to_owned(), text: text.to_owned() }
}

fn shown(found: &[Diagnostic], files: &[SourceFile]) -> String {
    found.iter().map(|diagnostic| diagnostic.render(files) + "\n\n").collect()
}

fn load(files: &[SourceFile]) -> (Model, Vec<Diagnostic>) {
    parse_schema(files, &[]).unwrap_or_else(|found| panic!("{}", shown(&found, files)))
}

#[test]
fn sample_schema_parses() {
    let files = [file("users.graphqls", SAMPLE), file("shop.graphqls", SHOP)];
    let (model, warnings) = load(&files);
    assert_eq!(shown(&warnings, &files), "");
    let names: Vec<&str> = model.records.iter().map(|record| record.path.as_str()).collect();
    assert_eq!(names, ["users", "products", "orders", "customers", "articles"]);
    let user = &model.records[0];
    let orders = user.field(user.find_field("orders").unwrap());
    assert!(orders.kind.inverse().is_some());
}

/// As servers on Node merge their files. Within one file it is a warning, as `tests/schemas/other_servers.graphqls` shows.
#[test]
fn each_file_may_have_its_part_of_the_root_types() {
    let files = [
        file(
            "books.graphqls",
            "type Query { books: [Book!]! } type Book { id: ID! } type Mutation { addBook: Book }",
        ),
        file(
            "users.graphqls",
            "type User { id: ID! } type Query { users: [User!]! } type Mutation { addUser: User }",
        ),
    ];
    let (model, found) = load(&files);
    let names: Vec<&str> = model.root_fields.iter().map(|root| root.name.as_str()).collect();
    assert_eq!(names, ["books", "users", "addBook", "addUser"]);
    assert!(found.is_empty(), "{found:?}");
    let again = [files[0].clone(), file("more.graphqls", "type Query { books: [Book!]! }")];
    let mistakes = parse_schema(&again, &[]).expect_err("a field twice");
    assert_eq!(mistakes[0].file, "more.graphqls", "{mistakes:?}");
}

/// What `check` says of `tests/schemas/*.graphqls` stands in the `.expected` file beside each.
/// `BLESS=1 cargo test --test tests model` writes them anew.
#[test]
fn every_schema_error_has_its_location() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemas");
    let claims = [
        ReservedPath { path: "/hello".into(), owner: "a text endpoint".into() },
        ReservedPath { path: "/api/info".into(), owner: "a text endpoint".into() },
        ReservedPath { path: "/items".into(), owner: "a list".into() },
    ];
    let mut wrong = Vec::new();
    let mut paths: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "graphqls"));
    paths.sort();
    assert!(paths.len() > 20);
    for path in paths {
        let name = path.file_name().unwrap().to_str().unwrap();
        let files = [file(name, &std::fs::read_to_string(&path).unwrap())];
        let (verdict, found) = match parse_schema(&files, &claims) {
            Ok((_, found)) => ("loads", found),
            Err(found) => ("refused", found),
        };
        let said = format!("{verdict}\n\n{}", shown(&found, &files));
        let expected = path.with_extension("expected");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&expected, &said).unwrap();
        }
        if std::fs::read_to_string(&expected).unwrap_or_default() != said {
            wrong.push(format!("{name}:\n{said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `Type.field` and what became of it, one a line.
fn relations(model: &Model) -> Vec<String> {
    let name = |record: RecordTypeId, field: FieldId| {
        format!("{}.{}", model.record(record).name, model.record(record).field(field).name)
    };
    let mut lines = Vec::new();
    for record in &model.records {
        for field in &record.fields {
            let kind = match field.kind.relation() {
                Some(Relation::Reference(Reference { target, on_delete, .. })) => {
                    format!("-> {} {on_delete:?} in {}", model.record(*target).name, field.column)
                }
                Some(Relation::Inverse(inverse)) => format!("<- {}", name(inverse.target, inverse.field)),
                Some(Relation::Link(Link { target, table, own_column, other_column, .. })) => {
                    format!("<> {} {table}({own_column}, {other_column})", model.record(*target).name)
                }
                None if field.kind.is_unstored() => "unstored".to_owned(),
                None => continue,
            };
            lines.push(format!("{}.{} ({}) {kind}", record.name, field.name, field.input_name));
        }
    }
    lines
}

#[test]
fn relations_are_inferred() {
    let files = [file("r.graphqls", include_str!("schemas/relations.graphqls"))];
    let (model, warnings) = load(&files);
    assert_eq!(shown(&warnings, &files), "");
    assert_eq!(
        relations(&model),
        [
            "Student.courses (courseIds) <> Course students_courses(studentId, courseId)",
            "Student.favourites (favouriteIds) <> Course students_favourites(studentId, courseId)",
            "Course.students (studentIds) <> Student students_courses(courseId, studentId)",
            "Course.fans (fanIds) <> Student students_favourites(courseId, studentId)",
            "User.boss (bossId) -> User Refuse in bossId",
            "User.staff (staff) <- User.boss",
            "User.profile (profileId) -> Profile Refuse in profileId",
            "User.bought (bought) <- Order.buyer",
            "User.sold (sold) <- Order.seller",
            "Profile.user (userId) -> User Refuse in userId",
            "Order.buyer (buyerId) -> User Refuse in buyerId",
            "Order.seller (sellerId) -> User SetNull in sellerId",
            "Order.lines (lines) <- Line.order",
            "Line.order (orderId) -> Order Cascade in orderId",
            "Person.friends (friendIds) <> Person people_friends(personId, friendId)",
            "Account.followers (followerIds) <> Account accounts_followers(followingId, followerId)",
            "Account.following (followingIds) <> Account accounts_followers(followerId, followingId)",
        ]
    );
    let order = model.record(model.find_record("Order").unwrap());
    assert_eq!(order.field(order.find_field("lines").unwrap()).arguments[0].name, "first");
    assert_eq!(order.find_input_field("sellerId"), order.find_field("seller"));
}

#[test]
fn files_without_definitions_are_ignored() {
    for blank in ["", "# a comment\n", "\u{feff}\n , # x", "  \t\r\n"] {
        let (model, _) = load(&[file("a.graphqls", SAMPLE), file("b.graphqls", blank)]);
        assert_eq!(model.records.len(), 1);
        let (model, warnings) = load(&[file("b.graphqls", blank)]);
        assert!(model.records.is_empty());
        assert_eq!(warnings[0].code, "EMPTY");
    }
    assert!(load(&[]).0.records.is_empty());
}

#[test]
fn byte_order_mark_and_crlf_are_read() {
    let text = format!("\u{feff}{}", SAMPLE.replace('\n', "\r\n"));
    assert_eq!(load(&[file("a.graphqls", &text)]).0.records.len(), 1);
    let files = [file("a.graphqls", "\u{feff}type Query { a: A\r\n  \"é\" user: Usr\r\n}\r\n")];
    let found = parse_schema(&files, &[]).unwrap_err();
    let places: Vec<_> = found.iter().map(|found| (found.code, found.line, found.column)).collect();
    assert_eq!(places, [("UNKNOWN_TYPE", 1, 17), ("UNKNOWN_TYPE", 2, 13)]);
}

/// The printed schema can be parsed again: the same schema, so the same hash.
#[test]
fn printed_schema_round_trips() {
    for source in [
        SAMPLE,
        include_str!("schemas/relations.graphqls"),
        include_str!("schemas/spring_project.graphqls"),
        include_str!("schemas/apollo_federated.graphqls"),
    ] {
        let (model, _) = load(&[file("a.graphqls", source)]);
        let (again, _) = load(&[file("b.graphqls", &model.sdl)]);
        assert_eq!(again.sdl, model.sdl);
        assert_eq!(again.hash, model.hash);
    }
    let all: String = BUILTIN_DIRECTIVES.iter().map(|ours| format!("{}\n", ours.sdl)).collect();
    let helpers: String = HELPER_TYPES.iter().map(|(_, sdl)| format!("{sdl}\n")).collect();
    let files = [file("a.graphqls", &format!("{all}{helpers}{SHOP}")), file("b.graphqls", SAMPLE)];
    let (declared, warnings) = load(&files);
    assert_eq!(shown(&warnings, &files), "");
    assert_eq!(declared.records.len(), 5);
}

#[test]
fn directives_are_documented_and_printed_when_used() {
    for ours in BUILTIN_DIRECTIVES {
        assert!(ours.sdl.starts_with(&format!("directive @{}", ours.name)), "{}", ours.name);
        assert!(ours.doc.ends_with('.'), "{}", ours.name);
    }
    let (model, _) = load(&[file("a.graphqls", SAMPLE)]);
    assert!(model.sdl.contains("directive @notBlank"));
    assert!(!model.sdl.contains("@range") && !model.sdl.contains("_Value"));
}

#[test]
fn errors_of_several_files_come_in_order() {
    let files = [
        file("a.graphqls", "type Query { a: Foo }\ntype User { id: ID! n: String @range(min: 1) }"),
        file("b.graphqls", "extend type User { x: Bar }"),
    ];
    let found = parse_schema(&files, &[]).unwrap_err();
    let said: Vec<_> = found.iter().map(|found| (found.code, found.file.as_str(), found.line)).collect();
    assert_eq!(
        said,
        [
            ("UNKNOWN_TYPE", "a.graphqls", 1),
            ("DIRECTIVE_PLACE", "a.graphqls", 2),
            ("UNKNOWN_TYPE", "b.graphqls", 1),
        ]
    );
    let json = found[0].to_json();
    assert_eq!(json["severity"], "error");
    assert_eq!((json["line"].as_u64(), json["column"].as_u64()), (Some(1), Some(17)));
}

#[test]
fn root_fields_and_inputs_are_described() {
    let (model, _) = load(&[file("a.graphqls", include_str!("schemas/spring_project.graphqls"))]);
    let owners = model.root_fields.iter().find(|root| root.name == "owners").unwrap();
    let names: Vec<&str> = owners.arguments.iter().map(|argument| argument.name.as_str()).collect();
    assert_eq!(names, ["filter", "order", "page", "size"]);
    let inside: Vec<&str> = owners.arguments[0].fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(inside, ["firstName", "and"]);
    assert!(owners.ty.is_list() && owners.ty.is_required());
    assert_eq!((owners.location.line, owners.location.column), (65, 3));
    let specialty = model.record(model.find_record("Specialty").unwrap());
    assert!(specialty.field(specialty.find_field("vets").unwrap()).kind.is_link());
}

/// As graphql-js judges: built-in scalars that a schema does not use are unknown to its documents,
/// but those of `@skip` and `@include` are always there.
#[test]
fn unused_builtin_scalars_are_unknown_to_documents() {
    use apollo_compiler::ExecutableDocument;
    let (model, _) = load(&[file("a.graphqls", "type Query { a(s: String): String }")]);
    let verdict = |query: &str| ExecutableDocument::parse_and_validate(&model.schema, query, "q").is_ok();
    assert!(verdict("query($b: Boolean!, $s: String) { a(s: $s) @skip(if: $b) }"));
    assert!(!verdict("query($i: Int) { a(s: $i) }"));
    assert!(!verdict("query($f: Float) { a }"));
}

/// Extensions of the schema itself print as one definition.
#[test]
fn schema_extensions_are_merged() {
    let link = "directive @link(url: String!, import: [String]) repeatable on SCHEMA\n";
    let source =
        format!("{link}extend schema @link(url: \"https://x.example\") {{ query: Q }}\ntype Q {{ a: Int }}");
    let (model, _) = load(&[file("a.graphqls", &source)]);
    assert!(model.sdl.contains("schema @link(url: \"https://x.example\") {\n  query: Q\n}"), "{}", model.sdl);
    assert!(model.find_root_field(trefoil_model::RootType::Query, "a").is_some());
    assert!(!model.sdl.contains("extend"));
}

#[test]
fn what_rules_may_hide_is_nullable_where_it_is_shown() {
    let schema = r#"
interface Named { name: String! }
type Team implements Named @allow(read: true) { id: ID! name: String! @allow(read: "signedIn") motto: String! @allow(read: true) }
type Club implements Named { id: ID! name: String! }
type Person @allow(read: true, write: true) {
  id: ID!
  team: Team!
  club: Club!
  clubId: ID!
  name: String!
  pin: Int! @allow(read: false)
  clubs: [Club!]!
}
extend schema @generate
"#;
    let (model, _) = load(&[file("a.graphqls", schema)]);
    let type_of = |ty: &str, field: &str| {
        model.schema.type_field(ty, field).map(|field| field.ty.to_string()).expect("a field")
    };
    for (ty, field, shown) in [
        ("Named", "name", "String"),
        ("Team", "name", "String"),
        ("Team", "motto", "String!"),
        ("Club", "name", "String!"),
        ("Person", "id", "ID!"),
        ("Person", "team", "Team!"),
        ("Person", "club", "Club"),
        ("Person", "clubId", "ID"),
        ("Person", "name", "String!"),
        ("Person", "pin", "Int"),
        ("Person", "clubs", "[Club!]!"),
    ] {
        assert_eq!(type_of(ty, field), shown, "{ty}.{field}");
    }
    assert!(model.sdl.contains("club: Club\n"), "{}", model.sdl);
    let input = model.schema.get_input_object("PersonCreate").expect("an input");
    assert_eq!(input.fields["pin"].ty.to_string(), "Int!");
    assert!(model.records.iter().flat_map(|record| &record.fields).all(|field| field.required));
    // Printed and read again, it is still a schema.
    Schema::parse_and_validate(&model.sdl, "a.graphqls").expect("valid");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// For any text the parser returns, and every error can be displayed.
    #[test]
    fn any_text_parses_without_a_panic(at in 0usize..3000, cut in 0usize..6, put in "[a-zA-Zé😀{}()\\[\\]:!@\"\\\\# \n$&|=,._0-9-]{0,4}") {
        let whole = format!("{SAMPLE}{SHOP}{}", include_str!("schemas/not_stored.graphqls"));
        let mut letters: Vec<char> = whole.chars().collect();
        let at = at % letters.len();
        let end = (at + cut).min(letters.len());
        letters.splice(at..end, put.chars());
        let files = [file("a.graphqls", &letters.iter().collect::<String>())];
        match parse_schema(&files, &[]) {
            Ok((_, warnings)) => drop(shown(&warnings, &files)),
            Err(found) => {
                prop_assert!(found.iter().any(|found| found.severity == Severity::Error));
                drop(shown(&found, &files));
            }
        }
    }
}
