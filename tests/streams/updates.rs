//! Updates of which an actor sees nothing are not told.

use serde_json::Value;

use super::listener::{Listener, Way};
use super::site::{StreamSite, done};

#[test]
fn updates_of_hidden_fields_are_not_told() {
    for site in StreamSite::both() {
        let admin = site.key("admin", &["--role", "ADMIN", "--role", "EDITOR"]);
        let author = site.key("author", &["--role", "AUTHOR"]);
        let server = site.serve();
        let made = done(&server, &admin, "mutation { createPost(title: \"one\") { id } }");
        let id = made["createPost"]["id"].as_str().expect("an id").to_owned();
        let update = |what: &str| {
            done(&server, &admin, &format!("mutation {{ updatePost(id: {id}, {what}) {{ id }} }}"));
        };
        let query = "subscription { postChanged { kind changed post { title } } }";
        for way in [Way::Socket, Way::Events, Way::Multipart, Way::Rest] {
            let mut count = 0;
            let mut listen = |credential: &str| {
                let mut listener =
                    Listener::open(way, server.address, credential, "/posts", query).expect("a stream");
                listener.follow(|| {
                    count += 1;
                    update(&format!("title: \"begin {count}\""));
                });
                listener
            };
            let (mut theirs, mut all) = (listen(&author), listen(&admin));
            update("title: \"begun\"");
            theirs.until("begun");
            all.until("begun");
            let told = [
                // Hidden before and after.
                ("note: \"first\"", false),
                ("note: \"second\"", false),
                ("title: \"two\", note: \"third\"", true),
                // It decides whether the record is in sight.
                ("published: false", false),
                ("published: true", true),
                ("note: \"fourth\"", false),
                // Its rule depends on the record, also where it is cleared.
                ("remark: \"first\"", false),
                ("remark: null", false),
                ("note: null", false),
                ("title: \"last\"", true),
            ];
            told.iter().for_each(|(what, _)| update(what));
            let heard = theirs.until("last");
            let expected = told.iter().filter(|(_, is_told)| *is_told).count();
            assert_eq!(heard.len(), expected, "{way:?}: {heard:?}");
            assert_eq!(all.until("last").len(), told.len(), "{way:?}");
            if way == Way::Socket {
                let changed = |event: &String| {
                    let event: Value = serde_json::from_str(event).expect("JSON");
                    event["payload"]["data"]["postChanged"]["changed"].to_string()
                };
                let changed: Vec<String> = heard.iter().map(changed).collect();
                assert_eq!(changed, ["[\"title\"]", "[\"published\"]", "[\"title\"]"]);
            }
        }
    }
}

#[test]
fn what_is_hidden_from_others_is_told_to_its_owner() {
    for site in StreamSite::both() {
        let admin = site.key("admin", &["--role", "ADMIN"]);
        let ada = site.key("ada", &["--as", "ada@example.org"]);
        let server = site.serve();
        let query = "subscription { userUpdated { id email role } }";
        for way in [Way::Socket, Way::Rest] {
            let mut listener = Listener::open(way, server.address, &ada, "/users", query).expect("a stream");
            let update = |what: &str| {
                done(&server, &admin, &format!("mutation {{ updateUser({what}) {{ id }} }}"));
            };
            // Roles are open to all.
            let mut roles = ["AUTHOR", "EDITOR"].into_iter().cycle();
            listener.follow(|| update(&format!("id: 2, role: {}", roles.next().expect("a role"))));
            update("id: 2, role: ADMIN");
            listener.until("ADMIN");
            for what in [
                "id: 2, email: \"bob2@example.org\"",
                "id: 1, email: \"ada2@example.org\"",
                "id: 2, email: \"bob@example.org\"",
                "id: 1, email: \"ada@example.org\"",
                "id: 2, role: null",
            ] {
                update(what);
            }
            let heard = listener.until("\"role\":null");
            let emails: Vec<bool> = heard.iter().map(|event| event.contains("ada")).collect();
            assert_eq!(emails, [true, true, false], "{way:?}: {heard:?}");
        }
    }
}
