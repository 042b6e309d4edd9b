//! Checks that every code block of the guide is run by some test.

use std::fs;

use trefoil_model::{SourceFile, parse_schema};

use super::blocks;

/// The languages of each page's blocks that something runs: most of them here, `js` and `ts` in `e2e/`, a page's Rust as a
/// test of the library.
const RUN: &[(&str, &[&str])] = &[
    ("README.md", &["console", "graphql"]),
    ("docs/access.md", &["graphqls", "text"]),
    ("docs/accounts.md", &["graphqls", "toml"]),
    ("docs/backup.md", &["console"]),
    ("docs/cluster.md", &["console"]),
    ("docs/data.md", &["console"]),
    ("docs/embedding.md", &["rust,no_run"]),
    ("docs/errors.md", &["console"]),
    ("docs/from-spring.md", &["console", "graphqls"]),
    ("docs/graphql.md", &["graphql", "js", "json", "sh", "text"]),
    ("docs/operating.md", &["console"]),
    ("docs/operations.md", &["graphql", "graphqls", "json"]),
    ("docs/pages.md", &["console", "graphqls", "html", "toml"]),
    ("docs/rest.md", &["console", "toml", "ts"]),
    ("docs/schema.md", &["graphqls"]),
    ("docs/security.md", &["console"]),
    ("docs/storage.md", &["console"]),
    ("docs/subscriptions-clients.md", &["js"]),
    ("docs/theming.md", &["css", "html", "toml"]),
    ("docs/tutorial.md", &["console", "graphqls", "text"]),
];

#[test]
fn every_code_block_is_run_by_a_test() {
    let pages = fs::read_dir("docs").expect("the guide").map(|entry| entry.expect("an entry").path());
    let pages = pages.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let mut unrun = Vec::new();
    for page in pages.map(|path| path.display().to_string()).chain(["README.md".to_owned()]) {
        let run = RUN.iter().find(|(name, _)| *name == page).map_or(&[] as &[&str], |(_, run)| run);
        let other = blocks(&page).into_iter().filter(|block| !run.contains(&block.language.as_str()));
        unrun.extend(other.map(|block| format!("{page}:{}: {}", block.line, block.language)));
    }
    assert!(unrun.is_empty(), "nothing runs {unrun:?}");
}

#[test]
fn schemas_on_other_pages_load() {
    for page in ["docs/accounts.md", "docs/pages.md"] {
        for block in blocks(page).into_iter().filter(|block| block.language == "graphqls") {
            let file = SourceFile { name: "schema.graphqls".to_owned(), text: block.text };
            let found = parse_schema(&[file], &[]).map(|(_, warnings)| warnings);
            assert_eq!(found, Ok(Vec::new()), "{page}:{}", block.line);
        }
    }
}

#[test]
fn providers_in_the_guide_fit_the_schema_below_them() {
    let found = blocks("docs/accounts.md");
    let at = found.iter().position(|block| block.language == "toml").expect("a manifest");
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("graphql")).expect("created");
    fs::write(folder.path().join("trefoil.toml"), &found[at].text).expect("written");
    fs::write(folder.path().join("graphql/schema.graphqls"), &found[at + 1].text).expect("written");
    let app = trefoil::App::load(folder.path()).expect("an application");
    assert_eq!(app.manifest.openid_providers.len(), 1);
    let checked = crate::support::command(folder.path(), &["check", "."]).output().expect("the binary runs");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}
