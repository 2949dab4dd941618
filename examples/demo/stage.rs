//! Everything the demo runs: the signing key, the toy application, Tollgate and Envoy.

use crate::envoy::Envoy;
use crate::envoy_config::{Places, runnable};
use crate::tollgate::Tollgate;
use crate::upstream::Upstream;
use crate::{child, go_on};
use serde_json::json;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};
use tempfile::TempDir;
use tollgate::cli::token::{Algorithm, SigningKey};

/// The whole configuration of Tollgate.
const TOLLGATE_YAML: &str = "\
listen: { grpc: 127.0.0.1:0 }
token: { prefixes: [\"prefix:rate:\"] }
";

/// Runs until it is dropped: Envoy first, then what it calls.
pub struct Stage {
    key: SigningKey,
    edge: SocketAddr,
    _envoy: Envoy,
    _tollgate: Tollgate,
    _jwks: TempDir,
}

impl Stage {
    pub fn set() -> Result<Self, String> {
        let key = SigningKey::generate(Algorithm::Es256).map_err(|error| error.to_string())?;
        let (folder, jwks) = child::folder("jwks", "jwks.json", &key.jwks().to_string())?;
        let upstream = Upstream::start("127.0.0.1")?;
        let program =
            std::env::current_exe().map_err(|error| format!("the demo cannot find its own program: {error}"))?;
        let tollgate = Tollgate::start(&program, &["tollgate"], TOLLGATE_YAML)?;
        go_on()?;
        let places =
            Places { listen: "127.0.0.1", tollgates: &[tollgate.address()], upstream: upstream.address(), jwks: &jwks };
        let envoy = Envoy::start(&runnable(&places)?)?;
        Ok(Self { key, edge: envoy.listener("edge")?, _envoy: envoy, _tollgate: tollgate, _jwks: folder })
    }

    /// Where callers send their requests: Envoy.
    pub fn edge(&self) -> SocketAddr {
        self.edge
    }

    /// A token that Envoy's configuration accepts, good for ten minutes.
    pub fn token(&self, principal: &str, capabilities: &[&str]) -> Result<String, String> {
        let now = unix_seconds();
        let claims = json!({
            "iss": "https://issuer.example/", "aud": "api", "sub": principal, "capabilities": capabilities,
            "iat": now, "exp": now + 600,
        });
        self.key.sign(&claims).map_err(|error| format!("no token for {principal}: {error}"))
    }
}

#[allow(clippy::disallowed_methods, reason = "the demo issues real tokens")]
fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
