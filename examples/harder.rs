//! Serves `e2e/harder`, the schema of the differential test, with the resolvers that its README describes.

use std::process::ExitCode;
use std::sync::Arc;

use trefoil::{ResolverResult, Value};
use trefoil_engine::{Engine, ResolverCall, ResolverRegistry};
use trefoil_model::error::Error;

const PLACES: &str = include_str!("../e2e/harder/places.json");

fn main() -> ExitCode {
    let mut resolvers = Resolvers(ResolverRegistry::default());
    resolvers.roots();
    resolvers.people_and_books();
    resolvers.places();
    resolvers.fragile();
    trefoil_cli::run_with(std::env::args_os(), resolvers.0)
}

struct Resolvers(ResolverRegistry);

impl Resolvers {
    fn on<F, R>(&mut self, field: &str, resolver: F)
    where
        F: Fn(ResolverCall) -> R + Send + Sync + 'static,
        R: Future<Output = Result<ResolverResult, Error>> + Send + 'static,
    {
        self.0.register(field, Arc::new(move |call| Box::pin(resolver(call))));
    }

    /// Fields that always answer the same.
    fn constant(&mut self, fields: &[&str], value: Value) {
        for field in fields {
            let value = value.clone();
            self.on(field, move |_| std::future::ready(Ok(ResolverResult::Value(value.clone()))));
        }
    }

    fn failing(&mut self, fields: &[&str]) {
        for field in fields {
            self.on(field, |_| {
                let message = "failed on purpose".to_owned();
                std::future::ready(Err(Error::Resolver { message, code: "ON_PURPOSE".into() }))
            });
        }
    }

    fn roots(&mut self) {
        self.on("Query.node", |call| async move { node(&call.engine, &text(&call.arguments, "id")).await });
        self.on("Query.nodes", |call| async move {
            let mut found = Vec::new();
            for id in call.arguments.get("ids").and_then(Value::as_list).unwrap_or_default() {
                found.push(node(&call.engine, id.as_str().unwrap_or_default()).await?);
            }
            Ok(ResolverResult::List(found))
        });
        self.on("Query.rated", |_| async {
            Ok(ResolverResult::List([1, 2, 3].map(|id| record("Book", id)).to_vec()))
        });
        self.on("Query.search", |call| async move {
            Ok(ResolverResult::List(search(&call.engine, &text(&call.arguments, "text")).await?))
        });
        self.on("Query.firstResult", |call| async move {
            let found = search(&call.engine, &text(&call.arguments, "text")).await?;
            Ok(found.into_iter().next().unwrap_or(ResolverResult::Value(Value::Null)))
        });
        for field in ["Query.echo", "Query.echoProbe"] {
            self.on(field, |call| std::future::ready(Ok(ResolverResult::Value(sorted(call.arguments)))));
        }
        self.failing(&["Query.fails", "Query.failsHard"]);
    }

    fn people_and_books(&mut self) {
        self.on("Person.greeting", |call| async move {
            let salutation = call.arguments.get("salutation").and_then(Value::as_str).unwrap_or("Hey");
            let times = call.arguments.get("times").and_then(Value::as_i64).unwrap_or(1).clamp(0, 3);
            let id = call.parent.get("id").and_then(Value::as_i64).unwrap_or_default();
            let one = format!("{salutation}, person {id}!");
            let all = vec![one; usize::try_from(times).unwrap_or(0)];
            Ok(ResolverResult::Value(all.join(" ").into()))
        });
        self.on("Person.favourite", |call| async move {
            let id = call.parent.get("id").and_then(Value::as_i64).unwrap_or_default();
            Ok(match id % 4 {
                1 => record("Book", 1),
                2 => ResolverResult::Value(place(0)),
                3 => record("Person", 1),
                _ => ResolverResult::Value(Value::Null),
            })
        });
        self.constant(&["Person.broken", "Person.idol", "Book.sequel"], Value::Null);
        self.constant(&["Person.brokenList"], with_a_hole());
        self.failing(&["Person.fails", "Person.failsHard", "Book.fails"]);
    }

    fn places(&mut self) {
        self.on("Query.places", |_| async {
            Ok(ResolverResult::Value(Value::List((0..places().len()).map(place).collect())))
        });
        self.on("Place.twin", |call| async move {
            let twin = text(&call.parent, "twin");
            let found = places().iter().position(|other| text(other, "name") == twin);
            Ok(ResolverResult::Value(found.map_or(Value::Null, place)))
        });
        self.on("Place.visitors", |call| async move {
            let ids = call.parent.get("visitors").and_then(Value::as_list).unwrap_or_default();
            let people = ids.iter().filter_map(Value::as_i64).map(|id| record("Person", id));
            Ok(ResolverResult::List(people.collect()))
        });
    }

    fn fragile(&mut self) {
        let one = || Value::object([("__typename", Value::from("Fragile"))]);
        self.constant(&["Query.fragile", "Query.fragileHard", "Fragile.deep", "Fragile.deepHard"], one());
        self.constant(&["Fragile.many", "Fragile.some"], vec![one(), one()].into());
        self.constant(&["Fragile.holes"], vec![one(), Value::Null, one()].into());
        self.constant(&["Fragile.ok"], "ok".into());
        self.constant(&["Fragile.number"], 42.into());
        self.constant(&["Fragile.broken", "Fragile.brokenObject"], Value::Null);
        self.constant(&["Fragile.brokenList", "Fragile.nullableList", "Fragile.looseList"], with_a_hole());
        let nested: Vec<Value> =
            vec![vec![1, 2].into(), vec![Some(3), None].into(), Value::Null, Value::List(Vec::new())];
        self.constant(&["Fragile.nested"], nested.into());
        self.constant(&["Fragile.badInt", "Fragile.badFloat", "Fragile.badList"], "abc".into());
        self.constant(&["Fragile.badEnum"], "NOPE".into());
        self.constant(&["Fragile.badBoolean"], "yes".into());
        self.failing(&["Fragile.fails", "Fragile.failsHard", "Fragile.failsList"]);
    }
}

fn with_a_hole() -> Value {
    vec![Some("a"), None, Some("c")].into()
}

fn record(type_name: &str, id: i64) -> ResolverResult {
    ResolverResult::Record { type_name: type_name.to_owned(), id: id.into() }
}

fn text(object: &Value, field: &str) -> String {
    object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn places() -> Vec<Value> {
    let json: Vec<serde_json::Value> = serde_json::from_str(PLACES).expect("places.json is a list");
    json.into_iter().map(Value::from).collect()
}

fn place(position: usize) -> Value {
    let Some(Value::Object(mut fields)) = places().into_iter().nth(position) else { return Value::Null };
    fields.push(("__typename".to_owned(), "Place".into()));
    Value::Object(fields)
}

async fn node(engine: &Engine, id: &str) -> Result<ResolverResult, Error> {
    let nothing = Ok(ResolverResult::Value(Value::Null));
    let Some((kind, number)) = id.split_once('-') else { return nothing };
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let Some(number) = number.parse::<i64>().ok().filter(|_| digits) else { return nothing };
    let type_name = match kind {
        "person" => "Person",
        "book" => "Book",
        "place" => {
            let position = usize::try_from(number - 1).unwrap_or(usize::MAX);
            return Ok(ResolverResult::Value(place(position)));
        }
        _ => return nothing,
    };
    Ok(match engine.get(type_name, number).await? {
        Some(_) => record(type_name, number),
        None => ResolverResult::Value(Value::Null),
    })
}

async fn search(engine: &Engine, wanted: &str) -> Result<Vec<ResolverResult>, Error> {
    let mut found = Vec::new();
    for type_name in ["Person", "Book"] {
        for object in engine.list(type_name, Default::default()).await? {
            if let (true, Some(id)) = (text(&object, "name").contains(wanted), object.get("id")) {
                found.push(record(type_name, id.as_i64().unwrap_or_default()));
            }
        }
    }
    let named = |position: &usize| text(&places()[*position], "name").contains(wanted);
    found.extend((0..places().len()).filter(named).map(|position| ResolverResult::Value(place(position))));
    Ok(found)
}

/// The same value with the keys of every object in it sorted.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(mut fields) => {
            fields.sort_by(|(left, _), (right, _)| left.cmp(right));
            Value::Object(fields.into_iter().map(|(key, value)| (key, sorted(value))).collect())
        }
        Value::List(items) => Value::List(items.into_iter().map(sorted).collect()),
        plain @ (Value::Null | Value::Bool(_) | Value::Int(_) | Value::Number(_) | Value::String(_)) => plain,
    }
}
