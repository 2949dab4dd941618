//! Limits: keys, charges, windows, bounded tables, and how they go together with the caller's rates.

use crate::asking::ask;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tollgate::config::Config;
use tollgate::engine::Engine;
use tollgate::policy::crowd::Crowd;
use tollgate::{Decision, ManualClock, Verdict};

const HEAD: &str = "token: { prefixes: [\"r:\"], missing: allow }\nclient: { address: peer }\n";

struct Bench {
    engine: Engine,
    clock: Arc<ManualClock>,
}

impl Bench {
    /// An engine with these limits, and whatever else is said.
    fn new(yaml: &str) -> Self {
        let yaml = if yaml.contains("prefixes:") { yaml.to_owned() } else { format!("{HEAD}{yaml}") };
        let config = Config::parse("tollgate.yaml", &yaml).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let clock = Arc::new(ManualClock::default());
        Self { engine: Engine::new(config.token, config.prefixes, config.policy, Arc::clone(&clock)), clock }
    }

    fn at(&self, since: Duration) -> &Self {
        self.clock.set(since);
        self
    }

    /// Decides a request in short: 200, or what refused it and the wait in nanoseconds.
    fn ask(&self, request: &Value) -> String {
        ask(&self.engine, request, &request["claims"], describe)
    }

    #[track_caller]
    fn check(&self, requests: &[(Value, &str)]) {
        for (request, expected) in requests {
            assert_eq!(self.ask(request), *expected, "{request}");
        }
    }
}

fn describe(decision: &Decision<'_>) -> String {
    let by = decision.refused_by().unwrap_or("nobody").to_owned();
    let said = match decision.verdict() {
        Verdict::Allowed => "200".to_owned(),
        Verdict::RateExceeded { retry_after: Some(wait), .. } => format!("{by} {wait:?}"),
        Verdict::RateExceeded { .. } => format!("{by} never"),
        Verdict::Denied(denial) => format!("{by} {:?}", denial.status()),
        other => format!("{other:?}"),
    };
    match decision.observed() {
        Some(observed) => format!("{said}, observed {}", describe(observed)),
        None => said,
    }
}

fn from(peer: &str) -> Value {
    json!({ "peer": peer })
}

/// How many requests pass at once, up to 100.
fn burst(bench: &Bench, request: &Value) -> usize {
    (0..100).take_while(|_| bench.ask(request) == "200").count()
}

#[test]
fn keys() {
    let limit = |key: &str| Bench::new(&format!("limits: [{{ name: l, key: {key}, rate: 1/1h }}]"));
    let header = |name: &str, value: &str| json!({"headers": {name: value}});
    let sub = |sub: &str| json!({"claims": {"sub": sub}});
    let body = |kind: &str, body: &str| json!({"headers": {"content-type": kind}, "body": body});
    let (json_type, form_type) = ("application/json", "application/x-www-form-urlencoded");
    // Of each pair, whether the two share an allowance.
    let cases = [
        ("[]", from("192.0.2.1"), from("192.0.2.2"), true),
        ("client.address", from("192.0.2.1"), from("::ffff:192.0.2.1"), true),
        ("client.address", from("2001:db8::1"), from("2001:db8::2"), false),
        ("client.network", from("2001:db8::1"), from("2001:db8::2"), true),
        ("client.network", from("2001:db8::1"), from("2001:db8:0:1::1"), false),
        ("client.network", from("192.0.2.1"), from("192.0.2.2"), false),
        ("principal", sub("a"), sub("b"), false),
        ("principal", sub("a"), json!({"claims": {"sub": "a", "x": 1}}), true),
        ("principal", json!({}), from("192.0.2.2"), true),
        ("{ header.x-a: { on_missing: shared } }", header("x-a", "1"), header("x-a", "2"), false),
        ("{ header.x-a: { on_missing: shared } }", header("x-b", "1"), header("x-b", "2"), true),
        ("{ header.x-a: { on_missing: shared } }", header("x-a", ""), json!({}), false),
        (
            "{ header.X-A: { normalize: identity, on_missing: refuse } }",
            header("x-a", "Ａlice@"),
            header("x-a", "alice"),
            true,
        ),
        (
            "{ claim.org: { on_missing: shared } }",
            json!({"claims": {"sub": "a", "org": 7}}),
            json!({"claims": {"sub": "b", "org": "7"}}),
            true,
        ),
        (
            "[host, method, path]",
            json!({"host": "A.b:80", "path": "/x/../y"}),
            json!({"host": "a.b", "path": "/y?q"}),
            true,
        ),
        ("[host, path]", json!({"host": "a", "path": "/b"}), json!({"host": "a.b", "path": "/"}), false),
        ("context.tier", json!({"context": {"tier": "1"}}), json!({"context": {"tier": "2"}}), false),
        (
            "{ body.json.user.name: { on_missing: shared } }",
            body(json_type, r#"{"user": {"name": "a"}}"#),
            body(json_type, r#"{"user":{"name":"a"},"x":1}"#),
            true,
        ),
        (
            "{ body.form.user: { on_missing: shared } }",
            body(form_type, "user=a&x=1"),
            body(form_type, "x=2&user=b"),
            false,
        ),
        (
            "{ first_of: [principal, client.network] }",
            sub("a"),
            json!({"claims": {"sub": "a"}, "peer": "192.0.2.9"}),
            true,
        ),
        ("{ first_of: [principal, client.network] }", from("192.0.2.1"), from("192.0.2.2"), false),
        ("{ first_of: [principal, context.k] }", sub("x"), json!({"context": {"k": "x"}}), false),
    ];
    for (key, one, other, shares) in cases {
        let bench = limit(key);
        assert_eq!(bench.ask(&one), "200", "{key} {one}");
        assert_eq!(bench.ask(&other) != "200", shares, "{key}: {one} and {other}");
    }
}

#[test]
fn what_a_key_lacks() {
    let limit = |key: &str| Bench::new(&format!("limits: [{{ name: l, key: {key}, rate: 1/1h }}]"));
    limit("{ header.x: { on_missing: refuse } }").check(&[(json!({}), "l BadRequest")]);
    limit("{ header.x: { on_missing: skip } }").check(&[(json!({}), "200"), (json!({}), "200")]);
    limit("client.network").check(&[(json!({}), "Unavailable(Client)")]);
    limit("{ first_of: [client.network, principal] }")
        .check(&[(json!({"claims": {"sub": "a"}}), "200"), (json!({"claims": {"sub": "a"}}), "l 3600s")]);
    let long = |length: usize| json!({"headers": {"x": "x".repeat(length)}});
    limit("{ header.x: { on_missing: skip } }").check(&[(long(255), "200"), (long(256), "l BadRequest")]);
    let observed =
        Bench::new("limits: [{ name: l, key: { header.x: { on_missing: refuse } }, rate: 1/1h, mode: observe }]");
    observed.check(&[(json!({}), "200, observed l BadRequest"), (long(300), "200, observed l BadRequest")]);
}

/// A network limit at entry is charged before identity is looked at, and kept; one with the caller is not.
#[test]
fn entry_and_admitted() {
    let bench = Bench::new(
        "token: { prefixes: [\"r:\"] }
client: { address: peer }
limits:
  - { name: network, key: client.network, charge: entry, rate: 3/1h }
  - { name: user, key: principal, rate: 2/1h }
  - { name: all, key: [], rate: 100/1h }
",
    );
    let alice =
        |rate: &str| json!({"peer": "192.0.2.1", "claims": {"sub": "alice", "capabilities": [format!("r:{rate}")]}});
    bench.check(&[
        (json!({"peer": "192.0.2.9"}), "Unauthenticated(MissingToken)"),
        (json!({"peer": "192.0.2.9", "claims": "expired"}), "Unauthenticated(FailedToken)"),
        (json!({"peer": "192.0.2.9"}), "Unauthenticated(MissingToken)"),
        (json!({"peer": "192.0.2.9"}), "network 1200s"),
        (json!({"peer": "192.0.2.9", "claims": {"sub": "bob"}}), "network 1200s"),
        (alice("1/1m"), "200"),
        (alice("1/1m"), "callers 60s"),
        // Who comes again pays at entry again, which by then has nothing left.
        (alice("1/1m"), "callers 1200s"),
        (alice("1/1m"), "network 1200s"),
    ]);
    // Two refusals by the token's rate took nothing of the admitted limit.
    bench.at(Duration::from_secs(3600)).check(&[
        (alice("9/1m"), "200"),
        (alice("9/1m"), "200"),
        (alice("9/1m"), "user 1800s"),
    ]);
}

#[test]
fn costs_and_splits() {
    let bench = Bench::new(
        "costs: [{ when: { path: /look }, cost: 0 }, { when: { path: /ten }, cost: 10 }, { when: { path: /huge }, cost: { from: context.cost, max: 1000 } }]
limits:
  - { name: units, key: client.network, rate: 50/1m }
",
    );
    let get = |peer: &str, path: &str| json!({"peer": peer, "path": path, "context": {"cost": "51"}});
    assert_eq!(burst(&bench, &get("192.0.2.1", "/ten")), 5);
    bench.check(&[
        (get("192.0.2.1", "/look"), "200"),
        (get("192.0.2.1", "/huge"), "units never"),
        (get("192.0.2.1", "/ten"), "units 12s"),
    ]);
    let split = Bench::new(
        "token: { prefixes: [\"r:\"] }
client: { address: peer }
costs: [{ cost: 5 }]
limits: [{ name: units, key: client.network, rate: 20/1h, charge: { entry: 1 } }]
",
    );
    let anonymous = from("192.0.2.1");
    let alice = json!({"peer": "192.0.2.1", "claims": {"sub": "alice"}});
    // A request that fails at identity has paid its entry: 2 of 20 are gone, and three whole requests fit into the rest.
    split.check(&[(anonymous.clone(), "Unauthenticated(MissingToken)"), (anonymous, "Unauthenticated(MissingToken)")]);
    assert_eq!(burst(&split, &alice), 3);
    // The wait is for the whole request, and what never fits as a whole is not begun.
    let split = Bench::new(
        "costs: [{ cost: { from: context.cost, max: 1000 } }]
limits: [{ name: units, key: client.network, rate: 10/10s, charge: { entry: 1 } }]
",
    );
    let get = |cost: &str| json!({"peer": "192.0.2.1", "context": {"cost": cost}});
    split.check(&[(get("20"), "units never"), (get("10"), "200"), (get("5"), "units 5s"), (get("1"), "units 1s")]);
    // One that is observed takes nothing of what does not fit at entry, though the rest would.
    let observed = Bench::new(
        "costs: [{ cost: { from: context.cost, max: 1000 } }]
limits:
  - { name: units, key: client.network, rate: 10/10s, charge: { entry: 3 }, mode: observe }
  - { name: too, key: client.network, rate: 10/10s, charge: { entry: 3 }, mode: observe }
",
    );
    observed.check(&[(get("8"), "200"), (get("4"), "200, observed units 2s"), (get("2"), "200")]);
    // One whose rest does not fit waits for both.
    observed.at(Duration::from_secs(60)).check(&[(get("6"), "200"), (get("6"), "200, observed units 5s")]);
}

#[test]
fn a_burst_apart_from_the_count() {
    let bench = Bench::new(
        "limits: [{ name: l, key: [], rate: 10/1s, burst: 30 }, { name: m, key: [], rate: 100/1h, burst: 1, when: { path: /m } }]",
    );
    assert_eq!(burst(&bench, &json!({})), 30);
    assert_eq!(bench.ask(&json!({})), "l 100ms");
    assert_eq!(burst(bench.at(Duration::from_secs(2)), &json!({})), 20);
    let one = json!({"path": "/m"});
    bench.at(Duration::from_secs(100)).check(&[(one.clone(), "200"), (one, "m 36s")]);
}

/// Windows of the calendar, on clocks that step.
#[test]
fn fixed_windows() {
    const HOUR: u64 = 3600;
    // Thursday, 1970-01-01. Weeks begin on Mondays: the fifth of January is one.
    let cases = [
        ("2/1h", HOUR, 10 * HOUR + 1800, 1800),
        ("2/24h", 24 * HOUR, 36 * HOUR, 12 * HOUR),
        ("2/15m", 900, 1000, 800),
        ("2/168h", 7 * 24 * HOUR, 5 * 24 * HOUR, 6 * 24 * HOUR),
        ("2/48h", 48 * HOUR, 49 * HOUR, 47 * HOUR),
    ];
    for (rate, window, now, wait) in cases {
        let bench = Bench::new(&format!("limits: [{{ name: l, key: [], rate: {rate}, window: fixed }}]"));
        let refused = format!("l {:?}", Duration::from_secs(wait));
        let request = json!({});
        bench.clock.set_calendar(Duration::from_secs(now));
        bench.check(&[(request.clone(), "200"), (request.clone(), "200"), (request.clone(), &refused)]);
        let set = |calendar: u64| bench.clock.set_calendar(Duration::from_secs(calendar));
        set(now + wait - 1);
        assert_eq!(bench.ask(&request), "l 1s", "{rate}: the last second of the window");
        set(now + wait);
        assert_eq!(burst(&bench, &request), 2, "{rate}: the next window");
        set(now + wait - 1);
        assert_ne!(bench.ask(&request), "200", "{rate}: a clock that steps back gives no window twice");
        set(now + wait + window - 1);
        assert_eq!(bench.ask(&request), "l 1s", "{rate}: still the same window");
        set(now + 20 * window);
        assert_eq!(burst(&bench, &request), 2, "{rate}: far ahead");
        set(now);
        assert_eq!(burst(&bench, &request), 2, "{rate}: an index far in the future is one of a clock that was wrong");
    }
}

#[test]
fn an_observed_limit_takes_where_it_fits_and_refuses_nobody() {
    let bench = Bench::new(
        "limits:
  - { name: seen, key: [], rate: 1/1h, mode: observe }
  - { name: real, key: [], rate: 3/1h }
  - { name: entry, key: [], rate: 2/24h, charge: entry, mode: observe, when: { path: /e } }
",
    );
    let request = json!({});
    bench.check(&[
        (request.clone(), "200"),
        (request.clone(), "200, observed seen 3600s"),
        (request.clone(), "200, observed seen 3600s"),
        (request, "real 1200s"),
    ]);
    let entry = json!({"path": "/e"});
    bench.at(Duration::from_secs(7200));
    bench.check(&[
        (entry.clone(), "200"),
        (entry.clone(), "200, observed seen 3600s"),
        // What is observed at entry comes first.
        (entry, "200, observed entry 43200s"),
    ]);
    // Entry comes before what has a longer wait; and a wait is for the whole request, which pays there again.
    let stages = "limits:
  - { name: gate, key: [], rate: 3/3h, charge: entry }
  - { name: first, key: [], rate: 1/10s, charge: entry, mode: observe, when: { path: /a } }
  - { name: later, key: [], rate: 1/1m, mode: observe }
callers: { rules: [{ when: { principal: olga }, ceiling: [1/1m], mode: observe }] }
";
    let (a, b) = (json!({"path": "/a"}), json!({"path": "/b", "claims": {"sub": "olga"}}));
    Bench::new(stages).check(&[
        (a.clone(), "200"),
        (a, "200, observed first 10s"),
        (b.clone(), "200, observed later 3600s"),
        (b, "gate 3600s"),
    ]);
    // So it is where all is observed.
    let everything = format!("mode: observe\n{}", stages.replace("rate: 1/1m, mode: observe", "rate: 1/1m"));
    let a = json!({"path": "/a"});
    Bench::new(&everything).check(&[(a.clone(), "200"), (a, "200, observed first 10s")]);
    // Entry that is observed is told also where what is enforced lacks something.
    let keys = "limits:
  - { name: one, key: { header.x: { on_missing: refuse } }, rate: 1/1h, charge: entry, mode: observe }
  - { name: two, key: { header.x: { on_missing: refuse } }, rate: 1/1h, charge: entry }
";
    Bench::new(keys).check(&[(json!({}), "two BadRequest, observed one BadRequest")]);
    // What comes before identity is told also where that is bad.
    let flooded = "token: { prefixes: [\"r:\"] }
client: { address: peer }
limits: [{ name: net, key: client.network, charge: entry, rate: 1/1h, mode: observe }]
";
    let everything = format!("mode: observe\n{}", flooded.replace(", mode: observe", ""));
    for yaml in [flooded, &everything] {
        let nobody = json!({"peer": "10.0.0.1"});
        Bench::new(yaml).check(&[
            (nobody.clone(), "Unauthenticated(MissingToken)"),
            (nobody, "Unauthenticated(MissingToken), observed net 3600s"),
        ]);
    }
    // So is what a limit for entry lacks, and not what would come after identity.
    let lacking = "token: { prefixes: [\"r:\"] }
limits: [{ name: acc, key: { header.x: { on_missing: refuse } }, rate: 1/1h, mode: observe }]
";
    let alice = (json!({"claims": {"sub": "alice"}}), "200, observed acc BadRequest");
    Bench::new(lacking).check(&[(json!({}), "Unauthenticated(MissingToken)"), alice.clone()]);
    let at_entry = lacking.replace("rate:", "charge: entry, rate:");
    Bench::new(&at_entry).check(&[(json!({}), "Unauthenticated(MissingToken), observed acc BadRequest"), alice]);
    // Of what an observed rule lacks nothing else that is observed is asked, and an enforced limit refuses all the same.
    let gate = "limits:
  - { name: gate, key: [], rate: 2/1h, charge: entry }
  - { name: seen, when: { not: { path: /x } }, key: [], rate: 1/1h, mode: observe }
";
    let escaped = json!({"path": "/a%2Fb"});
    Bench::new(gate).check(&[
        (escaped.clone(), "200, observed paths BadRequest"),
        (json!({"path": "/a"}), "200"),
        (escaped.clone(), "gate 1800s, observed paths BadRequest"),
    ]);
    Bench::new(&format!("mode: observe\n{gate}")).check(&[
        (json!({"path": "/a"}), "200"),
        (json!({"path": "/b"}), "200, observed seen 3600s"),
        (escaped, "200, observed paths BadRequest"),
    ]);
}

/// The wait that is told is the longest of all, be it a limit's or the caller's; the first on a tie.
#[test]
fn the_longest_wait_is_told() {
    let bench = Bench::new(
        "limits: [{ name: a, key: [], rate: 1/1m }, { name: b, key: [], rate: 1/1h }, { name: c, key: [], rate: 1/1h }]",
    );
    let alice = |rate: &str| json!({"claims": {"sub": "alice", "capabilities": [format!("r:{rate}")]}});
    bench.check(&[(alice("1/24h"), "200"), (alice("1/24h"), "callers 86400s")]);
    bench.check(&[(json!({}), "b 3600s")]);
}

#[test]
fn limits_that_are_off_are_checked_and_not_built() {
    let bench = Bench::new("limits: [{ name: l, key: [], rate: 1/1h, enabled: false }]");
    assert_eq!(burst(&bench, &json!({})), 100);
    assert_eq!(bench.engine.limit_counts().count(), 0);
}

/// Keys that an attacker makes up, ten times as many as the table holds.
fn flood(bench: &Bench, network: impl Fn(usize) -> String) {
    for number in 0..10_000 {
        bench.at(Duration::from_nanos(1 + number as u64)).ask(&from(&network(number)));
    }
}

#[test]
fn a_flood_of_keys() {
    let victim = from("198.51.100.7");
    let spread = |n: usize| format!("2001:db8:1:{:x}::1", n + 1);
    let one_network = |n: usize| format!("203.0.113.{}", n % 250);
    for (when_full, spent_stays) in [("overflow", true), ("refuse", true), ("evict", false)] {
        let bench = Bench::new(&format!(
            "limits: [{{ name: l, key: client.network, rate: 2/1h, max_keys: 1000, when_full: {when_full} }}]"
        ));
        assert_eq!(burst(&bench, &victim), 2, "{when_full}");
        flood(&bench, spread);
        let counts = bench.engine.limit_counts().next().unwrap().1;
        assert!(counts.live <= 1000, "{when_full}: {counts:?}");
        assert_eq!(bench.ask(&victim) != "200", spent_stays, "{when_full}: what was spent stays spent");
        match when_full {
            "overflow" => assert!(counts.overflowed > 8000 && counts.forgiven == 0, "{counts:?}"),
            "refuse" => assert!(counts.refused > 8000 && counts.forgiven == 0, "{counts:?}"),
            _ => assert!(counts.forgiven > 8000, "{counts:?}"),
        }
        if when_full == "overflow" {
            // Somebody of another network is served, though the table is full.
            assert_eq!(bench.ask(&from("192.0.2.77")), "200");
            flood(&bench, one_network);
            assert_eq!(
                bench.ask(&from("192.0.2.78")),
                "200",
                "the same /24 shares one allowance, another one call of it"
            );
            assert!(bench.ask(&from("192.0.2.79")).starts_with("l 1"));
        }
        // Every key from another /48: what is shared is bounded as well.
        flood(&bench, |n| format!("2001:db8:{:x}::1", n + 2));
        let counts = bench.engine.limit_counts().next().unwrap().1;
        assert!(counts.live <= 1000 && counts.shared <= 1001, "{when_full}: {counts:?}");
        // Once all is full again, it makes room.
        bench.at(Duration::from_secs(7200)).engine.sweep();
        assert_eq!(bench.engine.limit_counts().next().unwrap().1.live, 0, "{when_full}");
        assert_eq!(burst(&bench, &victim), 2, "{when_full}");
    }
}

/// What is made up with a key shares with its network: it gets no allowance of its own, and leaves others theirs.
#[test]
fn made_up_names_share_with_their_network() {
    let bench = Bench::new(
        "limits: [{ name: l, key: [client.network, { header.x: { on_missing: shared } }], rate: 1/1h, max_keys: 100 }]",
    );
    let from = |peer: &str, name: usize| json!({"peer": peer, "headers": {"x": name.to_string()}});
    let passed = (0..300).filter(|name| bench.ask(&from("192.0.2.1", *name)) == "200").count();
    assert_eq!(passed, 101, "a hundred places, and one that is shared");
    assert_eq!(bench.engine.limit_counts().next().unwrap().1.shared, 1);
    assert_eq!(bench.ask(&from("198.51.100.1", 0)), "200", "another network");
}

/// The key that was seen least recently goes, refused or not.
#[test]
fn eviction_spares_who_was_just_seen() {
    let bench = Bench::new("limits: [{ name: l, key: client.network, rate: 1/1h, max_keys: 2, when_full: evict }]");
    let ask = |second: u64, peer: &str| bench.at(Duration::from_secs(second)).ask(&from(peer)) == "200";
    assert!(ask(0, "10.0.0.1") && ask(1, "10.0.0.2"));
    assert!(!ask(2, "10.0.0.1") && ask(3, "10.0.0.3"), "it takes the place of the second");
    assert!(!ask(4, "10.0.0.1") && ask(5, "10.0.0.2"));
}

/// A look, and what follows a refusal, see what a key without a place would share.
#[test]
fn what_is_shared_is_looked_at_as_well() {
    let bench = Bench::new(
        "limits: [{ name: a, key: [], rate: 2/1m }, { name: b, key: client.network, rate: 1/1h, max_keys: 1 }]",
    );
    bench.check(&[(from("10.0.9.1"), "200"), (from("10.0.1.1"), "200"), (from("10.0.1.2"), "b 3600s")]);
}

/// What a limit with the caller's rates lacks is told after identity, and what entry took is kept.
#[test]
fn what_an_admitted_limit_lacks_comes_after_identity() {
    let bench = Bench::new(
        "token: { prefixes: [\"r:\"] }
client: { address: peer }
callers: { rules: [{ when: { principal: mallory }, deny: closed }] }
limits:
  - { name: net, key: client.network, charge: entry, rate: 4/1h }
  - { name: acc, key: { header.x-account: { on_missing: refuse } }, rate: 5/1h }
",
    );
    let of = |claims: Value| json!({"peer": "10.0.0.1", "claims": claims});
    bench.check(&[
        (of(json!(null)), "Unauthenticated(MissingToken)"),
        (of(json!("expired")), "Unauthenticated(FailedToken)"),
        (of(json!({"sub": "mallory"})), "callers.rules[0] Forbidden"),
        (of(json!({"sub": "alice"})), "acc BadRequest"),
        (of(json!({"sub": "alice"})), "net 900s"),
    ]);
}

/// A browser's preflight has no name and no headers of its own: only limits by client are for it.
#[test]
fn a_preflight_is_counted_by_client_alone() {
    let bench = Bench::new(
        "limits:
  - { name: user, key: principal, rate: 1/1h }
  - { name: account, key: { header.x-account: { on_missing: refuse } }, rate: 1/1h }
  - { name: net, key: client.network, rate: 2/1h }
",
    );
    let preflight = json!({"method": "OPTIONS", "peer": "10.0.0.1", "headers": {"origin": "https://a", "access-control-request-method": "PUT"}});
    bench.check(&[(preflight.clone(), "200"), (preflight.clone(), "200"), (preflight, "net 1800s")]);
}

#[test]
fn a_limit_may_have_a_cost_of_its_own() {
    let bench = Bench::new(
        "costs: [{ cost: 5 }]\nlimits: [{ name: units, key: [], rate: 100/1h }, { name: rows, key: [], rate: 3/1h, cost: 1 }]",
    );
    assert_eq!(burst(&bench, &json!({})), 3);
}

/// Full allowances make room for new keys before anything else.
#[test]
fn full_allowances_go_first() {
    let bench = Bench::new("limits: [{ name: l, key: client.network, rate: 1/1m, max_keys: 3, when_full: refuse }]");
    for number in 0..3 {
        assert_eq!(bench.ask(&from(&format!("192.0.2.{number}"))), "200");
    }
    assert_eq!(bench.ask(&from("192.0.2.9")), "l 1s", "no room");
    bench.at(Duration::from_secs(60));
    for number in 10..13 {
        assert_eq!(bench.ask(&from(&format!("192.0.2.{number}"))), "200", "those of a minute ago are full");
    }
    let counts = bench.engine.limit_counts().next().unwrap().1;
    assert_eq!((counts.live, counts.evicted, counts.refused), (3, 3, 1));
}

/// What follows a refusal makes no state, so that made-up keys cannot fill a table that another limit guards.
#[test]
fn a_guarded_table_does_not_grow() {
    let bench = Bench::new(
        "limits: [{ name: guard, key: [], rate: 5/1h }, { name: per-key, key: { header.x: { on_missing: skip } }, rate: 5/1h }]",
    );
    for number in 0..1000 {
        bench.ask(&json!({"headers": {"x": number.to_string()}}));
    }
    let live: Vec<usize> = bench.engine.limit_counts().map(|(_, counts)| counts.live).collect();
    assert_eq!(live, [1, 5]);
    // Room that was found before a refusal is given back, and nobody who was refused counts as without room.
    for (limits, live, overflowed) in [
        (
            "{ name: per-key, key: { header.x: { on_missing: skip } }, rate: 5/1h, max_keys: 9 }, { name: guard, key: [], rate: 5/1h }",
            5,
            0,
        ),
        (
            "{ name: guard, key: [], rate: 5/1h }, { name: per-key, key: { header.x: { on_missing: skip } }, rate: 5/1h, max_keys: 1 }",
            1,
            4,
        ),
    ] {
        let bench = Bench::new(&format!("limits: [{limits}]"));
        for number in 0..100 {
            bench.ask(&json!({"headers": {"x": number.to_string()}}));
        }
        let counts = bench.engine.limit_counts().find(|(name, _)| *name == "per-key").unwrap().1;
        assert_eq!((counts.live, counts.overflowed), (live, overflowed), "{limits}");
    }
    // Nor does a look.
    let looks = Bench::new("costs: [{ cost: 0 }]\nlimits: [{ name: l, key: client.network, rate: 1/1h }]");
    flood(&looks, |n| format!("2001:db8:{n:x}::1"));
    assert_eq!(looks.engine.limit_counts().next().unwrap().1.live, 0);
}

/// Where nearly all requests come from one private address, nobody said where clients' addresses stand.
#[test]
fn a_crowd_at_one_private_address_is_noticed() {
    let crowd = |address: &str, others: usize| {
        let crowd = Crowd::default();
        for number in 0..16_001 {
            let other = number % 100 < others;
            crowd.note(if other { "192.0.2.1" } else { address }.parse().unwrap());
        }
        crowd.found()
    };
    assert_eq!(crowd("10.0.0.1", 0), Some([10, 0, 0, 1].into()));
    assert_eq!(crowd("10.0.0.1", 3), Some([10, 0, 0, 1].into()), "whoever comes first");
    assert_eq!(crowd("10.0.0.1", 9), None, "more than a few come from elsewhere");
    assert_eq!(crowd("198.51.100.1", 0), None, "a busy client");
}

/// Threads over the same and over different keys: exactly as many pass as the limits permit, and nobody waits forever.
#[test]
fn threads_never_get_more_than_the_limits_permit() {
    let bench = Arc::new(Bench::new(
        "limits:
  - { name: network, key: client.network, rate: 90/24h, max_keys: 600 }
  - { name: user, key: { header.x: { on_missing: shared } }, rate: 200/24h, max_keys: 1 }
  - { name: all, key: [], rate: 390/24h }
",
    ));
    let allowed: Arc<Vec<AtomicUsize>> = Arc::new((0..8).map(|_| AtomicUsize::new(0)).collect());
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            let (bench, allowed) = (Arc::clone(&bench), Arc::clone(&allowed));
            std::thread::spawn(move || {
                for number in 0..400 {
                    let network = (thread + number) % 8;
                    let request =
                        json!({"peer": format!("10.{network}.0.1"), "headers": {"x": (number % 2).to_string()}});
                    if bench.ask(&request) == "200" {
                        allowed[network].fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let by_network: Vec<usize> = allowed.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    // Two values of the header have 200 each, one of them shared; all together have 390.
    assert_eq!(by_network.iter().sum::<usize>(), 390, "{by_network:?}");
    assert!(by_network.iter().all(|&count| count <= 90), "{by_network:?}");
}

/// The formulas of the rules in 128-bit integers, for several limits, all of them or none.
#[derive(Default)]
struct Model(HashMap<(usize, u8), i128>);

impl Model {
    /// The number of the limit with the longest wait and the wait, if one refuses. Limits: count, window, burst.
    fn request(
        &mut self,
        limits: &[(u64, u64, u64)],
        keys: &[u8],
        now: u64,
        cost: u64,
    ) -> Option<(usize, Option<i128>)> {
        let (now, cost) = (i128::from(now), i128::from(cost));
        let mut worst: Option<(usize, Option<i128>)> = None;
        for (number, (&(count, window, burst), &key)) in limits.iter().zip(keys).enumerate() {
            let interval = i128::from((window / count).max(1));
            let tolerance = (i128::from(burst) * i128::from(window) / i128::from(count))
                .min(interval * (i128::from(burst) + 1) - 1);
            let debt = (self.0.get(&(number, key)).copied().unwrap_or(0) - now).max(0);
            let wait = match () {
                () if cost * interval > tolerance => None,
                () => Some((debt + cost * interval - tolerance).max(0)),
            };
            let rank = |wait: Option<i128>| wait.unwrap_or(i128::MAX);
            if wait != Some(0) && worst.is_none_or(|(_, known)| rank(wait) > rank(known)) {
                worst = Some((number, wait));
            }
        }
        if worst.is_none() {
            for (number, (&(count, window, _), &key)) in limits.iter().zip(keys).enumerate() {
                let tat = self.0.entry((number, key)).or_default();
                *tat = (*tat).max(now) + cost * i128::from((window / count).max(1));
            }
        }
        worst
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn limits_agree_with_the_model(
        limits in prop::collection::vec((1u64..20, 1_000_000u64..100_000_000, 1u64..30), 1..4),
        requests in prop::collection::vec((0u64..30_000_000, prop::collection::vec(0u8..3, 4), 0u64..4), 1..60),
    ) {
        let yaml: String = limits.iter().enumerate().map(|(number, (count, window, burst))| {
            format!("  - {{ name: l{number}, key: {{ header.k{number}: {{ on_missing: refuse }} }}, rate: {count}/{window}ns, burst: {burst} }}\n")
        }).collect();
        let bench = Bench::new(&format!("costs: [{{ cost: {{ from: context.cost }} }}]\nlimits:\n{yaml}"));
        let (mut model, mut now) = (Model::default(), 0);
        for (pause, keys, cost) in requests {
            now += pause;
            let headers: serde_json::Map<String, Value> = keys.iter().enumerate().map(|(n, key)| (format!("k{n}"), key.to_string().into())).collect();
            let said = bench.at(Duration::from_nanos(now)).ask(&json!({"headers": headers, "context": {"cost": cost.to_string()}}));
            let expected = match model.request(&limits, &keys, now, cost) {
                None => "200".to_owned(),
                Some((number, None)) => format!("l{number} never"),
                Some((number, Some(wait))) => format!("l{number} {:?}", Duration::from_nanos(u64::try_from(wait).unwrap())),
            };
            prop_assert_eq!(said, expected);
        }
    }
}
