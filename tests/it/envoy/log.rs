//! What must never be in the log, at its lowest level: credentials, and line breaks that a claim brings.

use super::child::wait_until;
use super::mesh::{Mesh, PLAIN, key, must, unix_seconds, whole};
use serde_json::{Value, json};

const CANARY: &str = "canary-4f2c";

#[test]
fn no_line_holds_a_credential_and_a_claim_breaks_none() {
    for format in ["json", "text"] {
        // Every header reaches Tollgate, whatever Envoy's configuration recommends.
        let every = ("- { exact: x-request-id }", "- { safe_regex: { regex: \".*\" } }");
        let mesh = Mesh::patched(&format!("{PLAIN}log: {{ level: trace, format: {format} }}\n"), &[every]);
        let tokens = send_credentials(&mesh);
        assert_eq!(mesh.get(&mesh.token("last-caller", &["prefix:rate:1/24h"])).status, 200);

        // One Envoy thread has one connection, one worker serves it: what came before is in the log by now.
        let log = must(wait_until("the last request is logged", || {
            let log = mesh.tollgate.log();
            Ok(log.iter().any(|line| line.contains("last-caller")).then_some(log))
        }));
        for message in ["allowed", "refused"] {
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
        assert_eq!(forged, 2, "a line for each of the two requests: {log:#?}");
    }
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
