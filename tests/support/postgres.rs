//! A real PostgreSQL for tests: one server shared by all, with a database for each, or a separate one to break.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The URL of a new, empty database on the server that this test run shares.
pub fn database() -> String {
    shared().database()
}

fn shared() -> &'static Cluster {
    static SHARED: OnceLock<Cluster> = OnceLock::new();
    SHARED.get_or_init(|| Cluster::start(&Options::default()))
}

/// A new, empty database on the shared server, gone with this: for tests that make so many that the disk would fill up.
#[derive(Debug)]
pub struct TemporaryDatabase {
    pub url: String,
}

impl TemporaryDatabase {
    pub fn new() -> TemporaryDatabase {
        TemporaryDatabase { url: database() }
    }
}

impl Drop for TemporaryDatabase {
    fn drop(&mut self) {
        let (_, name) = self.url.rsplit_once('/').expect("the URL of a database");
        shared().ask(&format!("drop {name}"));
    }
}

/// The same for commands that are to come to their end even where the machine has much else to do.
pub fn patient_database() -> String {
    database() + "?connect_timeout=30"
}

/// Runs statements on a database, as any other client of it would, and gives what they print, a row a line.
pub fn sql(url: &str, statements: &str) -> String {
    let run = Command::new("psql").args(["-XqtA", "-v", "ON_ERROR_STOP=1", url, "-c", statements]).output();
    let run = run.expect("psql is installed");
    assert!(run.status.success(), "{statements}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).expect("UTF-8").trim_end().to_owned()
}

/// What a server of a test's own differs in.
#[derive(Default)]
pub struct Options {
    /// As in postgresql.conf: `max_connections=20`.
    pub settings: Vec<String>,
    pub tls: Option<Certificates>,
    /// The lines of pg_hba.conf; none means that everyone is trusted.
    pub access: Vec<String>,
}

/// A PostgreSQL server that `tests/postgres/cluster` keeps. It and its folder are gone once this is dropped or the
/// test's process has ended, however it ended: the script reads from a pipe that only this process holds open.
pub struct Cluster {
    pipes: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
}

impl Cluster {
    pub fn start(options: &Options) -> Cluster {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/postgres/cluster");
        let mut child = Command::new(&script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let child = child.as_mut().unwrap_or_else(|error| panic!("{}: {error}", script.display()));
        let (stdin, stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let cluster = Cluster { pipes: Mutex::new((stdin, BufReader::new(stdout))) };
        for setting in &options.settings {
            cluster.ask(&format!("set {setting}"));
        }
        if let Some(Certificates { certificate, key, .. }) = &options.tls {
            cluster.ask(&format!("tls {} {}", certificate.display(), key.display()));
        }
        if !options.access.is_empty() {
            cluster.ask(&format!("hba {}", options.access.join("|")));
        }
        cluster.again();
        cluster
    }

    /// A new, empty database.
    pub fn database(&self) -> String {
        self.ask("database")
    }

    /// Ends it in good order; its clients are cut off.
    pub fn stop(&self) {
        self.ask("stop");
    }

    /// Ends all its processes with SIGKILL.
    pub fn kill(&self) {
        self.ask("kill");
    }

    /// Starts it again after [`Cluster::stop`] or [`Cluster::kill`], on the same port; returns when it answers.
    pub fn again(&self) {
        self.ask("start");
    }

    /// A setting that holds from the next start on.
    pub fn set(&self, setting: &str) {
        self.ask(&format!("set {setting}"));
    }

    fn ask(&self, command: &str) -> String {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut answer = String::new();
        writeln!(pipes.0, "{command}").expect("the script reads");
        pipes.1.read_line(&mut answer).expect("the script answers");
        match answer.trim_end().strip_prefix("ok") {
            Some(value) => value.trim_start().to_owned(),
            None => panic!("PostgreSQL for tests, {command}: {answer}"),
        }
    }
}

/// A certificate for `localhost` and 127.0.0.1, and the authority that signed it, made with `openssl`.
pub struct Certificates {
    pub authority: PathBuf,
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Certificates {
    pub fn make(folder: &Path) -> Certificates {
        let script = "
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 \
                -subj '/CN=Authority of a test' -keyout ca.key -out ca.crt
            openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost \
                -keyout server.key -out server.csr
            printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\\nbasicConstraints=CA:FALSE\\n' > extensions
            openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 \
                -extfile extensions -out server.crt";
        let made = Command::new("sh").args(["-ec", script]).current_dir(folder).output().expect("sh runs");
        assert!(made.status.success(), "openssl: {}", String::from_utf8_lossy(&made.stderr));
        let file = |name: &str| folder.join(name);
        Certificates { authority: file("ca.crt"), certificate: file("server.crt"), key: file("server.key") }
    }
}
