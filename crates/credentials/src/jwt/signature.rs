//! Signatures of tokens: the algorithms, the public keys and secrets they need, and their verification with `ring`.

use std::fmt;

use ring::{digest, hmac, signature};

/// An algorithm that signs tokens. There is no `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SigningAlgorithm {
    Rs256,
    Ps256,
    Es256,
    Es384,
    EdDsa,
    Hs256,
    Hs384,
    Hs512,
}

impl SigningAlgorithm {
    const ALL: [SigningAlgorithm; 8] = [
        SigningAlgorithm::Rs256,
        SigningAlgorithm::Ps256,
        SigningAlgorithm::Es256,
        SigningAlgorithm::Es384,
        SigningAlgorithm::EdDsa,
        SigningAlgorithm::Hs256,
        SigningAlgorithm::Hs384,
        SigningAlgorithm::Hs512,
    ];

    /// The name in the header of a token.
    pub const fn name(self) -> &'static str {
        match self {
            SigningAlgorithm::Rs256 => "RS256",
            SigningAlgorithm::Ps256 => "PS256",
            SigningAlgorithm::Es256 => "ES256",
            SigningAlgorithm::Es384 => "ES384",
            SigningAlgorithm::EdDsa => "EdDSA",
            SigningAlgorithm::Hs256 => "HS256",
            SigningAlgorithm::Hs384 => "HS384",
            SigningAlgorithm::Hs512 => "HS512",
        }
    }

    /// The algorithm of this name, exactly as written.
    pub fn from_name(name: &str) -> Option<SigningAlgorithm> {
        SigningAlgorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// The hash that goes with it, whose left half ties an ID token to what comes with it.
    pub fn hash(self) -> &'static digest::Algorithm {
        match self {
            SigningAlgorithm::Rs256
            | SigningAlgorithm::Ps256
            | SigningAlgorithm::Es256
            | SigningAlgorithm::Hs256 => &digest::SHA256,
            SigningAlgorithm::Es384 | SigningAlgorithm::Hs384 => &digest::SHA384,
            // Ed25519 hashes with SHA-512.
            SigningAlgorithm::EdDsa | SigningAlgorithm::Hs512 => &digest::SHA512,
        }
    }

    /// Whether it signs with a secret that the verifier has too.
    pub const fn is_symmetric(self) -> bool {
        match self {
            SigningAlgorithm::Hs256 | SigningAlgorithm::Hs384 | SigningAlgorithm::Hs512 => true,
            SigningAlgorithm::Rs256
            | SigningAlgorithm::Ps256
            | SigningAlgorithm::Es256
            | SigningAlgorithm::Es384
            | SigningAlgorithm::EdDsa => false,
        }
    }
}

/// A key that verifies tokens. Each kind verifies its own algorithms alone: a public key is never a secret.
#[derive(Clone, PartialEq, Eq)]
pub enum VerifyingKey {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// An uncompressed point.
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
    Secret(Vec<u8>),
}

impl VerifyingKey {
    pub fn fits(&self, algorithm: SigningAlgorithm) -> bool {
        match (self, algorithm) {
            (VerifyingKey::Rsa { .. }, SigningAlgorithm::Rs256 | SigningAlgorithm::Ps256)
            | (VerifyingKey::P256(_), SigningAlgorithm::Es256)
            | (VerifyingKey::P384(_), SigningAlgorithm::Es384)
            | (VerifyingKey::Ed25519(_), SigningAlgorithm::EdDsa) => true,
            (VerifyingKey::Secret(_), algorithm) => algorithm.is_symmetric(),
            (
                VerifyingKey::Rsa { .. }
                | VerifyingKey::P256(_)
                | VerifyingKey::P384(_)
                | VerifyingKey::Ed25519(_),
                SigningAlgorithm::Rs256
                | SigningAlgorithm::Ps256
                | SigningAlgorithm::Es256
                | SigningAlgorithm::Es384
                | SigningAlgorithm::EdDsa
                | SigningAlgorithm::Hs256
                | SigningAlgorithm::Hs384
                | SigningAlgorithm::Hs512,
            ) => false,
        }
    }

    /// Whether the signature is the key's, by this algorithm. Secrets are compared in constant time.
    pub fn verifies(&self, algorithm: SigningAlgorithm, message: &[u8], signed: &[u8]) -> bool {
        if !self.fits(algorithm) {
            return false;
        }
        let with_public = |kind: &'static dyn signature::VerificationAlgorithm, key: &[u8]| {
            signature::UnparsedPublicKey::new(kind, key).verify(message, signed).is_ok()
        };
        match self {
            VerifyingKey::Rsa { modulus, exponent } => {
                // Both refuse keys below 2,048 bits.
                let parameters = match algorithm {
                    SigningAlgorithm::Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
                    SigningAlgorithm::Rs256
                    | SigningAlgorithm::Es256
                    | SigningAlgorithm::Es384
                    | SigningAlgorithm::EdDsa
                    | SigningAlgorithm::Hs256
                    | SigningAlgorithm::Hs384
                    | SigningAlgorithm::Hs512 => &signature::RSA_PKCS1_2048_8192_SHA256,
                };
                let key = signature::RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(parameters, message, signed).is_ok()
            }
            VerifyingKey::P256(point) => with_public(&signature::ECDSA_P256_SHA256_FIXED, point),
            VerifyingKey::P384(point) => with_public(&signature::ECDSA_P384_SHA384_FIXED, point),
            VerifyingKey::Ed25519(point) => with_public(&signature::ED25519, point),
            VerifyingKey::Secret(secret) => {
                let hash = match algorithm {
                    SigningAlgorithm::Hs384 => hmac::HMAC_SHA384,
                    SigningAlgorithm::Hs512 => hmac::HMAC_SHA512,
                    SigningAlgorithm::Hs256
                    | SigningAlgorithm::Rs256
                    | SigningAlgorithm::Ps256
                    | SigningAlgorithm::Es256
                    | SigningAlgorithm::Es384
                    | SigningAlgorithm::EdDsa => hmac::HMAC_SHA256,
                };
                hmac::verify(&hmac::Key::new(hash, secret), message, signed).is_ok()
            }
        }
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            VerifyingKey::Rsa { .. } => "Rsa(…)",
            VerifyingKey::P256(_) => "P256(…)",
            VerifyingKey::P384(_) => "P384(…)",
            VerifyingKey::Ed25519(_) => "Ed25519(…)",
            VerifyingKey::Secret(_) => "Secret(***)",
        })
    }
}
