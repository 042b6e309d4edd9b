//! Checks the rules of the source tree: dependencies, first lines, file lengths, documentation.

mod circles;
mod measures;
mod modules;
mod operators;
mod packages;
mod tokens;
mod types;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

const STYLE: &str = include_str!("../crates/pages/src/assets/app.css");
const SCRIPT: &str = include_str!("../crates/pages/src/assets/live.js");

const LONGEST_FILE: usize = 500;

/// Rust files in a folder of `crates/`. The aim is 15: lower it when the last larger folder is divided.
const FULLEST_FOLDER: usize = 17;

/// The names of the folders of `crates/`.
fn crates() -> Vec<String> {
    let entries = fs::read_dir("crates").expect("crates/").map(|entry| entry.expect("an entry"));
    let folders = entries.filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> =
        folders.map(|folder| folder.file_name().into_string().expect("a plain name")).collect();
    names.sort();
    assert!(names.len() > 10, "the crates were not found from here");
    names
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of the tree") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn sources() -> Vec<(PathBuf, String)> {
    let files =
        ["src", "crates", "tests", "examples"].into_iter().flat_map(|folder| rust_files(Path::new(folder)));
    files
        .map(|path| {
            let text = fs::read_to_string(&path).expect("readable");
            (path, text)
        })
        .collect()
}

/// The code without comments.
fn code(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

#[test]
fn no_folder_is_too_full() {
    let mut folders: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for folder in rust_files(Path::new("crates")).iter().filter_map(|path| path.parent()) {
        *folders.entry(folder.to_owned()).or_default() += 1;
    }
    let full: Vec<String> = folders
        .into_iter()
        .filter(|(_, files)| *files > FULLEST_FOLDER)
        .map(|(folder, files)| format!("{}: {files} files, {FULLEST_FOLDER} at most", folder.display()))
        .collect();
    assert!(full.is_empty(), "{}", full.join("\n"));
}

#[test]
fn every_file_has_a_first_line_of_its_own() {
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

/// The map of each crate in ARCHITECTURE.md names the files that there are, and no others.
#[test]
fn architecture_names_every_file() {
    let page = fs::read_to_string("ARCHITECTURE.md").expect("ARCHITECTURE.md");
    let mut wrong = Vec::new();
    for entry in fs::read_dir("crates").expect("crates") {
        let source = entry.expect("an entry").path().join("src");
        let name = source.components().nth(1).expect("a crate").as_os_str().to_string_lossy().into_owned();
        let section =
            page.split(&format!("\n### `{name}`")).nth(1).and_then(|rest| rest.split("\n##").next());
        let Some(section) = section else {
            wrong.push(format!("ARCHITECTURE.md has no map of the crate `{name}`"));
            continue;
        };
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        let mut named: BTreeSet<&str> = BTreeSet::new();
        for file in rows.filter(|row| row.ends_with(".rs")) {
            if !named.insert(file) {
                wrong.push(format!("{name}: the map names `{file}` twice"));
            }
        }
        let files: BTreeSet<String> = rust_files(&source)
            .iter()
            .map(|path| path.strip_prefix(&source).expect("below the crate").display().to_string())
            .collect();
        let is_folder = |file: &str| file == "lib.rs" || file.ends_with("mod.rs");
        let missing = files.iter().filter(|file| !named.contains(file.as_str()) && !is_folder(file));
        wrong.extend(missing.map(|file| format!("{name}: `{file}` is not in the map")));
        let stale = named.iter().filter(|file| !files.contains(**file));
        wrong.extend(stale.map(|file| format!("{name}: the map names `{file}`, which is not there")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Elsewhere in ARCHITECTURE.md a file is named by its crate and path, `engine/plan/mod.rs`, or by the end of that.
#[test]
fn architecture_names_no_missing_file() {
    let page = fs::read_to_string("ARCHITECTURE.md").expect("ARCHITECTURE.md");
    let files: Vec<String> = rust_files(Path::new("crates"))
        .iter()
        .chain(&rust_files(Path::new("tests")))
        .map(|path| format!("/{}", path.display()).replace("/src/", "/"))
        .collect();
    let text = page.lines().filter(|line| !line.starts_with("| `")).collect::<Vec<_>>().join("\n");
    let is_path = |name: &&str| name.ends_with(".rs") && name.contains('/') && !name.contains('*');
    let named: Vec<&str> = text.split('`').skip(1).step_by(2).filter(is_path).collect();
    assert!(named.len() > 10, "only {named:?}");
    let is_file = |name: &str| {
        let end = format!("/{name}").replace("/src/", "/");
        files.iter().any(|file| file.ends_with(&end))
    };
    let missing: Vec<_> = named.iter().filter(|name| !is_file(name)).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names {missing:?}, which are not there");
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

/// The style and script of every page are small enough to be read.
#[test]
fn page_style_and_script_stay_small() {
    assert!(STYLE.len() <= 16_000, "app.css: {} bytes", STYLE.len());
    assert!(SCRIPT.len() <= 4_200, "live.js: {} bytes", SCRIPT.len());
}

/// The server sends the compressed files.
#[test]
fn page_files_are_compressed_as_they_stand() {
    let folders = ["graphql/src/describe/assets", "pages/src/assets", "rest/src/assets"];
    let files =
        folders.map(|folder| fs::read_dir(Path::new("crates").join(folder)).expect("a folder of files"));
    let own = files.into_iter().flatten().map(|entry| entry.expect("an entry").path()).filter(|path| {
        path.extension().is_some_and(|extension| ["css", "js", "svg"].iter().any(|own| extension == *own))
    });
    let mut count = 0;
    for path in own {
        let packed = fs::read(format!("{}.gz", path.display())).unwrap_or_default();
        let mut text = String::new();
        let read = flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut text);
        let is_same = read.is_ok() && text == fs::read_to_string(&path).expect("text");
        assert!(is_same, "{} was changed: run `npm run pack` in e2e/", path.display());
        count += 1;
    }
    assert!(count >= 7, "{count} files were found");
}

/// A class without a rule does nothing, and a rule without a class never applies.
#[test]
fn css_classes_match_the_templates() {
    let mut used: BTreeSet<String> = ["is-fresh", "is-gone"].map(str::to_owned).into();
    assert!(used.iter().all(|class| SCRIPT.contains(&format!("classList.add('{class}')"))));
    let templates = fs::read_dir("crates/pages/src/templates").expect("templates");
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
fn limit_errors_name_real_settings() {
    let settings = trefoil_config::SETTINGS;
    let mut named = 0;
    for (path, text) in sources().iter().filter(|(path, _)| path.starts_with("crates")) {
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
fn sources_contain_no_machine_paths() {
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

/// With one of them, a file counts as binary for git, and its changes are not shown.
#[test]
fn sources_contain_no_control_characters() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let is_control = |line: &&str| line.contains(|c: char| c.is_control() && c != '\t');
        wrong.extend(text.split('\n').filter(is_control).map(|line| format!("{}: {line:?}", path.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
