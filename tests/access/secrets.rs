//! Marked values: a text that an actor may not see is in nothing that they are sent, also not in a cursor or an error.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::actors::TestActor;
use super::asking::ReadMaker;
use super::deeds::WriteMaker;
use super::judge::RuleJudge;
use super::making::RuleWeight;
use super::seeds::{self, Trial};
use super::shape::AccessShape;
use super::stage::{AccessStage, Asker, On};
use super::stock::AccessStock;
use crate::power::chance::Chance;

/// The requests of each actor of a schema.
const REQUESTS: usize = 12;

#[test]
fn hidden_values_are_in_no_answer() {
    let shown = &AtomicUsize::new(0);
    seeds::run(&Trial { name: "access::secrets", short: 20, long: 2_000 }, |seed| async move {
        let on = if seed.is_multiple_of(2) { On::Postgres } else { On::Sqlite };
        let mut chance = Chance::new(seed);
        let shape = AccessShape::random(&mut chance, RuleWeight::Writing);
        let stock = AccessStock::random(&mut chance, &shape).marked();
        let stage = AccessStage::protected(on, &shape, &stock).await?;
        for actor in TestActor::eight(&mut chance, &shape, &stock) {
            for _ in 0..REQUESTS {
                // Writes have changed who sees what, and who the actor is.
                let stock = stage.stock(&shape).await;
                let is_gone = |account: i64| !stock.rows[shape.account].contains_key(&account);
                if actor.account.is_some_and(is_gone) {
                    break;
                }
                let actor = actor.with_roles(&shape, &stock);
                let asker = Asker::Actor(actor.for_engine(&shape, &stock, stage.engine.model()));
                let judge = RuleJudge { shape: &shape, stock: &stock, actor: &actor, old: None, image: None };
                let hidden = hidden_marks(&judge);
                let (document, variables) = request(&mut chance, &judge, &stage).await;
                let answer = stage.ask(&asker, &document, &variables).await;
                // What the actor wrote is no secret to them, and it may show them more than before.
                let after = stage.stock(&shape).await;
                let hidden_still = hidden_marks(&RuleJudge { stock: &after, ..judge });
                let found = found_marks(&answer);
                shown.fetch_add(found.len(), Ordering::Relaxed);
                let told: Vec<&String> = found
                    .iter()
                    .filter(|mark| hidden.contains(*mark) && hidden_still.contains(*mark))
                    .collect();
                if !told.is_empty() {
                    return Err(format!(
                        "{on:?}: {document} {variables}\n  by {actor:?}\n  answered {answer}\n  which tells {told:?}\n{}",
                        shape.protected_sdl()
                    ));
                }
            }
        }
        Ok(())
    });
    // Answers without any mark would prove nothing.
    assert!(shown.load(Ordering::Relaxed) > 0, "no answer shows anything");
}

/// A read that names everything, with a cursor of the operator at times, or a write.
async fn request(chance: &mut Chance, judge: &RuleJudge<'_>, stage: &AccessStage) -> (String, Value) {
    let shape = judge.shape;
    if chance.percent(35) {
        let write = WriteMaker { shape, stock: judge.stock, chance }.request();
        // The answer shows what it can of the record.
        let of = write.deeds[0].of;
        let shown = AccessStock::selection(shape, of);
        return (write.document.replace(") { id } }", &format!(") {{ {shown} }} }}")), json!({}));
    }
    let of = chance.below(shape.types.len());
    let read = ReadMaker { judge: *judge, chance, names_all: true }.request(of);
    let Some(connection) = &read.connection else { return (read.document, json!({})) };
    let all = stage.ask_json(&Asker::Operator, &read.document, &json!({})).await;
    let cursor = all["data"][connection.as_str()]["pageInfo"]["startCursor"].clone();
    (read.document, json!({ "cursor": cursor }))
}

fn hidden_marks(judge: &RuleJudge<'_>) -> BTreeSet<String> {
    let seen = judge.world().marks();
    judge.stock.marks().into_iter().filter(|mark| !seen.contains(mark)).collect()
}

/// The marks in a text, and in what is written in base64 in it.
pub fn found_marks(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut look = |text: &str| {
        for part in text.split("mark").skip(1) {
            if let Some((number, _)) = part.split_once("end") {
                found.insert(format!("mark{number}end"));
            }
        }
    };
    look(text);
    let is_base64 = |letter: char| letter.is_ascii_alphanumeric() || "+/-_".contains(letter);
    for word in text.split(|letter| !is_base64(letter)).filter(|word| word.len() >= 12) {
        for engine in [&URL_SAFE_NO_PAD, &STANDARD_NO_PAD] {
            // Words of other lengths are no base64.
            if let Ok(bytes) = engine.decode(word) {
                look(&String::from_utf8_lossy(&bytes));
            }
        }
    }
    found
}
