//! Accounts: OpenID providers as an application declares them. `e2e/sign-in.test.mjs` signs people in with real ones.

use std::process::Output;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use super::{HTML, MANIFEST, Site, cookie_of, form, get, html, me, sign_in, use_link};
use crate::credentials::hmac_sha256;
use crate::support::command;

/// Nobody listens there.
const DOWN: &str = "http://127.0.0.1:9";

fn provider(lines: &str) -> String {
    format!(
        "{MANIFEST}[[auth.oidc]]\nname = \"Company login\"\nissuer = \"{DOWN}\"\nclient-id = \"shop\"\n{lines}"
    )
}

const ACCOUNT: &str = "account = { claim = \"email\", field = \"email\" }\n";

fn check(site: &Site) -> Output {
    command(site.folder.path(), &["check", "app"]).output().expect("the binary runs")
}

#[test]
fn providers_that_do_not_fit_the_schema_are_told_with_their_lines() {
    let [site, _] = Site::both();
    for (lines, place, message) in [
        (
            "account = { claim = \"email\", field = \"name\" }",
            "8:11",
            "`name` is not a @unique field of `User`",
        ),
        (
            "account = { claim = \"email\", field = \"mail\" }",
            "8:11",
            "`mail` is not a @unique field of `User`",
        ),
        ("fields = { nmae = \"name\" }", "8:10", "`User` has no field `nmae`"),
        ("fields = { id = \"sub\" }", "8:10", "`id` of `User` is no value that can be set"),
        ("roles = \"r\"\nrole-map = { a = \"ADMNI\" }", "9:12", "the schema has no role `ADMNI` for \"a\""),
        ("client-secret = \"x\"", "8:1", "unknown key `client-secret` in [[auth.oidc]]"),
    ] {
        site.put("app/trefoil.toml", &provider(lines));
        let checked = check(&site);
        let said = String::from_utf8_lossy(&checked.stdout) + String::from_utf8_lossy(&checked.stderr);
        assert!(!checked.status.success(), "{lines}");
        for part in [message, &format!("trefoil.toml:{place}")] {
            assert!(said.contains(part), "{lines} has no {part}: {said}");
        }
        let started = site.run(&["serve", "app"], "");
        assert!(!started.status.success(), "{lines}");
        assert!(String::from_utf8_lossy(&started.stderr).contains(message), "{lines}");
    }
    // Without accounts nobody could sign in.
    site.put("app/trefoil.toml", &provider(ACCOUNT));
    assert!(check(&site).status.success());
    site.put("app/graphql/schema.graphqls", "type Note @allow(read: true) { id: ID! title: String! }");
    std::fs::remove_file(site.folder.path().join("app/seed/users.json")).expect("removed");
    let checked = check(&site);
    let said = String::from_utf8_lossy(&checked.stdout) + String::from_utf8_lossy(&checked.stderr);
    assert!(
        said.contains("trefoil.toml:4:1") && said.contains("no type of the schema has @account"),
        "{said}"
    );
}

#[test]
fn a_secret_that_is_not_there_stops_the_start() {
    let [site, _] = Site::both();
    for (line, message) in [
        (
            "client-secret-env = \"TREFOIL_NO_SUCH_SECRET\"\n",
            "no environment variable TREFOIL_NO_SUCH_SECRET",
        ),
        ("client-secret-file = \"no-such-file\"\n", "client-secret-file no-such-file"),
    ] {
        site.put("app/trefoil.toml", &provider(line));
        // Who checks an application need not have its secrets.
        assert!(check(&site).status.success());
        let started = site.run(&["serve", "app"], "");
        let said = String::from_utf8_lossy(&started.stderr).into_owned();
        assert!(!started.status.success() && said.contains(message), "{said}");
    }
}

#[test]
fn a_provider_that_is_down_leaves_everything_else() {
    for site in Site::both() {
        site.put("app/trefoil.toml", &provider(ACCOUNT));
        let server = site.serve();
        let page = html(&get(&server, "/_/sign-in?next=/notes", &[HTML]));
        assert!(
            page.contains("href=\"/_/oidc/1?next=%2Fnotes\"") && page.contains("Company login"),
            "{page}"
        );
        assert!(!page.contains("type=\"password\"") && !page.contains("Nobody can sign in"), "{page}");
        let refused = get(&server, "/_/oidc/1?next=/notes", &[HTML]);
        assert_eq!((refused.status, refused.header("retry-after")), (503, Some("5")), "{}", refused.text());
        let text = html(&refused);
        assert!(text.contains("Company login does not answer at the moment"), "{text}");
        assert!(
            text.contains("href=\"/_/oidc/1?next=%2Fnotes\"") && text.contains("<title>Error: "),
            "{text}"
        );
        // What nobody has begun is refused before the provider is asked.
        let stray =
            get(&server, "/_/oidc/1/callback?code=a&state=b", &[HTML, ("Cookie", "trefoil-sign-in=1.a.Lw")]);
        assert_eq!(stray.status, 400, "{}", stray.text());
        assert!(stray.text().contains("begun in another browser"), "{}", stray.text());
        for path in ["/_/oidc/0", "/_/oidc/2", "/_/oidc/2/callback", "/_/oidc/x"] {
            assert_eq!(get(&server, path, &[HTML]).status, 404, "{path}");
        }
        assert_eq!(use_link(&server, &site.link("ada@example.org"), super::PASSWORD).status, 303);
        sign_in(&server, "ada@example.org");
        assert!(html(&get(&server, "/_/sign-in", &[HTML])).contains("type=\"password\""));
        let metrics = get(&server, "/metrics", &[]).text();
        assert!(metrics.contains("outcome=\"wrong\"} 1"), "{metrics}");
    }
}

#[test]
fn a_sign_in_is_good_for_ten_minutes_and_once() {
    let [site, _] = Site::both();
    site.put("app/trefoil.toml", &provider(ACCOUNT));
    let server = site.serve();
    let come_back = |cookie: &str, state: &str| {
        let cookie = format!("trefoil-sign-in={cookie}");
        get(&server, &format!("/_/oidc/1/callback?code=a&state={state}"), &[HTML, ("Cookie", &cookie)]).status
    };
    // The store makes its key for the first one that is looked at.
    assert_eq!(come_back("1.a.Lw", "x"), 400);
    let database = rusqlite::Connection::open(site.folder.path().join("data/trefoil.db")).expect("opened");
    let sql = "SELECT value FROM trefoil_meta WHERE key = 'sign-in-key'";
    let key: String = database.query_row(sql, [], |row| row.get(0)).expect("a key");
    drop(database);
    let key = BASE64_URL_SAFE_NO_PAD.decode(key).expect("base64");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let signed = |expires: u64| {
        let cookie = format!("{expires}.a{expires}.Lw");
        let state = hmac_sha256(&key, format!("state\n{DOWN}\n{cookie}").as_bytes());
        (cookie, BASE64_URL_SAFE_NO_PAD.encode(state))
    };
    let (old, state) = signed(now - 1);
    assert_eq!(come_back(&old, &state), 400);
    server.wait_for("it was begun too long ago");
    // One that is good goes on to the provider, which is down, and is used up by that.
    let (good, state) = signed(now + 60);
    assert_eq!(come_back(&good, &state), 503);
    assert_eq!(come_back(&good, &state), 400);
    server.wait_for("it was used already");
}

#[test]
fn identities_go_with_their_account_and_with_copies() {
    let [site, _] = Site::both();
    let server = site.serve_people();
    let ada = sign_in(&server, "ada@example.org");
    let identities = |file: &str| -> Vec<(String, String)> {
        let path = site.folder.path().join(file);
        let database = rusqlite::Connection::open(path).expect("opened");
        let mut found = database
            .prepare("SELECT issuer, account FROM trefoil_identities ORDER BY issuer, account")
            .expect("the table is there");
        let rows = found.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
        rows.collect::<Result<_, _>>().expect("read")
    };
    let file = "data/trefoil.db";
    let database = rusqlite::Connection::open(site.folder.path().join(file)).expect("opened");
    for (subject, account) in [("a", "1"), ("b", "2")] {
        let sql = "INSERT INTO trefoil_identities (issuer, subject, account_type, account, linked) VALUES ('i', ?1, 'User', ?2, 0)";
        database.execute(sql, [subject, account]).expect("inserted");
    }
    drop(database);
    // Somebody who signs up is marked, because nobody knows whose address that is, until a link is used.
    let fields = [
        ("name", "Eve"),
        ("email", "eve@example.org"),
        ("password", super::PASSWORD),
        ("again", super::PASSWORD),
    ];
    let eve = form(&server, "/_/sign-up", &[], &fields);
    let id = me(&server, &cookie_of(&eve))["me"]["id"].as_str().expect("an id").to_owned();
    let pair = |issuer: &str, account: &str| (issuer.to_owned(), account.to_owned());
    assert_eq!(identities(file), [pair("", &id), pair("i", "1"), pair("i", "2")]);
    assert_eq!(use_link(&server, &site.link("eve@example.org"), super::PASSWORD).status, 303);
    assert_eq!(identities(file), [pair("i", "1"), pair("i", "2")]);
    let gone = server.client().send("DELETE", "/users/2", &[("Cookie", &ada)], b"");
    assert!(gone.status < 300, "{}", gone.text());
    assert_eq!(identities(file), [pair("i", "1")]);
    site.must(&["backup", "app", "--to", "copy.db"]);
    assert_eq!(identities("copy.db"), [pair("i", "1")]);
}
