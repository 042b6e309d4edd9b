//! The audit: sign-ins, links, passwords, keys and sessions, and nothing that is secret.

use serde_json::Value;

use super::{PASSWORD, Site, cookie_of, form, sign_in, token_in, told};

#[test]
fn trust_is_noted_without_what_is_secret() {
    for site in Site::both("") {
        let server = site.serve();
        let ada = sign_in(&site, &server, "ada@example.org");
        let bob = sign_in(&site, &server, "bob@example.org");
        let id = ("X-Request-Id", "request-9");
        let before = site.count();
        let cookie = |cookie: &'static str| ("Cookie", cookie);
        let (ada, bob): (&'static str, &'static str) = (ada.leak(), bob.leak());
        let new = "another long password";
        let change = [("current", PASSWORD), ("password", new), ("again", new)];
        let changed = form(&server, "/_/account/password", &[cookie(bob), id], &change);
        assert_eq!(changed.status, 303, "{}", changed.text());
        let bob: &'static str = cookie_of(&changed).leak();
        let made = form(&server, "/_/accounts/2/link", &[cookie(ada), id], &[]);
        assert_eq!(made.status, 200, "{}", made.text());
        let link = token_in(&made.text());
        assert_eq!(form(&server, "/_/accounts/2/end-sessions", &[cookie(ada), id], &[]).status, 303);
        let used = [("token", link.as_str()), ("password", PASSWORD), ("again", PASSWORD)];
        assert_eq!(form(&server, "/_/link", &[id], &used).status, 303);
        assert_eq!(form(&server, "/_/sign-out", &[cookie(ada), id], &[]).status, 303);
        let done: Vec<String> = site.told_since(before);
        assert_eq!(
            done,
            [
                "account:2 set-password User/2 v- -",
                "account:1 make-link User/2 v- -",
                "account:1 end-sessions User/2 v- -",
                "- use-link User/2 v- -",
                "- set-password User/2 v- -",
                "account:1 sign-out -/- v- -",
            ]
        );
        for entry in &site.entries(&[])[before..] {
            assert_eq!(
                (&entry["request"], &entry["address"]),
                (&Value::from("request-9"), &Value::from("127.0.0.1"))
            );
        }
        // Somebody new.
        let before = site.count();
        let person =
            [("name", "Cy"), ("email", "cy@example.org"), ("password", PASSWORD), ("again", PASSWORD)];
        let signed_up = form(&server, "/_/sign-up", &[id], &person);
        assert_eq!(signed_up.status, 303, "{}", signed_up.text());
        assert_eq!(
            site.told_since(before),
            ["- create User/3 v1 name,email", "- set-password User/3 v- -", "account:3 sign-in User/3 v- -",]
        );
        // Commands.
        let before = site.count();
        let key = site.key("ci", &["--as", "bob@example.org"]);
        site.must(&["key", "revoke", "ci", "app"]);
        let command_link = token_in(&site.must(&["user", "link", "bob@example.org", "app"]));
        site.must(&["user", "end", "bob@example.org", "app"]);
        site.must(&["user", "end", "--all", "app"]);
        assert_eq!(
            site.told_since(before),
            [
                "operator add-key ci v- -",
                "operator revoke-key ci v- -",
                "operator make-link User/2 v- -",
                "operator end-sessions User/2 v- -",
                "operator end-sessions -/- v- -",
            ]
        );
        assert!(!site.run(&["key", "revoke", "ci", "app"], "").status.success());
        assert_eq!(site.count(), before + 5, "what changes nothing is not noted");
        // A server that ends writes down what it has gathered.
        let before = site.count();
        for password in ["wrong password", "marked-guess-1"] {
            let fields = [("login", "marked@example.org"), ("password", password)];
            assert_eq!(form(&server, "/_/sign-in", &[], &fields).status, 401);
        }
        assert_eq!(site.count(), before);
        let mut server = server;
        server.signal("TERM");
        server.ended_within(std::time::Duration::from_secs(20));
        let failed = site.entries(&[]).split_off(before);
        assert_eq!(failed.iter().map(told).collect::<Vec<_>>(), ["- failed-sign-ins -/- v- -"]);
        assert_eq!(
            (&failed[0]["count"], &failed[0]["address"]),
            (&Value::from(2), &Value::from("127.0.0.1"))
        );

        let all = site.must(&["audit", "app", "--format", "ndjson"]);
        let secrets = [
            PASSWORD,
            new,
            "wrong password",
            "marked",
            "ada@",
            "bob@",
            "cy@",
            "Cy",
            "tfl_",
            "tfk_",
            "tfs_",
            "$argon2",
            &key,
            &link,
            &command_link,
            ada,
            bob,
        ];
        for secret in secrets {
            assert!(!all.contains(secret), "{secret} in {all}");
        }
    }
}
