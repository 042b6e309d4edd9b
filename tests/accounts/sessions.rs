//! Accounts: sessions end everywhere at once, with their streams.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{HTML, JSON, PASSWORD, Site, cookie_of, form, get, html, me, sign_in, sign_in_as};
use crate::support::Process;

#[test]
fn accounts_change_their_password_and_end_sessions() {
    for site in Site::both() {
        let server = site.serve_people();
        let [one, two, three] = [(); 3].map(|()| sign_in(&server, "bob@example.org"));
        let page = get(&server, "/_/account", &[HTML, ("Cookie", &one)]);
        assert_eq!(page.status, 200, "{}", page.text());
        let text = html(&page);
        let ends: Vec<&str> = text
            .split("action=\"/_/account/sessions/")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        assert_eq!(ends.len(), 3, "{text}");
        let number = ends.iter().find(|end| **end != "end-others").expect("another session");
        let ended = form(&server, &format!("/_/account/sessions/{number}"), &[("Cookie", &one)], &[]);
        assert_eq!(ended.status, 303);
        let kinds =
            [&one, &two, &three].map(|cookie| me(&server, cookie)["kind"].as_str() == Some("account"));
        assert_eq!(kinds.iter().filter(|good| **good).count(), 2);
        assert!(kinds[0]);
        // Somebody else's session has no such number.
        let ada = sign_in(&server, "ada@example.org");
        assert_eq!(
            form(&server, &format!("/_/account/sessions/{number}"), &[("Cookie", &ada)], &[]).status,
            404
        );

        let change = |cookie: &str, current: &str, password: &str| {
            let fields = [("current", current), ("password", password), ("again", password)];
            form(&server, "/_/account/password", &[("Cookie", cookie)], &fields)
        };
        assert_eq!(change(&one, "wrong password", "another long password").status, 401);
        assert_eq!(change(&one, PASSWORD, "short").status, 400);
        assert_eq!(me(&server, &one)["kind"], "account");
        let changed = change(&one, PASSWORD, "another long password");
        assert_eq!(changed.status, 303, "{}", changed.text());
        let new = cookie_of(&changed);
        assert_eq!(me(&server, &new)["kind"], "account");
        // A stolen session is worth nothing any more.
        for old in [&one, &two, &three] {
            assert_eq!(me(&server, old)["kind"], "anonymous");
        }
        assert_eq!(sign_in_as(&server, &[], "bob@example.org", PASSWORD).status, 401);
        assert_eq!(sign_in_as(&server, &[], "bob@example.org", "another long password").status, 303);
        form(&server, "/_/account/sessions/end-others", &[("Cookie", &new)], &[]);
        assert_eq!(me(&server, &new)["kind"], "account");
        let anonymous = get(&server, "/_/account", &[HTML]);
        assert_eq!(anonymous.header("location"), Some("/_/sign-in?next=%2F_%2Faccount"));
    }
}

/// Tells what the stream of notes says until it ends or `until` is said.
fn stream(server: &Process, cookie: &str) -> std::thread::JoinHandle<String> {
    let mut client = server.client();
    let cookie = cookie.to_owned();
    std::thread::spawn(move || {
        let body = json!({ "query": "subscription { noteCreated { title } }" }).to_string();
        let headers = [JSON, ("Accept", "text/event-stream"), ("Cookie", cookie.as_str())];
        client.send("POST", "/graphql", &headers, body.as_bytes()).text()
    })
}

#[test]
fn streams_end_with_their_session() {
    for site in Site::both() {
        let server = site.serve_people();
        for end in ["session", "blocked", "deleted"] {
            let ada = sign_in(&server, "ada@example.org");
            let login = format!("{end}@example.org");
            let made =
                site.run(&["user", "add", &login, "app", "--set", "name=X", "--password-stdin"], PASSWORD);
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
            let cookie = sign_in(&server, &login);
            let id = me(&server, &cookie)["me"]["id"].as_str().expect("an id").to_owned();
            let reading = stream(&server, &cookie);
            std::thread::sleep(Duration::from_millis(500));
            assert_eq!(form(&server, "/notes", &[("Cookie", &cookie)], &[("title", "before")]).status, 303);
            std::thread::sleep(Duration::from_millis(500));
            let admin = |document: String| {
                let body = json!({ "query": document }).to_string();
                let reply =
                    server.client().send("POST", "/graphql", &[JSON, ("Cookie", &ada)], body.as_bytes());
                assert!(reply.json()["errors"].is_null(), "{}", reply.text());
            };
            match end {
                "session" => drop(form(&server, "/_/sign-out", &[("Cookie", &cookie)], &[])),
                "blocked" => admin(format!("mutation {{ updateUser(id: {id}, blocked: true) {{ id }} }}")),
                _ => admin(format!("mutation {{ deleteUser(id: {id}) {{ id }} }}")),
            }
            let began = Instant::now();
            let said = reading.join().expect("the stream ends");
            assert!(said.contains("before"), "{end}: {said}");
            assert!(began.elapsed() < Duration::from_secs(5), "{end}");
            assert_eq!(me(&server, &cookie)["kind"], "anonymous", "{end}");
            assert_eq!(
                sign_in_as(&server, &[], &login, PASSWORD).status,
                if end == "session" { 303 } else { 401 }
            );
        }
    }
}

#[test]
fn who_gets_the_id_of_a_deleted_account_gets_nothing_else_of_it() {
    for site in Site::both() {
        let server = site.serve_people();
        let (ada, bob) = (sign_in(&server, "ada@example.org"), sign_in(&server, "bob@example.org"));
        let link = site.link("bob@example.org");
        let gone = server.client().send("DELETE", "/users/2", &[("Cookie", &ada)], b"");
        assert!(gone.status < 300, "{}", gone.text());
        site.put("users.ndjson", "{\"id\": 2, \"name\": \"Mallory\", \"email\": \"mallory@example.org\"}\n");
        drop(server);
        site.must(&["import", "app", "--resource", "users", "--from", "users.ndjson"]);
        let server = site.serve();
        assert_eq!(me(&server, &bob)["kind"], "anonymous");
        assert_eq!(get(&server, &format!("/_/link?token={link}"), &[HTML]).status, 404);
        assert_eq!(sign_in_as(&server, &[], "mallory@example.org", PASSWORD).status, 401);
        assert_eq!(sign_in_as(&server, &[], "bob@example.org", PASSWORD).status, 401);
    }
}

#[test]
fn backups_take_passwords_along_and_a_restore_ends_sessions() {
    for site in Site::both() {
        let server = site.serve_people();
        let cookie = sign_in(&server, "bob@example.org");
        let link = site.link("bob@example.org");
        drop(server);
        site.must(&["backup", "app", "--to", "copy.db"]);
        let exported = site.run(&["export", "app"], "");
        let exported = String::from_utf8_lossy(&exported.stdout).into_owned();
        assert!(!exported.contains("argon2") && !exported.contains("trefoil_"), "{exported}");
        site.must(&["restore", "copy.db", "app", "--overwrite"]);
        let server = site.serve();
        assert_eq!(me(&server, &cookie)["kind"], "anonymous");
        assert_eq!(get(&server, &format!("/_/link?token={link}"), &[HTML]).status, 404);
        let again = sign_in(&server, "bob@example.org");
        assert_eq!(me(&server, &again)["kind"], "account");
    }
}
