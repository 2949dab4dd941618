//! What must never be in the log, at its lowest level: credentials, and line breaks that a claim brings.

use super::child::wait_until;
use super::mesh::{Mesh, PLAIN, key, must, unix_seconds, whole};
use serde_json::{Value, json};

const CANARY: &str = "canary-4f2c";

/// A policy that looks at what holds credentials, refuses for it, and observes.
const RULES: &str = r#"
response: { decision_metadata: all }
costs: [{ when: { header.x-api-key: "*" }, cost: { from: header.x-api-key, trusted: true } }]
callers:
  rules:
    - { when: { header.cookie: "session=canary*", method: GET }, deny: a cookie, mode: observe }
    - { when: { header.x-api-key: "*4f2c", path: /x }, deny: a key }
    - { when: { not: { header.authorization: "Basic *" } }, ceiling: [100/24h] }
    - { ceiling: [1/24h], mode: observe }
"#;

#[test]
fn no_line_holds_a_credential_and_a_claim_breaks_none() {
    for (format, level, rules) in
        [("json", "trace", ""), ("text", "trace", RULES), ("json", "debug", RULES), ("json", "info", RULES)]
    {
        // Every header reaches Tollgate, whatever Envoy's configuration recommends.
        let every = ("- { exact: x-request-id }", "- { safe_regex: { regex: \".*\" } }");
        let config = format!("{PLAIN}log: {{ level: {level}, format: {format} }}\n{rules}");
        let mesh = Mesh::patched(&config, &[every]);
        let tokens = send_credentials(&mesh);
        assert_eq!(mesh.get(&mesh.token("last-caller", &["prefix:rate:fast"])).status, 429);

        // One Envoy thread has one connection, one worker serves it: what came before is in the log by now.
        let log = must(wait_until("the last request is logged", || {
            let log = mesh.tollgate.log();
            Ok(log.iter().any(|line| line.contains("last-caller")).then_some(log))
        }));
        let messages = [("allowed", level != "info"), ("refused", true), ("would be refused", !rules.is_empty())];
        for (message, _) in messages.iter().filter(|(_, expected)| *expected) {
            assert!(log.iter().any(|line| line.contains(message)), "the log is silent: {log:#?}");
        }
        for line in &log {
            assert!(is_record(format, line), "not one record: {line:?}");
            assert!(!line.contains(CANARY), "{line}");
            for token in &tokens {
                for part in token.split('.').skip(1) {
                    assert!(!line.contains(part), "{line}");
                }
            }
        }
        let forged = log.iter().filter(|line| line.contains("forged-record")).count();
        let expected = if level == "info" { 1 } else { 2 };
        assert_eq!(forged, expected, "a line for each request that is logged: {log:#?}");
    }
}

/// What requests lacked is counted, and the last line says how often.
#[test]
fn a_cost_that_is_not_told_is_counted() {
    let mut mesh = Mesh::start(&format!("{PLAIN}costs: [{{ cost: {{ from: context.cost }} }}]\n"));
    for _ in 0..3 {
        assert_eq!(mesh.get(&mesh.token("alice", &[])).status, 200);
    }
    assert!(must(mesh.tollgate.stop()).success());
    let record = mesh.logged("the counts", |record| record["missing_costs"] == 3);
    assert_eq!((&record["level"], &record["unknown_clients"]), (&json!("WARN"), &json!(0)));
}

/// Sends tokens that are good, fail and are unusable, in all the places where clients put credentials.
fn send_credentials(mesh: &Mesh) -> Vec<String> {
    let expired = json!({ "sub": "alice", "exp": unix_seconds() - 3600 });
    let tokens = [
        mesh.token("alice", &["prefix:rate:1/24h", "prefix:rate:fast"]),
        mesh.sign(expired),
        key().sign(&whole(json!({ "sub": "alice" }))).unwrap(),
        mesh.sign(json!({ "sub": "alice", "capabilities": 7 })),
        mesh.sign(json!({ "sub": "eve\n2026-01-01T00:00:00Z INFO tollgate: forged-record\r\0\u{1b}[31m" })),
        format!("{CANARY}.{CANARY}.{CANARY}"),
    ];
    for token in &tokens {
        let path = format!("/?access_token={token}&api_key={CANARY}");
        let others = [("cookie", format!("session={CANARY}")), ("x-api-key", CANARY.into())];
        let bearer = ("authorization", format!("Bearer {token}"));
        for headers in [vec![bearer.clone()], [vec![bearer], others.to_vec()].concat(), others.to_vec()] {
            let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            mesh.send("GET", &path, &headers);
        }
        mesh.send("GET", "/", &[("authorization", &format!("Basic {CANARY}"))]);
    }
    tokens.into()
}

/// Whether the line is one whole record without control characters: an object, or text that starts with a time.
fn is_record(format: &str, line: &str) -> bool {
    let plain = |text: &str| !text.contains(char::is_control);
    match serde_json::from_str::<Value>(line) {
        Ok(Value::Object(record)) => {
            let mut texts = record.values().filter_map(Value::as_str);
            format == "json" && record["timestamp"].is_string() && texts.all(plain)
        }
        _ => {
            let starts = line.get(..4).is_some_and(|year| year.bytes().all(|byte| byte.is_ascii_digit()));
            format == "text" && starts && line.contains(" tollgate::") && plain(line)
        }
    }
}

/// The first lines of a flood are written, and the rest are counted: in the next line of the rule, or by themselves.
#[test]
fn a_flood_of_refusals_is_counted() {
    let records = |mesh: &Mesh, message: &str| -> Vec<Value> {
        let log = mesh.tollgate.log();
        let records = log.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        records.filter(|record| record["message"].as_str().is_some_and(|text| text.starts_with(message))).collect()
    };
    let mut mesh = Mesh::start(&format!("{PLAIN}log: {{ refusals: 2/24h }}\n"));
    for _ in 0..5 {
        assert_eq!(mesh.send("GET", "/", &[]).status, 401);
    }
    // Another rule has lines of its own.
    assert_eq!(mesh.get(&mesh.token("a", &["prefix:rate:fast"])).status, 429);
    assert!(must(mesh.tollgate.stop()).success());
    let told = wait_until("the count", || Ok(records(&mesh, "lines were left out").first().cloned()));
    let told = must(told);
    assert_eq!((&told["rule"], &told["lines"]), (&json!("missing-token"), &json!(3)));
    assert_eq!(records(&mesh, "refused").len(), 3);

    // So it is with lockouts, apart from the refusals that they bring.
    let lockout = "lockouts: [{ name: bad, on: failed_token, key: path, threshold: 1, window: 1h }]";
    let mut mesh = Mesh::start(&format!("{PLAIN}log: {{ refusals: 2/24h }}\n{lockout}\n"));
    for path in ["/a", "/b", "/c", "/d", "/d"] {
        mesh.get_path(path, "bad");
    }
    assert!(must(mesh.tollgate.stop()).success());
    let told = || Ok(records(&mesh, "lines were left out").into_iter().find(|record| record["rule"] == "bad engaged"));
    assert_eq!(must(wait_until("the count of lockouts", told))["lines"], 2);
    assert_eq!((records(&mesh, "a lockout was engaged").len(), records(&mesh, "refused").len()), (2, 3));

    // At a new rate nobody waits for what the old one had spent.
    let mesh = Mesh::start(&format!("{PLAIN}log: {{ refusals: 1/24h }}\n"));
    mesh.send("GET", "/", &[]);
    std::fs::write(mesh.tollgate.config(), format!("{PLAIN}log: {{ refusals: 1/1s }}\n")).unwrap();
    let left_out = || {
        mesh.send("GET", "/", &[]);
        Ok(records(&mesh, "refused").iter().find_map(|record| record["left_out"].as_u64()))
    };
    assert!(must(wait_until("a line that counts those before it", left_out)) >= 1);
    let mesh = Mesh::start(&format!("{PLAIN}log: {{ refusals: off }}\n"));
    for _ in 0..150 {
        mesh.send("GET", "/", &[]);
    }
    let all = || Ok((records(&mesh, "refused").len() == 150).then_some(()));
    must(wait_until("a line for each", all));
}

/// Envoy with a tracer sends its trace along with the Check.
#[test]
fn a_line_names_the_trace() {
    let tracer = "          stat_prefix: edge\n          tracing:\n            provider:\n              name: envoy.tracers.opentelemetry\n              typed_config:\n                \"@type\": type.googleapis.com/envoy.config.trace.v3.OpenTelemetryConfig\n                grpc_service: { envoy_grpc: { cluster_name: app } }\n                service_name: edge\n";
    let mesh = Mesh::patched(PLAIN, &[("          stat_prefix: edge\n", tracer)]);
    let id = "0af7651916cd43dd8448eb211c80319c";
    let parent = format!("00-{id}-b7ad6b7169203331-01");
    assert_eq!(mesh.send("GET", "/", &[("traceparent", &parent)]).status, 401);
    let record = mesh.logged("the refusal", |record| record["message"] == "refused");
    assert_eq!(record["trace_id"], id, "{record}");
}
