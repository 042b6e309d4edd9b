//! The PostgreSQL server of the tests: separate databases, kill and restart, no leftovers.

mod hole;
mod links;
mod log;
mod serving;
mod tls;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::postgres::{Certificates, Cluster, Options, database, sql};

#[test]
fn test_databases_are_new_and_in_utf8() {
    let (one, other) = (database(), database());
    assert_ne!(one, other);
    sql(&one, "CREATE TABLE t (x text)");
    assert_eq!(sql(&other, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"), "0");
    assert_eq!(sql(&other, "SHOW server_encoding"), "UTF8");
}

#[test]
fn killed_server_restarts_with_committed_data() {
    let settings = vec!["max_connections=21".into()];
    let cluster = Cluster::start(&Options { settings, ..Options::default() });
    let url = cluster.database();
    sql(&url, "CREATE TABLE t (x int); INSERT INTO t VALUES (7)");
    cluster.kill();
    let refused = Command::new("psql").args([url.as_str(), "-c", "SELECT 1"]).output().unwrap();
    assert!(!refused.status.success(), "it was killed and still answers");
    cluster.again();
    assert_eq!(sql(&url, "SELECT x FROM t"), "7");
    assert_eq!(sql(&url, "SHOW max_connections"), "21");
    cluster.stop();
    cluster.set("max_connections=22");
    cluster.again();
    assert_eq!(sql(&url, "SELECT x FROM t"), "7");
    assert_eq!(sql(&url, "SHOW max_connections"), "22");
}

#[test]
fn tls_certificate_can_be_verified() {
    let folder = tempfile::tempdir().unwrap();
    let certificates = Certificates::make(folder.path());
    let authority = certificates.authority.display().to_string();
    let access = vec!["hostssl all all 127.0.0.1/32 trust".into(), "local all all trust".into()];
    let cluster = Cluster::start(&Options { tls: Some(certificates), access, settings: Vec::new() });
    let url = format!("{}?sslmode=verify-full&sslrootcert={authority}", cluster.database());
    assert_eq!(sql(&url, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"), "t");
}

#[test]
fn server_is_removed_when_its_owner_dies() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/postgres/cluster");
    let folder = tempfile::tempdir().unwrap();
    // Readable by the user that the server runs as.
    let open = Command::new("chmod").args(["755"]).arg(folder.path()).status().unwrap();
    assert!(open.success());
    let owner = format!("(echo start; exec sleep 60) | {}", script.display());
    let mut owner = Command::new("setsid")
        .args(["sh", "-c", &owner])
        .env("TMPDIR", folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pid = || {
        let inside = std::fs::read_dir(folder.path()).unwrap().next()?.ok()?.path();
        let text = std::fs::read_to_string(inside.join("data/postmaster.pid")).ok()?;
        text.lines().next()?.parse::<u32>().ok()
    };
    wait("it runs", || pid().is_some());
    let postmaster = pid().unwrap();
    let killed = Command::new("kill").args(["-9", "--", &format!("-{}", owner.id())]).status().unwrap();
    assert!(killed.success());
    owner.wait().unwrap();
    wait("the folder is gone", || std::fs::read_dir(folder.path()).unwrap().next().is_none());
    assert!(!runs(postmaster), "PostgreSQL still runs");
}

fn runs(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

fn wait(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < Duration::from_secs(30), "not within 30 s: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
