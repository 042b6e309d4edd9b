//! How many operations of real schemas bind by themselves, and that none binds to something else than it means.
//!
//! `operations.txt` has the facts of 181 schemas of public repositories: types with their fields, and the root fields with
//! what each of them does to stored records, as a careful reader would say (`custom` if it is not plainly an operation on
//! records). The schemas are built again from these facts.

mod argument_values;
mod calls;
mod speed;

use trefoil_engine::arguments::warnings::argument_warnings;
use trefoil_engine::{ChangeKind, OperationVerb, ResolverBinding, ResolverRegistry, binding};
use trefoil_model::{Model, RootType, SourceFile, parse_schema};

const FACTS: &str = include_str!("operations.txt");

/// The same of schemas that were drawn later, to see how many operations bind that nobody had looked at.
const DRAWN: &str = include_str!("drawn.txt");

/// The share of the operations on records that must bind, in percent. May only grow.
const MIN_BOUND: usize = 90;

/// Fields that bind to another operation than was judged, and why that is accepted.
const ACCEPTED: &[&str] = &[
    // Sets nothing: the schema forgot the arguments.
    "updateGarage",
    "addUser",
    // Takes sign-in data, which a resolver would use.
    "createUser",
    // Filters by id, as it always did.
    "orders",
    // Lists by ids, which was judged an operation on many records.
    "menuItems",
    "categories",
    "subCategories",
    "options",
    // Lists all, where the reader expected those of the current user.
    "walletTransactions",
    "userAssets",
    // The input has an id.
    "saveDepartment",
];

/// The same for the schemas that were drawn later.
const MIN_DRAWN: usize = 90;

/// Among them, with the number of the schema.
const ACCEPTED_DRAWN: &[&str] = &[
    // A telephone number would say whose details they are; it is left to a resolver, as everything that is no field.
    "e11 createHealthDetails",
    // A number for what is a list of records; it is left to a resolver.
    "f22 createCourse",
    "f22 updateCourse",
    // Needs more than its arguments give, so it fails, and `check` says so.
    "g10 createOrder",
    "g14 createDoctor",
    // A type for what one query answers, which has a key like any other.
    "g16 accountStudent",
    "g16 roomWithRequest",
    // Takes sign-in data, which a resolver would use.
    "d11 createUser",
    "d13 createUser",
];

struct JudgedField {
    root: RootType,
    name: String,
    meaning: String,
    record: String,
}

struct FactSchema {
    number: String,
    sdl: String,
    fields: Vec<JudgedField>,
}

fn fact_schemas() -> Vec<FactSchema> {
    read_schemas(FACTS)
}

fn read_schemas(facts: &str) -> Vec<FactSchema> {
    facts.split("# ").skip(1).map(read_schema).collect()
}

fn read_schema(block: &str) -> FactSchema {
    let mut lines = block.lines();
    let number = lines.next().expect("a number").to_owned();
    let (mut sdl, mut fields, mut roots) = (String::new(), Vec::new(), [const { String::new() }; 3]);
    for line in lines {
        let (kind, rest) = line.split_once(' ').expect("a kind and more");
        let root = match kind {
            "Query" => RootType::Query,
            "Mutation" => RootType::Mutation,
            "Subscription" => RootType::Subscription,
            _ => {
                sdl += &type_sdl(kind, rest);
                continue;
            }
        };
        let (declared, judged) = rest.split_once(" = ").expect("a judgement");
        let (name, signature) = declared.split_once('(').expect("arguments");
        let (arguments, ty) = signature.rsplit_once(") ").expect("a type");
        let arguments = if arguments.is_empty() { String::new() } else { format!("({arguments})") };
        roots[root as usize] += &format!("  {name}{arguments}: {ty}\n");
        let (meaning, record) = judged.split_once(' ').expect("a record type");
        fields.push(JudgedField { root, name: name.into(), meaning: meaning.into(), record: record.into() });
    }
    for (name, fields) in ["Query", "Mutation", "Subscription"].into_iter().zip(roots) {
        if !fields.is_empty() {
            sdl += &format!("type {name} {{\n{fields}}}\n");
        }
    }
    FactSchema { number, sdl, fields }
}

/// `object User id:ID! name:String` as SDL. `()` after a name means that the field has arguments.
fn type_sdl(kind: &str, rest: &str) -> String {
    let (name, members) = rest.split_once(' ').unwrap_or((rest, ""));
    match kind {
        "scalar" => format!("scalar {name}\n"),
        "enum" => format!("enum {name} {{ {members} }}\n"),
        "union" => format!("union {name} = {}\n", members.replace(' ', " | ")),
        "object" => format!("type {name} {{ {} }}\n", members.replace("()", "(argument: String)")),
        other => format!("{other} {name} {{ {} }}\n", members.replace("()", "(argument: String)")),
    }
}

fn bound_meaning(model: &Model, binding: &ResolverBinding) -> Option<(&'static str, String)> {
    let ResolverBinding::Builtin(builtin) = binding else { return None };
    let verb = match builtin.verb {
        OperationVerb::List => "list",
        OperationVerb::Get => "get",
        OperationVerb::Count => "count",
        OperationVerb::Exists => "exists",
        OperationVerb::Aggregate => "aggregate",
        OperationVerb::Create => "create",
        OperationVerb::CreateMany | OperationVerb::UpdateMany | OperationVerb::DeleteMany => "many",
        OperationVerb::Update => "update",
        OperationVerb::Save => "save",
        OperationVerb::Upsert => "upsert",
        OperationVerb::Delete => "delete",
        OperationVerb::Subscribe(ChangeKind::Created) => "created",
        OperationVerb::Subscribe(ChangeKind::Updated) => "updated",
        OperationVerb::Subscribe(ChangeKind::Deleted) => "deleted",
        OperationVerb::SubscribeAll => "changed",
    };
    Some((verb, model.record(builtin.record).name.clone()))
}

#[test]
fn real_operations_bind_to_what_they_mean() {
    let is_accepted = |_: &str, name: &str| ACCEPTED.contains(&name);
    expect_bindings(fact_schemas(), MIN_BOUND, is_accepted);
}

#[test]
fn operations_of_schemas_drawn_later_bind_to_what_they_mean() {
    let is_accepted =
        |number: &str, name: &str| ACCEPTED_DRAWN.contains(&format!("{number} {name}").as_str());
    expect_bindings(read_schemas(DRAWN), MIN_DRAWN, is_accepted);
}

impl JudgedField {
    /// What it does, as bindings say it: searching is listing with a text.
    fn verb(&self) -> &str {
        match self.meaning.as_str() {
            "listby" | "search" => "list",
            "getby" | "singleton" => "get",
            other => other,
        }
    }

    /// Whether it is an operation on records that is expected to bind.
    fn is_operation(&self) -> bool {
        !matches!(self.meaning.as_str(), "custom" | "auth" | "many")
    }

    fn binding<'b>(&self, model: &Model, bindings: &'b [ResolverBinding]) -> &'b ResolverBinding {
        let mut roots = model.root_fields.iter();
        let position = roots.position(|root| root.root_kind == self.root && root.name == self.name);
        &bindings[position.expect("a root field")]
    }

    fn is_bound(&self, model: &Model, bindings: &[ResolverBinding]) -> bool {
        bound_meaning(model, self.binding(model, bindings))
            .is_some_and(|(verb, record)| verb == self.verb() && record == self.record)
    }
}

/// That at least so many operations bind, in percent, and none to another one unless that is accepted.
fn expect_bindings(schemas: Vec<FactSchema>, min_share: usize, is_accepted: impl Fn(&str, &str) -> bool) {
    let (mut judged, mut bound, mut wrong) = (0, 0, Vec::new());
    for schema in schemas {
        let file = SourceFile { name: "schema.graphqls".into(), text: schema.sdl.clone() };
        let (model, _) = parse_schema(&[file], &[]).unwrap_or_else(|mistakes| {
            panic!("schema {} does not load: {mistakes:?}\n{}", schema.number, schema.sdl)
        });
        let bindings = binding::bind_root_fields(&model, &ResolverRegistry::default());
        for field in &schema.fields {
            judged += usize::from(field.is_operation());
            match bound_meaning(&model, field.binding(&model, &bindings)) {
                Some(_) if field.is_bound(&model, &bindings) => bound += 1,
                Some((verb, record)) if !is_accepted(&schema.number, &field.name) => wrong.push(format!(
                    "schema {}: `{}` is bound to {verb} {record}, but means {} {}",
                    schema.number, field.name, field.meaning, field.record
                )),
                None if field.is_operation() => {
                    let binding = field.binding(&model, &bindings);
                    eprintln!("{} {} {}: {binding:?}", schema.number, field.name, field.meaning);
                }
                Some(_) | None => {}
            }
        }
    }
    eprintln!("{bound} of {judged} operations bind");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let share = bound * 100 / judged;
    assert!(share >= min_share, "{bound} of {judged} operations bind, {share} % instead of {min_share} %");
}

/// Whatever the types of a real schema are called and hold, what is generated for them is valid, and all of it binds.
#[test]
fn generated_operations_of_real_schemas_bind() {
    let mut generated = 0;
    for schema in fact_schemas() {
        let text = format!("{}\nextend schema @generate\n", schema.sdl);
        let file = SourceFile { name: "schema.graphqls".into(), text };
        let (model, _) = parse_schema(&[file], &[])
            .unwrap_or_else(|mistakes| panic!("schema {} does not load: {mistakes:?}", schema.number));
        let bindings = binding::bind_root_fields(&model, &ResolverRegistry::default());
        for (root, binding) in model.root_fields.iter().zip(&bindings) {
            if root.location.file != "schema.graphqls" {
                let is_bound = matches!(binding, ResolverBinding::Builtin(_));
                assert!(is_bound, "schema {}: `{}`: {binding:?}", schema.number, root.name);
                generated += 1;
            }
        }
        let warnings = model.locate_warnings(argument_warnings(&model, &bindings));
        let own: Vec<_> = warnings.iter().filter(|warning| warning.file != "schema.graphqls").collect();
        assert!(own.is_empty(), "schema {}: {own:?}", schema.number);
    }
    assert!(generated > 4_000, "only {generated} operations were generated");
}
