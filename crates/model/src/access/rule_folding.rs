//! Decides the parts of a rule that are about the actor alone.

use crate::access::access_rule::{RuleTest, RuleValue};
use crate::access::rule_constants::{self, TextComparison};
use crate::{ComparisonOp, StoredValue};

/// What is known of an actor.
pub trait ActorFacts {
    fn is_signed_in(&self) -> bool;

    fn has_role(&self, role: &str) -> bool;

    /// A field of the actor's account, a claim or a time; the field of a record before a change.
    fn value(&self, value: &RuleValue) -> ActorFact;

    /// How texts of this value are compared.
    fn text_comparison(&self, value: &RuleValue) -> TextComparison;
}

/// What is known of a value that belongs to the actor or to the time of the request.
#[derive(Debug, Clone, PartialEq)]
pub enum ActorFact {
    Known(StoredValue),
    Absent,
    /// Depends on who it is.
    Unknown,
}

/// Whether an actor may do something with records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessVerdict {
    /// With none, whatever they hold.
    No,
    /// With those that meet the rest of the rule.
    Some,
    /// With all.
    Yes,
}

impl RuleTest {
    pub fn verdict(&self, actor: &impl ActorFacts) -> AccessVerdict {
        match self.folded(actor).as_constant() {
            Some(false) => AccessVerdict::No,
            Some(true) => AccessVerdict::Yes,
            None => AccessVerdict::Some,
        }
    }

    /// The rest of the test for this actor: a constant if the record does not matter.
    pub fn folded(&self, actor: &impl ActorFacts) -> RuleTest {
        match self {
            RuleTest::Constant(value) => RuleTest::Constant(*value),
            RuleTest::SignedIn => RuleTest::Constant(actor.is_signed_in()),
            RuleTest::HasRole(roles) => RuleTest::Constant(roles.iter().any(|role| actor.has_role(role))),
            RuleTest::All(tests) => folded_tests(tests, actor, false, RuleTest::All),
            RuleTest::Any(tests) => folded_tests(tests, actor, true, RuleTest::Any),
            RuleTest::Not(inner) => inner.folded(actor).negated(),
            RuleTest::Compare { left: left_value, op, right: right_value } => {
                match (folded_value(left_value, actor), folded_value(right_value, actor)) {
                    (Some(RuleValue::Literal(left)), Some(RuleValue::Literal(right))) => {
                        let texts = texts_of(actor, [left_value, right_value]);
                        RuleTest::Constant(rule_constants::compares(&left, *op, &right, texts))
                    }
                    (Some(left), Some(right)) => RuleTest::Compare { left, op: *op, right },
                    (None, _) | (_, None) => RuleTest::Constant(false),
                }
            }
            RuleTest::IsAbsent(value) => match folded_value(value, actor) {
                Some(RuleValue::Literal(_)) => RuleTest::Constant(false),
                Some(value) if value.is_time() => RuleTest::Constant(false),
                Some(value) => RuleTest::IsAbsent(value),
                None => RuleTest::Constant(true),
            },
            RuleTest::IsTrue(value) => match folded_value(value, actor) {
                Some(RuleValue::Literal(value)) => RuleTest::Constant(value == StoredValue::Int(1)),
                Some(value) => RuleTest::IsTrue(value),
                None => RuleTest::Constant(false),
            },
            RuleTest::OneOf { value, choices } => {
                let texts = texts_of(actor, std::iter::once(value).chain(choices));
                let choices: Vec<RuleValue> =
                    choices.iter().filter_map(|choice| folded_value(choice, actor)).collect();
                match folded_value(value, actor) {
                    Some(_) if choices.is_empty() => RuleTest::Constant(false),
                    Some(RuleValue::Literal(value)) => one_of_known(&value, choices, texts),
                    Some(value) => RuleTest::OneOf { value, choices },
                    None => RuleTest::Constant(false),
                }
            }
            RuleTest::HasItem { list, item } => {
                match (folded_value(list, actor), folded_value(item, actor)) {
                    (Some(RuleValue::Literal(list)), Some(RuleValue::Literal(item))) => {
                        RuleTest::Constant(rule_constants::has_item(&list, &item))
                    }
                    (Some(list), Some(item)) => RuleTest::HasItem { list, item },
                    (None, _) | (_, None) => RuleTest::Constant(false),
                }
            }
            RuleTest::Related { owner, relation, test } => {
                let test = test.folded(actor);
                if test.as_constant() == Some(false) {
                    return test;
                }
                RuleTest::Related { owner: owner.clone(), relation: *relation, test: Box::new(test) }
            }
        }
    }
}

/// How texts are compared in a comparison of these values.
fn texts_of<'v>(actor: &impl ActorFacts, values: impl IntoIterator<Item = &'v RuleValue>) -> TextComparison {
    let of_values = values.into_iter().map(|value| actor.text_comparison(value));
    of_values.into_iter().find(|texts| *texts != TextComparison::Exact).unwrap_or(TextComparison::Exact)
}

/// Of the choices that are known, one decides or none has an effect.
fn one_of_known(value: &StoredValue, choices: Vec<RuleValue>, texts: TextComparison) -> RuleTest {
    let is_same = |choice: &RuleValue| match choice {
        RuleValue::Literal(choice) => rule_constants::compares(value, ComparisonOp::Eq, choice, texts),
        RuleValue::Field { .. }
        | RuleValue::Actor { .. }
        | RuleValue::Claim(_)
        | RuleValue::Now
        | RuleValue::LocalNow
        | RuleValue::Today
        | RuleValue::Old(_) => false,
    };
    if choices.iter().any(is_same) {
        return RuleTest::Constant(true);
    }
    let unknown: Vec<RuleValue> =
        choices.into_iter().filter(|choice| !matches!(choice, RuleValue::Literal(_))).collect();
    if unknown.is_empty() {
        return RuleTest::Constant(false);
    }
    RuleTest::OneOf { value: RuleValue::Literal(value.clone()), choices: unknown }
}

/// `decided` is the constant that decides the whole; the opposite one has no effect.
fn folded_tests(
    tests: &[RuleTest],
    actor: &impl ActorFacts,
    decided: bool,
    join: fn(Vec<RuleTest>) -> RuleTest,
) -> RuleTest {
    let mut rest = Vec::new();
    for test in tests {
        let test = test.folded(actor);
        match test.as_constant() {
            Some(value) if value == decided => return test,
            Some(_) => {}
            None => rest.push(test),
        }
    }
    match rest.len() {
        0 => RuleTest::Constant(!decided),
        1 => rest.remove(0),
        _ => join(rest),
    }
}

/// The value with what is known of the actor in it; `None` if it is absent.
fn folded_value(value: &RuleValue, actor: &impl ActorFacts) -> Option<RuleValue> {
    match value {
        RuleValue::Actor { .. }
        | RuleValue::Claim(_)
        | RuleValue::Now
        | RuleValue::LocalNow
        | RuleValue::Today
        | RuleValue::Old(_) => match actor.value(value) {
            ActorFact::Known(StoredValue::Null) | ActorFact::Absent => None,
            ActorFact::Known(known) => Some(RuleValue::Literal(known)),
            ActorFact::Unknown => Some(value.clone()),
        },
        RuleValue::Literal(_) | RuleValue::Field { .. } => Some(value.clone()),
    }
}
