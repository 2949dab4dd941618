//! A text with wildcards, in the first line, matches another, in the second, as its definition says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::model;
use tollgate::policy::pattern::{Dialect, Pattern};

#[path = "../../tests/it/paths/model.rs"]
mod model;

/// The definition takes exponential time.
const STARS: usize = 6;
const LONGEST: usize = 40;

fuzz_target!(|texts: &str| {
    let Some((pattern, text)) = texts.split_once('\n') else { return };
    for dialect in [Dialect::Text, Dialect::Path] {
        let Ok(read) = Pattern::parse(pattern, dialect) else { continue };
        let is_match = read.matches(text.as_bytes());
        assert!(!is_match || text.as_bytes().starts_with(&read.literal_start()));
        if pattern.matches('*').count() <= STARS && text.len() <= LONGEST {
            assert_eq!(is_match, model(pattern, text, dialect), "{pattern} on {text}");
        }
    }
});
