//! One world per actor: a protected application answers as an open one does that holds only what the actor may see.

use serde_json::{Value, json};

use super::actors::TestActor;
use super::asking::{ReadMaker, ReadRequest};
use super::judge::{RuleJudge, Verdict};
use super::making::RuleWeight;
use super::rule_tree::Deed;
use super::seeds::{self, Trial};
use super::shape::AccessShape;
use super::stage::{AccessStage, Asker, On};
use super::stock::AccessStock;
use crate::power::chance::Chance;

/// The requests of each actor of a schema.
const REQUESTS: usize = 8;

/// A schema with its records, on a store.
struct WorldCase {
    on: On,
    shape: AccessShape,
    stock: AccessStock,
    stage: AccessStage,
}

#[test]
fn answers_are_those_of_the_actors_world() {
    seeds::run(&Trial { name: "access::world", short: 30, long: 3_000 }, |seed| async move {
        let mut chance = Chance::new(seed);
        let case = WorldCase::random(seed, &mut chance).await?;
        let actors = TestActor::eight(&mut chance, &case.shape, &case.stock);
        // An open store for each takes time: half of them.
        for actor in actors.iter().skip(chance.below(2)).step_by(2) {
            case.try_requests(&mut chance, actor).await?;
        }
        Ok(())
    });
}

#[test]
fn what_can_never_be_seen_is_refused_by_name() {
    seeds::run(&Trial { name: "access::world", short: 30, long: 3_000 }, |seed| async move {
        let mut chance = Chance::new(seed);
        let case = WorldCase::random(seed, &mut chance).await?;
        for actor in TestActor::eight(&mut chance, &case.shape, &case.stock) {
            case.try_refusals(&actor).await?;
        }
        Ok(())
    });
}

impl WorldCase {
    async fn random(seed: u64, chance: &mut Chance) -> Result<WorldCase, String> {
        let on = if seed.is_multiple_of(2) { On::Postgres } else { On::Sqlite };
        let shape = AccessShape::random(chance, RuleWeight::Reading);
        let stock = AccessStock::random(chance, &shape);
        let stage = AccessStage::protected(on, &shape, &stock).await?;
        Ok(WorldCase { on, shape, stock, stage })
    }

    fn asker(&self, actor: &TestActor) -> Asker {
        Asker::Actor(actor.for_engine(&self.shape, &self.stock, self.stage.engine.model()))
    }

    async fn try_requests(&self, chance: &mut Chance, actor: &TestActor) -> Result<(), String> {
        let judge = RuleJudge { shape: &self.shape, stock: &self.stock, actor, old: None, image: None };
        let world = judge.world();
        let open = AccessStage::open(On::Sqlite, &self.shape, &world).await?;
        let asker = self.asker(actor);
        for of in 0..self.shape.types.len() {
            if judge.verdict(of, Deed::Read) == Verdict::No {
                continue;
            }
            for _ in 0..REQUESTS.div_ceil(self.shape.types.len()) {
                let request = ReadMaker { judge, chance, names_all: false }.request(of);
                self.try_request(&open, &asker, actor, &request).await?;
            }
        }
        Ok(())
    }

    async fn try_refusals(&self, actor: &TestActor) -> Result<(), String> {
        let judge = RuleJudge { shape: &self.shape, stock: &self.stock, actor, old: None, image: None };
        let asker = self.asker(actor);
        for of in 0..self.shape.types.len() {
            match judge.verdict(of, Deed::Read) {
                Verdict::No => self.try_refusal(&judge, &asker, of).await?,
                Verdict::Some | Verdict::Yes => self.try_hidden_field(&judge, &asker, of).await?,
            }
        }
        Ok(())
    }

    /// Every page of it.
    async fn try_request(
        &self,
        open: &AccessStage,
        asker: &Asker,
        actor: &TestActor,
        request: &ReadRequest,
    ) -> Result<(), String> {
        let mut cursor = Value::Null;
        // A cursor of somebody who sees more leads to nothing that the actor does not see.
        let of_operator = match &request.connection {
            Some(connection) => {
                let answer = self.stage.ask_json(&Asker::Operator, &request.document, &json!({})).await;
                answer["data"][connection.as_str()]["pageInfo"]["endCursor"].clone()
            }
            None => Value::Null,
        };
        let mut cursors = vec![of_operator];
        for _ in 0..5 {
            let variables = match request.connection {
                Some(_) => json!({ "cursor": cursor }),
                None => json!({}),
            };
            let answer = self.stage.ask(asker, &request.document, &variables).await;
            let expected = open.ask(&Asker::Operator, &request.document, &variables).await;
            // Rules make conditions deeper; what the database cannot follow is refused as a whole.
            if answer.contains("LIMIT_EXCEEDED") && !expected.contains("LIMIT_EXCEEDED") {
                break;
            }
            if answer != expected {
                return Err(self.smallest(actor, &request.document, &variables).await);
            }
            if expected.starts_with("rejected") || expected.starts_with("failed") {
                return Err(format!(
                    "not a request: {}\n{expected}\n{}",
                    request.document,
                    self.shape.open_sdl()
                ));
            }
            let Some(connection) = &request.connection else { return Ok(()) };
            let answer: Value = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
            let page = &answer["data"][connection.as_str()]["pageInfo"];
            let is_forward = request.document.contains("after: $cursor");
            let (has_more, end) = match is_forward {
                true => ("hasNextPage", "endCursor"),
                false => ("hasPreviousPage", "startCursor"),
            };
            if page[has_more] == true {
                cursor = page[end].clone();
                continue;
            }
            match cursors.pop() {
                Some(forged) => cursor = forged,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// What no record of a type could make allowed is refused as a whole.
    async fn try_refusal(&self, judge: &RuleJudge<'_>, asker: &Asker, of: usize) -> Result<(), String> {
        let owner = &self.shape.types[of];
        let name = owner.name.to_lowercase();
        let documents = [
            format!("{{ {} {{ id }} }}", owner.plural),
            format!("{{ {name}(id: 1) {{ id }} }}"),
            format!("{{ {}Connection(first: 2) {{ totalCount edges {{ node {{ id }} }} }} }}", owner.plural),
            format!("{{ {}Aggregate {{ count }} }}", owner.plural),
        ];
        let code = if judge.actor.is_signed_in() { "FORBIDDEN" } else { "UNAUTHENTICATED" };
        for document in documents {
            let answer = self.stage.ask_json(asker, &document, &json!({})).await;
            let has_data =
                answer["data"].as_object().is_some_and(|data| data.values().any(|value| !value.is_null()));
            if answer["errors"][0]["extensions"]["code"] != code || has_data {
                return Err(format!(
                    "{:?}: {document}\n  answered {answer}\n  expected {code} for {:?}\n{}",
                    self.on,
                    judge.actor,
                    self.shape.protected_sdl()
                ));
            }
        }
        Ok(())
    }

    /// What can be seen of no record is null, with one error for the selection; conditions and orders are refused.
    async fn try_hidden_field(&self, judge: &RuleJudge<'_>, asker: &Asker, of: usize) -> Result<(), String> {
        let owner = &self.shape.types[of];
        for (at, field) in owner.fields.iter().enumerate() {
            let is_plain = matches!(field.content, super::shape::Content::Value(_));
            if judge.field_verdict(of, at, Deed::Read) != Verdict::No || !is_plain {
                continue;
            }
            let (plural, name) = (owner.plural, &field.name);
            let documents = [
                format!("{{ {plural} {{ id {name} }} }}"),
                format!("{{ {plural}(orderBy: [\"{name}\"]) {{ id }} }}"),
                format!("{{ {plural}(where: {{{name}: null}}) {{ id }} }}"),
                format!("{{ {plural}Aggregate(groupBy: [\"{name}\"]) {{ key count }} }}"),
                format!("{{ {plural}Aggregate {{ countDistinct {{ {name} }} }} }}"),
            ];
            for (position, document) in documents.into_iter().enumerate() {
                let answer = self.stage.ask_json(asker, &document, &json!({})).await;
                let errors = answer["errors"].as_array().map_or(0, Vec::len);
                let code = answer["errors"][0]["extensions"]["code"].as_str().unwrap_or_default();
                let is_refused = ["FORBIDDEN", "UNAUTHENTICATED"].contains(&code);
                let rows = answer["data"][plural].as_array();
                let shows = |row: &Value| row.get(name.as_str()).is_some_and(|value| !value.is_null());
                // Without records there is nothing to be null; the selection is refused all the same.
                let is_null = position > 0 || rows.is_some_and(|rows| !rows.iter().any(shows));
                if errors != 1 || !is_refused || !is_null {
                    return Err(format!(
                        "{:?}: {document}\n  answered {answer}\n  expected null and one FORBIDDEN for {name} by {:?}\n{}",
                        self.on,
                        judge.actor,
                        self.shape.protected_sdl()
                    ));
                }
            }
        }
        Ok(())
    }

    /// What is wrong with the answer, under the simplest rules with which it is still wrong.
    async fn smallest(&self, actor: &TestActor, document: &str, variables: &Value) -> String {
        let mut shape = self.shape.clone();
        let Some(mut known) = self.difference(&shape, actor, document, variables).await else {
            return format!("{document} {variables}: answered otherwise the second time");
        };
        'smaller: for _ in 0..30 {
            for smaller in shape.smaller() {
                let found = self.difference(&smaller, actor, document, variables).await;
                // That other rules refuse it is another matter.
                let is_same = |found: &[String; 2]| {
                    let refused =
                        |answer: &str| answer.contains("FORBIDDEN") || answer.contains("UNAUTHENTICATED");
                    refused(&found[0]) == refused(&known[0])
                };
                if let Some(found) = found.filter(is_same) {
                    (shape, known) = (smaller, found);
                    continue 'smaller;
                }
            }
            break;
        }
        let [answer, expected] = known;
        let rows: String =
            self.stock.seeds(&shape).into_iter().map(|(name, text)| format!("  {name}: {text}\n")).collect();
        format!(
            "{:?}: {document} {variables}\n  by {actor:?}\n  answered {answer}\n  expected {expected}\n{rows}{}",
            self.on,
            shape.protected_sdl()
        )
    }

    /// Both answers under these rules, if they differ.
    async fn difference(
        &self,
        shape: &AccessShape,
        actor: &TestActor,
        document: &str,
        variables: &Value,
    ) -> Option<[String; 2]> {
        let world = RuleJudge { shape, stock: &self.stock, actor, old: None, image: None }.world();
        let stage = AccessStage::protected(self.on, shape, &self.stock).await.ok()?;
        let open = AccessStage::open(On::Sqlite, shape, &world).await.ok()?;
        let asker = Asker::Actor(actor.for_engine(shape, &self.stock, stage.engine.model()));
        let answer = stage.ask(&asker, document, variables).await;
        let expected = open.ask(&Asker::Operator, document, variables).await;
        (answer != expected).then_some([answer, expected])
    }
}
