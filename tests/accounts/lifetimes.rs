//! Accounts: how long sessions and links last, and how many sessions one account has.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{HTML, JSON, MANIFEST, PASSWORD, Site, get, me, sign_in};
use crate::support::Process;

const DAY: i64 = 24 * 3_600;

fn is_signed_in(server: &Process, cookie: &str) -> bool {
    me(server, cookie)["kind"] == "account"
}

#[test]
fn sessions_end_when_they_are_not_used_and_after_their_lifetime() {
    for site in Site::both() {
        let server = site.serve_people();
        let cookie = sign_in(&server, "bob@example.org");
        let lasts = site.sql("SELECT expires - created FROM trefoil_sessions");
        assert_eq!(lasts, (30 * DAY).to_string());
        drop(server);
        for (change, is_good) in [
            (format!("seen = seen - {}", 7 * DAY - 60), true),
            // The use of just now may be written by then.
            (format!("seen = created - {}", 7 * DAY), false),
            (format!("seen = created - {}", 7 * DAY - 60), true),
            (format!("seen = created, expires = created - {}", 1), false),
            (format!("expires = created + {DAY}"), true),
        ] {
            site.sql(&format!("UPDATE trefoil_sessions SET {change}"));
            let server = site.serve();
            assert_eq!(is_signed_in(&server, &cookie), is_good, "{change}");
        }
        // As the settings say, also for those that have begun.
        site.put(
            "app/trefoil.toml",
            &format!("{MANIFEST}session-idle = \"1h\"\nsession-lifetime = \"2d\"\n"),
        );
        site.sql("UPDATE trefoil_sessions SET seen = created - 3600");
        let server = site.serve();
        assert!(!is_signed_in(&server, &cookie));
        sign_in(&server, "bob@example.org");
        assert_eq!(site.sql("SELECT min(expires - created) FROM trefoil_sessions"), DAY.to_string());
        assert_eq!(site.sql("SELECT max(expires - created) FROM trefoil_sessions"), (2 * DAY).to_string());
    }
}

#[test]
fn an_account_has_fifty_sessions() {
    for site in Site::both() {
        let server = site.serve_people();
        let ada = sign_in(&server, "ada@example.org");
        let [used, unused] = [(); 2].map(|()| sign_in(&server, "bob@example.org"));
        let count = || site.sql("SELECT count(*) FROM trefoil_sessions WHERE account = '2'");
        site.sql(
            "UPDATE trefoil_sessions SET seen = seen - 200, created = created - 200 WHERE account = '2'",
        );
        let body = json!({ "login": "bob@example.org", "password": PASSWORD }).to_string();
        let more = |many: usize| {
            for _ in 0..many {
                let reply = server.client().send("POST", "/_/sign-in", &[JSON], body.as_bytes());
                assert_eq!(reply.status, 201, "{}", reply.text());
            }
        };
        more(48);
        assert_eq!(count(), "50");
        assert!(is_signed_in(&server, &used) && is_signed_in(&server, &unused));
        // The first of both was used since then.
        let number = site.sql("SELECT min(hash) FROM trefoil_sessions WHERE account = '2' AND seen < (SELECT max(seen) FROM trefoil_sessions) - 100");
        site.sql(&format!("UPDATE trefoil_sessions SET seen = seen - 100 WHERE hash = '{number}'"));
        more(1);
        assert_eq!(count(), "50");
        assert_eq!(
            [&used, &unused].map(|cookie| is_signed_in(&server, cookie)).iter().filter(|good| **good).count(),
            1
        );
        assert_eq!(site.sql(&format!("SELECT count(*) FROM trefoil_sessions WHERE hash = '{number}'")), "0");
        assert!(is_signed_in(&server, &ada));
    }
}

#[test]
fn when_a_session_was_seen_is_written_once_a_minute() {
    std::thread::scope(|scope| {
        for site in Site::both() {
            scope.spawn(move || {
                let server = site.serve_people();
                let cookie = sign_in(&server, "bob@example.org");
                let seen = || site.sql("SELECT seen FROM trefoil_sessions").parse::<i64>().expect("seconds");
                drop(server);
                site.sql("UPDATE trefoil_sessions SET seen = seen - 300");
                let (server, old) = (site.serve(), seen());
                let began = Instant::now();
                // Each use is of another second; all of them are one write.
                let mut written = Vec::new();
                while began.elapsed() < Duration::from_secs(35) {
                    assert!(is_signed_in(&server, &cookie));
                    std::thread::sleep(Duration::from_millis(1_000));
                    let now = seen();
                    if now != old && written.last() != Some(&now) {
                        written.push(now);
                    }
                }
                let [first] = written[..] else { panic!("{old}: {written:?}") };
                assert!(first >= old + 300, "{first} {old}");
            });
        }
    });
}

#[test]
fn links_are_good_for_their_lifetime() {
    for site in Site::both() {
        let server = site.serve();
        let is_good = |link: &str| get(&server, &format!("/_/link?token={link}"), &[HTML]).status == 200;
        let lasts = || {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
            let expires: i64 = site.sql("SELECT expires FROM trefoil_links").parse().expect("seconds");
            expires - i64::try_from(now.as_secs()).expect("small")
        };
        let link = site.link("bob@example.org");
        assert!((DAY - 60..=DAY).contains(&lasts()), "{}", lasts());
        assert!(is_good(&link));
        site.sql(&format!("UPDATE trefoil_links SET expires = expires - {}", DAY - 30));
        assert!(is_good(&link));
        site.sql("UPDATE trefoil_links SET expires = expires - 31");
        assert!(!is_good(&link));
        assert_eq!(super::use_link(&server, &link, PASSWORD).status, 404);
        site.put("app/trefoil.toml", &format!("{MANIFEST}link-lifetime = \"2h\"\n"));
        let link = site.link("bob@example.org");
        assert!((7_100..=7_200).contains(&lasts()), "{}", lasts());
        assert!(is_good(&link));
    }
}
