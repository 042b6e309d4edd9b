//! API keys and tokens: made with commands, presented in requests, and refused as soon as they are no longer good.

use std::process::Output;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::nodes::proxy::{Mode, Proxy};
use crate::support::{Process, Reply, command, postgres};

const SCHEMA: &str = r#"
enum Role { AUTHOR EDITOR ADMIN }
extend schema @allow(all: "role(ADMIN)")
type User @account(login: "email", roles: "role", if: "!blocked") @allow(read: "this == me || role(EDITOR)") {
  id: ID!
  email: String! @unique @email
  role: Role @allow(write: "role(ADMIN)")
  blocked: Boolean! @default(value: false) @allow(write: "role(ADMIN)")
}
type Query { users: [User!]! }
type Mutation { updateUser(id: ID!, blocked: Boolean, role: Role): User  deleteUser(id: ID!): User }
"#;
const USERS: &str =
    r#"[{"id": 1, "email": "ada@example.org", "role": "AUTHOR"}, {"id": 2, "email": "bob@example.org"}]"#;
pub const SECRET: &str = "a secret of at least thirty-two bytes";

/// An application with rules, and a store.
struct Site {
    folder: TempDir,
    store: Vec<String>,
}

impl Site {
    fn new(store: &[&str], manifest: &str) -> Site {
        let site = Site {
            folder: tempfile::tempdir().expect("a folder"),
            store: store.iter().map(|flag| (*flag).to_owned()).collect(),
        };
        site.put("app/graphql/schema.graphqls", SCHEMA);
        site.put("app/seed/users.json", USERS);
        site.put("app/trefoil.toml", manifest);
        site.must(&["reset", "app", "--yes"]);
        site
    }

    /// One on each kind of store.
    fn both(manifest: &str) -> [Site; 2] {
        let url = postgres::database();
        [
            Site::new(&["--database", "sqlite:", "--data", "data"], manifest),
            Site::new(&["--database", &url], manifest),
        ]
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("created");
        std::fs::write(path, text).expect("written");
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let arguments: Vec<&str> =
            arguments.iter().copied().chain(self.store.iter().map(String::as_str)).collect();
        command(self.folder.path(), &arguments).output().expect("the binary runs")
    }

    /// What a command that succeeds prints.
    fn must(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).expect("UTF-8").trim_end().to_owned()
    }

    fn refused(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.status.code(), Some(2), "{arguments:?}");
        String::from_utf8(ran.stderr).expect("UTF-8")
    }

    fn serve(&self) -> Process {
        let arguments = ["serve", "app"].into_iter().chain(self.store.iter().map(String::as_str));
        Process::start_with(self.folder.path(), &arguments.collect::<Vec<_>>(), &[("TOKEN_SECRET", SECRET)])
    }
}

#[test]
fn keys_are_made_listed_and_revoked() {
    for site in Site::both("") {
        assert_eq!(site.must(&["key", "list", "app"]), "");
        let key = site.must(&["key", "add", "ci", "app", "--role", "EDITOR", "--role", "AUTHOR"]);
        assert!(key.starts_with("tfk_") && key.len() == 53, "{key}");
        site.must(&[
            "key",
            "add",
            "nightly",
            "app",
            "--role",
            "ADMIN",
            "--as",
            "ADA@example.org",
            "--expires",
            "90d",
            "--from",
            "10.0.0.0/8,::1",
        ]);
        let table = site.must(&["key", "list", "app"]);
        let lines: Vec<Vec<&str>> = table
            .lines()
            .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
            .collect();
        assert_eq!(lines[0], ["name", "roles", "acts as", "expires", "from", "made", "last used"]);
        assert_eq!(lines[1][..5], ["ci", "AUTHOR,EDITOR", "-", "-", "-"], "{table}");
        assert_eq!(lines[2][..3], ["nightly", "ADMIN", "User 1"], "{table}");
        assert_eq!(lines[2][4..], ["10.0.0.0/8,::1/128", lines[1][5], "never"], "{table}");
        assert!(!table.contains(&key[4..20]), "{table}");

        for (arguments, words) in [
            (vec!["add", "ci", "app"], "there is a key `ci` already"),
            (vec!["add", "x", "app", "--role", "EDTIOR"], "no role `EDTIOR`; did you mean `EDITOR`?"),
            (vec!["add", "x", "app", "--role", "OWNER"], "it has AUTHOR, EDITOR, ADMIN"),
            (vec!["add", "x", "app", "--as", "eve@example.org"], "there is no account \"eve@example.org\""),
            (vec!["add", "x", "app", "--expires", "soon"], "is not a duration"),
            (vec!["add", "x", "app", "--from", "10.1.2.3/8"], "did you mean \"10.0.0.0/8\"?"),
            (vec!["add", "a b", "app"], "cannot be the name of a key"),
            (vec!["revoke", "nightyl", "app"], "there is no key `nightyl`; did you mean `nightly`?"),
        ] {
            let said = site.refused(&[&["key"], arguments.as_slice()].concat());
            assert!(said.contains(words), "{arguments:?}: {said}");
        }
        site.must(&["key", "revoke", "nightly", "app"]);
        assert!(!site.must(&["key", "list", "app"]).contains("nightly"));
        // Its name is free again.
        assert_ne!(site.must(&["key", "add", "nightly", "app"]), key);
    }
}

#[test]
fn an_open_application_has_no_keys() {
    let site = Site::new(&["--database", "sqlite:", "--data", "data"], "");
    site.put(
        "app/graphql/schema.graphqls",
        "type User { id: ID!  email: String! }\ntype Query { users: [User!]! }\n",
    );
    let arguments = ["key", "add", "ci", "app", "--database", "sqlite:", "--data", "other"];
    let ran = command(site.folder.path(), &arguments).output().expect("the binary runs");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(2), "{said}");
    assert!(said.contains("the application is open"), "{said}");
}

const TEXTS: &str = "[[text]]\npath = \"/hello\"\ntext = \"Hello\"\n\
                     [[text]]\npath = \"/secret\"\ntext = \"Secret\"\nallow = \"role(EDITOR)\"\n";

fn ask(server: &Process, headers: &[(&str, &str)]) -> Reply {
    server.client().send("GET", "/users", headers, b"")
}

fn with_key(server: &Process, key: &str) -> Reply {
    ask(server, &[("Authorization", &format!("Bearer {key}")), ("Accept", "application/json")])
}

#[test]
fn keys_are_good_until_they_are_revoked() {
    for site in Site::both(TEXTS) {
        let key = site.must(&["key", "add", "ci", "app", "--role", "EDITOR"]);
        let server = site.serve();
        assert_eq!(with_key(&server, &key).status, 200);
        let basic = format!("Basic {}", BASE64_STANDARD.encode(format!(":{key}")));
        assert_eq!(ask(&server, &[("Authorization", &basic)]).status, 200);
        server.wait_for("\"actor\":\"key:ci\"");

        let anonymous = ask(&server, &[("Accept", "application/json")]);
        assert_eq!(anonymous.header("www-authenticate"), Some("Bearer realm=\"app\""));
        assert_eq!((anonymous.status, anonymous.json()["code"].as_str()), (401, Some("UNAUTHENTICATED")));
        let (flaw, other) = (key.replace("tfk_", "tfk_A"), format!("{}A", &key[..52]));
        for wrong in
            ["Bearer", "Bearer x", &format!("Bearer {flaw}"), &format!("Bearer {other}"), "Basic YTpi"]
        {
            let refused = ask(&server, &[("Authorization", wrong)]);
            assert_eq!(refused.status, 401, "{wrong}");
            let challenge = Some("Bearer realm=\"app\", error=\"invalid_token\"");
            assert_eq!(refused.header("www-authenticate"), challenge);
        }
        let one = ("Authorization", &*format!("Bearer {key}"));
        let twice = ask(&server, &[one, one, ("Accept", "application/json")]);
        assert_eq!((twice.status, twice.json()["code"].as_str()), (400, Some("MALFORMED_CREDENTIAL")));
        // What is public looks at no credential.
        for public in ["/hello", "/health/live"] {
            assert_eq!(
                server.client().send("GET", public, &[("Authorization", "Bearer x")], b"").status,
                200
            );
        }
        let secret = |key: &str| {
            let headers = [("Authorization", &*format!("Bearer {key}"))];
            server.client().send("GET", "/secret", &headers, b"").status
        };
        assert_eq!([secret(&key), secret(&other)], [200, 401]);
        let used =
            || site.must(&["key", "list", "app"]).lines().nth(1).is_some_and(|line| !line.ends_with("never"));
        assert!((0..50).any(|_| used()), "the use is not recorded");

        // Not one request after the command has ended.
        site.must(&["key", "revoke", "ci", "app"]);
        assert_eq!(with_key(&server, &key).status, 401);
        assert!(!server.log().contains(&key[4..]), "the key is in the log");
    }
}

#[test]
fn keys_of_accounts_end_with_them() {
    for site in Site::both("") {
        let admin = site.must(&["key", "add", "admin", "app", "--role", "ADMIN"]);
        let ada = site.must(&["key", "add", "ada", "app", "--as", "ada@example.org"]);
        let bob = site.must(&["key", "add", "bob", "app", "--as", "bob@example.org"]);
        let server = site.serve();
        let emails = |key: &str| {
            let users = with_key(&server, key).json();
            let users = users.as_array().cloned().unwrap_or_default();
            users.iter().map(|user| user["email"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(emails(&ada), ["ada@example.org"]);
        assert_eq!(emails(&admin).len(), 2);
        let change = |query: &str| {
            let body = json!({ "query": query }).to_string();
            let headers =
                [("Authorization", &*format!("Bearer {admin}")), ("Content-Type", "application/json")];
            let reply = server.client().send("POST", "/graphql", &headers, body.as_bytes()).json();
            assert!(reply.get("errors").is_none(), "{reply}");
        };
        change("mutation { updateUser(id: 1, blocked: true) { id } }");
        assert_eq!(with_key(&server, &ada).status, 401);
        change("mutation { updateUser(id: 1, blocked: false) { id } }");
        assert_eq!(emails(&ada), ["ada@example.org"]);
        assert_eq!(emails(&bob), ["bob@example.org"]);
        change("mutation { deleteUser(id: 2) { id } }");
        assert_eq!(with_key(&server, &bob).status, 401);
        assert!(!site.must(&["key", "list", "app"]).contains("bob"));
        // Whoever gets the id next has no key of the one before.
        site.put("new/users.ndjson", "{\"id\": 2, \"email\": \"eve@example.org\", \"blocked\": false}\n");
        site.must(&["import", "app", "--from", "new"]);
        assert_eq!(emails(&admin).len(), 2);
        assert_eq!(with_key(&server, &bob).status, 401);
        assert_eq!(emails(&ada), ["ada@example.org"]);
    }
}

const RENAMED: &str = r#"
enum Role { AUTHOR EDITOR ADMIN }
type Person @renamedFrom(name: "User") @resource(path: "users") @account(login: "email", roles: "role") @allow(read: "this == me") {
  id: ID!
  email: String! @unique @email
  role: Role @allow(write: "role(ADMIN)")
  blocked: Boolean! @default(value: false)
}
type Query { people: [Person!]! }
"#;

#[test]
fn keys_follow_their_account_to_another_name() {
    for site in Site::both("") {
        let ada = site.must(&["key", "add", "ada", "app", "--as", "ada@example.org"]);
        site.put("app/graphql/schema.graphqls", RENAMED);
        std::fs::remove_file(site.folder.path().join("app/seed/users.json")).expect("removed");
        let server = site.serve();
        let people = with_key(&server, &ada);
        assert_eq!((people.status, people.json()[0]["email"].as_str()), (200, Some("ada@example.org")));
    }
}

#[test]
fn keys_hold_for_their_time_and_networks() {
    let site = Site::new(&["--database", "sqlite:", "--data", "data"], "");
    let brief = site.must(&["key", "add", "brief", "app", "--role", "ADMIN", "--expires", "4s"]);
    let far = site.must(&["key", "add", "far", "app", "--role", "ADMIN", "--from", "10.0.0.0/8"]);
    let near = site.must(&["key", "add", "near", "app", "--role", "ADMIN", "--from", "127.0.0.0/8"]);
    let server = site.serve();
    assert_eq!(with_key(&server, &near).status, 200);
    assert_eq!(with_key(&server, &far).status, 401);
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(with_key(&server, &brief).status, 401);
}

pub const ISSUER: &str = "[[auth.jwt]]\nissuer = \"own\"\naudience = \"shop\"\nsecret-env = \"TOKEN_SECRET\"\nroles = \"roles\"\n\
                      account = { claim = \"email\", field = \"email\" }\n";

pub fn token(claims: Value, secret: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let mut all = json!({"iss": "own", "aud": "shop", "sub": "ada", "exp": now + 60});
    for (name, value) in claims.as_object().expect("an object") {
        all[name] = value.clone();
    }
    let encode = |json: &Value| BASE64_URL_SAFE_NO_PAD.encode(json.to_string());
    let message = format!("{}.{}", encode(&json!({"alg": "HS256", "typ": "JWT"})), encode(&all));
    let signature = hmac_sha256(secret.as_bytes(), message.as_bytes());
    format!("{message}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
}

/// Of another implementation than the server's: that of OpenSSL.
pub fn hmac_sha256(secret: &[u8], message: &[u8]) -> Vec<u8> {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let key: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut openssl = Command::new("openssl")
        .args(["dgst", "-sha256", "-mac", "HMAC", "-macopt", &format!("hexkey:{key}"), "-binary"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("openssl runs");
    openssl.stdin.take().expect("piped").write_all(message).expect("written");
    openssl.wait_with_output().expect("ended").stdout
}

#[test]
fn tokens_say_who_asks() {
    for site in Site::both(ISSUER) {
        let server = site.serve();
        let seen = |claims: Value| {
            let reply = with_key(&server, &token(claims, SECRET));
            (reply.status, reply.json().as_array().map(Vec::len))
        };
        assert_eq!(seen(json!({"roles": ["EDITOR", "unknown"]})), (200, Some(2)));
        assert_eq!(seen(json!({"email": "ada@example.org", "email_verified": true})), (200, Some(1)));
        // Signed in, and nobody whose record the rules could mean.
        assert_eq!(seen(json!({"email": "ada@example.org"})).0, 403);
        assert_eq!(seen(json!({"email": "eve@example.org", "email_verified": true})).0, 403);
        assert_eq!(seen(json!({"exp": 1})).0, 401);
        assert_eq!(seen(json!({"aud": "other"})).0, 401);
        assert_eq!(with_key(&server, &token(json!({}), "another secret")).status, 401);
        server.wait_for("\"actor\":\"token:1/");
        assert!(!server.log().contains("ada"), "{}", server.log());
    }
}

/// Whatever a credential proved in the request before, and whatever the request does with it.
#[test]
fn credentials_prove_what_is_true_at_each_request() {
    for site in Site::both(ISSUER) {
        let operator = format!("Bearer {}", site.must(&["key", "add", "operator", "app", "--role", "ADMIN"]));
        let key = site.must(&["key", "add", "ada", "app", "--as", "ada@example.org", "--role", "EDITOR"]);
        let token = token(json!({"email": "ada@example.org", "email_verified": true}), SECRET);
        let server = site.serve();
        let graphql = |credential: &str, query: &str| {
            let body = json!({ "query": query }).to_string();
            let headers = [("Authorization", credential), ("Content-Type", "application/json")];
            server.client().send("POST", "/graphql", &headers, body.as_bytes())
        };
        let change = |query: &str| {
            let reply = graphql(&operator, query);
            assert!(!reply.text().contains("errors"), "{}", reply.text());
        };
        for round in 0..6 {
            let (is_blocked, is_admin) = (round % 3 == 2, round % 2 == 1);
            let role = if is_admin { "ADMIN" } else { "AUTHOR" };
            change(&format!(
                "mutation {{ updateUser(id: 1, blocked: {is_blocked}, role: {role}) {{ id }} }}"
            ));
            for (credential, sees_all, may_write) in [(&key, true, false), (&token, is_admin, is_admin)] {
                let credential = &format!("Bearer {credential}");
                // A page of its own, a document, and a write.
                let page = ask(&server, &[("Authorization", credential), ("Accept", "application/json")]);
                let document = graphql(credential, "{ users { id } }");
                let write = graphql(credential, "mutation { updateUser(id: 2, role: EDITOR) { role } }");
                let place = format!("round {round}: {} {} {}", page.text(), document.text(), write.text());
                if is_blocked {
                    assert_eq!([page.status, document.status, write.status], [401; 3], "{place}");
                    continue;
                }
                let count = if sees_all { 2 } else { 1 };
                assert_eq!(page.json().as_array().map(Vec::len), Some(count), "{place}");
                assert_eq!(document.json()["data"]["users"].as_array().map(Vec::len), Some(count), "{place}");
                assert_eq!(write.text().contains("EDITOR"), may_write, "{place}");
            }
        }
    }
}

/// The store is asked about a credential while the request reads, not before.
#[test]
fn reads_wait_for_the_database_once() {
    const LATE: Duration = Duration::from_millis(150);
    let url = postgres::database();
    let address = url.split('@').next_back().and_then(|rest| rest.split('/').next()).expect("an address");
    let proxy = Proxy::to(address.parse().expect("an address"));
    let site = Site::new(&["--database", &url.replace(address, &proxy.address.to_string())], ISSUER);
    let key = site.must(&["key", "add", "ada", "app", "--as", "ada@example.org", "--role", "EDITOR"]);
    let token = token(json!({"email": "ada@example.org", "email_verified": true}), SECRET);
    let server = site.serve();
    for credential in [&key, &token] {
        let read = || {
            let begin = std::time::Instant::now();
            assert_eq!(with_key(&server, credential).status, 200);
            begin.elapsed()
        };
        // Statements are prepared on every connection.
        for _ in 0..20 {
            read();
        }
        proxy.set(Mode::Late(LATE));
        let fastest = (0..5).map(|_| read()).min().expect("reads");
        proxy.set(Mode::Pass);
        // There and back.
        assert!(fastest >= LATE * 2 && fastest < LATE * 3, "{fastest:?}");
    }
}

/// SQLite tells that something was written, and the change log that it was about an identity.
#[test]
fn what_other_programs_write_counts_in_the_next_request() {
    let site = Site::new(&["--database", "sqlite:", "--data", "data"], ISSUER);
    let ada = site.must(&["key", "add", "ada", "app", "--as", "ada@example.org"]);
    let editor = site.must(&["key", "add", "editor", "app", "--role", "EDITOR"]);
    let eve = token(json!({"email": "eve@example.org", "email_verified": true}), SECRET);
    let server = site.serve();
    let database = rusqlite::Connection::open(site.folder.path().join("data/trefoil.db")).expect("a store");
    let seen = |credential: &str| {
        let reply = with_key(&server, credential);
        (reply.status, reply.json().as_array().map(Vec::len))
    };
    let expect = |sql: &str, expected: [(u16, Option<usize>); 3]| {
        database.execute_batch(sql).expect("written");
        assert_eq!([&ada, &editor, &eve].map(|credential| seen(credential)), expected, "after {sql}");
    };
    let (refused, forbidden) = ((401, None), (403, None));
    let some = |count| (200, Some(count));
    expect("SELECT 1", [some(1), some(2), forbidden]);
    expect("INSERT INTO users (email, blocked) VALUES ('eve@example.org', 0)", [some(1), some(3), some(1)]);
    expect(
        "INSERT OR REPLACE INTO users (id, email, blocked) VALUES (1, 'ada@example.org', 1)",
        [refused, some(3), some(1)],
    );
    expect("UPDATE users SET blocked = 0 WHERE id = 1", [some(1), some(3), some(1)]);
    expect(
        "INSERT OR REPLACE INTO trefoil_api_keys SELECT hash, name, '[]', account_type, account, expires, networks, \
         created, used FROM trefoil_api_keys WHERE name = 'editor'",
        [some(1), forbidden, some(1)],
    );
    expect(
        "UPDATE trefoil_api_keys SET roles = '[\"EDITOR\"]' WHERE name = 'editor'",
        [some(1), some(3), some(1)],
    );
    expect("UPDATE trefoil_api_keys SET roles = '[]' WHERE name = 'editor'", [some(1), forbidden, some(1)]);
    expect("DELETE FROM trefoil_api_keys WHERE name = 'editor'", [some(1), refused, some(1)]);
    expect("ALTER TABLE trefoil_api_keys RENAME TO kept_keys", [refused, refused, some(1)]);
    expect("ALTER TABLE kept_keys RENAME TO trefoil_api_keys", [some(1), refused, some(1)]);
    expect("DELETE FROM users WHERE id = 1", [refused, refused, some(1)]);
}

#[test]
fn tokens_wait_for_the_keys_of_their_issuer() {
    let manifest =
        "[[auth.jwt]]\nissuer = \"own\"\naudience = \"shop\"\njwks = \"http://127.0.0.1:9/keys\"\n";
    let site = Site::new(&["--database", "sqlite:", "--data", "data"], manifest);
    let server = site.serve();
    let header = BASE64_URL_SAFE_NO_PAD.encode("{\"alg\":\"RS256\"}");
    let hmac = token(json!({}), SECRET);
    let (_, rest) = hmac.split_once('.').expect("three parts");
    let reply = with_key(&server, &format!("{header}.{rest}"));
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("5")));
    // A start does not wait, and keys are good meanwhile.
    let key = site.must(&["key", "add", "ci", "app", "--role", "ADMIN"]);
    assert_eq!(with_key(&server, &key).status, 200);
}

#[test]
fn mistakes_about_issuers_are_found_before_a_start() {
    let site = Site::new(&["--database", "sqlite:", "--data", "data"], "");
    let check = |manifest: &str| {
        site.put("app/trefoil.toml", manifest);
        let ran = command(site.folder.path(), &["check", "app"]).output().expect("the binary runs");
        let text = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
        (ran.status.code(), text)
    };
    let (code, said) = check(ISSUER);
    assert_eq!(code, Some(0), "{said}");
    for (wrong, words) in [
        (
            format!("{ISSUER}role-map = {{ admins = \"ADMNI\" }}\n"),
            "no role `ADMNI` for \"admins\"; did you mean `ADMIN`?",
        ),
        (ISSUER.replace("field = \"email\"", "field = \"role\""), "`role` is not a @unique field of `User`"),
        (ISSUER.replace("secret-env", "secrets"), "unknown key `secrets` in [[auth.jwt]]"),
    ] {
        let (code, said) = check(&wrong);
        let said = said.replace("\n", " ");
        let has = words.split("; ").all(|part| said.contains(part));
        assert!(code == Some(1) && has, "{wrong}\n{said}");
    }
}
