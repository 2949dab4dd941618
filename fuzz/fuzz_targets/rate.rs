//! A rate that parses prints a text that parses to the same rate; warnings stay within their bounds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate::{Limiter, Rate};

fuzz_target!(|text: &[u8]| {
    if let Ok(rate) = Rate::parse(text) {
        assert_eq!(rate.to_string().parse(), Ok(rate));
    }
    let limiter = Limiter::builder(["r:"]).build().unwrap();
    let capability = [b"r:", text].concat();
    for warning in limiter.check(&(), "caller", [&capability]).warnings() {
        assert!(!warning.to_header_value().iter().any(u8::is_ascii_control));
        let within = warning.to_header_value_within(64);
        assert!(within.len() <= 64 && within.starts_with(b"malformed; kind=rate; cap="));
    }
});
