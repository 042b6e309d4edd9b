//! The application of a command that names none: the current folder, or else the built-in sample.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::support::{Process, command};

const SAMPLE: &str = "application: Sample Resource API, the built-in sample (no folder given, and the current folder has no graphql/ or trefoil.toml)\n";

/// Exit code, standard output and standard error.
fn run(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = command(folder, arguments).output().expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A folder `clinic` as `trefoil new` writes it.
fn clinic() -> (TempDir, PathBuf) {
    let around = tempfile::tempdir().expect("a folder");
    assert_eq!(run(around.path(), &["new", "clinic"]).0, Some(0));
    let folder = around.path().join("clinic").canonicalize().expect("it was made");
    (around, folder)
}

fn told(folder: &Path) -> String {
    format!("application: clinic, in {} (the current folder)\n", folder.display())
}

#[test]
fn every_command_defaults_to_the_current_folder() {
    let (_around, folder) = clinic();
    let table: &[(&[&str], &str)] = &[
        (&["check"], "Query.books"),
        (&["check", "--format", "json"], "\"Query.books\""),
        (&["serve", "--print-config"], "trefoil.toml:11"),
        (&["views"], "list.html"),
        (&["migrate", "--plan"], "Book: new"),
        (&["seed", "--fake", "2"], "4 records generated"),
        (&["export", "--resource", "authors"], "\"name\":"),
        (&["import", "--resource", "authors", "--from", "none.ndjson"], ""),
        (&["backup", "--to", "aside.db"], " records, verified"),
        (&["restore", "aside.db", "--overwrite"], "records restored"),
        (&["reset", "--yes"], "records deleted; the seeds of clinic were loaded"),
        (&["move", "--to", "sqlite:elsewhere"], "records moved and verified"),
    ];
    std::fs::write(folder.join("none.ndjson"), "").expect("written");
    for (arguments, expected) in table {
        let (code, out, err) = run(&folder, arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {out}{err}");
        assert!(out.contains(expected) && err.starts_with(&told(&folder)), "{arguments:?}: {out}{err}");
    }
    let above = folder.parent().expect("a folder around it");
    let (code, _, err) = run(above, &["check", "clinic"]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "who names it knows it");
}

#[test]
fn serve_defaults_to_the_current_folder() {
    let (_around, folder) = clinic();
    let server = Process::start(&folder, &[]);
    let books = server.client().send("GET", "/books", &[("accept", "application/json")], b"");
    assert_eq!(books.status, 200, "{}", books.text());
    assert!(server.log().contains(told(&folder).trim_end()), "{}", server.log());
}

#[test]
fn manifest_alone_makes_an_application() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("trefoil.toml"), "name = \"Half\"\n").expect("written");
    let (code, _, err) = run(folder.path(), &["reset", "--yes"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.starts_with("application: Half, in ") && err.contains("no schema found"), "{err}");
    assert!(!folder.path().join("trefoil-data").exists(), "nothing was made");
}

#[test]
fn sample_is_the_default_elsewhere() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("app")).expect("a folder that says nothing");
    let table: &[(&[&str], &str)] = &[
        (&["check"], "Query.getAllUsers"),
        (&["migrate", "--plan"], "User: new"),
        (&["reset", "--yes"], ": 0 records deleted; the seeds of Sample Resource API were loaded"),
    ];
    for (arguments, expected) in table {
        let (code, out, err) = run(folder.path(), arguments);
        assert_eq!((code, err.as_str()), (Some(0), SAMPLE), "{arguments:?}: {out}");
        assert!(out.contains(expected), "{arguments:?}: {out}");
    }
    let server = Process::start(folder.path(), &[]);
    assert!(server.log().contains(SAMPLE.trim_end()), "{}", server.log());
}

#[test]
fn sample_never_replaces_an_applications_data() {
    let (around, folder) = clinic();
    assert_eq!(run(&folder, &["seed", "--fake", "3"]).0, Some(0));
    let before = run(&folder, &["export"]).1;
    assert!(!before.is_empty());
    let (code, _, err) = run(around.path(), &["reset", "--yes", "--data", "clinic/trefoil-data"]);
    assert_eq!(code, Some(1), "{err}");
    for words in
        ["records whose schema differs from that of Sample Resource API", "Author: removed", "--overwrite"]
    {
        assert!(err.contains(words), "no {words:?} in {err}");
    }
    assert_eq!(run(&folder, &["export"]).1, before);
}
