//! Any bytes are a CheckRequest that is answered, or an error: never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prost::Message;
use tollgate::SystemClock;
use tollgate::config::{Config, LogPrincipal};
use tollgate::engine::Engine;
use tollgate::envoy::check_request::CheckRequest;
use tollgate::envoy::ext_authz::ExtAuthz;
use tollgate::telemetry::Telemetry;

fuzz_target!(|message: &[u8]| {
    let config = Config::parse("tollgate.yaml", "token: { prefixes: [\"p:\"] }").unwrap();
    let ext_authz = ExtAuthz {
        engine: Engine::new(config.token, config.prefixes, config.callers, SystemClock::default()),
        response: config.response,
        telemetry: Telemetry::new(LogPrincipal::Plain),
    };
    if let Ok(request) = CheckRequest::decode(message) {
        let _ = ext_authz.check(&request);
    }
});
