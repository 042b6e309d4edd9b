//! Accounts whose password is changed, or that are deleted, while somebody signs in or out of them.

use std::time::Duration;

use serde_json::json;

use super::{JSON, PASSWORD, Site, cookie_of, form, get, me, sign_in, sign_in_as};
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
