//! Any bytes are a message of an access log, or counted as unreadable, and any text is a reservation, or none: never a panic, and nothing
//! is settled that was not reserved.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use tollgate::SystemClock;
use tollgate::config::Config;
use tollgate::engine::Engine;
use tollgate::envoy::access_log::settle;
use tollgate::policy::outcomes::Outcome;

const POLICY: &str = "
token: { prefixes: [\"p:\"] }
lockouts: [{ name: l, key: [], threshold: 5, window: 1m, outcome: { reset: [200] } }]
";

static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    let config = Config::parse("tollgate.yaml", POLICY).unwrap();
    Engine::new(config.token, config.prefixes, config.policy, SystemClock::default())
});

fuzz_target!(|message: &[u8]| {
    settle(&ENGINE, message, |settlement| assert!(settlement.rules.is_empty()));
    if let Ok(reservation) = std::str::from_utf8(message) {
        assert!(ENGINE.settle(reservation, &Outcome::default()).rules.is_empty());
    }
});
