//! The expected results of `tests/conformance/` about texts: rates, durations, warnings, prefixes.

use serde_json::Value;
use std::time::Duration;
use tollgate::{DefaultResolver, HeldRate, Limiter, Rate, Rates, Resolver, Warning};

/// The cases of one file.
pub fn cases(file: &str) -> Vec<Value> {
    let path = format!("{}/tests/conformance/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The strings of a list.
pub fn strings(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item.as_str().unwrap()).collect()
}

/// The window in nanoseconds.
pub fn nanos(rate: Rate) -> u64 {
    u64::try_from(rate.window().as_nanos()).unwrap()
}

fn hex(text: &Value) -> Vec<u8> {
    let text = text.as_str().unwrap();
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// The bytes of a field that may be given as text or, with `_hex`, byte by byte.
fn bytes(case: &Value, field: &str) -> Vec<u8> {
    match &case[format!("{field}_hex")] {
        Value::Null => case[field].as_str().unwrap().as_bytes().to_vec(),
        encoded => hex(encoded),
    }
}

#[test]
fn parse() {
    let cases = [cases("parse.jsonl"), cases("parse_nonutf8.jsonl")].concat();
    assert_eq!(cases.len(), 347 + 9);
    for case in cases {
        let text = bytes(&case, "in");
        let held = HeldRate::parse(&text);
        let numbers = held.rate().map(|rate| (rate.count(), nanos(rate)));
        let expected = case["ok"]
            .as_bool()
            .unwrap()
            .then(|| (case["count"].as_u64().unwrap(), case["window_ns"].as_u64().unwrap()));
        assert_eq!(numbers, expected, "{case}");
        assert_eq!(held.text(), Some(&*bytes(&case, "string")), "{case}");
        if let Some(rate) = held.rate() {
            assert_eq!(rate.to_string(), case["formatted"], "{case}");
        }
    }
}

#[test]
fn format() {
    let cases = cases("format.jsonl");
    assert_eq!(cases.len(), 233);
    for case in cases {
        let number = |field: &str| case[field].as_i64().and_then(|n| u64::try_from(n).ok());
        let built = number("count")
            .zip(number("window_ns"))
            .and_then(|(count, window)| Rate::new(count, Duration::from_nanos(window)).ok());
        let text = built.map_or_else(|| HeldRate::ZERO.to_string(), |rate| rate.to_string());
        assert_eq!(text, case["string"], "{case}");
        let parses_back = built.is_some_and(|rate| text.parse() == Ok(rate));
        assert_eq!(parses_back, case["parses_back"].as_bool().unwrap(), "{case}");
    }
}

#[test]
fn rescale() {
    let cases = cases("rescale.jsonl");
    assert_eq!(cases.len(), 195);
    for case in cases {
        let capability = format!("p:{}", case["in"].as_str().unwrap());
        let mut rates: Rates<'_> = [HeldRate::parse(&capability.as_bytes()[2..])].into_iter().collect();
        DefaultResolver::default().resolve(&(), b"caller", &mut rates).unwrap();
        assert_eq!(rates.as_slice()[0].to_string(), case["resolved_string"], "{case}");
        let limiter = Limiter::builder(["p:"]).build().unwrap();
        let decision = limiter.check(&(), "caller", [&capability]);
        assert_eq!(decision.limits()[0].to_string(), case["held"], "{case}");
        assert_eq!(decision.reason().to_string(), case["reason"], "{case}");
    }
}

#[test]
fn warnings() {
    let cases = cases("warning.jsonl");
    assert_eq!(cases.len(), 63);
    for case in cases {
        let capability = bytes(&case, "cap");
        let limiter = Limiter::builder([case["prefix"].as_str().unwrap()]).build().unwrap();
        let warning = limiter.check(&(), "caller", [&capability]).warnings().next().unwrap();
        assert_eq!(warning.to_bytes(), hex(&case["header_hex"]), "{case}");
        // The reference's HTTP stack replaced CR and LF alone; here no control character reaches a header.
        let wire: Vec<u8> =
            hex(&case["wire_hex"]).into_iter().map(|b| if b.is_ascii_control() { b' ' } else { b }).collect();
        assert_eq!(warning.to_header_value(), wire, "{case}");
    }
}

#[test]
fn several_warnings() {
    let cases = cases("warning_multi.jsonl");
    assert_eq!(cases.len(), 8);
    for case in cases {
        let limiter = Limiter::builder(strings(&case["prefixes"])).build().unwrap();
        let capabilities = strings(&case["capabilities"]);
        let decision = limiter.check(&(), "caller", &capabilities);
        let lines: Vec<String> = decision.warnings().map(|warning| warning.to_string()).collect();
        assert_eq!(lines, strings(&case["header_lines"]), "{case}");
        assert_eq!(decision.is_allowed(), case["status"] != 429, "{case}");
    }
}

#[test]
fn warning_texts() {
    let cases = cases("warning_struct.jsonl");
    assert_eq!(cases.len(), 7);
    for case in cases {
        let reason = case["reason"].as_str().unwrap();
        let params: Vec<Vec<&str>> = case["params"].as_array().into_iter().flatten().map(strings).collect();
        let warning = params.iter().fold(Warning::new(reason.as_bytes()), |warning, param| {
            warning.with(param[0].as_bytes(), param[1].as_bytes())
        });
        assert_eq!(warning.to_string(), case["string"], "{case}");
    }
}

#[test]
fn construction() {
    let cases = cases("new.jsonl");
    assert_eq!(cases.len(), 8);
    for case in cases {
        let error = Limiter::builder(strings(&case["prefixes"])).build().err();
        assert_eq!(error.map_or_else(String::new, |error| error.to_string()), case["error"], "{case}");
    }
}
