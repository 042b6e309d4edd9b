//! Reads the files of an application folder from disk.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use trefoil_model::{Diagnostic, SourceFile};

use crate::manifest_reader;

const SCHEMA_EXTENSIONS: [&str; 4] = ["graphqls", "graphql", "gqls", "gql"];

/// All relevant files of the folder, sorted by name, and those that cannot be read.
pub fn read_app_folder(folder: &Path) -> (Vec<SourceFile>, Vec<Diagnostic>) {
    let mut reader =
        FolderReader { folder, files: Vec::new(), mistakes: Vec::new(), entered: HashSet::new() };
    match fs::metadata(folder) {
        Ok(metadata) if metadata.is_dir() => reader.read_all(),
        Ok(_) => reader.report_folder("this is a file, not an application folder"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => reader.report_missing_folder(),
        Err(error) => reader.report_folder(&format!("cannot be read: {error}")),
    }
    reader.files.sort_by(|a, b| a.name.cmp(&b.name));
    (reader.files, reader.mistakes)
}

struct FolderReader<'a> {
    folder: &'a Path,
    files: Vec<SourceFile>,
    mistakes: Vec<Diagnostic>,
    /// Canonical paths of visited folders, so that circular links end.
    entered: HashSet<PathBuf>,
}

impl FolderReader<'_> {
    fn read_all(&mut self) {
        self.read_folder(
            "graphql",
            &|name| SCHEMA_EXTENSIONS.iter().any(|extension| has_extension(name, extension)),
            WalkDepth::Recursive,
        );
        self.read_folder("seed", &|name| has_extension(name, "json"), WalkDepth::TopLevel);
        self.read_folder("views", &|name| has_extension(name, "html"), WalkDepth::Recursive);
        // The file may be missing; but if it exists and cannot be read, that is reported.
        if !fs::symlink_metadata(self.folder.join(manifest_reader::MANIFEST_FILE))
            .is_err_and(|error| is_missing(&error))
        {
            self.read_file(manifest_reader::MANIFEST_FILE.to_owned());
        }
    }

    fn report(&mut self, file: String, message: impl Into<String>) -> &mut Diagnostic {
        self.mistakes.push(Diagnostic::in_file(file, "FILE", message));
        self.mistakes.last_mut().expect("just pushed")
    }

    fn report_folder(&mut self, message: &str) {
        self.report(self.folder.display().to_string(), message);
    }

    fn report_missing_folder(&mut self) {
        let shown = self.folder.display().to_string();
        let help = format!("run `trefoil new {shown}` to create one");
        self.report(shown, "folder not found").help(help);
    }

    /// Reads the files under `name`, a path within the application folder, that `is_relevant` accepts.
    fn read_folder(&mut self, name: &str, is_relevant: &dyn Fn(&str) -> bool, depth: WalkDepth) {
        let path = self.folder.join(name);
        let names = fs::canonicalize(&path).and_then(|real| match self.entered.insert(real) {
            true => sorted_file_names(&path),
            false => Ok(Vec::new()),
        });
        match names {
            Err(error) if is_missing(&error) => {}
            Ok(names) => {
                names.iter().for_each(|entry| self.read_entry(format!("{name}/{entry}"), is_relevant, depth))
            }
            Err(error) => drop(self.report(name.to_owned(), format!("cannot be read: {error}"))),
        }
    }

    fn read_entry(&mut self, name: String, is_relevant: &dyn Fn(&str) -> bool, depth: WalkDepth) {
        let is_folder = self.folder.join(&name).is_dir();
        match depth {
            WalkDepth::Recursive if is_folder => self.read_folder(&name, is_relevant, depth),
            WalkDepth::Recursive | WalkDepth::TopLevel if !is_folder && is_relevant(&name) => {
                self.read_file(name)
            }
            WalkDepth::Recursive | WalkDepth::TopLevel => {}
        }
    }

    fn read_file(&mut self, name: String) {
        match fs::read(self.folder.join(&name)) {
            Err(error) => drop(self.report(name, format!("cannot be read: {error}"))),
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) => self.files.push(SourceFile { name, text: without_byte_order_mark(text) }),
                Err(error) => {
                    let byte = error.utf8_error().valid_up_to();
                    let mistake = self.report(name, format!("is not valid UTF-8 at byte {byte}"));
                    mistake.help("save the file as UTF-8");
                }
            },
        }
    }
}

fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

#[derive(Clone, Copy)]
enum WalkDepth {
    TopLevel,
    Recursive,
}

fn has_extension(name: &str, extension: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, found)| found == extension)
}

/// The files in a folder, sorted. Hidden files are skipped: they belong to editors.
pub fn sorted_file_names(folder: &Path) -> io::Result<Vec<String>> {
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

/// Some editors write a byte order mark, which would shift every column.
fn without_byte_order_mark(text: String) -> String {
    match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    }
}
