//! Events: each change reaches exactly the actors who may read the record as the change shows it, live and in a replay.

use std::time::Duration;

use serde_json::{Map, Value, json};
use trefoil_graphql::subscribe::{Subscription, SubscriptionStep};

use super::actors::TestActor;
use super::deeds::WriteMaker;
use super::judge::{RuleJudge, Verdict};
use super::making::RuleWeight;
use super::rule_tree::{Deed, Operand};
use super::seeds::{self, Trial};
use super::shape::{AccessShape, Content};
use super::stage::{AccessStage, Asker, On};
use super::stock::{AccessRow, AccessStock, Cell};
use crate::power::chance::Chance;

/// The writes of one schema.
const WRITES: usize = 12;
/// How many records are deleted with all that refer to them. What was told of those refers to what is gone in the replay.
const FAREWELLS: usize = 3;

/// Whoever listens to the changes of a type.
struct Listener {
    actor: TestActor,
    of: usize,
    subscription: Subscription,
    /// Events of updates of which the actor may see nothing: these need not be told.
    perhaps: Vec<Value>,
}

/// A change as the operator is told of it, and the records when it is delivered.
struct SeenChange {
    of: usize,
    id: i64,
    is_deletion: bool,
    /// What the operator's event holds.
    event: Value,
    row: AccessRow,
}

#[test]
fn changes_reach_those_who_may_read_them() {
    seeds::run(&Trial { name: "access::events", short: 15, long: 1_500 }, |seed| async move {
        let on = if seed.is_multiple_of(2) { On::Postgres } else { On::Sqlite };
        let mut chance = Chance::new(seed);
        let shape = AccessShape::random(&mut chance, RuleWeight::Reading);
        let stock = AccessStock::random(&mut chance, &shape);
        let stage = AccessStage::protected(on, &shape, &stock).await?;
        let wrong = follow(&mut chance, &shape, &stage).await;
        wrong.map_err(|why| format!("{on:?}: {why}\n{}", shape.protected_sdl()))
    });
}

async fn follow(chance: &mut Chance, shape: &AccessShape, stage: &AccessStage) -> Result<(), String> {
    let mut stock = stage.stock(shape).await;
    let actors = TestActor::eight(chance, shape, &stock);
    let mut listeners = Vec::new();
    for actor in &actors {
        for of in 0..shape.types.len() {
            listeners.extend(listener(shape, stage, &stock, actor, of, None).await?);
        }
    }
    let mut told = Vec::new();
    for of in 0..shape.types.len() {
        told.push(stage.subscribe(&Asker::Operator, &operators_document(shape, of), None).await?);
    }
    let feed = stage.engine.feed();
    let begin = feed.last_change_number().await.map_err(|error| error.to_string())?;
    let (mut position, mut changes) = (begin, Vec::new());
    for number in 0..WRITES + FAREWELLS {
        let documents = match number < WRITES {
            true => {
                let write = WriteMaker { shape, stock: &stock, chance }.request();
                // What actors are stays as it is: a changed account is a matter of its sessions.
                let is_about_actors = write.deeds.iter().any(|deed| shape.is_about_actors(deed.of));
                if is_about_actors { Vec::new() } else { vec![write.document] }
            }
            false => farewell(chance, shape, &stock),
        };
        for document in documents {
            stage.ask(&Asker::Operator, &document, &json!({})).await;
            stock = stage.stock(shape).await;
            let mut found = Vec::new();
            // Of a write that was refused there is nothing to wait for.
            while position < feed.last_change_number().await.map_err(|error| error.to_string())? {
                let batch = feed.changes_after(position).await.map_err(|error| error.to_string())?;
                position = batch.until.max(position);
                for change in &batch.changes {
                    let of = shape.types.iter().position(|owner| *owner.name == *change.type_name);
                    let Some(of) = of else { continue };
                    let event = next(&mut told[of])
                        .await
                        .ok_or_else(|| format!("the operator hears of no change after {document}"))?;
                    found.push(seen_change(shape, of, event));
                }
            }
            let checks = listeners.iter_mut().map(|listener| listener.check(shape, &stock, &found));
            let checks = futures_util::future::join_all(checks).await;
            let checks = checks.into_iter().collect::<Result<(), String>>();
            checks.map_err(|why| format!("after {document}: {why}"))?;
            changes.extend(found);
        }
    }
    // Again, judged by the records and rules of now.
    let begin = feed.event_id(begin).await.map_err(|error| error.to_string())?;
    for actor in &actors {
        for of in 0..shape.types.len() {
            let replay = listener(shape, stage, &stock, actor, of, Some(&begin)).await?;
            let Some(mut replay) = replay else { continue };
            replay.check(shape, &stock, &changes).await.map_err(|why| format!("in the replay: {why}"))?;
        }
    }
    Ok(())
}

/// Deletes the records that refer to some record, and then the record.
fn farewell(chance: &mut Chance, shape: &AccessShape, stock: &AccessStock) -> Vec<String> {
    let references: Vec<(usize, usize, usize)> = (0..shape.types.len())
        .flat_map(|of| shape.types[of].fields.iter().enumerate().map(move |(at, field)| (of, at, field)))
        .filter(|(_, _, field)| field.content.is_reference())
        .filter_map(|(of, at, field)| Some((of, at, field.content.target()?)))
        .collect();
    let Some((_, _, target)) = chance.pick(&references).copied() else { return Vec::new() };
    let referred = |(of, at, to): &(usize, usize, usize)| {
        let rows = stock.rows[*of].values().filter(move |_| *to == target);
        let ids = rows.filter_map(|row| if let Cell::One(id) = row[*at] { Some(id) } else { None });
        ids.collect::<Vec<i64>>()
    };
    let referred: Vec<i64> = references.iter().flat_map(referred).collect();
    let Some(id) = chance.pick(&referred).copied() else { return Vec::new() };
    let refers = |(of, at, to): &(usize, usize, usize)| {
        let rows = stock.rows[*of].iter().filter(|(_, row)| *to == target && row[*at] == Cell::One(id));
        rows.map(|(own, _)| (*of, *own)).collect::<Vec<(usize, i64)>>()
    };
    let mut gone: Vec<(usize, i64)> = references.iter().flat_map(refers).collect();
    gone.retain(|found| *found != (target, id));
    gone.dedup();
    gone.push((target, id));
    if gone.iter().any(|(of, _)| shape.is_about_actors(*of)) {
        return Vec::new();
    }
    let delete = |(of, id): &(usize, i64)| {
        format!("mutation {{ delete{}(id: {id}) {{ id }} }}", shape.types[*of].name)
    };
    gone.iter().map(delete).collect()
}

impl Listener {
    /// Takes the events of these changes: of those that the actor may read, and of no others.
    async fn check(
        &mut self,
        shape: &AccessShape,
        stock: &AccessStock,
        changes: &[SeenChange],
    ) -> Result<(), String> {
        let actor = &self.actor;
        for change in changes.iter().filter(|change| change.of == self.of) {
            let row = change.judged_row(stock);
            let image = Some((change.of, change.id, &row));
            let judge = RuleJudge { shape, stock, actor, old: None, image };
            if !judge.allows(change.of, change.id, Deed::Read) {
                continue;
            }
            let expected = expected_event(&judge, change);
            if change.may_be_untold(&judge) {
                self.perhaps.push(expected);
                continue;
            }
            loop {
                let Some(event) = next(&mut self.subscription).await else {
                    let rows: Vec<String> = stock.seeds(shape).into_iter().map(|(_, text)| text).collect();
                    let rows = rows.join("\n  ");
                    return Err(format!("{actor:?} is not told {expected}\n  of {row:?}, with\n  {rows}"));
                };
                if event == expected {
                    break;
                }
                if !self.perhaps.contains(&event) {
                    return Err(format!("{actor:?} is told {event}\n  instead of {expected}"));
                }
            }
        }
        // Whoever asks later is judged by the records of later, so everything is asked for now.
        while let Ok(step) = tokio::time::timeout(Duration::from_millis(30), self.subscription.next()).await {
            let text = step_text(&step);
            if !event_of(step).is_some_and(|event| self.perhaps.contains(&event)) {
                return Err(format!("{actor:?} is told more than the changes: {text}"));
            }
        }
        Ok(())
    }
}

impl SeenChange {
    /// An update need not be told where a rule hides fields of the record, which may be all that it changed.
    fn may_be_untold(&self, judge: &RuleJudge<'_>) -> bool {
        let fields = &judge.shape.types[self.of].fields;
        let is_open = |at: usize| {
            !fields[at].content.is_reference() && judge.field_verdict(self.of, at, Deed::Read) == Verdict::Yes
        };
        self.event["kind"] == "UPDATED" && !(0..fields.len()).all(is_open)
    }

    /// The record as this change shows it: its own fields as they were, its lists as they are now.
    fn judged_row(&self, stock: &AccessStock) -> AccessRow {
        let now = stock.rows[self.of].get(&self.id);
        let mut row = self.row.clone();
        for (at, cell) in row.iter_mut().enumerate() {
            if let Cell::Many(ids) = cell {
                *ids = match now.map(|row| &row[at]) {
                    Some(Cell::Many(ids)) if !self.is_deletion => ids.clone(),
                    _ => Vec::new(),
                };
            }
        }
        row
    }
}

/// A subscription of an actor, unless it is refused as it must be.
async fn listener(
    shape: &AccessShape,
    stage: &AccessStage,
    stock: &AccessStock,
    actor: &TestActor,
    of: usize,
    last: Option<&str>,
) -> Result<Option<Listener>, String> {
    let judge = RuleJudge { shape, stock, actor, old: None, image: None };
    let asker = Asker::Actor(actor.for_engine(shape, stock, stage.engine.model()));
    let document = document(shape, of, &shown_fields(&judge, of));
    let begun = stage.subscribe(&asker, &document, last).await;
    if judge.verdict(of, Deed::Read) != Verdict::No {
        return begun.map(|subscription| {
            Some(Listener { actor: actor.clone(), of, subscription, perhaps: Vec::new() })
        });
    }
    let code = if actor.is_signed_in() { "FORBIDDEN" } else { "UNAUTHENTICATED" };
    match begun {
        Err(why) if why.contains(code) => Ok(None),
        Err(why) => Err(format!("{actor:?}: {document} is refused with {why} instead of {code}")),
        Ok(_) => Err(format!("{actor:?}: {document} is not refused with {code}")),
    }
}

/// The record's own fields that the actor may name.
fn shown_fields(judge: &RuleJudge<'_>, of: usize) -> Vec<usize> {
    let is_shown = |at: &usize| {
        let content = judge.shape.types[of].fields[*at].content;
        let is_own = matches!(content, Content::Value(_) | Content::Texts | Content::Reference { .. });
        is_own && judge.field_verdict(of, *at, Deed::Read) != Verdict::No
    };
    (0..judge.shape.types[of].fields.len()).filter(is_shown).collect()
}

fn document(shape: &AccessShape, of: usize, fields: &[usize]) -> String {
    let fields = fields.iter().map(|at| {
        let field = &shape.types[of].fields[*at];
        if field.content.is_reference() { format!("{} {{ id }}", field.name) } else { field.name.clone() }
    });
    let name = shape.types[of].name.to_lowercase();
    let fields = fields.collect::<Vec<_>>().join(" ");
    format!("subscription {{ {name}Changed {{ kind id {name} {{ id {fields} }} }} }}")
}

fn operators_document(shape: &AccessShape, of: usize) -> String {
    let name = shape.types[of].name.to_lowercase();
    format!(
        "subscription {{ {name}Changed {{ kind id {name} {{ {} }} }} }}",
        AccessStock::selection(shape, of)
    )
}

fn seen_change(shape: &AccessShape, of: usize, event: Value) -> SeenChange {
    let name = shape.types[of].name.to_lowercase();
    let row = AccessStock::read_row(shape, of, &event[name.as_str()]);
    let id = event["id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    SeenChange { of, id, is_deletion: event["kind"] == "DELETED", event, row }
}

fn expected_event(judge: &RuleJudge<'_>, change: &SeenChange) -> Value {
    let owner = &judge.shape.types[change.of];
    let name = owner.name.to_lowercase();
    let own = &change.event[name.as_str()];
    let mut object = Map::new();
    object.insert("id".to_owned(), json!(change.id.to_string()));
    for at in shown_fields(judge, change.of) {
        let field = &owner.fields[at];
        let target = field.content.target().filter(|_| field.content.is_reference());
        let is_in_sight = target.is_none_or(|target| {
            let id = own[field.name.as_str()]["id"].as_str().and_then(|id| id.parse().ok());
            id.is_some_and(|id| {
                // To who may read them all, the event shows what the record referred to, be it gone by now.
                let sees_all = judge.verdict(target, Deed::Read) == Verdict::Yes;
                let is_there = judge.stock.rows[target].contains_key(&id);
                sees_all || is_there && judge.allows(target, id, Deed::Read)
            })
        });
        let is_shown = is_in_sight && judge.allows_field(change.of, change.id, at, Deed::Read);
        let value = if is_shown { own[field.name.as_str()].clone() } else { Value::Null };
        object.insert(field.name.clone(), value);
    }
    let kind = if change.is_deletion { json!("DELETED") } else { change.event["kind"].clone() };
    json!({ "kind": kind, "id": change.id.to_string(), name: object })
}

/// What the next event holds; generous, because machines are busy at times.
async fn next(subscription: &mut Subscription) -> Option<Value> {
    match tokio::time::timeout(Duration::from_secs(5), subscription.next()).await {
        Ok(step @ SubscriptionStep::Ended(..)) => {
            eprintln!("the stream ended: {}", step_text(&step));
            None
        }
        Ok(step) => event_of(step),
        Err(_) => None,
    }
}

fn event_of(step: SubscriptionStep) -> Option<Value> {
    let SubscriptionStep::Event(event) = step else { return None };
    let mut json: Value = serde_json::from_slice(&event.payload).ok()?;
    let data = json["data"].as_object_mut()?;
    data.values_mut().next().map(Value::take)
}

fn step_text(step: &SubscriptionStep) -> String {
    match step {
        SubscriptionStep::Event(event) => String::from_utf8_lossy(&event.payload).into_owned(),
        SubscriptionStep::Ended(_, failures) => format!("{failures:?}"),
    }
}

impl AccessShape {
    /// Whether rules learn from records of this type what an actor is.
    fn is_about_actors(&self, of: usize) -> bool {
        let leads_here = |operand: &Operand| match operand {
            Operand::Me(references, field) => {
                let ways = 0..references.len() + usize::from(field.is_some());
                ways.into_iter().any(|length| self.type_at(self.account, &references[..length]) == of)
            }
            _ => false,
        };
        of == self.account || self.actor_paths().iter().any(leads_here)
    }
}
