//! The modules of a crate and the paths that they use, as far as tokens tell.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use super::tokens::{tokens, without_tests};

/// A file of a crate that is not for tests alone.
pub struct File {
    pub path: PathBuf,
    /// `["plan", "input"]` for `src/plan/input.rs`, nothing for `src/lib.rs`.
    pub module: Vec<String>,
    /// Its tokens, without those of its tests.
    pub code: Vec<String>,
    pub lines: usize,
    /// It declares the modules of a folder.
    is_parent: bool,
}

impl File {
    /// A file at this place below `src`, and the modules of tests that it declares.
    pub fn new(path: PathBuf, within: &Path, text: &str) -> (File, Vec<Vec<String>>) {
        let within = within.with_extension("");
        let mut module: Vec<String> = within.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        let is_parent = module.pop_if(|last| last == "mod" || last == "lib").is_some();
        let (code, tests) = without_tests(&tokens(text));
        let tests = tests.into_iter().map(|name| below(&module, &name)).collect();
        (File { path, module, code, lines: text.lines().count(), is_parent }, tests)
    }
}

pub fn files_of(crate_name: &str) -> Vec<File> {
    let root = Path::new("crates").join(crate_name).join("src");
    let (mut files, mut for_tests) = (Vec::new(), Vec::new());
    for path in super::rust_files(&root) {
        let text = fs::read_to_string(&path).expect("readable");
        let within = path.strip_prefix(&root).expect("found below it").to_owned();
        let (file, tests) = File::new(path, &within, &text);
        for_tests.extend(tests);
        files.push(file);
    }
    files.retain(|file| !for_tests.iter().any(|tests| file.module.starts_with(tests)));
    files
}

fn below(module: &[String], name: &str) -> Vec<String> {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

/// A name that `use` brings into a file, and the path that it stands for.
struct Import {
    name: String,
    path: Vec<String>,
    is_public: bool,
}

/// Which module names which, in a crate.
pub struct Graph {
    pub files: Vec<File>,
    /// What each file brings in, in the order of the files.
    imports: Vec<Vec<Import>>,
    /// Where in `files` each module is.
    places: HashMap<Vec<String>, usize>,
}

impl Graph {
    pub fn of(files: Vec<File>) -> Graph {
        let imports = files.iter().map(|file| imports(&file.code)).collect();
        let places = files.iter().enumerate().map(|(at, file)| (file.module.clone(), at)).collect();
        Graph { files, imports, places }
    }

    /// The files that each file names, by their places in `files`. That a parent declares its children, or gives their
    /// names out as its own, does not count unless it uses them itself.
    pub fn edges(&self) -> Vec<BTreeSet<usize>> {
        (0..self.files.len()).map(|at| self.named_by(at)).collect()
    }

    fn named_by(&self, at: usize) -> BTreeSet<usize> {
        let file = &self.files[at];
        let code = without_imports(&file.code);
        let paths = paths(&code);
        let mut named = BTreeSet::new();
        // Modules that the file may name by their last word: those it brings in, and its children.
        let mut modules: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for child in self.files.iter().filter_map(|other| other.module.split_last()) {
            if child.1 == file.module {
                modules.insert(child.0, below(&file.module, child.0));
            }
        }
        for import in &self.imports[at] {
            let Some(path) = self.absolute(file, &import.path) else { continue };
            // Where a module is brought in, what counts is which of its names are used. A name that is never a part of
            // a path is that of a function beside the module.
            let is_in_paths = || paths.iter().any(|path| path[0] == import.name);
            if self.place(&path).is_some() && (import.is_public || is_in_paths()) {
                modules.insert(&import.name, path);
                continue;
            }
            let is_given_out = import.is_public && file.is_parent && path.starts_with(&file.module);
            if !is_given_out || code.contains(&import.name) {
                named.extend(self.home(&path));
            }
        }
        for path in &paths {
            let path = match modules.get(path[0].as_str()) {
                Some(module) if path.len() > 1 => Some([module.as_slice(), &path[1..]].concat()),
                _ => self.absolute(file, path),
            };
            named.extend(path.and_then(|path| self.home(&path)));
        }
        named.remove(&at);
        named
    }

    fn place(&self, module: &[String]) -> Option<usize> {
        self.places.get(module).copied()
    }

    /// The path from the root of the crate on, when it is one within the crate.
    fn absolute(&self, file: &File, path: &[String]) -> Option<Vec<String>> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([&file.module, rest].concat()),
            "super" => {
                let parent = &file.module[..file.module.len().checked_sub(1)?];
                match rest.first() {
                    Some(again) if again == "super" => None,
                    _ => Some([parent, rest].concat()),
                }
            }
            child => self.place(&below(&file.module, child)).map(|_| [&file.module, path].concat()),
        }
    }

    /// The file that defines what the path names. A name that a module only gives out as its own is followed to where it
    /// comes from, which is nowhere in this crate when it is the name of another one.
    fn home(&self, path: &[String]) -> Option<usize> {
        let mut path = path.to_vec();
        // No name is given out through more modules than there are.
        for _ in 0..=self.files.len() {
            let length = (0..=path.len()).rev().find(|length| self.place(&path[..*length]).is_some())?;
            let at = self.place(&path[..length])?;
            let given =
                path.get(length).and_then(|item| self.imports[at].iter().find(|own| own.name == *item));
            let Some(import) = given else { return Some(at) };
            let target = self.absolute(&self.files[at], &import.path)?;
            path = [&target, &path[length + 1..]].concat();
        }
        None
    }
}

/// Every name that a `use` of the code brings in.
fn imports(code: &[String]) -> Vec<Import> {
    let mut found = Vec::new();
    for (at, _) in code.iter().enumerate().filter(|(_, token)| *token == "use") {
        let rest = &code[at + 1..];
        let end = rest.iter().position(|token| token == ";").unwrap_or(rest.len());
        let is_public = at > 0 && (code[at - 1] == "pub" || code[at - 1] == ")");
        // `use<'a>` is no import.
        if end > 0 && rest[0] != "<" {
            import_tree(&rest[..end], &[], is_public, &mut found);
        }
    }
    found
}

/// `a::{b, c::d as e}` is two names.
fn import_tree(tree: &[String], before: &[String], is_public: bool, found: &mut Vec<Import>) {
    let mut path = before.to_vec();
    let mut rest = tree.iter().enumerate();
    let mut name = None;
    while let Some((at, token)) = rest.next() {
        match token.as_str() {
            "::" => {}
            "{" => {
                let end = tree.len() - 1;
                for branch in branches(&tree[at + 1..end]) {
                    import_tree(branch, &path, is_public, found);
                }
                return;
            }
            "as" => name = rest.next().map(|(_, name)| name.clone()),
            // In a list it is what stands before the list.
            "self" if !path.is_empty() => {}
            word => path.push(word.to_owned()),
        }
    }
    if let Some(name) = name.or_else(|| path.last().cloned()) {
        found.push(Import { name, path, is_public });
    }
}

/// The parts between commas that are in no braces of their own.
fn branches(list: &[String]) -> Vec<&[String]> {
    let mut depth = 0;
    let parts = list.split(|token| {
        match token.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        depth == 0 && token == ","
    });
    parts.filter(|part| !part.is_empty()).collect()
}

fn without_imports(code: &[String]) -> Vec<String> {
    let mut rest = code.iter().peekable();
    let mut kept = Vec::new();
    while let Some(token) = rest.next() {
        if token == "use" && rest.peek().is_none_or(|next| *next != "<") {
            rest.by_ref().find(|token| *token == ";");
        } else {
            kept.push(token.clone());
        }
    }
    kept
}

/// The paths of at least two words, but for those of `pub(in …)`.
fn paths(code: &[String]) -> Vec<Vec<String>> {
    let is_name = |token: &String| token.starts_with(|first: char| first.is_alphabetic() || first == '_');
    let mut found = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let start = at;
        if is_name(&code[at]) && (at == 0 || !["::", "."].contains(&code[at - 1].as_str())) {
            while code.get(at + 1).is_some_and(|sign| sign == "::") && code.get(at + 2).is_some_and(is_name) {
                at += 2;
            }
            let is_visibility = code[..start].ends_with(&["pub", "(", "in"].map(str::to_owned));
            if at > start && !is_visibility {
                found.push(code[start..=at].iter().step_by(2).cloned().collect());
            }
        }
        at += 1;
    }
    found
}
