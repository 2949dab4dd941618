//! A mesh of one: an application, Tollgate and Envoy as processes, and the key that signs tokens.

use super::child::{self, wait_until};
use super::envoy_config::{Places, runnable};
use super::http::{Answer, Client};
use super::process::Tollgate;
use super::proxy::Envoy;
use super::upstream::Upstream;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;
use tollgate::cli::token::{Algorithm, SigningKey};

/// The smallest configuration, on a port of the system's choice; more sections may follow it.
pub const PLAIN: &str = "listen: { grpc: \"127.0.0.1:0\" }\ntoken: { prefixes: [\"prefix:rate:\"] }\n";

pub const WARNING: &str = "x-webpa-capability-warning";

/// The program under test.
pub fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_tollgate"))
}

/// Runs until it is dropped: Envoy first, then what it calls, which is one Tollgate or several.
pub struct Mesh<T = Tollgate> {
    pub edge: SocketAddr,
    pub envoy: Envoy,
    pub tollgate: T,
    pub upstream: Upstream,
    key: SigningKey,
    _jwks: TempDir,
}

impl Mesh {
    /// Tollgate with this configuration, and Envoy with the one of `envoy/envoy.yaml`.
    pub fn start(tollgate_yaml: &str) -> Self {
        Self::patched(tollgate_yaml, &[])
    }

    /// Envoy's configuration has one text in the place of another, for each pair.
    pub fn patched(tollgate_yaml: &str, patches: &[(&str, &str)]) -> Self {
        Self::on("127.0.0.1", tollgate_yaml, patches)
    }

    /// The application and Envoy listen on the IP address `host`.
    #[track_caller]
    pub fn on(host: &str, tollgate_yaml: &str, patches: &[(&str, &str)]) -> Self {
        let tollgate = must(Tollgate::start(program(), &[], tollgate_yaml));
        let address = tollgate.address().to_owned();
        Self::around(tollgate, &[&address], host, patches)
    }

    /// The first record of the log, which is JSON, that is `wanted`; it may take a moment to come.
    #[track_caller]
    pub fn logged(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let found = wait_until(what, || {
            let records = self.tollgate.log();
            Ok(records.iter().filter_map(|line| serde_json::from_str(line).ok()).find(|record| wanted(record)))
        });
        found.unwrap_or_else(|error| panic!("{error}\n{}", self.tollgate.log().join("\n")))
    }
}

impl<T> Mesh<T> {
    /// Envoy calls Tollgate at these addresses.
    #[track_caller]
    pub fn around(tollgate: T, addresses: &[&str], host: &str, patches: &[(&str, &str)]) -> Self {
        Self::before(must(Upstream::start(host)), tollgate, addresses, host, patches)
    }

    /// The application is this one.
    #[track_caller]
    pub fn before(upstream: Upstream, tollgate: T, addresses: &[&str], host: &str, patches: &[(&str, &str)]) -> Self {
        let key = key();
        let (folder, jwks) = must(child::folder("jwks", "jwks.json", &key.jwks().to_string()));
        let places = Places { listen: host, tollgates: addresses, upstream: upstream.address(), jwks: &jwks };
        let mut yaml = must(runnable(&places));
        for (from, to) in patches {
            assert_eq!(yaml.matches(from).count(), 1, "envoy/envoy.yaml has `{from}` once");
            yaml = yaml.replace(from, to);
        }
        let envoy = must(Envoy::start(&yaml));
        Self { edge: must(envoy.listener("edge")), envoy, tollgate, upstream, key, _jwks: folder }
    }

    /// A good token.
    pub fn token(&self, principal: &str, capabilities: &[&str]) -> String {
        self.sign(json!({ "sub": principal, "capabilities": capabilities }))
    }

    /// A token with these claims and, where they say nothing else, the issuer, audience and lifetime Envoy asks for.
    pub fn sign(&self, claims: Value) -> String {
        self.key.sign(&whole(claims)).unwrap()
    }

    /// A request with this token, on a connection of its own.
    #[track_caller]
    pub fn get(&self, token: &str) -> Answer {
        self.get_path("/", token)
    }

    #[track_caller]
    pub fn get_path(&self, path: &str, token: &str) -> Answer {
        self.send("GET", path, &[("authorization", &format!("Bearer {token}"))])
    }

    #[track_caller]
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        must(must(Client::connect(self.edge)).send(method, path, headers))
    }
}

/// The claims that Envoy asks for, and `claims` over them.
pub fn whole(claims: Value) -> Value {
    let now = unix_seconds();
    let mut all = json!({ "iss": "https://issuer.example/", "aud": "api", "iat": now, "exp": now + 600 });
    all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
    all
}

pub fn key() -> SigningKey {
    SigningKey::generate(Algorithm::Es256).unwrap()
}

/// The value, or the whole text of why there is none.
#[track_caller]
pub fn must<T>(result: Result<T, String>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

/// A wait in whole seconds, told at some time between `since` and now for a moment `longest` seconds after `since`.
#[track_caller]
pub fn assert_wait(told: Option<&str>, longest: u64, since: Instant) {
    let told: u64 = told.expect("a Retry-After").parse().unwrap();
    let shortest = longest - since.elapsed().as_secs();
    assert!((shortest..=longest).contains(&told), "Retry-After is {told}, not in {shortest}..={longest}");
}

#[allow(clippy::disallowed_methods, reason = "other processes live in real time")]
pub fn now() -> Instant {
    Instant::now()
}

#[allow(clippy::disallowed_methods, reason = "Envoy compares a token's times with the calendar")]
pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}
