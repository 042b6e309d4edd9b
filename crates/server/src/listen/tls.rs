//! TLS: the certificate and key of `tls-cert` and `tls-key`, read again when the files change, and the handshake of a
//! connection.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::{Ticketer, default_provider};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use trefoil_config::Config;
use trefoil_http::shutdown::Shutdown;

use crate::file_watch::FileWatcher;

/// The first byte of a client that speaks TLS: a record of a handshake.
const HANDSHAKE_RECORD: u8 = 0x16;

/// How long a client that does not speak TLS has to read that it must.
const REJECTION_TIMEOUT: Duration = Duration::from_secs(1);

/// The files of a certificate, with all certificates up to the root, and of its key.
#[derive(Debug, Clone)]
struct CertificateFiles {
    certificate: PathBuf,
    key: PathBuf,
}

/// Accepts TLS connections with the certificate that the files hold now.
#[derive(Clone)]
pub struct TlsTerminator {
    acceptor: TlsAcceptor,
}

/// Takes the files of a certificate anew when they change.
pub struct CertificateWatch {
    files: CertificateFiles,
    certificate: Arc<CurrentCertificate>,
    watch: FileWatcher,
}

#[derive(Debug)]
struct CurrentCertificate(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

impl TlsTerminator {
    /// Reads the files of the settings; `None` if they name none. The error is one line.
    pub fn from_config(config: &Config) -> Result<Option<(TlsTerminator, CertificateWatch)>, String> {
        // One without the other is refused with the settings.
        let (Some(certificate), Some(key)) = (&config.tls_cert, &config.tls_key) else { return Ok(None) };
        let files = CertificateFiles { certificate: certificate.clone(), key: key.clone() };
        // The first snapshot is taken before the files are read, so that no change is missed.
        let watch = FileWatcher::of_files([files.certificate.clone(), files.key.clone()]);
        let provider = Arc::new(default_provider());
        let certificate = Arc::new(CurrentCertificate(ArcSwap::from_pointee(files.load(&provider)?)));
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| format!("TLS: {error}"))?;
        let mut tls = builder.with_no_client_auth().with_cert_resolver(certificate.clone());
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        // A client that comes back saves the signature of a whole handshake.
        tls.ticketer = Ticketer::new().map_err(|error| format!("TLS: {error}"))?;
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        Ok(Some((TlsTerminator { acceptor }, CertificateWatch { files, certificate, watch })))
    }

    /// The handshake. A client that speaks plain HTTP is told so.
    pub async fn accept(&self, mut stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let mut first = [0];
        if stream.peek(&mut first).await? == 1 && first[0] != HANDSHAKE_RECORD {
            let _ = tokio::time::timeout(REJECTION_TIMEOUT, reject_plain(&mut stream)).await;
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the client does not speak TLS"));
        }
        self.acceptor.accept(stream).await
    }
}

impl CertificateWatch {
    /// Takes the files anew whenever they change; those that cannot be used leave the old ones in place.
    pub async fn reload_on_change(mut self, shutdown: Shutdown) {
        loop {
            tokio::select! {
                () = self.watch.wait_for_change() => {}
                () = shutdown.wait_for_drain() => return,
            }
            let files = self.files.clone();
            let read = tokio::task::spawn_blocking(move || files.load(&default_provider())).await;
            match read.unwrap_or_else(|error| Err(error.to_string())) {
                Ok(certificate) => {
                    self.certificate.0.store(Arc::new(certificate));
                    tracing::info!("reloaded the TLS certificate");
                }
                Err(error) => tracing::error!("{error}; still serving the previous certificate"),
            }
        }
    }
}

async fn reject_plain(stream: &mut TcpStream) -> io::Result<()> {
    let body = "this port speaks HTTP over TLS; use https://\n";
    let response = format!(
        "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncache-control: no-store\r\n\
         content-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(response.as_bytes()).await?;
    stream.shutdown().await?;
    // Closing with unread bytes would destroy the response.
    while stream.read(&mut [0; 1024]).await? > 0 {}
    Ok(())
}

impl CertificateFiles {
    fn load(&self, provider: &CryptoProvider) -> Result<CertifiedKey, String> {
        let unreadable = |setting: &str, path: &Path, error: &dyn std::fmt::Display| {
            format!("cannot use {setting} {}: {error}", path.display())
        };
        let in_certificate = |error: &dyn std::fmt::Display| unreadable("tls-cert", &self.certificate, error);
        let chain =
            CertificateDer::pem_file_iter(&self.certificate).map_err(|error| in_certificate(&error))?;
        let chain: Vec<_> = chain.collect::<Result<_, _>>().map_err(|error| in_certificate(&error))?;
        if chain.is_empty() {
            return Err(in_certificate(&"it has no certificate in PEM (-----BEGIN CERTIFICATE-----)"));
        }
        let in_key = |error: &dyn std::fmt::Display| unreadable("tls-key", &self.key, error);
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| {
            if matches!(error, pem::Error::NoItemsFound) {
                return in_key(&"it has no private key in PEM (-----BEGIN PRIVATE KEY-----)");
            }
            in_key(&error)
        })?;
        CertifiedKey::from_der(chain, key, provider).map_err(|error| {
            if matches!(error, rustls::Error::InconsistentKeys(_)) {
                return in_key(&"it is not the key of the certificate in tls-cert");
            }
            in_certificate(&error)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn write_certificate(folder: &Path) {
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
            .args(["-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.crt"])
            .current_dir(folder)
            .output()
            .expect("openssl runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    #[tokio::test]
    async fn a_change_before_the_watch_begins_is_seen() {
        let folder = tempfile::tempdir().expect("a folder");
        write_certificate(folder.path());
        let file = |name: &str| Some(folder.path().join(name));
        let config =
            Config { tls_cert: file("server.crt"), tls_key: file("server.key"), ..Config::default() };
        let (_, watch) = TlsTerminator::from_config(&config).expect("a certificate").expect("files");
        let certificate = watch.certificate.clone();
        let first = certificate.0.load_full();
        write_certificate(folder.path());
        let shutdown = Shutdown::new();
        let task = tokio::spawn(watch.reload_on_change(shutdown));
        let begin = std::time::Instant::now();
        while certificate.0.load().cert == first.cert {
            assert!(begin.elapsed() < Duration::from_secs(20), "the renewed certificate is not served");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        task.abort();
    }
}
