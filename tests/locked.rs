//! Another program locks, removes or replaces the database file under a running server.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::Process;

/// Does what a program does that brings the journal's index in order after a crash: it holds the locks for that, and the
/// index is not to be used meanwhile. Goes on until its input ends.
const RECOVERY: &str = "
import fcntl, os, sys
index = os.open(sys.argv[1], os.O_RDWR)
before = os.pread(index, 96, 0)
for byte in (120, 122):
    fcntl.lockf(index, fcntl.LOCK_EX, 1, byte)
os.pwrite(index, bytes(byte ^ 255 for byte in before[:48]), 0)
print('held', flush=True)
sys.stdin.read()
os.pwrite(index, before, 0)
";

struct FileLock(Child);

impl FileLock {
    fn take(index: &Path) -> FileLock {
        let mut command = Command::new("python3");
        command.args(["-c", RECOVERY]).arg(index).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("python3 is installed");
        let mut said = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut said).expect("it speaks");
        assert_eq!(said, "held\n");
        FileLock(child)
    }

    fn release(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().expect("a child of ours").success());
    }
}

#[test]
fn file_lock_blocks_only_requests_that_need_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let process = Process::start(folder.path(), &["serve", "--data", "data"]);
    let found = process.client().graphql("{ getUserById(id: 1) { name } }");
    assert!(found["data"]["getUserById"]["name"].is_string(), "{found}");

    let lock = FileLock::take(&folder.path().join("data/trefoil.db-shm"));
    thread::scope(|scope| {
        // More than there are threads to be held up.
        let waiting: Vec<_> = (0..64)
            .map(|_| scope.spawn(|| process.client().graphql("{ getUserById(id: 1) { name } }")))
            .collect();
        thread::sleep(Duration::from_millis(300));
        let begin = Instant::now();
        for _ in 0..20 {
            let alive = process.client().send("GET", "/health/live", &[], b"");
            assert_eq!(alive.status, 200);
        }
        let took = begin.elapsed();
        assert!(waiting.iter().any(|one| !one.is_finished()), "the lock is waited for");
        lock.release();
        assert!(took < Duration::from_millis(2500), "held up for {took:?}");
        for one in waiting {
            assert_eq!(one.join().expect("no panic"), found, "answered once the lock is gone");
        }
    });
}

/// Reads `/health/ready` and tries to write; what is wrong with both, and nothing if both are right.
fn ready_and_write(process: &Process) -> Option<[String; 2]> {
    let ready = process.client().send("GET", "/health/ready", &[], b"");
    let written =
        process.client().graphql("mutation { createUser(name: \"Ann\", email: \"ann@example.com\") { id } }");
    if ready.status == 200 && written["data"]["createUser"]["id"].is_string() {
        return None;
    }
    assert_eq!(
        (ready.status, &written["errors"][0]["extensions"]["code"]),
        (503, &"UNAVAILABLE".into()),
        "{written}"
    );
    Some([ready.text(), written["errors"][0]["message"].to_string()])
}

#[test]
fn removed_and_replaced_files_stop_writes_and_readiness() {
    let folder = tempfile::tempdir().expect("a folder");
    let process = Process::start(folder.path(), &["serve", "--data", "data"]);
    assert_eq!(ready_and_write(&process), None);

    let (file, aside) = (folder.path().join("data/trefoil.db"), folder.path().join("aside.db"));
    fs::rename(&file, &aside).expect("the file is there");
    let wrong = ready_and_write(&process).expect("the file is gone");
    assert!(wrong.iter().all(|told| told.contains("trefoil.db") && told.contains("removed")), "{wrong:?}");

    fs::copy(&aside, &file).expect("a copy");
    let wrong = ready_and_write(&process).expect("another file is there");
    assert!(wrong.iter().all(|told| told.contains("replaced")), "{wrong:?}");
    process.wait_for("cannot use the database file trefoil.db");

    fs::rename(&aside, &file).expect("both are there");
    assert_eq!(ready_and_write(&process), None, "the file that was opened is back");
}
