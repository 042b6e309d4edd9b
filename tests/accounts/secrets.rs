//! Accounts: passwords, tokens and links are nowhere but where they belong.

use std::process::Command;

use super::{HTML, JSON, Site, cookie_of, form, get, sign_in_as, token_in, use_link};

const FIRST: &str = "marked-password-one-9f3a";
const SECOND: &str = "marked-password-two-51c7";

/// Everything that is on the disk of a store, as it is there.
fn stored(site: &Site) -> Vec<u8> {
    if let [_, url] = &site.store[..] {
        let dump = Command::new("pg_dump").arg(url).output().expect("pg_dump is installed");
        assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
        return dump.stdout;
    }
    let folder = std::fs::read_dir(site.folder.path().join("data")).expect("the data");
    let files = folder.map(|entry| std::fs::read(entry.expect("readable").path()).expect("readable"));
    files.flatten().collect()
}

fn holds(bytes: &[u8], secret: &str) -> bool {
    bytes.windows(secret.len()).any(|part| part == secret.as_bytes())
}

#[test]
fn secrets_of_accounts_are_nowhere_else() {
    for site in Site::both() {
        let server = site.serve();
        let mut secrets = vec![FIRST.to_owned(), SECOND.to_owned()];
        let unused = site.link("ada@example.org");
        let link = site.link("bob@example.org");
        // From a page that a link led to, and with what browsers tell of where they were.
        let referer = format!("http://{}/_/link?token={link}", server.address);
        get(&server, &format!("/_/link?token={link}"), &[HTML, ("Referer", &referer)]);
        assert_eq!(use_link(&server, &link, FIRST).status, 303);
        // The same again, and wrong, which may be told in more detail.
        assert_eq!(use_link(&server, &link, FIRST).status, 404);
        assert_eq!(sign_in_as(&server, &[], "bob@example.org", SECOND).status, 401);
        let cookie = cookie_of(&sign_in_as(&server, &[], "bob@example.org", FIRST));
        let fields = [("current", FIRST), ("password", SECOND), ("again", SECOND)];
        let changed = cookie_of(&form(&server, "/_/account/password", &[("Cookie", &cookie)], &fields));
        let body = format!("{{\"login\": \"bob@example.org\", \"password\": \"{SECOND}\"}}");
        let told = server.client().send("POST", "/_/sign-in", &[JSON], body.as_bytes()).json();
        let bearer = told["token"].as_str().expect("a token").to_owned();
        let authorization = format!("Bearer {bearer}");
        let headers = [("Authorization", &*authorization), JSON];
        assert_eq!(server.client().send("POST", "/notes", &headers, b"{\"title\": \"One\"}").status, 201);
        let in_cookie = |cookie: &str| cookie.trim_start_matches("trefoil=").to_owned();
        secrets.extend([link, unused.clone(), bearer, in_cookie(&cookie), in_cookie(&changed)]);

        let pages = ["/metrics", "/_/account", "/users", "/users/2", "/openapi.json", "/_/me", "/notes"];
        let told = pages.map(|path| get(&server, path, &[("Cookie", &changed), HTML]).text()).concat();
        server.wait_for("/_/sign-in");
        let log = server.log();
        let exported = site.run(&["export", "app"], "").stdout;
        site.must(&["backup", "app", "--to", "copy.db"]);
        drop(server);
        let copy = std::fs::read(site.folder.path().join("copy.db")).expect("the backup");
        let stored = stored(&site);
        assert!(holds(&stored, "$argon2id$"), "the store has hashes");
        for secret in &secrets {
            let places: [(&str, &[u8]); 5] = [
                ("an answer", told.as_bytes()),
                ("the log", log.as_bytes()),
                ("an export", &exported),
                ("a backup", &copy),
                ("the store", &stored),
            ];
            for (place, bytes) in places {
                // The part of a token that is random.
                let secret = secret.split_once('_').map_or(&**secret, |(_, random)| random);
                assert!(!holds(bytes, secret), "{secret} is in {place}");
            }
        }
        assert_eq!(token_in(&unused), unused);
    }
}
