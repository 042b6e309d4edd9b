//! Accounts: what a move to the other database takes along, and what an export does not have.

use super::{HTML, PASSWORD, Site, get, me, sign_in, sign_in_as, use_link};
use crate::support::postgres;

const TABLES: [&str; 5] = ["passwords", "sessions", "links", "identities", "audit"];

fn counts(site: &Site) -> [String; 5] {
    TABLES.map(|table| site.sql(&format!("SELECT count(*) FROM trefoil_{table}")))
}

/// To the other kind of database, in both directions.
#[test]
fn a_move_takes_along_what_people_sign_in_with() {
    for mut site in Site::both() {
        let server = site.serve_people();
        let session = sign_in(&server, "bob@example.org");
        let link = site.link("ada@example.org");
        site.sql(
            "INSERT INTO trefoil_identities (issuer, subject, account_type, account, linked) \
             VALUES ('https://login.example', 'b', 'User', '2', 7)",
        );
        drop(server);
        let before = counts(&site);
        assert!(before.iter().all(|count| count != "0"), "{before:?}");
        let identity = "SELECT subject || account FROM trefoil_identities";
        let (to, store) = match site.store[1].as_str() {
            "sqlite:" => {
                let url = postgres::database();
                (url.clone(), vec!["--database".to_owned(), url])
            }
            _ => {
                let flags = ["--database", "sqlite:", "--data", "data"];
                ("sqlite:data".to_owned(), flags.map(str::to_owned).to_vec())
            }
        };
        site.must(&["move", "app", "--to", &to]);
        site.store = store;
        assert_eq!(counts(&site), before, "to {to}");
        assert_eq!(site.sql(identity), "b2");
        let server = site.serve();
        assert_eq!(me(&server, &session)["kind"], "account", "to {to}");
        assert_eq!(sign_in_as(&server, &[], "bob@example.org", PASSWORD).status, 303);
        assert_eq!(get(&server, &format!("/_/link?token={link}"), &[HTML]).status, 200);
        assert_eq!(use_link(&server, &link, "another long password").status, 303);
        let told = site.must(&["audit", "app"]);
        assert!(told.contains("use-link") && told.contains("sign-in"), "{told}");
        // What ends with an account ends there, too.
        site.sql("DELETE FROM users WHERE id = 2");
        assert_eq!(me(&server, &session)["kind"], "anonymous");
        assert_eq!(site.sql("SELECT count(*) FROM trefoil_identities"), "0");
    }
}

#[test]
fn an_export_has_records_alone() {
    for site in Site::both() {
        let server = site.serve_people();
        let session = sign_in(&server, "bob@example.org");
        let link = site.link("ada@example.org");
        drop(server);
        let exported = site.must(&["export", "app", "--resource", "users"]);
        let there = Site::new(&["--database", "sqlite:", "--data", "data"], "[]");
        there.put("users.ndjson", &exported);
        there.must(&["import", "app", "--resource", "users", "--from", "users.ndjson"]);
        assert_eq!(there.sql("SELECT count(*) FROM users"), "2");
        let server = there.serve();
        assert_eq!(me(&server, &session)["kind"], "anonymous");
        assert_eq!(get(&server, &format!("/_/link?token={link}"), &[HTML]).status, 404);
        assert_eq!(sign_in_as(&server, &[], "bob@example.org", PASSWORD).status, 401);
        assert_eq!(use_link(&server, &there.link("bob@example.org"), PASSWORD).status, 303);
        sign_in(&server, "bob@example.org");
    }
}
