//! Checks that every promise about texts, lists, JSON records and errors in `rows.txt` has its cases.

use std::collections::BTreeSet;

use super::files;

/// A case shows a row of `rows.txt` by the line `# row: NAME` right above the step that shows it.
pub fn every_promise_is_shown() {
    let rows: Vec<&str> = include_str!("rows.txt")
        .lines()
        .filter_map(|line| line.split_once(": ").map(|(name, _)| name))
        .collect();
    let promised: BTreeSet<&str> = rows.iter().copied().collect();
    assert_eq!(promised.len(), rows.len(), "a row stands twice in rows.txt");
    assert!(promised.len() >= 70, "{} rows in rows.txt", promised.len());
    let texts: Vec<String> =
        files().iter().map(|file| std::fs::read_to_string(file).expect("a readable case")).collect();
    let shown: BTreeSet<&str> = texts.iter().flat_map(|text| shown(text)).collect();
    let missing: Vec<_> = promised.difference(&shown).collect();
    let unknown: Vec<_> = shown.difference(&promised).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "no case shows {missing:?}; no row is called {unknown:?}"
    );
}

/// The names right above a step.
fn shown(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut waiting = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("# row: ") {
            waiting.push(name);
        } else if line.starts_with("> ") {
            names.append(&mut waiting);
        } else if !line.starts_with('#') {
            assert!(waiting.is_empty(), "no step below {waiting:?}");
        }
    }
    names
}
