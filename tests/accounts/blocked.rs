//! Accounts: what ends with an account that is blocked does not come back with it.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{JSON, PASSWORD, Site, me, sign_in, sign_in_as};
use crate::support::Process;

const MERGE: (&str, &str) = ("Content-Type", "application/merge-patch+json");

/// Blocks the second account, or no longer, in one of the ways in which records are written.
fn set_blocked(server: &Process, admin: &str, way: &str, blocked: bool) {
    let cookie = ("Cookie", admin);
    let (method, path, kind, body) = match way {
        "patch" => ("PATCH", "/users/2", MERGE, json!({ "blocked": blocked })),
        "put" => {
            let body = json!({ "name": "Bob", "email": "bob@example.org", "blocked": blocked });
            ("PUT", "/users/2", JSON, body)
        }
        "many" => ("PATCH", "/users?email=bob@example.org", MERGE, json!({ "blocked": blocked })),
        "batch" => {
            let request = json!({ "method": "PATCH", "path": "/users/2", "body": { "blocked": blocked } });
            ("POST", "/_/batch", JSON, json!([request]))
        }
        _ => {
            let query = format!("mutation {{ updateUser(id: 2, blocked: {blocked}) {{ id }} }}");
            ("POST", "/graphql", JSON, json!({ "query": query }))
        }
    };
    let reply = server.client().send(method, path, &[kind, cookie], body.to_string().as_bytes());
    assert!(reply.status < 300 && !reply.text().contains("\"errors\""), "{way}: {}", reply.text());
}

#[test]
fn sessions_of_a_blocked_account_do_not_come_back() {
    for site in Site::both() {
        let server = site.serve_people();
        let ada = sign_in(&server, "ada@example.org");
        for way in ["patch", "put", "many", "batch", "graphql"] {
            let [used, unused] = [(); 2].map(|()| sign_in(&server, "bob@example.org"));
            assert_eq!(me(&server, &used)["kind"], "account", "{way}");
            set_blocked(&server, &ada, way, true);
            if way == "patch" {
                assert_eq!(sign_in_as(&server, &[], "bob@example.org", PASSWORD).status, 401);
            }
            set_blocked(&server, &ada, way, false);
            for session in [&used, &unused] {
                assert_eq!(me(&server, session)["kind"], "anonymous", "{way}");
            }
            assert_eq!(me(&server, &ada)["kind"], "account", "{way}");
        }
        // What says nothing of it ends nothing.
        let bob = sign_in(&server, "bob@example.org");
        let renamed =
            server.client().send("PATCH", "/users/2", &[MERGE, ("Cookie", &ada)], b"{\"name\": \"B\"}");
        assert!(renamed.status < 300, "{}", renamed.text());
        assert_eq!(me(&server, &bob)["kind"], "account");
    }
}

#[test]
fn sessions_end_where_another_record_or_program_blocks_the_account() {
    for site in Site::both() {
        let schema = super::SCHEMA
            .replace("if: \"!blocked\"", "if: \"team == null || !team.closed\"")
            .replace("  name: String!\n  email", "  name: String!\n  team: Team\n  email")
            .replace(
                "type Query {",
                "type Team @allow(read: true) { id: ID! closed: Boolean! }\ntype Query { teams: [Team!]!",
            );
        site.put("app/graphql/schema.graphqls", &schema);
        let server = site.serve_people();
        let ada = sign_in(&server, "ada@example.org");
        let send = |method: &str, path: &str, kind, body: &str| {
            let reply = server.client().send(method, path, &[kind, ("Cookie", &*ada)], body.as_bytes());
            assert!(reply.status < 300, "{path}: {}", reply.text());
        };
        send("POST", "/teams", JSON, "{\"closed\": false}");
        send("PATCH", "/users/2", MERGE, "{\"teamId\": \"1\"}");
        let bob = sign_in(&server, "bob@example.org");
        send("PATCH", "/teams/1", MERGE, "{\"closed\": true}");
        send("PATCH", "/teams/1", MERGE, "{\"closed\": false}");
        assert_eq!(me(&server, &bob)["kind"], "anonymous");
        assert_eq!(me(&server, &ada)["kind"], "account");
        // What others write while no server runs counts from the next start on.
        let bob = sign_in(&server, "bob@example.org");
        drop(server);
        site.sql("UPDATE teams SET closed = true");
        let server = site.serve();
        let began = Instant::now();
        while site.sql("SELECT count(*) FROM trefoil_sessions") != "1" {
            assert!(began.elapsed() < Duration::from_secs(20), "the session is not ended");
            std::thread::sleep(Duration::from_millis(50));
        }
        site.sql("UPDATE teams SET closed = false");
        assert_eq!(me(&server, &bob)["kind"], "anonymous");
        assert_eq!(me(&server, &ada)["kind"], "account");
    }
}
