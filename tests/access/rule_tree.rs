//! Rules as trees, and how they are written; what they mean is in `judge`.

use super::shape::{AccessShape, Content, Kind};
use super::stock::Cell;

/// What can be done with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deed {
    Read,
    Create,
    Update,
    UpdateTo,
    Delete,
}

#[derive(Clone, Debug, PartialEq)]
pub enum RuleTree {
    Constant(bool),
    SignedIn,
    Role(Vec<&'static str>),
    All(Vec<RuleTree>),
    Any(Vec<RuleTree>),
    Not(Box<RuleTree>),
    Compare(Operand, &'static str, Operand),
    /// `x == null`, or `x != null`.
    Null(Operand, bool),
    /// A Boolean by itself.
    Flag(Operand),
    In(Operand, Vec<Operand>),
    /// The value is one of the texts in a field of the record.
    Has(Operand, RecordWay, usize),
    Exists(RecordWay, usize, Box<RuleTree>),
    Can(Deed, RecordWay),
    Named(RecordWay, usize),
}

/// One of the records that a rule knows, and references from there.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct RecordWay {
    /// 0 is `this`; each `exists` adds one.
    pub variable: usize,
    pub references: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    Literal(Cell),
    /// The record itself.
    Record(RecordWay),
    /// A field, and the member of an embedded value.
    Field(RecordWay, usize, Option<&'static str>),
    /// The actor's account, or a field of it; the way begins there.
    Me(Vec<usize>, Option<usize>),
    /// With the kind of what it is compared with.
    Claim(&'static str, Option<Kind>),
    Now,
    Old(usize),
}

/// Writes rules about records of a type.
pub struct RuleText<'s> {
    pub shape: &'s AccessShape,
    /// The types of the records that the rule knows, the rule's own first.
    pub types: Vec<usize>,
}

const VARIABLES: [&str; 3] = ["", "x", "y"];

impl RuleTree {
    pub fn text(&self, shape: &AccessShape, of: usize) -> String {
        RuleText { shape, types: vec![of] }.tree(self)
    }

    /// The rules within this one.
    pub fn parts(&self) -> Vec<&RuleTree> {
        match self {
            RuleTree::All(inner) | RuleTree::Any(inner) => inner.iter().collect(),
            RuleTree::Not(inner) | RuleTree::Exists(_, _, inner) => vec![inner],
            RuleTree::Constant(_)
            | RuleTree::SignedIn
            | RuleTree::Role(_)
            | RuleTree::Compare(..)
            | RuleTree::Null(..)
            | RuleTree::Flag(_)
            | RuleTree::In(..)
            | RuleTree::Has(..)
            | RuleTree::Can(..)
            | RuleTree::Named(..) => Vec::new(),
        }
    }

    /// The values that it names, without those of the rules within.
    pub fn operands(&self) -> Vec<&Operand> {
        match self {
            RuleTree::Compare(left, _, right) => vec![left, right],
            RuleTree::Null(operand, _) | RuleTree::Flag(operand) | RuleTree::Has(operand, ..) => {
                vec![operand]
            }
            RuleTree::In(item, choices) => std::iter::once(item).chain(choices).collect(),
            RuleTree::Constant(_)
            | RuleTree::SignedIn
            | RuleTree::Role(_)
            | RuleTree::All(_)
            | RuleTree::Any(_)
            | RuleTree::Not(_)
            | RuleTree::Exists(..)
            | RuleTree::Can(..)
            | RuleTree::Named(..) => Vec::new(),
        }
    }
}

impl RuleText<'_> {
    fn tree(&mut self, rule: &RuleTree) -> String {
        match rule {
            RuleTree::Constant(value) => value.to_string(),
            RuleTree::SignedIn => "signedIn".to_owned(),
            RuleTree::Role(roles) => format!("role({})", roles.join(", ")),
            RuleTree::All(inner) => self.joined(inner, " && "),
            RuleTree::Any(inner) => self.joined(inner, " || "),
            RuleTree::Not(inner) => format!("!({})", self.tree(inner)),
            RuleTree::Compare(left, op, right) => {
                format!("{} {op} {}", self.operand(left), self.operand(right))
            }
            RuleTree::Null(operand, is_null) => {
                format!("{} {} null", self.operand(operand), if *is_null { "==" } else { "!=" })
            }
            RuleTree::Flag(operand) => self.operand(operand),
            RuleTree::In(item, choices) => {
                let choices: Vec<String> = choices.iter().map(|choice| self.operand(choice)).collect();
                format!("{} in [{}]", self.operand(item), choices.join(", "))
            }
            RuleTree::Has(item, way, field) => {
                format!("{} in {}", self.operand(item), self.field(way, *field))
            }
            RuleTree::Exists(way, list, inner) => {
                let name = VARIABLES[self.types.len()];
                let list_text = self.field(way, *list);
                let owner = self.type_at(way);
                let target =
                    self.shape.types[owner].fields[*list].content.target().expect("a list of records");
                self.types.push(target);
                let inner = self.tree(inner);
                self.types.pop();
                format!("{list_text}.exists({name}, {inner})")
            }
            RuleTree::Can(deed, way) => format!("can({}, {})", deed.name(), self.way(way)),
            RuleTree::Named(way, rule) => {
                let name = &self.shape.types[self.type_at(way)].named[*rule].0;
                let way = self.way(way);
                if way == "this" { name.clone() } else { format!("{way}.{name}") }
            }
        }
    }

    /// Each in parentheses where it needs them.
    fn joined(&mut self, inner: &[RuleTree], between: &str) -> String {
        let texts = inner.iter().map(|rule| {
            let text = self.tree(rule);
            if matches!(rule, RuleTree::Any(_) | RuleTree::All(_)) { format!("({text})") } else { text }
        });
        texts.collect::<Vec<_>>().join(between)
    }

    fn operand(&self, operand: &Operand) -> String {
        match operand {
            Operand::Literal(cell) => cell.rule_text(),
            Operand::Record(way) => self.way(way),
            Operand::Field(way, field, member) => {
                let name = self.field(way, *field);
                member.map_or(name.clone(), |member| format!("{name}.{member}"))
            }
            Operand::Me(references, field) => {
                let mut owner = self.shape.account;
                let mut text = "me".to_owned();
                for at in references.iter().chain(field) {
                    let field = &self.shape.types[owner].fields[*at];
                    text += &format!(".{}", field.name);
                    owner = field.content.target().unwrap_or(owner);
                }
                text
            }
            Operand::Claim(path, _) => format!("claim('{path}')"),
            Operand::Now => "now".to_owned(),
            Operand::Old(field) => format!("old.{}", self.shape.types[self.types[0]].fields[*field].name),
        }
    }

    fn field(&self, way: &RecordWay, field: usize) -> String {
        let name = &self.shape.types[self.type_at(way)].fields[field].name;
        let way = self.way(way);
        if way == "this" { name.clone() } else { format!("{way}.{name}") }
    }

    fn way(&self, way: &RecordWay) -> String {
        let mut owner = self.types[way.variable];
        let mut names = Vec::new();
        for at in &way.references {
            let field = &self.shape.types[owner].fields[*at];
            names.push(field.name.as_str());
            let Content::Reference { target, .. } = field.content else {
                panic!("{} is no reference", field.name)
            };
            owner = target;
        }
        match (way.variable, names.is_empty()) {
            (0, true) => "this".to_owned(),
            (0, false) => names.join("."),
            (variable, true) => VARIABLES[variable].to_owned(),
            (variable, false) => format!("{}.{}", VARIABLES[variable], names.join(".")),
        }
    }

    fn type_at(&self, way: &RecordWay) -> usize {
        self.shape.type_at(self.types[way.variable], &way.references)
    }
}

impl RecordWay {
    pub fn to(variable: usize, references: Vec<usize>) -> RecordWay {
        RecordWay { variable, references }
    }
}

impl Deed {
    pub fn name(self) -> &'static str {
        match self {
            Deed::Read => "read",
            Deed::Create => "create",
            Deed::Update => "update",
            Deed::UpdateTo => "updateTo",
            Deed::Delete => "delete",
        }
    }
}
