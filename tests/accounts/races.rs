//! Accounts whose password is changed, or that are deleted, while somebody signs in or out of them.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{FORM, HTML, JSON, PASSWORD, Site, cookie_of, encode, form, get, me, sign_in, sign_in_as};
use crate::support::postgres;

/// Makes a change that another writer commits only after a second, so that who reads meanwhile finds what was before.
fn change_slowly(site: &Site, change: &str) -> std::thread::JoinHandle<()> {
    let change = change.to_owned();
    if let [_, url] = &site.store[..] {
        let url = url.clone();
        let statements = format!("BEGIN; {change}; SELECT pg_sleep(1.5); COMMIT");
        return std::thread::spawn(move || drop(postgres::sql(&url, &statements)));
    }
    let file = site.folder.path().join("data/trefoil.db");
    std::thread::spawn(move || {
        let database = rusqlite::Connection::open(file).expect("the store");
        database.busy_timeout(Duration::from_secs(5)).expect("set");
        database.execute_batch(&format!("BEGIN IMMEDIATE; {change}")).expect("changed");
        std::thread::sleep(Duration::from_millis(1500));
        database.execute_batch("COMMIT").expect("committed");
    })
}

#[test]
fn a_password_that_changes_while_it_is_compared_begins_no_session() {
    for change in [
        "UPDATE trefoil_passwords SET hash = '$argon2id$v=19$m=64,t=1,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA' WHERE account = '2'",
        // What the deletion of the account does first.
        "DELETE FROM trefoil_passwords WHERE account = '2'",
    ] {
        for site in Site::both() {
            let server = site.serve_people();
            let changing = change_slowly(&site, change);
            std::thread::sleep(Duration::from_millis(500));
            let reply = sign_in_as(&server, &[], "bob@example.org", PASSWORD);
            changing.join().expect("it was changed");
            assert_eq!(reply.status, 401, "{change}: {}", reply.text());
            assert_eq!(site.must(&["user", "sessions", "bob@example.org", "app"]).lines().count(), 0);
            assert_eq!(sign_in_as(&server, &[], "ada@example.org", PASSWORD).status, 303);
        }
    }
}

#[test]
fn of_two_changes_of_a_password_one_counts() {
    for site in Site::both() {
        let server = site.serve_people();
        let cookies = [0, 1, 2, 3].map(|_| sign_in(&server, "bob@example.org"));
        let ended: Vec<(String, u16, Option<String>)> = std::thread::scope(|scope| {
            let tries: Vec<_> = cookies
                .iter()
                .enumerate()
                .map(|(number, cookie)| {
                    let server = &server;
                    scope.spawn(move || {
                        let password = format!("changed by {number} of them");
                        let fields = [("current", PASSWORD), ("password", &*password), ("again", &*password)];
                        let reply = form(server, "/_/account/password", &[("Cookie", cookie)], &fields);
                        let session = (reply.header("location") == Some("/_/account?done=password"))
                            .then(|| cookie_of(&reply));
                        (password, reply.status, session)
                    })
                })
                .collect();
            tries.into_iter().map(|thread| thread.join().expect("ends")).collect()
        });
        let won: Vec<_> = ended.iter().filter(|(_, _, session)| session.is_some()).collect();
        let [(password, _, Some(session))] = won[..] else { panic!("{ended:?}") };
        assert_eq!(me(&server, session)["kind"], "account");
        assert!(cookies.iter().all(|cookie| me(&server, cookie)["kind"] == "anonymous"));
        assert_eq!(sign_in_as(&server, &[], "bob@example.org", password).status, 303);
    }
}

#[test]
fn an_account_that_is_deleted_while_it_writes_leaves_nothing() {
    for site in Site::both() {
        let server = site.serve_people();
        let (ada, bob) = (sign_in(&server, "ada@example.org"), sign_in(&server, "bob@example.org"));
        let last = std::thread::scope(|scope| {
            let writing = scope.spawn(|| {
                let mut client = server.client();
                let headers = [("Cookie", bob.as_str()), JSON, ("Accept", "application/json")];
                let mut statuses = Vec::new();
                loop {
                    let reply = client.send("POST", "/notes", &headers, b"{\"title\": \"One more\"}");
                    statuses.push(reply.status);
                    if reply.status != 201 {
                        return statuses;
                    }
                }
            });
            std::thread::sleep(Duration::from_millis(400));
            let gone = server.client().send("DELETE", "/users/2", &[("Cookie", &ada)], b"");
            assert!(gone.status < 300, "{}", gone.text());
            writing.join().expect("it ends")
        });
        // The one on the way has no author any more; nothing of it outlives the account.
        assert!(matches!(last.last(), Some(400 | 401)), "{last:?}");
        assert!(last.len() > 1, "nothing was written before");
        let later =
            server.client().send("POST", "/notes", &[("Cookie", &bob), JSON], b"{\"title\": \"Two\"}");
        assert_eq!(later.status, 401, "{}", later.text());
        let notes = get(&server, "/notes", &[("Cookie", &ada), ("Accept", "application/json")]);
        assert_eq!(notes.json(), json!([]));
        assert_eq!(me(&server, &bob)["kind"], "anonymous");
    }
}

#[test]
fn a_password_is_changed_or_not_if_the_server_is_killed() {
    for site in Site::both() {
        let mut current = PASSWORD.to_owned();
        let mut server = site.serve_people();
        for round in 0..5u64 {
            let cookie = cookie_of(&sign_in_as(&server, &[], "bob@example.org", &current));
            let changed = format!("changed in round {round}");
            let (mut client, known) = (server.client(), current.clone());
            let (sent, chosen) = (cookie.clone(), changed.clone());
            let changing = std::thread::spawn(move || {
                let pairs = [("current", &known), ("password", &chosen), ("again", &chosen)];
                let body = pairs.map(|(name, value)| format!("{name}={}", encode(value))).join("&");
                let headers = [FORM, HTML, ("Cookie", sent.as_str())];
                client.ask("POST", "/_/account/password", &headers, body.as_bytes()).ok()
            });
            std::thread::sleep(Duration::from_millis(round * 2));
            // As by kill -9.
            drop(server);
            let answer = changing.join().expect("ends");
            server = site.serve();
            let is_changed = sign_in_as(&server, &[], "bob@example.org", &changed).status == 303;
            let is_kept = sign_in_as(&server, &[], "bob@example.org", &current).status == 303;
            assert_ne!(is_changed, is_kept, "round {round}");
            // With the password goes the session that changed it.
            assert_eq!(me(&server, &cookie)["kind"] == "account", is_kept, "round {round}");
            if answer.is_some_and(|reply| reply.status == 303) {
                assert!(is_changed, "an answered change is kept");
            }
            if is_changed {
                current = changed;
            }
        }
    }
}

/// What a node writes whose clock is months ahead, and then is set right.
#[test]
fn a_session_of_a_clock_that_was_ahead_is_not_good() {
    for site in Site::both() {
        let server = site.serve_people();
        let (ada, bob) = (sign_in(&server, "ada@example.org"), sign_in(&server, "bob@example.org"));
        let ahead = 100 * 86_400;
        let change = format!(
            "UPDATE trefoil_sessions SET created = created + {ahead}, seen = seen + {ahead}, \
             expires = expires + {ahead} WHERE account = '2'"
        );
        change_slowly(&site, &change).join().expect("changed");
        assert_eq!(me(&server, &bob)["kind"], "anonymous");
        assert_eq!(me(&server, &ada)["kind"], "account");
        assert_eq!(sign_in_as(&server, &[], "bob@example.org", PASSWORD).status, 303);
    }
}

/// Sessions of an account that was blocked do not come back with it.
#[test]
fn a_session_that_was_used_while_its_account_was_blocked_has_ended() {
    for site in Site::both() {
        let server = site.serve_people();
        let (ada, bob) = (sign_in(&server, "ada@example.org"), sign_in(&server, "bob@example.org"));
        let block = |blocked: bool| {
            let document = format!("mutation {{ updateUser(id: 2, blocked: {blocked}) {{ id }} }}");
            let body = json!({ "query": document }).to_string();
            let reply = server.client().send("POST", "/graphql", &[JSON, ("Cookie", &ada)], body.as_bytes());
            assert!(reply.json()["errors"].is_null(), "{}", reply.text());
        };
        block(true);
        assert_eq!(me(&server, &bob)["kind"], "anonymous");
        let began = Instant::now();
        while !site.must(&["user", "sessions", "bob@example.org", "app"]).is_empty() {
            assert!(began.elapsed() < Duration::from_secs(10), "the session is still there");
        }
        block(false);
        assert_eq!(me(&server, &bob)["kind"], "anonymous");
    }
}
