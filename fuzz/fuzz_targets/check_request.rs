//! Any bytes are a CheckRequest that is answered, or an error: never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use tollgate::SystemClock;
use tollgate::config::Config;
use tollgate::envoy::ext_authz::ExtAuthz;

/// A policy that asks for every fact of a request.
const POLICY: &str = "
token: { prefixes: [\"p:\"], missing: { allow_when: { path: /a/** } } }
callers:
  rules:
    - { when: { client: 10.0.0.0/8, host: \"a*\", method: PUT }, deny: closed }
    - { when: { header.x: \"a*\", claim.b.c: [d, 5], context.e: f, has_rate: false }, override: [5/1m] }
    - { ceiling: [9/1h], mode: observe }
costs: [{ when: { principal: \"*a\" }, cost: { from: header.y, trusted: true } }]
";

static EXT_AUTHZ: LazyLock<ExtAuthz> = LazyLock::new(|| {
    let config = Config::parse("tollgate.yaml", POLICY).unwrap();
    ExtAuthz::new(config, SystemClock::default())
});

fuzz_target!(|message: &[u8]| {
    let _ = EXT_AUTHZ.check(message, |_| Some(message));
});
