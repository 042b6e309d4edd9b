//! `trefoil move` to the other database and back: ids, versions, keys and event ids move too, and one store is live.

use std::time::{Duration, Instant};

use super::site::{BOTH, Event, On, Site, Store, follow, keyed};
use crate::support::{Process, postgres};

fn create(server: &Process, label: &str) -> i64 {
    let made = server.client().graphql(&format!("mutation {{ createTag(label: \"{label}\") {{ id }} }}"));
    made["data"]["createTag"]["id"]
        .as_str()
        .and_then(|id| id.parse().ok())
        .unwrap_or_else(|| panic!("{made}"))
}

/// What another program gets that writes to the store.
fn write_from_outside(site: &Site, store: &Store) -> Result<(), String> {
    let sql = "INSERT INTO tags (label) VALUES ('from outside')";
    match store {
        Store::Sqlite(folder) => {
            let connection =
                rusqlite::Connection::open(site.path(folder).join("trefoil.db")).expect("a file");
            connection.execute_batch(sql).map_err(|error| error.to_string())
        }
        Store::Postgres(url) => {
            let run =
                std::process::Command::new("psql").args(["-Xq", url, "-c", sql]).output().expect("psql");
            let said = String::from_utf8_lossy(&run.stderr).into_owned();
            if run.status.success() { Ok(()) } else { Err(said) }
        }
    }
}

#[test]
fn move_there_and_back_serves_the_same() {
    let site = Site::new();
    let here = site.filled(On::Sqlite, "here", 80);
    let there = site.place(On::Postgres, "there");
    let before = site.served(&here);
    let known = keyed(&mut site.serve(&here).client(), "kept");
    for (from, to) in [(&here, &there), (&there, &here), (&here, &there)] {
        let said = site.must(&["move", "app", "--to", &to.target()], from);
        assert!(said.contains(" records moved and verified\n"), "{said}");
        assert_eq!(site.served(to), before);
        assert_eq!(keyed(&mut site.serve(to).client(), "kept"), known, "a retry is no second write");
        let why = site.not_served(from);
        assert!(why.contains("this store was moved to ") && why.contains("trefoil move app --undo"), "{why}");
        let refused = write_from_outside(&site, from).expect_err("nobody writes there any more");
        assert!(refused.contains("this store was moved to "), "{refused}");
        let again = site.refused(&["move", "app", "--to", &to.target()], from);
        assert!(again.contains("already"), "{again}");
    }
}

#[test]
fn move_between_stores_of_the_same_kind() {
    for on in BOTH {
        let site = Site::new();
        let (from, to) = (site.filled(on, "from", 20), site.place(on, "to"));
        let before = site.served(&from);
        site.must(&["move", "app", "--to", &to.target()], &from);
        assert_eq!(site.served(&to), before);
        site.not_served(&from);
    }
}

#[test]
fn subscription_resumes_after_a_move() {
    for on in BOTH {
        let site = Site::new();
        let (from, to) = (site.filled(on, "from", 10), site.place(on.other(), "to"));
        let server = site.serve(&from);
        let start = follow(server.address, None, 0).expect("a stream")[0].id.clone();
        let labels = ["one", "two", "three"];
        let ids: Vec<i64> = labels.iter().map(|label| create(&server, label)).collect();
        let told = follow(server.address, Some(&start), 3).expect("a stream");
        drop(server);
        site.must(&["move", "app", "--to", &to.target()], &from);
        let server = site.serve(&to);
        let again = follow(server.address, Some(&told[1].id), 2).expect("a stream");
        assert_eq!(again[1..], told[2..], "what it missed, once");
        assert!(create(&server, "four") > ids[2]);
        let next = follow(server.address, Some(&told[3].id), 1).expect("a stream");
        let number = |event: &Event| {
            event.id.split_once('-').map(|(tag, n)| (tag.to_owned(), n.parse::<i64>().unwrap()))
        };
        let (tag, last) = number(&told[3]).expect("an id");
        assert_eq!(number(&next[1]), Some((tag, last + 1)), "numbers go on");
    }
}

#[test]
fn ids_are_not_reused_after_a_move() {
    for on in BOTH {
        let site = Site::new();
        let (from, to) = (site.filled(on, "from", 5), site.place(on.other(), "to"));
        let server = site.serve(&from);
        let last = create(&server, "gone soon");
        server.client().graphql(&format!("mutation {{ deleteTag(id: {last}) {{ id }} }}"));
        drop(server);
        site.must(&["move", "app", "--to", &to.target()], &from);
        assert!(create(&site.serve(&to), "the next") > last);
    }
}

#[test]
fn store_in_use_is_not_moved() {
    for on in BOTH {
        let site = Site::new();
        let (from, to) = (site.filled(on, "from", 5), site.place(on.other(), "to"));
        let server = site.serve(&from);
        // On PostgreSQL a server is known by a lock that it takes in its first moments.
        let begin = Instant::now();
        let refused = loop {
            if on == On::Sqlite || is_known(&from) {
                break site.refused(&["move", "app", "--to", &to.target()], &from);
            }
            assert!(begin.elapsed() < Duration::from_secs(30), "the server does not show itself");
            std::thread::sleep(Duration::from_millis(50));
        };
        assert!(refused.contains("server"), "{refused}");
        create(&server, "still live");
        drop(server);
        site.must(&["move", "app", "--to", &to.target()], &from);
    }
}

fn is_known(store: &Store) -> bool {
    let Store::Postgres(url) = store else { return true };
    let sql = "SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' \
               AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    postgres::sql(url, sql) == "t"
}

#[test]
fn move_undo_is_explicit_and_reuses_no_id() {
    for on in BOTH {
        let site = Site::new();
        let (from, to) = (site.filled(on, "from", 5), site.place(on.other(), "to"));
        let start = follow(site.serve(&from).address, None, 0).expect("a stream")[0].id.clone();
        site.must(&["move", "app", "--to", &to.target()], &from);
        let server = site.serve(&to);
        create(&server, "elsewhere");
        let elsewhere = follow(server.address, Some(&start), 1).expect("a stream")[1].clone();
        drop(server);
        let said = site.must(&["move", "app", "--undo"], &from);
        assert!(said.contains("active again"), "{said}");
        write_from_outside(&site, &from).expect("it is written again");
        let server = site.serve(&from);
        let here = follow(server.address, Some(&start), 1).expect("an id from before goes on")[1].clone();
        assert_ne!(here.id, elsewhere.id);
        let lost = follow(server.address, Some(&elsewhere.id), 0).expect_err("it was given elsewhere");
        assert!(lost.contains("EVENT_ID_UNKNOWN") || lost.contains("event id"), "{lost}");
        drop(server);
        let refused = site.refused(&["move", "app", "--undo"], &from);
        assert!(refused.contains("was not moved away"), "{refused}");
        let refused = site.refused(&["move", "app", "--to", &to.target()], &from);
        assert!(refused.contains("--overwrite"), "two stores have gone their own ways: {refused}");
        site.must(&["move", "app", "--to", &to.target(), "--overwrite"], &from);
    }
}
