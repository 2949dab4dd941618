//! Lines that are missing from Envoy's configuration: the request is refused, and the log names the line.

use super::mesh::{Mesh, PLAIN};
use serde_json::json;

#[test]
fn a_bearer_token_without_claims_is_logged_with_the_line_that_is_missing() {
    let cases: [(&str, &str, &str, &[&str]); 3] = [
        (
            "              metadata_context_namespaces: [ envoy.filters.http.jwt_authn ]\n",
            "",
            "nothing",
            &["metadata_context_namespaces: [envoy.filters.http.jwt_authn]"],
        ),
        (
            "payload_in_metadata: jwt_payload",
            "payload_in_metadata: claims",
            "envoy.filters.http.jwt_authn: claims",
            &["payload_in_metadata", "[payload, jwt_payload]"],
        ),
        (
            "failed_status_in_metadata: jwt_failure",
            "failed_status_in_metadata: why",
            "envoy.filters.http.jwt_authn: why",
            &["failed_status_in_metadata", "jwt_failure"],
        ),
    ];
    // Where a request without a token may pass, one with a token of which nobody says anything may not.
    let lenient = PLAIN.replace("prefixes:", "missing: allow, prefixes:");
    for ((line, patched, arrived, hints), yaml) in cases.into_iter().flat_map(|case| [(case, PLAIN), (case, &lenient)])
    {
        let mesh = Mesh::patched(yaml, &[(line, patched)]);
        // The last case shows with a token that fails only.
        let token = if patched.contains("why") { "x".into() } else { mesh.token("alice", &["prefix:rate:9/24h"]) };
        let answer = mesh.get(&token);
        assert_eq!(answer.status, 401, "{answer:?}");
        assert!(answer.header("www-authenticate").is_some_and(|challenge| challenge.contains("invalid_token")));
        assert_eq!(mesh.upstream.requests(), 0);

        let record = mesh.logged(line, |record| record["event"] == "bearer_without_claims");
        assert_eq!(record["level"], "WARN", "{record}");
        assert_eq!(record["message"], "a bearer token is present but no verified claims arrived");
        assert_eq!(record["arrived"], json!(arrived), "{record}");
        for hint in hints {
            assert!(record["hint"].as_str().unwrap().contains(hint), "{hint}: {record}");
        }
    }
}

#[test]
fn no_such_line_where_nothing_is_missing() {
    let mesh = Mesh::start(PLAIN);
    assert_eq!(mesh.get(&mesh.token("alice", &["prefix:rate:9/24h"])).status, 200);
    assert_eq!(mesh.get("x").status, 401);
    assert_eq!(mesh.send("GET", "/lower", &[("authorization", "bearer x")]).status, 401);
    assert_eq!(mesh.send("GET", "/last", &[]).status, 401);
    mesh.logged("the last refusal", |record| record["path"] == "/last");
    assert!(!mesh.tollgate.log().iter().any(|line| line.contains("bearer_without_claims")));
}
