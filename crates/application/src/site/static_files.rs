//! Reads `static/` of an application folder: the files that its pages use.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use trefoil_model::Diagnostic;

use crate::folder_reader::sorted_file_names;

/// The folder within the application.
const FOLDER: &str = "static";

/// All files together; they are kept in memory.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// A file as `/_/static/NAME` serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticFile {
    /// The path below `static/`, with slashes: `fonts/text.woff2`.
    pub name: String,
    pub bytes: Vec<u8>,
}

/// The files in `static/`, sorted by name, and those that cannot be served.
pub fn read_static_folder(app_folder: &Path) -> (Vec<StaticFile>, Vec<Diagnostic>) {
    let mut reader = StaticReader {
        folder: app_folder.join(FOLDER),
        files: Vec::new(),
        length: 0,
        mistakes: Vec::new(),
        entered: HashSet::new(),
    };
    match (fs::canonicalize(&reader.folder), fs::canonicalize(app_folder)) {
        (Ok(inside), Ok(app)) if inside.starts_with(&app) => reader.read_folder(&inside, ""),
        (Ok(_), Ok(_)) => reader.report_link(""),
        (Err(error), _) if is_missing(&reader.folder, &error) => {}
        (Err(error), _) | (_, Err(error)) => reader.report("", format!("cannot be read: {error}")),
    }
    if reader.length > MAX_BYTES {
        let (found, most) = (reader.length >> 20, MAX_BYTES >> 20);
        reader.report("", format!("the files have {found} MiB together, and {most} MiB are the most"));
        reader.help("serve large files from elsewhere");
    }
    reader.files.sort_by(|a, b| a.name.cmp(&b.name));
    (reader.files, reader.mistakes)
}

struct StaticReader {
    /// `static/` as it was named.
    folder: PathBuf,
    files: Vec<StaticFile>,
    length: usize,
    mistakes: Vec<Diagnostic>,
    /// Canonical paths of visited folders, so that circular links end.
    entered: HashSet<PathBuf>,
}

impl StaticReader {
    /// Reads what is below `name`. Links may lead to other places within the folder, not out of it: `root` is its
    /// canonical path.
    fn read_folder(&mut self, root: &Path, name: &str) {
        let path = self.folder.join(name);
        let names = fs::canonicalize(&path).and_then(|real| match self.entered.insert(real) {
            true => sorted_file_names(&path),
            false => Ok(Vec::new()),
        });
        match names {
            Ok(names) => {
                for entry in names {
                    let below = if name.is_empty() { entry } else { format!("{name}/{entry}") };
                    self.read_entry(root, &below);
                }
            }
            Err(error) => self.report(name, format!("cannot be read: {error}")),
        }
    }

    fn read_entry(&mut self, root: &Path, name: &str) {
        let path = self.folder.join(name);
        let metadata = match fs::canonicalize(&path) {
            Ok(real) if real.starts_with(root) => fs::metadata(&path),
            Ok(_) => return self.report_link(name),
            Err(error) => Err(error),
        };
        match metadata {
            Ok(metadata) if metadata.is_dir() => self.read_folder(root, name),
            Ok(metadata) if metadata.is_file() => self.read_file(&path, name),
            Ok(_) => self.report(name, "is neither a file nor a folder".to_owned()),
            Err(error) => self.report(name, format!("cannot be read: {error}")),
        }
    }

    fn read_file(&mut self, path: &Path, name: &str) {
        match fs::read(path) {
            Ok(bytes) => {
                self.length += bytes.len();
                self.files.push(StaticFile { name: name.to_owned(), bytes });
            }
            Err(error) => self.report(name, format!("cannot be read: {error}")),
        }
    }

    fn report_link(&mut self, name: &str) {
        self.report(name, format!("leads out of the folder `{FOLDER}`, and is not served"));
        self.help("copy the file instead of linking to it");
    }

    fn report(&mut self, name: &str, message: String) {
        let file = if name.is_empty() { FOLDER.to_owned() } else { format!("{FOLDER}/{name}") };
        self.mistakes.push(Diagnostic::in_file(file, "FILE", message));
    }

    fn help(&mut self, help: &str) {
        self.mistakes.last_mut().expect("just reported").help(help);
    }
}

/// Whether the folder is not there at all; a link to nowhere is.
fn is_missing(folder: &Path, error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(folder).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        folder
    }

    fn names(folder: &Path) -> (Vec<String>, Vec<String>) {
        let (files, mistakes) = read_static_folder(folder);
        let names = files.into_iter().map(|file| file.name).collect();
        (names, mistakes.iter().map(Diagnostic::to_string).collect())
    }

    #[test]
    fn files_at_any_depth_are_read_without_hidden_ones() {
        let folder = folder(&[
            "static/z.css",
            "static/img/logo.svg",
            "static/.env",
            "static/.git/config",
            "graphql/a.gql",
        ]);
        assert_eq!(names(folder.path()), (vec!["img/logo.svg".into(), "z.css".into()], Vec::new()));
        assert_eq!(names(&folder.path().join("graphql")), (Vec::new(), Vec::new()));
    }

    #[cfg(unix)]
    #[test]
    fn links_out_are_refused_and_links_within_are_not() {
        use std::os::unix::fs::symlink;
        let folder = folder(&["static/a.css", "secret.txt", "other/b.css"]);
        let inside = |name: &str| folder.path().join("static").join(name);
        symlink("../secret.txt", inside("c.txt")).unwrap();
        symlink("../other", inside("d")).unwrap();
        symlink(".", inside("loop")).unwrap();
        symlink("a.css", inside("e.css")).unwrap();
        symlink("nowhere", inside("f.css")).unwrap();
        let (files, mistakes) = names(folder.path());
        assert_eq!(files, ["a.css", "e.css"]);
        assert_eq!(mistakes.len(), 3, "{mistakes:?}");
        assert!(mistakes[0].starts_with("static/c.txt: leads out of the folder `static`"), "{mistakes:?}");
        assert!(mistakes[1].starts_with("static/d: leads out"), "{mistakes:?}");
        assert!(mistakes[2].starts_with("static/f.css: cannot be read"), "{mistakes:?}");

        let linked = tempfile::tempdir().unwrap();
        symlink(folder.path().join("other"), linked.path().join("static")).unwrap();
        let (files, mistakes) = names(linked.path());
        assert!(files.is_empty() && mistakes[0].starts_with("static: leads out"), "{mistakes:?}");
    }
}
