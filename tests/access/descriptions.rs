//! What an actor is told of the schema: nothing that is closed to them, and all of the rest.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::actors::TestActor;
use super::judge::{RuleJudge, Verdict};
use super::making::RuleWeight;
use super::rule_tree::Deed;
use super::seeds::{self, Trial};
use super::shape::{AccessShape, Content, ShapeField};
use super::stage::{AccessStage, Asker, On};
use super::stock::AccessStock;
use crate::power::chance::Chance;

const INTROSPECTION: &str = "{ __schema { queryType { name } mutationType { name } subscriptionType { name }
    types { name fields { name args { name } } inputFields { name } possibleTypes { name } } } }";

/// The names in a description: of types, each with its fields, and of the arguments of fields.
struct Described {
    types: BTreeMap<String, BTreeSet<String>>,
    arguments: BTreeMap<String, BTreeSet<String>>,
}

#[test]
fn schemas_are_described_as_far_as_they_are_open() {
    seeds::run(&Trial { name: "access::descriptions", short: 30, long: 3_000 }, |seed| async move {
        let mut chance = Chance::new(seed);
        let weight = if seed.is_multiple_of(2) { RuleWeight::Reading } else { RuleWeight::Writing };
        let shape = AccessShape::random(&mut chance, weight);
        let stock = AccessStock::random(&mut chance, &shape);
        let stage = AccessStage::protected(On::Sqlite, &shape, &stock).await?;
        for actor in TestActor::eight(&mut chance, &shape, &stock) {
            let judge = RuleJudge { shape: &shape, stock: &stock, actor: &actor, old: None, image: None };
            let asker = Asker::Actor(actor.for_engine(&shape, &stock, stage.engine.model()));
            let answer = stage.ask_json(&asker, INTROSPECTION, &json!({})).await;
            let described = Described::read(&answer["data"]["__schema"]);
            let mut wrong: Vec<String> =
                (0..shape.types.len()).flat_map(|of| described.mistakes(&judge, of)).collect();
            for of in 0..shape.types.len() {
                wrong.extend(wrong_suggestions(&stage, &asker, &judge, of).await);
            }
            if !wrong.is_empty() {
                return Err(format!("{}\nto {actor:?}\n{}", wrong.join("\n"), shape.protected_sdl()));
            }
        }
        Ok(())
    });
}

impl Described {
    fn read(schema: &Value) -> Described {
        let name = |part: &Value| part["name"].as_str().expect("a name").to_owned();
        let list = |parts: &Value| parts.as_array().cloned().unwrap_or_default();
        let (mut types, mut arguments) = (BTreeMap::new(), BTreeMap::new());
        for ty in list(&schema["types"]) {
            for field in list(&ty["fields"]) {
                let path = format!("{}.{}", name(&ty), name(&field));
                arguments.insert(path, list(&field["args"]).iter().map(name).collect());
            }
            let fields = list(&ty["fields"]).into_iter().chain(list(&ty["inputFields"]));
            types.insert(name(&ty), fields.map(|field| name(&field)).collect());
        }
        Described { types, arguments }
    }

    fn has(&self, ty: &str, field: &str) -> bool {
        self.types.get(ty).is_some_and(|fields| fields.contains(field))
    }

    /// What is told of a type although it is closed, or not told although it is open.
    fn mistakes(&self, judge: &RuleJudge<'_>, of: usize) -> Vec<String> {
        let owner = &judge.shape.types[of];
        let (name, plural, lower) = (owner.name, owner.plural, owner.name.to_lowercase());
        let title = format!("{}{}", plural[..1].to_uppercase(), &plural[1..]);
        let may = |deed: Deed| judge.verdict(of, deed) != Verdict::No;
        let may_field = |at: usize, deed: Deed| judge.field_verdict(of, at, deed) != Verdict::No;
        let fields = || owner.fields.iter().enumerate();
        let mut wrong = Vec::new();
        let mut expect = |ty: &str, field: &str, expected: bool| {
            if self.has(ty, field) != expected {
                let what = if expected { "is not told" } else { "is told" };
                wrong.push(format!("{ty}.{field} {what}"));
            }
        };
        let is_read = may(Deed::Read);
        // Who may run no query is told of one: a schema without any is not valid.
        let may_read_any =
            (0..judge.shape.types.len()).any(|of| judge.verdict(of, Deed::Read) != Verdict::No);
        if may_read_any {
            for query in [plural.to_owned(), format!("{plural}Connection"), format!("{plural}Aggregate")] {
                expect("Query", &query, is_read);
            }
            expect("Query", &lower, is_read);
        }
        if let Some((login, _)) = fields().find(|(_, field)| field.content == Content::Login) {
            expect("Query", &format!("{lower}ByLogin"), is_read && may_field(login, Deed::Read));
        }
        for ending in ["Created", "Updated", "Deleted", "Changed"] {
            expect("Subscription", &format!("{lower}{ending}"), is_read);
        }
        let is_input = |field: &ShapeField| !matches!(field.content, Content::Inverse { .. });
        let is_plain = |field: &ShapeField| is_input(field) && field.content.target().is_none();
        let may_create = may(Deed::Create)
            && fields().all(|(at, field)| !field.required || !is_input(field) || may_field(at, Deed::Create));
        let may_update = may(Deed::Update) && may(Deed::UpdateTo);
        let can_set = |deed: Deed| fields().any(|(at, field)| is_plain(field) && may_field(at, deed));
        // Without a plain field, what can be done to related records decides.
        for (verb, is_open, deed) in
            [("create", may_create, Deed::Create), ("update", may_update, Deed::Update)]
        {
            if !is_open || can_set(deed) {
                expect("Mutation", &format!("{verb}{name}"), is_open);
                expect("Mutation", &format!("{verb}{title}"), is_open && (verb == "create" || is_read));
            }
        }
        expect("Mutation", &format!("delete{name}"), may(Deed::Delete));
        expect("Mutation", &format!("delete{title}"), may(Deed::Delete) && is_read);
        for (at, field) in fields() {
            let (own, shown) = (field.name.as_str(), may_field(at, Deed::Read));
            if is_read {
                expect(name, own, shown);
                let condition = match field.content {
                    Content::Inverse { .. } | Content::Link { .. } => format!("{own}_some"),
                    Content::Reference { .. } => format!("{own}Id"),
                    Content::Texts => format!("{own}_has"),
                    Content::Roles if judge.shape.has_role_list => format!("{own}_has"),
                    Content::Value(_) | Content::Spot | Content::Roles | Content::Login => own.to_owned(),
                };
                expect(&format!("{name}Where"), &condition, shown);
                if matches!(field.content, Content::Value(_)) {
                    expect(&format!("{name}Counts"), own, shown);
                    expect(&format!("{name}CountsHaving"), &format!("{own}_gte"), shown);
                }
                if field.content.is_list() {
                    expect(name, &format!("{own}Count"), shown);
                    expect(name, &format!("{own}Aggregate"), shown);
                }
            } else {
                expect(name, own, false);
            }
            if is_plain(field) {
                for (input, deed, is_used) in
                    [("Create", Deed::Create, may_create), ("Update", Deed::Update, may_update)]
                {
                    // Inputs are told of with the operations that take them.
                    let ty = format!("{name}{input}");
                    if is_used || self.types.contains_key(&ty) {
                        expect(&ty, own, may_field(at, deed));
                    }
                }
            }
        }
        if !is_read {
            for part in ["Where", "Connection", "Edge", "Aggregate", "Having", "Change"] {
                let ty = format!("{name}{part}");
                // The one query that a schema needs, if there is no other.
                let is_needed = !may_read_any && !part.starts_with(['W', 'H']);
                if self.types.contains_key(&ty) && !is_needed {
                    wrong.push(format!("{ty} is told"));
                }
            }
        }
        let updates = self.arguments.get(&format!("Mutation.update{name}"));
        if updates.is_some_and(|arguments| !arguments.contains("input")) {
            wrong.push(format!("update{name} is told without its input"));
        }
        wrong
    }
}

/// Suggestions that offer what is closed, or do not offer what is open.
async fn wrong_suggestions(
    stage: &AccessStage,
    asker: &Asker,
    judge: &RuleJudge<'_>,
    of: usize,
) -> Vec<String> {
    let (owner, mut wrong) = (&judge.shape.types[of], Vec::new());
    let is_read = judge.verdict(of, Deed::Read) != Verdict::No;
    let query = owner.plural;
    for (at, field) in owner.fields.iter().enumerate() {
        let is_open = is_read && judge.field_verdict(of, at, Deed::Read) != Verdict::No;
        let name = &field.name;
        let selection = stage.ask(asker, &format!("{{ {query} {{ {name}x }} }}"), &json!({})).await;
        let with_conditions = format!("query($w: {}Where) {{ {query}(where: $w) {{ id }} }}", owner.name);
        let variables = json!({ "w": { format!("{name}_nul"): true } });
        let condition = stage.ask(asker, &with_conditions, &variables).await;
        for (answer, offered) in [(selection, name.clone()), (condition, format!("{name}_null"))] {
            let is_offered = answer.contains(&format!("Did you mean \"{offered}\"?"));
            // Not every field may be null; what is as near is another matter.
            let may_be_offered = is_open || !is_offered;
            let must_be_offered = is_open && offered == *name;
            if !may_be_offered || (must_be_offered && !is_offered) {
                wrong.push(format!("{}.{name}: {answer}", owner.name));
            }
        }
    }
    wrong
}
