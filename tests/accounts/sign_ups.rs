//! Accounts: people make accounts for themselves, or are refused; and logins that differ in case.

use serde_json::json;

use super::{HTML, PASSWORD, SCHEMA, Site, cookie_of, form, get, html, me, sign_in_as, token_in};
use crate::support::{Process, Reply};

fn sign_up(server: &Process, fields: &[(&str, &str)]) -> Reply {
    let own = |name: &str| fields.iter().any(|(given, _)| *given == name);
    let usual = [("name", "Eve"), ("email", "eve@example.org"), ("password", PASSWORD), ("again", PASSWORD)];
    let rest = usual.into_iter().filter(|(name, _)| !own(name));
    form(server, "/_/sign-up", &[], &fields.iter().copied().chain(rest).collect::<Vec<_>>())
}

#[test]
fn sign_ups_are_refused_with_what_was_typed() {
    for site in Site::both() {
        let server = site.serve_people();
        for (fields, status, words) in [
            (&[("email", "")][..], 400, "value=\"Eve\""),
            (&[("email", "nonsense")], 400, "value=\"nonsense\""),
            (&[("email", "ada@example.org")], 409, "value=\"ada@example.org\""),
            (&[("password", "short"), ("again", "short")], 400, "Use at least 12 characters"),
            (&[("again", "another long password")], 400, "Type the same password twice"),
            (
                &[("password", "qwertyuiop12"), ("again", "qwertyuiop12")],
                400,
                "Many people use this password",
            ),
            (
                &[("password", "eve@example.org"), ("again", "eve@example.org")],
                400,
                "not a name or the login",
            ),
        ] {
            let refused = sign_up(&server, fields);
            assert_eq!(refused.status, status, "{fields:?}: {}", refused.text());
            assert!(html(&refused).contains(words), "{fields:?}: {}", refused.text());
            assert!(!refused.text().contains(PASSWORD), "{fields:?}");
            assert!(refused.headers_named("set-cookie").is_empty(), "{fields:?}");
        }
        // Who makes an account gives themselves no role.
        let refused = sign_up(&server, &[("role", "ADMIN")]);
        assert_eq!(refused.status, 403, "{}", refused.text());
        assert_eq!(site.sql("SELECT count(*) FROM users"), "2");
        assert_eq!(site.sql("SELECT count(*) FROM trefoil_passwords"), "2");
        let made = sign_up(&server, &[]);
        assert_eq!((made.status, made.header("location")), (303, Some("/")), "{}", made.text());
        let told = me(&server, &cookie_of(&made));
        assert_eq!((told["me"]["name"].clone(), told["roles"].clone()), (json!("Eve"), json!([])));
    }
    let [site, _] = Site::both();
    site.put("app/graphql/schema.graphqls", &SCHEMA.replace(", signUp: true", ""));
    let server = site.serve();
    assert_eq!(get(&server, "/_/sign-up", &[HTML]).status, 404);
    assert_eq!(sign_up(&server, &[]).status, 404);
    assert!(!html(&get(&server, "/_/sign-in", &[HTML])).contains("/_/sign-up"));
}

#[test]
fn a_network_makes_fifty_accounts_in_a_quarter_of_an_hour() {
    let [site, _] = Site::both();
    let server = site.serve();
    for number in 0..50 {
        let made = sign_up(&server, &[("email", &format!("n{number}@example.org"))]);
        assert_eq!(made.status, 303, "{number}: {}", made.text());
    }
    let refused = sign_up(&server, &[]);
    assert_eq!((refused.status, refused.header("retry-after").is_some()), (429, true));
    // It keeps nobody from signing in.
    assert_eq!(sign_in_as(&server, &[], "n7@example.org", PASSWORD).status, 303);
}

#[test]
fn who_signs_up_first_leaves_the_first_link_to_nobody() {
    for site in Site::both_with("[]") {
        let server = site.serve();
        server.wait_for("/_/link?token=");
        let path = format!("/_/link?token={}", token_in(&server.log()));
        assert_eq!(get(&server, &path, &[HTML]).status, 200);
        let made = sign_up(&server, &[]);
        assert_eq!(me(&server, &cookie_of(&made))["roles"], json!([]));
        assert_eq!(get(&server, &path, &[HTML]).status, 404);
        // The operator has other ways.
        let link =
            site.must(&["user", "add", "ada@example.org", "app", "--set", "name=Ada", "--set", "role=ADMIN"]);
        assert_eq!(super::use_link(&server, &token_in(&link), PASSWORD).status, 303);
        let ada = super::sign_in(&server, "ada@example.org");
        assert_eq!(me(&server, &ada)["roles"], json!(["ADMIN"]));
    }
}

#[test]
fn logins_that_differ_in_case_are_told_apart() {
    for site in Site::both() {
        let server = site.serve();
        for (login, password) in
            [("eve@example.org", "the password of eve"), ("Eve@example.org", "the password of Eve")]
        {
            let made = sign_up(&server, &[("email", login), ("password", password), ("again", password)]);
            assert_eq!(made.status, 303, "{}", made.text());
        }
        for (login, password, status) in [
            ("eve@example.org", "the password of eve", 303),
            ("Eve@example.org", "the password of Eve", 303),
            ("eve@example.org", "the password of Eve", 401),
            // Two accounts fit, and none exactly.
            ("EVE@example.org", "the password of eve", 401),
            ("EVE@example.org", "the password of Eve", 401),
        ] {
            assert_eq!(sign_in_as(&server, &[], login, password).status, status, "{login} {password}");
        }
    }
}
