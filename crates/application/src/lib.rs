//! The application folder: schema files, `trefoil.toml`, views and seed, from disk or from the built-in sample.
//!
//! The server and the command line load it as an [`App`]; `trefoil-model` parses the schema itself.

// Reading the folder.
mod folder_reader;
mod sample;

// `trefoil.toml`: the reader of its tables, and their contents.
mod manifest;

mod endpoint_path;
mod endpoints;
mod manifest_reader;
mod manifest_rule;
mod manifest_rules;
mod openid_providers;
pub mod resource_settings;
mod token_issuers;
mod visibility_settings;

// `seed/*.json`.
pub mod seed;

// `static/`, `[theme]`.
mod site;

// Quoting for commands in messages.
pub mod shell_quoting;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use trefoil_config::{ResolvedConfig, Setting, SettingLayers};
use trefoil_model::{Diagnostic, Model, SourceFile};

use crate::manifest_reader::MANIFEST_FILE;

pub use crate::endpoints::{AllowedMethods, EndpointReply, PlainList, TextEndpoint};
pub use crate::manifest::Manifest;
pub use crate::manifest_rule::{GivenRule, ManifestRule};
pub use crate::openid_providers::DeclaredProvider;
pub use crate::resource_settings::{DefaultFormat, ResourceSettings, TextList};
pub use crate::seed::{Seed, SeedFile, SeedRecord, SeedRows};
pub use crate::site::{SiteTheme, StaticFile, ThemeColor};
pub use crate::visibility_settings::VisibilitySettings;

/// An application as read from its files; the schema is not parsed yet.
#[derive(Debug)]
pub struct App {
    pub name: String,
    pub origin: AppOrigin,
    pub schema: Vec<SourceFile>,
    /// `views/*.html`: templates that replace built-in ones, or pages of the application's own.
    pub views: Vec<SourceFile>,
    /// `static/`: what pages use beside them.
    pub static_files: Vec<StaticFile>,
    /// The text of `trefoil.toml` and the seed, for diagnostics that point into them.
    pub other_files: Vec<SourceFile>,
    pub manifest: Arc<Manifest>,
    pub seed: Seed,
    /// What flags and variables give: they go before the file.
    pub visibility_settings: VisibilitySettings,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppOrigin {
    /// Built into the program.
    Sample,
    Folder(PathBuf),
}

impl App {
    /// An application of a schema only, for programs that bring their own.
    pub fn from_schema(name: &str, sdl: &str) -> App {
        let file = SourceFile { name: "graphql/schema.graphqls".to_owned(), text: sdl.to_owned() };
        App {
            name: name.to_owned(),
            origin: AppOrigin::Sample,
            schema: vec![file],
            views: Vec::new(),
            static_files: Vec::new(),
            other_files: Vec::new(),
            manifest: Arc::default(),
            seed: Seed::default(),
            visibility_settings: VisibilitySettings::default(),
        }
    }

    /// The Sample Resource API.
    pub fn sample() -> App {
        App::assemble(AppOrigin::Sample, sample::sample_files(), Vec::new()).0
    }

    /// The application in a folder, or every mistake that is found before the schema is parsed.
    pub fn load(path: &Path) -> Result<App, Vec<Diagnostic>> {
        let (app, mistakes) = App::load_with_diagnostics(path);
        if mistakes.is_empty() { Ok(app) } else { Err(mistakes) }
    }

    /// The application in a folder as far as it can be read, and every mistake found so far.
    pub fn load_with_diagnostics(path: &Path) -> (App, Vec<Diagnostic>) {
        let (files, mistakes) = folder_reader::read_app_folder(path);
        let (app, mut mistakes) = App::assemble(AppOrigin::Folder(path.to_owned()), files, mistakes);
        let (static_files, unreadable) = site::read_static_folder(path);
        mistakes.extend(unreadable);
        mistakes.extend(app.manifest.theme.missing_logo(app.manifest_text(), &static_files));
        (App { static_files, ..app }, mistakes)
    }

    /// Whether the application has a view of this name.
    pub fn has_view(&self, name: &str) -> bool {
        self.view_names().any(|own| own == name)
    }

    /// The application's views as endpoints name them: `about` for `views/about.html`.
    pub fn view_names(&self) -> impl Iterator<Item = &str> {
        self.views.iter().filter_map(|view| view.name.strip_prefix("views/")?.strip_suffix(".html"))
    }

    /// What `trefoil.toml` says that does not fit the schema.
    pub fn schema_mismatches(&self, model: &Model) -> Vec<Diagnostic> {
        let text = self.manifest_text();
        let resources = self.manifest.resources.iter();
        let mut mistakes: Vec<Diagnostic> =
            resources.filter_map(|resource| resource.schema_mismatch(text, model)).collect();
        if self.manifest.global_ids == Some(true) && !model.global_ids {
            let message =
                "`global-ids` needs `interface Node { id: ID! }` and `node(id: ID!): Node` in Query";
            mistakes.push(Diagnostic::in_file(MANIFEST_FILE, "MANIFEST", message));
        }
        mistakes.extend(token_issuers::issuer_mismatches(&self.manifest.token_issuers, model));
        let providers = &self.manifest.openid_providers;
        mistakes.extend(openid_providers::provider_mismatches(providers, text, model));
        mistakes
    }

    /// What of `trefoil.toml` may be served, but not as intended.
    pub fn manifest_warnings(&self) -> Vec<Diagnostic> {
        self.manifest.theme.contrast_warnings(self.manifest_text())
    }

    /// Adds the rules of `trefoil.toml` to those of the schema; the mistakes in them.
    pub fn add_rules(&self, model: &mut Model) -> Vec<Diagnostic> {
        manifest_rules::add_rules(&self.manifest, self.manifest_text(), &self.visibility_settings, model)
    }

    fn manifest_text(&self) -> &str {
        let file = self.other_files.iter().find(|file| file.name == MANIFEST_FILE);
        file.map_or("", |file| file.text.as_str())
    }

    /// The settings from flags, the environment and `trefoil.toml`, or one line per mistake.
    pub fn resolve_config(
        &self,
        flags: Vec<(&'static Setting, String)>,
    ) -> Result<ResolvedConfig, Vec<String>> {
        let folder = match &self.origin {
            AppOrigin::Sample => Path::new(""),
            AppOrigin::Folder(path) => path,
        };
        SettingLayers { flags, variables: environment_variables()?, file: &self.manifest.settings, folder }
            .resolve()
    }

    fn assemble(
        origin: AppOrigin,
        files: Vec<SourceFile>,
        mut mistakes: Vec<Diagnostic>,
    ) -> (App, Vec<Diagnostic>) {
        let (mut manifest, mut seed) = (Manifest::default(), Seed::default());
        let (schema, other_files): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|file| file.name.starts_with("graphql/"));
        let (views, other_files): (Vec<_>, Vec<_>) =
            other_files.into_iter().partition(|file| file.name.starts_with("views/"));
        for file in &other_files {
            if file.name == MANIFEST_FILE {
                let (parsed, diagnostics) = Manifest::parse(&file.text);
                manifest = parsed;
                mistakes.extend(diagnostics);
            } else {
                match SeedFile::parse(&file.name, &file.text) {
                    Ok(file) => seed.files.push(file),
                    Err(diagnostics) => mistakes.extend(diagnostics),
                }
            }
        }
        mistakes.extend(misplaced_seed_rows(&seed, &manifest));
        if schema.is_empty() && mistakes.is_empty() {
            mistakes.push(missing_schema(&origin));
        }
        let name = manifest.name.clone().unwrap_or_else(|| origin.name());
        let manifest = Arc::new(manifest);
        let visibility_settings = VisibilitySettings::default();
        let static_files = Vec::new();
        let app = App {
            name,
            origin,
            schema,
            views,
            static_files,
            other_files,
            manifest,
            seed,
            visibility_settings,
        };
        (app, mistakes)
    }
}

impl AppOrigin {
    /// The folder as a command line argument, if there is one.
    pub fn argument(&self) -> Option<String> {
        match self {
            AppOrigin::Sample => None,
            AppOrigin::Folder(path) => Some(shell_quoting::word(&path.to_string_lossy()).into_owned()),
        }
    }

    fn name(&self) -> String {
        match self {
            AppOrigin::Sample => "sample".into(),
            AppOrigin::Folder(path) => {
                let resolved = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
                resolved.file_name().unwrap_or(resolved.as_os_str()).to_string_lossy().into_owned()
            }
        }
    }
}

/// The environment variables that are settings, by name.
fn environment_variables() -> Result<Vec<(String, String)>, Vec<String>> {
    let mut found = Vec::new();
    for (name, value) in std::env::vars_os() {
        let is_ours = |name: &&str| name.starts_with("TREFOIL_") || *name == "DATABASE_URL";
        let Some(name) = name.to_str().filter(is_ours) else { continue };
        let value = value.into_string().map_err(|_| vec![format!("{name}: the value is not UTF-8")])?;
        found.push((name.to_owned(), value));
    }
    found.sort();
    Ok(found)
}

fn missing_schema(origin: &AppOrigin) -> Diagnostic {
    let place = match origin {
        AppOrigin::Sample => "sample".into(),
        AppOrigin::Folder(path) => path.display().to_string(),
    };
    let message = "no schema found: there are no files graphql/*.graphqls";
    let mut diagnostic = Diagnostic::in_file(place, "FILE", message);
    diagnostic.help("run `trefoil new my-app` to create an application");
    diagnostic
}

/// Reports seeds of texts whose plain list does not exist, and seeds of records in the place of a plain list.
fn misplaced_seed_rows(seed: &Seed, manifest: &Manifest) -> Vec<Diagnostic> {
    let is_list = |name: &str| manifest.plain_lists.iter().any(|list| list.name() == name);
    let diagnose = |file: &SeedFile| {
        let message = match (&file.rows, is_list(&file.collection)) {
            (SeedRows::Texts(_), false) => {
                "the file contains texts, but trefoil.toml declares no list with this name"
            }
            (SeedRows::Records(records), true) if !records.is_empty() => {
                "the file contains records, but a plain list takes texts"
            }
            (SeedRows::Texts(_), true) | (SeedRows::Records(_), _) => return None,
        };
        let mut diagnostic = Diagnostic::in_file(file.name.clone(), seed::SEED_CODE, message);
        diagnostic.help(format!("declare a list with [[list]] and path = \"/{}\"", file.collection));
        Some(diagnostic)
    };
    seed.files.iter().filter_map(diagnose).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A folder with these files.
    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        folder
    }

    fn mistakes(files: &[(&str, &[u8])]) -> Vec<String> {
        App::load(folder(files).path()).unwrap_err().iter().map(Diagnostic::to_string).collect()
    }

    #[test]
    fn sample_has_expected_contents() {
        let (app, mistakes) = App::assemble(AppOrigin::Sample, sample::sample_files(), Vec::new());
        assert_eq!(mistakes, []);
        assert_eq!(app.name, "Sample Resource API");
        let lists: Vec<_> = app.manifest.plain_lists.iter().map(|list| (list.name(), list.page)).collect();
        assert_eq!(lists, [("items", false), ("samples", true)]);
        let paths: Vec<&str> = app.manifest.text_endpoints.iter().map(|text| text.path.as_str()).collect();
        let expected =
            ["/hello", "/api/message", "/api/info", "/api/summary", "/api/check", "/api/common", "/api/test"];
        assert_eq!(paths, expected);
        for file in &app.seed.files {
            let SeedRows::Records(records) = &file.rows else { panic!("{} begins with records", file.name) };
            for (id, record) in (1..).zip(records) {
                assert_eq!(record.fields.get("id"), Some(&trefoil_model::Value::Int(id)), "{}", file.name);
            }
        }
        let orders = app.seed.files.iter().find(|file| file.collection == "orders").unwrap();
        let SeedRows::Records(orders) = &orders.rows else { panic!("records") };
        assert_eq!(orders[0].fields.get("userId"), Some(&trefoil_model::Value::Int(1)));
    }

    #[test]
    fn schema_files_are_found_at_any_depth_in_order() {
        let text = b"type Query { a: Int }".as_slice();
        let names = ["graphql/b/c.graphql", "graphql/a.graphqls", "graphql/z.gql", "graphql/y.gqls"];
        let mut files: Vec<(&str, &[u8])> = names.iter().map(|name| (*name, text)).collect();
        files.push(("graphql/.#a.graphqls", b"an editor's"));
        files.push(("graphql/readme.md", b"not a schema"));
        let folder = folder(&files);
        #[cfg(unix)]
        std::os::unix::fs::symlink("..", folder.path().join("graphql/b/loop")).unwrap();
        let app = App::load(folder.path()).unwrap();
        let found: Vec<&str> = app.schema.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(found, ["graphql/a.graphqls", "graphql/b/c.graphql", "graphql/y.gqls", "graphql/z.gql"]);
    }

    #[cfg(unix)]
    #[test]
    fn unreadable_files_are_not_treated_as_missing() {
        let folder = folder(&[]);
        for name in ["graphql", "seed", "trefoil.toml"] {
            std::os::unix::fs::symlink(name, folder.path().join(name)).unwrap();
        }
        let found = App::load(folder.path()).unwrap_err();
        let files: Vec<&str> = found.iter().map(|mistake| mistake.file.as_str()).collect();
        assert_eq!(files, ["graphql", "seed", "trefoil.toml"], "{found:?}");
    }

    #[test]
    fn byte_order_mark_is_removed() {
        let folder = folder(&[("graphql/a.gql", b"\xef\xbb\xbftype A { id: ID! }")]);
        assert_eq!(App::load(folder.path()).unwrap().schema[0].text, "type A { id: ID! }");
    }

    #[test]
    fn all_mistakes_of_all_files_are_reported() {
        let found = mistakes(&[
            ("graphql/a.graphqls", b"type A { id: \xff }"),
            ("seed/users.json", b"[1]"),
            ("seed/items.json", b"[\"x\"]"),
            ("trefoil.toml", b"prot = 1"),
        ]);
        assert_eq!(found.len(), 4, "{found:?}");
        let assert_reported =
            |text: &str| assert!(found.iter().any(|mistake| mistake.contains(text)), "{text}: {found:?}");
        assert_reported("graphql/a.graphqls: is not valid UTF-8 at byte 13");
        assert_reported("seed/users.json:1:2: a seed file must contain an array");
        assert_reported(
            "seed/items.json: the file contains texts, but trefoil.toml declares no list with this name",
        );
        assert_reported("trefoil.toml:1:1: unknown key `prot`");
    }

    #[test]
    fn missing_and_empty_folders_suggest_new() {
        let empty = mistakes(&[]);
        assert!(empty[0].contains("no schema found") && empty[0].contains("trefoil new"), "{empty:?}");
        let missing = App::load(Path::new("/nowhere/my-app")).unwrap_err();
        assert_eq!(
            missing[0].to_string(),
            "/nowhere/my-app: folder not found; run `trefoil new /nowhere/my-app` to create one"
        );
        let folder = folder(&[("file", b"")]);
        let file = App::load(&folder.path().join("file")).unwrap_err();
        assert!(file[0].message.contains("this is a file"), "{file:?}");
    }
}
