//! What clients are told of their quotas: the headers of each style, read by another structured-field parser, and the
//! refusals that tell nothing.

use crate::identity::object;
use proptest::prelude::*;
use serde_json::{Value, json};
use sfv::{List, ListEntry, Parser};
use std::sync::Arc;
use std::time::Duration;
use tollgate::ManualClock;
use tollgate::answer::{Answer, ResponseRules};
use tollgate::config::Config;
use tollgate::engine::Engine;
use tollgate::request::Request;

/// 2800 seconds before a full hour.
const EPOCH: u64 = 1_700_000_000;

const TOKEN: &str = "token: { prefixes: [\"r:\"] }\ncallers: { window_bounds: off }\n";

const LIMITS: &str = r"
limits:
  - { name: api, key: principal, rate: 10/1s, burst: 100, advertise: true }
  - { name: hidden, key: [], rate: 1000/1h }
  - { name: watched, key: [], rate: 1/1h, advertise: true, mode: observe }
  - { name: hour, key: [], rate: 100/1h, window: fixed, advertise: true }
costs:
  - { when: { path: /look }, cost: 0 }
";

struct Bench {
    engine: Engine,
    response: ResponseRules,
    clock: Arc<ManualClock>,
}

impl Bench {
    fn new(yaml: &str) -> Self {
        let config =
            Config::parse("tollgate.yaml", &format!("{TOKEN}{yaml}")).unwrap_or_else(|error| panic!("{error}"));
        let clock = Arc::new(ManualClock::default());
        clock.set_calendar(Duration::from_secs(EPOCH));
        let engine = Engine::new(config.token, config.prefixes, config.policy, Arc::clone(&clock));
        Self { engine, response: config.response, clock }
    }

    /// The status, headers and body of a request for `path` at `at` nanoseconds by a token with these claims.
    fn ask(&self, at: u64, path: &str, claims: &Value) -> (u16, Vec<(String, String)>, String) {
        self.clock.set(Duration::from_nanos(at));
        let token = if claims.is_null() { json!({}) } else { json!({"jwt_payload": claims}) };
        let metadata = json!({"envoy.filters.http.jwt_authn": token});
        let request =
            Request { method: b"GET", path: path.as_bytes(), metadata: object(&metadata), ..Request::default() };
        let decision = self.engine.check(&request, &self.engine.token().identify(&request));
        match self.response.answer(&decision, request.protocol(), || self.engine.calendar()) {
            Answer::Allow { headers, .. } => (200, headers, String::new()),
            Answer::Refuse { status, headers, body, .. } => (status, headers, body),
        }
    }
}

fn caller(name: &str, rates: &[&str]) -> Value {
    let rates: Vec<String> = rates.iter().map(|rate| format!("r:{rate}")).collect();
    json!({"sub": name, "capabilities": rates})
}

fn quotas(headers: &[(String, String)]) -> Vec<String> {
    headers
        .iter()
        .filter(|(name, _)| name.contains("ratelimit"))
        .map(|(name, value)| format!("{name}: {value}"))
        .collect()
}

/// The names in a list of a structured field, each with its integers.
fn parsed(field: &str) -> Vec<(String, Vec<(String, i64)>)> {
    let list: List = Parser::new(field).parse().unwrap_or_else(|error| panic!("{error}: {field}"));
    let item = |entry: &ListEntry| {
        let ListEntry::Item(item) = entry else { panic!("{entry:?}") };
        let number = |value: &sfv::BareItem| value.as_integer().unwrap().into();
        let parameters = item.params.iter().map(|(key, value)| (key.to_string(), number(value)));
        (item.bare_item.as_string().unwrap().to_string(), parameters.collect())
    };
    list.iter().map(item).collect()
}

/// A request, its status, and the values of its headers in each style: two of ietf-10, three of ietf-03, and the reset of
/// x-ratelimit as Unix time.
type Step = (u64, &'static str, Value, u16, [&'static str; 2], [&'static str; 3], &'static str);

fn steps() -> Vec<Step> {
    let alice = || caller("alice", &["5/1m"]);
    let policy = r#""api";q=100;w=10, "hour";q=100;w=3600, "5/1m";q=5;w=60"#;
    let limits = r#""api";q=100;w=10, "hour";q=100;w=3600"#;
    let three = r#""api";q=100;w=10, "hour";q=100;w=3600, "2/1s";q=2;w=1, "5/1m";q=5;w=60"#;
    let none = ([""; 2], [""; 3], "");
    vec![
        // Everything is full: nothing comes back.
        (0, "/look", alice(), 200, [policy, r#""api";r=100, "hour";r=100, "5/1m";r=5"#], ["5", "5", "0"], "1700000000"),
        (
            0,
            "/",
            alice(),
            200,
            [policy, r#""api";r=99;t=1, "hour";r=99;t=2800, "5/1m";r=4;t=12"#],
            ["5", "4", "12"],
            "1700000012",
        ),
        // A caller without a rate is told of limits alone, and of none that is hidden or only observed; of two with as
        // many units left the one that takes longer counts.
        (
            0,
            "/",
            caller("bob", &[]),
            200,
            [limits, r#""api";r=99;t=1, "hour";r=98;t=2800"#],
            ["100", "98", "2800"],
            "1700002800",
        ),
        // Several rates; a part of a second is rounded up.
        (
            500_000_001,
            "/",
            caller("alice", &["2/1s"]),
            200,
            [three, r#""api";r=99;t=1, "hour";r=97;t=2800, "2/1s";r=1;t=1, "5/1m";r=3;t=12"#],
            ["2", "1", "1"],
            "1700000001",
        ),
        (
            500_000_001,
            "/",
            caller("alice", &["2/1s"]),
            200,
            [three, r#""api";r=98;t=1, "hour";r=96;t=2800, "2/1s";r=0;t=1, "5/1m";r=2;t=12"#],
            ["2", "0", "1"],
            "1700000002",
        ),
        // Refused, by the caller's rate; what is told is what was left.
        (
            500_000_001,
            "/",
            alice(),
            429,
            [three, r#""api";r=98;t=1, "hour";r=96;t=2800, "2/1s";r=0;t=1, "5/1m";r=2;t=12"#],
            ["2", "0", "1"],
            "1700000002",
        ),
        // A zero rate, a missing token and an unusable one: nothing.
        (600_000_000, "/", caller("alice", &["x"]), 429, none.0, none.1, none.2),
        (600_000_000, "/", Value::Null, 401, none.0, none.1, none.2),
        (600_000_000, "/", json!({"sub": 1.5}), 403, none.0, none.1, none.2),
        // The next hour starts on the second.
        (
            2_800_000_000_000,
            "/",
            caller("carol", &[]),
            200,
            [limits, r#""api";r=99;t=1, "hour";r=99;t=3600"#],
            ["100", "99", "3600"],
            "1700006400",
        ),
    ]
}

#[test]
fn every_style() {
    let bench = |style: &str| Bench::new(&format!("response: {{ ratelimit_headers: {style} }}\n{LIMITS}"));
    let styles = ["off", "ietf-10", "ietf-03", "x-ratelimit", "x-ratelimit, x_ratelimit_reset: seconds"].map(bench);
    for (at, path, claims, status, [policy, state], [limit, remaining, reset], unix) in steps() {
        let told = styles.each_ref().map(|bench| {
            let (told, headers, _) = bench.ask(at, path, &claims);
            assert_eq!(told, status, "{claims} at {at}");
            quotas(&headers)
        });
        let three = |prefix: &str, reset: &str| {
            let lines = [("limit", limit), ("remaining", remaining), ("reset", reset)];
            lines.map(|(name, value)| format!("{prefix}-{name}: {value}")).to_vec()
        };
        let expected = [
            vec![],
            vec![format!("ratelimit-policy: {policy}"), format!("ratelimit: {state}")],
            three("ratelimit", reset),
            three("x-ratelimit", unix),
            three("x-ratelimit", reset),
        ];
        let expected = if policy.is_empty() { Default::default() } else { expected };
        assert_eq!(told, expected, "{claims} at {at}");
        if !policy.is_empty() {
            let names = |field| parsed(field).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
            assert_eq!(names(policy), names(state));
        }
    }
}

/// Limits that are charged at entry are told of whatever becomes of the request, and one that is charged twice once.
#[test]
fn what_is_charged_at_entry_is_told() {
    let yaml = "response: { ratelimit_headers: ietf-10 }
limits:
  - { name: front, key: [], rate: 10/1s, advertise: true, charge: entry }
  - { name: both, key: [], rate: 6/1h, advertise: true, charge: { entry: 1 } }
costs: [{ cost: 2 }]
";
    let bench = Bench::new(yaml);
    let cases = [
        (Value::Null, 401, r#""front";r=8;t=1, "both";r=5;t=600"#),
        (caller("alice", &["3/1m"]), 200, r#""front";r=6;t=1, "both";r=3;t=600, "3/1m";r=1;t=20"#),
        (caller("alice", &["3/1m"]), 429, r#""front";r=4;t=1, "both";r=2;t=600, "3/1m";r=1;t=20"#),
    ];
    for (claims, status, state) in cases {
        let (told, headers, _) = bench.ask(0, "/", &claims);
        let headers = quotas(&headers);
        assert_eq!((told, headers.last()), (status, Some(&format!("ratelimit: {state}"))), "{headers:?}");
    }
}

#[test]
fn a_problem_names_the_quota_as_the_headers_do() {
    let yaml = "limits: [{ name: api, key: [], rate: 1/1m, advertise: true, when: { path: /api } }]\n";
    let bench = Bench::new(&format!("response: {{ ratelimit_headers: ietf-10 }}\n{yaml}"));
    let cases = [
        ("/api", caller("a", &[]), "api", "1/1m"),
        ("/", caller("b", &["1/1m"]), "1/1m", "1/1m"),
        ("/", caller("c", &["1/5µs"]), "1/5us", "1/5µs"),
    ];
    for (path, claims, name, rate) in cases {
        assert_eq!(bench.ask(0, path, &claims).0, 200);
        let (status, headers, body) = bench.ask(0, path, &claims);
        let wait = headers.iter().find(|(name, _)| name == "retry-after").unwrap().1.clone();
        let expected = json!({
            "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
            "title": "Too Many Requests", "status": 429, "violated-policies": [name],
            "detail": format!("The rate {rate} is exceeded. Retry after {wait} s."),
        });
        assert_eq!((status, serde_json::from_str::<Value>(&body).unwrap()), (429, expected));
        let state = headers.iter().find(|(name, _)| name == "ratelimit").unwrap();
        assert_eq!(parsed(&state.1), [(name.to_owned(), vec![("r".into(), 0), ("t".into(), wait.parse().unwrap())])]);
    }
}

/// Refusals by limits that are not advertised: at entry or with the caller's rates, whatever the rate, beside one that
/// is advertised, for a caller with rates of its own; for want of units, or because they never fit.
#[test]
fn hidden_limits_refuse_alike() {
    let limits = r"
limits:
  - { name: open, key: [], rate: 1000/1h, advertise: true }
  - { name: a, key: [], rate: 1/1m, when: { path: [/a, /a/dear] }, charge: entry }
  - { name: b, key: [], rate: 9/9m, burst: 1, when: { path: [/b, /b/dear] } }
  - { name: c, key: [], rate: 1440/24h, burst: 1, when: { path: [/c, /c/dear] } }
costs: [{ when: { path: '/*/dear' }, cost: 2 }]
";
    for style in ["off", "ietf-10", "ietf-03", "x-ratelimit"] {
        for body in ["problem", "json", "text", "none"] {
            let response = format!("response: {{ ratelimit_headers: {style}, body: {body}, expose_headers: true }}\n");
            let bench = Bench::new(&format!("{response}{limits}"));
            let mut answers = Vec::new();
            for path in ["/a", "/b", "/c"] {
                let who = caller(path, &["5/1m"]);
                assert_eq!(bench.ask(0, path, &who).0, 200);
                answers.push([bench.ask(0, path, &who), bench.ask(0, &format!("{path}/dear"), &who)]);
            }
            let [refused, never] = &answers[0];
            assert!(answers.iter().all(|other| other == &answers[0]), "{answers:?}");
            assert_eq!((refused.0, never.0, quotas(&refused.1), quotas(&never.1)), (429, 429, vec![], vec![]));
            let later = bench.ask(1_000_000_000, "/b", &caller("/b", &["5/1m"]));
            let told = format!("{later:?}").replace("59", "60");
            assert_eq!(told, format!("{refused:?}"), "only the wait differs");
        }
    }
}

const EXPOSE: &str = "access-control-expose-headers";

#[test]
fn what_scripts_may_read_is_what_the_answer_has() {
    let cases = [
        ("ietf-10", "ratelimit-policy, ratelimit"),
        ("ietf-03", "ratelimit-limit, ratelimit-remaining, ratelimit-reset"),
        ("x-ratelimit", "x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset"),
    ];
    for (style, names) in cases {
        for (is_on, switch) in [(true, "expose_headers: true"), (false, "expose_headers: false")] {
            let bench =
                Bench::new(&format!("response: {{ ratelimit_headers: {style}, {switch}, warning_header: X-W }}"));
            let exposed = |claims: &Value| {
                let (_, headers, _) = bench.ask(0, "/", claims);
                headers.into_iter().find(|(name, _)| name == EXPOSE).map(|(_, value)| value)
            };
            let who = caller("alice", &["x", "1/1m", "y"]);
            let expected = [
                Some(format!("x-w, {names}")),
                Some(format!("x-w, {names}, retry-after")),
                Some(format!("{names}, retry-after")),
                None,
                None,
            ];
            let plain = caller("alice", &["1/1m"]);
            let told =
                [exposed(&who), exposed(&who), exposed(&plain), exposed(&caller("bob", &[])), exposed(&Value::Null)];
            assert_eq!(told, if is_on { expected } else { Default::default() }, "{style}");
        }
    }
}

#[test]
fn where_everything_is_observed_nothing_is_told() {
    let rules = "mode: observe\nresponse: { ratelimit_headers: ietf-10, expose_headers: true }\n";
    let bench = Bench::new(&format!("{rules}{LIMITS}"));
    for _ in 0..2 {
        assert_eq!(bench.ask(0, "/", &caller("a", &["1/1m"])), (200, vec![], String::new()));
    }
}

/// Numbers that a structured field cannot hold, and more rates than an answer has room for.
#[test]
fn large_numbers_and_many_rates() {
    let bench = Bench::new("response: { ratelimit_headers: ietf-10 }");
    let field = |headers: &[(String, String)], name: &str| {
        parsed(&headers.iter().find(|header| header.0 == name).unwrap().1)
            .into_iter()
            .map(|item| item.1)
            .collect::<Vec<_>>()
    };
    let (_, headers, _) = bench.ask(0, "/", &caller("a", &["9223372036854775807/2562047h", "1/1ms"]));
    let most = 999_999_999_999_999;
    let with = |name: &str, value: i64| (name.to_owned(), value);
    assert_eq!(
        field(&headers, "ratelimit-policy"),
        [[with("q", 1), with("w", 1)], [with("q", most), with("w", 9_223_369_200)]]
    );
    assert_eq!(field(&headers, "ratelimit"), [[with("r", 0), with("t", 1)], [with("r", most), with("t", 1)]]);

    let rates: Vec<String> = (1..=40).map(|count| format!("{}/1h", 2 * count)).collect();
    let rates: Vec<&str> = rates.iter().map(String::as_str).collect();
    let (_, headers, _) = bench.ask(0, "/", &caller("b", &rates));
    let left: Vec<i64> = field(&headers, "ratelimit").iter().map(|item| item[0].1).collect();
    assert_eq!(left, (1..=32).map(|count| 2 * count - 1).collect::<Vec<_>>());
}

/// A rate that windows of some seconds make interesting: its count, its window in milliseconds, and its burst.
fn rate() -> impl Strategy<Value = (u64, u64, u64)> {
    (1..20_u64, 1..90_000_u64, 1..30_u64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Waiting `t` seconds gives one unit more and a second less does not; after the reset all is there.
    #[test]
    fn what_is_told_is_right(
        (count, window, burst) in rate(),
        (of_caller, of_caller_window, _) in rate(),
        requests in prop::collection::vec(0..2_000_u64, 1..12),
    ) {
        let limits = format!(
            "limits:\n  - {{ name: roll, key: [], rate: {count}/{window}ms, burst: {burst}, advertise: true }}\n\
             \x20 - {{ name: fix, key: [], rate: {count}/1m, window: fixed, advertise: true }}\n\
             costs: [{{ when: {{ path: /look }}, cost: 0 }}]\n"
        );
        let claims = caller("a", &[&format!("{of_caller}/{of_caller_window}ms")]);
        // A clock does not run backwards, so each look is one at a fresh engine that saw the same.
        let headers = |style: &str, seconds: u64| {
            let bench = Bench::new(&format!("response: {{ ratelimit_headers: {style} }}\n{limits}"));
            let mut now = 0;
            for pause in &requests {
                now += pause * 1_000_000;
                bench.ask(now, "/", &claims);
            }
            bench.ask(now + seconds * 1_000_000_000, "/look", &claims).1
        };
        let look = |seconds: u64| -> Vec<(i64, Option<i64>)> {
            let headers = headers("ietf-10", seconds);
            let values = parsed(&headers.iter().find(|(name, _)| name == "ratelimit").unwrap().1);
            values.into_iter().map(|(_, of)| (of[0].1, of.get(1).map(|t| t.1))).collect()
        };
        let most = [burst.cast_signed(), count.cast_signed(), of_caller.cast_signed()];
        let told = look(0);
        for (index, (left, next)) in told.into_iter().enumerate() {
            let Some(next) = next else { prop_assert_eq!(left, most[index]); continue };
            let next = next.unsigned_abs();
            prop_assert!(next > 0 && left < most[index]);
            prop_assert!(look(next)[index].0 > left);
            prop_assert_eq!(look(next - 1)[index].0, left);
        }
        let told = headers("ietf-03", 0);
        let told: Vec<u64> = told.iter().map(|(_, value)| value.parse().unwrap()).collect();
        prop_assert!(told[1] <= told[0]);
        let fewest = look(0).iter().map(|quota| quota.0.unsigned_abs()).min().unwrap();
        prop_assert_eq!(told[1], fewest);
        let full = look(told[2]);
        prop_assert!((0..3).any(|index| full[index].0 == most[index] && most[index].unsigned_abs() == told[0]));
    }
}
