//! Accounts: other sites, open networks and guesses.

use serde_json::json;

use super::{HTML, JSON, MANIFEST, PASSWORD, Site, cookie_of, form, get, html, me, sign_in, sign_in_as};

#[test]
fn other_sites_neither_use_a_session_nor_begin_one() {
    for site in Site::both() {
        site.put("app/trefoil.toml", &format!("cors-origins = [\"https://b.example\", \"*\"]\n{MANIFEST}"));
        let server = site.serve_people();
        let cookie = sign_in(&server, "bob@example.org");
        let cookie = ("Cookie", cookie.as_str());
        for site in [
            ("Sec-Fetch-Site", "cross-site"),
            ("Sec-Fetch-Site", "same-site"),
            ("Origin", "https://b.example"),
        ] {
            for (path, fields) in [
                ("/notes", &[("title", "x")][..]),
                ("/_/sign-out", &[]),
                ("/_/account/sessions/end-others", &[]),
            ] {
                let reply = form(&server, path, &[cookie, site], fields);
                assert_eq!(reply.status, 403, "{path} {site:?}: {}", reply.text());
            }
            // Browsers keep the cookie from such a form, but would take the answer: it must not sign anybody out.
            let out = form(&server, "/_/sign-out", &[site], &[]);
            assert_eq!((out.status, out.headers_named("set-cookie").len()), (403, 0), "{site:?}");
            // A read is one of nobody.
            let read = get(&server, "/_/me", &[cookie, site]);
            assert_eq!(read.json()["kind"], "anonymous", "{site:?}");
            // Signing somebody in as another one is refused, too.
            let forged = sign_in_as(&server, &[site], "ada@example.org", PASSWORD);
            assert_eq!(forged.status, 403, "{}", forged.text());
            let body = json!({"login": "ada@example.org", "password": PASSWORD}).to_string();
            assert_eq!(
                server.client().send("POST", "/_/sign-in", &[JSON, site], body.as_bytes()).status,
                403
            );
        }
        let navigate = [cookie, ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")];
        assert_eq!(get(&server, "/_/me", &navigate).json()["kind"], "account");
        assert_eq!(
            form(&server, "/notes", &[cookie, ("Sec-Fetch-Site", "same-origin")], &[("title", "x")]).status,
            303
        );
    }
}

#[test]
fn passwords_and_cookies_are_not_taken_in_the_open() {
    for site in Site::both() {
        let server = site.serve_people();
        // As if a proxy that nobody trusts brought it.
        let far = ("X-Forwarded-For", "192.0.2.1");
        let reply = sign_in_as(&server, &[far], "ada@example.org", PASSWORD);
        assert_eq!(reply.status, 403);
        for part in ["trusted-proxies", "auth.insecure"] {
            assert!(reply.text().contains(part), "{part}: {}", reply.text());
        }
        let body = json!({"login": "ada@example.org", "password": PASSWORD}).to_string();
        let told = server.client().send("POST", "/_/sign-in", &[JSON, far], body.as_bytes());
        assert_eq!(told.json()["code"], "INSECURE");
        // Nor is there a form to type one into.
        for path in ["/_/sign-in", "/_/sign-up", "/_/link?token=tfl_x"] {
            let shown = get(&server, path, &[HTML, far]);
            assert_eq!(shown.status, 403, "{path}: {}", shown.text());
        }
        let cookie = sign_in(&server, "ada@example.org");
        assert_eq!(get(&server, "/_/me", &[("Cookie", &cookie), far]).json()["kind"], "anonymous");
        drop(server);

        site.put("app/trefoil.toml", &format!("trusted-proxies = [\"127.0.0.0/8\", \"::1\"]\n{MANIFEST}"));
        let server = site.serve();
        let https = [
            ("X-Forwarded-For", "192.0.2.1"),
            ("X-Forwarded-Proto", "https"),
            ("X-Forwarded-Host", "shop.example"),
        ];
        let reply = sign_in_as(&server, &https, "ada@example.org", PASSWORD);
        assert_eq!(reply.status, 303, "{}", reply.text());
        let set = reply.headers_named("set-cookie").concat();
        assert!(set.starts_with("__Host-trefoil=tfs_") && set.ends_with("; Secure"), "{set}");
        let token = set.split(';').next().expect("a part").to_owned();
        let with = |cookie: &str| get(&server, "/_/me", &[&https[..], &[("Cookie", cookie)]].concat()).json();
        assert_eq!(with(&token)["kind"], "account");
        // The name that others could set counts for nothing here.
        assert_eq!(with(&token.replace("__Host-", ""))["kind"], "anonymous");
        let links = form(&server, "/_/accounts/2/link", &[&https[..], &[("Cookie", &token)]].concat(), &[]);
        assert!(html(&links).contains("https://shop.example/_/link?token=tfl_"), "{}", links.text());
    }
}

#[test]
fn a_session_is_new_with_each_sign_in() {
    for site in Site::both() {
        let server = site.serve_people();
        // One that somebody else chose is not taken.
        let chosen = "trefoil=tfs_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        let reply = sign_in_as(&server, &[("Cookie", chosen)], "bob@example.org", PASSWORD);
        let first = cookie_of(&reply);
        assert_ne!(first, chosen);
        let second = cookie_of(&sign_in_as(&server, &[("Cookie", &first)], "bob@example.org", PASSWORD));
        assert_ne!(first, second);
        assert_eq!(me(&server, &first)["kind"], "anonymous");
        assert_eq!(me(&server, &second)["kind"], "account");
    }
}

#[test]
fn passwords_are_guessed_slowly() {
    for site in Site::both() {
        let server = site.serve_people();
        for _ in 0..5 {
            assert_eq!(sign_in_as(&server, &[], "bob@example.org", "a wrong password").status, 401);
        }
        let refused = sign_in_as(&server, &[], "bob@example.org", PASSWORD);
        assert_eq!(refused.status, 429, "{}", refused.text());
        let wait: u64 = refused.header("retry-after").expect("a time").parse().expect("seconds");
        assert!((1..=60).contains(&wait), "{wait}");
        // So is a login that nobody has.
        for _ in 0..5 {
            assert_eq!(sign_in_as(&server, &[], "nobody@example.org", "a wrong password").status, 401);
        }
        assert_eq!(sign_in_as(&server, &[], "nobody@example.org", PASSWORD).status, 429);
        assert_eq!(sign_in_as(&server, &[], "ada@example.org", PASSWORD).status, 303);
        // A page of another site that loads links as images makes nobody wait.
        let image = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors")];
        for _ in 0..60 {
            assert_eq!(get(&server, "/_/link?token=tfl_guessed", &image).status, 404);
        }
        for _ in 0..60 {
            get(&server, "/_/link?token=tfl_guessed", &[HTML]);
        }
        assert_eq!(get(&server, "/_/link?token=tfl_guessed", &[HTML]).status, 429);
        assert_eq!(sign_in_as(&server, &[], "ada@example.org", "a wrong password").status, 429);
        let metrics = get(&server, "/metrics", &[]).text();
        for line in ["outcome=\"wrong\"} 10", "outcome=\"signed-in\"} 1", "outcome=\"limited\"} 3"] {
            assert!(metrics.contains(line), "{line}: {metrics}");
        }
    }
}

/// Who is signed in is counted for themselves, wherever they are; guesses of tokens and strangers by their address.
#[test]
fn the_rate_limit_counts_actors() {
    for site in Site::both() {
        site.put("app/trefoil.toml", &format!("rate-limit = \"40/60s\"\n{MANIFEST}"));
        let server = site.serve_people();
        let [ada, bob] = ["ada@example.org", "bob@example.org"].map(|login| sign_in(&server, login));
        let asked = |headers: &[(&str, &str)]| get(&server, "/_/me", headers);
        let until_refused = |headers: &[(&str, &str)]| {
            let refused = (0..60).find(|_| asked(headers).status == 429);
            assert!(refused.is_some(), "{headers:?} is never refused");
        };
        until_refused(&[("Cookie", &ada)]);
        let others = asked(&[("Cookie", &bob)]);
        assert_eq!((others.status, others.header("ratelimit").is_some()), (200, true));
        assert_eq!(asked(&[]).status, 200);
        until_refused(&[("Authorization", "Bearer tfs_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")]);
        assert_eq!(asked(&[]).status, 429);
        // From the same address, and good all the same.
        assert_eq!(asked(&[("Cookie", &bob)]).status, 200);
    }
}
