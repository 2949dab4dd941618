//! Any text is a configuration or a list of mistakes that can be printed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate::config::Config;

fuzz_target!(|text: &str| {
    if let Err(mistakes) = Config::parse("tollgate.yaml", text) {
        assert!(mistakes.to_string().starts_with("error: "));
    }
});
