//! Accounts: people and programs sign in and out, by forms and JSON.

use serde_json::{Value, json};

use super::{HTML, JSON, PASSWORD, Site, cookie_of, form, get, html, me, sign_in, sign_in_as};

#[test]
fn people_sign_in_and_out_by_forms() {
    for site in Site::both() {
        let server = site.serve_people();
        server.wait_for("sign in at /_/sign-in");
        let page = get(&server, "/_/sign-in?next=/notes", &[HTML]);
        assert_eq!(page.status, 200);
        for part in ["autocomplete=\"username\"", "autocomplete=\"current-password\"", "value=\"/notes\""] {
            assert!(html(&page).contains(part), "{part}: {}", page.text());
        }
        assert_eq!(page.header("cache-control"), Some("no-store"));

        let wrong = sign_in_as(&server, &[], "ada@example.org", "not the password");
        let unknown = sign_in_as(&server, &[], "eve@example.org", "not the password");
        assert_eq!((wrong.status, unknown.status), (401, 401));
        assert!(wrong.text().contains("Login or password is wrong"), "{}", wrong.text());
        assert_eq!(wrong.text().replace("ada@", "eve@"), unknown.text().replace("ada@", "eve@"));
        assert!(wrong.headers_named("set-cookie").is_empty());

        let reply = sign_in_as(&server, &[], "ADA@example.org", PASSWORD);
        assert_eq!((reply.status, reply.header("location")), (303, Some("/notes")));
        let set = reply.headers_named("set-cookie").concat();
        for part in ["trefoil=tfs_", "Max-Age=25", "Path=/", "HttpOnly", "SameSite=Lax"] {
            assert!(set.contains(part), "{part}: {set}");
        }
        assert!(!set.contains("Secure"), "{set}");
        let cookie = cookie_of(&reply);
        let told = me(&server, &cookie);
        assert_eq!((told["kind"].as_str(), told["roles"].clone()), (Some("account"), json!(["ADMIN"])));
        assert_eq!(told["me"]["name"], "Ada Lovelace");
        server.wait_for("\"actor\":\"account:1\"");

        let notes = get(&server, "/notes", &[HTML, ("Cookie", &cookie)]).text();
        assert!(notes.contains("Ada Lovelace") && notes.contains("/_/sign-out"), "{notes}");
        assert!(notes.replace("&#x2f;", "/").contains("href=\"/_/account\""), "{notes}");
        // The same page of somebody else, who sees the same.
        let bob = sign_in(&server, "bob@example.org");
        let others = get(&server, "/notes", &[HTML, ("Cookie", &bob)]).text();
        assert!(others.contains("Bob") && !others.contains("Ada"), "{others}");
        let again = get(&server, "/notes", &[HTML, ("Cookie", &cookie)]).text();
        assert!(again.contains("Ada Lovelace") && !again.contains("Bob"), "{again}");

        for (cookie, name) in [(&cookie, "Ada Lovelace"), (&bob, "Bob"), (&cookie, "Ada Lovelace")] {
            let path = "/graphql?query=%7Bme%7Bname%7D%7D";
            let told = get(&server, path, &[("Cookie", cookie), ("Accept", "application/json")]).json();
            assert_eq!(told, json!({ "data": { "me": { "name": name } } }));
        }

        let out = form(&server, "/_/sign-out", &[("Cookie", &cookie)], &[]);
        assert_eq!((out.status, out.header("location")), (303, Some("/")));
        assert!(out.headers_named("set-cookie").concat().contains("trefoil=; Max-Age=0"));
        assert_eq!(out.header("clear-site-data"), Some("\"cache\", \"storage\""));
        assert_eq!(me(&server, &cookie)["kind"], "anonymous");
        let stale = get(&server, "/_/me", &[("Cookie", &cookie)]);
        assert!(stale.headers_named("set-cookie").concat().contains("trefoil=; Max-Age=0"));
        assert_eq!(me(&server, &bob)["kind"], "account");
    }
}

#[test]
fn programs_sign_in_with_json() {
    for site in Site::both() {
        let server = site.serve_people();
        let ask =
            |body: Value| server.client().send("POST", "/_/sign-in", &[JSON], body.to_string().as_bytes());
        let wrong = ask(json!({"login": "ada@example.org", "password": "no"}));
        assert_eq!((wrong.status, wrong.json()["code"].clone()), (401, json!("UNAUTHENTICATED")));
        assert_eq!(ask(json!(["ada@example.org"])).status, 400);
        assert_eq!(ask(json!({"login": 7})).status, 400);
        let reply = ask(json!({"login": "ada@example.org", "password": PASSWORD}));
        assert_eq!(reply.status, 201, "{}", reply.text());
        assert!(reply.headers_named("set-cookie").is_empty());
        let told = reply.json();
        assert_eq!(told["me"]["email"], "ada@example.org");
        let bearer = format!("Bearer {}", told["token"].as_str().expect("a token"));
        let headers = [("Authorization", bearer.as_str())];
        assert_eq!(get(&server, "/users", &headers).status, 200);
        let created = server.client().send("POST", "/notes", &[headers[0], JSON], b"{\"title\": \"One\"}");
        assert_eq!((created.status, created.json()["authorId"].clone()), (201, json!("1")));
        let out = server.client().send("POST", "/_/sign-out", &headers, b"");
        assert_eq!(out.status, 204);
        let ended = get(&server, "/users", &headers);
        assert_eq!(ended.status, 401);
        assert!(ended.text().contains("/_/sign-in"), "{}", ended.text());
        // Never by HTTP's own dialog of browsers.
        assert_eq!(ended.header("www-authenticate"), Some("Bearer realm=\"app\", error=\"invalid_token\""));
        let basic = get(&server, "/users", &[("Authorization", "Basic YWRhQGV4YW1wbGUub3JnOnNlY3JldA==")]);
        assert_eq!(basic.status, 401);
    }
}

#[test]
fn pages_lead_to_the_sign_in_and_back() {
    let [site, _] = Site::both();
    let server = site.serve_people();
    let led = get(&server, "/users?page=1", &[HTML]);
    assert_eq!((led.status, led.header("location")), (303, Some("/_/sign-in?next=%2Fusers%3Fpage%3D1")));
    assert_eq!(get(&server, "/users", &[("Accept", "application/json")]).status, 401);
    for (next, expected) in [
        ("/notes?page=1", "/notes?page=1"),
        ("https://evil.example/", "/"),
        ("//evil.example/", "/"),
        ("/\\evil.example", "/"),
        ("/%0d%0aSet-Cookie:a=b", "/%0d%0aSet-Cookie:a=b"),
        ("javascript:alert(1)", "/"),
        ("", "/"),
    ] {
        let fields = [("login", "ada@example.org"), ("password", PASSWORD), ("next", next)];
        let reply = form(&server, "/_/sign-in", &[], &fields);
        assert_eq!((reply.status, reply.header("location")), (303, Some(expected)), "{next}");
    }
    // Without `next` it is the start page, wherever the link was followed.
    let referer = format!("http://{}/notes", server.address);
    let page = get(&server, "/_/sign-in", &[HTML, ("Referer", &referer)]);
    assert!(html(&page).contains("name=\"next\" value=\"/\""), "{}", page.text());
}

#[test]
fn open_pages_link_to_the_sign_in_and_back_to_their_section() {
    let [site, _] = Site::both();
    let schema = format!("{}\n{}", super::SCHEMA, "type Plan @allow(read: true) { id: ID! title: String! }");
    site.put("app/graphql/schema.graphqls", &schema.replace("me: User }", "me: User plans: [Plan!]! }"));
    let server = site.serve();
    let page = get(&server, "/plans", &[HTML]);
    assert!(html(&page).contains("href=\"/_/sign-in?next=/plans\""), "{}", page.text());
    let page = get(&server, "/_/sign-in", &[HTML]);
    assert!(html(&page).contains("href=\"/_/sign-in\""), "{}", page.text());
}

#[test]
fn forms_that_are_sent_after_the_session_ended_come_back() {
    for site in Site::both() {
        let server = site.serve_people();
        let cookie = sign_in(&server, "bob@example.org");
        let created = form(&server, "/notes", &[("Cookie", &cookie)], &[("title", "One")]);
        assert_eq!(created.status, 303, "{}", created.text());
        site.must(&["user", "end", "bob@example.org", "app"]);
        let typed = "Two\nlines & <more> that nobody wants to type again";
        for path in ["/notes", "/notes/1"] {
            let fields = [("title", typed), ("-version", "1")];
            let lost = form(&server, path, &[("Cookie", &cookie)], &fields);
            assert_eq!(lost.status, 401, "{path}: {}", lost.text());
            let text = lost.text();
            for part in
                ["lines &amp; &lt;more&gt; that nobody", "target=\"_blank\"", "name=\"-version\" value=\"1\""]
            {
                assert!(text.contains(part), "{path} has no {part}: {text}");
            }
        }
        let again = sign_in(&server, "bob@example.org");
        assert_eq!(form(&server, "/notes", &[("Cookie", &again)], &[("title", typed)]).status, 303);
    }
}

#[test]
fn people_sign_up_with_what_anyone_may_give() {
    for site in Site::both() {
        let server = site.serve_people();
        let page = get(&server, "/_/sign-up", &[HTML]);
        assert_eq!(page.status, 200, "{}", page.text());
        assert!(
            page.text().contains("name=\"email\"") && !page.text().contains("name=\"role\""),
            "{}",
            page.text()
        );
        let send = |email: &str| {
            let fields = [("name", "Eve"), ("email", email), ("password", PASSWORD), ("again", PASSWORD)];
            form(&server, "/_/sign-up", &[], &fields)
        };
        let fields = [("name", "Eve"), ("email", "eve@example.org"), ("role", "ADMIN")];
        let passwords = [("password", PASSWORD), ("again", PASSWORD)];
        let taken = form(&server, "/_/sign-up", &[], &[&fields[..], &passwords].concat());
        assert_eq!(taken.status, 403, "{}", taken.text());
        assert!(taken.text().contains("role"), "{}", taken.text());
        let made = send("eve@example.org");
        assert_eq!(made.status, 303, "{}", made.text());
        let told = me(&server, &cookie_of(&made));
        assert_eq!(
            (told["roles"].clone(), told["me"]["email"].clone()),
            (json!([]), json!("eve@example.org"))
        );
        let taken = send("eve@example.org");
        assert_eq!(taken.status, 409, "{}", taken.text());
        assert!(taken.text().contains("value=\"Eve\""), "{}", taken.text());
    }
}

const TEAMS: &str = r#"
type User @account(login: "email", signUp: true) @allow(read: "this == me || role(NOBODY)") {
  id: ID!
  email: String! @unique @email
  open: OpenTeam
  closed: ClosedTeam
}
type OpenTeam @allow(read: "listed") { id: ID! name: String! listed: Boolean! }
type ClosedTeam @allow(read: "signedIn") { id: ID! name: String! }
type Query { me: User }
"#;

/// Who signs up refers to nothing that nobody may see, and learns nothing of it.
#[test]
fn people_who_sign_up_join_no_team_out_of_sight() {
    for site in Site::both_with("[]") {
        site.put("app/graphql/schema.graphqls", TEAMS);
        let team = r#"[{"id": 1, "name": "A", "listed": true}, {"id": 2, "name": "B", "listed": false}]"#;
        site.put("app/seed/open-teams.json", team);
        site.put("app/seed/closed-teams.json", r#"[{"id": 1, "name": "C"}]"#);
        site.must(&["reset", "app", "--yes"]);
        let server = site.serve();
        let send = |email: &str, field: &str, id: &str| {
            let fields = [("email", email), (field, id), ("password", PASSWORD), ("again", PASSWORD)];
            form(&server, "/_/sign-up", &[], &fields)
        };
        for (field, id) in [("openId", "2"), ("openId", "99"), ("closedId", "1"), ("closedId", "99")] {
            let refused = send("eve@example.org", field, id);
            assert_eq!(refused.status, 400, "{field} {id}: {}", refused.text());
            assert!(!refused.text().contains(">B<"), "{}", refused.text());
        }
        let made = send("eve@example.org", "openId", "1");
        assert_eq!(made.status, 303, "{}", made.text());
        assert_eq!(me(&server, &cookie_of(&made))["me"]["openId"], "1");
    }
}

#[test]
fn nobody_is_null_and_no_mistake() {
    let [site, _] = Site::both();
    let server = site.serve_people();
    let path = "/graphql?query=%7Bme%7Bname%20role%7D%7D";
    let told = get(&server, path, &[("Accept", "application/json")]).json();
    assert_eq!(told, json!({ "data": { "me": null } }));
}

/// Pages name whoever looks at them: they are not given to others, whatever a client accepts.
#[test]
fn a_page_names_nobody_else() {
    let [site, _] = Site::both();
    let server = site.serve_people();
    let [ada, bob] = ["ada@example.org", "bob@example.org"].map(|login| sign_in(&server, login));
    for accept in ["application/json", "text/csv;q=0.1, text/*", "TEXT/HTML, application/json;q=0.5"] {
        for (cookie, name, other) in [(&ada, "Ada Lovelace", "Bob"), (&bob, "Bob", "Ada Lovelace")] {
            let headers = [("Cookie", cookie.as_str()), ("Accept", accept)];
            let page = get(&server, "/notes", &headers).text();
            assert_eq!(page.contains(name), page.contains("<html"), "{accept}: {page}");
            assert!(!page.contains(other), "{accept}: {page}");
        }
    }
}

#[test]
fn own_views_know_who_is_signed_in() {
    for site in Site::both() {
        let view = "{% if site.actor %}{{ site.actor.name }} at {{ site.actor.href }}{% else %}nobody, {{ site.sign_in }}{% endif %}";
        site.put("app/views/about.html", view);
        let pages = "[[text]]\npath = \"/open\"\nview = \"about\"\n\n[[text]]\npath = \"/inside\"\nview = \"about\"\nallow = \"signedIn\"\n";
        site.put("app/trefoil.toml", &format!("{pages}\n{}", super::MANIFEST));
        let server = site.serve_people();
        let page =
            |path: &str, headers: &[(&str, &str)]| html(&get(&server, path, &[headers, &[HTML]].concat()));
        for (login, name) in [("ada@example.org", "Ada Lovelace"), ("bob@example.org", "Bob")] {
            let cookie = sign_in(&server, login);
            assert_eq!(page("/inside", &[("Cookie", &cookie)]), format!("{name} at /_/account"));
            // What is public looks at no credential.
            assert_eq!(page("/open", &[("Cookie", &cookie)]), "nobody, /_/sign-in");
        }
        // An endpoint with a fixed response answers programs, so nobody is led to the sign-in.
        assert_eq!(get(&server, "/inside", &[HTML]).status, 401);
    }
}
