//! A tree of conditions, made at random, and the smaller ones that it contains.

use super::rows;
use super::schema::{Content, PlainField, PlainSchema, ValueKind};
use super::values::PlainValue;
use crate::power::chance::Chance;

#[derive(Clone, Debug)]
pub enum ConditionTree {
    All(Vec<ConditionTree>),
    Any(Vec<ConditionTree>),
    /// Not all of them.
    Not(Vec<ConditionTree>),
    Test {
        field: usize,
        operator: TestOperator,
        operand: PlainValue,
    },
    /// All of them are true of an embedded value.
    Part {
        field: usize,
        conditions: Vec<ConditionTree>,
    },
    /// All of them are true of related records.
    Related {
        field: usize,
        quantifier: Quantifier,
        conditions: Vec<ConditionTree>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// Of a reference.
    One,
    Some,
    Every,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestOperator {
    Eq,
    Ne,
    Lt,
    Lte,
    Gt,
    Gte,
    In,
    NotIn,
    Null,
    Has,
    Empty,
    Text(TextPlace, bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextPlace {
    Whole,
    Anywhere,
    Start,
    End,
}

/// The type whose fields a condition names.
#[derive(Clone, Copy)]
pub enum TreeOwner {
    Record(usize),
    Part(usize),
}

impl TreeOwner {
    pub fn fields(self, schema: &PlainSchema) -> &[PlainField] {
        match self {
            TreeOwner::Record(at) => &schema.records[at].fields,
            TreeOwner::Part(at) => &schema.parts[at].fields,
        }
    }

    /// The owner of the conditions inside a field.
    pub fn inside(self, schema: &PlainSchema, field: usize) -> TreeOwner {
        match self.fields(schema)[field].content {
            Content::Part(part) => TreeOwner::Part(part),
            Content::Reference { target, .. }
            | Content::Inverse { target, .. }
            | Content::Link { target, .. } => TreeOwner::Record(target),
            Content::Key(_) | Content::Single(_) | Content::List(_) => panic!("a value has no fields"),
        }
    }
}

impl TestOperator {
    /// As GraphQL writes it after `_`; equality is nothing.
    pub fn name(self) -> &'static str {
        match self {
            TestOperator::Eq => "",
            TestOperator::Ne => "ne",
            TestOperator::Lt => "lt",
            TestOperator::Lte => "lte",
            TestOperator::Gt => "gt",
            TestOperator::Gte => "gte",
            TestOperator::In => "in",
            TestOperator::NotIn => "notIn",
            TestOperator::Null => "null",
            TestOperator::Has => "has",
            TestOperator::Empty => "empty",
            TestOperator::Text(TextPlace::Whole, false) => "",
            TestOperator::Text(TextPlace::Whole, true) => "ci",
            TestOperator::Text(TextPlace::Anywhere, false) => "contains",
            TestOperator::Text(TextPlace::Anywhere, true) => "contains_ci",
            TestOperator::Text(TextPlace::Start, false) => "startsWith",
            TestOperator::Text(TextPlace::Start, true) => "startsWith_ci",
            TestOperator::Text(TextPlace::End, false) => "endsWith",
            TestOperator::Text(TextPlace::End, true) => "endsWith_ci",
        }
    }
}

/// Makes trees for the types of a schema.
pub struct TreeMaker<'s> {
    pub schema: &'s PlainSchema,
    pub chance: Chance,
}

impl TreeMaker<'_> {
    /// Conditions that must all be true; none at all now and then.
    pub fn conditions(&mut self, owner: TreeOwner, depth: usize) -> Vec<ConditionTree> {
        let count =
            if self.chance.percent(6) { 0 } else { 1 + self.chance.below(if depth > 1 { 3 } else { 2 }) };
        (0..count).map(|_| self.condition(owner, depth)).collect()
    }

    fn condition(&mut self, owner: TreeOwner, depth: usize) -> ConditionTree {
        if depth > 0 && self.chance.percent(35) {
            let inner = self.conditions(owner, depth - 1);
            return match self.chance.below(4) {
                0 => ConditionTree::All(inner),
                1 => ConditionTree::Not(inner),
                _ => ConditionTree::Any(inner),
            };
        }
        let field = self.chance.below(owner.fields(self.schema).len());
        let content = owner.fields(self.schema)[field].content;
        match content {
            Content::Key(kind) | Content::Single(kind) => self.test(owner, field, kind),
            Content::List(kind) => self.list_test(owner, field, kind),
            Content::Part(_) if depth > 0 && self.chance.percent(75) => {
                let conditions = self.conditions(owner.inside(self.schema, field), depth - 1);
                ConditionTree::Part { field, conditions }
            }
            Content::Part(_) => self.null_test(owner, field),
            Content::Reference { .. } if depth > 0 && self.chance.percent(70) => {
                let conditions = self.conditions(owner.inside(self.schema, field), depth - 1);
                ConditionTree::Related { field, quantifier: Quantifier::One, conditions }
            }
            Content::Reference { .. } => {
                let kind = owner.fields(self.schema)[field].single(self.schema).unwrap();
                self.test(owner, field, kind)
            }
            Content::Inverse { .. } | Content::Link { .. } => {
                let quantifiers = [Quantifier::Some, Quantifier::Every, Quantifier::None];
                let quantifier = *self.chance.pick(&quantifiers).unwrap();
                let conditions = self.conditions(owner.inside(self.schema, field), depth.saturating_sub(1));
                ConditionTree::Related { field, quantifier, conditions }
            }
        }
    }

    fn test(&mut self, owner: TreeOwner, field: usize, kind: ValueKind) -> ConditionTree {
        let shape = &owner.fields(self.schema)[field];
        let is_key = !matches!(shape.content, Content::Single(_));
        if !shape.required && self.chance.percent(15) {
            return self.null_test(owner, field);
        }
        let ordered = [TestOperator::Lt, TestOperator::Lte, TestOperator::Gt, TestOperator::Gte];
        let operator = match self.chance.below(10) {
            0..=3 if kind.is_ordered() && !is_key => *self.chance.pick(&ordered).unwrap(),
            4..=6 if kind == ValueKind::Text && !is_key => {
                let places = [TextPlace::Whole, TextPlace::Anywhere, TextPlace::Start, TextPlace::End];
                let place = *self.chance.pick(&places).unwrap();
                TestOperator::Text(place, place == TextPlace::Whole || self.chance.percent(50))
            }
            7 if kind != ValueKind::Flag => TestOperator::In,
            8 if kind != ValueKind::Flag => TestOperator::NotIn,
            9 => TestOperator::Ne,
            _ => TestOperator::Eq,
        };
        let mut value = || match is_key {
            true => rows::key(kind, self.chance.below(16)),
            false => rows::value(&mut self.chance, kind),
        };
        let operand = match operator {
            TestOperator::In | TestOperator::NotIn => {
                let values: Vec<PlainValue> = [(); 3].map(|()| value()).into();
                PlainValue::List(values.into_iter().take(self.chance.below(4)).collect())
            }
            _ => value(),
        };
        ConditionTree::Test { field, operator, operand }
    }

    /// The three ways to ask for null; an embedded value has no `_ne`.
    fn null_test(&mut self, owner: TreeOwner, field: usize) -> ConditionTree {
        let is_part = matches!(owner.fields(self.schema)[field].content, Content::Part(_));
        let (operator, operand) = match self.chance.below(4) {
            0 => (TestOperator::Eq, PlainValue::Null),
            1 if !is_part => (TestOperator::Ne, PlainValue::Null),
            _ if owner.fields(self.schema)[field].required => (TestOperator::Eq, PlainValue::Null),
            _ => (TestOperator::Null, PlainValue::Flag(self.chance.percent(50))),
        };
        ConditionTree::Test { field, operator, operand }
    }

    fn list_test(&mut self, owner: TreeOwner, field: usize, kind: ValueKind) -> ConditionTree {
        let is_required = owner.fields(self.schema)[field].required;
        let (operator, operand) = match self.chance.below(5) {
            0 if !is_required => (TestOperator::Null, PlainValue::Flag(self.chance.percent(50))),
            0 | 1 => (TestOperator::Empty, PlainValue::Flag(self.chance.percent(50))),
            _ => (TestOperator::Has, rows::value(&mut self.chance, kind)),
        };
        ConditionTree::Test { field, operator, operand }
    }
}

/// The same conditions with one of them left out, or made smaller.
pub fn smaller_lists(conditions: &[ConditionTree]) -> Vec<Vec<ConditionTree>> {
    let mut smaller = Vec::new();
    for (at, condition) in conditions.iter().enumerate() {
        let with = |replaced: Vec<ConditionTree>| {
            let mut list = conditions.to_vec();
            list.splice(at..=at, replaced);
            list
        };
        smaller.push(with(Vec::new()));
        let (inner, rebuild): (_, &dyn Fn(Vec<ConditionTree>) -> ConditionTree) = match condition {
            ConditionTree::Test { .. } => continue,
            ConditionTree::All(inner) => (inner, &ConditionTree::All),
            ConditionTree::Any(inner) => (inner, &ConditionTree::Any),
            ConditionTree::Not(inner) => (inner, &ConditionTree::Not),
            ConditionTree::Part { field, conditions } => {
                (conditions, &|conditions| ConditionTree::Part { field: *field, conditions })
            }
            ConditionTree::Related { field, quantifier, conditions } => (conditions, &|conditions| {
                ConditionTree::Related { field: *field, quantifier: *quantifier, conditions }
            }),
        };
        if matches!(condition, ConditionTree::All(_) | ConditionTree::Any(_) | ConditionTree::Not(_)) {
            smaller.push(with(inner.clone()));
        }
        smaller.extend(smaller_lists(inner).into_iter().map(|inner| with(vec![rebuild(inner)])));
    }
    smaller
}
