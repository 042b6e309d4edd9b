//! Every form that a rule can have, about one kind of record.

use super::super::actors::{LEVEL_CLAIM, NAME_CLAIM};
use super::super::rule_tree::{Deed, Operand, RecordWay, RuleTree};
use super::super::shape::Kind;
use super::super::stock::Cell;

/// The types that all records of the matrix lead to, by position.
pub const USER: usize = 0;
pub const TEAM: usize = 1;
pub const MEMBER: usize = 2;
pub const TAG: usize = 3;
pub const DEAL: usize = 4;
/// The types with the rules come after them.
pub const FIRST: usize = 5;

/// The fields of accounts and teams that rules name.
pub mod account {
    pub const NAME: usize = 2;
    pub const LEVEL: usize = 3;
    pub const BLOCKED: usize = 4;
    pub const TEAM: usize = 5;
}

/// The fields of a record with rules.
pub mod item {
    pub const TITLE: usize = 0;
    pub const NOTE: usize = 1;
    pub const SECRET: usize = 2;
    pub const NUMBER: usize = 3;
    pub const FLAG: usize = 4;
    pub const PRICE: usize = 5;
    pub const MOMENT: usize = 6;
    pub const COLOR: usize = 7;
    pub const TEXTS: usize = 8;
    pub const SPOT: usize = 9;
    pub const NAME: usize = 10;
    pub const OWNER: usize = 11;
    pub const TEAM: usize = 12;
    pub const DEAL: usize = 13;
    pub const TAGS: usize = 14;
}

use item::{COLOR, FLAG, MOMENT, NAME, NUMBER, OWNER, PRICE, SPOT, TAGS, TEXTS};

fn own(field: usize) -> Operand {
    Operand::Field(RecordWay::default(), field, None)
}

/// A reference of the record, as a record.
fn record(field: usize) -> Operand {
    Operand::Record(RecordWay::to(0, vec![field]))
}

/// A field of the record that a reference leads to.
fn by_way(reference: usize, field: usize) -> Operand {
    Operand::Field(RecordWay::to(0, vec![reference]), field, None)
}

fn me() -> Operand {
    Operand::Me(Vec::new(), None)
}

fn mine(field: usize) -> Operand {
    Operand::Me(Vec::new(), Some(field))
}

/// A reference of the account, as a record.
fn my_record(reference: usize) -> Operand {
    Operand::Me(vec![reference], None)
}

fn is(left: Operand, op: &'static str, right: Operand) -> RuleTree {
    RuleTree::Compare(left, op, right)
}

fn text(text: &str) -> Operand {
    Operand::Literal(Cell::Text(text.to_owned()))
}

fn whole(number: i64) -> Operand {
    Operand::Literal(Cell::Whole(number))
}

fn color(word: &str) -> Operand {
    Operand::Literal(Cell::Word(word.to_owned()))
}

fn moment(at: &str) -> Operand {
    Operand::Literal(Cell::Moment(at.to_owned()))
}

fn not(rule: RuleTree) -> RuleTree {
    RuleTree::Not(Box::new(rule))
}

fn is_mine() -> RuleTree {
    is(record(OWNER), "==", me())
}

fn flag() -> RuleTree {
    RuleTree::Flag(own(FLAG))
}

fn role(names: &[&'static str]) -> RuleTree {
    RuleTree::Role(names.to_vec())
}

/// `team.members.exists(x, …)`
fn some_member(inner: RuleTree) -> RuleTree {
    RuleTree::Exists(RecordWay::to(0, vec![item::TEAM]), 2, Box::new(inner))
}

/// `tags.exists(x, …)`
fn some_tag(inner: RuleTree) -> RuleTree {
    RuleTree::Exists(RecordWay::default(), TAGS, Box::new(inner))
}

/// A field of the record of the innermost list.
fn of_item(variable: usize, field: usize) -> Operand {
    Operand::Field(RecordWay::to(variable, Vec::new()), field, None)
}

fn way_of(variable: usize, reference: usize) -> Operand {
    Operand::Record(RecordWay::to(variable, vec![reference]))
}

/// About a record as it is.
pub fn forms() -> Vec<RuleTree> {
    let mut forms = vec![
        RuleTree::Constant(true),
        RuleTree::Constant(false),
        RuleTree::SignedIn,
        not(RuleTree::SignedIn),
        role(&["ALPHA"]),
        role(&["ALPHA", "BETA"]),
        not(role(&["BETA"])),
        // The actor, by references.
        is_mine(),
        is(record(OWNER), "!=", me()),
        not(is_mine()),
        is(Operand::Record(RecordWay::to(0, vec![item::TEAM, 1])), "==", me()),
        is(record(item::TEAM), "==", my_record(account::TEAM)),
        is(Operand::Record(RecordWay::to(0, vec![OWNER, account::TEAM])), "==", my_record(account::TEAM)),
        RuleTree::Null(me(), true),
        RuleTree::Null(me(), false),
        RuleTree::Null(record(OWNER), true),
        RuleTree::Null(record(OWNER), false),
        // The actor, by values.
        is(own(NAME), "==", mine(account::NAME)),
        is(own(NAME), "!=", mine(account::NAME)),
        is(own(NUMBER), "<=", mine(account::LEVEL)),
        is(mine(account::LEVEL), ">", whole(1)),
        is(by_way(OWNER, account::LEVEL), "<", mine(account::LEVEL)),
        is(own(NAME), "==", Operand::Me(vec![account::TEAM], Some(0))),
        // Claims.
        is(own(NAME), "==", Operand::Claim(NAME_CLAIM, Some(Kind::Text))),
        is(Operand::Claim(NAME_CLAIM, Some(Kind::Text)), "!=", own(NAME)),
        RuleTree::Null(Operand::Claim(NAME_CLAIM, None), true),
        is(Operand::Claim(NAME_CLAIM, Some(Kind::Text)), "==", text("a")),
        is(own(NUMBER), "<=", Operand::Claim(LEVEL_CLAIM, Some(Kind::Int))),
        is(Operand::Claim(LEVEL_CLAIM, Some(Kind::Int)), ">", whole(1)),
        // Values of the record and of those that it leads to.
        flag(),
        not(flag()),
        is(own(NAME), "==", text("a")),
        is(own(NAME), "<", text("b")),
        is(own(COLOR), "==", color("RED")),
        is(own(COLOR), "!=", color("RED")),
        is(own(MOMENT), "<=", Operand::Now),
        is(own(MOMENT), ">", moment("2020-02-29T12:30:00Z")),
        is(own(PRICE), ">=", Operand::Literal(Cell::Exact(100))),
        is(own(NUMBER), "==", by_way(OWNER, account::LEVEL)),
        is(Operand::Field(RecordWay::default(), SPOT, Some("city")), "==", text("a")),
        is(Operand::Field(RecordWay::default(), SPOT, Some("zip")), ">", whole(1)),
        RuleTree::Null(Operand::Field(RecordWay::default(), SPOT, Some("city")), true),
        RuleTree::Null(own(NUMBER), true),
        RuleTree::Null(own(NUMBER), false),
        RuleTree::Null(by_way(OWNER, account::NAME), true),
        // `in`.
        RuleTree::In(own(NUMBER), vec![whole(1), whole(3)]),
        RuleTree::In(own(COLOR), vec![color("RED"), color("BLUE")]),
        RuleTree::In(own(NAME), vec![text("b"), mine(account::NAME)]),
        RuleTree::Has(text("pond"), RecordWay::default(), TEXTS),
        RuleTree::Has(own(NAME), RecordWay::default(), TEXTS),
        // Lists: some, every, none, and lists in lists.
        some_member(is(way_of(1, 1), "==", me())),
        some_member(RuleTree::All(vec![is(way_of(1, 1), "==", me()), is(of_item(1, 2), "==", color("RED"))])),
        some_member(is(way_of(1, 1), "==", record(OWNER))),
        some_tag(is(way_of(1, 1), "==", me())),
        not(some_tag(is(way_of(1, 1), "==", me()))),
        not(some_tag(not(is(way_of(1, 1), "==", me())))),
        some_tag(RuleTree::Null(way_of(1, 1), true)),
        some_member(RuleTree::Exists(
            RecordWay::to(1, vec![1, account::TEAM]),
            2,
            Box::new(RuleTree::All(vec![
                is(way_of(2, 1), "==", me()),
                is(of_item(2, 2), "!=", of_item(1, 2)),
            ])),
        )),
        // Other rules.
        RuleTree::Can(Deed::Update, RecordWay::to(0, vec![item::TEAM])),
        RuleTree::Can(Deed::Read, RecordWay::to(0, vec![item::DEAL])),
        RuleTree::Can(Deed::Delete, RecordWay::to(0, vec![item::DEAL])),
        RuleTree::Named(RecordWay::default(), 0),
        RuleTree::Named(RecordWay::to(0, vec![item::TEAM]), 0),
        not(RuleTree::Named(RecordWay::to(0, vec![item::TEAM]), 0)),
    ];
    // Together.
    for (left, right) in [
        (is_mine(), flag()),
        (role(&["ALPHA"]), flag()),
        (is(own(COLOR), "==", color("GREEN")), RuleTree::SignedIn),
        (some_tag(is(way_of(1, 1), "==", me())), is_mine()),
        (RuleTree::Can(Deed::Update, RecordWay::to(0, vec![item::TEAM])), not(flag())),
    ] {
        forms.push(RuleTree::All(vec![left.clone(), right.clone()]));
        forms.push(RuleTree::Any(vec![left.clone(), right.clone()]));
        forms.push(not(RuleTree::Any(vec![left.clone(), not(right.clone())])));
        forms.push(RuleTree::Any(vec![
            RuleTree::All(vec![left, role(&["BETA"])]),
            RuleTree::All(vec![right, not(role(&["BETA"]))]),
        ]));
    }
    forms
}

/// About a record as it would be after an update that gives its number and its flag other values.
pub fn forms_of_changes() -> Vec<RuleTree> {
    let old = Operand::Old;
    vec![
        is(old(NUMBER), "<=", own(NUMBER)),
        is(own(NUMBER), "<", old(NUMBER)),
        is(own(NUMBER), "!=", old(NUMBER)),
        RuleTree::Null(old(NUMBER), true),
        RuleTree::Null(old(NUMBER), false),
        is(old(NUMBER), ">", whole(1)),
        is(own(COLOR), "==", old(COLOR)),
        is(own(NAME), "==", old(NAME)),
        flag(),
        RuleTree::Flag(old(FLAG)),
        RuleTree::Any(vec![RuleTree::Flag(old(FLAG)), is_mine()]),
        RuleTree::All(vec![not(RuleTree::Flag(old(FLAG))), flag(), role(&["ALPHA", "BETA"])]),
        RuleTree::All(vec![is_mine(), is(old(NUMBER), "<=", own(NUMBER))]),
    ]
}

/// Those that are tried besides a rule of the schema.
pub fn forms_beside_the_schemas() -> Vec<RuleTree> {
    vec![
        RuleTree::Constant(false),
        RuleTree::Constant(true),
        is_mine(),
        flag(),
        role(&["ALPHA"]),
        RuleTree::All(vec![is_mine(), flag()]),
        some_tag(is(way_of(1, 1), "==", me())),
    ]
}
