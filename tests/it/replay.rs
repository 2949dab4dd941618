//! `tollgate replay`: the decision scenarios that a configuration can express, the answer table, and bad lines.

use crate::conformance::{cases, strings};
use crate::scenarios::configuration;
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Replays `input` under the configuration `yaml`.
fn replay(yaml: &str, input: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("tollgate.yaml");
    std::fs::write(&config, yaml).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.args(["replay", "--config"]).arg(&config);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

pub fn decisions(yaml: &str, requests: &[Value]) -> Vec<Value> {
    let input: String = requests.iter().map(|request| format!("{request}\n")).collect();
    let output = replay(yaml, &input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn header<'a>(decision: &'a Value, name: &str) -> Option<&'a str> {
    let headers = decision["headers"].as_array().unwrap();
    headers.iter().find(|header| header[0] == name).map(|header| header[1].as_str().unwrap())
}

#[test]
fn scenarios() {
    let (mut scenarios, mut steps) = (0, 0);
    for scenario in cases("decisions.jsonl") {
        let Some(yaml) = configuration(&scenario) else { continue };
        let expected = scenario["steps"].as_array().unwrap();
        let request = |step: &Value| json!({"at": step["at_ns"], "principal": step["principal"], "capabilities": step["capabilities"]});
        let decided = decisions(&yaml, &expected.iter().map(request).collect::<Vec<_>>());
        assert_eq!(decided.len(), expected.len());
        for (decision, step) in decided.iter().zip(expected) {
            check_step(decision, step);
            steps += 1;
        }
        scenarios += 1;
    }
    assert_eq!((scenarios, steps), (301, 5_745));
}

fn check_step(decision: &Value, step: &Value) {
    for field in ["allowed", "reason", "limits", "retry_after_ns"] {
        assert_eq!(decision[field], step[field], "{field}: {step}");
    }
    assert_eq!(decision["limit"].as_str().unwrap_or_default(), step["limit"], "{step}");
    let retry_after = header(decision, "retry-after").map(|seconds| seconds.parse::<u64>().unwrap());
    assert_eq!(retry_after, step["retry_after_header"].as_u64(), "{step}");
    let without_controls = |text: &&str| text.replace(|c: char| c.is_ascii_control(), " ");
    let warnings: Vec<String> = strings(&step["warnings"]).iter().map(without_controls).collect();
    assert_eq!(json!(decision["warnings"]), json!(warnings), "{step}");
    assert_eq!(decision["status"], step["status"], "{step}");
    assert_eq!(decision["refused_by"] == "callers", step["reason"] == "rate-exceeded", "{step}");
    if step["error"] == "resolver:blocked" {
        assert_eq!(
            (&decision["error"], &decision["refused_by"]),
            (&step["error"], &json!("callers.rules[0]")),
            "{step}"
        );
    }
}

/// The whole answer of one request under a small configuration.
#[track_caller]
fn check(request: Value, expected: Value) {
    let yaml = r#"token: { prefixes: ["r:"] }"#;
    assert_eq!(decisions(yaml, &[request])[0], expected);
}

#[test]
fn answers() {
    let no_store = |content_type: &str| json!([["cache-control", "no-store"], ["content-type", content_type]]);
    let problem = "application/problem+json";
    check(
        json!({"at": "1m", "principal": "a", "capabilities": ["r:5/1m", "r:x"], "method": "GET", "path": "/", "host": "h", "client": "192.0.2.1", "context": {"k": "v"}}),
        json!({
            "line": 1, "allowed": true, "status": 200, "reason": "none", "limits": ["5/1m"], "limit": null,
            "refused_by": null, "retry_after_ns": 0, "error": null,
            "headers": [["x-webpa-capability-warning", "malformed; kind=rate; cap=\"r:x\""]],
            "warnings": ["malformed; kind=rate; cap=\"r:x\""],
        }),
    );
    check(
        json!({"at": 0, "claims": {"sub": "a", "capabilities": 7}}),
        json!({
            "line": 1, "allowed": false, "status": 403, "reason": "denied", "limits": [], "limit": null,
            "refused_by": null, "retry_after_ns": 0, "headers": no_store(problem), "warnings": [],
            "error": "the capabilities claim capabilities is a number; want a list of strings, or one space-separated string",
        }),
    );
    for (token, challenge) in
        [("missing", r#"Bearer realm="tollgate""#), ("failed", r#"Bearer realm="tollgate", error="invalid_token""#)]
    {
        check(
            json!({"at": 0, "token": token}),
            json!({
                "line": 1, "allowed": false, "status": 401, "reason": format!("{token}-token"), "limits": [],
                "limit": null, "refused_by": null, "retry_after_ns": 0, "warnings": [], "error": null,
                "headers": [["www-authenticate", challenge], ["cache-control", "no-store"], ["content-type", problem]],
            }),
        );
    }
    check(
        json!({"at": 0, "principal": "a", "capabilities": ["r:"], "headers": {"content-type": "application/grpc+proto"}}),
        json!({
            "line": 1, "allowed": false, "status": 429, "reason": "rate-exceeded", "limits": [""], "limit": "",
            "refused_by": "callers", "retry_after_ns": 0, "error": null, "warnings": ["malformed; kind=rate; cap=\"r:\""],
            "headers": [
                ["x-webpa-capability-warning", "malformed; kind=rate; cap=\"r:\""], ["cache-control", "no-store"],
                ["grpc-status", "8"], ["content-type", "text/plain; charset=utf-8"],
            ],
        }),
    );
}

#[test]
fn bad_lines_end_the_replay() {
    let good = r#"{"at": 0, "principal": "a", "capabilities": []}"#;
    for (line, cause) in [
        ("nonsense", "want a JSON object"),
        ("[0, \"a\", []]", "want a JSON object"),
        (r#"{"at": 0, "principal": }"#, "expected value at column 24"),
        (r#"{"at": 9223372036854775808, "principal": "a"}"#, "the last moment is 2^63-1 ns"),
        (r#"{"at": 0, "principal": "a", "colour": "red"}"#, "unknown field `colour`"),
        (r#"{"principal": "a"}"#, "missing field `at`"),
        (r#"{"at": "soon", "principal": "a"}"#, "`at` is \"soon\""),
        (r#"{"at": -1, "principal": "a"}"#, "`at` must be a duration text or a number of nanoseconds"),
        (r#"{"at": 0}"#, "want one of: `principal`"),
        (r#"{"at": 0, "principal": "a", "claims": {}}"#, "want one of: `principal`"),
        (r#"{"at": 0, "token": "missing", "capabilities": []}"#, "want one of: `principal`"),
        (r#"{"at": 0, "token": "stale"}"#, "unknown variant `stale`"),
        (r#"{"at": 0, "outcome": 401, "of": 1}"#, "no rule waits for the outcome of line 1"),
        (r#"{"at": 0, "outcome": 401, "of": 7}"#, "no rule waits for the outcome of line 7"),
        (r#"{"at": 0, "outcome": 401}"#, "missing field `of`"),
        (r#"{"at": 0, "outcome": "gone", "of": 1}"#, "an HTTP status, 101 or 200 to 599, or \"aborted\""),
        (r#"{"at": 0, "outcome": 401, "of": 1, "principal": "a"}"#, "unknown field `principal`"),
        (r#"{"at": 0, "outcome": 199, "of": 1}"#, "an HTTP status, 101 or 200 to 599, or \"aborted\""),
        (r#"{"at": 0, "token": "missing", "code": 3}"#, "`code` says why a token failed"),
    ] {
        let output = replay(r#"token: { prefixes: ["r:"] }"#, &format!("{good}\n\n{line}\n{good}\n"));
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(error.starts_with("error: line 3 of standard input: ") && error.contains(cause), "{line}: {error}");
        assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 1, "what came before is answered");
    }
    let backwards = r#"{"at": "1s", "principal": "a"}
{"at": 999999999, "principal": "a"}"#;
    let output = replay(r#"token: { prefixes: ["r:"] }"#, backwards);
    assert!(
        String::from_utf8_lossy(&output.stderr)
            .contains("line 2 of standard input: `at` is 999999999 ns, which is before")
    );
}

/// Header names are compared in lower case, whole seconds are not rounded up, and warnings outlive a denial.
#[test]
fn small_print() {
    let yaml = r#"token: { prefixes: ["r:"] }"#;
    let call = |at: &str, name: &str| json!({"at": at, "principal": "a", "capabilities": ["r:1/1m"], "headers": {name: "application/grpc"}});
    let decided =
        decisions(yaml, &[call("0ms", "Content-Type"), call("0h", "CONTENT-TYPE"), call("1ns", "content-type")]);
    for decision in &decided[1..] {
        assert_eq!(header(decision, "grpc-status"), Some("8"));
        assert_eq!(header(decision, "retry-after"), Some("60"));
    }
    let denied = decisions(yaml, &[json!({"at": 0, "claims": {"capabilities": ["r:x", "other"]}})]);
    assert_eq!(
        (&denied[0]["status"], header(&denied[0], "x-webpa-capability-warning")),
        (&json!(403), Some("malformed; kind=rate; cap=\"r:x\""))
    );
}

/// One more warning than are sent is counted as one.
#[test]
fn warnings_beyond_the_sixteenth_are_counted() {
    for (malformed, expected) in [(16, None), (17, Some("omitted; count=1")), (20, Some("omitted; count=4"))] {
        let capabilities: Vec<String> = (0..malformed).map(|n| format!("r:x{n}")).collect();
        let decided = decisions(
            r#"token: { prefixes: ["r:"] }"#,
            &[json!({"at": 0, "principal": "a", "capabilities": capabilities})],
        );
        let headers = decided[0]["headers"].as_array().unwrap();
        let lines: Vec<&str> = headers
            .iter()
            .filter(|line| line[0] == "x-webpa-capability-warning")
            .map(|line| line[1].as_str().unwrap())
            .collect();
        assert_eq!(lines.len(), 16 + usize::from(expected.is_some()));
        assert_eq!(lines.get(16).copied(), expected);
    }
}

/// Outcomes go on with the clock, and are answered by what rules did with them.
#[test]
fn outcomes() {
    let yaml = r#"token: { prefixes: ["r:"], missing: allow }
lockouts: [{ name: login, key: [], threshold: 2, window: 15m, outcome: { reset: [grpc.ok, header.x-in], cancel: [aborted] } }]"#;
    let ask = |at: &str| json!({"at": at, "token": "missing"});
    let lines = [
        ask("0s"),
        ask("0s"),
        json!({"at": "0s", "outcome": "aborted", "of": 2}),
        json!({"at": "1s", "outcome": 200, "headers": {"X-In": "1"}, "of": 1}),
        ask("1s"),
        json!({"at": "2m", "outcome": "aborted", "of": 5}),
    ];
    let answered = decisions(yaml, &lines);
    assert_eq!(answered[1]["engaged"], json!(["login"]));
    assert_eq!(answered[2], json!({"line": 3, "of": 2, "settled": {"login": "cancelled"}, "engaged": []}));
    assert_eq!(answered[3]["settled"], json!({"login": "reset"}));
    assert_eq!(answered[5], json!({"line": 6, "of": 5, "settled": {}, "refused": "late", "engaged": []}));
    let grpc = json!({"at": "0s", "token": "missing", "headers": {"content-type": "application/grpc"}});
    let answered = decisions(yaml, &[grpc, json!({"at": "0s", "outcome": 200, "grpc_status": 0, "of": 1})]);
    assert_eq!(answered[1]["settled"], json!({"login": "reset"}));

    // Failed tokens of a kind.
    let yaml = r#"token: { prefixes: ["r:"] }
lockouts: [{ name: bad, on: failed_token, failures: [signature], key: [], threshold: 1, window: 1m }]"#;
    let failed = |code: u32| json!({"at": "0s", "token": "failed", "code": code});
    let answered = decisions(yaml, &[failed(3), failed(26), failed(26), failed(3)]);
    let said: Vec<_> = answered.iter().map(|line| (&line["status"], &line["engaged"])).collect();
    let (none, bad) = (Value::Null, json!(["bad"]));
    assert_eq!(said, [(&json!(401), &none), (&json!(401), &bad), (&json!(429), &none), (&json!(401), &none)]);
}
