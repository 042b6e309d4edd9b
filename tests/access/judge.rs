//! What rules mean, straight from docs/access.md: records in memory, no SQL, nothing of the engine.

use std::cmp::Ordering;

use serde_json::Value as Json;

use super::actors::TestActor;
use super::rule_tree::{Deed, Operand, RecordWay, RuleTree};
use super::shape::{AccessShape, COLORS, Kind};
use super::stock::{AccessRow, AccessStock, Cell};

/// Judges what an actor sees and may do.
#[derive(Clone, Copy)]
pub struct RuleJudge<'w> {
    pub shape: &'w AccessShape,
    pub stock: &'w AccessStock,
    pub actor: &'w TestActor,
    /// What was before the write whose result is judged.
    pub old: Option<OldState<'w>>,
    /// The record that a rule is about as a change shows it. By way of other records it is what it is now.
    pub image: Option<(usize, i64, &'w AccessRow)>,
}

/// The state before a write. Whoever writes is judged as who they were then, also where they change their own account.
#[derive(Clone, Copy)]
pub struct OldState<'w> {
    pub stock: &'w AccessStock,
    /// The record before an update.
    pub row: Option<&'w AccessRow>,
}

/// What is the case whatever the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    No,
    Some,
    Yes,
}

/// Later than every time in the past, earlier than all in the future; the times of records are far from it.
const NOW: &str = "2100-01-01T00:00:00Z";

impl<'w> RuleJudge<'w> {
    /// Whether the rules of a type allow it for a record.
    pub fn allows(&self, of: usize, id: i64, deed: Deed) -> bool {
        self.allows_within(of, id, deed, false)
    }

    fn allows_within(&self, of: usize, id: i64, deed: Deed, is_negated: bool) -> bool {
        let deed = match deed {
            Deed::UpdateTo if self.shape.types[of].rules.get(Deed::UpdateTo).is_none() => Deed::Update,
            deed => deed,
        };
        self.shape.rules_for(of, deed).iter().any(|rule| self.meets(rule, &[(of, id)], is_negated))
    }

    /// Whether a field's own rule allows it for a record.
    pub fn allows_field(&self, of: usize, id: i64, field: usize, deed: Deed) -> bool {
        let rule = self.shape.types[of].fields[field].rules.get(deed);
        rule.is_none_or(|rule| self.holds(rule, &[(of, id)]))
    }

    /// The records in sight, with what is hidden as null.
    pub fn world(&self) -> AccessStock {
        let mut world = AccessStock { rows: Vec::new() };
        for (of, rows) in self.stock.rows.iter().enumerate() {
            let seen = rows.iter().filter(|(id, _)| self.allows(of, **id, Deed::Read));
            world.rows.push(seen.map(|(id, row)| (*id, self.as_shown(of, *id, row))).collect());
        }
        world.fill_other_sides(self.shape);
        world
    }

    fn as_shown(&self, of: usize, id: i64, row: &AccessRow) -> AccessRow {
        let fields = self.shape.types[of].fields.iter().zip(row).enumerate();
        let shown = fields.map(|(position, (field, cell))| {
            if !self.allows_field(of, id, position, Deed::Read) {
                return Cell::Null;
            }
            let is_seen =
                |id: &i64| field.content.target().is_some_and(|of| self.allows(of, *id, Deed::Read));
            match cell {
                Cell::One(id) if !is_seen(id) => Cell::Null,
                Cell::Many(ids) => Cell::Many(ids.iter().filter(|id| is_seen(id)).copied().collect()),
                other => other.clone(),
            }
        });
        shown.collect()
    }

    pub fn holds(&self, rule: &RuleTree, scope: &[(usize, i64)]) -> bool {
        self.meets(rule, scope, false)
    }

    /// The same within an odd number of negations: what is gone denies in either case.
    fn meets(&self, rule: &RuleTree, scope: &[(usize, i64)], is_negated: bool) -> bool {
        if self.is_gone(rule, scope) {
            return is_negated;
        }
        match rule {
            RuleTree::Constant(value) => *value,
            RuleTree::SignedIn => self.actor.is_signed_in(),
            RuleTree::Role(roles) => roles.iter().any(|role| self.actor.roles.iter().any(|own| own == role)),
            RuleTree::All(inner) => inner.iter().all(|rule| self.meets(rule, scope, is_negated)),
            RuleTree::Any(inner) => inner.iter().any(|rule| self.meets(rule, scope, is_negated)),
            RuleTree::Not(inner) => !self.meets(inner, scope, !is_negated),
            RuleTree::Compare(left, op, right) => {
                let order = self.value(left, scope).compare(&self.value(right, scope));
                order.is_some_and(|order| is_order(order, op))
            }
            RuleTree::Null(operand, is_null) => (self.value(operand, scope) == Cell::Null) == *is_null,
            RuleTree::Flag(operand) => self.value(operand, scope) == Cell::Flag(true),
            RuleTree::In(item, choices) => {
                let item = self.value(item, scope);
                let is_it =
                    |choice: &Operand| self.value(choice, scope).compare(&item) == Some(Ordering::Equal);
                choices.iter().any(is_it)
            }
            RuleTree::Has(item, way, field) => match (self.value(item, scope), self.cell(scope, way, *field))
            {
                (Cell::Text(text), Some(Cell::Texts(texts))) => texts.contains(&text),
                _ => false,
            },
            RuleTree::Exists(way, list, inner) => {
                let Some((of, _)) = self.record(scope, way) else { return false };
                let target = self.shape.types[of].fields[*list].content.target().expect("a list of records");
                let Some(Cell::Many(ids)) = self.cell(scope, way, *list) else { panic!("a list of records") };
                ids.iter().any(|id| self.meets(inner, &[scope, &[(target, *id)]].concat(), is_negated))
            }
            RuleTree::Can(deed, way) => {
                self.record(scope, way).is_some_and(|(of, id)| self.allows_within(of, id, *deed, is_negated))
            }
            RuleTree::Named(way, rule) => self.record(scope, way).is_some_and(|(of, id)| {
                self.meets(&self.shape.types[of].named[*rule].1, &[(of, id)], is_negated)
            }),
        }
    }

    /// Whether something that a comparison, or another rule, asks of the image is gone, and decides it.
    fn is_gone(&self, rule: &RuleTree, scope: &[(usize, i64)]) -> bool {
        let Some((of, id, row)) = self.image else { return false };
        let leads_nowhere = |way: &RecordWay, least: usize| {
            let is_image = way.variable == 0 && scope[0] == (of, id) && way.references.len() >= least;
            let Some(first) = way.references.first().filter(|_| is_image) else { return false };
            let target = self.shape.types[of].fields[*first].content.target().expect("a reference");
            matches!(row[*first], Cell::One(found) if !self.stock.rows[target].contains_key(&found))
        };
        let is_gone = |operand: &Operand| match operand {
            // The last reference is a value of the record before it.
            Operand::Record(way) => leads_nowhere(way, 2),
            Operand::Field(way, ..) => leads_nowhere(way, 1),
            Operand::Literal(_) | Operand::Me(..) | Operand::Claim(..) | Operand::Now | Operand::Old(_) => {
                false
            }
        };
        let found = match rule {
            RuleTree::Compare(left, _, right) => is_gone(left) || is_gone(right),
            RuleTree::Null(operand, _) | RuleTree::Flag(operand) => is_gone(operand),
            RuleTree::In(item, choices) => is_gone(item) || choices.iter().any(is_gone),
            RuleTree::Has(item, way, _) => is_gone(item) || leads_nowhere(way, 1),
            RuleTree::Exists(way, ..) if way.references.is_empty() => {
                way.variable == 0 && scope[0] == (of, id) && !self.stock.rows[of].contains_key(&id)
            }
            RuleTree::Exists(way, ..) | RuleTree::Can(_, way) | RuleTree::Named(way, _) => {
                leads_nowhere(way, 1)
            }
            RuleTree::Constant(_)
            | RuleTree::SignedIn
            | RuleTree::Role(_)
            | RuleTree::All(_)
            | RuleTree::Any(_)
            | RuleTree::Not(_) => false,
        };
        let types: Vec<usize> = scope.iter().map(|(of, _)| *of).collect();
        found && self.known(rule, &types).is_none()
    }

    /// The record at the end of a way, if there is one.
    fn record(&self, scope: &[(usize, i64)], way: &RecordWay) -> Option<(usize, i64)> {
        let mut at = scope[way.variable];
        for (step, field) in way.references.iter().enumerate() {
            let target = self.shape.types[at.0].fields[*field].content.target().expect("a reference");
            at = match &self.row(at, way.variable == 0 && step == 0)?[*field] {
                Cell::One(id) => (target, *id),
                Cell::Null => return None,
                other => panic!("{other:?} is no reference"),
            };
        }
        Some(at)
    }

    fn cell(&self, scope: &[(usize, i64)], way: &RecordWay, field: usize) -> Option<Cell> {
        let at = self.record(scope, way)?;
        Some(self.row(at, way.variable == 0 && way.references.is_empty())?[field].clone())
    }

    /// A record; `is_subject` where it is the one that the rule is about.
    fn row(&self, (of, id): (usize, i64), is_subject: bool) -> Option<&'w AccessRow> {
        match self.image {
            Some((image_of, image_id, row)) if is_subject && (image_of, image_id) == (of, id) => Some(row),
            _ => self.stock.rows[of].get(&id),
        }
    }

    pub fn value(&self, operand: &Operand, scope: &[(usize, i64)]) -> Cell {
        match operand {
            Operand::Literal(cell) => cell.clone(),
            Operand::Record(way) => self.record(scope, way).map_or(Cell::Null, |(_, id)| Cell::One(id)),
            Operand::Field(way, field, member) => {
                let cell = self.cell(scope, way, *field).unwrap_or(Cell::Null);
                match (cell, member) {
                    (Cell::Spot(Some(city), _), Some("city")) => Cell::Text(city),
                    (Cell::Spot(_, Some(zip)), Some("zip")) => Cell::Whole(zip),
                    (_, Some(_)) => Cell::Null,
                    (cell, None) => cell,
                }
            }
            Operand::Me(references, field) => {
                let Some(account) = self.actor.account else { return Cell::Null };
                let scope = [(self.shape.account, account)];
                let way = RecordWay::to(0, references.clone());
                let earlier = RuleJudge { stock: self.old.map_or(self.stock, |old| old.stock), ..*self };
                match field {
                    Some(field) => earlier.cell(&scope, &way, *field).unwrap_or(Cell::Null),
                    None => earlier.record(&scope, &way).map_or(Cell::Null, |(_, id)| Cell::One(id)),
                }
            }
            Operand::Claim(path, kind) => claim_as(self.actor.claim(path), *kind),
            Operand::Now => Cell::Moment(NOW.to_owned()),
            Operand::Old(field) => {
                self.old.and_then(|old| old.row).map_or(Cell::Null, |row| row[*field].clone())
            }
        }
    }

    /// What a type's rules come to for this actor whatever the record.
    pub fn verdict(&self, of: usize, deed: Deed) -> Verdict {
        let deed = match deed {
            Deed::UpdateTo if self.shape.types[of].rules.get(Deed::UpdateTo).is_none() => Deed::Update,
            deed => deed,
        };
        let rules = self.shape.rules_for(of, deed);
        verdict(joined(rules.into_iter().map(|rule| self.known(rule, &[of])), true))
    }

    /// The same for a field that is read: its rule, and whether what it leads to is in sight.
    pub fn field_verdict(&self, of: usize, field: usize, deed: Deed) -> Verdict {
        let field = &self.shape.types[of].fields[field];
        let own = field.rules.get(deed).map_or(Some(true), |rule| self.known(rule, &[of]));
        let target = field.content.target().filter(|_| deed == Deed::Read);
        let target = target.map_or(Verdict::Yes, |target| self.verdict(target, Deed::Read));
        match (verdict(own), target) {
            (Verdict::No, _) | (_, Verdict::No) => Verdict::No,
            (Verdict::Yes, Verdict::Yes) => Verdict::Yes,
            (Verdict::Some, _) | (_, Verdict::Some) => Verdict::Some,
        }
    }

    /// What a rule about records of these types comes to, as far as the actor alone decides.
    fn known(&self, rule: &RuleTree, types: &[usize]) -> Option<bool> {
        let at = |way: &RecordWay| self.shape.type_at(types[way.variable], &way.references);
        match rule {
            RuleTree::Constant(_) | RuleTree::SignedIn | RuleTree::Role(_) => Some(self.holds(rule, &[])),
            RuleTree::All(inner) => joined(inner.iter().map(|rule| self.known(rule, types)), false),
            RuleTree::Any(inner) => joined(inner.iter().map(|rule| self.known(rule, types)), true),
            RuleTree::Not(inner) => self.known(inner, types).map(|known| !known),
            RuleTree::Exists(way, list, inner) => {
                let target = self.shape.types[at(way)].fields[*list].content.target().expect("a list");
                let known = self.known(inner, &[types, &[target]].concat());
                known.filter(|known| !known)
            }
            RuleTree::Can(deed, way) => known_elsewhere(way, self.verdict(at(way), *deed)),
            RuleTree::Named(way, named) => {
                let of = at(way);
                known_elsewhere(way, verdict(self.known(&self.shape.types[of].named[*named].1, &[of])))
            }
            RuleTree::Compare(..)
            | RuleTree::Null(..)
            | RuleTree::Flag(_)
            | RuleTree::In(..)
            | RuleTree::Has(..) => self.known_comparison(rule),
        }
    }

    fn known_comparison(&self, rule: &RuleTree) -> Option<bool> {
        let of_actor = |operand: &Operand| match operand {
            Operand::Literal(cell) => Some(cell.clone()),
            Operand::Me(..) => Some(self.value(operand, &[])),
            Operand::Claim(..) => Some(self.value(operand, &[])),
            Operand::Now | Operand::Record(_) | Operand::Field(..) | Operand::Old(_) => None,
        };
        let is_absent = |operand: &Operand| of_actor(operand) == Some(Cell::Null);
        let is_list = matches!(rule, RuleTree::Has(..));
        if !is_list && rule.operands().into_iter().all(|operand| of_actor(operand).is_some()) {
            return Some(self.holds(rule, &[]));
        }
        let is_false = match rule {
            RuleTree::Null(..) => false,
            RuleTree::In(item, choices) => is_absent(item) || choices.iter().all(is_absent),
            _ => rule.operands().into_iter().any(is_absent),
        };
        is_false.then_some(false)
    }
}

/// A claim as what it is compared with; absent if it is no such value. Lists and objects are none.
fn claim_as(claim: Option<&Json>, kind: Option<Kind>) -> Cell {
    let Some(claim) = claim else { return Cell::Null };
    let text = claim.as_str();
    let found = match kind {
        None => (!claim.is_null() && !claim.is_array() && !claim.is_object()).then_some(Cell::Flag(true)),
        Some(Kind::Text) => text.map(|text| Cell::Text(text.to_owned())),
        Some(Kind::Int) => claim.as_i64().map(Cell::Whole),
        Some(Kind::Flag) => claim.as_bool().map(Cell::Flag),
        // The tests have no decimals with more digits.
        Some(Kind::Decimal) => match (claim.as_f64(), text.map(str::parse::<f64>)) {
            (Some(number), _) | (None, Some(Ok(number))) => {
                Some(Cell::Exact((number * 100.0).round() as i64))
            }
            (None, _) => None,
        },
        Some(Kind::Moment) => {
            text.filter(|text| text.ends_with('Z')).map(|text| Cell::Moment(text.to_owned()))
        }
        Some(Kind::Color) => {
            text.filter(|text| COLORS.contains(text)).map(|text| Cell::Word(text.to_owned()))
        }
    };
    found.unwrap_or(Cell::Null)
}

/// Of the rule of another record: without such a record it does not hold.
fn known_elsewhere(way: &RecordWay, verdict: Verdict) -> Option<bool> {
    match verdict {
        Verdict::No => Some(false),
        Verdict::Yes if way.references.is_empty() => Some(true),
        Verdict::Yes | Verdict::Some => None,
    }
}

fn is_order(order: Ordering, op: &str) -> bool {
    match op {
        "==" => order.is_eq(),
        "!=" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        ">=" => order.is_ge(),
        _ => panic!("{op} compares nothing"),
    }
}

/// `decided` decides the whole.
fn joined(parts: impl Iterator<Item = Option<bool>>, decided: bool) -> Option<bool> {
    let mut all = Some(!decided);
    for part in parts {
        match part {
            Some(part) if part == decided => return Some(decided),
            Some(_) => {}
            None => all = None,
        }
    }
    all
}

fn verdict(known: Option<bool>) -> Verdict {
    match known {
        Some(false) => Verdict::No,
        Some(true) => Verdict::Yes,
        None => Verdict::Some,
    }
}

/// Whether a rule, with those that it uses, names lists inside lists deeper than the language allows.
pub fn list_depth(shape: &AccessShape, rule: &RuleTree, types: &[usize]) -> (usize, usize) {
    let at = |way: &RecordWay| shape.type_at(types[way.variable], &way.references);
    let all = |rules: Vec<(&RuleTree, Vec<usize>)>| {
        rules.into_iter().fold((0, 0), |(depth, count), (rule, types)| {
            let (own_depth, own_count) = list_depth(shape, rule, &types);
            (depth.max(own_depth), count + own_count)
        })
    };
    match rule {
        RuleTree::All(inner) | RuleTree::Any(inner) => {
            all(inner.iter().map(|rule| (rule, types.to_vec())).collect())
        }
        RuleTree::Not(inner) => list_depth(shape, inner, types),
        RuleTree::Exists(way, list, inner) => {
            let target = shape.types[at(way)].fields[*list].content.target().expect("a list of records");
            let (depth, count) = list_depth(shape, inner, &[types, &[target]].concat());
            (depth + 1, count + 1)
        }
        RuleTree::Can(deed, way) => {
            let of = at(way);
            all(shape.rules_for(of, *deed).into_iter().map(|rule| (rule, vec![of])).collect())
        }
        RuleTree::Named(way, named) => list_depth(shape, &shape.types[at(way)].named[*named].1, &[at(way)]),
        RuleTree::Constant(_)
        | RuleTree::SignedIn
        | RuleTree::Role(_)
        | RuleTree::Compare(..)
        | RuleTree::Null(..)
        | RuleTree::Flag(_)
        | RuleTree::In(..)
        | RuleTree::Has(..) => (0, 1),
    }
}
