//! The command line: the real binary, its output and its exit codes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;
use trefoil_config::SETTINGS;

use crate::support::{command, is_long};

/// The binary in a folder of its own.
fn trefoil(folder: &TempDir, arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
    let output = command(folder.path(), arguments).envs(variables.iter().copied()).output();
    Ran::new(output.expect("the binary runs"))
}

struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Ran {
    fn new(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
        Ran {
            code: output.status.code().expect("an exit code"),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    /// Refused with exactly this line and exit code 2.
    fn refused_with(&self, line: &str) {
        assert_eq!(
            (self.err.as_str(), self.out.as_str(), self.code),
            (format!("error: {line}\n").as_str(), "", 2)
        );
    }

    /// Value and origin of a setting in what `--print-config` printed.
    fn setting(&self, name: &str) -> (String, String) {
        assert_eq!((self.code, self.err.as_str()), (0, ""));
        let line = self.out.lines().find(|line| line.split(' ').next() == Some(name));
        let line = line.unwrap_or_else(|| panic!("no {name} in\n{}", self.out));
        let cells: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        assert_eq!(cells.len(), 3, "{line}");
        (cells[1].into(), cells[2].into())
    }
}

fn empty() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// A folder in which `app/` is an application with this `trefoil.toml`.
fn with_manifest(toml: &str) -> TempDir {
    let folder = empty();
    put(folder.path(), "app/graphql/a.graphqls", "type A { id: ID! }\ntype Query { a(id: ID!): A }\n");
    put(folder.path(), "app/trefoil.toml", toml);
    folder
}

fn put(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().expect("a parent")).expect("created");
    fs::write(path, text).expect("written");
}

#[test]
fn help_and_version_go_to_standard_output() {
    let help = trefoil(&empty(), &["--help"], &[]);
    assert_eq!((help.code, help.err.as_str()), (0, ""));
    for command in ["serve", "check", "new", "migrate"] {
        assert!(help.out.contains(&format!("\n  {command} ")), "{}", help.out);
    }
    let version = trefoil(&empty(), &["--version"], &[]);
    assert_eq!(
        (version.code, version.out.as_str()),
        (0, concat!("trefoil ", env!("CARGO_PKG_VERSION"), "\n"))
    );
}

#[test]
fn serve_help_names_every_setting() {
    let help = trefoil(&empty(), &["serve", "--help"], &[]);
    for setting in SETTINGS {
        assert!(help.out.contains(&setting.flag()), "{} is missing", setting.flag());
    }
}

#[test]
fn invalid_arguments_exit_with_2() {
    for arguments in [
        ["--prot", "1"].as_slice(),
        &["frobnicate"],
        &["serve", "a", "b"],
        &["--port", "1", "--port", "2"],
        &["migrate"],
        &["migrate", "--plan", "--apply"],
        &["migrate", "--plan", "--allow-drop", "A.b"],
        &["check", "--format", "xml"],
        &["new"],
    ] {
        let ran = trefoil(&empty(), arguments, &[]);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{arguments:?}");
        assert!(ran.err.starts_with("error: "), "{}", ran.err);
    }
    assert!(trefoil(&empty(), &["--prot", "1"], &[]).err.contains("'--port'"));
}

#[test]
fn folder_without_a_command_says_how_to_serve_it() {
    let named = trefoil(&with_manifest(""), &["app"], &[]);
    assert_eq!(named.code, 2);
    assert!(named.err.ends_with("To serve the folder: trefoil serve app\n"), "{}", named.err);
    let unknown = trefoil(&empty(), &["app"], &[]);
    assert_eq!(unknown.code, 2);
    assert!(!unknown.err.contains("To serve"), "{}", unknown.err);
}

#[test]
fn invalid_value_is_one_line_with_its_location() {
    let folder = with_manifest("\nport = 70000\n");
    let why = "\"x\" is not a port: expected a number from 0 to 65535";
    trefoil(&folder, &["serve", "--port", "x"], &[]).refused_with(&format!("--port: {why}"));
    trefoil(&folder, &["serve"], &[("TREFOIL_PORT", "x")]).refused_with(&format!("TREFOIL_PORT: {why}"));
    trefoil(&folder, &["serve", "app"], &[])
        .refused_with("trefoil.toml:2:8: `port`: \"70000\" is not a port: expected a number from 0 to 65535");
    let postgres = trefoil(&folder, &["--database", "postgres://me:secret@db/shop?sslmod=require"], &[]);
    postgres.refused_with("--database: unknown parameter; did you mean `sslmode`?");
    let secret = with_manifest("database = \"postgres://me:s3cret@db:x/shop\"\n");
    let checked = trefoil(&secret, &["check", "app"], &[]);
    assert!(checked.out.contains("`database`: invalid port"), "{}", checked.out);
    assert!(checked.out.contains("\"postgres://******"), "{}", checked.out);
    for said in [checked, trefoil(&secret, &["serve", "app"], &[])] {
        assert!(!said.out.contains("s3cret") && !said.err.contains("s3cret"), "{}{}", said.out, said.err);
    }
    trefoil(&with_manifest(""), &["serve", "app", "--host", "0.0.0.0"], &[]).refused_with(
        "other machines can reach host 0.0.0.0, and without rules (@allow) all of them may read and change everything: \
         add --open to allow this",
    );
}

#[test]
fn unknown_settings_stop_the_start() {
    let unknown =
        |toml: &str, line: &str| trefoil(&with_manifest(toml), &["serve", "app"], &[]).refused_with(line);
    unknown("prot = 1", "trefoil.toml:1:1: unknown key `prot`; did you mean `port`?");
    unknown("[limits]\nbodi = 1", "trefoil.toml:2:1: unknown key `bodi` in [limits]; did you mean `body`?");
    unknown(
        "[[text]]\npath = \"/x\"\ntxt = \"\"",
        "trefoil.toml:3:1: unknown key `txt` in [[text]]; did you mean `text`?",
    );
    unknown("auth = true", "trefoil.toml:1:8: `auth` must be a table, written as [auth], not a boolean");
    trefoil(&empty(), &[], &[("TREFOIL_PROT", "1")])
        .refused_with("TREFOIL_PROT: unknown setting; did you mean TREFOIL_PORT?");
}

#[test]
fn print_config_shows_the_origin_of_each_value() {
    let folder = with_manifest("port = 1\nhost = \"127.0.0.1\"\nwatch = true\n[limits]\nbody = \"2 MiB\"\n");
    let variables = [("TREFOIL_PORT", "2"), ("TREFOIL_WATCH", "off"), ("TREFOIL_LIMIT_DEPTH", "7")];
    let ran = trefoil(&folder, &["serve", "app", "--port", "3", "--open", "--print-config"], &variables);
    let check = |name: &str, value: &str, origin: &str| {
        assert_eq!(ran.setting(name), (value.to_owned(), origin.to_owned()), "{name}");
    };
    check("port", "3", "--port");
    check("host", "127.0.0.1", "trefoil.toml:2");
    check("watch", "false", "TREFOIL_WATCH");
    check("open", "true", "--open");
    check("limit-body", "2 MiB", "trefoil.toml:5");
    check("limit-depth", "7", "TREFOIL_LIMIT_DEPTH");
    check("graphiql", "true", "default");
    assert_eq!(ran.out.lines().count(), SETTINGS.len());
    assert_eq!(
        fs::read_dir(folder.path()).expect("readable").count(),
        1,
        "nothing but app/ is there: nothing ran"
    );
}

#[test]
fn boolean_flag_can_be_false_and_takes_no_argument() {
    let folder = with_manifest("open = true");
    let ran = trefoil(&folder, &["serve", "--open=false", "--watch", "app", "--print-config"], &[]);
    assert_eq!(ran.setting("open"), ("false".into(), "--open".into()));
    assert_eq!(ran.setting("watch"), ("true".into(), "--watch".into()));
}

#[test]
fn missing_folder_or_schema_says_what_to_do() {
    let folder = empty();
    trefoil(&folder, &["serve", "my-app"], &[])
        .refused_with("my-app: folder not found; run `trefoil new my-app` to create one");
    put(folder.path(), "my-app/notes.txt", "");
    trefoil(&folder, &["serve", "my-app"], &[]).refused_with(
        "my-app: no schema found: there are no files graphql/*.graphqls; run `trefoil new my-app` to create an application",
    );
}

#[test]
fn check_shows_errors_with_a_caret_and_as_json() {
    let folder = with_manifest("host = \"localhost\"\nprot = 1\n");
    let human = trefoil(&folder, &["check", "app"], &[]);
    assert_eq!((human.code, human.err.as_str()), (1, ""));
    let shown = "error: unknown key `prot`\n --> trefoil.toml:2:1\n  |\n2 | prot = 1\n  | ^^^^\n";
    assert!(human.out.contains(shown), "{}", human.out);

    let json = trefoil(&folder, &["check", "app", "--format", "json"], &[]);
    assert_eq!(json.code, 1);
    let report: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
    let mistake = &report["mistakes"][0];
    assert_eq!((&mistake["file"], &mistake["line"]), (&"trefoil.toml".into(), &2.into()), "{report:#}");
}

#[test]
fn check_reports_every_error_of_every_file() {
    let folder = with_manifest("prot = 1\n");
    put(folder.path(), "app/graphql/b.graphqls", "type B { id: ID!  a: Aa }\n");
    put(folder.path(), "app/seed/as.json", "[{}, 1]");
    let said = trefoil(&folder, &["check", "app"], &[]);
    for place in ["trefoil.toml:1:1", "graphql/b.graphqls:1:22", "seed/as.json:1:6"] {
        assert!(said.out.contains(&format!("--> {place}\n")), "{place} in\n{}", said.out);
    }
    assert!(said.out.ends_with("\n3 mistakes\n"), "{}", said.out);
    assert_eq!(said.code, 1);
}

#[test]
fn rules_are_shown() {
    let folder = with_manifest("");
    let schema = r#"
enum Role { AUTHOR ADMIN }
extend schema @allow(all: "role(ADMIN)")
type User @account(login: "email", roles: "role") @allow(read: true, update: "this == me") {
  id: ID!
  email: String! @unique @allow(read: "this == me")
  role: Role @allow(write: "role(ADMIN)")
}
type Post @allow(read: "published || author == me", create: "role(AUTHOR)", delete: false) {
  id: ID!
  author: User!
  published: Boolean!
}
"#;
    put(folder.path(), "app/graphql/a.graphqls", schema);
    let shown = trefoil(&folder, &["check", "app", "--rules"], &[]);
    let table = "
  type  action  anonymous  no role  AUTHOR  ADMIN
  User  read    yes        yes      yes     yes
  User  create  no         no       no      yes
  User  update  no         some     some    yes
  User  delete  no         no       no      yes
  Post  read    some       some     some    yes
  Post  create  no         no       yes     yes
  Post  update  no         no       no      yes
  Post  delete  no         no       no      no
";
    assert_eq!(shown.code, 0, "{}", shown.out);
    assert!(shown.out.contains(table.trim_start_matches('\n')), "{}", shown.out);
    let hidden = "\nnull where a rule hides them, in spite of `!`: User.email\n";
    let operations = trefoil(&folder, &["check", "app"], &[]);
    assert!(operations.out.contains(hidden), "{}", operations.out);
    let json = trefoil(&folder, &["check", "app", "--rules", "--format", "json"], &[]);
    let report: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(report["rules"][4]["allowed"]["anonymous"], "some", "{report:#}");
}

#[test]
fn check_tells_which_fields_an_operation_fills() {
    let folder = with_manifest("");
    let schema = "type Task { id: ID! title: String! done: Boolean! tags: [String!]! createdAt: String! updatedAt: String! }
        type Query { tasks: [Task!]! }
        type Mutation {
            createTask(title: String!): Task!
            addTask(title: String!, done: Boolean!, tags: [String!]!, createdAt: String!, updatedAt: String!): Task!
            updateTask(id: ID!, title: String): Task!
        }";
    put(folder.path(), "app/graphql/a.graphqls", schema);
    let human = trefoil(&folder, &["check", "app", "--strict"], &[]);
    let filled = "creates one Task; fills done with false, tags with an empty list, createdAt with the time, updatedAt with the time\n";
    assert!(human.out.contains(filled), "{}", human.out);
    assert!(human.out.contains("  Mutation.addTask     creates one Task\n"), "{}", human.out);
    assert!(human.out.contains("updates one Task; fills updatedAt with the time\n"), "{}", human.out);
    assert_eq!(human.code, 0, "it is no warning: {}", human.out);

    let json = trefoil(&folder, &["check", "app", "--format", "json"], &[]);
    let report: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
    let operations = report["operations"].as_array().expect("a list");
    let filled = |name: &str| {
        let found = operations.iter().find(|operation| operation["operation"] == name);
        found.map(|operation| operation["filled"].clone()).expect("an operation")
    };
    assert_eq!(
        filled("Mutation.updateTask"),
        serde_json::json!([{ "field": "updatedAt", "value": "the time" }])
    );
    assert_eq!(filled("Mutation.createTask").as_array().map(Vec::len), Some(4));
    assert_eq!(filled("Mutation.addTask"), serde_json::json!([]));
}

#[test]
fn check_suggests_indexes_for_the_filters_of_pages() {
    let folder = with_manifest("");
    let check = |directives: &str, flag: &str| {
        let schema = format!(
            "enum Kind {{ A B }} type Book {directives} {{ id: ID! title: String pages: Int kind: Kind sold: Boolean }}"
        );
        put(folder.path(), "app/graphql/a.graphqls", &schema);
        trefoil(&folder, &["check", "app", flag], &[]).out
    };
    let out = check("", "--format=human");
    assert!(out.contains("add @index to the type:\n  Book: pages, kind\n"), "{out}");
    let out = check(r#"@index(fields: ["pages", "sold"])"#, "--format=json");
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["unindexedFilters"], serde_json::json!([{ "type": "Book", "fields": ["kind"] }]));
}

#[test]
fn check_validates_seed_files() {
    let folder = with_manifest("");
    put(
        folder.path(),
        "app/graphql/a.graphqls",
        "type A { id: ID!  name: String! @notBlank }\ntype Query { as: [A] }\n",
    );
    let said = |seed: &str| {
        put(folder.path(), "app/seed/as.json", seed);
        trefoil(&folder, &["check", "app"], &[])
    };
    let wrong = said("[\n  {\"name\": \"x\"},\n  {\"nam\": \"x\"},\n  {\"name\": \"\"}\n]");
    assert_eq!(wrong.code, 1);
    // The field is marked, not its record.
    for place in ["seed/as.json:3:4", "seed/as.json:4:4"] {
        assert!(wrong.out.contains(&format!("--> {place}\n")), "{place} in\n{}", wrong.out);
    }
    assert!(
        wrong.out.contains("|    ^^^^^^^^^^\n") && wrong.out.contains("did you mean `name`?"),
        "{}",
        wrong.out
    );
    let right = said("[{\"name\": \"x\"}]");
    assert_eq!((right.code, right.out.contains("no mistakes")), (0, true), "{}", right.out);
    put(folder.path(), "app/seed/ass.json", "[{}]");
    let nowhere = trefoil(&folder, &["check", "app"], &[]);
    assert!(nowhere.out.contains("did you mean `as`?"), "{}", nowhere.out);
    assert_eq!(nowhere.code, 1);
}

#[test]
fn new_writes_a_valid_application() {
    let folder = empty();
    let ran = trefoil(&folder, &["new", "my-app"], &[]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.contains("trefoil serve my-app"), "{}", ran.out);
    for name in ["graphql/library.graphqls", "trefoil.toml", "seed/books.json", ".gitignore"] {
        assert!(folder.path().join("my-app").join(name).exists(), "{name}");
    }
    let check = trefoil(&folder, &["check", "my-app"], &[]);
    assert_eq!((check.code, check.err.as_str()), (0, ""), "{}", check.out);
    let data = trefoil(&folder, &["serve", "my-app", "--print-config"], &[]).setting("data");
    assert_eq!(data.0, "my-app/trefoil-data", "what .gitignore leaves out");
}

const WITH_CUSTOM_OPERATIONS: &str = r#"
type Book { id: ID! title: String! }
type Query { books: [Book!]! login(name: String!, password: String!): String motto: String! }
type Mutation { createBook(title: String!): Book! publishBook(id: ID!): Book publish_book(id: ID!): Book }
type Subscription { bookSold: Book bookCreated: Book }
"#;

#[test]
fn new_resolvers_writes_a_function_for_each_unbound_operation() {
    let folder = empty();
    put(folder.path(), "app/graphql/a.graphqls", WITH_CUSTOM_OPERATIONS);
    let ran = trefoil(&folder, &["new", "app", "--resolvers"], &[]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.contains("src/main.rs, with 4 functions to write; left out, because no resolver can follow changes: bookSold\n"), "{}", ran.out);
    let main = fs::read_to_string(folder.path().join("app/resolvers/src/main.rs")).expect("the program");
    let registered: Vec<&str> =
        main.lines().filter(|line| line.contains(".resolver(")).map(str::trim).collect();
    let expected = [
        r#".resolver("Query.login", query_login)"#,
        r#".resolver("Query.motto", query_motto)"#,
        r#".resolver("Mutation.publishBook", mutation_publish_book)"#,
        r#".resolver("Mutation.publish_book", mutation_publish_book_2)"#,
    ];
    assert_eq!(registered, expected);
    assert!(main.contains("/// `login(name: String!, password: String!): String`"), "{main}");
    trefoil(&folder, &["new", "app", "--resolvers"], &[])
        .refused_with("app/resolvers exists; rename it first, and take over what you have written there");
    if is_long() {
        compile_skeleton(&folder.path().join("app/resolvers"));
    }
    put(folder.path(), "app/graphql/a.graphqls", "type Book { id: ID! } type Query { books: [Book!]! }");
    let none = trefoil(&folder, &["new", "app", "--resolvers"], &[]);
    assert_eq!(none.out, "every operation has a resolver; nothing was written\n");
    trefoil(&folder, &["new", "nowhere", "--resolvers"], &[])
        .refused_with("nowhere: `trefoil check` says what is wrong with this folder");
}

/// Compiles the program with the crate of this repository.
fn compile_skeleton(program: &Path) {
    let manifest = program.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).expect("the manifest");
    let root = env!("CARGO_MANIFEST_DIR");
    let own = format!("trefoil = {{ path = {root:?} }}\n");
    let text = text.lines().map(|line| match line.starts_with("trefoil = ") {
        true => own.clone(),
        false => format!("{line}\n"),
    });
    fs::write(&manifest, text.collect::<String>()).expect("written");
    fs::copy(Path::new(root).join("Cargo.lock"), program.join("Cargo.lock")).expect("copied");
    let compiled = Command::new(env!("CARGO"))
        .args(["check", "--quiet", "--manifest-path"])
        .arg(&manifest)
        .env("CARGO_TARGET_DIR", Path::new(root).join("target/skeleton"))
        .env("RUSTFLAGS", "-D warnings")
        .output()
        .expect("cargo runs");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
}

#[test]
fn new_refuses_a_folder_that_is_not_empty() {
    let folder = empty();
    put(folder.path(), "my-app/notes.txt", "mine");
    let line = "my-app is not empty; choose a folder that is empty or does not exist";
    trefoil(&folder, &["new", "my-app"], &[]).refused_with(line);
    assert_eq!(fs::read_dir(folder.path().join("my-app")).expect("readable").count(), 1);
    fs::create_dir_all(folder.path().join("fresh/.git")).expect("created");
    assert_eq!(trefoil(&folder, &["new", "fresh"], &[]).code, 0);
}

#[test]
fn settings_page_documents_every_setting() {
    let page = include_str!("../docs/settings.md");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `--")).collect();
    let expected: Vec<String> = SETTINGS
        .iter()
        .map(|setting| {
            let key = match setting.key() {
                (Some(table), key) => format!("{table}.{key}"),
                (None, key) => key.to_owned(),
            };
            let default = setting.default();
            let default = if default.is_empty() { "none".to_owned() } else { format!("`{default}`") };
            let (flag, variable) = (setting.flag(), setting.variable());
            format!("| `{flag}` | `{variable}` | `{key}` | {default} | {} |", setting.help)
        })
        .collect();
    assert_eq!(rows, expected, "docs/settings.md should have these rows:\n{}", expected.join("\n"));
}

#[test]
fn schema_prints_and_writes_the_generated_operations() {
    let folder = empty();
    let types = "type Book { id: ID! title: String! }\ntype Note { id: ID! text: String, book: Book }\n";
    put(folder.path(), "app/graphql/types.graphqls", types);
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let printed = trefoil(&folder, &["schema", "app"], &[]);
    assert_eq!((printed.code, printed.err.as_str()), (0, ""));
    for line in ["  book(id: ID!): Book", "  createNote(input: NoteCreate!): Note!", "  bookId: ID"] {
        assert!(printed.out.lines().any(|found| found == line), "{line}:\n{}", printed.out);
    }
    let file = folder.path().join("app/graphql/generated.graphqls");
    assert!(!file.exists());
    let written = trefoil(&folder, &["schema", "app", "--write"], &[]);
    assert_eq!((written.code, written.err.as_str()), (0, ""));
    let generated = fs::read_to_string(&file).expect("it was written");
    let owned = trefoil(&folder, &["schema", "app"], &[]);
    assert_eq!(sorted(&owned.out), sorted(&printed.out));
    let again = trefoil(&folder, &["schema", "app", "--write"], &[]);
    again.refused_with(
        "app/graphql/generated.graphqls already exists; add --force to replace it with what its types give now",
    );
    put(folder.path(), "app/graphql/generated.graphqls", "type Query { book(id: ID!): Book }\n");
    let forced = trefoil(&folder, &["schema", "app", "--write", "--force"], &[]);
    assert_eq!((forced.code, forced.err.as_str()), (0, ""));
    assert_eq!(fs::read_to_string(&file).expect("it was written"), generated);
}

#[test]
fn schema_without_anything_to_generate_writes_nothing() {
    let folder = with_manifest("");
    trefoil(&folder, &["schema", "app", "--write"], &[]).refused_with(
        "nothing is generated, because the schema declares its operations; add `extend schema @generate`",
    );
    let sample = trefoil(&folder, &["schema", "--write"], &[]);
    assert!(sample.err.contains("the built-in sample has no folder to write to"), "{}", sample.err);
    put(folder.path(), "app/graphql/a.graphqls", "type A { id: Nothing! }\n");
    let wrong = trefoil(&folder, &["schema", "app"], &[]);
    assert!(wrong.code != 0 && wrong.err.contains("there is no type `Nothing`"), "{}", wrong.err);
}
