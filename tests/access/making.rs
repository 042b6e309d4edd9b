//! Random schemas, and random rules that fit them.

use super::actors::{LEVEL_CLAIM, NAME_CLAIM};
use super::judge::list_depth;
use super::rule_tree::{Deed, Operand, RecordWay, RuleTree};
use super::shape::{AccessShape, Content, Kind, ROLES, ShapeField, ShapeRules, ShapeType};
use super::stock;
use crate::power::chance::Chance;

const TYPES: [(&str, &str); 4] =
    [("Alder", "alders"), ("Birch", "birches"), ("Cedar", "cedars"), ("Elm", "elms")];
const LINKS: [&str; 2] = ["marks", "topics"];
const BACK_LINKS: [&str; 2] = ["owners", "holders"];
const KINDS: [Kind; 6] = [Kind::Text, Kind::Int, Kind::Flag, Kind::Decimal, Kind::Moment, Kind::Color];
const OPERATORS: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];

/// The comparisons of a rule with those that it uses, of which the language allows 64.
const MOST_COMPARISONS: usize = 40;

/// How many rules a schema has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum RuleWeight {
    /// For reading: a schema whose answers are compared with those of an open one.
    Reading,
    /// For every deed.
    Writing,
}

impl AccessShape {
    pub fn random(chance: &mut Chance, weight: RuleWeight) -> AccessShape {
        let mut shape = AccessShape::without_rules(chance);
        RuleMaker { shape: &mut shape, chance }.add_rules(weight);
        shape
    }

    fn without_rules(chance: &mut Chance) -> AccessShape {
        let count = 2 + chance.below(3);
        let account = chance.below(count);
        let has_role_list = chance.percent(30);
        let mut shape =
            AccessShape { types: Vec::new(), account, has_role_list, everywhere: ShapeRules::default() };
        for (position, (name, plural)) in TYPES.into_iter().take(count).enumerate() {
            let mut fields = Vec::new();
            if position == account {
                fields.push(ShapeField::new("login", Content::Login, true));
                fields.push(ShapeField::new("role", Content::Roles, has_role_list));
            }
            // A text and a Boolean are there always: what lists are searched for, and the simplest rule.
            let first = [Kind::Text, Kind::Flag].into_iter();
            let others =
                (0..1 + chance.below(4)).map(|_| *chance.pick(&KINDS).expect("some")).collect::<Vec<_>>();
            for (number, kind) in first.chain(others).enumerate() {
                let name = format!("{}{number}", kind.type_name().to_lowercase());
                fields.push(ShapeField::new(name, Content::Value(kind), chance.percent(25)));
            }
            if chance.percent(40) {
                fields.push(ShapeField::new("texts", Content::Texts, true));
            }
            if chance.percent(40) {
                fields.push(ShapeField::new("spot", Content::Spot, false));
            }
            let (rules, named) = (ShapeRules::default(), Vec::new());
            shape.types.push(ShapeType { name, plural, fields, rules, named });
        }
        for from in 0..count {
            for number in 0..1 + chance.below(2) {
                shape.add_reference(chance, from, number);
            }
        }
        for number in 0..1 + chance.below(2) {
            shape.add_link(chance, number);
        }
        shape
    }

    fn add_reference(&mut self, chance: &mut Chance, from: usize, number: usize) {
        let target = if chance.percent(40) { self.account } else { chance.below(self.types.len()) };
        let inverse = chance.percent(70).then(|| self.types[target].fields.len());
        let reference = self.types[from].fields.len();
        let inverse_at = inverse.map(|at| at + usize::from(target == from));
        let content = Content::Reference { target, inverse: inverse_at };
        let required = chance.percent(30);
        self.types[from].fields.push(ShapeField::new(format!("one{number}"), content, required));
        if inverse.is_some() {
            let content = Content::Inverse { target: from, reference };
            self.types[target].fields.push(ShapeField::new(format!("lines{from}{number}"), content, true));
        }
    }

    /// Links between different types: both have a list.
    fn add_link(&mut self, chance: &mut Chance, number: usize) {
        let from = chance.below(self.types.len());
        let target = (from + 1 + chance.below(self.types.len() - 1)) % self.types.len();
        let (own, back) = (self.types[from].fields.len(), self.types[target].fields.len());
        let content = Content::Link { target, back: Some(back), is_owner: true };
        self.types[from].fields.push(ShapeField::new(LINKS[number], content, true));
        let content = Content::Link { target: from, back: Some(own), is_owner: false };
        self.types[target].fields.push(ShapeField::new(BACK_LINKS[number], content, true));
    }
}

/// Gives the types of a schema their rules, one after the other: a rule uses only those that are there already, so
/// none uses itself.
struct RuleMaker<'m> {
    shape: &'m mut AccessShape,
    chance: &'m mut Chance,
}

impl RuleMaker<'_> {
    fn add_rules(&mut self, weight: RuleWeight) {
        if self.chance.percent(40) {
            let deed =
                *self.chance.pick(&[Deed::Read, Deed::Update, Deed::Create, Deed::Delete]).expect("some");
            let role = (*self.chance.pick(&ROLES).expect("some")).to_owned();
            let role = ROLES.into_iter().find(|own| *own == role).expect("a role");
            self.shape.everywhere.0.push((deed, RuleTree::Role(vec![role])));
        }
        let mut order: Vec<usize> = (0..self.shape.types.len()).collect();
        for at in 0..order.len() {
            let other = at + self.chance.below(order.len() - at);
            order.swap(at, other);
        }
        for of in order {
            for number in 0..self.chance.below(3) {
                let rule = self.fitting_rule(of, false);
                self.shape.types[of].named.push((format!("rule{number}"), rule));
            }
            self.add_type_rules(of, weight);
            self.add_field_rules(of, weight);
        }
    }

    fn add_type_rules(&mut self, of: usize, weight: RuleWeight) {
        let deeds = [Deed::Read, Deed::Create, Deed::Update, Deed::UpdateTo, Deed::Delete];
        for deed in deeds {
            let is_wanted = match (weight, deed) {
                (_, Deed::Read) => self.chance.percent(92),
                (RuleWeight::Reading, _) => self.chance.percent(20),
                (RuleWeight::Writing, Deed::UpdateTo) => self.chance.percent(35),
                (RuleWeight::Writing, _) => self.chance.percent(85),
            };
            if !is_wanted {
                continue;
            }
            let rule = match self.chance.below(10) {
                0 => RuleTree::Constant(true),
                1 if self.chance.percent(30) => RuleTree::Constant(false),
                // Most actors see some records.
                2..=4 if deed == Deed::Read => {
                    let flag = Operand::Field(RecordWay::default(), self.first_flag(of), None);
                    let other = self.fitting_rule(of, false);
                    RuleTree::Any(vec![RuleTree::Flag(flag), other])
                }
                _ => self.fitting_rule(of, deed == Deed::UpdateTo),
            };
            self.shape.types[of].rules.0.push((deed, rule));
        }
    }

    fn first_flag(&self, of: usize) -> usize {
        let is_flag = |field: &ShapeField| field.content == Content::Value(Kind::Flag);
        self.shape.types[of].fields.iter().position(is_flag).expect("each type has one")
    }

    fn add_field_rules(&mut self, of: usize, weight: RuleWeight) {
        for at in 0..self.shape.types[of].fields.len() {
            let content = self.shape.types[of].fields[at].content;
            if content.is_list() {
                continue;
            }
            let deeds = [Deed::Read, Deed::Create, Deed::Update];
            for deed in deeds {
                let is_read = deed == Deed::Read;
                // The roles of accounts must have rules for writing.
                let is_needed = content == Content::Roles && !is_read;
                let percent = if is_read {
                    25
                } else if weight == RuleWeight::Writing {
                    15
                } else {
                    0
                };
                // What nobody may give cannot be required.
                let is_givable = !(deed == Deed::Create && self.shape.types[of].fields[at].required);
                if !(is_needed || self.chance.percent(percent) && is_givable) {
                    continue;
                }
                let rule = match self.chance.below(8) {
                    0 => RuleTree::Constant(false),
                    1 | 2 => RuleTree::Role(vec![*self.chance.pick(&ROLES).expect("some")]),
                    _ => self.fitting_rule(of, false),
                };
                self.shape.types[of].fields[at].rules.0.push((deed, rule));
            }
        }
    }

    /// A rule within the bounds of the language.
    fn fitting_rule(&mut self, of: usize, has_old: bool) -> RuleTree {
        for _ in 0..20 {
            let depth = self.chance.below(3);
            let rule = self.tree(&[of], depth, has_old);
            let (lists, comparisons) = list_depth(self.shape, &rule, &[of]);
            let is_constant = matches!(rule, RuleTree::Constant(_));
            if lists <= 2 && comparisons <= MOST_COMPARISONS && !is_constant {
                return rule;
            }
        }
        RuleTree::SignedIn
    }

    fn tree(&mut self, types: &[usize], depth: usize, has_old: bool) -> RuleTree {
        if depth > 0 && self.chance.percent(60) {
            let inner = (0..2 + self.chance.below(2)).map(|_| self.tree(types, depth - 1, has_old)).collect();
            return if self.chance.percent(50) { RuleTree::All(inner) } else { RuleTree::Any(inner) };
        }
        if self.chance.percent(15) {
            return RuleTree::Not(Box::new(self.tree(types, depth.saturating_sub(1), has_old)));
        }
        let test = match self.chance.below(14) {
            0 => Some(RuleTree::SignedIn),
            1 => {
                let roles: Vec<&'static str> =
                    ROLES.into_iter().filter(|_| self.chance.percent(40)).collect();
                Some(RuleTree::Role(if roles.is_empty() { vec![ROLES[0]] } else { roles }))
            }
            2 | 3 => self.about_me(types),
            4 => self.exists(types, depth, has_old),
            5 => self.can(types),
            6 => self.named(types),
            7 => self.null(types),
            8 => self.has(types),
            9 => self.choice(types),
            10 if has_old => self.old(types),
            _ => self.comparison(types),
        };
        test.unwrap_or_else(|| self.comparison(types).unwrap_or(RuleTree::SignedIn))
    }

    /// A way to a record, through references.
    fn way(&mut self, types: &[usize], most: usize) -> RecordWay {
        let variable = self.chance.below(types.len());
        let (mut owner, mut references) = (types[variable], Vec::new());
        while references.len() < most && self.chance.percent(40) {
            let Some((at, target)) = self.reference(owner) else { break };
            references.push(at);
            owner = target;
        }
        RecordWay { variable, references }
    }

    fn reference(&mut self, owner: usize) -> Option<(usize, usize)> {
        let fields = self.shape.types[owner].fields.iter().enumerate();
        let references = fields.filter(|(_, field)| field.content.is_reference());
        let found: Vec<(usize, usize)> =
            references.filter_map(|(at, field)| Some((at, field.content.target()?))).collect();
        self.chance.pick(&found).copied()
    }

    fn type_at(&self, types: &[usize], way: &RecordWay) -> usize {
        self.shape.type_at(types[way.variable], &way.references)
    }

    /// A field with a value of one of these kinds.
    fn field(&mut self, types: &[usize], fits: impl Fn(Kind) -> bool) -> Option<(Operand, Kind)> {
        let way = self.way(types, 2);
        let fields = self.shape.types[self.type_at(types, &way)].fields.iter().enumerate();
        let mut found: Vec<(usize, Option<&'static str>, Kind)> = Vec::new();
        for (at, field) in fields {
            match field.content {
                Content::Value(kind) if fits(kind) => found.push((at, None, kind)),
                Content::Login if fits(Kind::Text) => found.push((at, None, Kind::Text)),
                Content::Spot => {
                    let members = [("city", Kind::Text), ("zip", Kind::Int)].into_iter();
                    found.extend(
                        members.filter(|(_, kind)| fits(*kind)).map(|(name, kind)| (at, Some(name), kind)),
                    );
                }
                _ => {}
            }
        }
        let (at, member, kind) = *self.chance.pick(&found)?;
        Some((Operand::Field(way, at, member), kind))
    }

    fn comparison(&mut self, types: &[usize]) -> Option<RuleTree> {
        let (left, kind) = self.field(types, |_| true)?;
        if kind == Kind::Flag && self.chance.percent(80) {
            return Some(RuleTree::Flag(left));
        }
        let right = match (self.chance.below(6), kind) {
            (0 | 1, _) => self.field(types, |other| other == kind).map(|(operand, _)| operand),
            (2, _) => Some(self.claim(Some(kind))),
            (3, Kind::Moment) => Some(Operand::Now),
            (3, _) => self.my_field(kind),
            _ => None,
        };
        // A claim and a literal: nothing of the record.
        let is_literal_kind = matches!(kind, Kind::Text | Kind::Int | Kind::Flag | Kind::Decimal);
        let left = if right.is_none() && is_literal_kind && self.chance.percent(25) {
            self.claim(Some(kind))
        } else {
            left
        };
        let right = right.unwrap_or_else(|| Operand::Literal(stock::value(self.chance, kind)));
        let count = if kind.is_ordered() { OPERATORS.len() } else { 2 };
        let op = OPERATORS[self.chance.below(count)];
        let is_swapped = self.chance.percent(20);
        Some(if is_swapped { RuleTree::Compare(right, op, left) } else { RuleTree::Compare(left, op, right) })
    }

    fn claim(&mut self, kind: Option<Kind>) -> Operand {
        Operand::Claim(self.chance.pick(&[NAME_CLAIM, LEVEL_CLAIM]).expect("two"), kind)
    }

    /// A field of the actor's account, or of what its references lead to.
    fn my_field(&mut self, kind: Kind) -> Option<Operand> {
        let account = self.shape.account;
        let references = self.way(&[account], 1).references;
        let owner = self.shape.type_at(account, &references);
        let fields = self.shape.types[owner].fields.iter().enumerate();
        let found: Vec<usize> =
            fields.filter(|(_, field)| field.content == Content::Value(kind)).map(|(at, _)| at).collect();
        let at = *self.chance.pick(&found)?;
        Some(Operand::Me(references, Some(at)))
    }

    /// A reference that is the actor, or that leads where one of the actor's does.
    fn about_me(&mut self, types: &[usize]) -> Option<RuleTree> {
        let way = self.way(types, 2);
        let owner = self.type_at(types, &way);
        let mine = self.way(&[self.shape.account], 1).references;
        let candidates = [Vec::new(), mine];
        let fits = |references: &&Vec<usize>| self.shape.type_at(self.shape.account, references) == owner;
        let references = candidates.iter().find(fits)?.clone();
        let op = if self.chance.percent(85) { "==" } else { "!=" };
        Some(RuleTree::Compare(Operand::Record(way), op, Operand::Me(references, None)))
    }

    fn exists(&mut self, types: &[usize], depth: usize, has_old: bool) -> Option<RuleTree> {
        if types.len() > 2 {
            return None;
        }
        let way = self.way(types, 1);
        let fields = self.shape.types[self.type_at(types, &way)].fields.iter().enumerate();
        let lists: Vec<(usize, usize)> = fields
            .filter(|(_, field)| field.content.is_list())
            .filter_map(|(at, field)| Some((at, field.content.target()?)))
            .collect();
        let (list, target) = *self.chance.pick(&lists)?;
        let inner = self.tree(&[types, &[target]].concat(), depth.min(1), has_old);
        Some(RuleTree::Exists(way, list, Box::new(inner)))
    }

    fn can(&mut self, types: &[usize]) -> Option<RuleTree> {
        let way = self.way(types, 2);
        let of = self.type_at(types, &way);
        if way.references.is_empty() || of == types[0] {
            return None;
        }
        let deeds: Vec<Deed> = [Deed::Read, Deed::Update, Deed::Delete]
            .into_iter()
            .filter(|deed| self.shape.types[of].rules.get(*deed).is_some())
            .collect();
        Some(RuleTree::Can(*self.chance.pick(&deeds)?, way))
    }

    fn named(&mut self, types: &[usize]) -> Option<RuleTree> {
        let way = self.way(types, 1);
        let count = self.shape.types[self.type_at(types, &way)].named.len();
        if count == 0 {
            return None;
        }
        Some(RuleTree::Named(way, self.chance.below(count)))
    }

    fn null(&mut self, types: &[usize]) -> Option<RuleTree> {
        let way = self.way(types, 1);
        let operand = match self.chance.below(4) {
            0 if self.chance.percent(50) => self.claim(None),
            0 => Operand::Me(Vec::new(), None),
            1 if !way.references.is_empty() => Operand::Record(way),
            _ => self.field(types, |_| true)?.0,
        };
        Some(RuleTree::Null(operand, self.chance.percent(50)))
    }

    fn has(&mut self, types: &[usize]) -> Option<RuleTree> {
        let way = self.way(types, 1);
        let owner = self.type_at(types, &way);
        let list = self.shape.types[owner].fields.iter().position(|field| field.content == Content::Texts)?;
        let item = match self.chance.below(10) {
            0..=2 => self.field(types, |kind| kind == Kind::Text)?.0,
            3 | 4 => self.claim(Some(Kind::Text)),
            _ => Operand::Literal(stock::value(self.chance, Kind::Text)),
        };
        Some(RuleTree::Has(item, way, list))
    }

    fn choice(&mut self, types: &[usize]) -> Option<RuleTree> {
        let (field, kind) = self.field(types, |kind| kind != Kind::Flag)?;
        let item = if matches!(kind, Kind::Text | Kind::Int) && self.chance.percent(20) {
            self.claim(Some(kind))
        } else {
            field
        };
        let mut choices: Vec<Operand> = Vec::new();
        for _ in 0..1 + self.chance.below(3) {
            let mine = match self.chance.below(8) {
                0 | 1 => self.my_field(kind),
                2 if !matches!(item, Operand::Claim(..)) => Some(self.claim(Some(kind))),
                _ => None,
            };
            choices.push(mine.unwrap_or_else(|| Operand::Literal(stock::value(self.chance, kind))));
        }
        Some(RuleTree::In(item, choices))
    }

    fn old(&mut self, types: &[usize]) -> Option<RuleTree> {
        let (field, kind) = self.field(&types[..1], |_| true)?;
        let Operand::Field(way, at, None) = &field else { return None };
        if !way.references.is_empty() {
            return None;
        }
        let op = if kind.is_ordered() { *self.chance.pick(&OPERATORS).expect("some") } else { "==" };
        Some(match self.chance.below(3) {
            0 => RuleTree::Compare(Operand::Old(*at), op, Operand::Literal(stock::value(self.chance, kind))),
            1 => RuleTree::Null(Operand::Old(*at), self.chance.percent(50)),
            _ => RuleTree::Compare(field.clone(), op, Operand::Old(*at)),
        })
    }
}
