//! The matrix of writes: every form of rule, eight actors, and each write, as the interpreter judges them.

use serde_json::{Value, json};

use super::actors::TestActor;
use super::deeds::{WriteMaker, WriteRequest};
use super::judge::RuleJudge;
use super::making::RuleWeight;
use super::seeds::{self, Trial};
use super::shape::{AccessShape, Content};
use super::stage::{AccessStage, Asker, On};
use super::stock::{AccessStock, Cell};
use super::verdicts::{WriteVerdict, verdict};
use crate::power::chance::Chance;

/// The writes of one schema.
const WRITES: usize = 30;

#[test]
fn writes_are_judged_as_the_interpreter_does() {
    seeds::run(&Trial { name: "access::writes", short: 30, long: 3_000 }, |seed| async move {
        let on = if seed.is_multiple_of(2) { On::Postgres } else { On::Sqlite };
        let mut chance = Chance::new(seed);
        let shape = AccessShape::random(&mut chance, RuleWeight::Writing);
        let stock = AccessStock::random(&mut chance, &shape);
        let stage = AccessStage::protected(on, &shape, &stock).await?;
        let actors = TestActor::eight(&mut chance, &shape, &stock);
        let mut stock = stage.stock(&shape).await;
        for _ in 0..WRITES {
            let actor = chance.pick(&actors).expect("eight").with_roles(&shape, &stock);
            // An account that is gone has no credential that is good.
            if actor.account.is_some_and(|account| !stock.rows[shape.account].contains_key(&account)) {
                continue;
            }
            let request = WriteMaker { shape: &shape, stock: &stock, chance: &mut chance }.request();
            if request
                .deeds
                .iter()
                .any(|deed| deed.given.is_empty() && deed.deed != super::rule_tree::Deed::Delete)
            {
                continue;
            }
            stock = try_write(on, &stage, &shape, &stock, &actor, &request).await?;
        }
        Ok(())
    });
}

/// The records afterwards.
async fn try_write(
    on: On,
    stage: &AccessStage,
    shape: &AccessShape,
    stock: &AccessStock,
    actor: &TestActor,
    request: &WriteRequest,
) -> Result<AccessStock, String> {
    let judge = RuleJudge { shape, stock, actor, old: None, image: None };
    let expected = verdict(&judge, request);
    let asker = Asker::Actor(actor.for_engine(shape, stock, stage.engine.model()));
    let answer = stage.ask_json(&asker, &request.document, &json!({})).await;
    let after = stage.stock(shape).await;
    let is_right = match &expected {
        WriteVerdict::Allowed(wanted) => {
            with_plain_ids(stock, &after, shape) == with_plain_ids(stock, wanted, shape)
        }
        WriteVerdict::Refused(codes) => after == *stock && codes.iter().any(|code| has_code(&answer, code)),
        WriteVerdict::Open => after == *stock || answer["errors"].is_null(),
    };
    if is_right && !has_code(&answer, "INTERNAL") {
        return Ok(after);
    }
    let rows = |stock: &AccessStock| -> String {
        stock.seeds(shape).into_iter().map(|(name, text)| format!("  {name}: {text}\n")).collect()
    };
    let wanted = match &expected {
        WriteVerdict::Allowed(wanted) => format!("allowed, and\n{}", rows(wanted)),
        other => format!("{other:?}"),
    };
    Err(format!(
        "{on:?}: {}\n  by {actor:?}\n  answered {answer}\nbefore:\n{}after:\n{}expected: {wanted}\n{}",
        request.document,
        rows(stock),
        rows(&after),
        shape.protected_sdl()
    ))
}

/// Whether an answer has this code, of the error or of one of its violations.
fn has_code(answer: &Value, code: &str) -> bool {
    let errors = answer["errors"].as_array().into_iter().flatten();
    errors.map(|error| &error["extensions"]).any(|extensions| {
        let violations = extensions["violations"].as_array().into_iter().flatten();
        extensions["code"] == code || violations.into_iter().any(|violation| violation["code"] == code)
    })
}

/// The records with ids for new ones that do not depend on who chose them: in their order from a million on.
fn with_plain_ids(before: &AccessStock, stock: &AccessStock, shape: &AccessShape) -> AccessStock {
    let plain: Vec<Vec<(i64, i64)>> = stock
        .rows
        .iter()
        .zip(&before.rows)
        .map(|(rows, before)| {
            let new = rows.keys().filter(|id| !before.contains_key(*id)).enumerate();
            new.map(|(number, id)| (*id, 1_000_000 + number as i64)).collect()
        })
        .collect();
    let plain_id =
        |of: usize, id: i64| plain[of].iter().find(|(own, _)| *own == id).map_or(id, |(_, plain)| *plain);
    let rows = stock.rows.iter().enumerate().map(|(of, rows)| {
        let row = |(id, row): (&i64, &Vec<Cell>)| {
            let cells = row.iter().zip(&shape.types[of].fields).map(|(cell, field)| {
                match (cell, field.content.target()) {
                    // Both sides follow from the owners.
                    _ if matches!(field.content, Content::Inverse { .. }) => Cell::Null,
                    (Cell::One(id), Some(target)) => Cell::One(plain_id(target, *id)),
                    (Cell::Many(ids), Some(target)) => {
                        let mut ids: Vec<i64> = ids.iter().map(|id| plain_id(target, *id)).collect();
                        ids.sort_unstable();
                        Cell::Many(ids)
                    }
                    (cell, _) => cell.clone(),
                }
            });
            (plain_id(of, *id), cells.collect())
        };
        rows.iter().map(row).collect()
    });
    AccessStock { rows: rows.collect() }
}
