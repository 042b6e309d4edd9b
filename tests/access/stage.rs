//! An application with rules in this process: asked as an actor or as the operator, over GraphQL.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;
use trefoil_application::App;
use trefoil_config::{Config, DatabaseLocation, PostgresUrl};
use trefoil_engine::{Actor, Engine, ResolverRegistry, binding};
use trefoil_graphql::subscribe::Subscription;
use trefoil_graphql::{GraphqlReply, GraphqlRequest, GraphqlService, GraphqlState, RequestContext};
use trefoil_model::{SourceFile, parse_schema};
use trefoil_server::lifecycle::open_engine;

use super::shape::AccessShape;
use super::stock::AccessStock;
use crate::support::postgres::TemporaryDatabase;

/// Which kind of store it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    Sqlite,
    Postgres,
}

/// A schema on a store of its own.
pub struct AccessStage {
    pub engine: Engine,
    /// Of all actors: what one is answered must not depend on who was answered before.
    face: GraphqlService,
    /// The same records under the schema without rules.
    operators_face: GraphqlService,
    /// The schema and the seed; gone with the stage.
    _folder: TempDir,
    _database: Option<TemporaryDatabase>,
}

/// Who asks.
#[derive(Clone, Debug)]
pub enum Asker {
    Actor(Actor),
    /// For whom no rules apply.
    Operator,
}

impl AccessStage {
    /// The schema with its rules and these records in a new store.
    pub async fn protected(on: On, shape: &AccessShape, stock: &AccessStock) -> Result<AccessStage, String> {
        let stage = AccessStage::new(on, shape, &shape.protected_sdl(), stock).await;
        stage.map_err(|why| format!("the protected one: {why}\n{}", shape.protected_sdl()))
    }

    /// The same without rules, for everybody.
    pub async fn open(on: On, shape: &AccessShape, stock: &AccessStock) -> Result<AccessStage, String> {
        let stage = AccessStage::new(on, shape, &shape.open_sdl(), stock).await;
        stage.map_err(|why| format!("the open one: {why}\n{}", shape.open_sdl()))
    }

    async fn new(on: On, shape: &AccessShape, sdl: &str, stock: &AccessStock) -> Result<AccessStage, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        write_application(folder.path(), sdl, &stock.seeds(shape)).map_err(|error| error.to_string())?;
        let app = App::load(folder.path()).map_err(|found| format!("{found:#?}"))?;
        let temporary = (on == On::Postgres).then(TemporaryDatabase::new);
        let database = match &temporary {
            None => DatabaseLocation::Memory,
            Some(database) => {
                DatabaseLocation::Postgres(PostgresUrl::parse(&database.url).map_err(|why| why.to_string())?)
            }
        };
        let mut config = Config { database, database_connections: 2, ..Config::default() };
        // Documents are estimated by the records that there are, which an actor's world has fewer of.
        (config.limits.cost, config.limits.depth) = (100_000_000, 100);
        let opened = open_engine(&app, &config, &ResolverRegistry::default()).await;
        let (_, engine) = opened.map_err(|error| error.to_string())?;
        let face = |engine: Engine| GraphqlService::new(GraphqlState::new(engine, &config), &config);
        let operator = without_rules(&engine, &shape.open_sdl())?;
        Ok(AccessStage {
            face: face(engine.clone()),
            operators_face: face(operator),
            engine,
            _folder: folder,
            _database: temporary,
        })
    }

    /// The one place where a request gets its actor.
    fn as_actor(&self, asker: &Asker) -> (&GraphqlService, RequestContext) {
        match asker {
            Asker::Actor(actor) => {
                (&self.face, RequestContext { actor: actor.clone(), ..RequestContext::default() })
            }
            Asker::Operator => (&self.operators_face, RequestContext::default()),
        }
    }

    /// The answer, as it is sent.
    pub async fn ask(&self, asker: &Asker, document: &str, variables: &Value) -> String {
        let (face, context) = self.as_actor(asker);
        answer_text(face.state().execute_request(request(document, variables), context).await)
    }

    pub async fn ask_json(&self, asker: &Asker, document: &str, variables: &Value) -> Value {
        let text = self.ask(asker, document, variables).await;
        serde_json::from_str(&text).unwrap_or(Value::String(text))
    }

    /// A subscription, from the event after `last` on.
    pub async fn subscribe(
        &self,
        asker: &Asker,
        document: &str,
        last: Option<&str>,
    ) -> Result<Subscription, String> {
        let (face, context) = self.as_actor(asker);
        let begun = face.subscribe(request(document, &json!({})), context, last).await;
        begun.map_err(|reply| format!("{document}: {}", answer_text(reply)))
    }

    /// All records as they are.
    pub async fn stock(&self, shape: &AccessShape) -> AccessStock {
        let mut stock = AccessStock { rows: Vec::new() };
        for (of, owner) in shape.types.iter().enumerate() {
            let selection = AccessStock::selection(shape, of);
            let document = format!("{{ {}(size: 1000) {{ {selection} }} }}", owner.plural);
            let answer = self.ask_json(&Asker::Operator, &document, &json!({})).await;
            let objects = answer["data"][owner.plural].as_array();
            let objects = objects.unwrap_or_else(|| panic!("{document} of the operator: {answer}"));
            let row = |object: &Value| {
                let id = object["id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
                (id, AccessStock::read_row(shape, of, object))
            };
            stock.rows.push(objects.iter().map(row).collect());
        }
        stock.fill_other_sides(shape);
        stock
    }
}

/// Another engine on the same store, whose schema has no rules.
fn without_rules(engine: &Engine, open_sdl: &str) -> Result<Engine, String> {
    let file = SourceFile { name: "graphql/open.graphqls".into(), text: open_sdl.into() };
    let (model, _) = parse_schema(&[file], &[]).map_err(|mistakes| format!("{mistakes:#?}"))?;
    let (model, registry) = (Arc::new(model), ResolverRegistry::default());
    let bindings = binding::bind_root_fields(&model, &registry);
    Ok(Engine::new(model, bindings, registry, engine.feed().clone(), engine.limits().clone()))
}

/// Schema and seed as a folder.
pub fn write_application(folder: &Path, sdl: &str, seeds: &[(&'static str, String)]) -> std::io::Result<()> {
    std::fs::create_dir_all(folder.join("graphql"))?;
    std::fs::create_dir_all(folder.join("seed"))?;
    std::fs::write(folder.join("graphql/schema.graphqls"), sdl)?;
    for (name, text) in seeds {
        std::fs::write(folder.join(format!("seed/{name}.json")), text)?;
    }
    Ok(())
}

fn request(document: &str, variables: &Value) -> GraphqlRequest<'static> {
    let variables = match trefoil_model::Value::from(variables.clone()) {
        trefoil_model::Value::Object(variables) => variables,
        other => panic!("{other:?} are no variables"),
    };
    GraphqlRequest { query: document.to_owned().into(), operation_name: None, variables }
}

fn answer_text(reply: GraphqlReply) -> String {
    match reply {
        GraphqlReply::Executed(executed) => {
            // What only the log is told, and whoever mends it needs.
            executed.notes.causes.iter().for_each(|cause| eprintln!("a cause: {cause:?}"));
            String::from_utf8(executed.body).expect("UTF-8")
        }
        GraphqlReply::Rejected(failures) => {
            let codes = failures.into_iter().map(|failure| format!("{}: {}", failure.code, failure.message));
            format!("rejected: {}", codes.collect::<Vec<_>>().join("; "))
        }
        GraphqlReply::Failed(error) => format!("failed: {} {error}", error.code()),
        GraphqlReply::PostRequired => "only by POST".to_owned(),
    }
}
