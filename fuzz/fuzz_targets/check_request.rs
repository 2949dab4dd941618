//! Any bytes are a CheckRequest that is answered, or an error: never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use tollgate::SystemClock;
use tollgate::config::{Config, LogPrincipal};
use tollgate::engine::Engine;
use tollgate::envoy::ext_authz::ExtAuthz;
use tollgate::telemetry::Telemetry;

static EXT_AUTHZ: LazyLock<ExtAuthz> = LazyLock::new(|| {
    let config = Config::parse("tollgate.yaml", "token: { prefixes: [\"p:\"] }").unwrap();
    ExtAuthz {
        engine: Engine::new(config.token, config.prefixes, config.policy, SystemClock::default()),
        response: config.response,
        telemetry: Telemetry::new(LogPrincipal::Plain),
    }
});

fuzz_target!(|message: &[u8]| {
    let _ = EXT_AUTHZ.check(message);
});
