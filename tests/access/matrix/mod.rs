//! The matrix: every form of rule, in each place, asked by eight kinds of actor on every face for every act, on both stores,
//! as the interpreter judges it.

mod expected;
mod faces;
mod forms;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use trefoil_engine::{Engine, Listing};

use self::expected::{Expected, check_answer, expected_of_read, short};
use self::faces::{CREATES, DELETES, FORMS, MatrixAct, MatrixFace, MatrixRequest, READS, UPDATES};
use self::forms::item;
use self::world::{MatrixActor, MatrixEntry, MatrixWorld, RuleSeat, end_accounts};
use super::actors::ActorKind;
use super::deeds::{RecordDeed, WriteRequest};
use super::judge::{RuleJudge, Verdict};
use super::over_http::ServedStage;
use super::rule_tree::Deed;
use super::stage::On;
use super::stock::{AccessRow, AccessStock, Cell, body};
use super::tokens;
use super::verdicts::{WriteVerdict, verdict};
use crate::support::{Client, is_long, postgres};

/// Of the acts that there are, the short form tries one in so many, others for each actor and form.
const ONE_IN: usize = 43;

/// How many cases there were, and what was expected of them.
#[derive(Default)]
struct MatrixCounts(Mutex<BTreeMap<&'static str, usize>>);

impl MatrixCounts {
    fn add(&self, what: &'static str) {
        *self.0.lock().expect("no panic while held").entry(what).or_default() += 1;
    }
}

/// Forms of rules as they are served.
struct MatrixTrial<'t> {
    world: &'t MatrixWorld,
    stock: AccessStock,
    stage: ServedStage,
    operator: Engine,
    counts: &'t MatrixCounts,
}

#[test]
fn every_rule_actor_face_and_store_is_as_the_interpreter_says() {
    let stores = [On::Sqlite, On::Postgres].into_iter().enumerate();
    let trials: Vec<(MatrixWorld, On)> = stores
        .flat_map(|(number, on)| MatrixWorld::all(number).into_iter().map(move |world| (world, on)))
        .collect();
    let (counts, next) = (MatrixCounts::default(), AtomicUsize::new(0));
    let work = || {
        let mut wrong: Vec<String> = Vec::new();
        while let Some((world, on)) = trials.get(next.fetch_add(1, Ordering::Relaxed)) {
            match MatrixTrial::new(world, *on, &counts) {
                Ok(trial) => wrong.extend(trial.run().into_iter().map(|case| format!("{on:?}: {case}"))),
                Err(why) => wrong.push(why),
            }
        }
        wrong
    };
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
    });
    let counts = counts.0.into_inner().expect("no panic while held");
    eprintln!("the matrix: {} cases, {counts:?}", counts.values().sum::<usize>());
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
    // Where everything were refused, or nothing, it would prove little.
    assert!(
        ["DONE", "SHOWN", "FORBIDDEN", "NOT_FOUND"].iter().all(|what| counts.get(what) > Some(&100)),
        "{counts:?}"
    );
}

impl<'t> MatrixTrial<'t> {
    fn new(world: &'t MatrixWorld, on: On, counts: &'t MatrixCounts) -> Result<MatrixTrial<'t>, String> {
        let database = if on == On::Postgres { postgres::database() } else { "sqlite:".to_owned() };
        let sdl = world.protected_sdl();
        let stage = ServedStage::new(&world.shape, &sdl, &world.stock, &database)
            .map_err(|why| format!("{why}\n{sdl}"))?;
        let operator = stage.server.engine.as_operator();
        Ok(MatrixTrial { world, stock: world.stock.clone(), stage, operator, counts })
    }

    fn run(mut self) -> Vec<String> {
        let actors = MatrixActor::all();
        let mut credentials = Vec::new();
        for (number, MatrixActor { actor, .. }) in actors.iter().enumerate() {
            credentials.push(match actor.kind {
                ActorKind::Anonymous => None,
                ActorKind::Token | ActorKind::Session => {
                    let mut claims = json!({ "roles": actor.roles });
                    for (path, value) in &actor.claims {
                        match path.split_once('.') {
                            Some((outer, inner)) => claims[outer][inner] = value.clone(),
                            None => claims[*path] = value.clone(),
                        }
                    }
                    if let Some(id) = actor.account {
                        claims["login"] = json!(format!("login{id}"));
                    }
                    Some(tokens::bearer(&claims))
                }
                ActorKind::Key => match self.stage.credential(number, actor) {
                    Ok(credential) => credential,
                    Err(why) => return vec![why],
                },
            });
        }
        let blocked = json!({ "blocked": true });
        self.on_operator(async |engine| {
            engine.update("User", 3, blocked.into()).await.expect("blocked");
            engine.delete("User", 4).await.expect("deleted");
        });
        end_accounts(&mut self.stock);
        let mut wrong = Vec::new();
        let mut turn = 0;
        for entry in &self.world.entries {
            let stock = self.stock_of(entry);
            for (actor, credential) in actors.iter().zip(&credentials) {
                for (face, act) in acts(entry.seat) {
                    turn += 1;
                    if is_long() || turn % ONE_IN == 0 {
                        wrong.extend(self.try_act(
                            &stock,
                            entry,
                            (actor, credential.as_deref()),
                            (face, act),
                            turn,
                        ));
                    }
                }
            }
        }
        wrong
    }

    fn on_operator<T>(&self, work: impl AsyncFnOnce(&Engine) -> T) -> T {
        self.stage.server.runtime.block_on(work(&self.operator))
    }

    /// The records that a rule can reach: those of other rules are left out, so that there is less to judge.
    fn stock_of(&self, entry: &MatrixEntry) -> AccessStock {
        let mut stock = self.stock.clone();
        let others =
            stock.rows.iter_mut().enumerate().filter(|(of, _)| *of >= forms::FIRST && *of != entry.of);
        others.for_each(|(_, rows)| rows.clear());
        stock
    }

    fn try_act(
        &self,
        stock: &AccessStock,
        entry: &MatrixEntry,
        (actor, credential): (&MatrixActor, Option<&str>),
        (face, act): (MatrixFace, MatrixAct),
        turn: usize,
    ) -> Vec<String> {
        let judge =
            RuleJudge { shape: &self.world.shape, stock, actor: &actor.actor, old: None, image: None };
        let ids = match act {
            MatrixAct::List | MatrixAct::Csv | MatrixAct::NewForm => BTreeSet::from([1]),
            _ => self.some_records(&judge, entry, turn),
        };
        let mut client = Client::of(&self.stage.server);
        let mut wrong = Vec::new();
        for id in ids {
            let ended = match act {
                MatrixAct::Create | MatrixAct::Update | MatrixAct::Put | MatrixAct::Delete => {
                    self.try_write(&mut client, &judge, entry, (actor, credential), (face, act), id)
                }
                _ => self.try_read(&mut client, &judge, entry, (actor, credential), (face, act), id),
            };
            if let Err(why) = ended {
                let rule = entry.rule.text(&self.world.shape, entry.of);
                wrong.push(format!(
                    "{:?} `{rule}`: {face:?} {act:?} of {id} by {}: {why}",
                    entry.seat, actor.name
                ));
            }
        }
        wrong
    }

    /// One that the rule holds for, one that it does not hold for, and another one.
    fn some_records(&self, judge: &RuleJudge<'_>, entry: &MatrixEntry, turn: usize) -> BTreeSet<i64> {
        let ids: Vec<i64> = judge.stock.rows[entry.of].keys().copied().collect();
        let holds = |id: &i64| judge.holds(&entry.rule, &[(entry.of, *id)]);
        let (held, others): (Vec<i64>, Vec<i64>) = ids.iter().partition(|id| holds(id));
        let pick = |from: &[i64], turn: usize| from.get(turn.checked_rem(from.len()).unwrap_or(0)).copied();
        [pick(&held, turn), pick(&others, turn), pick(&ids, turn / 2)].into_iter().flatten().collect()
    }

    fn try_read(
        &self,
        client: &mut Client,
        judge: &RuleJudge<'_>,
        entry: &MatrixEntry,
        (actor, credential): (&MatrixActor, Option<&str>),
        (face, act): (MatrixFace, MatrixAct),
        id: i64,
    ) -> Result<(), String> {
        let expected = expected_of_read(judge, actor.is_good, entry.of, act, id);
        let row = &judge.stock.rows[entry.of][&id];
        let request = MatrixRequest { shape: judge.shape, of: entry.of, id, row, given: &[] };
        let answer = request.send(client, credential, face, act);
        self.count(&expected);
        check_answer(face, act, &expected, &answer, actor.is_good)
    }

    fn try_write(
        &self,
        client: &mut Client,
        judge: &RuleJudge<'_>,
        entry: &MatrixEntry,
        (actor, credential): (&MatrixActor, Option<&str>),
        (face, act): (MatrixFace, MatrixAct),
        id: i64,
    ) -> Result<(), String> {
        let owner = &judge.shape.types[entry.of];
        let row = &judge.stock.rows[entry.of][&id];
        let mut stock = judge.stock.clone();
        // What is deleted is a copy.
        let of_id = if act == MatrixAct::Delete { self.copy(entry, row)? } else { id };
        if of_id != id {
            stock.rows[entry.of].insert(of_id, row.clone());
        }
        let judge = RuleJudge { stock: &stock, ..*judge };
        let given = given(entry.seat, act, row);
        let (deed, deed_id) = match act {
            MatrixAct::Create => (Deed::Create, None),
            MatrixAct::Delete => (Deed::Delete, Some(of_id)),
            _ => (Deed::Update, Some(of_id)),
        };
        let record = RecordDeed { deed, of: entry.of, id: deed_id, given: given.clone(), inside: None };
        let wanted = WriteRequest { document: String::new(), deeds: vec![record], is_of_many: false };
        let expected = match verdict(&judge, &wanted) {
            _ if !actor.is_good => Expected::Refused(vec!["UNAUTHENTICATED"]),
            WriteVerdict::Allowed(_) => Expected::Done,
            // Whoever can see none is told that, or that this one is not there.
            WriteVerdict::Refused(codes) if judge.verdict(entry.of, Deed::Read) == Verdict::No => {
                Expected::Refused([codes, vec!["FORBIDDEN", "UNAUTHENTICATED"]].concat())
            }
            // Whoever is not signed in is told that, or which field they may not set.
            WriteVerdict::Refused(codes) if codes == ["FORBIDDEN"] && !actor.actor.is_signed_in() => {
                Expected::Refused(vec!["FORBIDDEN", "UNAUTHENTICATED"])
            }
            WriteVerdict::Refused(codes) => Expected::Refused(codes),
            WriteVerdict::Open => return Err("not a request of the matrix".to_owned()),
        };
        let shown = shown_row(&judge, entry.of, of_id, row, act);
        let request =
            MatrixRequest { shape: judge.shape, of: entry.of, id: of_id, row: &shown, given: &given };
        let before = self.ids(owner.name);
        let answer = request.send(client, credential, face, act);
        self.count(&expected);
        let mut ended = check_answer(face, act, &expected, &answer, actor.is_good);
        if ended.is_ok() {
            let effect = self.effect(entry, act, of_id, &given, &before);
            let is_done = matches!(expected, Expected::Done);
            if effect != Some(is_done) {
                ended = Err(format!("{expected:?}, but written: {effect:?}; {}", short(&answer.text)));
            }
        }
        self.restore(entry, act, of_id, row, &before);
        ended
    }

    /// Another record with the same values.
    fn copy(&self, entry: &MatrixEntry, row: &AccessRow) -> Result<i64, String> {
        let owner = &self.world.shape.types[entry.of];
        let fields = Value::Object(body(&owner.fields, row));
        let made = self.on_operator(async |engine| engine.create(owner.name, fields.into()).await);
        let made = made.map_err(|error| format!("no copy: {error}"))?;
        id_of(&made).ok_or_else(|| "a copy has no id".to_owned())
    }

    fn ids(&self, type_name: &str) -> BTreeSet<i64> {
        let all = self.on_operator(async |engine| engine.list(type_name, Listing::default()).await);
        all.expect("records").iter().filter_map(id_of).collect()
    }

    /// Whether it was written, where that is plain.
    fn effect(
        &self,
        entry: &MatrixEntry,
        act: MatrixAct,
        id: i64,
        given: &[(usize, Cell)],
        before: &BTreeSet<i64>,
    ) -> Option<bool> {
        let owner = &self.world.shape.types[entry.of];
        let now = self.ids(owner.name);
        match act {
            MatrixAct::Create => match now.difference(before).count() {
                0 => Some(false),
                1 => Some(true),
                _ => None,
            },
            MatrixAct::Delete => Some(!now.contains(&id)),
            _ => {
                let record = self.on_operator(async |engine| engine.get(owner.name, id).await);
                let record = record.expect("a look").expect("a record");
                let has = |(at, cell): &(usize, Cell)| {
                    let known = record.get(&owner.fields[*at].name).cloned();
                    known == Some(cell.json().into())
                };
                let count = given.iter().filter(|given| has(given)).count();
                if count == given.len() {
                    return Some(true);
                }
                (count == 0).then_some(false)
            }
        }
    }

    fn restore(&self, entry: &MatrixEntry, act: MatrixAct, id: i64, row: &AccessRow, before: &BTreeSet<i64>) {
        let owner = &self.world.shape.types[entry.of];
        let now = self.ids(owner.name);
        let mut gone: Vec<i64> = now.difference(before).copied().collect();
        if act == MatrixAct::Delete && now.contains(&id) {
            gone.push(id);
        }
        let fields = Value::Object(body(&owner.fields, row));
        self.on_operator(async |engine| {
            for id in gone {
                engine.delete(owner.name, id).await.expect("deleted");
            }
            if matches!(act, MatrixAct::Update | MatrixAct::Put) {
                engine.update(owner.name, id, fields.into()).await.expect("restored");
            }
        });
    }

    fn count(&self, expected: &Expected) {
        self.counts.add(match expected {
            Expected::Refused(codes) => codes[0],
            Expected::Shown { titles, .. } if titles.is_empty() => "EMPTY",
            Expected::Shown { .. } => "SHOWN",
            Expected::Done => "DONE",
        });
    }
}

fn acts(seat: RuleSeat) -> Vec<(MatrixFace, MatrixAct)> {
    match seat {
        RuleSeat::Read => [&READS[..], &FORMS, &CREATES, &UPDATES, &DELETES].concat(),
        RuleSeat::Write => [&FORMS[..], &CREATES, &UPDATES, &DELETES].concat(),
        RuleSeat::UpdateTo => UPDATES.to_vec(),
        RuleSeat::Field => [&READS[..], &CREATES, &UPDATES].concat(),
    }
}

/// What a write gives: a new record like this one, or other values than it has.
fn given(seat: RuleSeat, act: MatrixAct, row: &AccessRow) -> Vec<(usize, Cell)> {
    let changed = Cell::Text("changed".to_owned());
    match act {
        MatrixAct::Create => {
            let is_given = |(at, cell): &(usize, &Cell)| {
                **cell != Cell::Null && (*at != item::SECRET || seat == RuleSeat::Field)
            };
            let mut given: Vec<(usize, Cell)> =
                row.iter().enumerate().filter(is_given).map(|(at, cell)| (at, cell.clone())).collect();
            given[item::TITLE].1 = Cell::Text("created".to_owned());
            given
        }
        MatrixAct::Delete => Vec::new(),
        _ if seat == RuleSeat::Field => vec![(item::SECRET, changed)],
        _ if seat == RuleSeat::UpdateTo => {
            let number = match row[item::NUMBER] {
                Cell::Whole(number) if number % 2 == 0 => number + 1,
                Cell::Whole(number) => number - 1,
                _ => 2,
            };
            vec![
                (item::NUMBER, Cell::Whole(number)),
                (item::FLAG, Cell::Flag(row[item::FLAG] != Cell::Flag(true))),
            ]
        }
        _ => vec![(item::NOTE, changed)],
    }
}

/// The record as who sends the whole of it knows it; of a new one nothing is known.
fn shown_row(judge: &RuleJudge<'_>, of: usize, id: i64, row: &AccessRow, act: MatrixAct) -> AccessRow {
    if act == MatrixAct::Create {
        return vec![Cell::Null; row.len()];
    }
    let world = judge.world();
    let mut shown = world.rows[of].get(&id).unwrap_or(row).clone();
    if !judge.allows_field(of, id, item::SECRET, Deed::Read) {
        shown[item::SECRET] = Cell::Null;
    }
    shown
}

fn id_of(record: &trefoil_model::Value) -> Option<i64> {
    let id = record.get("id")?;
    id.as_i64().or_else(|| id.as_str()?.parse().ok())
}
