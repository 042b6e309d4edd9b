//! The audit: who sees it, its filters, and how long it is kept.

use super::{HTML, JSON, Site, get, sign_in};

const SEEN_BY_ADMINS: &str = "see-audit = \"role(ADMIN)\"\n";

/// The page without the escapes of slashes.
fn html(reply: &crate::support::Reply) -> String {
    reply.text().replace("&#x2f;", "/")
}

#[test]
fn only_those_whom_the_setting_allows_see_the_page() {
    for site in Site::both(SEEN_BY_ADMINS) {
        let server = site.serve();
        let anonymous = get(&server, "/_/audit", &[HTML]);
        assert_eq!(
            (anonymous.status, anonymous.header("location")),
            (303, Some("/_/sign-in?next=%2F_%2Faudit"))
        );
        let bob = sign_in(&site, &server, "bob@example.org");
        assert_eq!(get(&server, "/_/audit", &[HTML, ("Cookie", &bob)]).status, 403);
        assert!(!html(&get(&server, "/posts", &[HTML, ("Cookie", &bob)])).contains("/_/audit"));
        let ada = sign_in(&site, &server, "ada@example.org");
        assert!(html(&get(&server, "/posts", &[HTML, ("Cookie", &ada)])).contains("href=\"/_/audit\""));
        let page = get(&server, "/_/audit", &[HTML, ("Cookie", &ada)]);
        assert_eq!((page.status, page.header("cache-control")), (200, Some("no-store")), "{}", page.text());
        let text = html(&page);
        for part in [
            "account:1",
            "Sign in",
            "User 1",
            "operator",
            "href=\"/users/1\"",
            "name,email,role".replace(',', ", ").as_str(),
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        // The last first.
        let position = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} in {text}"));
        assert!(position("Sign in</td>") < position("Create</td>"));
        let key = site.key("ops", &["--role", "ADMIN"]);
        assert_eq!(get(&server, "/_/audit", &[HTML, ("Authorization", &key)]).status, 200);
    }
    // Nobody without the setting; and an open application has none.
    for site in Site::both("") {
        let server = site.serve();
        let key = site.key("ops", &["--role", "ADMIN"]);
        assert_eq!(get(&server, "/_/audit", &[HTML, ("Authorization", &key)]).status, 403);
    }
    let open = crate::support::Server::sample();
    let page = crate::support::Client::of(&open).send("GET", "/_/audit", &[HTML], b"");
    assert_eq!(page.status, 404);
}

#[test]
fn entries_are_found_by_actor_type_and_time_and_page_by_page() {
    for site in Site::both(SEEN_BY_ADMINS) {
        let server = site.serve();
        let [key, other] = ["ci", "ops"].map(|name| site.key(name, &["--role", "ADMIN"]));
        for number in 0..60 {
            let key = if number % 20 == 0 { &other } else { &key };
            let body = format!("{{\"name\": \"tag {number}\"}}");
            let headers = [JSON, ("Authorization", key.as_str())];
            assert_eq!(server.client().send("POST", "/tags", &headers, body.as_bytes()).status, 201);
        }
        let page = |path: &str| {
            let reply = get(&server, path, &[HTML, ("Authorization", &key)]);
            assert_eq!(reply.status, 200, "{}", reply.text());
            html(&reply)
        };
        let ids = |text: &str| -> Vec<u32> {
            let parts = text.split("<bdi>Tag ").skip(1);
            parts.map(|part| part.split(',').next().expect("an id").parse().expect("a number")).collect()
        };
        let first = page("/_/audit?type=Tag");
        assert_eq!(ids(&first), (11..=60).rev().collect::<Vec<u32>>());
        let older = first.split("rel=\"next\" href=\"").nth(1).and_then(|rest| rest.split('"').next());
        let older = older.expect("a link to earlier entries").replace("&amp;", "&");
        assert_eq!(ids(&page(&older)), (1..=10).rev().collect::<Vec<u32>>());
        assert_eq!(ids(&page("/_/audit?actor=key%3Aops&type=Tag")), [41, 21, 1]);
        let entries = site.entries(&["--actor", "key:ops", "--type", "Tag"]);
        assert_eq!(entries.len(), 3);
        let time = entries[1]["at"].as_str().expect("a time");
        let since = format!("/_/audit?actor=key%3Aops&type=Tag&since={time}");
        assert_eq!(ids(&page(&since)), [41, 21]);
        assert_eq!(ids(&page(&since.replace("since", "until"))), [1]);
        assert_eq!(site.entries(&["--since", time, "--type", "Tag"]).len(), 40);
        assert_eq!(site.entries(&["--since", "1h", "--type", "User"]).len(), 2);
        assert!(page("/_/audit?type=Code").contains("Nothing that fits."));
        let wrong = get(&server, "/_/audit?since=yesterday", &[HTML, ("Authorization", &key)]);
        assert_eq!((wrong.status, wrong.text().contains("From is not a time")), (400, true));
        let table = site.must(&["audit", "app", "--type", "User"]);
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[0].contains("who") && lines.len() == 3 && lines[2].contains("User 1 v1"), "{table}");
        assert!(site.must(&["audit", "app", "--type", "Nothing"]).is_empty());
    }
}

#[test]
fn old_entries_go_and_backups_keep_the_others() {
    for site in Site::both("audit-for = \"1h\"\n") {
        let before = site.entries(&[]);
        assert_eq!(before.len(), 2);
        let copy = match site.store[1].as_str() {
            "sqlite:" => ["--database", "sqlite:", "--data", "copy"].map(str::to_owned).to_vec(),
            _ => vec!["--database".to_owned(), crate::support::postgres::database()],
        };
        site.must(&["backup", "app", "--to", "saved.trefoil"]);
        let copied = Site { folder: tempfile::tempdir().expect("a folder"), store: copy };
        copied.put("app/graphql/schema.graphqls", super::SCHEMA);
        copied.put("app/trefoil.toml", super::CHEAP);
        let saved = site.folder.path().join("saved.trefoil");
        let saved = saved.to_str().expect("a path");
        let restored = copied.run(&["restore", saved, "app"], "");
        assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
        assert_eq!(copied.entries(&[]), before);
        let server = copied.serve();
        let key = copied.key("ci", &["--role", "ADMIN"]);
        let headers = [JSON, ("Authorization", key.as_str())];
        assert_eq!(server.client().send("POST", "/tags", &headers, br#"{"name": "x"}"#).status, 201);
        assert_eq!(copied.count(), 4);
        // A server removes what is too old, however much it is.
        let numbers = if site.store[1] == "sqlite:" {
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)"
        } else {
            "WITH n(i) AS (SELECT * FROM generate_series(1, 2500))"
        };
        let hour_ago = (jiff::Timestamp::now() - jiff::SignedDuration::from_mins(61)).as_microsecond();
        site.outside(&format!(
            "{numbers} INSERT INTO trefoil_audit (at, number, action) SELECT {hour_ago} - i, i, 'old' FROM n"
        ));
        assert_eq!(site.count(), 2 + 2_500);
        let _server = site.serve();
        let since = std::time::Instant::now();
        while site.count() > 2 {
            assert!(since.elapsed() < std::time::Duration::from_secs(20), "{} entries", site.count());
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        assert_eq!(site.entries(&[]), before);
    }
}
