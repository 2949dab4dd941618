//! The policy through a real Envoy: every caller rule, every answer it makes, preflights, observe mode, metadata.

use super::child::wait_until;
use super::http::Answer;
use super::mesh::{Mesh, PLAIN, must};
use serde_json::{Value, json};
use std::path::Path;

const RULES: &str = r#"
callers:
  rules:
    - when: { principal: mallory }
      deny: canary-reason, closed
    - when: { path: /nothing-here }
      reject: 404
    - when: { path: /odd }
      reject: 400
    - when: { principal: none }
      allow_nothing: true
    - when: { principal: [partner, "batch-*"] }
      override: [2/24h]
    - when: { method: GET, path: /free/** }
      unrestricted: true
    - when: { host: "*.internal" }
      deny: internal host
    - when: { client: 10.0.0.0/8 }
      deny: client network
    - when: { header.x-tenant: acme }
      deny: tenant
    - when: { context.tier: gold }
      deny: route
    - when: { claim.plan: pro }
      vouch: [3/24h]
    - when: { has_rate: false, token: present, not: { path: /open } }
      require_rate: true
    - when: { principal: "c-*" }
      ceiling: [1/24h]
"#;

/// Patches by which everything arrives that the rules ask for.
const EVERYTHING: [(&str, &str); 3] = [
    (
        "- { exact: access-control-request-method }",
        "- { exact: access-control-request-method }\n                - { exact: x-tenant }",
    ),
    ("use_remote_address: true", "use_remote_address: true\n          xff_num_trusted_hops: 1"),
    (
        "              - match: { prefix: / }\n                route: { cluster: app }",
        "              - match: { prefix: /gold }\n                route: { cluster: app }\n                typed_per_filter_config:\n                  envoy.filters.http.ext_authz:\n                    \"@type\": type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute\n                    check_settings: { context_extensions: { tier: gold } }\n              - match: { prefix: / }\n                route: { cluster: app }",
    ),
];

#[track_caller]
fn ask(mesh: &Mesh, token: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers: Vec<(&str, &str)> = [&[("authorization", &*bearer)], headers].concat();
    mesh.send("GET", path, &headers)
}

#[test]
fn every_caller_rule() {
    let mesh = Mesh::patched(&format!("{PLAIN}{RULES}"), &EVERYTHING);
    let rate = &["prefix:rate:9/24h"][..];
    let pro = mesh.sign(json!({"sub": "pro", "plan": "pro"}));
    type Case<'c> = (String, &'c str, &'c [(&'c str, &'c str)], &'c [u16]);
    let cases: [Case<'_>; 17] = [
        (mesh.token("mallory", rate), "/", &[], &[403]),
        (mesh.token("alice", rate), "/nothing-here", &[], &[404]),
        (mesh.token("alice", rate), "/./odd", &[], &[400]),
        (mesh.token("none", rate), "/", &[], &[429]),
        (mesh.token("batch-7", &["prefix:rate:1/24h"]), "/", &[], &[200, 200, 429]),
        (mesh.token("frank", &["prefix:rate:1/24h"]), "/free/x", &[], &[200, 200, 200]),
        (mesh.token("alice", rate), "/", &[("host", "a.internal:80")], &[403]),
        (mesh.token("alice", rate), "/", &[("x-forwarded-for", "10.1.2.3")], &[403]),
        (mesh.token("alice", rate), "/", &[("x-forwarded-for", "11.1.2.3")], &[200]),
        (mesh.token("alice", rate), "/", &[("x-tenant", "acme")], &[403]),
        (mesh.token("alice", rate), "/", &[("x-tenant", "other")], &[200]),
        (mesh.token("alice", rate), "/gold", &[], &[403]),
        (pro, "/", &[], &[200, 200, 200, 429]),
        (mesh.token("bob", &[]), "/", &[], &[403]),
        (mesh.token("bob", &[]), "/open", &[], &[200]),
        (mesh.token("bob", &["prefix:rate:x"]), "/", &[], &[429]),
        (mesh.token("c-1", rate), "/", &[], &[200, 429]),
    ];
    for (token, path, headers, expected) in &cases {
        let told: Vec<u16> = expected.iter().map(|_| ask(&mesh, token, path, headers).status).collect();
        assert_eq!(told, *expected, "{path} {headers:?}");
    }
    let passed: usize = cases.iter().map(|case| case.3.iter().filter(|status| **status == 200).count()).sum();
    assert_eq!(mesh.upstream.requests(), passed, "what is refused goes no further");
}

#[test]
fn a_reason_is_in_the_log_and_never_in_the_answer() {
    for body in ["problem", "json", "text", "none"] {
        let mesh = Mesh::start(&format!("{PLAIN}response: {{ body: {body} }}\n{RULES}"));
        let answer = mesh.get(&mesh.token("mallory", &[]));
        assert_eq!(answer.status, 403);
        assert!(!format!("{answer:?}").contains("canary-reason"), "{answer:?}");
        let record = mesh.logged("the refusal", |record| record["message"] == "refused");
        assert_eq!(record["cause"], "canary-reason, closed");
        assert_eq!(record["refused_by"], "callers.rules[0]");
    }
}

/// The answers that the other tests of answers do not know: 400, 404 and 503.
#[test]
fn the_answers_of_the_policy() {
    let no_client = [("- { key: x-client-ip, value: \"%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%\" }", "[]")];
    let bodies = [
        (
            "problem",
            [
                r#"{"title":"Bad Request","status":400,"detail":"The request cannot be answered as it is written."}"#,
                r#"{"title":"Not Found","status":404,"detail":"There is nothing here."}"#,
                r#"{"title":"Service Unavailable","status":503,"detail":"This request cannot be decided now."}"#,
            ],
        ),
        (
            "json",
            [r#"{"error":"bad request"}"#, r#"{"error":"not found"}"#, r#"{"error":"unavailable","retry_after":1}"#],
        ),
        ("text", ["bad request", "not found", "unavailable; retry after 1 s"]),
        ("none", ["", "", ""]),
    ];
    for (body, [bad_request, not_found, unavailable]) in bodies {
        let config = format!("{PLAIN}response: {{ body: {body} }}\n{RULES}");
        let mesh = Mesh::start(&config);
        let token = mesh.token("alice", &["prefix:rate:1/24h"]);
        let answers = [mesh.get_path("/a;b", &token), mesh.get_path("/nothing-here", &token)];
        assert_eq!((answers[0].status, &*answers[0].body), (400, bad_request));
        assert_eq!((answers[1].status, &*answers[1].body), (404, not_found));
        assert!(answers.iter().all(|answer| answer.header("cache-control") == Some("no-store")));
        assert_eq!(mesh.send("GET", "/a;b", &[]).status, 400, "before it is asked who makes it");
        let record = mesh.logged("the refusal", |record| record["refused_by"] == "paths");
        assert_eq!(record["cause"], "the path holds a semicolon");

        let mesh = Mesh::patched(&config, &no_client);
        let answer = mesh.get(&mesh.token("alice", &[]));
        assert_eq!((answer.status, &*answer.body), (503, unavailable));
        assert_eq!((answer.header("retry-after"), answer.header("cache-control")), (Some("1"), Some("no-store")));
        let record = mesh.logged("the refusal", |record| record["reason"] == "unavailable");
        assert_eq!(record["cause"], "the address of the client is missing or unreadable, and a rule asks for it");
    }
}

/// Attacks on paths, with an Envoy that normalises nothing: no request reaches the application by another spelling.
#[test]
fn no_spelling_of_a_path_gets_around_a_rule() {
    let raw = [
        ("normalize_path: true", "normalize_path: false"),
        ("merge_slashes: true", "merge_slashes: false"),
        ("path_with_escaped_slashes_action: REJECT_REQUEST", "path_with_escaped_slashes_action: KEEP_UNCHANGED"),
    ];
    let rules = "callers: { rules: [{ when: { path: /admin/** }, deny: admin }] }\n";
    let mesh = Mesh::patched(&format!("{PLAIN}{rules}"), &raw);
    let token = mesh.token("alice", &[]);
    for path in ["/admin", "/admin/x", "//admin", "/./admin", "/x/../admin", "/%61dmin", "/admin/?x", "/x//..//admin/"]
    {
        assert_eq!(mesh.get_path(path, &token).status, 403, "{path}");
    }
    for path in
        ["/x/..%2fadmin", "/%2e%2e/admin", "/%252e/admin", "/x/..;/admin", "/x\\..\\admin", "/%5cadmin", "/admin%0a"]
    {
        assert_eq!(mesh.get_path(path, &token).status, 400, "{path}");
    }
    assert_eq!(mesh.upstream.requests(), 0);
    assert_eq!(mesh.get_path("/administration", &token).status, 200);
}

#[test]
fn a_preflight_needs_no_token_and_spends_nothing() {
    let preflight = [("origin", "https://app.example"), ("access-control-request-method", "PUT")];
    let mesh = Mesh::start(PLAIN);
    assert_eq!(mesh.send("OPTIONS", "/", &preflight).status, 200);
    for headers in [&preflight[..1], &preflight[1..], &[]] {
        assert_eq!(mesh.send("OPTIONS", "/", headers).status, 401, "{headers:?}");
    }
    assert_eq!(mesh.send("GET", "/", &preflight).status, 401);
    let bearer = format!("Bearer {}", mesh.token("alice", &["prefix:rate:1/24h"]));
    let with_token = [&preflight[..], &[("authorization", &*bearer)]].concat();
    for _ in 0..3 {
        assert_eq!(mesh.send("OPTIONS", "/", &with_token).status, 200);
    }
    assert_eq!(mesh.send("GET", "/", &with_token).status, 200, "nothing was spent");

    let mesh = Mesh::start(&PLAIN.replace("prefixes:", "preflight: check, prefixes:"));
    assert_eq!(mesh.send("OPTIONS", "/", &preflight).status, 401);
}

#[test]
fn some_routes_need_no_token() {
    let rules = "callers: { rules: [{ when: { token: missing, path: /public/** }, override: [2/24h] }, { when: { token: missing, method: HEAD }, reject: 404 }] }\n";
    let missing = "missing: { allow_when: { path: [/login, /public/**], method: GET } }, prefixes:";
    let mesh = Mesh::start(&format!("{}{rules}", PLAIN.replace("prefixes:", missing)));
    let ask = |method: &str, path: &str| mesh.send(method, path, &[]).status;
    assert_eq!([ask("GET", "/public/a"), ask("GET", "/public/b"), ask("GET", "/public/c")], [200, 200, 429]);
    assert_eq!(
        [ask("GET", "/login"), ask("HEAD", "/login"), ask("POST", "/login"), ask("GET", "/")],
        [200, 404, 401, 401]
    );
    assert_eq!(mesh.get_path("/login", "x").status, 401, "a failed token is refused everywhere");
    assert_eq!(mesh.get_path("/", &mesh.token("alice", &[])).status, 200);
}

/// With the whole policy observed, or each rule of it, an answer is what it is without a policy, byte for byte, but for bad identities.
#[test]
fn what_is_observed_changes_nothing_on_the_wire() {
    // Unrestricted is the one action that refuses nobody, so it cannot be observed.
    let rules = RULES.replace("    - when: { method: GET, path: /free/** }\n      unrestricted: true\n", "");
    let each = |line: &str| match line.starts_with("      ") {
        true => format!("{line}\n      mode: observe\n"),
        false => format!("{line}\n"),
    };
    let each_rule = Mesh::patched(&format!("{PLAIN}{}", rules.lines().map(each).collect::<String>()), &EVERYTHING);
    let observed = Mesh::patched(&format!("{PLAIN}mode: observe\n{RULES}"), &EVERYTHING);
    let without = Mesh::patched(PLAIN, &EVERYTHING);
    let cases: [(&str, &[&str], &str); 5] = [
        ("mallory", &[], "/"),
        ("alice", &[], "/odd"),
        ("none", &[], "/a;b"),
        ("batch-1", &[], "/"),
        ("dora", &["prefix:rate:9/24h"], "/gold"),
    ];
    for (principal, capabilities, path) in cases {
        for _ in 0..3 {
            let ask = |mesh: &Mesh| without_times(mesh.get_path(path, &mesh.token(principal, capabilities)));
            let expected = ask(&without);
            assert_eq!(ask(&observed), expected, "{principal} {path}");
            assert_eq!(ask(&each_rule), expected, "{principal} {path}, rule by rule");
        }
    }
    let malformed = observed.get(&observed.token("emil", &["prefix:rate:x"]));
    assert_eq!((malformed.status, malformed.all(super::mesh::WARNING).count()), (200, 0));
    for mesh in [&observed, &each_rule] {
        let record = mesh.logged("the deny", |record| record["principal"] == "mallory");
        assert_eq!((&record["message"], &record["reason"]), (&json!("would be refused"), &json!("denied")));
        assert_eq!(record["cause"], "canary-reason, closed");
    }

    let bad = [
        observed.send("GET", "/", &[]),
        observed.get("x"),
        observed.get(&observed.sign(json!({"sub": "a", "capabilities": 7}))),
    ];
    assert_eq!(bad.map(|answer| answer.status), [401, 401, 403]);
}

fn without_times(mut answer: Answer) -> (u16, Vec<(String, String)>, String) {
    answer.headers.retain(|(name, _)| name != "date" && name != "x-envoy-upstream-service-time");
    (answer.status, answer.headers, answer.body)
}

/// What Envoy's access log says, in the format of `envoy/envoy.yaml`, by `response.decision_metadata`.
#[test]
fn the_access_log_says_what_was_decided() {
    let rules = "callers: { rules: [{ when: { principal: mallory }, deny: canary-reason }, { ceiling: [1/24h], mode: observe }] }\n";
    let refused = json!({"status": 403, "verdict": "refused", "reason": "denied", "refused_by": "callers.rules[0]", "limit": null, "retry_after": null});
    let nothing =
        json!({"status": 200, "verdict": null, "reason": null, "refused_by": null, "limit": null, "retry_after": null});
    let would = json!({"status": 200, "verdict": "would-be-refused", "reason": "rate-exceeded", "refused_by": "callers", "limit": "1/24h"});
    let exceeded = json!({"status": 429, "verdict": "refused", "reason": "rate-exceeded", "refused_by": "callers", "limit": "2/24h"});
    let allowed = json!({"status": 200, "verdict": "allowed", "reason": null});
    let silent = |status: u16| json!({"status": status, "verdict": null, "reason": null});
    let cases = [
        ("refused", [refused.clone(), nothing, would.clone(), exceeded.clone()]),
        ("all", [refused, allowed, would, exceeded]),
        ("off", [silent(403), silent(200), silent(200), silent(429)]),
    ];
    for (setting, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("access.log");
        let log = format!("envoy.extensions.access_loggers.file.v3.FileAccessLog\n              path: {:?}", file);
        let patch = [("envoy.extensions.access_loggers.stream.v3.StdoutAccessLog", &*log)];
        let mesh = Mesh::patched(&format!("{PLAIN}response: {{ decision_metadata: {setting} }}\n{rules}"), &patch);
        let alice = mesh.token("alice", &["prefix:rate:2/24h"]);
        for token in [&mesh.token("mallory", &[]), &alice, &alice, &alice] {
            mesh.get_path("/p?access_token=canary-query", token);
        }
        let lines = access_log(&file, expected.len());
        for (line, expected) in lines.iter().zip(&expected) {
            for (key, value) in expected.as_object().unwrap() {
                assert_eq!(&line[key], value, "{setting}, {key}: {line}");
            }
            assert_eq!((&line["method"], &line["path"]), (&json!("GET"), &json!("/p")));
            assert!(!line.to_string().contains("canary"), "{line}");
        }
    }
}

/// The first lines of an access log; Envoy writes them after the answers, and after a while.
fn access_log(file: &Path, count: usize) -> Vec<Value> {
    must(wait_until("the access log", || {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ok((lines.len() >= count).then_some(lines))
    }))
}
