//! How the server's certificate is checked, by what the database's address asks for.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

use trefoil_config::{PostgresUrl, TlsMode};

/// The side of TLS that this process is on. Files are read here, once.
pub fn tls_connector(url: &PostgresUrl) -> Result<MakeRustlsConnect, String> {
    let provider = Arc::new(ring::default_provider());
    let names = match url.tls {
        TlsMode::Disable | TlsMode::Prefer => None,
        TlsMode::VerifyCa => Some(NameCheck::AnyName),
        TlsMode::Require | TlsMode::VerifyFull => Some(NameCheck::HostName),
    };
    let trust = match names {
        None => CertificateTrust::AnyCertificate,
        Some(names) => {
            let (certificates, roots) = load_roots(url.root_certificates.as_deref())?;
            let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
            let chain = chain.build().map_err(|error| format!("TLS: {error}"))?;
            CertificateTrust::Signed { chain_verifier: chain, certificates, name_check: names }
        }
    };
    let verifier = CertificateVerifier { trust, provider: provider.clone() };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// Who may sign: the named file's certificates, or the system's. The file's are also given one by one.
fn load_roots(file: Option<&Path>) -> Result<(Vec<CertificateDer<'static>>, RootCertStore), String> {
    let mut store = RootCertStore::empty();
    let Some(file) = file else {
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if store.is_empty() {
            return Err("this system has no root certificates; name some with sslrootcert=FILE".to_owned());
        }
        return Ok((Vec::new(), store));
    };
    let wrong = |why: String| format!("sslrootcert {}: {why}", file.display());
    let read = CertificateDer::pem_file_iter(file).map_err(|error| wrong(error.to_string()))?;
    let certificates: Vec<_> = read.collect::<Result<_, _>>().map_err(|error| wrong(error.to_string()))?;
    for certificate in &certificates {
        store.add(certificate.clone()).map_err(|error| wrong(error.to_string()))?;
    }
    if certificates.is_empty() {
        Err(wrong("holds no certificate".to_owned()))
    } else {
        Ok((certificates, store))
    }
}

#[derive(Debug)]
struct CertificateVerifier {
    trust: CertificateTrust,
    provider: Arc<CryptoProvider>,
}

#[derive(Debug)]
enum CertificateTrust {
    AnyCertificate,
    Signed {
        chain_verifier: Arc<WebPkiServerVerifier>,
        certificates: Vec<CertificateDer<'static>>,
        name_check: NameCheck,
    },
}

/// Which names a certificate may be for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameCheck {
    AnyName,
    HostName,
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let CertificateTrust::Signed { chain_verifier: chain, certificates, name_check: names } = &self.trust
        else {
            return Ok(ServerCertVerified::assertion());
        };
        // A server that signed its own: the file then holds that very certificate, which no chain leads to.
        let judged = if certificates.contains(end_entity) {
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)
        } else {
            chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now).map(drop)
        };
        match judged {
            // The name is looked at last, so everything else is right.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if *names == NameCheck::AnyName => Ok(ServerCertVerified::assertion()),
            Ok(()) => Ok(ServerCertVerified::assertion()),
            Err(error) => Err(error),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
