//! Cases whose server is a separate process, for steps other than requests: the lines that begin with `! `.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::run::CaseStore;
use crate::support::{Process, postgres};

pub struct Apart {
    pub process: Process,
    store: Store,
    /// How much of standard output the case has spoken of.
    heard: usize,
}

enum Store {
    /// SQLite's file, and who keeps others from writing to it.
    File(PathBuf, Option<rusqlite::Connection>),
    /// A database of PostgreSQL by its URL.
    Url(String),
}

impl Apart {
    /// Serves the application folder `app` below this one, or the sample where there is none.
    pub fn start(folder: &Path, kept: &CaseStore, settings: &[(String, String)]) -> Apart {
        let mut arguments = vec!["serve"];
        arguments.extend(folder.join("app").exists().then_some("app"));
        let store = match kept {
            CaseStore::Sqlite => Store::File(folder.join("trefoil-data/trefoil.db"), None),
            CaseStore::Postgres(url) => {
                arguments.extend(["--database", url]);
                Store::Url(url.clone())
            }
        };
        let flags: Vec<String> = settings.iter().map(|(name, value)| format!("--{name}={value}")).collect();
        arguments.extend(flags.iter().map(String::as_str));
        Apart { process: Process::start(folder, &arguments), store, heard: 0 }
    }

    pub fn carry_out(&mut self, deed: &str) -> Result<(), String> {
        match deed.split_once(' ').unwrap_or((deed, "")) {
            ("outside", statements) => self.outside(statements),
            ("away", "") => self.away(),
            ("prints", line) => return self.prints(line),
            ("stop", "") => {
                self.process.signal("TERM");
                self.process.wait_for("stopping");
            }
            _ => panic!("no case can do `{deed}`"),
        }
        Ok(())
    }

    /// Another program writes to the store.
    fn outside(&self, statements: &str) {
        match &self.store {
            Store::File(path, _) => open(path).execute_batch(statements).expect("the statements run"),
            Store::Url(url) => drop(postgres::sql(url, statements)),
        }
    }

    /// Nothing can be written any more: another program has the file, or the database takes no one.
    fn away(&mut self) {
        match &mut self.store {
            Store::File(path, held) => {
                let other = open(path);
                other.execute_batch("BEGIN IMMEDIATE").expect("the store can be held");
                *held = Some(other);
            }
            Store::Url(url) => {
                let (server, name) = url.rsplit_once('/').expect("the name of a database");
                let shut = format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false");
                let cut = format!(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
                );
                for statement in [shut, cut] {
                    postgres::sql(&format!("{server}/postgres"), &statement);
                }
            }
        }
    }

    /// This line and nothing else has come on standard output since a case last spoke of it.
    fn prints(&mut self, line: &str) -> Result<(), String> {
        let begin = Instant::now();
        loop {
            let said = self.process.said();
            let new = &said[self.heard..];
            if !new.is_empty() {
                self.heard = said.len();
                let is_it = new.strip_suffix('\n') == Some(line);
                return if is_it { Ok(()) } else { Err(format!("printed {new:?}")) };
            }
            if begin.elapsed() > Duration::from_secs(20) {
                return Err("printed nothing".to_owned());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn open(path: &Path) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(path).expect("the store");
    connection.busy_timeout(Duration::from_secs(10)).expect("patience");
    connection
}
