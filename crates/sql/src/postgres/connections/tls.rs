//! Verifies the server's certificate as the `sslmode` of the URL demands.

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

/// The TLS connector for a URL. Reads the certificate files once.
pub fn tls_connector(url: &PostgresUrl) -> Result<MakeRustlsConnect, String> {
    let provider = Arc::new(ring::default_provider());
    let name_check = match url.tls {
        TlsMode::Disable | TlsMode::Prefer => None,
        TlsMode::VerifyCa => Some(NameCheck::AnyName),
        TlsMode::Require | TlsMode::VerifyFull => Some(NameCheck::HostName),
    };
    let trust = match name_check {
        None => CertificateTrust::AnyCertificate,
        Some(name_check) => {
            let (certificates, roots) = load_roots(url.root_certificates.as_deref())?;
            let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
            let chain_verifier = builder.build().map_err(|error| format!("TLS: {error}"))?;
            CertificateTrust::Signed { chain_verifier, certificates, name_check }
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

/// The trusted root certificates: those of the file, also as a list, or else those of the system.
fn load_roots(file: Option<&Path>) -> Result<(Vec<CertificateDer<'static>>, RootCertStore), String> {
    let mut store = RootCertStore::empty();
    let Some(file) = file else {
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if store.is_empty() {
            return Err("this system has no root certificates; specify them with sslrootcert=FILE".to_owned());
        }
        return Ok((Vec::new(), store));
    };
    let file_error = |reason: String| format!("sslrootcert {}: {reason}", file.display());
    let read = CertificateDer::pem_file_iter(file).map_err(|error| file_error(error.to_string()))?;
    let certificates: Vec<_> =
        read.collect::<Result<_, _>>().map_err(|error| file_error(error.to_string()))?;
    for certificate in &certificates {
        store.add(certificate.clone()).map_err(|error| file_error(error.to_string()))?;
    }
    if certificates.is_empty() {
        Err(file_error("contains no certificate".to_owned()))
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

/// Whether the certificate must name the host.
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
        let CertificateTrust::Signed { chain_verifier, certificates, name_check } = &self.trust else {
            return Ok(ServerCertVerified::assertion());
        };
        // A self-signed certificate is in the file itself and has no chain.
        let verified = if certificates.contains(end_entity) {
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)
        } else {
            chain_verifier
                .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
                .map(drop)
        };
        match verified {
            // The name is checked last, so everything else is valid.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if *name_check == NameCheck::AnyName => Ok(ServerCertVerified::assertion()),
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
