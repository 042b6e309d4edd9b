//! Accounts: what those who manage an account see and do, and what link pages tell browsers.

use serde_json::json;

use super::{HTML, JSON, PASSWORD, Site, form, get, html, me, sign_in, sign_in_as, token_in, use_link};

#[test]
fn managers_see_where_an_account_is_signed_in() {
    for site in Site::both() {
        let server = site.serve_people();
        let ada = sign_in(&server, "ada@example.org");
        let page = |cookie: &str| html(&get(&server, "/users/2", &[HTML, ("Cookie", cookie)]));
        assert!(page(&ada).contains("Nowhere."), "{}", page(&ada));
        let firefox =
            [("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")];
        assert_eq!(sign_in_as(&server, &firefox, "bob@example.org", PASSWORD).status, 303);
        let bob = sign_in(&server, "bob@example.org");
        let text = page(&ada);
        for part in [
            "Where this account is signed in",
            "Firefox on Linux",
            "from 127.0.0.1",
            "/_/accounts/2/end-sessions",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(text.matches("Last seen").count(), 2, "{text}");
        // One's own record is not an account that one manages.
        let own = page(&bob);
        assert!(own.contains("bob@example.org") && !own.contains("Last seen"), "{own}");
        // Those that are not good any more are not told.
        site.sql("UPDATE trefoil_sessions SET seen = seen - 604800 WHERE browser LIKE '%Firefox%'");
        assert_eq!(page(&ada).matches("Last seen").count(), 1);
        let ended = form(&server, "/_/accounts/2/end-sessions", &[("Cookie", &ada)], &[]);
        assert_eq!((ended.status, ended.header("location")), (303, Some("/users/2")));
        assert!(page(&ada).contains("Nowhere."));
        assert_eq!(me(&server, &bob)["kind"], "anonymous");
    }
}

#[test]
fn links_are_not_made_in_the_open() {
    for site in Site::both() {
        let server = site.serve_people();
        let body = json!({ "login": "ada@example.org", "password": PASSWORD }).to_string();
        let told = server.client().send("POST", "/_/sign-in", &[JSON], body.as_bytes()).json();
        let bearer = format!("Bearer {}", told["token"].as_str().expect("a token"));
        // Programs may show their token there, but get no link.
        let far = [("Authorization", &*bearer), ("X-Forwarded-For", "192.0.2.1"), JSON];
        assert_eq!(get(&server, "/_/me", &far).json()["kind"], "account");
        let refused = server.client().send("POST", "/_/accounts/2/link", &far, b"{}");
        assert_eq!((refused.status, refused.json()["code"].clone()), (403, json!("INSECURE")));
        assert_eq!(site.sql("SELECT count(*) FROM trefoil_links"), "0");
        let near = [("Authorization", &*bearer), JSON];
        let made = server.client().send("POST", "/_/accounts/2/link", &near, b"{}");
        assert_eq!(made.status, 201, "{}", made.text());
        assert_eq!(use_link(&server, &token_in(&made.text()), "another long password").status, 303);
    }
}

#[test]
fn the_address_of_a_link_goes_nowhere() {
    for site in Site::both() {
        let server = site.serve_people();
        let link = site.link("bob@example.org");
        let policy = |reply: &crate::support::Reply, what: &str| {
            assert_eq!(reply.header("referrer-policy"), Some("strict-origin"), "{what}");
            assert_eq!(reply.header("cache-control"), Some("no-store"), "{what}");
        };
        let path = format!("/_/link?token={link}");
        policy(&get(&server, &path, &[HTML]), "good");
        policy(&get(&server, "/_/link?token=tfl_x", &[HTML]), "bad");
        policy(&get(&server, &path, &[HTML, ("X-Forwarded-For", "192.0.2.1")]), "in the open");
        policy(&use_link(&server, &link, "short"), "refused");
        let ada = sign_in(&server, "ada@example.org");
        policy(&form(&server, "/_/accounts/2/link", &[("Cookie", &ada)], &[]), "made");
        for _ in 0..60 {
            get(&server, "/_/link?token=tfl_guessed", &[HTML]);
        }
        let late = get(&server, &path, &[HTML]);
        assert_eq!(late.status, 429);
        policy(&late, "too many");
    }
    let [first, _] = Site::both_with("[]");
    let server = first.serve();
    server.wait_for("/_/link?token=");
    let page = get(&server, &format!("/_/link?token={}", token_in(&server.log())), &[HTML]);
    assert_eq!((page.status, page.header("referrer-policy")), (200, Some("strict-origin")));
}
