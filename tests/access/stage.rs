//! An application with rules in this process: asked as an actor or as the operator, over GraphQL.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use trefoil_application::App;
use trefoil_config::{Config, DatabaseLocation, PostgresUrl};
use trefoil_engine::{Actor, Engine, ResolverRegistry};
use trefoil_graphql::{GraphqlReply, GraphqlRequest, GraphqlService, GraphqlState, RequestContext};
use trefoil_server::lifecycle::open_engine;

use super::shape::AccessShape;
use super::stock::AccessStock;
use crate::support::postgres;

/// Which kind of store it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    Sqlite,
    Postgres,
}

/// A schema on a store of its own.
pub struct AccessStage {
    pub engine: Engine,
    pub config: Config,
    /// The schema and the seed; gone with the stage.
    _folder: TempDir,
}

/// Who asks.
#[derive(Clone, Debug)]
pub enum Asker {
    Actor(Actor),
    /// For whom no rules apply.
    Operator,
}

impl AccessStage {
    /// A stage with these records in a new store.
    pub async fn new(on: On, shape: &AccessShape, sdl: &str, stock: &AccessStock) -> Result<AccessStage, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        write_application(folder.path(), sdl, &stock.seeds(shape)).map_err(|error| error.to_string())?;
        AccessStage::of_folder(on, folder).await
    }

    async fn of_folder(on: On, folder: TempDir) -> Result<AccessStage, String> {
        let app = App::load(folder.path()).map_err(|found| format!("{found:#?}"))?;
        let database = match on {
            On::Sqlite => DatabaseLocation::Memory,
            On::Postgres => {
                DatabaseLocation::Postgres(PostgresUrl::parse(&postgres::database()).map_err(|why| why.to_string())?)
            }
        };
        let mut config = Config { database, database_connections: 2, ..Config::default() };
        // Documents are estimated by the records that there are, which an actor's world has fewer of.
        (config.limits.cost, config.limits.depth) = (100_000_000, 100);
        let opened = open_engine(&app, &config, &ResolverRegistry::default()).await;
        let (_, engine) = opened.map_err(|error| error.to_string())?;
        Ok(AccessStage { engine, config, _folder: folder })
    }

    /// The one place where a request gets its actor.
    fn as_actor(&self, asker: &Asker) -> (GraphqlState, RequestContext) {
        match asker {
            Asker::Actor(actor) => {
                let state = GraphqlState::new(self.engine.for_actor(actor), &self.config);
                (state, RequestContext { actor: actor.clone(), ..RequestContext::default() })
            }
            Asker::Operator => {
                let state = GraphqlState::new(self.engine.as_operator(), &self.config);
                (state, RequestContext::default())
            }
        }
    }

    /// The answer, as it is sent.
    pub async fn ask(&self, asker: &Asker, document: &str, variables: &Value) -> String {
        let (state, context) = self.as_actor(asker);
        answer_text(state.execute_request(request(document, variables), context).await)
    }

    pub async fn ask_json(&self, asker: &Asker, document: &str, variables: &Value) -> Value {
        let text = self.ask(asker, document, variables).await;
        serde_json::from_str(&text).unwrap_or(Value::String(text))
    }

    /// A face for subscriptions.
    pub fn service(&self, asker: &Asker) -> (GraphqlService, RequestContext) {
        let (state, context) = self.as_actor(asker);
        (GraphqlService::new(state, &self.config), context)
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

pub fn request(document: &str, variables: &Value) -> GraphqlRequest<'static> {
    let variables = match trefoil_model::Value::from(variables.clone()) {
        trefoil_model::Value::Object(variables) => variables,
        other => panic!("{other:?} are no variables"),
    };
    GraphqlRequest { query: document.to_owned().into(), operation_name: None, variables }
}

pub fn answer_text(reply: GraphqlReply) -> String {
    match reply {
        GraphqlReply::Executed(executed) => {
            // What only the log is told, and whoever mends it needs.
            executed.causes.iter().for_each(|cause| eprintln!("a cause: {cause:?}"));
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
