//! The schema, the records and the actors of the matrix: a type for each form of rule and each place that it can have.

use std::collections::BTreeMap;

use serde_json::json;

use super::super::actors::{ActorKind, LEVEL_CLAIM, NAME_CLAIM, TestActor};
use super::super::rule_tree::{Deed, Operand, RecordWay, RuleTree};
use super::super::shape::{AccessShape, Content, Kind, ShapeField, ShapeRules, ShapeType};
use super::super::stock::{AccessStock, Cell};
use super::forms::{self, FIRST, TAG, TEAM, USER, account, item};
use crate::support::is_long;

/// Where a rule stands; everything else is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleSeat {
    Read,
    /// Creating, updating and deleting.
    Write,
    UpdateTo,
    /// One field, for reading and writing.
    Field,
}

/// A form of rule in its place; the type is that of the shape.
pub struct MatrixEntry {
    pub of: usize,
    pub seat: RuleSeat,
    pub rule: RuleTree,
}

/// Forms that are tried in one application.
pub struct MatrixWorld {
    pub shape: AccessShape,
    pub stock: AccessStock,
    pub entries: Vec<MatrixEntry>,
}

/// How somebody asks.
#[derive(Clone, Debug)]
pub struct MatrixActor {
    pub name: &'static str,
    pub actor: TestActor,
    /// Whether the credential is good.
    pub is_good: bool,
}

/// The forms of each application.
const FORMS: usize = 40;

impl MatrixWorld {
    /// In the short form each form of rule has one of its places, another one on the other store.
    pub fn all(store: usize) -> Vec<MatrixWorld> {
        let places = [RuleSeat::Read, RuleSeat::Write, RuleSeat::Field];
        let in_places = |forms: Vec<RuleTree>| -> Vec<(RuleSeat, RuleTree)> {
            let numbered = forms.into_iter().enumerate();
            let placed = numbered.flat_map(|(number, rule)| {
                let is_tried = move |at: &usize| is_long() || (number + store) % places.len() == *at;
                (0..places.len()).filter(is_tried).map(move |at| (places[at], rule.clone()))
            });
            placed.collect()
        };
        let changes = forms::forms_of_changes().into_iter().map(|rule| (RuleSeat::UpdateTo, rule));
        let entries: Vec<(RuleSeat, RuleTree)> =
            in_places(forms::forms()).into_iter().chain(changes).collect();
        let mut worlds: Vec<MatrixWorld> = entries
            .chunks(FORMS)
            .map(|entries| MatrixWorld::new(entries.to_vec(), ShapeRules::default()))
            .collect();
        let deeds = [Deed::Read, Deed::Create, Deed::Update, Deed::Delete];
        let everywhere = ShapeRules(deeds.map(|deed| (deed, RuleTree::Role(vec!["GAMMA"]))).to_vec());
        worlds.push(MatrixWorld::new(in_places(forms::forms_beside_the_schemas()), everywhere));
        worlds
    }

    fn new(entries: Vec<(RuleSeat, RuleTree)>, everywhere: ShapeRules) -> MatrixWorld {
        let mut types = common_types();
        let mut stock = common_stock();
        let mut known = Vec::new();
        for (number, (seat, rule)) in entries.into_iter().enumerate() {
            let of = FIRST + number;
            types.push(item_type(number, seat, &rule));
            stock.push(item_rows(of));
            known.push(MatrixEntry { of, seat, rule });
        }
        let shape = AccessShape { types, account: USER, has_role_list: false, everywhere };
        let mut stock = AccessStock { rows: stock };
        stock.fill_other_sides(&shape);
        MatrixWorld { shape, stock, entries: known }
    }

    /// Accounts are blocked by it.
    pub fn protected_sdl(&self) -> String {
        let sdl = self.shape.protected_sdl();
        sdl.replace("roles: \"role\")", "roles: \"role\", if: \"!blocked\")")
    }
}

fn plain(name: &str, kind: Kind) -> ShapeField {
    ShapeField::new(name, Content::Value(kind), kind == Kind::Flag)
}

fn to(name: &str, target: usize) -> ShapeField {
    ShapeField::new(name, Content::Reference { target, inverse: None }, false)
}

fn with(rules: &[(Deed, RuleTree)]) -> ShapeRules {
    ShapeRules(rules.to_vec())
}

fn common_types() -> Vec<ShapeType> {
    let yes = || RuleTree::Constant(true);
    let is_me = |field: usize| {
        let record = Operand::Record(RecordWay::to(0, vec![field]));
        RuleTree::Compare(record, "==", Operand::Me(Vec::new(), None))
    };
    let mut role = ShapeField::new("role", Content::Roles, false);
    role.rules =
        with(&[(Deed::Create, RuleTree::Constant(false)), (Deed::Update, RuleTree::Constant(false))]);
    let user = vec![
        ShapeField::new("login", Content::Login, true),
        role,
        plain("name", Kind::Text),
        plain("level", Kind::Int),
        plain("blocked", Kind::Flag),
        to("team", TEAM),
    ];
    let mut team = to("team", TEAM);
    team.content = Content::Reference { target: TEAM, inverse: Some(2) };
    let members = Content::Inverse { target: forms::MEMBER, reference: 0 };
    let teams = vec![plain("name", Kind::Text), to("chief", USER), ShapeField::new("members", members, true)];
    let deal = vec![plain("name", Kind::Text), to("owner", USER)];
    let named = vec![("led".to_owned(), is_me(1))];
    let own = |name, plural, fields, rules| ShapeType { name, plural, fields, rules, named: Vec::new() };
    vec![
        own("User", "users", user, with(&[(Deed::Read, yes())])),
        ShapeType {
            named,
            ..own("Team", "teams", teams, with(&[(Deed::Read, yes()), (Deed::Update, is_me(1))]))
        },
        own(
            "Member",
            "members",
            vec![team, to("user", USER), plain("color", Kind::Color)],
            with(&[(Deed::Read, yes())]),
        ),
        own("Tag", "tags", vec![plain("name", Kind::Text), to("keeper", USER)], with(&[(Deed::Read, yes())])),
        own("Deal", "deals", deal, with(&[(Deed::Read, is_me(1)), (Deed::Delete, is_me(1))])),
    ]
}

fn item_type(number: usize, seat: RuleSeat, rule: &RuleTree) -> ShapeType {
    let letter = |at: usize| char::from(b'a' + (at % 26) as u8);
    let name = format!("Rule{}{}t", letter(number / 26), letter(number));
    let plural = format!("{}s", name.to_lowercase());
    let link = Content::Link { target: TAG, back: None, is_owner: true };
    let mut fields = vec![
        ShapeField::new("title", Content::Value(Kind::Text), true),
        plain("note", Kind::Text),
        plain("secret", Kind::Text),
        plain("number", Kind::Int),
        plain("flag", Kind::Flag),
        plain("price", Kind::Decimal),
        plain("moment", Kind::Moment),
        plain("color", Kind::Color),
        ShapeField::new("texts", Content::Texts, true),
        ShapeField::new("spot", Content::Spot, false),
        plain("name", Kind::Text),
        to("owner", USER),
        to("team", TEAM),
        to("deal", forms::DEAL),
        ShapeField::new("tags", link, true),
    ];
    let rule_or_true = |is_ruled: bool| if is_ruled { rule.clone() } else { RuleTree::Constant(true) };
    let mut rules = vec![(Deed::Read, rule_or_true(seat == RuleSeat::Read))];
    for deed in [Deed::Create, Deed::Update, Deed::Delete] {
        rules.push((deed, rule_or_true(seat == RuleSeat::Write)));
    }
    if seat == RuleSeat::UpdateTo {
        rules.push((Deed::UpdateTo, rule.clone()));
    }
    if seat == RuleSeat::Field {
        let deeds = [Deed::Read, Deed::Create, Deed::Update];
        fields[item::SECRET].rules = with(&deeds.map(|deed| (deed, rule.clone())));
    }
    let is_mine = RuleTree::Compare(
        Operand::Record(RecordWay::to(0, vec![item::OWNER])),
        "==",
        Operand::Me(Vec::new(), None),
    );
    // The names of the types of a test live as long as it does.
    let leaked = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    ShapeType {
        name: leaked(name),
        plural: leaked(plural),
        fields,
        rules: ShapeRules(rules),
        named: vec![("mine".to_owned(), is_mine)],
    }
}

fn one(id: i64) -> Cell {
    if id == 0 { Cell::Null } else { Cell::One(id) }
}

fn text(text: &str) -> Cell {
    if text.is_empty() { Cell::Null } else { Cell::Text(text.to_owned()) }
}

fn word(word: &str) -> Cell {
    if word.is_empty() { Cell::Null } else { Cell::Word(word.to_owned()) }
}

fn rows(rows: Vec<Vec<Cell>>) -> BTreeMap<i64, Vec<Cell>> {
    rows.into_iter().enumerate().map(|(at, row)| (at as i64 + 1, row)).collect()
}

fn common_stock() -> Vec<BTreeMap<i64, Vec<Cell>>> {
    let user = |id: i64, role: &str, name: &str, level: i64, team: i64| {
        let login = Cell::Text(format!("login{id}"));
        vec![login, word(role), text(name), Cell::Whole(level), Cell::Flag(false), one(team)]
    };
    let users = vec![
        user(1, "ALPHA", "a", 2, 1),
        user(2, "", "b", 1, 1),
        user(3, "ALPHA", "a", 3, 1),
        user(4, "BETA", "b", 3, 2),
        user(5, "BETA", "pond", 3, 2),
    ];
    let team = |name: &str, chief: i64| vec![text(name), one(chief), Cell::Many(Vec::new())];
    let member = |team: i64, user: i64, color: &str| vec![one(team), one(user), word(color)];
    let members = vec![
        member(1, 1, "RED"),
        member(1, 2, "GREEN"),
        member(2, 1, "BLUE"),
        member(2, 5, "RED"),
        member(3, 2, "RED"),
    ];
    let named = |name: &str, user: i64| vec![text(name), one(user)];
    vec![
        rows(users),
        rows(vec![team("a", 1), team("b", 2), team("pond", 0)]),
        rows(members),
        rows(vec![named("a", 1), named("b", 2), named("", 0)]),
        rows(vec![named("a", 1), named("b", 2), named("", 0)]),
    ]
}

/// Records that differ in everything that rules ask.
fn item_rows(of: usize) -> BTreeMap<i64, Vec<Cell>> {
    let past = Cell::Moment("2001-05-01T00:00:00Z".to_owned());
    let future = Cell::Moment("2400-01-01T00:00:00Z".to_owned());
    let texts = |texts: &[&str]| Cell::Texts(texts.iter().map(|text| (*text).to_owned()).collect());
    let spot = |city: &str, zip: i64| Cell::Spot((!city.is_empty()).then(|| city.to_owned()), Some(zip));
    let many = |ids: &[i64]| Cell::Many(ids.to_vec());
    let row = |values: [Cell; 8], ends: [i64; 3], tags: Cell| {
        let [number, flag, price, moment, color, texts, spot, name] = values;
        let marks = vec![Cell::Null; 3];
        let ends = ends.into_iter().map(one).collect();
        [marks, vec![number, flag, price, moment, color, texts, spot, name], ends, vec![tags]].concat()
    };
    let (n, f) = (Cell::Whole, Cell::Flag);
    let mut rows = rows(vec![
        row(
            [
                n(1),
                f(true),
                Cell::Exact(50),
                past.clone(),
                word("RED"),
                texts(&["a"]),
                spot("a", 1),
                text("a"),
            ],
            [1, 1, 1],
            many(&[1]),
        ),
        row(
            [
                n(2),
                f(false),
                Cell::Exact(100),
                future,
                word("GREEN"),
                texts(&["b", "pond"]),
                spot("b", 2),
                text("b"),
            ],
            [2, 2, 2],
            many(&[1, 2]),
        ),
        row(
            [Cell::Null, f(false), Cell::Null, Cell::Null, Cell::Null, texts(&[]), Cell::Null, Cell::Null],
            [0, 0, 0],
            many(&[]),
        ),
        row(
            [
                n(3),
                f(true),
                Cell::Exact(1050),
                past,
                word("BLUE"),
                texts(&["pond"]),
                spot("", 3),
                text("pond"),
            ],
            [5, 2, 3],
            many(&[3]),
        ),
        row(
            [n(0), f(false), Cell::Exact(-5), Cell::Null, word("RED"), texts(&["ab"]), Cell::Null, text("a")],
            [1, 3, 2],
            many(&[2, 3]),
        ),
        row(
            [n(2), f(true), Cell::Null, Cell::Null, Cell::Null, texts(&[]), spot("a", 0), text("b")],
            [3, 1, 0],
            many(&[]),
        ),
    ]);
    for (id, row) in &mut rows {
        row[item::TITLE] = Cell::Text(format!("mark{of}x{id}x0end"));
        row[item::NOTE] = Cell::Text("before".to_owned());
        row[item::SECRET] = Cell::Text(format!("mark{of}x{id}x2end"));
    }
    rows
}

impl MatrixActor {
    /// Eight kinds: of the accounts that are no longer good there is one that is blocked and one that is gone.
    pub fn all() -> Vec<MatrixActor> {
        let actor = |kind, account, roles: &[&str]| TestActor {
            kind,
            account,
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            claims: Vec::new(),
        };
        let good = |name, actor| MatrixActor { name, actor, is_good: true };
        let bad = |name, actor| MatrixActor { name, actor, is_good: false };
        let mut claims = actor(ActorKind::Token, None, &[]);
        claims.claims = vec![(NAME_CLAIM, json!("a")), (LEVEL_CLAIM, json!(2))];
        vec![
            good("nobody", TestActor::anonymous()),
            good("a stranger", actor(ActorKind::Token, None, &[])),
            // The token of an account has the roles of its record.
            good("an owner", actor(ActorKind::Token, Some(1), &["ALPHA"])),
            good("another member, by a key", actor(ActorKind::Key, Some(2), &[])),
            good("roles of a token", actor(ActorKind::Token, None, &["ALPHA", "GAMMA"])),
            good("a role of a key", actor(ActorKind::Key, None, &["BETA"])),
            good("claims of a token", claims),
            bad("an account that is blocked", actor(ActorKind::Key, Some(3), &["ALPHA"])),
            bad("an account that is gone", actor(ActorKind::Key, Some(4), &["GAMMA"])),
        ]
    }
}

/// What is done to the accounts once their keys are made.
pub fn end_accounts(stock: &mut AccessStock) {
    stock.rows[USER].remove(&4);
    if let Some(row) = stock.rows[USER].get_mut(&3) {
        row[account::BLOCKED] = Cell::Flag(true);
    }
}
