//! Rules with their names looked up: tests of an actor and a record.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::ValueType;
use crate::comparison_op::ComparisonOp;
use crate::field_kind::FieldId;
use crate::source_file::SourceLocation;
use crate::values::value::StoredValue;

/// What an actor does with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AccessAction {
    Read,
    Create,
    /// On the record as it is.
    Update,
    /// On the record as it would be.
    UpdateTo,
    Delete,
}

impl AccessAction {
    pub const ALL: [AccessAction; 5] = [
        AccessAction::Read,
        AccessAction::Create,
        AccessAction::Update,
        AccessAction::UpdateTo,
        AccessAction::Delete,
    ];

    /// The argument of `@allow`.
    pub const fn name(self) -> &'static str {
        match self {
            AccessAction::Read => "read",
            AccessAction::Create => "create",
            AccessAction::Update => "update",
            AccessAction::UpdateTo => "updateTo",
            AccessAction::Delete => "delete",
        }
    }
}

/// A test that is true or false, never unknown: a comparison with something absent is false.
#[derive(Debug, Clone, PartialEq)]
pub enum RuleTest {
    Constant(bool),
    All(Vec<RuleTest>),
    Any(Vec<RuleTest>),
    Not(Box<RuleTest>),
    /// The actor is not anonymous.
    SignedIn,
    /// The actor has one of these roles.
    HasRole(Vec<String>),
    Compare {
        left: RuleValue,
        op: ComparisonOp,
        right: RuleValue,
    },
    IsAbsent(RuleValue),
    /// A Boolean value that is true.
    IsTrue(RuleValue),
    OneOf {
        value: RuleValue,
        choices: Vec<RuleValue>,
    },
    /// A list of values has this item.
    HasItem {
        list: RuleValue,
        item: RuleValue,
    },
    /// A record that the relation of `owner` leads to meets the test. In the test it is the next variable.
    Related {
        owner: RecordPath,
        relation: FieldId,
        test: Box<RuleTest>,
    },
}

/// A part of a rule as it is written, with its test.
#[derive(Debug, Clone)]
pub struct RulePart {
    pub location: SourceLocation,
    /// The bytes of its file.
    pub bytes: Range<usize>,
    pub join: PartJoin,
    pub test: RuleTest,
    /// What it is made of. Parts of another rule are about the record that this one is about, too.
    pub parts: Vec<RulePart>,
}

/// How the parts of a rule make up the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartJoin {
    /// `||`
    Any,
    /// `&&`
    All,
    /// `!`
    Not,
    /// A comparison or a word; its parts are rules that it names, of which one must hold.
    Whole,
}

#[derive(Debug, Clone, PartialEq)]
pub enum RuleValue {
    /// Coerced to the type of the other side.
    Literal(StoredValue),
    /// A field of a record, or a value inside an embedded value of it. References are the ids of their targets.
    Field {
        record: RecordPath,
        field: FieldId,
        /// Positions in embedded types, from the outer one to the inner one.
        members: Vec<FieldId>,
    },
    /// A field of the actor's account, or of a record that its references lead to.
    Actor {
        references: Vec<FieldId>,
        field: FieldId,
    },
    Claim(ClaimValue),
    /// The time of the request.
    Now,
    /// What clocks in the application's time zone show then, for values that have no zone.
    LocalNow,
    /// The day of the request in the application's time zone.
    Today,
    /// A field before an update.
    Old(FieldId),
}

/// A claim of the actor's token.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimValue {
    /// `org.id`
    pub path: String,
    /// The type of what it is compared with: a claim that is no such value is absent. `None` where it is compared with
    /// nothing.
    pub value_type: Option<ValueType>,
}

/// A record: a variable, or what the references of one lead to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordPath {
    /// 0 is the record that the rule is about; each [`RuleTest::Related`] around a test adds one.
    pub variable: usize,
    pub references: Vec<FieldId>,
}

/// The way from the actor's account to a value: `me.team.name`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActorPath {
    pub references: Vec<FieldId>,
    pub field: FieldId,
}

impl RuleValue {
    /// True for what the clock says at the time of the request.
    pub fn is_time(&self) -> bool {
        matches!(self, RuleValue::Now | RuleValue::LocalNow | RuleValue::Today)
    }

    /// The path of a value that the actor's account has.
    pub fn actor_path(&self) -> Option<ActorPath> {
        match self {
            RuleValue::Actor { references, field } => {
                Some(ActorPath { references: references.clone(), field: *field })
            }
            RuleValue::Literal(_)
            | RuleValue::Field { .. }
            | RuleValue::Claim(_)
            | RuleValue::Now
            | RuleValue::LocalNow
            | RuleValue::Today
            | RuleValue::Old(_) => None,
        }
    }
}

impl RuleTest {
    /// Adds the paths of the actor's account that the test uses.
    pub fn collect_actor_paths(&self, found: &mut Vec<ActorPath>) {
        match self {
            RuleTest::Compare { left, right, .. } => {
                found.extend([left, right].into_iter().filter_map(RuleValue::actor_path))
            }
            RuleTest::IsAbsent(value) | RuleTest::IsTrue(value) => found.extend(value.actor_path()),
            RuleTest::OneOf { value, choices } => {
                found.extend(std::iter::once(value).chain(choices).filter_map(RuleValue::actor_path));
            }
            RuleTest::HasItem { list, item } => {
                found.extend([list, item].into_iter().filter_map(RuleValue::actor_path))
            }
            RuleTest::All(tests) | RuleTest::Any(tests) => {
                tests.iter().for_each(|test| test.collect_actor_paths(found));
            }
            RuleTest::Not(inner) | RuleTest::Related { test: inner, .. } => inner.collect_actor_paths(found),
            RuleTest::Constant(_) | RuleTest::SignedIn | RuleTest::HasRole(_) => {}
        }
    }

    /// Adds the roles that the test names.
    pub fn collect_roles(&self, roles: &mut BTreeSet<String>) {
        match self {
            RuleTest::HasRole(names) => roles.extend(names.iter().cloned()),
            RuleTest::All(tests) | RuleTest::Any(tests) => {
                tests.iter().for_each(|test| test.collect_roles(roles));
            }
            RuleTest::Not(inner) | RuleTest::Related { test: inner, .. } => inner.collect_roles(roles),
            RuleTest::Constant(_)
            | RuleTest::SignedIn
            | RuleTest::Compare { .. }
            | RuleTest::IsAbsent(_)
            | RuleTest::IsTrue(_)
            | RuleTest::OneOf { .. }
            | RuleTest::HasItem { .. } => {}
        }
    }

    pub fn negated(self) -> RuleTest {
        match self {
            RuleTest::Constant(value) => RuleTest::Constant(!value),
            RuleTest::Not(inner) => *inner,
            other @ (RuleTest::All(_)
            | RuleTest::Any(_)
            | RuleTest::SignedIn
            | RuleTest::HasRole(_)
            | RuleTest::Compare { .. }
            | RuleTest::IsAbsent(_)
            | RuleTest::IsTrue(_)
            | RuleTest::OneOf { .. }
            | RuleTest::HasItem { .. }
            | RuleTest::Related { .. }) => RuleTest::Not(Box::new(other)),
        }
    }

    /// The test without the values that are written in it: equal for tests that ask the same of records.
    pub fn without_values(&self) -> RuleTest {
        let value = |value: &RuleValue| match value {
            RuleValue::Literal(_) => RuleValue::Literal(StoredValue::Null),
            RuleValue::Field { .. }
            | RuleValue::Actor { .. }
            | RuleValue::Claim(_)
            | RuleValue::Now
            | RuleValue::LocalNow
            | RuleValue::Today
            | RuleValue::Old(_) => value.clone(),
        };
        let all = |tests: &[RuleTest]| tests.iter().map(RuleTest::without_values).collect();
        match self {
            RuleTest::Constant(_) | RuleTest::SignedIn | RuleTest::HasRole(_) => self.clone(),
            RuleTest::All(tests) => RuleTest::All(all(tests)),
            RuleTest::Any(tests) => RuleTest::Any(all(tests)),
            RuleTest::Not(inner) => RuleTest::Not(Box::new(inner.without_values())),
            RuleTest::Compare { left, op, right } => {
                RuleTest::Compare { left: value(left), op: *op, right: value(right) }
            }
            RuleTest::IsAbsent(of) => RuleTest::IsAbsent(value(of)),
            RuleTest::IsTrue(of) => RuleTest::IsTrue(value(of)),
            RuleTest::OneOf { value: of, choices } => {
                RuleTest::OneOf { value: value(of), choices: choices.iter().map(value).collect() }
            }
            RuleTest::HasItem { list, item } => RuleTest::HasItem { list: value(list), item: value(item) },
            RuleTest::Related { owner, relation, test } => RuleTest::Related {
                owner: owner.clone(),
                relation: *relation,
                test: Box::new(test.without_values()),
            },
        }
    }

    /// True if no actor and no record can meet the test, as far as its constants tell.
    pub fn is_never(&self) -> bool {
        self.has_constant(false)
    }

    /// True if every actor meets the test with every record, as far as its constants tell.
    pub fn is_always(&self) -> bool {
        self.has_constant(true)
    }

    fn has_constant(&self, constant: bool) -> bool {
        let decides = |test: &RuleTest| test.has_constant(constant);
        match self {
            RuleTest::Constant(value) => *value == constant,
            // One decides whether any of them holds; all, that none does.
            RuleTest::Any(tests) if constant => tests.iter().any(decides),
            RuleTest::Any(tests) => tests.iter().all(decides),
            RuleTest::All(tests) if constant => tests.iter().all(decides),
            RuleTest::All(tests) => tests.iter().any(decides),
            RuleTest::Not(inner) => inner.has_constant(!constant),
            RuleTest::Related { test, .. } => !constant && decides(test),
            RuleTest::OneOf { choices, .. } => !constant && choices.is_empty(),
            RuleTest::SignedIn
            | RuleTest::HasRole(_)
            | RuleTest::Compare { .. }
            | RuleTest::IsAbsent(_)
            | RuleTest::IsTrue(_)
            | RuleTest::HasItem { .. } => false,
        }
    }

    pub fn as_constant(&self) -> Option<bool> {
        if let RuleTest::Constant(value) = self { Some(*value) } else { None }
    }
}

impl RuleTest {
    /// Visits every value that the test compares.
    pub fn visit_values<'t>(&'t self, visit: &mut impl FnMut(&'t RuleValue)) {
        match self {
            RuleTest::Constant(_) | RuleTest::SignedIn | RuleTest::HasRole(_) => {}
            RuleTest::All(tests) | RuleTest::Any(tests) => {
                for test in tests {
                    test.visit_values(visit);
                }
            }
            RuleTest::Not(test) | RuleTest::Related { test, .. } => test.visit_values(visit),
            RuleTest::Compare { left, right, .. } => {
                visit(left);
                visit(right);
            }
            RuleTest::IsAbsent(value) | RuleTest::IsTrue(value) => visit(value),
            RuleTest::OneOf { value, choices } => {
                visit(value);
                choices.iter().for_each(visit);
            }
            RuleTest::HasItem { list, item } => {
                visit(list);
                visit(item);
            }
        }
    }

    /// Visits every field of a record that the test looks at, with the record that it is a field of.
    pub fn visit_fields<'t>(&'t self, visit: &mut impl FnMut(&'t RecordPath, FieldId)) {
        self.visit_values(&mut |value| {
            if let RuleValue::Field { record, field, .. } = value {
                visit(record, *field);
            }
        });
        self.visit_relations(visit);
    }

    /// Whether it asks records that a relation leads to, and not only values along references.
    pub fn asks_relations(&self) -> bool {
        let mut found = false;
        self.visit_relations(&mut |_, _| found = true);
        found
    }

    fn visit_relations<'t>(&'t self, visit: &mut impl FnMut(&'t RecordPath, FieldId)) {
        match self {
            RuleTest::Related { owner, relation, test } => {
                visit(owner, *relation);
                test.visit_relations(visit);
            }
            RuleTest::All(tests) | RuleTest::Any(tests) => {
                for test in tests {
                    test.visit_relations(visit);
                }
            }
            RuleTest::Not(test) => test.visit_relations(visit),
            RuleTest::Constant(_)
            | RuleTest::SignedIn
            | RuleTest::HasRole(_)
            | RuleTest::Compare { .. }
            | RuleTest::IsAbsent(_)
            | RuleTest::IsTrue(_)
            | RuleTest::OneOf { .. }
            | RuleTest::HasItem { .. } => {}
        }
    }

    /// Whether the test looks at one of these fields of the record that it is about, or at what they lead to.
    pub fn looks_at(&self, is_one_of: impl Fn(FieldId) -> bool) -> bool {
        let mut found = false;
        self.visit_fields(&mut |record, field| {
            found |= record.variable == 0 && is_one_of(record.references.first().copied().unwrap_or(field));
        });
        found
    }
}
