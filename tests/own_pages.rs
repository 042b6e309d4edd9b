//! What an application brings for its pages: static files, a theme, and pages with a query.

mod theming;

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::support::{Process, Reply, command};

/// `app/` with these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        put(folder.path(), name, text);
    }
    folder
}

fn put(folder: &Path, name: &str, text: &str) {
    let path = folder.join("app").join(name);
    fs::create_dir_all(path.parent().expect("a folder above")).expect("a folder");
    fs::write(path, text).expect("written");
}

fn get(process: &Process, path: &str) -> Reply {
    process.client().send("GET", path, &[("accept", "text/html")], b"")
}

/// The exit code of `trefoil check` and what it says.
fn check(folder: &TempDir) -> (i32, String) {
    let ran = command(folder.path(), &["check", "app", "--strict"]).output().expect("the binary runs");
    (ran.status.code().expect("a code"), String::from_utf8(ran.stdout).expect("UTF-8"))
}
