//! Fake records: the same from the same seed on both stores, valid under every rule; and `trefoil reset`.

use super::site::{BOTH, On, Site, follow, tagless, timeless};

#[test]
fn same_seed_makes_the_same_fake_records() {
    let site = Site::new();
    let made = |on: On, name: &str, seed: &str| {
        let store = site.place(on, name);
        let said = site.must(&["seed", "app", "--fake", "150", "--seed", seed], &store);
        assert!(said.contains("450 records generated from seed"), "{said}");
        timeless(site.served(&store))
    };
    let one = made(On::Sqlite, "one", "5");
    assert_eq!(one.len(), 150 + 150 + 2, "and the two tags of the seed");
    assert_eq!(one, made(On::Postgres, "two", "5"));
    assert_ne!(one, made(On::Sqlite, "three", "6"));
}

#[test]
fn fake_records_can_be_added_to_existing_ones() {
    for on in BOTH {
        let site = Site::new();
        let store = site.place(on, "store");
        for seed in ["1", "2"] {
            site.must(&["seed", "app", "--fake", "40", "--seed", seed], &store);
        }
        let books = site.served(&store).into_iter().filter(|line| line.starts_with("/books")).count();
        assert_eq!(books, 80, "{on:?}");
    }
}

/// Keys that are not counted fit their rules, are the same from the same seed, and differ from those that exist.
#[test]
fn fake_keys_fit_their_rules() {
    let site = Site::new();
    site.put(
        "keys/graphql/a.graphqls",
        r#"
        type Country { code: ID! @key(kind: TEXT) @pattern(regex: "[A-Z]{2}") number: Int! @unique }
        type Shelf { code: ID! @key(kind: TEXT) @length(max: 2) country: Country! }
        type Tag { slug: ID! @key(kind: TEXT) number: Int! @unique }
        type Visit { id: UUID! tag: Tag! }
        scalar UUID
        "#,
    );
    let made = |on: On, name: &str| {
        let store = site.place(on, name);
        site.must(&["seed", "keys", "--fake", "150", "--seed", "5"], &store);
        site.must(&["seed", "keys", "--fake", "150", "--seed", "5"], &store);
        site.run(&["export", "keys"], &store).out
    };
    let one = made(On::Sqlite, "one");
    assert_eq!(one.lines().count(), 4 * 2 * 150);
    assert!(one == made(On::Postgres, "two"), "the stores differ");
}

#[test]
fn field_that_cannot_be_faked_is_named() {
    let site = Site::new();
    let circle = "type A { id: ID! b: B! } type B { id: ID! a: A! } type Query { as: [A] bs: [B] }";
    site.put("circle/graphql/a.graphqls", circle);
    let store = site.place(On::Sqlite, "store");
    let refused = site.refused(&["seed", "circle", "--fake", "3"], &store);
    assert!(refused.contains("A, B require each other"), "{refused}");
}

/// Whatever the reason, there are as many records as before.
#[test]
fn fake_records_are_all_or_nothing() {
    for on in BOTH {
        let site = Site::new();
        site.put(
            "app/graphql/more.graphqls",
            "type Place2 { id: ID! number: Int! @unique @range(min: 1, max: 700) }",
        );
        let store = site.place(on, "store");
        site.must(&["reset", "app", "--yes"], &store);
        let before = site.served(&store);
        let refused = site.refused(&["seed", "app", "--fake", "701"], &store);
        assert!(
            refused.contains("no records were generated: Place2 701: cannot generate a value"),
            "{refused}"
        );
        assert_eq!(site.served(&store), before, "{on:?}");
        let other = site.place(on, "other");
        assert!(site.must(&["seed", "app", "--fake", "700"], &other).contains("2,800 records generated"));
    }
}

#[test]
fn fake_unique_fields_use_every_value() {
    let site = Site::new();
    let schema =
        "enum E { A B } type One { id: ID! e: E! @unique b: Boolean! @unique } type Query { ones: [One] }";
    site.put("turns/graphql/a.graphqls", schema);
    for seed in ["1", "2", "3", "4"] {
        let store = site.place(On::Sqlite, seed);
        site.must(&["seed", "turns", "--fake", "2", "--seed", seed], &store);
        let refused = site.refused(&["seed", "turns", "--fake", "1", "--seed", seed], &store);
        assert!(refused.contains("One 3: ") && refused.contains("already taken"), "{refused}");
    }
}

/// A value may hold values of its own type: faked as long as the nesting can end.
#[test]
fn fake_recursive_values_end() {
    let site = Site::new();
    let within = |field: &str| {
        let schema = format!(
            "type Word {{ text: String! {field} }} type Post {{ id: ID! words: [Word!]! }} type Query {{ posts: [Post] }}"
        );
        site.put("within/graphql/a.graphqls", &schema);
    };
    let store = site.place(On::Sqlite, "store");
    within("replies: [Word!]!");
    assert!(site.must(&["seed", "within", "--fake", "50"], &store).contains("50 records generated"));
    within("reply: Word!");
    let ran = site.run(&["seed", "within", "--fake", "5"], &site.place(On::Sqlite, "other"));
    assert!(ran.code == 0 || ran.err.starts_with("error: "), "{} {}", ran.code, ran.err);
}

#[test]
fn reset_store_is_new_and_reuses_no_id() {
    for on in BOTH {
        let site = Site::new();
        let fresh = site.place(on, "fresh");
        let new = tagless(site.served(&fresh));
        let store = site.filled(on, "store", 30);
        let known = follow(site.serve(&store).address, None, 0).expect("a stream")[0].id.clone();
        let said = site.must(&["reset", "app", "--yes"], &store);
        assert!(said.contains("the seeds of Library were loaded"), "{said}");
        assert_eq!(tagless(site.served(&store)), new);
        let lost = follow(site.serve(&store).address, Some(&known), 0).expect_err("it was another store's");
        assert!(lost.contains("is from another store"), "{lost}");
    }
}

#[test]
fn reset_without_seeds_begins_empty() {
    let site = Site::new();
    site.put("bare/graphql/a.graphqls", "type A { id: ID! } type Query { as: [A] }");
    for on in BOTH {
        let said = site.must(&["reset", "bare", "--yes"], &site.place(on, "store"));
        assert!(said.ends_with(": 0 records deleted; bare starts empty\n"), "{said}");
    }
}

#[test]
fn reset_with_an_invalid_seed_removes_nothing() {
    for on in BOTH {
        let site = Site::new();
        let store = site.filled(on, "store", 10);
        let before = site.served(&store);
        site.put("app/seed/tags.json", r#"[{"nolabel": 1}]"#);
        let ran = site.run(&["reset", "app", "--yes"], &store);
        assert!(ran.code == 1 && ran.err.contains("seed/tags.json"), "{}", ran.err);
        assert_eq!(site.served(&store), before);
    }
}
