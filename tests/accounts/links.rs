//! Accounts: links for passwords, the first account, and commands.

use std::time::Duration;

use serde_json::json;

use super::{FORM, HTML, PASSWORD, Site, encode, form, get, me, sign_in, sign_in_as, token_in, use_link};

#[test]
fn links_are_used_once() {
    for site in Site::both() {
        let server = site.serve();
        let old = site.link("bob@example.org");
        let link = site.link("bob@example.org");
        for bad in [old.as_str(), "tfl_x", "", &link[..link.len() - 1]] {
            let page = get(&server, &format!("/_/link?token={bad}"), &[HTML]);
            assert_eq!(page.status, 404, "{bad}");
            assert!(page.text().contains("This link is not good"), "{}", page.text());
        }
        let page = get(&server, &format!("/_/link?token={link}"), &[HTML]);
        assert_eq!((page.status, page.header("referrer-policy")), (200, Some("strict-origin")));
        assert_eq!(page.header("cache-control"), Some("no-store"));
        assert!(page.text().contains("autocomplete=\"new-password\""), "{}", page.text());
        for (password, mistake) in [
            ("short", "Use at least 12 characters"),
            ("bob@example.org", "not a name or the login"),
            ("qwertyuiop12", "Many people use this password"),
        ] {
            let refused = use_link(&server, &link, password);
            assert_eq!(refused.status, 400, "{password}: {}", refused.text());
            assert!(refused.text().contains(mistake), "{password}: {}", refused.text());
            // The login is in the form for password managers, and nothing else that was typed.
            let shown = refused.text().matches(&format!("value=\"{password}\"")).count();
            assert_eq!(shown, usize::from(password == "bob@example.org"), "{}", refused.text());
        }
        let fields = [("token", link.as_str()), ("password", PASSWORD), ("again", "another one here")];
        assert_eq!(form(&server, "/_/link", &[], &fields).status, 400);
        // Many at once: one of them.
        let winners: Vec<u64> = std::thread::scope(|scope| {
            let tries: Vec<_> = (0..8u64)
                .map(|number| {
                    let (server, link) = (&server, &link);
                    let password = format!("{PASSWORD} {number}");
                    scope.spawn(move || (number, use_link(server, link, &password).status))
                })
                .collect();
            let ended = tries.into_iter().map(|thread| thread.join().expect("ends"));
            ended.filter(|(_, status)| *status == 303).map(|(number, _)| number).collect()
        });
        let [winner] = winners[..] else { panic!("{winners:?}") };
        let password = format!("{PASSWORD} {winner}");
        assert_eq!(sign_in_as(&server, &[], "bob@example.org", &password).status, 303);
        assert_eq!(get(&server, &format!("/_/link?token={link}"), &[HTML]).status, 404);
    }
}

#[test]
fn the_first_account_is_made_by_the_link_in_the_log() {
    for site in Site::both_with("[]") {
        let server = site.serve();
        server.wait_for("/_/link?token=");
        let token = token_in(&server.log());
        let page = get(&server, "/_/sign-in", &[HTML]).text();
        assert!(page.contains("in the log of the server") && !page.contains(&token), "{page}");
        let form_page = get(&server, &format!("/_/link?token={token}"), &[HTML]).text();
        for part in ["name=\"email\"", "name=\"role\"", "name=\"password\"", "name=\"again\""] {
            assert!(form_page.contains(part), "{part}: {form_page}");
        }
        let fields = |email: &'static str| {
            [
                ("token", token.as_str()),
                ("name", "Ada"),
                ("email", email),
                ("role", "ADMIN"),
                ("blocked", "false"),
                ("password", PASSWORD),
                ("again", PASSWORD),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
        };
        let send = |email: &'static str| {
            let fields = fields(email);
            let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
            form(&server, "/_/link", &[], &fields)
        };
        let invalid = send("nonsense");
        assert_eq!(invalid.status, 400, "{}", invalid.text());
        assert!(invalid.text().contains("value=\"nonsense\""), "{}", invalid.text());
        let made = send("ada@example.org");
        assert_eq!(
            (made.status, made.header("location")),
            (303, Some("/_/sign-in?set=1")),
            "{}",
            made.text()
        );
        assert_eq!(send("eve@example.org").status, 404);
        let cookie = sign_in(&server, "ada@example.org");
        assert_eq!(me(&server, &cookie)["roles"], json!(["ADMIN"]));
        let users = get(&server, "/users", &[("Cookie", &cookie), ("Accept", "application/json")]).json();
        assert_eq!(users.as_array().map(Vec::len), Some(1));
        drop(server);
        // From now on a start makes no such link.
        let again = site.serve();
        again.wait_for("listening on");
        assert_eq!(get(&again, &format!("/_/link?token={token}"), &[HTML]).status, 404);
    }
}

#[test]
fn commands_make_list_and_end() {
    for site in Site::both() {
        let ran = site.run(
            &["user", "add", "eve@example.org", "app", "--set", "name=Eve", "--password-stdin"],
            PASSWORD,
        );
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        for (arguments, words) in [
            (vec!["add", "x@example.org", "--set", "nmae=X"], "did you mean `name`?"),
            (vec!["add", "x@example.org", "--set", "name"], "is not FIELD=VALUE"),
            (vec!["add", "x", "--set", "name=X"], "email"),
            (vec!["link", "nobody@example.org"], "there is no account"),
        ] {
            let ran = site.run(&[&["user"], arguments.as_slice(), &["app"]].concat(), "");
            let said = String::from_utf8_lossy(&ran.stderr).into_owned();
            assert_eq!(ran.status.code(), Some(2), "{arguments:?}: {said}");
            assert!(said.contains(words), "{arguments:?}: {said}");
        }
        let short = site
            .run(&["user", "add", "x@example.org", "app", "--set", "name=X", "--password-stdin"], "short");
        assert_eq!(short.status.code(), Some(2));
        let server = site.serve();
        let cookie = sign_in(&server, "eve@example.org");
        assert_eq!(me(&server, &cookie)["kind"], "account");
        let table = site.must(&["user", "list", "app"]);
        let line = table.lines().find(|line| line.contains("eve@")).expect("a line");
        assert_eq!(line.split_whitespace().skip(1).collect::<Vec<_>>(), ["eve@example.org", "-", "yes", "1"]);
        assert!(!table.contains("x@example.org"), "{table}");
        site.sql("UPDATE users SET blocked = true WHERE id = 2");
        let table = site.must(&["user", "list", "app"]);
        assert!(table.contains("bob@example.org (cannot sign in)"), "{table}");
        assert!(site.must(&["user", "sessions", "eve@example.org", "app"]).contains("127.0.0.1"));
        site.must(&["user", "end", "--all", "app"]);
        assert_eq!(me(&server, &cookie)["kind"], "anonymous");
    }
}

#[test]
fn an_account_is_made_with_its_link_or_not_at_all() {
    for site in Site::both() {
        site.link("bob@example.org");
        let is_file = site.store[1] == "sqlite:";
        site.sql(match is_file {
            true => {
                "CREATE TRIGGER no_links BEFORE INSERT ON trefoil_links BEGIN SELECT RAISE(ABORT, 'no'); END"
            }
            false => "ALTER TABLE trefoil_links ADD CONSTRAINT no_links CHECK (expires < 0) NOT VALID",
        });
        let add = ["user", "add", "eve@example.org", "app", "--set", "name=Eve"];
        let failed = site.run(&add, "");
        assert!(!failed.status.success(), "{}", String::from_utf8_lossy(&failed.stdout));
        assert_eq!(site.sql("SELECT count(*) FROM users"), "2");
        site.sql(match is_file {
            true => "DROP TRIGGER no_links",
            false => "ALTER TABLE trefoil_links DROP CONSTRAINT no_links",
        });
        let link = token_in(&site.must(&add));
        assert_eq!(use_link(&site.serve(), &link, PASSWORD).status, 303);
    }
}

#[test]
fn managers_make_links_and_end_sessions() {
    for site in Site::both() {
        let server = site.serve_people();
        let (ada, bob) = (sign_in(&server, "ada@example.org"), sign_in(&server, "bob@example.org"));
        let post = |cookie: &str, path: &str| form(&server, path, &[("Cookie", cookie)], &[]);
        assert_eq!(post(&bob, "/_/accounts/2/link").status, 403);
        assert_eq!(post(&bob, "/_/accounts/1/link").status, 404);
        assert_eq!(post(&ada, "/_/accounts/77/link").status, 404);
        assert_eq!(form(&server, "/_/accounts/2/link", &[], &[]).status, 401);
        let made = post(&ada, "/_/accounts/2/link");
        assert_eq!(made.status, 200, "{}", made.text());
        let token = token_in(&made.text());
        assert_eq!(post(&ada, "/_/accounts/2/end-sessions").status, 303);
        assert_eq!(me(&server, &bob)["kind"], "anonymous");
        assert_eq!(use_link(&server, &token, "yet another password").status, 303);
        assert_eq!(sign_in_as(&server, &[], "bob@example.org", "yet another password").status, 303);
    }
}

#[test]
fn a_link_is_used_once_or_not_at_all_if_the_server_is_killed() {
    for site in Site::both() {
        for round in 0..6u64 {
            let server = site.serve();
            let link = site.link("bob@example.org");
            let password = format!("{PASSWORD} {round}");
            let (mut client, token, chosen) = (server.client(), link.clone(), password.clone());
            let using = std::thread::spawn(move || {
                let body = format!(
                    "token={}&password={}&again={}",
                    encode(&token),
                    encode(&chosen),
                    encode(&chosen)
                );
                client.ask("POST", "/_/link", &[FORM, HTML], body.as_bytes()).ok().map(|reply| reply.status)
            });
            std::thread::sleep(Duration::from_millis(round * 2));
            // As by kill -9.
            drop(server);
            let answered = using.join().expect("ends");
            let server = site.serve();
            let is_usable = get(&server, &format!("/_/link?token={link}"), &[HTML]).status == 200;
            let is_set = sign_in_as(&server, &[], "bob@example.org", &password).status == 303;
            assert_ne!(is_usable, is_set, "round {round}, answered {answered:?}");
            if answered == Some(303) {
                assert!(is_set, "an answered use is kept");
            }
        }
    }
}
