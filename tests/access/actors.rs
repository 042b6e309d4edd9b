//! The actors of the tests: as the interpreter knows them, and as the engine does.

use serde_json::{Value as Json, json};
use trefoil_engine::{AccountFacts, Actor, ActorIdentity, ActorPath};
use trefoil_model::values::coerce::coerce_comparable;
use trefoil_model::{FieldId, Model, RecordId, RecordType, StoredValue, Value};

use super::judge::RuleJudge;
use super::rule_tree::Operand;
use super::shape::{AccessShape, Content, ROLES};
use super::stock::{AccessStock, Cell};
use crate::power::chance::Chance;

/// Someone who asks.
#[derive(Clone, Debug, PartialEq)]
pub struct TestActor {
    pub kind: ActorKind,
    /// Their record among the accounts.
    pub account: Option<i64>,
    pub roles: Vec<String>,
    pub claims: Vec<(&'static str, Json)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActorKind {
    Anonymous,
    /// Has the roles of its account.
    Session,
    Key,
    Token,
}

/// The claims that rules name. They hold anything.
pub const NAME_CLAIM: &str = "org.name";
pub const LEVEL_CLAIM: &str = "level";

fn claim(chance: &mut Chance) -> Json {
    match chance.below(10) {
        0..=2 => json!(*chance.pick(&["a", "b", "pond", "", "c"]).expect("some")),
        3 | 4 => json!(chance.below(5)),
        5 => json!(chance.percent(50)),
        6 => json!(*chance.pick(&[0.5, 10.5, -0.05]).expect("some")),
        7 => json!(*chance.pick(&["RED", "2020-02-29T12:30:00Z", "10.50"]).expect("some")),
        8 => json!(["a", 1]),
        _ => Json::Null,
    }
}

impl TestActor {
    pub fn anonymous() -> TestActor {
        TestActor { kind: ActorKind::Anonymous, account: None, roles: Vec::new(), claims: Vec::new() }
    }

    /// Nobody, three accounts, keys with an account and without, tokens with and without.
    pub fn eight(chance: &mut Chance, shape: &AccessShape, stock: &AccessStock) -> Vec<TestActor> {
        let accounts: Vec<i64> = stock.rows[shape.account].keys().copied().collect();
        let account = |at: usize| accounts.get(at).copied().or(accounts.first().copied());
        let [first, second, third, fourth] = [0, 1, 2, 3].map(account);
        let roles = |chance: &mut Chance| -> Vec<String> {
            let some = ROLES.iter().filter(|_| chance.percent(40)).map(|role| (*role).to_owned());
            some.collect()
        };
        let claims = |chance: &mut Chance| {
            let mut claims = Vec::new();
            for path in [NAME_CLAIM, LEVEL_CLAIM] {
                if chance.percent(85) {
                    claims.push((path, claim(chance)));
                }
            }
            claims
        };
        let session = |account| TestActor { kind: ActorKind::Session, account, ..TestActor::anonymous() };
        let mut actors = vec![TestActor::anonymous(), session(first), session(second), session(third)];
        for (kind, account) in [
            (ActorKind::Key, None),
            (ActorKind::Key, second),
            (ActorKind::Token, None),
            (ActorKind::Token, fourth),
        ] {
            let claims = if kind == ActorKind::Token { claims(chance) } else { Vec::new() };
            actors.push(TestActor { kind, account, roles: roles(chance), claims });
        }
        actors.iter().map(|actor| actor.with_roles(shape, stock)).collect()
    }

    /// The actor with the roles that their account has now.
    pub fn with_roles(&self, shape: &AccessShape, stock: &AccessStock) -> TestActor {
        let mut actor = self.clone();
        if actor.kind == ActorKind::Session {
            let row = actor.account.and_then(|account| stock.rows[shape.account].get(&account));
            let position =
                shape.types[shape.account].fields.iter().position(|field| field.content == Content::Roles);
            actor.roles = match row.zip(position).map(|(row, position)| &row[position]) {
                Some(Cell::Word(role)) => vec![role.clone()],
                Some(Cell::Words(roles)) => roles.clone(),
                _ => Vec::new(),
            };
        }
        actor
    }

    pub fn is_signed_in(&self) -> bool {
        self.kind != ActorKind::Anonymous
    }

    pub fn claim(&self, path: &str) -> Option<&Json> {
        self.claims.iter().find(|(own, _)| *own == path).map(|(_, claim)| claim)
    }

    /// The same actor for the engine; its facts are those of the records as they are now.
    pub fn for_engine(&self, shape: &AccessShape, stock: &AccessStock, model: &Model) -> Actor {
        if !self.is_signed_in() {
            return Actor::anonymous(None);
        }
        let judge = RuleJudge { shape, stock, actor: self, old: None, image: None };
        let facts = || {
            let paths = shape.actor_paths().into_iter();
            let known = paths.filter_map(|operand| {
                let cell = judge.value(&operand, &[]);
                (cell != Cell::Null).then(|| actor_value(shape, model, &operand, &cell))
            });
            known.collect()
        };
        let account = self.account.map(|id| AccountFacts {
            label: String::new(),
            id: RecordId::Number(id),
            model_hash: model.hash,
            values: facts(),
        });
        let claims = self.claims.iter().map(|(path, claim)| {
            // `org.name` is a member of an object.
            let value = Value::from(claim.clone());
            match path.split_once('.') {
                Some((outer, inner)) => (outer.to_owned(), Value::object([(inner, value)])),
                None => ((*path).to_owned(), value),
            }
        });
        let identity = ActorIdentity {
            name: format!("{:?}:{:?}:{}", self.kind, self.account, self.roles.join("-")).to_lowercase(),
            roles: self.roles.clone(),
            account,
            claims: Value::Object(claims.collect()),
            expires: None,
        };
        Actor::of_identity(identity)
    }
}

/// A value of the account as the engine keeps it, with the way to it.
fn actor_value(
    shape: &AccessShape,
    model: &Model,
    operand: &Operand,
    cell: &Cell,
) -> (ActorPath, StoredValue) {
    let Operand::Me(references, field) = operand else { panic!("{operand:?} is not of the actor") };
    // `me.team` is the reference itself, not the key of what it leads to.
    let (references, field) = match (field, references.split_last()) {
        (Some(field), _) => (references.as_slice(), Some(*field)),
        (None, Some((last, before))) => (before, Some(*last)),
        (None, None) => (&[][..], None),
    };
    let mut owner = shape.account;
    let mut path = Vec::new();
    for at in references {
        path.push(field_id(record(model, shape, owner), &shape.types[owner].fields[*at].name));
        owner = shape.type_at(owner, &[*at]);
    }
    let record = record(model, shape, owner);
    let id = field.map_or(record.id_field(), |at| field_id(record, &shape.types[owner].fields[at].name));
    let value = match cell {
        Cell::One(id) => StoredValue::Int(*id),
        cell => coerce_comparable(model, record.field(id), &Value::from(cell.json())).expect("a value"),
    };
    (ActorPath { references: path, field: id }, value)
}

fn record<'m>(model: &'m Model, shape: &AccessShape, of: usize) -> &'m RecordType {
    model.records.iter().find(|record| record.name == shape.types[of].name).expect("a record type")
}

fn field_id(record: &RecordType, name: &str) -> FieldId {
    record.find_field(name).expect("a field")
}

impl AccessShape {
    /// What rules ask of the account.
    pub fn actor_paths(&self) -> Vec<Operand> {
        let mut found: Vec<Operand> = Vec::new();
        let mut open: Vec<&super::rule_tree::RuleTree> = Vec::new();
        let of = |rules: &super::shape::ShapeRules| rules.0.len();
        for owner in &self.types {
            open.extend(owner.rules.0.iter().map(|(_, rule)| rule));
            open.extend(owner.named.iter().map(|(_, rule)| rule));
            let of_fields = owner.fields.iter().filter(|field| of(&field.rules) > 0);
            open.extend(of_fields.flat_map(|field| field.rules.0.iter().map(|(_, rule)| rule)));
        }
        open.extend(self.everywhere.0.iter().map(|(_, rule)| rule));
        while let Some(rule) = open.pop() {
            open.extend(rule.parts());
            for operand in rule.operands() {
                if matches!(operand, Operand::Me(..)) && !found.contains(operand) {
                    found.push(operand.clone());
                }
            }
        }
        found
    }
}
