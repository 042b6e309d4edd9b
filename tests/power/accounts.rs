//! Power cuts while people sign in, change passwords and use links: what was acknowledged holds, and nothing is half done.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::client::Client;
use super::rig::{self, Rig};
use super::server::Server;
use crate::support::{Reply, is_long};

const SCHEMA: &str = r#"
extend schema @allow(all: "role(ADMIN)")
type User @account(login: "email", roles: "role", manage: "role(ADMIN)") @allow(read: "this == me") {
  id: ID!
  email: String! @unique @email
  role: String @allow(write: "role(ADMIN)")
}
"#;
const MANIFEST: &str = "[auth]\npassword-memory = \"64 KiB\"\npassword-rounds = 1\n";
const PASSWORD: &str = "correct horse battery";

/// What is true of Bob's account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct State {
    password: Option<String>,
    link: Option<String>,
    sessions: BTreeSet<String>,
}

/// A change that was acknowledged, and what was true afterwards.
struct Step {
    sent: u64,
    acknowledged: u64,
    after: State,
}

/// Everything that was true at some time, to be asked for after a cut.
#[derive(Default)]
struct History {
    steps: Vec<Step>,
    links: Vec<String>,
    sessions: Vec<String>,
}

impl History {
    fn now(&self) -> State {
        self.steps.last().map(|step| step.after.clone()).unwrap_or_default()
    }

    fn add(&mut self, sent: u64, acknowledged: u64, after: State) {
        self.links.extend(after.link.clone().filter(|link| !self.links.contains(link)));
        let new = after.sessions.iter().filter(|session| !self.sessions.contains(session));
        self.sessions.extend(new.cloned().collect::<Vec<_>>());
        self.steps.push(Step { sent, acknowledged, after });
    }

    /// What may be true after a cut: the last acknowledged state, and the one on the way.
    fn possible(&self, moment: u64) -> Vec<State> {
        let done = self.steps.iter().rev().find(|step| step.acknowledged <= moment);
        let on_the_way = self.steps.iter().find(|step| step.sent <= moment && step.acknowledged > moment);
        let done = done.map(|step| step.after.clone()).unwrap_or_default();
        [done].into_iter().chain(on_the_way.map(|step| step.after.clone())).collect()
    }
}

fn app() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("graphql")).expect("created");
    std::fs::write(folder.path().join("graphql/schema.graphqls"), SCHEMA).expect("written");
    std::fs::write(folder.path().join("trefoil.toml"), MANIFEST).expect("written");
    folder
}

fn post(client: &mut Client, path: &str, cookie: &str, fields: &[(&str, &str)]) -> Reply {
    let encode = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let pairs: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
    client.form(path, cookie, &pairs.join("&")).expect("the server runs")
}

fn cookie_of(reply: &Reply) -> String {
    let lines = reply.headers_named("set-cookie");
    let line = lines.iter().find(|line| line.starts_with("trefoil=tfs_"));
    let line = line.unwrap_or_else(|| panic!("no session: {}", reply.text()));
    line.split(';').next().expect("a part").to_owned()
}

fn token_in(text: &str) -> Option<String> {
    let start = text.find("tfl_")?;
    let is_part = |letter: &char| letter.is_ascii_alphanumeric() || "-_".contains(*letter);
    Some(text[start..].chars().take_while(is_part).collect())
}

fn sign_in(client: &mut Client, login: &str, password: &str) -> Reply {
    post(client, "/_/sign-in", "", &[("login", login), ("password", password)])
}

/// Makes Ada with the link in the log, and Bob; Ada's session.
fn people(server: &Server, client: &mut Client) -> String {
    let began = Instant::now();
    // It comes after the server is ready.
    let link = loop {
        match token_in(&server.log()) {
            Some(link) => break link,
            None => assert!(began.elapsed() < Duration::from_secs(10), "no link in {}", server.log()),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let fields = [
        ("token", &*link),
        ("email", "ada@example.org"),
        ("role", "ADMIN"),
        ("password", PASSWORD),
        ("again", PASSWORD),
    ];
    assert_eq!(post(client, "/_/link", "", &fields).status, 303);
    let ada = cookie_of(&sign_in(client, "ada@example.org", PASSWORD));
    assert_eq!(post(client, "/users", &ada, &[("email", "bob@example.org")]).status, 303);
    ada
}

/// Goes through everything that changes what Bob signs in with, `rounds` times.
fn live(rig: &Rig, client: &mut Client, ada: &str, rounds: usize) -> History {
    let mut history = History::default();
    for round in 0..rounds {
        let (sent, mut state) = (rig.moment(), history.now());
        let made = post(client, "/_/accounts/2/link", ada, &[]);
        let link = token_in(&made.text()).unwrap_or_else(|| panic!("no link: {}", made.text()));
        state.link = Some(link.clone());
        history.add(sent, rig.moment(), state);

        let (sent, password) = (rig.moment(), format!("chosen in round {round}"));
        let fields = [("token", &*link), ("password", &*password), ("again", &*password)];
        assert_eq!(post(client, "/_/link", "", &fields).status, 303);
        let state = State { password: Some(password.clone()), ..State::default() };
        history.add(sent, rig.moment(), state);

        for _ in 0..2 {
            let (sent, mut state) = (rig.moment(), history.now());
            state.sessions.insert(cookie_of(&sign_in(client, "bob@example.org", &password)));
            history.add(sent, rig.moment(), state);
        }

        let session = history.now().sessions.first().expect("signed in").clone();
        let (sent, changed) = (rig.moment(), format!("changed in round {round}"));
        let fields = [("current", &*password), ("password", &*changed), ("again", &*changed)];
        let reply = post(client, "/_/account/password", &session, &fields);
        let sessions = BTreeSet::from([cookie_of(&reply)]);
        history.add(sent, rig.moment(), State { password: Some(changed), link: None, sessions });

        if round % 2 == 0 {
            let (sent, mut state) = (rig.moment(), history.now());
            let session = state.sessions.pop_first().expect("signed in");
            assert_eq!(post(client, "/_/sign-out", &session, &[]).status, 303);
            history.add(sent, rig.moment(), state);
        }
    }
    history
}

/// What a server finds on a disk, of all that was ever true. Of the passwords only `candidates` are tried, the last.
fn find(client: &mut Client, history: &History, candidates: &[State]) -> State {
    let is_good = |client: &mut Client, session: &String| {
        let told = client.get_as("/_/me", session).expect("the server runs").json();
        told["kind"] == "account"
    };
    let sessions = history.sessions.iter().filter(|session| is_good(client, session)).cloned().collect();
    // Each that is not good counts as a guess.
    let links = history.links.iter().rev().take(20);
    let mut good = links
        .filter(|link| client.get(&format!("/_/link?token={link}")).expect("the server runs").status == 200);
    let link = good.next().cloned();
    assert_eq!(good.next(), None, "two links are good");
    let passwords: BTreeSet<&String> =
        candidates.iter().filter_map(|state| state.password.as_ref()).collect();
    let password = passwords
        .into_iter()
        .find(|password| sign_in(client, "bob@example.org", password).status == 303)
        .cloned();
    State { password, link, sessions }
}

#[test]
fn power_cut_leaves_no_sign_in_half_done() {
    let (rig, app) = (Rig::new(), app());
    let mut server = Server::serving_on(&rig, app.path());
    let mut client = server.client();
    let ada = people(&server, &mut client);
    let busy = rig.moment();
    let history = live(&rig, &mut client, &ada, if is_long() { 20 } else { 5 });
    server.kill();
    let mut cut_on_the_way = 0;
    rig::cuts(&rig, busy, if is_long() { 100 } else { 12 }, rig::seed(), |cut| {
        let restored = cut.restore();
        let server = Server::serving(&restored.folder(), app.path());
        let mut client = server.client();
        let possible = history.possible(cut.moment);
        cut_on_the_way += usize::from(possible.len() > 1);
        let found = find(&mut client, &history, &possible);
        assert!(
            possible.contains(&found),
            "cut at {} ({:?}): {found:#?}\nis none of {possible:#?}",
            cut.moment,
            cut.surviving
        );
        // Ada was signed in before, and there is a way in for her in any case.
        assert_eq!(client.get_as("/_/me", &ada).expect("the server runs").json()["kind"], "account");
    });
    assert!(cut_on_the_way > 0, "no cut was within a change");
}
