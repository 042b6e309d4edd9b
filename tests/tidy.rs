//! Holds the tree to its own rules: who imports whom, what each file says of itself, how long it is, what is documented.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

/// Each top-level module of the crate and the ones it may name.
const IMPORTS: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("partial", &[]),
    ("config", &["model"]),
    ("model", &["error"]),
    ("engine", &["error", "model"]),
    ("sql", &["error", "partial", "config", "model", "engine"]),
    ("data", &["error", "partial", "model", "engine"]),
    ("faces", &["error", "config", "model", "engine", "app", "fake"]),
    ("app", &["error", "config", "model", "engine"]),
    ("fake", &["error", "model", "engine"]),
    ("server", &["error", "config", "model", "engine", "sql", "faces", "app", "embed"]),
    ("embed", &["error", "config", "model", "engine", "app", "server"]),
    (
        "cli",
        &["error", "config", "model", "engine", "data", "sql", "faces", "app", "fake", "server", "embed"],
    ),
    ("main", &["cli"]),
];

/// Outside crates that only some parts may name.
const CRATES: &[(&str, &[&str])] = &[
    ("axum", &["src/faces/", "src/server/"]),
    ("http", &["src/faces/", "src/server/"]),
    ("hyper", &["src/faces/", "src/server/"]),
    ("rusqlite", &["src/sql/"]),
    ("tokio_postgres", &["src/sql/"]),
    ("apollo_compiler", &["src/model/", "src/faces/graphql/"]),
    ("clap", &["src/cli/", "src/config/"]),
];

const STYLE: &str = include_str!("../crates/pages/src/assets/app.css");
const SCRIPT: &str = include_str!("../crates/pages/src/assets/live.js");

const LONGEST_FILE: usize = 500;

fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for folder in ["src", "tests", "examples"] {
        collect(Path::new(folder), &mut found);
    }
    assert!(found.len() > 30, "the tree was not found from here");
    found
}

fn collect(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).expect("a folder of the tree") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("readable");
            found.push((path, text));
        }
    }
}

/// `src/engine/plan.rs` belongs to `engine`, `src/error.rs` to `error`.
fn module_of(path: &Path) -> Option<String> {
    let within = path.strip_prefix("src").ok()?;
    let first = within.components().next()?.as_os_str().to_str()?;
    Some(first.trim_end_matches(".rs").to_owned())
}

/// The code without comments: a doc link is no import.
fn code(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

/// The words that follow `prefix` in the code, as in `crate::WORD` or `crate::{WORD, WORD::x}`.
fn named_after(code: &str, prefix: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in code.match_indices(prefix) {
        let rest = &code[at + prefix.len()..];
        let group = match rest.strip_prefix('{') {
            Some(inside) => inside.split('}').next().unwrap_or("").split(',').collect::<Vec<_>>(),
            None => vec![rest],
        };
        for item in group {
            let word = item.trim_start();
            let end = word.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(word.len());
            names.push(word[..end].to_owned());
        }
    }
    names
}

#[test]
fn modules_import_in_one_direction() {
    let allowed: HashMap<_, _> = IMPORTS.iter().copied().collect();
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let Some(module) = module_of(&path).filter(|module| module != "lib") else { continue };
        let Some(may) = allowed.get(module.as_str()) else {
            wrong.push(format!("{}: module `{module}` is not in the table of tests/tidy.rs", path.display()));
            continue;
        };
        let prefix = if module == "main" { "trefoil::" } else { "crate::" };
        for name in named_after(&code(&text), prefix) {
            let is_module = allowed.contains_key(name.as_str());
            if is_module && name != module && !may.contains(&name.as_str()) {
                wrong.push(format!("{}: `{module}` must not name `{name}`", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn faces_do_not_name_each_other() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let shown = path.display().to_string();
        for face in ["graphql", "rest", "pages"] {
            if !shown.starts_with(&format!("src/faces/{face}/")) {
                continue;
            }
            for other in ["graphql", "rest", "pages"] {
                if other != face && code(&text).contains(&format!("faces::{other}")) {
                    wrong.push(format!("{shown} names the face `{other}`"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn outside_crates_stay_in_their_part() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let shown = path.display().to_string();
        if !shown.starts_with("src/") {
            continue;
        }
        let code = code(&text);
        for (name, homes) in CRATES {
            let named = code.contains(&format!("use {name}::")) || code.contains(&format!(" {name}::"));
            if named && !homes.iter().any(|home| shown.starts_with(home)) {
                wrong.push(format!("{shown} names the crate `{name}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_file_says_what_it_alone_is_for() {
    let mut said: HashMap<String, PathBuf> = HashMap::new();
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let first = text.lines().next().unwrap_or("");
        let Some(sentence) = first.strip_prefix("//! ").filter(|line| line.len() > 20) else {
            wrong.push(format!("{}: the first line must be `//! ` and one sentence", path.display()));
            continue;
        };
        if let Some(other) = said.insert(sentence.to_owned(), path.clone()) {
            wrong.push(format!("{} and {} say the same of themselves", path.display(), other.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_file_is_too_long() {
    let long: Vec<String> = sources()
        .into_iter()
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > LONGEST_FILE)
        .map(|(path, lines)| format!("{}: {lines} lines, {LONGEST_FILE} at most", path.display()))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

/// What every page brings along is small enough to be read.
#[test]
fn style_and_script_of_pages_stay_small() {
    assert!(STYLE.len() <= 10_300, "app.css: {} bytes", STYLE.len());
    assert!(SCRIPT.len() <= 4_200, "live.js: {} bytes", SCRIPT.len());
}

/// A class without a rule does nothing, and a rule without a class is never met.
#[test]
fn classes_of_pages_and_rules_of_their_style_are_the_same() {
    let mut used: BTreeSet<String> = ["is-fresh", "is-gone"].map(str::to_owned).into();
    assert!(used.iter().all(|class| SCRIPT.contains(&format!("classList.add('{class}')"))));
    let templates = fs::read_dir("src/faces/pages/templates").expect("templates");
    let templates =
        templates.map(|entry| fs::read_to_string(entry.expect("an entry").path()).expect("a template"));
    for text in templates.chain([SCRIPT.to_owned()]) {
        for class in text.split("class=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            // What stands in braces chooses among classes, or ends the name of one.
            let names: String = class.split('}').filter_map(|part| part.split('{').next()).collect();
            used.extend(names.split_whitespace().map(str::to_owned));
        }
    }
    let mut rules = BTreeSet::new();
    for name in STYLE.split('.').skip(1) {
        let name = name.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next().unwrap_or("");
        if name.starts_with(|c: char| c.is_ascii_lowercase()) {
            // One of several that end in a number.
            rules.insert(name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned());
        }
    }
    assert_eq!(used, rules);
}

#[test]
fn every_directive_is_documented() {
    let page = fs::read_to_string("docs/schema.md").expect("docs/schema.md");
    let missing: Vec<_> = trefoil_model::sdl::directives::BUILTIN_DIRECTIVES
        .iter()
        .filter(|directive| !page.contains(&format!("`@{}", directive.name)))
        .map(|directive| directive.name)
        .collect();
    assert!(missing.is_empty(), "docs/schema.md does not mention {missing:?}");
}

/// A limit names itself in its error, and the name must be one that can be written in `trefoil.toml`.
#[test]
fn limits_are_called_what_they_are_set_by() {
    let settings = trefoil_config::SETTINGS;
    let mut named = 0;
    for (path, text) in sources().iter().filter(|(path, _)| path.starts_with("src")) {
        // What stands between quotes: every second part of a line.
        for said in code(text).lines().flat_map(|line| line.split('"').skip(1).step_by(2)) {
            for name in
                said.split("limits.").skip(1).filter(|name| name.starts_with(|c: char| c.is_alphabetic()))
            {
                let end = name
                    .find(|c: char| !c.is_ascii_alphanumeric() && !"-_".contains(c))
                    .unwrap_or(name.len());
                let is_known = settings.iter().any(|setting| setting.key() == (Some("limits"), &name[..end]));
                assert!(is_known, "{}: limits.{}", path.display(), &name[..end]);
                named += 1;
            }
        }
    }
    assert!(named >= 6, "only {named} errors name their limit");
}

#[test]
fn the_tree_names_no_machine() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        for line in text.lines() {
            if line.contains(concat!("/", "root/")) || line.contains(concat!("/", "work/")) {
                wrong.push(format!("{}: {line}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
