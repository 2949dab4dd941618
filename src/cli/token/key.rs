//! A private key that signs tokens, and the public JWKS that verifies them.

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RsaKeyPair};
use jsonwebtoken::jwk::{Jwk, PublicKeyUse, ThumbprintHash};
use jsonwebtoken::{EncodingKey, Header};
use serde_json::{Value, json};
use std::fmt;

/// What a token is signed with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Algorithm {
    /// ECDSA on P-256 with SHA-256
    #[default]
    #[value(name = "ES256")]
    Es256,
    /// RSA PKCS#1 v1.5 with SHA-256; new keys have 2048 bits
    #[value(name = "RS256")]
    Rs256,
}

/// Why there is no key, or no token.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The system gave no random numbers.
    #[error("cannot generate a private key")]
    Generate,
    /// The text is not a private key for the algorithm.
    #[error("not a private key for {0} in PKCS#8 PEM form")]
    Unusable(Algorithm, #[source] jsonwebtoken::errors::Error),
    /// The signature could not be made.
    #[error(transparent)]
    Sign(#[from] jsonwebtoken::errors::Error),
}

/// A private key. Its id is the RFC 7638 thumbprint of its public half, so it is the same in every run.
pub struct SigningKey {
    header: Header,
    private: EncodingKey,
    pem: String,
    jwks: Value,
}

impl SigningKey {
    /// A new random key.
    pub fn generate(algorithm: Algorithm) -> Result<Self, KeyError> {
        let der = algorithm.random_pkcs8().map_err(|_| KeyError::Generate)?;
        Self::from_pem(&pem::encode(&pem::Pem::new("PRIVATE KEY", der)), algorithm)
    }

    /// The key in a PKCS#8 PEM text.
    pub fn from_pem(pem: &str, algorithm: Algorithm) -> Result<Self, KeyError> {
        Self::read(pem, algorithm).map_err(|error| KeyError::Unusable(algorithm, error))
    }

    fn read(pem: &str, algorithm: Algorithm) -> jsonwebtoken::errors::Result<Self> {
        let private = match algorithm {
            Algorithm::Es256 => EncodingKey::from_ec_pem(pem.as_bytes())?,
            Algorithm::Rs256 => EncodingKey::from_rsa_pem(pem.as_bytes())?,
        };
        let mut public = Jwk::from_encoding_key(&private, algorithm.jose())?;
        let kid = public.thumbprint(ThumbprintHash::SHA256)?;
        public.common.key_id = Some(kid.clone());
        public.common.public_key_use = Some(PublicKeyUse::Signature);
        let header = Header { kid: Some(kid), ..Header::new(algorithm.jose()) };
        Ok(Self { header, private, pem: pem.to_owned(), jwks: json!({ "keys": [public] }) })
    }

    /// The private key, as PKCS#8 PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// The public half, as a JSON Web Key Set of one key.
    pub fn jwks(&self) -> Value {
        self.jwks.clone()
    }

    /// A JWT of these claims, which nothing is added to.
    pub fn sign(&self, claims: &Value) -> Result<String, KeyError> {
        Ok(jsonwebtoken::encode(&self.header, claims, &self.private)?)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Es256 => "ES256",
            Self::Rs256 => "RS256",
        })
    }
}

impl Algorithm {
    fn jose(self) -> jsonwebtoken::Algorithm {
        match self {
            Self::Es256 => jsonwebtoken::Algorithm::ES256,
            Self::Rs256 => jsonwebtoken::Algorithm::RS256,
        }
    }

    fn random_pkcs8(self) -> Result<Vec<u8>, aws_lc_rs::error::Unspecified> {
        Ok(match self {
            Self::Es256 => {
                EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())?.as_ref().to_vec()
            }
            Self::Rs256 => AsDer::<Pkcs8V1Der>::as_der(&RsaKeyPair::generate(KeySize::Rsa2048)?)?.as_ref().to_vec(),
        })
    }
}
