//! Lockouts and outcomes: failed tokens, attempts beside limits and rates, what becomes of them once a request ended.

use crate::asking::ask;
use envoy_types::pb::envoy::config::core::v3::Metadata;
use envoy_types::pb::envoy::data::accesslog::v3::{
    AccessLogCommon, AccessLogType, HttpAccessLogEntry, HttpResponseProperties,
};
use envoy_types::pb::envoy::service::accesslog::v3::StreamAccessLogsMessage;
use envoy_types::pb::envoy::service::accesslog::v3::stream_access_logs_message::{HttpAccessLogEntries, LogEntries};
use envoy_types::pb::google::protobuf::{Struct, UInt32Value, Value as Value_, value::Kind};
use prost::Message;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tollgate::config::Config;
use tollgate::engine::Engine;
use tollgate::envoy::access_log::settle;
use tollgate::policy::outcomes::Outcome;
use tollgate::{Decision, ManualClock, Verdict};

const HEAD: &str = "token: { prefixes: [\"r:\"], missing: allow }\nclient: { address: peer }\n";

struct Bench {
    engine: Engine,
    clock: Arc<ManualClock>,
}

/// What was decided, in short, and what the outcome is told by.
struct Asked {
    said: String,
    reservation: Option<String>,
}

impl Bench {
    /// An engine with these lockouts, and whatever else is said.
    fn new(yaml: &str) -> Self {
        let yaml = if yaml.contains("prefixes:") { yaml.to_owned() } else { format!("{HEAD}{yaml}") };
        let config = Config::parse("tollgate.yaml", &yaml).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let clock = Arc::new(ManualClock::default());
        Self { engine: Engine::new(config.token, config.prefixes, config.policy, Arc::clone(&clock)), clock }
    }

    fn at(&self, seconds: u64) -> &Self {
        self.clock.set(Duration::from_secs(seconds));
        self
    }

    fn ask(&self, request: &Value) -> Asked {
        ask(&self.engine, request, &request["claims"], |decision| Asked {
            said: describe(decision),
            reservation: decision.reservation().map(ToOwned::to_owned),
        })
    }

    /// What a request is answered, which is to be let through, and its reservation.
    #[track_caller]
    fn pass(&self, request: &Value) -> String {
        let asked = self.ask(request);
        assert!(asked.said.starts_with("200"), "{}", asked.said);
        asked.reservation.expect("a reservation")
    }

    #[track_caller]
    fn check(&self, requests: &[(Value, &str)]) {
        for (number, (request, expected)) in requests.iter().enumerate() {
            assert_eq!(self.ask(request).said, *expected, "request {number}: {request}");
        }
    }

    /// What became of an outcome, in short.
    fn settle(&self, reservation: &str, outcome: &Outcome<'_>) -> String {
        let settlement = self.engine.settle(reservation, outcome);
        let engaged = settlement.engaged.iter().map(|engaged| format!("{} engaged", engaged.lockout));
        let rules = settlement.rules.iter().map(|(rule, settled)| format!("{rule} {settled}"));
        rules.chain(engaged).chain(settlement.refused.map(|refused| refused.to_string())).collect::<Vec<_>>().join(", ")
    }

    fn end(&self, reservation: &str, status: u16) -> String {
        self.settle(reservation, &Outcome { status, ..Outcome::default() })
    }
}

fn describe(decision: &Decision<'_>) -> String {
    let by = decision.refused_by().unwrap_or("nobody").to_owned();
    let said = match decision.verdict() {
        Verdict::Allowed => "200".to_owned(),
        Verdict::RateExceeded { retry_after: Some(wait), .. } => format!("{by} {wait:?}"),
        Verdict::LockedOut { retry_after, .. } => format!("{by} locked {retry_after:?}"),
        Verdict::Denied(denial) => format!("{by} {:?}", denial.status()),
        Verdict::Unauthenticated(why) => format!("{why:?}"),
        other => format!("{other:?}"),
    };
    let engaged = decision.engaged().iter().map(|engaged| format!("{} engaged", engaged.lockout));
    let observed = decision.observed().map(|observed| format!("observed {}", describe(observed)));
    [said].into_iter().chain(engaged).chain(observed).collect::<Vec<_>>().join(", ")
}

/// A request with a token that failed with this code.
fn failed(peer: &str, code: u32) -> Value {
    json!({ "peer": peer, "claims": code })
}

fn login(peer: &str, user: &str) -> Value {
    json!({ "peer": peer, "headers": { "x-user": user } })
}

#[test]
fn failed_tokens() {
    let bench =
        Bench::new("lockouts: [{ name: bad, on: failed_token, key: client.network, threshold: 3, window: 1m }]");
    let (bad, good) = (failed("192.0.2.1", 26), json!({ "peer": "192.0.2.1", "claims": { "sub": "alice" } }));
    bench.at(0).check(&[
        (bad.clone(), "FailedToken"),
        (json!({ "peer": "192.0.2.1" }), "200"),
        (failed("192.0.2.1", 3), "FailedToken"),
        (failed("192.0.2.1", 28), "FailedToken"),
        (bad.clone(), "FailedToken, bad engaged"),
        (bad.clone(), "bad locked 60s"),
    ]);
    // The address is exhausted, and neither a neighbour nor another address is.
    bench.at(1).check(&[
        (good.clone(), "200"),
        (bad.clone(), "bad locked 59s"),
        (failed("192.0.2.2", 26), "FailedToken"),
        (json!({ "peer": "192.0.2.1", "claims": { "sub": "" } }), "nobody Forbidden"),
        (json!({ "peer": "192.0.2.1", "headers": { "authorization": "Bearer x" } }), "bad locked 59s"),
    ]);
    bench.at(60).check(&[(bad.clone(), "FailedToken")]);

    // None is no failure, also where one is needed.
    let strict = Bench::new(
        "token: { prefixes: [\"r:\"] }\nclient: { address: peer }\nlockouts: [{ name: bad, on: failed_token, key: client.network, threshold: 1, window: 1m }]",
    );
    let missing = json!({ "peer": "192.0.2.1" });
    strict.at(0).check(&[
        (missing.clone(), "MissingToken"),
        (missing, "MissingToken"),
        (bad.clone(), "FailedToken, bad engaged"),
    ]);

    // Kinds of failure, by the codes of Envoy's library.
    let of = |kinds: &str, code: u32| {
        let bench = Bench::new(&format!(
            "lockouts: [{{ name: bad, on: failed_token, failures: [{kinds}], key: [], threshold: 1, window: 1m }}]"
        ));
        bench.at(0).ask(&failed("192.0.2.1", code));
        bench.ask(&failed("192.0.2.1", code)).said.starts_with("bad")
    };
    let kinds: [(&str, &[u32]); 9] = [
        ("not_yet_valid", &[2]),
        ("expired", &[3]),
        ("malformed", &[4, 5, 12, 13, 23, 27]),
        ("issuer", &[24]),
        ("audience", &[25]),
        ("signature", &[26]),
        ("unknown_key", &[32]),
        ("key_set", &[28, 31, 33, 70]),
        ("unknown", &[0]),
    ];
    for (kind, codes) in kinds {
        for (other, others) in kinds {
            others.iter().for_each(|code| assert_eq!(of(kind, *code), codes.contains(code), "{kind}: {other} {code}"));
        }
    }

    // Windows of the calendar: so many failures in each, whenever the first was.
    let bench = Bench::new(
        "lockouts: [{ name: bad, on: failed_token, key: client.network, threshold: 2, window: 1m, window_kind: fixed }]",
    );
    bench.at(50).check(&[
        (bad.clone(), "FailedToken"),
        (bad.clone(), "FailedToken, bad engaged"),
        (bad.clone(), "bad locked 10s"),
    ]);
    bench.at(60).check(&[(bad.clone(), "FailedToken")]);
    let lasts = |decision: &Decision<'_>| decision.engaged()[0].lasts;
    assert_eq!(ask(&bench.at(75).engine, &bad, &bad["claims"], lasts), Duration::from_secs(45));
    // A clock that is set back a long way does not leave keys locked for as long.
    bench.clock.set_calendar(Duration::ZERO);
    bench.at(1_000_000).check(&[(bad.clone(), "FailedToken"), (bad.clone(), "FailedToken, bad engaged")]);
    bench.at(100).check(&[(bad.clone(), "FailedToken")]);
}

#[test]
fn failures_are_counted_together_or_not_at_all() {
    let two = "lockouts:
  - { name: tight, on: failed_token, key: client.network, threshold: 1, window: 1m }
  - { name: wide, on: failed_token, key: [], threshold: 2, window: 1h }
";
    let bad = |peer| failed(peer, 26);
    Bench::new(two).at(0).check(&[
        (bad("192.0.2.1"), "FailedToken, tight engaged"),
        (bad("192.0.2.1"), "tight locked 60s"),
        (bad("192.0.2.1"), "tight locked 60s"),
        (bad("192.0.2.2"), "FailedToken, tight engaged, wide engaged"),
        (bad("192.0.2.2"), "wide locked 3600s"),
        (bad("192.0.2.3"), "wide locked 3600s"),
    ]);
    // What is only observed refuses nobody; a bad identity stays one.
    let observed = two.replace("window: 1m", "window: 1m, mode: observe");
    Bench::new(&observed).at(0).check(&[
        (bad("192.0.2.1"), "FailedToken, tight engaged"),
        (bad("192.0.2.1"), "FailedToken, wide engaged, observed tight locked 60s"),
        (bad("192.0.2.1"), "wide locked 3600s"),
    ]);
    let watched = format!("{HEAD}mode: observe\n{two}");
    Bench::new(&watched).at(0).check(&[
        (bad("192.0.2.1"), "FailedToken, tight engaged"),
        (bad("192.0.2.1"), "FailedToken, observed tight locked 60s"),
    ]);
    // Who comes again pays at entry again.
    let entry = "limits: [{ name: net, key: client.network, charge: entry, rate: 1/1m, burst: 2 }]\n";
    let short = format!("{HEAD}{entry}{}", two.replace("window: 1m", "window: 10s"));
    let first = (bad("192.0.2.1"), "FailedToken, tight engaged");
    Bench::new(&short).at(0).check(&[
        first.clone(),
        (bad("192.0.2.1"), "tight locked 60s"),
        (bad("192.0.2.1"), "net 60s"),
    ]);
    let watched = format!("mode: observe\n{short}");
    Bench::new(&watched).at(0).check(&[first, (bad("192.0.2.1"), "FailedToken, observed tight locked 60s")]);
    // Where the request lacks what an observed lockout asks for, that is told, and nothing is counted.
    let by_path = "lockouts: [{ name: seen, on: failed_token, when: { not: { path: /x } }, key: [], threshold: 1, window: 1m, mode: observe }]";
    Bench::new(by_path).at(0).check(&[
        (json!({ "path": "/a%2Fb", "claims": 26 }), "FailedToken, observed paths BadRequest"),
        (json!({ "path": "/a", "claims": 26 }), "FailedToken, seen engaged"),
    ]);
    // A failure whose client cannot be told is refused all the same.
    Bench::new(two).at(0).check(&[(failed("", 26), "FailedToken"), (failed("", 26), "FailedToken, wide engaged")]);
}

/// Attempts go with limits and the caller's rates: all or none.
#[test]
fn attempts_are_taken_with_the_rest_or_not_at_all() {
    let bench = Bench::new(
        "limits: [{ name: few, key: client.network, rate: 2/1h }]
lockouts: [{ name: user, key: { header.x-user: { on_missing: skip } }, threshold: 2, window: 1m }]
",
    );
    let alice = login("192.0.2.1", "alice");
    bench.at(0).check(&[
        (alice.clone(), "200"),
        (alice.clone(), "200, user engaged"),
        (alice.clone(), "few 1800s"),
        (login("192.0.2.2", "alice"), "user locked 60s"),
        // Locked attempts spent nothing of the limit.
        (login("192.0.2.2", "bob"), "200"),
        (login("192.0.2.2", "carol"), "200"),
        (login("192.0.2.2", "carol"), "few 1800s"),
        // Refused ones were no attempts.
        (login("192.0.2.3", "carol"), "200, user engaged"),
        (json!({ "peer": "192.0.2.4" }), "200"),
    ]);

    let token = json!({ "peer": "192.0.2.1", "claims": { "sub": "a", "capabilities": ["r:2/1h"] } });
    let bench = Bench::new("lockouts: [{ name: all, key: [], threshold: 3, window: 1m }]");
    bench.at(0).check(&[
        (token.clone(), "200"),
        (token.clone(), "200"),
        (token.clone(), "callers 1800s"),
        (json!({}), "200, all engaged"),
        (token.clone(), "callers 1800s"),
    ]);
    // The longest wait is told, and a preflight is no attempt.
    bench.at(1800 - 1).check(&[(token.clone(), "callers 1s")]);
    let preflight =
        json!({ "method": "OPTIONS", "headers": { "origin": "a", "access-control-request-method": "PUT" } });
    bench.at(7200).check(&[
        (json!({}), "200"),
        (preflight.clone(), "200"),
        (json!({}), "200"),
        (json!({}), "200, all engaged"),
        (preflight, "200"),
        (json!({}), "all locked 60s"),
    ]);

    let refuse = "lockouts: [{ name: user, key: { header.x-user: { on_missing: refuse } }, threshold: 2, window: 1m }]";
    Bench::new(refuse).at(0).check(&[(json!({}), "user BadRequest"), (login("", &"x".repeat(256)), "user BadRequest")]);
    let observe = refuse.replace("window: 1m", "window: 1m, mode: observe");
    Bench::new(&observe).at(0).check(&[
        (json!({}), "200, observed user BadRequest"),
        (login("", "a"), "200"),
        (login("", "a"), "200, user engaged"),
        (login("", "a"), "200, observed user locked 60s"),
    ]);
}

const LOGIN: &str = "lockouts:
  - name: login
    key: { header.x-user: { on_missing: refuse } }
    threshold: 3
    window: 15m
    outcome: { reset: [\"2xx\", grpc.ok], cancel: [\"5xx\", aborted, grpc.unavailable, header.x-busy], count: [501] }
";

#[test]
fn what_outcomes_do() {
    let effect = |request: &Value, outcome: &Outcome<'_>| {
        let bench = Bench::new(LOGIN);
        let reservation = bench.at(0).pass(request);
        bench.settle(&reservation, outcome)
    };
    let plain = login("", "alice");
    let mut grpc = plain.clone();
    grpc["headers"]["content-type"] = json!("application/grpc");
    for (status, expected) in [
        (200, "reset"),
        (204, "reset"),
        (302, "counted"),
        (401, "counted"),
        (500, "cancelled"),
        (501, "counted"),
        (0, "cancelled"),
    ] {
        let outcome = Outcome { status, ..Outcome::default() };
        assert_eq!(effect(&plain, &outcome), format!("login {expected}"), "{status}");
    }
    let busy = Outcome { status: 200, headers: vec!["x-other", "x-busy"], ..Outcome::default() };
    assert_eq!(effect(&plain, &busy), "login cancelled", "taking back goes before forgetting");
    // A refusal by gRPC has the HTTP status 200, and so has one whose status Envoy does not log.
    for (grpc_status, expected) in
        [(Some(0), "reset"), (Some(14), "cancelled"), (Some(16), "counted"), (None, "counted")]
    {
        let outcome = Outcome { status: 200, grpc_status, ..Outcome::default() };
        assert_eq!(effect(&grpc, &outcome), format!("login {expected}"), "{grpc_status:?}");
    }
    assert_eq!(effect(&grpc, &Outcome { status: 503, ..Outcome::default() }), "login cancelled");
    // So has whatever an application may take for gRPC.
    for (content_type, expected) in [
        ("application/grpc;x", "counted"),
        ("Application/GRPC+proto", "counted"),
        (" application/grpc-web-text", "counted"),
        ("text/plain, application/grpc", "counted"),
        ("application/json", "reset"),
        ("application/gr", "reset"),
    ] {
        let mut request = plain.clone();
        request["headers"]["content-type"] = json!(content_type);
        let outcome = Outcome { status: 200, ..Outcome::default() };
        assert_eq!(effect(&request, &outcome), format!("login {expected}"), "{content_type}");
    }
    // One that counts by its outcome alone counts then, too.
    let provisional = "lockouts: [{ name: l, key: [], threshold: 2, window: 1h, count: outcome, outcome: { count: [grpc.unauthenticated], cancel: [grpc.ok] } }]";
    for (grpc_status, expected) in
        [(Some(0), "cancelled"), (Some(5), "cancelled"), (Some(16), "counted"), (None, "counted")]
    {
        let bench = Bench::new(provisional);
        let reservation = bench.at(0).pass(&grpc);
        let outcome = Outcome { status: 200, grpc_status, ..Outcome::default() };
        assert_eq!(bench.settle(&reservation, &outcome), format!("l {expected}"), "{grpc_status:?}");
    }
    // Whoever calls a request a gRPC call is charged all the same, and frees nobody.
    let bench = Bench::new("limits: [{ name: l, key: [], rate: 9/1h, charge: { outcome: [\"2xx\"] } }]");
    let [claimed, refused] = [bench.at(0).pass(&grpc), bench.pass(&grpc)];
    assert_eq!(bench.end(&claimed, 200), "l charged");
    let unauthenticated = Outcome { status: 200, grpc_status: Some(16), ..Outcome::default() };
    assert_eq!(bench.settle(&refused, &unauthenticated), "l uncharged");
}

#[test]
fn attempts_are_settled_once_and_in_time() {
    let bench = Bench::new(LOGIN);
    let alice = login("", "alice");
    // Five wrong passwords, of which one was no attempt.
    let reservations: Vec<_> = (0..3).map(|_| bench.at(0).pass(&alice)).collect();
    bench.check(&[(alice.clone(), "login locked 900s")]);
    assert_eq!(bench.end(&reservations[0], 401), "login counted");
    assert_eq!(bench.end(&reservations[0], 503), "repeated");
    assert_eq!(bench.end(&reservations[1], 503), "login cancelled");
    bench.check(&[(alice.clone(), "login locked 900s")]);
    assert_eq!(bench.end(&reservations[2], 0), "login cancelled", "this one engaged the lockout");
    let last = bench.at(1).pass(&alice);
    bench.pass(&alice);
    bench.check(&[(alice.clone(), "login locked 900s")]);
    // A right password in flight opens the door again; those of before it have nothing to take back.
    assert_eq!(bench.end(&last, 200), "login reset");
    let [first, second] = [bench.pass(&alice), bench.pass(&alice)];
    assert_eq!(bench.at(61).end(&first, 200), "login reset", "exactly the timeout");
    assert_eq!(bench.end(&second, 200), "login gone");
    // One that never comes stays counted, and it may come too late.
    let late = bench.pass(&alice);
    assert_eq!(bench.at(122).end(&late, 503), "late");
    for _ in 0..2 {
        bench.pass(&alice);
    }
    bench.check(&[(alice.clone(), "login locked 900s"), (login("", "bob"), "200")]);
    // After the window everything is new.
    let before = bench.at(122 + 899).ask(&alice);
    assert_eq!((before.said.as_str(), before.reservation), ("login locked 1s", None));
    bench.at(122 + 900).pass(&alice);
}

/// A charge waits for longer than an attempt: nobody gets it off by taking the answer slowly.
#[test]
fn charges_are_made_late() {
    let yaml = format!("{LOGIN}limits: [{{ name: rows, key: [], rate: 1/24h, charge: {{ outcome: [201] }} }}]");
    let bench = Bench::new(&yaml);
    let alice = login("", "alice");
    let reservations: Vec<_> = (0..3).map(|_| bench.at(0).pass(&alice)).collect();
    assert_eq!(bench.at(61).end(&reservations[0], 201), "login late, rows charged");
    assert_eq!(bench.end(&reservations[0], 201), "repeated");
    assert_eq!(bench.at(3_660).end(&reservations[1], 201), "login late, rows charged");
    assert_eq!(bench.end(&reservations[0], 201), "repeated", "an hour later as well");
    assert_eq!(bench.at(3_661).end(&reservations[2], 201), "late");
    assert_eq!(bench.engine.outcome_counts().in_time(), 0);
    // One that has no room for its key by then.
    let full = Bench::new(
        "limits: [{ name: rows, key: client.network, rate: 9/1h, max_keys: 1, when_full: refuse, charge: { outcome: [201] } }]",
    );
    let open = ["192.0.2.1", "192.0.2.2"].map(|peer| full.at(0).pass(&json!({ "peer": peer })));
    assert_eq!(open.each_ref().map(|reservation| full.end(reservation, 201)), ["rows charged", "rows unpaid"]);
    assert_eq!(full.engine.outcome_counts().in_time(), 2);
    // It is known for as long as it could be charged, however many there were.
    let bench = Bench::new("limits: [{ name: rows, key: [], rate: 10000/1s, charge: { outcome: [201] } }]");
    let many: Vec<_> = (0..10_000).map(|_| bench.at(0).pass(&json!({}))).collect();
    assert!(many.iter().step_by(3).all(|reservation| bench.end(reservation, 201) == "rows charged"));
    bench.at(3_000);
    for (number, reservation) in many.iter().enumerate() {
        let expected = if number % 3 == 0 { "repeated" } else { "rows charged" };
        assert_eq!(bench.end(reservation, 201), expected, "{number}");
    }
    // Whatever is told meanwhile, none is charged twice.
    let told = [3_600, 3_700, 3_800].map(|at| (at, bench.at(at).pass(&json!({}))));
    for (now, reservation) in &told {
        assert_eq!(bench.at(*now).end(reservation, 201), "rows charged");
        let before = told.iter().filter(|(at, _)| at <= now);
        before.for_each(|(at, told)| assert_eq!(bench.end(told, 201), "repeated", "{at} at {now}"));
    }
}

#[test]
fn reservations_cannot_be_made_up() {
    let bench = Bench::new(LOGIN);
    let reservation = bench.at(0).pass(&login("", "alice"));
    assert_eq!(bench.end("", 200), "forged");
    assert_eq!(bench.end("not base64!", 200), "forged");
    for at in 0..reservation.len() {
        let mut changed = reservation.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        let said = bench.end(&changed, 200);
        assert!(["forged", "foreign"].contains(&said.as_str()), "{at}: {said}");
    }
    let other = Bench::new(LOGIN);
    assert_eq!(other.at(0).end(&reservation, 200), "foreign", "of another process");
    assert_eq!(bench.end(&reservation, 200), "login reset");
    let counts: Vec<_> = bench.engine.outcome_counts().read().filter(|(_, count)| *count > 0).collect();
    assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), 3 + reservation.len() as u64);
}

/// Who owns one account cannot wipe the strikes of guessing by mixing in successes, where success only takes itself back.
#[test]
fn successes_do_not_wipe_other_strikes() {
    let bench = Bench::new(
        "lockouts:
  - { name: network, key: client.network, threshold: 4, window: 1h, outcome: { cancel: [\"2xx\", \"5xx\"] } }
  - { name: login, key: [client.network, { header.x-user: { on_missing: refuse } }], threshold: 2, window: 15m, outcome: { reset: [\"2xx\"] } }
",
    );
    let (own, peer) = (login("192.0.2.1", "mallory"), "192.0.2.1");
    for victim in ["a", "b", "c"] {
        let guess = bench.at(0).pass(&login(peer, victim));
        assert_eq!(bench.end(&guess, 401), "network counted, login counted");
        let success = bench.pass(&own);
        assert_eq!(bench.end(&success, 200), "network cancelled, login reset");
    }
    bench.check(&[
        (login(peer, "d"), "200, network engaged"),
        (login(peer, "e"), "network locked 3600s"),
        (login("192.0.2.2", "e"), "200"),
    ]);
}

/// An attempt that only its outcome makes one holds others back meanwhile, and locks nobody that the upstream does not know.
#[test]
fn attempts_that_the_upstream_confirms() {
    let yaml = "lockouts: [{ name: account, key: { header.x-user: { on_missing: refuse } }, threshold: 3, window: 15m, max_keys: 2, count: outcome, outcome: { count: [401], reset: [\"2xx\"] } }]";
    let bench = Bench::new(yaml);
    let alice = login("", "alice");
    let parallel: Vec<_> = (0..3).map(|_| bench.at(0).pass(&alice)).collect();
    // Nothing is locked, and by then all outcomes are known.
    bench.check(&[(alice.clone(), "account locked 60s")]);
    assert_eq!(bench.end(&parallel[0], 404), "account cancelled");
    assert_eq!(bench.end(&parallel[1], 401), "account counted");
    let fourth = bench.at(10).pass(&alice);
    assert_eq!(bench.end(&parallel[2], 401), "account counted");
    assert_eq!(bench.end(&fourth, 401), "account counted, account engaged");
    bench.check(&[(alice.clone(), "account locked 900s")]);

    // Accounts that nobody confirms keep no state, and a flood of them displaces none that somebody confirmed.
    let bench = Bench::new(yaml);
    let known = bench.at(0).pass(&alice);
    assert_eq!(bench.end(&known, 401), "account counted");
    for user in 0..50 {
        let made_up = bench.pass(&login("", &user.to_string()));
        if user % 2 == 0 {
            assert_eq!(bench.end(&made_up, 404), "account cancelled");
        }
    }
    let live = |bench: &Bench| bench.engine.strike_counts().next().unwrap().1;
    assert_eq!((live(&bench).live, live(&bench).forgiven), (2, 24));
    bench.pass(&alice);
    bench.check(&[(alice.clone(), "200"), (alice.clone(), "account locked 60s")]);
    // An outcome that never comes leaves its attempt counted, for as long as the others; nobody waits for it in vain.
    bench.at(59).check(&[(alice.clone(), "account locked 1s")]);
    bench.at(60).check(&[(alice.clone(), "account locked 840s")]);
    bench.at(899).check(&[(alice.clone(), "account locked 1s")]);
    bench.at(900).check(&[(alice.clone(), "200")]);

    // Who takes the answers slowly has guessed all the same, also where others took the place of the key; a right one frees nobody
    // that late.
    let bench = Bench::new(yaml);
    let (mut guesses, mut passed): (Vec<String>, u64) = (Vec::new(), 0);
    for at in (0..10).map(|round| round * 61) {
        bench.at(at);
        let told = guesses.drain(..).map(|guess| bench.end(&guess, 401)).collect::<Vec<_>>();
        assert!(told.iter().all(|told| told.starts_with("account ")), "{told:?}");
        guesses.extend((0..3).filter_map(|_| bench.ask(&alice).reservation));
        passed += guesses.len() as u64;
        ["a", "b"].into_iter().for_each(|user| drop(bench.ask(&login("", user))));
    }
    assert_eq!(passed, 3);
    let late = Bench::new(yaml);
    let [right, none] = [late.at(0).pass(&alice), late.pass(&alice)];
    assert_eq!([late.at(61).end(&right, 200), late.end(&none, 404)], ["account late", "account late"]);

    // One whose key had to make room meanwhile, or whose window ended, counts once it is known to.
    for kind in ["rolling", "fixed"] {
        let bench = Bench::new(&yaml.replace("window: 15m", &format!("window: 1s, window_kind: {kind}")));
        let guesses: Vec<_> = (0..3).map(|_| bench.at(0).pass(&alice)).collect();
        for user in ["a", "b"] {
            bench.pass(&login("", user));
        }
        assert_eq!(bench.end(&guesses[0], 401), "account counted");
        assert_eq!(bench.at(2).end(&guesses[1], 401), "account counted");
        assert_eq!(bench.end(&guesses[2], 404), "account gone");
        let others = [bench.pass(&alice), bench.pass(&alice)];
        let ends = others.each_ref().map(|reservation| bench.end(reservation, 401));
        assert_eq!(ends, ["account counted", "account counted, account engaged"]);
        bench.check(&[(alice.clone(), "account locked 1s")]);
        // Also beside as many as hold the key by now.
        let bench = Bench::new(yaml);
        let guess = bench.at(0).pass(&alice);
        ["a", "b"].into_iter().for_each(|user| drop(bench.pass(&login("", user))));
        (0..3).for_each(|_| drop(bench.pass(&alice)));
        assert_eq!(bench.end(&guess, 401), "account counted");
    }
}

/// Successes that are taken back do not keep the strikes of others alive, who share the key.
#[test]
fn what_is_taken_back_prolongs_nothing() {
    let lockout = |more: &str| {
        let counts = "outcome: { count: [401], cancel: [\"2xx\"] }";
        format!("lockouts: [{{ name: net, key: client.network, threshold: 2, window: 1h, {counts}{more} }}]")
    };
    for more in ["", ", count: outcome"] {
        let bench = Bench::new(&lockout(more));
        let request = login("192.0.2.1", "");
        let wrong = bench.at(0).pass(&request);
        assert_eq!(bench.end(&wrong, 401), "net counted");
        for now in (600..3600).step_by(600) {
            let right = bench.at(now).pass(&request);
            assert_eq!(bench.at(now + 1).end(&right, 200), "net cancelled");
        }
        bench.at(3599).pass(&request);
        assert!(bench.ask(&request).said.starts_with("net locked"), "two of two stand");
        let bench = Bench::new(&lockout(more));
        let wrong = bench.at(0).pass(&request);
        bench.end(&wrong, 401);
        let right = bench.at(3599).pass(&request);
        bench.end(&right, 200);
        bench.at(3600).pass(&request);
        bench.pass(&request);
    }
}

/// A limit that is charged by outcomes is looked at before and spent after; a debt is waited for exactly.
#[test]
fn charges_by_outcome() {
    let bench = Bench::new(
        "costs: [{ when: { header.x-cost: \"3\" }, cost: 3 }]
limits: [{ name: rows, key: client.network, rate: 3/30s, charge: { outcome: [201] } }, { name: all, key: [], rate: 100/1h, charge: { outcome: [201] } }]
",
    );
    let row = json!({ "peer": "192.0.2.1" });
    let others = bench.at(0).pass(&row);
    assert_eq!(bench.end(&others, 200), "rows uncharged, all uncharged");
    let parallel: Vec<_> = (0..5).map(|_| bench.pass(&row)).collect();
    for reservation in &parallel {
        assert_eq!(bench.end(reservation, 201), "rows charged, all charged");
        assert_eq!(bench.end(reservation, 201), "repeated");
    }
    // Five of three: two of debt. The next one fits when three are left.
    bench.check(&[(row.clone(), "rows 30s"), (json!({ "peer": "192.0.2.2" }), "200")]);
    bench.at(29).check(&[(row.clone(), "rows 1s")]);
    let three = json!({ "peer": "192.0.2.1", "headers": { "x-cost": "3" } });
    bench.at(30).check(&[(three.clone(), "rows 20s"), (row.clone(), "200")]);
    let dear = bench.at(50).pass(&three);
    assert_eq!(bench.end(&dear, 201), "rows charged, all charged");
    bench.check(&[(row.clone(), "rows 10s")]);

    // One that is only observed is not charged for what it would have refused.
    let bench = Bench::new("limits: [{ name: rows, key: [], rate: 1/30s, mode: observe, charge: { outcome: [201] } }]");
    let first = bench.at(0).pass(&row);
    assert_eq!(bench.end(&first, 201), "rows charged");
    let second = bench.ask(&row);
    assert_eq!((second.said.as_str(), second.reservation), ("200, observed rows 30s", None));
    // In a window of the calendar, what was too much is over with it.
    let bench = Bench::new("limits: [{ name: rows, key: [], rate: 1/1m, window: fixed, charge: { outcome: [201] } }]");
    let both = [bench.at(50).pass(&row), bench.pass(&row)];
    assert!(both.iter().all(|reservation| bench.end(reservation, 201) == "rows charged"));
    bench.check(&[(row.clone(), "rows 10s")]);
    bench.at(60).check(&[(row, "200")]);
}

/// A hundred attempts at once are let through as often as the threshold says, whatever becomes of them.
#[test]
fn threads_never_get_past_the_threshold() {
    for provisional in [false, true] {
        let more = if provisional { "count: outcome, outcome: { count: [401] }" } else { "outcome: { reset: [200] }" };
        let yaml = format!("lockouts: [{{ name: login, key: [], threshold: 7, window: 15m, {more} }}]");
        let bench = Bench::new(&yaml);
        let passed: usize = std::thread::scope(|scope| {
            let ask = || (0..25).filter(|_| bench.ask(&json!({})).reservation.is_some()).count();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(passed, 7);
    }
}

/// A message of Envoy's access log, with one entry for each type and status.
fn access_log(reservation: &str, entries: &[(AccessLogType, Option<u32>)]) -> Vec<u8> {
    let text = Value_ { kind: Some(Kind::StringValue(reservation.into())) };
    let namespace = Struct { fields: [("reservation".to_owned(), text)].into() };
    let metadata = Metadata {
        filter_metadata: [("envoy.filters.http.ext_authz".to_owned(), namespace)].into(),
        ..Metadata::default()
    };
    let entry = |(log_type, status): &(AccessLogType, Option<u32>)| HttpAccessLogEntry {
        common_properties: Some(AccessLogCommon {
            metadata: Some(metadata.clone()),
            access_log_type: (*log_type).into(),
            ..AccessLogCommon::default()
        }),
        response: Some(HttpResponseProperties {
            response_code: status.map(|value| UInt32Value { value }),
            response_trailers: [("grpc-status".to_owned(), "7".to_owned())].into(),
            ..HttpResponseProperties::default()
        }),
        ..HttpAccessLogEntry::default()
    };
    let logs = HttpAccessLogEntries { log_entry: entries.iter().map(entry).collect() };
    StreamAccessLogsMessage { identifier: None, log_entries: Some(LogEntries::HttpLogs(logs)) }.encode_to_vec()
}

/// Only the end of a request is an outcome; what comes while it goes on is counted and changes nothing.
#[test]
fn entries_of_the_access_log() {
    use AccessLogType::{DownstreamEnd, DownstreamPeriodic, DownstreamStart, NotSet, UpstreamEnd};
    let bench = Bench::new(LOGIN);
    let reservation = bench.at(0).pass(&login("", "alice"));
    let settled = |message: &[u8]| {
        let mut said = Vec::new();
        settle(&bench.engine, message, |settlement| {
            let rules = settlement.rules.iter().map(|(_, settled)| settled.to_string());
            said.extend(rules.chain(settlement.refused.map(|refused| refused.to_string())));
        });
        said
    };
    let early = [DownstreamStart, DownstreamPeriodic, UpstreamEnd, NotSet].map(|log_type| (log_type, Some(200)));
    assert_eq!(settled(&access_log(&reservation, &early)), ["early"; 4]);
    let end = [(DownstreamEnd, None), (DownstreamEnd, Some(200))];
    assert_eq!(settled(&access_log(&reservation, &end)), ["cancelled", "repeated"], "no status: aborted");
    assert!(settled(b"").is_empty());
    // One that cannot be read keeps nobody from reading the next.
    let second = bench.pass(&login("", "alice"));
    let entries = access_log(&second, &[(DownstreamEnd, Some(70_000)), (DownstreamEnd, Some(503))]);
    assert_eq!(settled(&entries), ["unreadable", "cancelled"]);
    assert_eq!(settled(&entries[..40]), ["unreadable"]);
}
