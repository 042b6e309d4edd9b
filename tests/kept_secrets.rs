//! After a run with marked keys, tokens and hidden values: none of them is anywhere but where it belongs.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::credentials::hmac_sha256;
use crate::support::{Process, Reply, command, postgres};

const SCHEMA: &str = r#"
enum Role { EDITOR ADMIN }
extend schema @allow(all: "role(ADMIN)")
type Person @account(login: "email", roles: "role") @allow(read: "this == me || role(EDITOR)") {
  id: ID!
  email: String! @unique
  role: Role @allow(write: "role(ADMIN)")
}
type Note @allow(read: "!private || author == me || role(EDITOR)", write: "role(EDITOR)") {
  id: ID!
  title: String! @unique
  private: Boolean! @default(value: false)
  author: Person @createdBy
  remark: String @allow(read: "role(EDITOR)")
}
"#;
const MANIFEST: &str = "[[auth.jwt]]\nissuer = \"own\"\naudience = \"shop\"\nsecret-env = \"TOKEN_SECRET\"\nroles = \"roles\"\n\
                        account = { claim = \"login\", field = \"email\" }\n";
const SECRET: &str = "marksecret-of-an-issuer-of-tokens-0123456789";
/// The login of an account: data for who may see the account, and in no log.
const LOGIN: &str = "marklogin@example.org";
/// The subject of a token.
const SUBJECT: &str = "marksubject-4711";
/// Values that only editors see.
const HIDDEN: [&str; 4] =
    ["marktitle-of-a-private-note", "markremark-one", "markremark-two", "markremark-three"];

/// A text that must not be found, and what it is called in a failure.
struct KeptText {
    name: String,
    text: String,
}

/// What something that was written or sent holds, in lower case.
struct Found {
    place: String,
    text: String,
}

impl Found {
    fn new(place: impl Into<String>, bytes: impl AsRef<[u8]>) -> Found {
        Found { place: place.into(), text: String::from_utf8_lossy(bytes.as_ref()).to_lowercase() }
    }

    /// As it is, or in hexadecimal digits, as PostgreSQL dumps bytes.
    fn has(&self, text: &str) -> bool {
        let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        self.text.contains(&text.to_lowercase()) || self.text.contains(&hex)
    }
}

struct SecretSite {
    folder: TempDir,
    store: Vec<String>,
    postgres: Option<String>,
}

impl SecretSite {
    fn new(postgres: Option<String>) -> SecretSite {
        let folder = tempfile::tempdir().expect("a folder");
        let database = postgres.clone().unwrap_or_else(|| "sqlite:".to_owned());
        let store = ["--data", "data", "--database", &database].map(str::to_owned).to_vec();
        let site = SecretSite { folder, store, postgres };
        let people = json!([{"id": 1, "email": LOGIN}, {"id": 2, "email": "bob@example.org"}]);
        let notes = json!([
            {"id": 1, "title": "for all", "remark": HIDDEN[1]},
            {"id": 2, "title": HIDDEN[0], "private": true, "authorId": 2},
        ]);
        for (name, text) in [
            ("app/graphql/schema.graphqls", SCHEMA.to_owned()),
            ("app/trefoil.toml", MANIFEST.to_owned()),
            ("app/seed/people.json", people.to_string()),
            ("app/seed/notes.json", notes.to_string()),
        ] {
            let path = site.path(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        site.run(&["reset", "app", "--yes"]);
        site
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let arguments: Vec<&str> =
            arguments.iter().copied().chain(self.store.iter().map(String::as_str)).collect();
        let ran = command(self.folder.path(), &arguments).output().expect("the binary runs");
        assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
        ran
    }

    fn key(&self, arguments: &[&str]) -> String {
        let made = self.run(&[&["key", "add"], arguments].concat());
        let out = String::from_utf8(made.stdout).expect("UTF-8");
        let key = out.split_whitespace().find(|word| word.starts_with("tfk_")).expect("a key").to_owned();
        assert!(!String::from_utf8_lossy(&made.stderr).contains(&key), "it is shown once");
        key
    }

    /// The whole store, as its database keeps it.
    fn stored(&self) -> Vec<Found> {
        match &self.postgres {
            Some(url) => {
                let dump = Command::new("pg_dump").arg(url).output().expect("pg_dump is installed");
                assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
                vec![Found::new("the dump of PostgreSQL", dump.stdout)]
            }
            None => files(&self.path("data")),
        }
    }
}

/// A folder with everything below it.
fn files(folder: &Path) -> Vec<Found> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => files(&path),
            false => vec![Found::new(path.display().to_string(), std::fs::read(&path).expect("readable"))],
        })
        .collect()
}

fn token(claims: Value, secret: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let mut all = json!({"iss": "own", "aud": "shop", "sub": SUBJECT, "exp": now + 600});
    for (name, value) in claims.as_object().expect("an object") {
        all[name] = value.clone();
    }
    let encode = |json: &Value| BASE64_URL_SAFE_NO_PAD.encode(json.to_string());
    let message = format!("{}.{}", encode(&json!({"alg": "HS256", "typ": "JWT"})), encode(&all));
    let signature = BASE64_URL_SAFE_NO_PAD.encode(hmac_sha256(secret.as_bytes(), message.as_bytes()));
    format!("{message}.{signature}")
}

fn whole(place: &str, reply: &Reply) -> Found {
    let mut bytes = Vec::new();
    for (name, value) in &reply.headers {
        bytes.extend(format!("{name}: {value}\n").into_bytes());
    }
    bytes.extend(&reply.body);
    Found::new(place, bytes)
}

#[test]
fn secrets_are_nowhere_but_where_they_belong() {
    for database in [None, Some(postgres::database())] {
        let site = SecretSite::new(database);
        let kept = Kept::new(&site);
        let answers = kept.run(&site);
        kept.check(&site, &answers);
    }
}

/// The credentials of the run.
struct Kept {
    /// With the role of editors, acting as an account, and one that is revoked in between.
    keys: [String; 3],
    /// Of a key that was never made.
    unknown: String,
    tokens: [String; 3],
}

/// What was sent to whom.
struct SentAnswers {
    to_editors: Vec<Found>,
    to_others: Vec<Found>,
    log: Vec<Found>,
}

impl Kept {
    fn new(site: &SecretSite) -> Kept {
        let keys = [
            site.key(&["marked-editor", "app", "--role", "EDITOR"]),
            site.key(&["marked-account", "app", "--as", LOGIN]),
            site.key(&["marked-revoked", "app", "--role", "EDITOR"]),
        ];
        // The last letters of a key check the others.
        let unknown = format!("{}{}", &keys[0][..30], &keys[1][30..]);
        let tokens = [
            token(json!({ "login": LOGIN }), SECRET),
            token(json!({ "exp": 1 }), SECRET),
            token(json!({ "roles": ["EDITOR"] }), "the secret of somebody else, as long as it"),
        ];
        Kept { keys, unknown, tokens }
    }

    /// Each text that is a credential, whole and in parts.
    fn texts(&self) -> Vec<KeptText> {
        let mut texts = Vec::new();
        let mut add = |name: String, text: String| texts.push(KeptText { name, text });
        for (at, key) in self.keys.iter().chain([&self.unknown]).enumerate() {
            add(format!("key {at}"), key[4..].to_owned());
            add(format!("the middle of key {at}"), key[14..40].to_owned());
            add(
                format!("key {at} as a password"),
                BASE64_STANDARD.encode(format!(":{key}"))[8..60].to_owned(),
            );
        }
        for (at, token) in self.tokens.iter().enumerate() {
            let parts: Vec<&str> = token.split('.').collect();
            add(format!("the claims of token {at}"), parts[1].to_owned());
            add(format!("the signature of token {at}"), parts[2].to_owned());
        }
        add("the secret of the issuer".to_owned(), SECRET.to_owned());
        add("the subject of a token".to_owned(), SUBJECT.to_owned());
        texts
    }

    /// Reads, writes, mistakes and refusals by all of them, on every face.
    fn run(&self, site: &SecretSite) -> SentAnswers {
        let arguments = ["serve", "app"].into_iter().chain(site.store.iter().map(String::as_str));
        let variables = [("TOKEN_SECRET", SECRET), ("RUST_LOG", "info,trefoil=debug")];
        let server = Process::start_with(site.folder.path(), &arguments.collect::<Vec<_>>(), &variables);
        let mut sent = SentAnswers { to_editors: Vec::new(), to_others: Vec::new(), log: Vec::new() };
        let bearer = |text: &str| Some(format!("Bearer {text}"));
        let basic = |key: &str| Some(format!("Basic {}", BASE64_STANDARD.encode(format!(":{key}"))));
        // With a key as password any name of a user is as good.
        let named = Some(format!("Basic {}", BASE64_STANDARD.encode(format!("ada:{}", self.keys[0]))));
        let editors = [bearer(&self.keys[0]), basic(&self.keys[0]), bearer(&self.keys[2]), named];
        let others = [
            None,
            bearer(&self.keys[1]),
            basic(&self.keys[1]),
            bearer(&self.unknown),
            basic(&self.unknown),
            bearer(&self.tokens[0]),
            bearer(&self.tokens[1]),
            bearer(&self.tokens[2]),
            Some(format!("Basic {}", BASE64_STANDARD.encode("ada:her password"))),
        ];
        // Who listens while others write.
        let listeners: Vec<_> = [&others[0], &others[1], &others[5]]
            .map(|asker| {
                let (address, asker) = (server.address, asker.clone());
                std::thread::spawn(move || {
                    let mut client = crate::support::Client::to(address);
                    let headers = headers_of(asker.as_deref(), "text/event-stream", "");
                    let headers: Vec<(&str, &str)> =
                        headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
                    let last = |reply: &Reply| String::from_utf8_lossy(&reply.body).contains("the end");
                    let reply = client.send_until("GET", "/notes", &headers, b"", last);
                    whole("events of others", &reply)
                })
            })
            .into();
        std::thread::sleep(Duration::from_millis(500));
        for asker in &editors {
            sent.to_editors.extend(ask_everything(&server, asker.as_deref(), true));
        }
        for asker in &others {
            sent.to_others.extend(ask_everything(&server, asker.as_deref(), false));
        }
        // A key in an address is no credential, and addresses are logged without their queries.
        for path in ["/notes", "/graphql", "/", "/notes/1", "/nowhere"] {
            server.client().send(
                "GET",
                &format!("{path}?access_token={}&key={}", self.keys[0], self.tokens[0]),
                &[],
                b"",
            );
        }
        site.run(&["key", "revoke", "marked-revoked", "app"]);
        sent.to_others.extend(ask_everything(&server, editors[2].as_deref(), false));
        let note = json!({ "title": "the end" }).to_string();
        let reply = request(&server, "POST", "/notes", editors[0].as_deref(), "application/json", &note);
        assert_eq!(reply.status, 201, "{}", reply.text());
        sent.to_others.extend(listeners.into_iter().map(|listener| listener.join().expect("no panic")));
        // Gathered lines are written a moment later.
        std::thread::sleep(Duration::from_millis(200));
        sent.log.push(Found::new("metrics", server.client().send("GET", "/metrics", &[], b"").body));
        sent.log.push(Found::new("the log", server.log()));
        sent.log.push(Found::new("what the server prints", server.said()));
        sent
    }

    fn check(&self, site: &SecretSite, sent: &SentAnswers) {
        let backup = site.path("backup.trefoil").display().to_string();
        site.run(&["backup", "app", "--to", &backup]);
        let csv = site.path("csv").display().to_string();
        site.run(&["export", "app", "--format", "csv", "--to", &csv]);
        let lines = site.run(&["export", "app"]).stdout;
        let listed = site.run(&["key", "list", "app"]).stdout;
        let exports: Vec<Found> =
            files(Path::new(&csv)).into_iter().chain([Found::new("an export", lines)]).collect();
        let stored: Vec<Found> = site
            .stored()
            .into_iter()
            .chain([Found::new("a backup", std::fs::read(&backup).expect("a backup"))])
            .collect();
        let mut wrong = Vec::new();
        let mut looked = 0;
        for KeptText { name, text } in self.texts() {
            let places = [&sent.to_editors, &sent.to_others, &sent.log, &exports, &stored];
            for place in places.into_iter().flatten() {
                looked += 1;
                if place.has(&text) {
                    wrong.push(format!("{name} is in {}", place.place));
                }
            }
        }
        for hidden in HIDDEN {
            for place in sent.to_others.iter().chain(&sent.log) {
                looked += 1;
                if place.has(hidden) {
                    wrong.push(format!("{hidden} is in {}", place.place));
                }
            }
        }
        for place in &sent.log {
            if place.has(LOGIN) {
                wrong.push(format!("{LOGIN} is in {}", place.place));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        // The same search finds what is there.
        let is_in = |places: &[Found], text: &str| places.iter().any(|place| place.has(text));
        for hidden in HIDDEN {
            assert!(is_in(&stored, hidden) && is_in(&sent.to_editors, hidden), "{hidden} is nowhere");
        }
        assert!(is_in(&exports, HIDDEN[0]) && is_in(&exports, LOGIN));
        assert!(is_in(&stored, "marked-editor") && is_in(&sent.log, "key:marked-editor"));
        assert!(is_in(&[Found::new("the list of keys", listed)], "marked-account"));
        assert!(is_in(&sent.to_others, "for all") && is_in(&sent.to_others, "the end"));
        eprintln!(
            "kept secrets: {looked} searches, {} answers",
            sent.to_editors.len() + sent.to_others.len()
        );
    }
}

fn headers_of(asker: Option<&str>, accept: &str, content: &str) -> Vec<(&'static str, String)> {
    let mut headers = vec![("Accept", accept.to_owned())];
    headers.extend(asker.map(|asker| ("Authorization", asker.to_owned())));
    if !content.is_empty() {
        headers.push(("Content-Type", content.to_owned()));
    }
    headers
}

fn request(
    server: &Process,
    method: &str,
    path: &str,
    asker: Option<&str>,
    accept: &str,
    body: &str,
) -> Reply {
    let content = match body.chars().next() {
        None => "",
        Some('{' | '[') => "application/json",
        Some(_) => "application/x-www-form-urlencoded",
    };
    let headers = headers_of(asker, accept, content);
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    server.client().send(method, path, &headers, body.as_bytes())
}

/// What an actor asks, on every face, with mistakes. Only who may write does so with hidden values.
fn ask_everything(server: &Process, asker: Option<&str>, is_editor: bool) -> Vec<Found> {
    let mut asked = Vec::new();
    let (json, html) = ("application/json", "text/html");
    let reads = [
        "/",
        "/notes",
        "/notes/1",
        "/notes/2",
        "/notes/99",
        "/notes?sort=title",
        "/notes?sort=remark",
        "/notes?q=mark",
        "/notes?remark=x",
        "/notes?fields=id,remark",
        "/notes?format=csv",
        "/notes?format=ndjson",
        "/people",
        "/people/2/notes",
        "/notes/-/summary",
        "/notes/1/edit",
        "/notes/new",
        "/openapi.json",
        "/docs",
        "/_/me",
        "/graphql/schema.graphqls",
        "/nowhere",
        "/notes?aggregate=count&group=remark",
        "/notes?cursor=x",
    ];
    for path in reads {
        for accept in [json, html] {
            asked.push((path.to_owned(), request(server, "GET", path, asker, accept, "")));
        }
    }
    let documents = [
        "{ notes { id title remark author { email } } }",
        "{ notes(where: {remark_contains: \"mark\"}) { id } }",
        "{ notesConnection(first: 1, orderBy: [\"title\"]) { edges { cursor node { title remark } } } }",
        "{ notesAggregate(groupBy: [\"remark\"]) { key count max { title } } }",
        "{ note(id: 2) { title } people { email } }",
        "{ notes { nothing } }",
        "{ notes ",
        "mutation { deleteNote(id: 99) { title } }",
        "mutation { updateNote(id: 2, input: {private: true}, expectedVersion: 99) { title remark } }",
        "mutation { createNote(input: {title: \"for all\"}) { title } }",
        "{ __schema { types { name fields { name } } } }",
    ];
    for document in documents {
        let body = json!({ "query": document }).to_string();
        asked.push((document.to_owned(), request(server, "POST", "/graphql", asker, json, &body)));
    }
    let mut writes = vec![
        ("POST", "/notes", r#"{"title": "for all"}"#.to_owned()),
        ("POST", "/notes", r#"{"title": 5, "nothing": 1}"#.to_owned()),
        ("PATCH", "/notes/2", r#"{"private": "maybe"}"#.to_owned()),
        ("PUT", "/notes/2", "{".to_owned()),
        ("DELETE", "/people/2", String::new()),
        ("POST", "/notes", "title=".to_owned()),
        ("POST", "/notes/2", "title=&-version=99".to_owned()),
        ("POST", "/notes/2/delete", "-version=99".to_owned()),
        (
            "POST",
            "/_/batch",
            r#"[{"method": "GET", "path": "/notes"}, {"method": "GET", "path": "/notes/2"}]"#.to_owned(),
        ),
    ];
    if is_editor {
        for remark in &HIDDEN[2..] {
            writes.push(("PATCH", "/notes/1", json!({ "remark": remark }).to_string()));
        }
    }
    for (method, path, body) in &writes {
        for accept in [json, html] {
            asked.push((format!("{method} {path}"), request(server, method, path, asker, accept, body)));
        }
    }
    asked
        .iter()
        .map(|(name, reply)| whole(&format!("the answer to {name} ({})", reply.status), reply))
        .collect()
}
