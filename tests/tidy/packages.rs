//! Allowed dependencies: between the crates of the workspace, and on external crates that only some may use.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use toml::Table;

/// Each crate and the crates of the workspace that it may use. `trefoil` is the package at the root.
const MAY_USE: &[(&str, &[&str])] = &[
    ("atomic-files", &[]),
    ("model", &[]),
    ("config", &["model"]),
    ("engine", &["model"]),
    ("application", &["config", "model"]),
    ("credentials", &["config", "engine", "model"]),
    ("data", &["atomic-files", "engine", "model"]),
    ("fake", &["engine", "model"]),
    ("sql", &["atomic-files", "config", "engine", "model"]),
    ("http", &["config", "engine", "model"]),
    ("graphql", &["config", "engine", "http", "model"]),
    ("resources", &["application", "engine", "http", "model"]),
    ("rest", &["application", "engine", "http", "model", "resources"]),
    ("pages", &["application", "config", "engine", "fake", "http", "model", "resources"]),
    (
        "server",
        &[
            "application",
            "config",
            "credentials",
            "engine",
            "graphql",
            "http",
            "model",
            "pages",
            "resources",
            "rest",
            "sql",
        ],
    ),
    (
        "cli",
        &[
            "application",
            "atomic-files",
            "config",
            "credentials",
            "data",
            "engine",
            "fake",
            "model",
            "pages",
            "server",
            "sql",
        ],
    ),
    ("trefoil", &["application", "cli", "config", "engine", "model", "server"]),
];

const HTTP: &[&str] = &["graphql", "http", "pages", "resources", "rest", "server"];

/// Outside crates, and the crates that alone may use them.
const ONLY_FOR: &[(&str, &[&str])] = &[
    ("apollo-compiler", &["graphql", "model"]),
    ("argon2", &["credentials"]),
    ("axum", HTTP),
    ("clap", &["cli", "config"]),
    ("http", HTTP),
    ("hyper", HTTP),
    ("ring", &["credentials"]),
    ("rusqlite", &["sql"]),
    ("tokio-postgres", &["sql"]),
];

/// Every package of the workspace by its short name, and what its Cargo.toml says.
fn packages() -> BTreeMap<String, Table> {
    let read = |path: &str| fs::read_to_string(path).expect(path).parse::<Table>().expect(path);
    let mut found = BTreeMap::from([("trefoil".to_owned(), read("Cargo.toml"))]);
    for name in super::crates() {
        let manifest = read(&format!("crates/{name}/Cargo.toml"));
        let package = manifest["package"]["name"].as_str().expect("a name");
        assert_eq!(package, format!("trefoil-{name}"), "a crate is called as its folder");
        found.insert(name, manifest);
    }
    found
}

/// What a package is built from. What only its tests use is not asked after.
fn dependencies(manifest: &Table) -> BTreeSet<String> {
    let targets = manifest.get("target").and_then(|targets| targets.as_table());
    let targets = targets.into_iter().flatten().filter_map(|(_, target)| target.as_table());
    let places = std::iter::once(manifest).chain(targets);
    let tables = places.flat_map(|place| ["dependencies", "build-dependencies"].map(|kind| place.get(kind)));
    let entries = tables.flatten().filter_map(|table| table.as_table()).flatten();
    entries
        .map(|(key, value)| {
            let renamed = value.get("package").and_then(|package| package.as_str());
            renamed.unwrap_or(key).to_owned()
        })
        .collect()
}

#[test]
fn crate_dependencies_have_one_direction() {
    let mut wrong = Vec::new();
    let packages = packages();
    for (name, manifest) in &packages {
        let Some((_, may)) = MAY_USE.iter().find(|(crate_name, _)| crate_name == name) else {
            wrong.push(format!("the crate `{name}` is not in the table of tests/tidy/packages.rs"));
            continue;
        };
        let ours = dependencies(manifest);
        for other in ours.iter().filter_map(|package| package.strip_prefix("trefoil-")) {
            if !may.contains(&other) {
                wrong.push(format!("the crate `{name}` must not use `{other}`"));
            }
        }
    }
    for name in MAY_USE.iter().flat_map(|(name, may)| std::iter::once(name).chain(*may)) {
        if !packages.contains_key(*name) {
            wrong.push(format!("there is no crate `{name}`, which tests/tidy/packages.rs names"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `ONLY_FOR` says which crate wraps which external one.
#[test]
fn external_crates_are_used_only_where_allowed() {
    let mut wrong = Vec::new();
    for (name, manifest) in packages() {
        let used = dependencies(&manifest);
        for (outside, homes) in ONLY_FOR {
            if used.contains(*outside) && !homes.contains(&name.as_str()) {
                wrong.push(format!("the crate `{name}` must not use `{outside}`, which is for {homes:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A crate without this line would not be checked by the lints of the others.
#[test]
fn every_crate_has_the_workspace_lints() {
    for (name, manifest) in packages() {
        let lints = manifest.get("lints").and_then(|lints| lints.get("workspace"));
        assert_eq!(lints.and_then(|value| value.as_bool()), Some(true), "{name}: [lints] workspace = true");
    }
}
