//! Which stores `trefoil reset` accepts: those the application could be served from; others need `--overwrite`.

use super::site::{BOTH, On, Site, Store};

const OTHER: &str = "type Tag { id: ID! label: String! } type Query { tags: [Tag] }";

fn refused(site: &Site, folder: &str, store: &Store, words: &[&str]) {
    let before = site.served(store);
    let ran = site.run(&["reset", folder, "--yes"], store);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    for words in words {
        assert!(ran.err.contains(words), "no {words:?} in {}", ran.err);
    }
    assert_eq!(site.served(store), before, "nothing was changed");
}

#[test]
fn store_of_another_application_is_refused() {
    for on in BOTH {
        let site = Site::new();
        let store = site.filled(on, "store", 10);
        site.put("other/graphql/a.graphqls", OTHER);
        let words =
            ["32 records whose schema differs from that of other", "Author: removed", "add --overwrite"];
        refused(&site, "other", &store, &words);
        let said = site.must(&["reset", "other", "--yes", "--overwrite"], &store);
        assert!(said.ends_with(": 32 records deleted; other starts empty\n"), "{said}");
    }
}

#[test]
fn store_of_an_older_schema_needs_overwrite() {
    for on in BOTH {
        let site = Site::new();
        let store = site.filled(on, "store", 10);
        let schema = std::fs::read_to_string(site.path("app/graphql/library.graphqls")).expect("the schema");
        site.put("app/graphql/library.graphqls", &schema.replace("  phone: String", ""));
        let ran = site.run(&["reset", "app", "--yes"], &store);
        assert!(ran.code == 1 && ran.err.contains("Author.phone"), "{}{}", ran.out, ran.err);
        let not_served = site.not_served(&store);
        assert!(not_served.contains("run `trefoil migrate app --plan` to see all steps"), "{not_served}");
        let exported = site.run(&["export", "app"], &store).err;
        assert!(exported.contains("run `trefoil migrate app --apply`"), "{exported}");
        let said = site.must(&["reset", "app", "--yes", "--overwrite"], &store);
        assert!(said.ends_with(": 32 records deleted; the seeds of Library were loaded\n"), "{said}");
    }
}

#[test]
fn store_that_a_start_could_migrate_is_reset() {
    for on in BOTH {
        let site = Site::new();
        let store = site.filled(on, "store", 10);
        let more = "extend type Author { nick: String } type Shelf { id: ID! name: String! }";
        site.put("app/graphql/more.graphqls", more);
        let said = site.must(&["reset", "app", "--yes"], &store);
        assert!(said.contains("32 records deleted"), "{said}");
    }
}

#[test]
fn unreadable_store_needs_overwrite() {
    let site = Site::new();
    let store = site.filled(On::Sqlite, "store", 3);
    let file = site.path("store/trefoil.db");
    for name in ["store/trefoil.db-wal", "store/trefoil.db-shm"] {
        let _ = std::fs::remove_file(site.path(name));
    }
    std::fs::write(&file, "no database at all, but long enough to be looked at as if it were one")
        .expect("written");
    let ran = site.run(&["reset", "app", "--yes"], &store);
    assert!(
        ran.code == 1 && ran.err.contains("cannot determine whether this is a store of Library"),
        "{}",
        ran.err
    );
    let said = site.must(&["reset", "app", "--yes", "--overwrite"], &store);
    assert!(said.ends_with(": all data deleted; the seeds of Library were loaded\n"), "{said}");
    assert!(!site.served(&store).is_empty());
}
