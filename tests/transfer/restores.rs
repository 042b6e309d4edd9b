//! A backup of either store restores into either, with ids that were never used before.

use super::site::{BOTH, Site, follow, tagless};

#[test]
fn backup_of_either_store_restores_into_either() {
    for from in BOTH {
        let site = Site::new();
        let store = site.filled(from, "from", 60);
        let before = site.served(&store);
        let said = site.must(&["backup", "app", "--to", "aside.db"], &store);
        assert!(said.starts_with("aside.db: ") && said.ends_with(" records, verified\n"), "{said}");
        for to in BOTH {
            let target = site.place(to, "to");
            site.must(&["restore", "aside.db", "app"], &target);
            let after = site.served(&target);
            assert_eq!(tagless(after.clone()), tagless(before.clone()), "{from:?} to {to:?}");
            assert_ne!(
                after.last(),
                before.last(),
                "a list that may be older than one somebody saw has a new tag"
            );
            let refused = site.refused(&["restore", "aside.db", "app"], &target);
            assert!(
                refused.contains("a store with records already exists; use --overwrite to replace it"),
                "{refused}"
            );
            assert_eq!(site.served(&target), after);
        }
    }
}

#[test]
fn restored_store_begins_a_new_epoch() {
    for on in BOTH {
        let site = Site::new();
        let store = site.filled(on, "store", 5);
        let create = |label: &str| {
            let server = site.serve(&store);
            let made =
                server.client().graphql(&format!("mutation {{ createTag(label: \"{label}\") {{ id }} }}"));
            assert!(made.get("errors").is_none(), "{made}");
        };
        let start = follow(site.serve(&store).address, None, 0).expect("a stream")[0].id.clone();
        create("kept");
        site.must(&["backup", "app", "--to", "aside.db"], &store);
        create("lost");
        let told = follow(site.serve(&store).address, Some(&start), 2).expect("a stream");
        site.must(&["restore", "aside.db", "app", "--overwrite"], &store);
        create("instead");
        let server = site.serve(&store);
        let again = follow(server.address, Some(&start), 2).expect("an id from before the backup goes on");
        assert_eq!(again[1], told[1], "what is older than the backup has its id still");
        assert_ne!(again[2].id, told[2].id, "another change has another id");
        assert!(again[2].data.contains("instead"), "{again:?}");
        let lost = follow(server.address, Some(&told[2].id), 0).expect_err("it was lost");
        assert!(lost.contains("the store may have been restored"), "{lost}");
        let tag = |etag: &str| {
            server
                .client()
                .send("GET", etag, &[("accept", "application/json")], b"")
                .header("etag")
                .map(str::to_owned)
        };
        let known = tag("/tags/1").expect("a tag");
        drop(server);
        site.must(&["restore", "aside.db", "app", "--overwrite"], &store);
        let server = site.serve(&store);
        let now = server.client().send("GET", "/tags/1", &[("accept", "application/json")], b"");
        assert_ne!(
            now.header("etag"),
            Some(known.as_str()),
            "a version of the past is not taken for one of now"
        );
    }
}

/// Clients may still hold the id of a record that is gone.
#[test]
fn restored_store_reuses_no_record_id() {
    for on in BOTH {
        let site = Site::new();
        let store = site.filled(on, "store", 5);
        let create = |label: &str| {
            let create = format!("mutation {{ createTag(label: \"{label}\") {{ id }} }}");
            let made = site.serve(&store).client().graphql(&create);
            made["data"]["createTag"]["id"].as_str().expect("an id").parse::<i64>().expect("a number")
        };
        site.must(&["backup", "app", "--to", "aside.db"], &store);
        let lost = create("lost");
        site.must(&["restore", "aside.db", "app", "--overwrite"], &store);
        assert_eq!(create("instead"), lost + 1, "{on:?}");
        let elsewhere = site.place(on, "elsewhere");
        site.must(&["restore", "aside.db", "app"], &elsewhere);
        let create = "mutation { createTag(label: \"there\") { id } }";
        let made = site.serve(&elsewhere).client().graphql(create);
        assert_eq!(made["data"]["createTag"]["id"], lost.to_string());
    }
}

#[test]
fn damaged_store_is_replaced_with_overwrite() {
    let site = Site::new();
    let store = site.filled(super::site::On::Sqlite, "store", 10);
    let before = site.served(&store);
    site.must(&["backup", "app", "--to", "aside.db"], &store);
    std::fs::write(
        site.path("store/trefoil.db"),
        "no database at all, and longer than a header of one needs to be".repeat(20),
    )
    .expect("written");
    let refused = site.refused(&["restore", "aside.db", "app"], &store);
    assert!(refused.contains("cannot be read") && refused.contains("--overwrite"), "{refused}");
    site.must(&["restore", "aside.db", "app", "--overwrite"], &store);
    assert_eq!(tagless(site.served(&store)), tagless(before));
}
