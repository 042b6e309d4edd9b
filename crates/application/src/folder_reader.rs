//! Reads the files of an application folder from disk: which ones there are, and their text.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::manifest_reader;
use trefoil_model::{Diagnostic, SourceFile};

const SCHEMA: [&str; 4] = ["graphqls", "graphql", "gqls", "gql"];

/// Every file of the folder that has a meaning, by name, and everything that could not be read.
pub fn read(folder: &Path) -> (Vec<SourceFile>, Vec<Diagnostic>) {
    let mut reading = Reading { folder, files: Vec::new(), mistakes: Vec::new(), entered: HashSet::new() };
    match fs::metadata(folder) {
        Ok(about) if about.is_dir() => reading.all(),
        Ok(_) => reading.whole("this is a file, not an application folder"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => reading.missing(),
        Err(error) => reading.whole(&format!("cannot be read: {error}")),
    }
    reading.files.sort_by(|a, b| a.name.cmp(&b.name));
    (reading.files, reading.mistakes)
}

struct Reading<'a> {
    folder: &'a Path,
    files: Vec<SourceFile>,
    mistakes: Vec<Diagnostic>,
    /// Folders by their real path, so that a link back up the tree ends.
    entered: HashSet<PathBuf>,
}

impl Reading<'_> {
    fn all(&mut self) {
        self.walk("graphql", &|name| SCHEMA.iter().any(|ending| has_ending(name, ending)), Depth::Whole);
        self.walk("seed", &|name| has_ending(name, "json"), Depth::One);
        self.walk("views", &|name| has_ending(name, "html"), Depth::Whole);
        // It may be missing, but not hide: what cannot be looked at cannot be read, and that is told.
        if !fs::symlink_metadata(self.folder.join(manifest_reader::FILE))
            .is_err_and(|error| is_missing(&error))
        {
            self.file(manifest_reader::FILE.to_owned());
        }
    }

    fn wrong(&mut self, file: String, message: impl Into<String>) -> &mut Diagnostic {
        self.mistakes.push(Diagnostic::in_file(file, "FILE", message));
        self.mistakes.last_mut().expect("just pushed")
    }

    fn whole(&mut self, message: &str) {
        self.wrong(self.folder.display().to_string(), message);
    }

    fn missing(&mut self) {
        let shown = self.folder.display().to_string();
        let help = format!("`trefoil new {shown}` writes one to start from");
        self.wrong(shown, "no such folder").help(help);
    }

    /// Reads the wanted files under `name`, a path within the application folder.
    fn walk(&mut self, name: &str, wanted: &dyn Fn(&str) -> bool, depth: Depth) {
        let path = self.folder.join(name);
        let listed = fs::canonicalize(&path).and_then(|real| match self.entered.insert(real) {
            true => names(&path),
            false => Ok(Vec::new()),
        });
        match listed {
            Err(error) if is_missing(&error) => {}
            Ok(names) => names.iter().for_each(|entry| self.entry(format!("{name}/{entry}"), wanted, depth)),
            Err(error) => drop(self.wrong(name.to_owned(), format!("cannot be read: {error}"))),
        }
    }

    fn entry(&mut self, name: String, wanted: &dyn Fn(&str) -> bool, depth: Depth) {
        let is_folder = self.folder.join(&name).is_dir();
        match depth {
            Depth::Whole if is_folder => self.walk(&name, wanted, depth),
            Depth::Whole | Depth::One if !is_folder && wanted(&name) => self.file(name),
            Depth::Whole | Depth::One => {}
        }
    }

    fn file(&mut self, name: String) {
        match fs::read(self.folder.join(&name)) {
            Err(error) => drop(self.wrong(name, format!("cannot be read: {error}"))),
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) => self.files.push(SourceFile { name, text: without_mark(text) }),
                Err(error) => {
                    let byte = error.utf8_error().valid_up_to();
                    let mistake = self.wrong(name, format!("is not UTF-8 from byte {byte} on"));
                    mistake.help("save it with the encoding UTF-8");
                }
            },
        }
    }
}

fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

#[derive(Clone, Copy)]
enum Depth {
    One,
    Whole,
}

fn has_ending(name: &str, ending: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, found)| found == ending)
}

/// What is in a folder, sorted; hidden files are editors' and not the application's.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Some editors begin a UTF-8 file with a byte order mark; it says nothing and moves every column.
fn without_mark(text: String) -> String {
    match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    }
}
