//! TLS to a real PostgreSQL: which certificates are accepted, which are refused, and with which errors.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use trefoil_config::PostgresUrl;
use trefoil_sql::postgres::{PostgresOptions as StoreOptions, PostgresStore};

use crate::support::postgres::{Certificates, Cluster, Options};

/// Whether the connection is encrypted, or why there is none.
async fn open(url: &str) -> Result<bool, String> {
    let url = PostgresUrl::parse(url).expect("an address");
    let store = PostgresStore::open(StoreOptions::for_url(url)).await?;
    let link = store.connections().shared_connection().expect("connected");
    let sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    Ok(link.client().query_one(sql, &[]).await.expect("an answer").get(0))
}

async fn refused(url: &str, because: &str) {
    let begin = Instant::now();
    let error = open(url).await.expect_err(url);
    assert!(error.contains(because) && !error.contains('\n') && !error.contains("s3cret"), "{url}: {error}");
    assert!(begin.elapsed() < Duration::from_secs(9), "what waiting cannot mend is told at once");
}

/// A certificate for another host, which its server signed itself.
fn for_another_host(folder: &Path) -> Certificates {
    let script = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 \
                  -subj /CN=db.example -addext subjectAltName=DNS:db.example -keyout own.key -out own.crt";
    let made = Command::new("sh").args(["-ec", script]).current_dir(folder).output().expect("sh runs");
    assert!(made.status.success(), "openssl: {}", String::from_utf8_lossy(&made.stderr));
    let file = |name: &str| folder.join(name);
    Certificates { authority: file("own.crt"), certificate: file("own.crt"), key: file("own.key") }
}

fn start(tls: Option<Certificates>) -> (Cluster, String) {
    let cluster = Cluster::start(&Options { tls, ..Options::default() });
    let url = cluster.database().replace("postgres@", "postgres:s3cret@");
    (cluster, url)
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_must_be_signed_by_a_trusted_one() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let certificates = Certificates::make(folder.path());
    let root = |path: &PathBuf| path.display().to_string().replace('/', "%2F");
    let right = root(&certificates.authority);
    let wrong = root(&Certificates::make(other.path()).authority);
    let (_cluster, url) = start(Some(certificates));
    for (parameters, encrypted) in [
        ("sslmode=disable".to_owned(), false),
        (String::new(), true),
        ("sslmode=prefer".to_owned(), true),
        (format!("sslrootcert={right}"), true),
        (format!("sslmode=require&sslrootcert={right}"), true),
        (format!("sslmode=verify-ca&sslrootcert={right}"), true),
        (format!("sslmode=verify-full&sslrootcert={right}"), true),
    ] {
        assert_eq!(open(&format!("{url}?{parameters}")).await, Ok(encrypted), "{parameters}");
    }
    for mode in ["require", "verify-ca", "verify-full"] {
        let because = "the server's certificate is not trusted: unknown issuer";
        refused(&format!("{url}?sslmode={mode}&sslrootcert={wrong}"), because).await;
    }
    let by_name = url.replace("127.0.0.1", "localhost");
    assert_eq!(open(&format!("{by_name}?sslrootcert={right}")).await, Ok(true));
    refused(&format!("{url}?sslrootcert=/nowhere/ca.crt"), "sslrootcert /nowhere/ca.crt: ").await;
    let empty = other.path().join("empty.crt");
    std::fs::write(&empty, "").unwrap();
    refused(&format!("{url}?sslrootcert={}", root(&empty)), "contains no certificate").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_for_another_host_passes_verify_ca_only() {
    let folder = tempfile::tempdir().unwrap();
    let certificates = for_another_host(folder.path());
    let root = certificates.authority.display().to_string().replace('/', "%2F");
    let (_cluster, url) = start(Some(certificates));
    assert_eq!(open(&format!("{url}?sslmode=verify-ca&sslrootcert={root}")).await, Ok(true));
    for mode in ["require", "verify-full"] {
        let because = "the server's certificate is not trusted: certificate not valid for name \"127.0.0.1\"";
        refused(&format!("{url}?sslmode={mode}&sslrootcert={root}"), because).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn server_without_tls_is_refused_when_required() {
    let folder = tempfile::tempdir().unwrap();
    let root = Certificates::make(folder.path()).authority.display().to_string();
    let url = crate::support::postgres::database();
    assert_eq!(open(&url).await, Ok(false));
    refused(&format!("{url}?sslrootcert={root}"), "server does not support TLS").await;
}
