//! The same over HTTP, with API keys as credentials: the world of an actor in REST, and a crawl that looks for marked values.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use tempfile::TempDir;
use trefoil::Trefoil;
use trefoil_config::{Config, Setting, SettingLayers};

use super::actors::{ActorKind, TestActor};
use super::asking::ReadMaker;
use super::judge::{RuleJudge, Verdict};
use super::making::RuleWeight;
use super::rule_tree::Deed;
use super::secrets::found_marks;
use super::seeds::{self, Trial};
use super::shape::AccessShape;
use super::stage::write_application;
use super::stock::AccessStock;
use super::tokens;
use crate::power::chance::Chance;
use crate::support::{Client, Reply, Server, command, postgres};

/// The requests of each actor.
const REQUESTS: usize = 12;
/// The addresses that a crawl asks for.
const ADDRESSES: usize = 100;

/// A server with the credentials of its actors.
pub struct ServedStage {
    pub server: Server,
    database: String,
    folder: TempDir,
}

impl ServedStage {
    pub fn new(
        shape: &AccessShape,
        sdl: &str,
        stock: &AccessStock,
        database: &str,
    ) -> Result<ServedStage, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let app = folder.path().join("app");
        write_application(&app, sdl, &stock.seeds(shape)).map_err(|error| error.to_string())?;
        if sdl.contains("@account") {
            tokens::add_issuer(&app, "login").map_err(|error| error.to_string())?;
        }
        let named = |name: &str| Setting::find(name).expect("a setting");
        let flags = vec![
            (named("database"), database.to_owned()),
            (named("data"), folder.path().join("data").display().to_string()),
            (named("limit-cost"), "100000000".to_owned()),
        ];
        let layers = SettingLayers { flags, variables: Vec::new(), file: &[], folder: Path::new("") };
        let config: Config = layers.resolve().map_err(|why| format!("{why:?}"))?.config;
        let server = Server::start(Trefoil::folder(app), config);
        Ok(ServedStage { server, database: database.to_owned(), folder })
    }

    /// The one place where a request over HTTP gets its actor: a key that has the roles, and acts as the account.
    pub fn credential(&self, number: usize, actor: &TestActor) -> Result<Option<String>, String> {
        if actor.kind == ActorKind::Anonymous {
            return Ok(None);
        }
        let name = format!("key{number}");
        let data = self.folder.path().join("data").display().to_string();
        let mut arguments = vec!["key".to_owned(), "add".to_owned(), name, "app".to_owned()];
        arguments.extend(actor.roles.iter().flat_map(|role| ["--role".to_owned(), role.clone()]));
        arguments.extend(actor.account.into_iter().flat_map(|id| ["--as".to_owned(), format!("login{id}")]));
        arguments.extend(["--database", &self.database, "--data", &data].map(str::to_owned));
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let made = command(self.folder.path(), &words).output().map_err(|error| error.to_string())?;
        let (out, err) = (String::from_utf8_lossy(&made.stdout), String::from_utf8_lossy(&made.stderr));
        let key = out.split_whitespace().find(|word| word.starts_with("tfk_"));
        key.map(|key| Some(format!("Bearer {key}")))
            .ok_or_else(|| format!("{words:?} made no key: {out}{err}"))
    }
}

/// The actors that a key can be: those of the others become keys with the same account and roles.
pub fn key_actors(chance: &mut Chance, shape: &AccessShape, stock: &AccessStock) -> Vec<TestActor> {
    let actors = TestActor::eight(chance, shape, stock).into_iter();
    let as_key = |actor: TestActor| match actor.kind {
        ActorKind::Anonymous => actor,
        // A key has a role at least.
        _ if actor.roles.is_empty() => {
            TestActor { kind: ActorKind::Key, roles: vec!["GAMMA".to_owned()], claims: Vec::new(), ..actor }
        }
        _ => TestActor { kind: ActorKind::Key, claims: Vec::new(), ..actor },
    };
    actors.map(as_key).step_by(2).collect()
}

pub fn database(seed: u64) -> String {
    if seed.is_multiple_of(2) { postgres::database() } else { "sqlite:".to_owned() }
}

pub fn ask(client: &mut Client, path: &str, credential: Option<&str>, accept: &str) -> Reply {
    let mut headers = vec![("Accept", accept)];
    headers.extend(credential.map(|value| ("Authorization", value)));
    client.send("GET", path, &headers, b"")
}

#[test]
fn rest_answers_are_those_of_the_actors_world() {
    seeds::run(&Trial { name: "access::over_http", short: 8, long: 500 }, |seed| async move {
        let mut chance = Chance::new(seed);
        let shape = AccessShape::random(&mut chance, RuleWeight::Reading);
        let stock = AccessStock::random(&mut chance, &shape);
        tokio::task::block_in_place(|| {
            let stage = ServedStage::new(&shape, &shape.protected_sdl(), &stock, &database(seed))?;
            for (number, actor) in key_actors(&mut chance, &shape, &stock).iter().enumerate() {
                let judge = RuleJudge { shape: &shape, stock: &stock, actor, old: None, image: None };
                let credential = stage.credential(number, actor)?;
                compare(&mut chance, &stage, &judge, credential.as_deref())?;
            }
            Ok(())
        })
    });
}

fn compare(
    chance: &mut Chance,
    stage: &ServedStage,
    judge: &RuleJudge<'_>,
    credential: Option<&str>,
) -> Result<(), String> {
    let world = judge.world();
    let open = ServedStage::new(judge.shape, &judge.shape.open_sdl(), &world, "sqlite:")?;
    let (mut client, mut other) = (Client::of(&stage.server), Client::of(&open.server));
    for (of, owner) in judge.shape.types.iter().enumerate() {
        let reply = ask(&mut client, &format!("/{}", owner.plural), credential, "application/json");
        let is_left_out = |at: usize| judge.field_verdict(of, at, Deed::Read) == Verdict::No;
        let hidden = owner.fields.iter().enumerate().filter(|(at, _)| is_left_out(*at));
        let names = hidden.map(|(_, field)| format!("\"{}\":", field.input_name()));
        if let Some(name) = names.into_iter().find(|name| reply.text().contains(name.as_str())) {
            return Err(format!("{name} is shown to {:?}\n{}", judge.actor, judge.shape.protected_sdl()));
        }
    }
    for _ in 0..REQUESTS {
        let of = chance.below(judge.shape.types.len());
        if judge.verdict(of, Deed::Read) == Verdict::No {
            continue;
        }
        let path = ReadMaker { judge: *judge, chance, names_all: false }.path(of);
        let answer = told(&ask(&mut client, &path, credential, "application/json"));
        let expected = told(&ask(&mut other, &path, None, "application/json"));
        if answer != expected {
            return Err(format!(
                "GET {path} by {:?}\n  answered {answer:?}\n  expected {expected:?}\n{}",
                judge.actor,
                judge.shape.protected_sdl()
            ));
        }
    }
    Ok(())
}

/// Status, headers but for tags and what says who may keep the answer, and body but for the id of the request.
fn told(reply: &Reply) -> (u16, BTreeMap<String, String>, String) {
    let apart = [
        "etag",
        "date",
        "x-request-id",
        "cache-control",
        "vary",
        "last-modified",
        "cross-origin-resource-policy",
        "content-length",
    ];
    let headers = reply.headers.iter().map(|(name, value)| (name.to_lowercase(), value.clone()));
    let headers = headers.filter(|(name, _)| !apart.contains(&name.as_str())).collect();
    let id = reply.header("x-request-id").unwrap_or("-");
    (reply.status, headers, reply.text().replace(id, "ID"))
}

#[test]
fn hidden_values_are_in_nothing_that_links_lead_to() {
    seeds::run(&Trial { name: "access::over_http", short: 4, long: 200 }, |seed| async move {
        let mut chance = Chance::new(seed);
        let shape = AccessShape::random(&mut chance, RuleWeight::Writing);
        let stock = AccessStock::random(&mut chance, &shape).marked();
        tokio::task::block_in_place(|| {
            let stage = ServedStage::new(&shape, &shape.protected_sdl(), &stock, &database(seed))?;
            for (number, actor) in key_actors(&mut chance, &shape, &stock).iter().enumerate() {
                let judge = RuleJudge { shape: &shape, stock: &stock, actor, old: None, image: None };
                let seen = judge.world().marks();
                let hidden: BTreeSet<String> = stock.marks().difference(&seen).cloned().collect();
                let credential = stage.credential(number, actor)?;
                let found = crawl(&stage, &shape, credential.as_deref());
                for (path, marks) in &found {
                    let told: Vec<&String> = marks.intersection(&hidden).collect();
                    if !told.is_empty() {
                        return Err(format!("{path} tells {actor:?} {told:?}\n{}", shape.protected_sdl()));
                    }
                }
                // A crawl that finds nothing proves nothing.
                let all: BTreeSet<&String> = found.values().flatten().collect();
                if all.is_empty() && !seen.is_empty() {
                    return Err(format!(
                        "a crawl as {actor:?} found none of {seen:?}\n{}",
                        shape.protected_sdl()
                    ));
                }
            }
            Ok(())
        })
    });
}

/// The marks at each address that links lead to, as a page, as JSON and in other forms.
fn crawl(
    stage: &ServedStage,
    shape: &AccessShape,
    credential: Option<&str>,
) -> BTreeMap<String, BTreeSet<String>> {
    let mut client = Client::of(&stage.server);
    let mut open: VecDeque<String> = ["/", "/openapi.json", "/docs", "/graphql/schema.graphqls", "/_/me"]
        .into_iter()
        .map(str::to_owned)
        .collect();
    for owner in &shape.types {
        let plural = owner.plural;
        open.extend(
            ["", "?format=csv", "?format=ndjson", "?q=mark", "/new", "/1", "/2", "/1/edit"]
                .map(|end| format!("/{plural}{end}")),
        );
        let fields =
            owner.fields.iter().map(|field| format!("/{plural}?sort={0}&fields={0}&size=2", field.name));
        open.extend(fields);
    }
    let (mut known, mut found): (BTreeSet<String>, BTreeMap<String, BTreeSet<String>>) = Default::default();
    while let Some(path) = open.pop_front() {
        if known.len() >= ADDRESSES || !known.insert(path.clone()) {
            continue;
        }
        for accept in ["text/html", "application/json"] {
            let reply = ask(&mut client, &path, credential, accept);
            let headers: String =
                reply.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
            let text = headers + &String::from_utf8_lossy(&reply.body);
            found.entry(path.clone()).or_default().extend(found_marks(&text));
            open.extend(links(&text).into_iter().filter(|link| !known.contains(link)));
        }
    }
    found
}

/// The addresses of this server in a page, a document or a header.
fn links(text: &str) -> Vec<String> {
    let marks = ["href=\"", "action=\"", "</", "src=\""];
    let ends = |letter: char| ['"', '>', '#'].contains(&letter);
    let after = marks.iter().flat_map(|mark| text.split(mark).skip(1).map(move |rest| (mark, rest)));
    let paths = after.filter_map(|(mark, rest)| {
        let path = rest.split(ends).next()?;
        // `</` opens a link of a header, and closes an element of a page.
        let path = if *mark == "</" { format!("/{path}") } else { path.to_owned() };
        let path = path.replace("&amp;", "&");
        let is_link = path.starts_with('/')
            && !path.starts_with("//")
            && path.contains(|c: char| c.is_ascii_digit() || c == '?' || c == 's');
        (is_link && path.len() < 300 && !path.contains(char::is_whitespace)).then_some(path)
    });
    paths.collect()
}
