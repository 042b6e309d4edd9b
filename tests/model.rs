//! Schemas as files: what they mean, and what is said about wrong ones.

use trefoil::model::{Claim, Colour, Diagnostic, Kind, Model, SourceFile, parse};

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
    found.iter().map(|diagnostic| diagnostic.render(files, Colour::Plain) + "\n\n").collect()
}

fn load(files: &[SourceFile]) -> (Model, Vec<Diagnostic>) {
    parse(files, &[]).unwrap_or_else(|found| panic!("{}", shown(&found, files)))
}

#[test]
fn the_sample_is_read() {
    let files = [file("users.graphqls", SAMPLE), file("shop.graphqls", SHOP)];
    let (model, warnings) = load(&files);
    assert_eq!(shown(&warnings, &files), "");
    let names: Vec<&str> = model.records.iter().map(|record| record.path.as_str()).collect();
    assert_eq!(names, ["users", "products", "orders", "customers", "articles"]);
    let user = &model.records[0];
    let orders = user.field(user.field_named("orders").unwrap());
    assert!(matches!(orders.kind, Kind::Inverse { .. }));
    println!("{}", model.sdl);
    let _ = Claim { path: String::new(), by: String::new() };
}
