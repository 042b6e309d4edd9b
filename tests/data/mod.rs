//! The commands `trefoil export` and `trefoil import`, on both stores.

mod bad;
mod guide;
mod killed;
mod round;
mod serving;
mod spreadsheet;
mod terminal;
mod upsert;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use tempfile::TempDir;

use crate::support::{command, postgres};

/// Makes of each `fn name(kind: Kind)` a test on SQLite and one on PostgreSQL.
macro_rules! both {
    ($($name:ident),+ $(,)?) => {
        $(mod $name {
            use crate::data::Kind;

            #[test]
            fn sqlite() {
                super::$name(Kind::File);
            }

            #[test]
            fn postgres() {
                super::$name(Kind::Server);
            }
        })+
    };
}
use both;

const SCHEMA: &str = r#"
scalar Decimal
scalar Long
scalar Date
scalar DateTime
scalar UUID
scalar URL
scalar Email
scalar JSON
enum Color { RED GREEN }
type Town { city: String!  zip: Int }
type Query { people: [Person] }
type Subscription { personCreated: Person  personUpdated: Person }
type Person {
  id: ID!
  name: String! @notBlank
  nick: String @unique
  note: String
  rank: Decimal @unique
  boss: Person
  home: Team
  made: DateTime @createdAt
  touched: DateTime @updatedAt
  changes: Int @version
}
type Team { id: ID!  title: String!  lead: Person }
type Thing {
  id: ID!  flag: Boolean  count: Int  big: Long  ratio: Float  price: Decimal  day: Date  at: DateTime  uuid: UUID
  url: URL  email: Email  json: JSON  color: Color  tags: [String!]  place: Town  label: ID  text: String
}
type Student { id: ID!  name: String!  courses: [Course] }
type Course { id: ID!  title: String!  students: [Student] }
"#;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Server,
}

/// A folder with an application in it, and stores of one kind.
struct Bench {
    folder: TempDir,
    kind: Kind,
}

/// One store: what names it on the command line.
struct Store {
    flags: Vec<String>,
}

/// What a command has said.
struct Said {
    succeeded: bool,
    code: Option<i32>,
    out: String,
    err: String,
}

impl Said {
    fn of(output: Output) -> Said {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        Said {
            succeeded: output.status.success(),
            code: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    /// It failed, and said this.
    fn refused(&self, words: &[&str]) {
        assert!(!self.succeeded, "it was expected to fail: {}", self.err);
        for words in words {
            assert!(self.err.contains(words), "no {words:?} in:\n{}", self.err);
        }
    }
}

impl Bench {
    fn new(kind: Kind) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let app = folder.path().join("app");
        fs::create_dir_all(app.join("graphql")).unwrap();
        fs::write(app.join("graphql/schema.graphqls"), SCHEMA).unwrap();
        fs::write(app.join("trefoil.toml"), "[[list]]\npath = \"/items\"\n").unwrap();
        Bench { folder, kind }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        if let Some(parent) = self.path(name).parent() {
            fs::create_dir_all(parent).unwrap();
        }
        fs::write(self.path(name), bytes).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// A store that does not exist yet.
    fn store(&self) -> Store {
        match self.kind {
            Kind::File => self.file_store(),
            Kind::Server => Store { flags: vec!["--database".into(), postgres::patient_database()] },
        }
    }

    fn file_store(&self) -> Store {
        let folder = tempfile::tempdir_in(self.folder.path()).unwrap().keep();
        Store { flags: vec!["--data".into(), folder.display().to_string()] }
    }

    fn command(&self, verb: &str, store: &Store, arguments: &[&str]) -> std::process::Command {
        let flags = store.flags.iter().map(String::as_str);
        let all: Vec<&str> =
            [verb, "app"].into_iter().chain(flags).chain(arguments.iter().copied()).collect();
        command(self.folder.path(), &all)
    }

    fn run(&self, verb: &str, store: &Store, arguments: &[&str]) -> Said {
        Said::of(self.command(verb, store, arguments).output().unwrap())
    }

    /// Runs an import that reads this from its standard input.
    fn pipe(&self, store: &Store, arguments: &[&str], input: impl AsRef<[u8]>) -> Said {
        let mut command = self.command("import", store, arguments);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        // It may stop reading before the end.
        let _ = child.stdin.take().unwrap().write_all(input.as_ref());
        Said::of(child.wait_with_output().unwrap())
    }

    fn import(&self, store: &Store, arguments: &[&str]) {
        let said = self.run("import", store, arguments);
        assert!(said.succeeded, "{}", said.err);
    }

    /// Everything in the store, as a stream.
    fn all(&self, store: &Store) -> String {
        let said = self.run("export", store, &[]);
        assert!(said.succeeded, "{}", said.err);
        said.out
    }

    /// One resource as CSV, without the byte order mark.
    fn csv(&self, store: &Store, resource: &str) -> String {
        let said = self.run("export", store, &["--resource", resource, "--format", "csv"]);
        assert!(said.succeeded, "{}", said.err);
        said.out.strip_prefix('\u{feff}').expect("a byte order mark").to_owned()
    }
}

/// The names of the files in a folder, in order.
fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
