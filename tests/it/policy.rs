//! What the policy makes of a request: matchers, caller rules, costs, preflights, observe mode.

use crate::asking::ask;
use serde_json::{Value, json};
use tollgate::config::Config;
use tollgate::engine::Engine;
use tollgate::policy::counts::Counted;
use tollgate::{Decision, ManualClock, Verdict};

const TOKEN: &str = "token: { prefixes: [\"r:\"] }\n";

fn engine(yaml: &str) -> Engine {
    let yaml = if yaml.contains("prefixes:") { yaml.to_owned() } else { format!("{TOKEN}{yaml}") };
    let config = Config::parse("tollgate.yaml", &yaml).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    Engine::new(config.token, config.prefixes, config.policy, ManualClock::default())
}

/// Decides the request that `request` describes, in short. Without claims it is alice's; with null, nobody's.
fn decide(engine: &Engine, request: &Value) -> String {
    let claims = match request.get("claims") {
        Some(claims @ (Value::Null | Value::String(_))) => claims.clone(),
        claims => {
            let mut all = json!({"sub": "alice"});
            all.as_object_mut().unwrap().extend(claims.and_then(Value::as_object).cloned().unwrap_or_default());
            all
        }
    };
    ask(engine, request, &claims, describe)
}

fn describe(decision: &Decision<'_>) -> String {
    let limits: Vec<String> = decision.limits().iter().map(ToString::to_string).collect();
    let said = match decision.verdict() {
        Verdict::Allowed => format!("allowed [{}]", limits.join(" ")),
        Verdict::RateExceeded { retry_after: Some(wait), .. } => format!("429 after {wait:?} [{}]", limits.join(" ")),
        Verdict::RateExceeded { .. } => format!("429 [{}]", limits.join(" ")),
        Verdict::Denied(denial) => format!("{:?}: {denial}", denial.status()),
        other => format!("{other:?}"),
    };
    match decision.observed() {
        Some(observed) => format!("{said}, observed {}", describe(observed)),
        None => said,
    }
}

/// Whether `when`, in YAML, applies to each request.
#[track_caller]
fn check_when(when: &str, applies: &[Value], does_not: &[Value]) {
    let engine = engine(&format!("callers: {{ rules: [{{ when: {{ {when} }}, deny: hit }}] }}"));
    for request in applies {
        assert_eq!(decide(&engine, request), "Forbidden: hit", "{when} on {request}");
    }
    for request in does_not {
        assert!(decide(&engine, request).starts_with("allowed ["), "{when} on {request}");
    }
}

#[test]
fn matchers() {
    let sub = |sub: Value| json!({"claims": {"sub": sub}});
    let plan = |plan: Value| json!({"claims": {"plan": plan}});
    let rates = |rates: &[&str]| json!({"claims": {"capabilities": rates}});
    let header = |name: &str, value: &str| json!({"headers": {name: value}});
    let of = |key: &str, value: &str| json!({ key: value });

    check_when("principal: alice", &[json!({})], &[sub(json!("alicex")), sub(json!("Alice"))]);
    check_when(
        "principal: [bob, \"batch-*\"]",
        &[sub(json!("bob")), sub(json!("batch-")), sub(json!("batch-a/b"))],
        &[json!({}), sub(json!("a-batch-"))],
    );
    check_when("principal: \"*@x.org\"", &[sub(json!("a@x.org"))], &[sub(json!("a@x.org.evil")), sub(json!("@x.or"))]);
    check_when(r#"principal: 'a\*'"#, &[sub(json!("a*"))], &[sub(json!("ab"))]);
    check_when("principal: 7", &[sub(json!(7)), sub(json!("7"))], &[sub(json!(77))]);
    check_when("has_rate: true", &[rates(&["x", "r:nonsense"])], &[rates(&["x"]), json!({})]);
    check_when("has_rate: false", &[rates(&["x"])], &[rates(&["x", "r:5/1m"])]);
    check_when(
        "method: GET",
        &[of("method", "GET"), of("method", "HEAD")],
        &[of("method", "POST"), of("method", "get"), json!({})],
    );
    check_when("method: [POST, PUT]", &[of("method", "POST"), of("method", "PUT")], &[of("method", "HEAD")]);
    check_when(
        "host: [API.example.com, \"*.dev\"]",
        &[
            of("host", "api.example.com"),
            of("host", "Api.Example.Com:8080"),
            of("host", "api.example.com."),
            of("host", "a.b.DEV:1"),
        ],
        &[of("host", "api.example.com.evil"), of("host", "dev"), of("host", "[::1]:80")],
    );
    check_when("host: \"[::1]\"", &[of("host", "[::1]"), of("host", "[::1]:80")], &[of("host", "[::2]")]);
    check_when(
        "path: [/a, /v1/**, \"/u/*/x\"]",
        &[
            of("path", "/a"),
            of("path", "/b/../a?q=/"),
            of("path", "/v1"),
            of("path", "/v1/"),
            of("path", "//v1/a/b"),
            of("path", "/u/%61/x"),
        ],
        &[
            of("path", "/a/"),
            of("path", "/v10"),
            of("path", "/u/a/b/x"),
            of("path", "/u//x"),
            of("path", "/A"),
            of("path", ""),
            of("path", "*"),
        ],
    );
    check_when(
        "path: [\"/a%3Fb\", \"/100%25\", \"/%23/*\", '\\*', \"**.php\"]",
        &[
            of("path", "/a%3fb?c"),
            of("path", "/100%25"),
            of("path", "/%23/x"),
            of("path", "*"),
            of("path", "/a/b.php?c"),
        ],
        &[of("path", "/a"), of("path", "/a?b"), of("path", "/100"), of("path", "/x/x"), of("path", "/")],
    );
    check_when(
        "client: [10.0.0.0/8, \"2001:db8::/32\", 192.0.2.7]",
        &[
            of("client", "10.1.2.3"),
            of("client", "::ffff:10.1.2.3"),
            of("client", "[2001:db8::1%eth0]"),
            of("client", "192.0.2.7:443"),
        ],
        &[of("client", "11.0.0.1"), of("client", "192.0.2.8"), of("client", "2001:db9::1")],
    );
    check_when(
        "header.X-Tenant: [acme, \"b*\"]",
        &[header("x-tenant", "acme"), header("x-tenant", "b")],
        &[header("x-tenant", "Acme"), header("x-tenant", "acme,x"), json!({})],
    );
    check_when("header.x: { absent: true }", &[json!({})], &[header("x", "")]);
    check_when("header.x: { absent: false }", &[header("x", "")], &[json!({})]);
    check_when(
        "context.tier: gold",
        &[json!({"context": {"tier": "gold"}})],
        &[json!({"context": {"tier": "silver"}}), json!({})],
    );
    check_when(
        "claim.plan: pro",
        &[plan(json!("pro")), plan(json!(["x", "pro"]))],
        &[plan(json!("Pro")), plan(json!([["pro"]])), plan(json!(null)), json!({})],
    );
    check_when(
        "claim.plan: [7, true]",
        &[plan(json!(7.0)), plan(json!(true)), plan(json!([1, 7]))],
        &[plan(json!("7")), plan(json!("true")), plan(json!(8)), plan(json!(false))],
    );
    check_when(
        "claim.a.b: x",
        &[json!({"claims": {"a": {"b": "x"}}})],
        &[json!({"claims": {"a.b": "x"}}), json!({"claims": {"a": "x"}})],
    );
    check_when(
        "claim: [\"https://idp/plan\", a], is: pro",
        &[json!({"claims": {"https://idp/plan": {"a": "pro"}}})],
        &[json!({"claims": {"https://idp/plan": "pro"}})],
    );
    check_when("claim.plan: { absent: true }", &[json!({})], &[plan(json!(null)), plan(json!([])), plan(json!("pro"))]);
    check_when("not: { principal: bob }", &[json!({})], &[sub(json!("bob"))]);
    check_when(
        "principal: \"a*\", not: { principal: alice, method: GET }",
        &[json!({}), sub(json!("anna"))],
        &[json!({"method": "GET"}), sub(json!("bob"))],
    );
    check_when(
        "principal: alice, path: /x, method: POST",
        &[json!({"path": "/x", "method": "POST"})],
        &[json!({"path": "/x", "method": "GET"})],
    );
}

/// The decisions of one policy, in turn.
#[track_caller]
fn check(yaml: &str, requests: &[(Value, &str)]) {
    let engine = engine(yaml);
    for (request, expected) in requests {
        assert_eq!(decide(&engine, request), *expected, "{request} under\n{yaml}");
    }
}

fn who(sub: &str, capabilities: &[&str]) -> Value {
    json!({"claims": {"sub": sub, "capabilities": capabilities}})
}

#[test]
fn caller_rules_run_from_top_to_bottom() {
    let rules = "
callers:
  rules:
    - when: { principal: mallory }
      deny: account closed
    - when: { principal: gone }
      reject: 404
    - when: { principal: odd }
      reject: 400
    - when: { principal: partner }
      override: [10/1m, 2/1s]
    - when: { principal: free }
      unrestricted: true
    - when: { principal: nothing }
      allow_nothing: true
    - when: { claim.plan: pro }
      vouch: 7/24h
    - require_rate: true
    - ceiling: [5/1m]
";
    let pro = |capabilities: &[&str]| json!({"claims": {"plan": "pro", "capabilities": capabilities}});
    check(
        rules,
        &[
            (who("mallory", &["r:5/1m"]), "Forbidden: account closed"),
            (who("gone", &[]), "NotFound: rejected by this rule"),
            (who("odd", &[]), "BadRequest: rejected by this rule"),
            (who("partner", &["r:1/1h", "r:nonsense"]), "allowed [2/1s 10/1m]"),
            (who("free", &["r:1/1h", "r:nonsense"]), "allowed []"),
            (who("nothing", &["r:1/1h"]), "429 []"),
            (pro(&[]), "allowed [5/1m 7/24h]"),
            (who("bob", &[]), "Forbidden: the token carries no rate"),
            (who("carl", &["x"]), "Forbidden: the token carries no rate"),
            (who("dora", &["r:fast"]), "429 [fast 5/1m]"),
            (who("emil", &["r:6/1m"]), "allowed [5/1m 6/1m]"),
        ],
    );
    let spares = "callers: { rules: [{ when: { claim.plan: pro }, vouch: [9/1h] }, { ceiling: { rates: [5/1m], unrestricted: leave } }] }";
    check(
        spares,
        &[
            (who("a", &[]), "allowed []"),
            (who("b", &["r:1/1m"]), "allowed [1/1m 5/1m]"),
            (pro(&[]), "allowed [5/1m 9/1h]"),
        ],
    );
    // A ceiling is nothing that a token carries.
    let ceiling_first =
        "callers: { rules: [{ ceiling: 5/1m }, { vouch: 9/1h }, { when: { principal: x }, require_rate: true }] }";
    check(ceiling_first, &[(who("a", &[]), "allowed [5/1m 9/1h]"), (who("x", &[]), "allowed [5/1m 9/1h]")]);
}

#[test]
fn who_needs_no_token() {
    let nobody = |path: &str| json!({"claims": null, "path": path});
    let rules = "
token:
  prefixes: [\"r:\"]
  missing: { allow_when: { path: [/login, /public/**], not: { method: DELETE } } }
callers:
  rules: [{ when: { token: missing }, override: [2/1h] }]
";
    let delete = json!({"claims": null, "path": "/login", "method": "DELETE"});
    check(
        rules,
        &[
            (nobody("/login"), "allowed [2/1h]"),
            (nobody("/public/x"), "allowed [2/1h]"),
            (nobody("/login"), "429 after 1800s [2/1h]"),
            (nobody("/other"), "Unauthenticated(MissingToken)"),
            (delete, "Unauthenticated(MissingToken)"),
            (json!({"claims": "expired", "path": "/login"}), "Unauthenticated(FailedToken)"),
            (
                json!({"claims": {"sub": 1.5}, "path": "/login"}),
                "Forbidden: the principal claim sub is another number; want a non-empty string, or an integer from 0 to 2^53-1",
            ),
            (json!({"path": "/other"}), "allowed []"),
        ],
    );
    let absent = "token: { prefixes: [\"r:\"], missing: allow }\ncallers: { rules: [{ when: { principal: \"*\" }, unrestricted: true }, { deny: no name }] }";
    check(absent, &[(nobody("/"), "Forbidden: no name"), (json!({}), "allowed []")]);
}

#[test]
fn costs() {
    let rules = "
costs:
  - { when: { path: /look }, cost: 0 }
  - { when: { path: /export }, cost: 10 }
  - { when: { path: /context }, cost: { from: context.cost, default: 3, max: 20 } }
  - { when: { path: /trusted }, cost: { from: header.X-Cost, trusted: true } }
  - { when: { path: /header }, cost: { from: header.x-cost, default: 2, max: 20 } }
";
    let engine = engine(rules);
    let remaining = |request: Value| {
        let mut request = request;
        request["claims"] = json!({"sub": request.to_string(), "capabilities": ["r:50/1m"]});
        let calls = (1..=51).take_while(|_| decide(&engine, &request).starts_with("allowed")).count();
        let last = decide(&engine, &request);
        (calls, last.split(' ').take(3).collect::<Vec<_>>().join(" "))
    };
    let header = |path: &str, value: &str| json!({"path": path, "headers": {"x-cost": value}});
    let context = |value: &str| json!({"path": "/context", "context": {"cost": value}});
    for (request, calls) in [
        (json!({"path": "/look"}), 51),
        (json!({"path": "/export"}), 5),
        (json!({"path": "/other"}), 50),
        (context("5"), 10),
        (context("25"), 2),
        (context("18446744073709551616"), 2),
        (json!({"path": "/context"}), 16),
        (context("-1"), 16),
        (context("5 "), 16),
        (context(""), 16),
        (header("/trusted", "0"), 51),
        (header("/trusted", "99"), 0),
        (header("/trusted", "x"), 50),
        (header("/header", "0"), 25),
        (header("/header", "5"), 10),
        (header("/header", "1000"), 2),
    ] {
        assert_eq!(remaining(request.clone()).0, calls, "{request}");
    }
    assert_eq!(remaining(header("/trusted", "99")), (0, "429 [50/1m]".into()), "what never fits has no wait");
    let counted = engine.policy().counts.read();
    assert_eq!(counted, Counted { missing_costs: 18 * 4 + 52, unknown_clients: 0 });
}

#[test]
fn a_preflight_is_let_through_unless_it_is_to_be_checked() {
    let preflight = |drop: &str| {
        let mut headers = json!({"origin": "https://app", "access-control-request-method": "PUT"});
        headers.as_object_mut().unwrap().remove(drop);
        json!({"claims": null, "method": "OPTIONS", "path": "/a%2Fb", "headers": headers})
    };
    let get = json!({"claims": null, "method": "GET", "headers": preflight("")["headers"]});
    let missing = "Unauthenticated(MissingToken)";
    check(
        "",
        &[
            (preflight(""), "allowed []"),
            (preflight("origin"), missing),
            (preflight("access-control-request-method"), missing),
            (get, missing),
        ],
    );
    check("token: { prefixes: [\"r:\"], preflight: check }", &[(preflight(""), missing)]);
    let paths = "callers: { rules: [{ when: { path: /x }, deny: x }] }";
    check(paths, &[(preflight(""), "BadRequest: the path holds an encoded slash")]);
    check(
        &format!("mode: observe\n{paths}"),
        &[(preflight(""), "allowed [], observed BadRequest: the path holds an encoded slash")],
    );
}

#[test]
fn a_path_matters_only_where_a_rule_asks_for_it() {
    let odd = json!({"path": "/a%2Fb", "claims": null});
    check("", &[(odd.clone(), "Unauthenticated(MissingToken)")]);
    let asked = "Unauthenticated(MissingToken)";
    let unsafe_path = "BadRequest: the path holds an encoded slash";
    for rules in [
        "callers: { rules: [{ when: { not: { path: /x } }, deny: x }] }",
        "costs: [{ when: { path: /x }, cost: 2 }]",
        "token: { prefixes: [\"r:\"], missing: { allow_when: { path: /x } } }",
    ] {
        check(rules, &[(odd.clone(), unsafe_path)]);
        check(&format!("{rules}\npaths: {{ encoded_slash: literal }}"), &[(odd.clone(), asked)]);
    }
    let literal = "paths: { encoded_slash: literal }\ncallers: { rules: [{ when: { path: \"/a%2Fb\" }, deny: hit }] }";
    check(literal, &[(json!({"path": "/a%2fb"}), "Forbidden: hit"), (json!({"path": "/a/b"}), "allowed []")]);
}

/// A host that an application may take for another one than a rule does.
#[test]
fn a_host_of_several_readings_is_refused_where_a_rule_asks_for_it() {
    let rules = "callers: { rules: [{ when: { host: admin.example.com }, deny: hit }] }";
    let hosts = [
        "u@admin.example.com",
        "admin.example.com..",
        "admin.example.com:80:80",
        "admin.example.com:+80",
        "admin%2eexample.com",
        "x,admin.example.com",
        ".admin.example.com",
        "admin..example.com",
        "admin.example.com/",
        "::1",
        "[::1",
        "[x]",
    ];
    let engine = engine(rules);
    for host in hosts {
        let said = decide(&engine, &json!({ "host": host }));
        assert_eq!(said, "BadRequest: the host can be read in several ways", "{host}");
    }
    check(
        rules,
        &[(json!({"host": "admin.example.com:"}), "Forbidden: hit"), (json!({"host": "x_1.example"}), "allowed []")],
    );
}

#[test]
fn a_client_that_cannot_be_told() {
    let rules =
        |client: &str| format!("callers: {{ rules: [{{ when: {{ client: 10.0.0.0/8 }}, deny: hit }}] }}\n{client}");
    let told = json!({"client": "10.0.0.1", "peer": "192.0.2.1"});
    let peer = |peer: &str| json!({"client": "unknown", "peer": peer});
    let unavailable = "Unavailable(Client)";
    check(&rules(""), &[(told.clone(), "Forbidden: hit"), (peer("10.0.0.1"), unavailable), (json!({}), unavailable)]);
    check(
        &rules("client: { on_missing: peer }"),
        &[(told.clone(), "Forbidden: hit"), (peer("10.0.0.1"), "Forbidden: hit"), (peer(""), unavailable)],
    );
    check(
        &rules("client: { address: peer }"),
        &[(told, "allowed []"), (peer("10.0.0.1"), "Forbidden: hit"), (peer("x"), unavailable)],
    );
    let proxies = |more: &str| {
        rules(&format!("client: {{ trusted_proxies: 192.0.2.0/24, trusted_header: x_forwarded_for{more} }}"))
    };
    let from = |peer: &str, header: &str| json!({"client": "10.0.0.1", "peer": peer, "headers": {"x-forwarded-for": header, "forwarded": "for=10.0.0.1"}});
    check(
        &proxies(""),
        &[
            (from("192.0.2.1", "10.0.0.1"), "Forbidden: hit"),
            (from("192.0.2.1", "10.0.0.1, 203.0.113.9"), "allowed []"),
            (from("203.0.113.9", "10.0.0.1"), "allowed []"),
            (from("10.0.0.1", "203.0.113.9"), "Forbidden: hit"),
            (from("192.0.2.1", "unknown"), unavailable),
            (from("", "10.0.0.1"), unavailable),
        ],
    );
    let proxies = engine(&proxies(", on_missing: peer"));
    assert_eq!(decide(&proxies, &from("192.0.2.1", "10.0.0.1, unknown")), "allowed []");
    assert_eq!(proxies.policy().counts.read(), Counted { missing_costs: 0, unknown_clients: 1 });
    let engine = engine(&rules("client: { on_missing: peer }"));
    decide(&engine, &peer("10.0.0.1"));
    assert_eq!(engine.policy().counts.read(), Counted { missing_costs: 0, unknown_clients: 1 });
}

#[test]
fn observing_everything_excuses_no_identity() {
    let rules = "mode: observe\ncallers: { rules: [{ when: { principal: mallory }, deny: closed }, { when: { path: /x }, deny: x }] }";
    check(
        rules,
        &[
            (who("mallory", &[]), "allowed [], observed Forbidden: closed"),
            (who("bob", &["r:1/1h"]), "allowed [1/1h]"),
            (who("bob", &["r:1/1h"]), "allowed [], observed 429 after 3600s [1/1h]"),
            (who("carl", &["r:x"]), "allowed [], observed 429 [x]"),
            (
                json!({"path": "/%"}),
                "allowed [], observed BadRequest: the path holds a percent sign without two hexadecimal digits behind it",
            ),
            (
                json!({"path": "/%", "claims": null}),
                "Unauthenticated(MissingToken), observed BadRequest: the path holds a percent sign without two hexadecimal digits behind it",
            ),
            (json!({"claims": null}), "Unauthenticated(MissingToken)"),
            (json!({"claims": "expired"}), "Unauthenticated(FailedToken)"),
            (
                json!({"claims": {"capabilities": 1}}),
                "Forbidden: the capabilities claim capabilities is a number; want a list of strings, or one space-separated string",
            ),
        ],
    );
}

#[test]
fn a_rule_that_is_observed_refuses_nobody() {
    let rules = "
callers:
  rules:
    - { when: { principal: mallory }, deny: closed, mode: observe }
    - { when: { principal: partner }, override: [2/1h], mode: observe }
    - { when: { principal: strict }, deny: really }
    - { when: { principal: vouched }, vouch: [1/1h], mode: observe }
    - { when: { principal: kept }, vouch: [9/1h] }
    - { when: { not: { principal: poor } }, require_rate: true, mode: observe }
    - { ceiling: [1/1m], mode: observe }
    - { when: { principal: \"z*\" }, ceiling: [3/1m] }
";
    check(
        rules,
        &[
            (who("mallory", &["r:5/1m"]), "allowed [5/1m], observed Forbidden: closed"),
            (who("strict", &[]), "Forbidden: really"),
            (who("bob", &[]), "allowed [], observed Forbidden: the token carries no rate"),
            (who("vouched", &[]), "allowed []"),
            (who("vouched", &[]), "allowed [], observed 429 after 3600s [1/1m 1/1h]"),
            (who("kept", &[]), "allowed [9/1h]"),
            (who("kept", &[]), "allowed [9/1h], observed 429 after 60s [1/1m]"),
            (who("poor", &[]), "allowed []"),
            (who("poor", &[]), "allowed [], observed 429 after 60s [1/1m]"),
            (who("zoe", &["r:2/1h"]), "allowed [3/1m 2/1h]"),
            (who("zoe", &["r:2/1h"]), "allowed [3/1m 2/1h], observed 429 after 60s [1/1m]"),
            (who("zoe", &["r:2/1h"]), "429 after 1800s [3/1m 2/1h]"),
            (who("partner", &["r:5/1h"]), "allowed [5/1h]"),
            (who("partner", &["r:5/1h"]), "allowed [5/1h]"),
            (who("partner", &["r:5/1h"]), "allowed [5/1h], observed 429 after 1800s [2/1h]"),
        ],
    );
}

/// What only an observed rule asks for refuses nobody, and what an unrelated rule lacks excuses no less.
#[test]
fn what_observed_rules_lack_refuses_nobody() {
    let observed = "
callers:
  rules:
    - { when: { path: /admin/** }, deny: admin, mode: observe }
    - { when: { client: 10.0.0.0/8 }, deny: network, mode: observe }
";
    let unsafe_path = "allowed [], observed BadRequest: the path holds an encoded slash";
    check(
        observed,
        &[
            (json!({"path": "/a%2Fb", "client": "192.0.2.1"}), unsafe_path),
            (json!({"path": "/a"}), "allowed [], observed Unavailable(Client)"),
            (json!({"path": "/admin/x", "client": "192.0.2.1"}), "allowed [], observed Forbidden: admin"),
            (json!({"path": "/a", "client": "192.0.2.1"}), "allowed []"),
        ],
    );
    let limited = "
limits: [{ name: admin, when: { path: /admin/** }, key: [], rate: 1/1h, mode: observe }]
lockouts: [{ name: inside, when: { client: 10.0.0.0/8 }, key: [], threshold: 1, window: 1h, mode: observe }]
";
    check(
        limited,
        &[
            (json!({"path": "/a%2Fb", "client": "192.0.2.1"}), unsafe_path),
            (json!({"path": "/a"}), "allowed [], observed Unavailable(Client)"),
            (json!({"path": "/a", "client": "192.0.2.1"}), "allowed []"),
        ],
    );
    // It spends nothing there.
    let ceiling = "callers: { rules: [{ when: { not: { path: /x } }, ceiling: [1/1h], mode: observe }] }";
    check(
        ceiling,
        &[
            (json!({"path": "/a%2Fb"}), unsafe_path),
            (json!({"path": "/a"}), "allowed []"),
            (json!({"path": "/a"}), "allowed [], observed 429 after 3600s [1/1h]"),
        ],
    );
    // Where a caller stands in for the client, nothing asks for that.
    let either = "
limits: [{ name: either, key: { first_of: [principal, client.network] }, rate: 9/1h }]
callers: { rules: [{ when: { principal: mallory }, deny: closed, mode: observe }] }
";
    check(
        either,
        &[(who("alice", &[]), "allowed []"), (who("mallory", &[]), "allowed [], observed Forbidden: closed")],
    );
    let excused = "
mode: observe
token: { prefixes: [\"r:\"], missing: { allow_when: { path: /healthz } } }
callers: { rules: [{ when: { client: 10.0.0.0/8 }, deny: network }] }
";
    let nobody = |path: &str| json!({"claims": null, "path": path});
    let but_admin = "
mode: observe
token: { prefixes: [\"r:\"], missing: { allow_when: { not: { path: /admin/** } } } }
";
    check(
        but_admin,
        &[
            (nobody("/x"), "allowed []"),
            (nobody("/admin/x"), "Unauthenticated(MissingToken)"),
            (nobody("/x;/../admin"), "Unauthenticated(MissingToken), observed BadRequest: the path holds a semicolon"),
        ],
    );
    check(
        excused,
        &[
            (nobody("/healthz"), "allowed [], observed Unavailable(Client)"),
            (nobody("/other"), "Unauthenticated(MissingToken), observed Unavailable(Client)"),
            (
                nobody("/healthz%2F"),
                "Unauthenticated(MissingToken), observed BadRequest: the path holds an encoded slash",
            ),
        ],
    );
}

/// The rules that an index leaves out are those that do not apply: with and without it, the first that applies is the
/// same, for rules of every kind of pattern.
#[test]
fn an_index_changes_nothing() {
    let names = ["a", "ab", "abc", "b", "ba", "*"];
    let patterns = ["a", "ab", "a*", "ab*", "*b", "*", "b*a", "[a, b*]", "[\"*c\", a]", "'\\*'"];
    let quoted = |text: &str| if text.starts_with(['*']) { format!("\"{text}\"") } else { text.to_owned() };
    let mut rules = Vec::new();
    for (number, first) in patterns.iter().enumerate() {
        for second in [
            "method: GET",
            "path: /a/**",
            "path: [/b, \"/*/c\"]",
            "header.x: \"a*\"",
            "claim.plan: a",
            "not: { method: PUT }",
        ] {
            rules.push((format!("{{ principal: {}, {second} }}", quoted(first)), format!("{number} {second}")));
        }
    }
    let all = rules
        .iter()
        .map(|(when, name)| format!("{{ when: {when}, deny: '{}' }}", name.replace('\'', "")))
        .collect::<Vec<_>>();
    let whole = engine(&format!("callers: {{ rules: [{}] }}", all.join(", ")));
    let singles: Vec<Engine> = all.iter().map(|rule| engine(&format!("callers: {{ rules: [{rule}] }}"))).collect();
    for name in names {
        for path in ["/", "/a", "/a/b", "/b", "/a/c", "/x/c"] {
            for method in ["GET", "PUT"] {
                let request = json!({"claims": {"sub": name, "plan": path.trim_matches('/')}, "path": path, "method": method, "headers": {"x": name}});
                let alone = singles.iter().map(|engine| decide(engine, &request)).find(|said| said != "allowed []");
                assert_eq!(decide(&whole, &request), alone.unwrap_or("allowed []".into()), "{request}");
            }
        }
    }
}

#[test]
fn an_engine_sweeps_what_it_observes() {
    let engine = engine("callers: { rules: [{ ceiling: [1/1m], mode: observe }] }");
    decide(&engine, &json!({}));
    engine.sweep();
    assert_eq!(decide(&engine, &json!({})), "allowed [], observed 429 after 60s [1/1m]");
}
