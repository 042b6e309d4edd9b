//! Streams end in the order of the log: no event that is committed after the end of a right goes out under it.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::listener::{Listener, Way};
use super::site::{StreamSite, done, token_of};
use crate::credentials;
use crate::support::Process;

/// Writes until the listener hears of it.
fn begun(way: Way, server: &Process, credential: &str, admin: &str) -> Listener {
    let mut listener = Listener::of_posts(way, server.address, credential).expect("a stream");
    listener.follow(|| {
        done(server, admin, "mutation { createPost(title: \"is it there?\", published: false) { id } }");
    });
    listener
}

/// The stream ends as its transport says, and told nothing of what came later.
fn ended(mut listener: Listener, why: &str) {
    let way = listener.way;
    let (heard, code) = listener.until_end();
    assert!(!heard.iter().any(|event| event.contains("after")), "{way:?} {why}: {heard:?}");
    assert_eq!(code, (way == Way::Socket).then_some(4403), "{way:?} {why}");
}

#[test]
fn nothing_is_told_after_a_key_was_revoked() {
    for site in StreamSite::both() {
        let admin = site.key("admin", &["--role", "ADMIN"]);
        let server = site.serve();
        for way in Way::ALL {
            let key = site.key("reader", &["--role", "EDITOR"]);
            let listener = begun(way, &server, &key, &admin);
            let mut other = begun(way, &server, &admin, &admin);
            site.revoke("reader");
            done(&server, &admin, "mutation { createPost(title: \"after\") { id } }");
            ended(listener, "revoked");
            let again = Listener::of_posts(way, server.address, &key);
            assert_eq!(again.err(), Some(401), "{way:?}");
            // Those of others go on.
            other.until("after");
        }
    }
}

/// A token ends its streams when it expires, with the 30 seconds that clocks may differ by.
#[test]
fn streams_end_with_tokens_that_expire() {
    let site = StreamSite::on_sqlite();
    let admin = site.key("admin", &["--role", "ADMIN"]);
    let server = site.serve();
    for way in Way::ALL {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
        let email = "ada@example.org";
        let claims = json!({"sub": email, "email": email, "email_verified": true, "exp": now - 25});
        let brief = format!("Bearer {}", credentials::token(claims, credentials::SECRET));
        let listener = begun(way, &server, &brief, &admin);
        let mut other = begun(way, &server, &token_of(email), &admin);
        let began = Instant::now();
        ended(listener, "expired");
        assert!(began.elapsed() < Duration::from_secs(10), "{way:?}: {:?}", began.elapsed());
        done(&server, &admin, "mutation { createPost(title: \"after\") { id } }");
        assert_eq!(Listener::of_posts(way, server.address, &brief).err(), Some(401), "{way:?}");
        // That of another token of the same account goes on.
        other.until("after");
    }
}

/// SQLite fires no trigger for a row that another program replaces by one with the same hash.
#[test]
fn nothing_is_told_under_the_old_name_of_a_key() {
    let site = StreamSite::on_sqlite();
    let admin = site.key("admin", &["--role", "ADMIN"]);
    let key = site.key("reader", &["--role", "EDITOR"]);
    let server = site.serve();
    let listeners = Way::ALL.map(|way| begun(way, &server, &key, &admin));
    let replace = "INSERT OR REPLACE INTO trefoil_api_keys SELECT hash, 'other', '[]', account_type, account, expires, \
                   networks, created, used FROM trefoil_api_keys WHERE name = 'reader'";
    assert_eq!(site.sql(replace), "");
    done(&server, &admin, "mutation { createPost(title: \"after\") { id } }");
    listeners.into_iter().for_each(|listener| ended(listener, "replaced"));
}

#[test]
fn nothing_is_told_after_an_account_was_blocked_or_deleted() {
    for site in StreamSite::both() {
        let admin = site.key("admin", &["--role", "ADMIN"]);
        let bob = site.key("bob", &["--role", "EDITOR", "--as", "bob@example.org"]);
        let eve = site.key("eve", &["--role", "EDITOR", "--as", "eve@example.org"]);
        let server = site.serve();
        for way in Way::ALL {
            for credential in [&bob, &token_of("ada@example.org")] {
                let id = if *credential == bob { 2 } else { 1 };
                let listener = begun(way, &server, credential, &admin);
                // One after the other, in the same request.
                let blocked = format!(
                    "mutation {{ updateUser(id: {id}, blocked: true) {{ id }} createPost(title: \"after\") {{ id }} }}"
                );
                done(&server, &admin, &blocked);
                ended(listener, "blocked");
                let again = Listener::of_posts(way, server.address, credential);
                assert_eq!(again.err(), Some(401), "{way:?}");
                done(
                    &server,
                    &admin,
                    &format!("mutation {{ updateUser(id: {id}, blocked: false) {{ id }} }}"),
                );
            }
        }
        let listeners = Way::ALL.map(|way| begun(way, &server, &eve, &admin));
        let gone = "mutation { deleteUser(id: 3) { id } createPost(title: \"after\") { id } }";
        done(&server, &admin, gone);
        listeners.into_iter().for_each(|listener| ended(listener, "deleted"));
    }
}

#[test]
fn a_changed_role_changes_what_is_told() {
    for site in StreamSite::both() {
        let admin = site.key("admin", &["--role", "ADMIN"]);
        let server = site.serve();
        let ada = token_of("ada@example.org");
        for way in Way::ALL {
            let listener = begun(way, &server, &ada, &admin);
            let demoted = "mutation { updateUser(id: 1, role: AUTHOR) { id } \
                           createPost(title: \"draft after\", published: false) { id } }";
            done(&server, &admin, demoted);
            ended(listener, "demoted");
            // It comes back, and hears what authors hear.
            let mut listener = Listener::of_posts(way, server.address, &ada).expect("a stream");
            listener
                .follow(|| drop(done(&server, &admin, "mutation { createPost(title: \"open\") { id } }")));
            let drafts = "mutation { createPost(title: \"draft\", published: false) { id } }";
            done(&server, &admin, drafts);
            done(&server, &admin, "mutation { createPost(title: \"open last\") { id } }");
            let heard = listener.until("open last");
            assert!(!heard.iter().any(|event| event.contains("draft")), "{way:?}: {heard:?}");
            done(&server, &admin, "mutation { updateUser(id: 1, role: EDITOR) { id } }");
        }
    }
}

#[test]
fn a_change_that_gives_no_other_right_ends_nothing() {
    for site in StreamSite::both() {
        let admin = site.key("admin", &["--role", "ADMIN"]);
        let server = site.serve();
        let mut listeners = Way::ALL.map(|way| begun(way, &server, &token_of("ada@example.org"), &admin));
        // Of another account, of the own one in what no rule is about, and of another key.
        site.key("other", &["--role", "EDITOR"]);
        site.revoke("other");
        let changes = "mutation { a: updateUser(id: 2, blocked: true) { id } \
                       b: updateUser(id: 1, email: \"ada@example.org\", role: EDITOR) { id } \
                       createPost(title: \"after\") { id } }";
        done(&server, &admin, changes);
        listeners.iter_mut().for_each(|listener| drop(listener.until("after")));
    }
}

#[test]
fn keys_of_older_stores_are_logged_too() {
    for site in StreamSite::both() {
        let admin = site.key("admin", &["--role", "ADMIN"]);
        let reader = site.key("reader", &["--role", "EDITOR"]);
        // As the table was before its changes were logged.
        let drop: &[&str] = if site.is_postgres() {
            &["DROP TRIGGER trefoil_changed ON trefoil_api_keys", "DROP FUNCTION trefoil_api_keys_changed()"]
        } else {
            &[
                "DROP TRIGGER \"trefoil_api_keys.created\"",
                "DROP TRIGGER \"trefoil_api_keys.replaced\"",
                "DROP TRIGGER \"trefoil_api_keys.deleted\"",
                "DROP TRIGGER \"trefoil_api_keys.updated\"",
            ]
        };
        drop.iter().for_each(|statement| assert_eq!(site.sql(statement), ""));
        let server = site.serve();
        let listeners = Way::ALL.map(|way| begun(way, &server, &reader, &admin));
        site.revoke("reader");
        done(&server, &admin, "mutation { createPost(title: \"after\") { id } }");
        listeners.into_iter().for_each(|listener| ended(listener, "revoked"));
        let logged = "SELECT image FROM trefoil_changes WHERE resource = 'API keys' AND deed = 'deleted'";
        assert_eq!(site.sql(logged).replace(' ', ""), "{\"id\":\"reader\"}");
    }
}
