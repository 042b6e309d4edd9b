//! Backups during writes, and which of them are kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::site::{BOTH, Site};
use crate::support::Client;

/// How many rows a statement counts in a file.
fn count(path: &std::path::Path, sql: &str) -> i64 {
    let connection = rusqlite::Connection::open(path).expect("a file");
    connection.query_row(sql, [], |row| row.get(0)).expect(sql)
}

#[test]
fn backup_is_one_snapshot_during_writes() {
    for on in BOTH {
        let site = Site::new();
        let store = site.filled(on, "store", 200);
        let server = site.serve(&store);
        let (over, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let (over, written, address) = (over.clone(), written.clone(), server.address);
                std::thread::spawn(move || {
                    let mut client = Client::to(address);
                    for number in 0.. {
                        if over.load(Ordering::SeqCst) {
                            return;
                        }
                        let create =
                            format!("mutation {{ createTag(label: \"w{writer} {number}\") {{ id }} }}");
                        assert!(client.graphql(&create).get("errors").is_none());
                        client.send("POST", "/items", &[], format!("{writer} {number}").as_bytes());
                        written.fetch_add(1, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        for number in 0..3 {
            let before = written.load(Ordering::SeqCst);
            while written.load(Ordering::SeqCst) < before + 5 {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            let acknowledged = written.load(Ordering::SeqCst) as i64;
            let name = format!("aside-{number}.db");
            site.must(&["backup", "app", "--to", &name], &store);
            let file = site.path(&name);
            let tags = count(&file, "SELECT count(*) FROM tags WHERE label LIKE 'w%'");
            assert!(tags >= acknowledged, "{tags} of {acknowledged}");
            let logged = "SELECT count(*) FROM trefoil_changes WHERE resource = 'Tag' AND deed = 'created' \
                          AND image LIKE '%\"w%'";
            assert_eq!(count(&file, logged), tags, "the log is of the same moment");
            let next = "SELECT max(number) - min(number) + 1 - count(*) FROM trefoil_changes";
            assert_eq!(count(&file, next), 0, "numbers without a gap");
            let items =
                "SELECT (SELECT count(*) FROM trefoil_list_values) - (SELECT length FROM trefoil_lists)";
            assert_eq!(count(&file, items), 0);
        }
        over.store(true, Ordering::SeqCst);
        writers.into_iter().for_each(|writer| writer.join().expect("every write was taken"));
        let restored = site.place(super::site::On::Sqlite, "restored");
        site.must(&["restore", "aside-2.db", "app"], &restored);
        site.served(&restored);
    }
}

#[test]
fn backup_keep_removes_only_its_own_older_ones() {
    for on in BOTH {
        let site = Site::new();
        let (store, other) = (site.filled(on, "store", 5), site.filled(on, "other", 5));
        site.put("kept/notes.txt", "mine");
        site.put("kept/library-20200101T000000.000Z.backup.db", "not a backup at all");
        site.must(&["backup", "app", "--to", "kept"], &other);
        let before = site.files("kept");
        assert_eq!(before.len(), 3);
        let made: Vec<String> = (0..4)
            .map(|_| {
                let said = site.must(&["backup", "app", "--to", "kept", "--keep", "2"], &store);
                let name = said.split(": ").next().and_then(|path| path.strip_prefix("kept/"));
                name.expect("the name of the file").to_owned()
            })
            .collect();
        let mut expected = [before, made[2..].to_vec()].concat();
        expected.sort();
        assert_eq!(site.files("kept"), expected, "{on:?}");
    }
}

/// A copy restored elsewhere is a store of its own; one restored in place is still the same store.
#[test]
fn backup_of_a_restored_copy_is_separate() {
    for on in BOTH {
        let site = Site::new();
        let store = site.filled(on, "store", 5);
        site.must(&["backup", "app", "--to", "aside.db"], &store);
        let (one, other) = (site.place(on, "one"), site.place(on, "other"));
        let keep = |store| site.must(&["backup", "app", "--to", "kept/", "--keep", "1"], store);
        for place in [&one, &other] {
            site.must(&["restore", "aside.db", "app"], place);
        }
        std::fs::create_dir(site.path("kept")).expect("a folder");
        for place in [&store, &one, &other] {
            keep(place);
        }
        assert_eq!(site.files("kept").len(), 3, "{on:?}");
        for place in [&store, &one, &other] {
            site.must(&["restore", "aside.db", "app", "--overwrite"], place);
            keep(place);
        }
        assert_eq!(site.files("kept").len(), 3, "{on:?}");
        // What has moved lives on: whatever comes in the place that it left is another store.
        let moved = site.place(on.other(), "moved");
        site.must(&["move", "app", "--to", &moved.target()], &one);
        let said = site.must(&["restore", "aside.db", "app", "--overwrite"], &one);
        assert!(said.contains("not the store that was backed up"), "{said}");
        keep(&one);
        keep(&moved);
        assert_eq!(site.files("kept").len(), 4, "{on:?}");
    }
}

#[test]
fn backup_of_a_moved_store_is_refused() {
    for on in BOTH {
        let site = Site::new();
        let (store, to) = (site.filled(on, "store", 5), site.place(on.other(), "to"));
        site.must(&["move", "app", "--to", &to.target()], &store);
        let refused = site.refused(&["backup", "app", "--to", "left.db"], &store);
        assert!(refused.contains("this store was moved to ") && !site.path("left.db").exists(), "{refused}");
        site.must(&["backup", "app", "--to", "left.db"], &to);
    }
}

#[test]
fn backup_replaces_only_a_backup_of_the_same_store() {
    let site = Site::new();
    let (store, other) = (site.filled(BOTH[0], "store", 5), site.filled(BOTH[0], "other", 5));
    site.must(&["backup", "app", "--to", "aside.db"], &store);
    site.must(&["backup", "app", "--to", "aside.db"], &store);
    site.put("notes.txt", "mine");
    for (name, store) in [("aside.db", &other), ("notes.txt", &store), ("store/trefoil.db", &store)] {
        let before = super::site::bytes(&site.path(name));
        let refused = site.refused(&["backup", "app", "--to", name], store);
        let what = if name == "aside.db" { "is a backup of another store" } else { "is not a backup" };
        assert!(refused.contains(what), "{refused}");
        assert_eq!(super::site::bytes(&site.path(name)), before);
    }
}

/// The next backup removes the leftovers of a killed one, but not the file that another is writing.
#[test]
fn backup_removes_leftovers_of_a_killed_one() {
    let site = Site::new();
    let store = site.filled(BOTH[0], "store", 5);
    for name in
        ["library-20200101T000000.000Z.backup.db.partial", "library-20200102T000000.000Z.backup.db.partial"]
    {
        site.put(&format!("kept/{name}"), "half of a backup");
    }
    site.put("kept/notes.partial", "mine");
    let written =
        std::fs::File::open(site.path("kept/library-20200102T000000.000Z.backup.db.partial")).unwrap();
    written.lock().unwrap();
    site.must(&["backup", "app", "--to", "kept"], &store);
    let files = site.files("kept");
    assert_eq!(files.len(), 3, "{files:?}");
    assert!(files[0].starts_with("library-20200102") && files[2] == "notes.partial", "{files:?}");
}
