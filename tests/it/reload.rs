//! Engines that succeed one another: what callers, limits and lockouts keep, and what a new policy changes at once.

use crate::asking::ask;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tollgate::config::Config;
use tollgate::engine::Engine;
use tollgate::policy::outcomes::Outcome;
use tollgate::reload::watch::{Writing, is_about, is_whole};
use tollgate::{Decision, ManualClock, Verdict};

struct Bench {
    engine: Engine,
    clock: Arc<ManualClock>,
}

fn config(yaml: &str) -> Config {
    let client = if yaml.starts_with("client:") { "" } else { "client: { address: peer }" };
    let text = format!("token: {{ prefixes: [\"r:\"], missing: allow }}\n{client}\n{yaml}");
    Config::parse("tollgate.yaml", &text).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

impl Bench {
    fn new(yaml: &str) -> Self {
        let (config, clock) = (config(yaml), Arc::new(ManualClock::default()));
        Self { engine: Engine::new(config.token, config.prefixes, config.policy, Arc::clone(&clock)), clock }
    }

    fn reload(&mut self, yaml: &str) {
        let config = config(yaml);
        self.engine = self.engine.succeeded(config.token, config.prefixes, config.policy);
        self.engine.take_over();
    }

    fn at(&mut self, seconds: u64) -> &mut Self {
        self.clock.set(Duration::from_secs(seconds));
        self
    }

    fn ask(&self, request: &Value) -> (String, Option<String>) {
        ask(&self.engine, request, &request["claims"], |decision| {
            (describe(decision), decision.reservation().map(Into::into))
        })
    }
}

fn describe(decision: &Decision<'_>) -> String {
    let by = decision.refused_by().unwrap_or("nobody");
    match decision.verdict() {
        Verdict::Allowed => "200".into(),
        Verdict::RateExceeded { limit, retry_after: Some(wait), .. } => format!("{by} {limit} {wait:?}"),
        Verdict::LockedOut { retry_after, .. } => format!("{by} {retry_after:?}"),
        other => format!("{other:?}"),
    }
}

fn alice(capabilities: &[&str]) -> Value {
    json!({ "claims": { "sub": "alice", "capabilities": capabilities } })
}

/// Asks so often under one policy, then once under another, and says what that was answered.
fn after(first: &str, times: usize, second: &str, request: &Value) -> String {
    let mut bench = Bench::new(first);
    (0..times).for_each(|_| assert_eq!(bench.at(0).ask(request).0, "200"));
    bench.reload(second);
    bench.ask(request).0
}

#[test]
fn callers_keep_their_rates() {
    let ceiling = "callers: { rules: [{ ceiling: [1/1h] }] }";
    let other = "callers: { rules: [{ ceiling: [2/1h] }] }";
    let token = alice(&["r:2/1h"]);
    assert_eq!(after("", 2, ceiling, &token), "callers 2/1h 1800s", "what a token's rate spent is spent");
    let mut bench = Bench::new(ceiling);
    assert_eq!([bench.at(0).ask(&alice(&[])).0, bench.ask(&alice(&[])).0], ["200", "callers 1/1h 3600s"]);
    // A rate that the policy no longer yields stops at once; what is owed stays owed.
    bench.reload(other);
    assert_eq!(
        [bench.ask(&alice(&[])).0, bench.ask(&alice(&[])).0, bench.ask(&alice(&[])).0],
        ["200", "200", "callers 2/1h 1800s"]
    );
    bench.reload("");
    assert_eq!(bench.ask(&alice(&[])).0, "200");
    bench.reload(ceiling);
    assert_eq!(bench.at(60).ask(&alice(&[])).0, "callers 1/1h 3540s");
    // A token's rate is remembered whatever the policy, and so is one that both brought.
    for policy in ["", ceiling] {
        let mut bench = Bench::new(policy);
        assert_eq!(bench.at(0).ask(&alice(&["r:1/1h"])).0, "200");
        bench.reload(other);
        assert_eq!(bench.ask(&alice(&[])).0, "callers 1/1h 3600s");
        // Once it is forgotten as the token's, it is the policy's alone.
        bench.reload(ceiling);
        assert_eq!(bench.at(7201).ask(&alice(&[])).0, "200");
        bench.reload("");
        assert_eq!(bench.ask(&alice(&[])).0, "200");
    }
    // One that another rule of the new policy still yields stays remembered.
    let both = "callers: { rules: [{ when: { path: /a }, ceiling: [1/1h] }, { when: { path: /b }, ceiling: [9/1h] }] }";
    let mut bench = Bench::new(both);
    let on = |path: &str| json!({ "path": path, "claims": { "sub": "alice" } });
    assert_eq!(bench.at(0).ask(&on("/a")).0, "200");
    bench.reload(&format!("{both}\nlog: {{ level: debug }}"));
    assert_eq!(bench.ask(&on("/b")).0, "callers 1/1h 3600s");
}

#[test]
fn observed_rates_go_on_being_observed() {
    let observed = "callers: { rules: [{ ceiling: [1/1h], mode: observe }] }";
    let mut bench = Bench::new(observed);
    bench.at(0).ask(&alice(&[]));
    bench.reload(&format!("{observed}\nlimits: []"));
    let seen = ask(&bench.engine, &json!({}), &json!({ "sub": "alice" }), |decision| decision.observed().map(describe));
    assert_eq!(seen.as_deref(), Some("callers 1/1h 3600s"));
    bench.reload("");
    let seen = ask(&bench.engine, &json!({}), &json!({ "sub": "alice" }), |decision| decision.observed().map(describe));
    assert_eq!(seen, None);
}

#[test]
fn limits_keep_what_was_spent() {
    let limit = |rest: &str| format!("limits: [{{ name: l, key: client.network, {rest} }}]");
    let request = json!({ "peer": "192.0.2.1" });
    for (first, times, second, expected) in [
        ("rate: 2/1h", 2, "rate: 2/1h, advertise: true", "l 2/1h 1800s"),
        // A new rate: no more is owed than a request can owe.
        ("rate: 1/24h", 1, "rate: 60/1m", "l 60/1m 1s"),
        ("rate: 2/1h", 2, "rate: 4/1h", "l 4/1h 900s"),
        ("rate: 2/1m", 2, "rate: 1/24h", "l 1/24h 60s"),
        ("rate: 2/1h", 2, "rate: 2/1h, burst: 4", "200"),
        ("rate: 4/1h", 4, "rate: 4/1h, burst: 1", "l 4/1h 900s"),
        ("rate: 2/1h, window: fixed", 2, "rate: 3/1h, window: fixed", "200"),
        ("rate: 3/1h, window: fixed", 3, "rate: 2/1h, window: fixed", "l 2/1h 3600s"),
        // Other windows, or none: what was spent in the old ones means nothing.
        ("rate: 2/1h", 2, "rate: 2/1h, window: fixed", "200"),
        ("rate: 2/1h, window: fixed", 2, "rate: 2/2h, window: fixed", "200"),
        ("rate: 2/1h", 2, "rate: 2/1h, enabled: false", "200"),
    ] {
        assert_eq!(after(&limit(first), times, &limit(second), &request), expected, "{first} | {second}");
    }
    let by_address = "limits: [{ name: l, key: client.address, rate: 2/1h }]";
    assert_eq!(after(&limit("rate: 2/1h"), 2, by_address, &request), "200", "it counts by something else");
    let renamed = "limits: [{ name: m, key: client.network, rate: 2/1h }]";
    assert_eq!(after(&limit("rate: 2/1h"), 2, renamed, &request), "200");

    // A table that may hold more from now on.
    let mut bench = Bench::new(&limit("rate: 1/1h, max_keys: 1, when_full: refuse"));
    let other = json!({ "peer": "192.0.2.2" });
    assert_eq!([bench.at(0).ask(&request).0, bench.ask(&other).0], ["200", "l 1/1h 1s"]);
    bench.reload(&limit("rate: 1/1h, max_keys: 2, when_full: refuse"));
    assert_eq!([bench.ask(&request).0, bench.ask(&other).0], ["l 1/1h 3600s", "200"]);
}

#[test]
fn lockouts_keep_their_strikes() {
    let lockout = |rest: &str| format!("lockouts: [{{ name: l, key: client.network, {rest} }}]");
    let request = json!({ "peer": "192.0.2.1" });
    for (first, times, second, expected) in [
        ("threshold: 2, window: 1h", 2, "threshold: 2, window: 1h", "l 3600s"),
        // A key stays locked as long as was told, whatever the new threshold and window; by another clock all start from zero.
        ("threshold: 2, window: 1h", 2, "threshold: 9, window: 1h", "l 3600s"),
        ("threshold: 2, window: 1h", 2, "threshold: 2, window: 1m", "l 3600s"),
        ("threshold: 2, window: 1h", 2, "threshold: 2, window: 4h", "l 3600s"),
        ("threshold: 2, window: 1h, window_kind: fixed", 2, "threshold: 2, window: 1m, window_kind: fixed", "l 3600s"),
        ("threshold: 2, window: 1h, window_kind: fixed", 2, "threshold: 2, window: 4h, window_kind: fixed", "l 3600s"),
        ("threshold: 3, window: 1h", 2, "threshold: 2, window: 1h", "200"),
        ("threshold: 3, window: 1h", 2, "threshold: 9, window: 1h", "200"),
        ("threshold: 2, window: 1h", 2, "threshold: 2, window: 1h, window_kind: fixed", "200"),
        ("threshold: 2, window: 1h", 2, "threshold: 2, window: 1h, enabled: false", "200"),
        (
            "threshold: 2, window: 1h",
            2,
            "threshold: 2, window: 1h, count: outcome, outcome: { count: [401] }",
            "l 3600s",
        ),
    ] {
        assert_eq!(after(&lockout(first), times, &lockout(second), &request), expected, "{first} | {second}");
    }
    // What a request lacks and how IPv6 is cut is nothing to those who have it and who come by IPv4.
    let by = |on_missing: &str, prefix: u32| {
        let key = format!("[client.network, {{ header.x-a: {{ on_missing: {on_missing} }} }}]");
        format!(
            "client: {{ address: peer, ipv6_prefix: {prefix} }}\nlockouts: [{{ name: l, key: {key}, threshold: 1, window: 1h }}]"
        )
    };
    let with = |peer: &str| json!({ "peer": peer, "headers": { "x-a": "1" } });
    assert_eq!(after(&by("skip", 64), 1, &by("refuse", 56), &with("192.0.2.1")), "l 3600s");
    assert_eq!(after(&by("skip", 64), 1, &by("skip", 56), &with("2001:db8::1")), "200");
    // A lockout that is engaged now lasts as long as is said now, whatever attempts of before are worth.
    for kind in ["rolling", "fixed"] {
        let mut bench = Bench::new(&lockout(&format!("threshold: 2, window: 24h, window_kind: {kind}")));
        bench.at(60).ask(&request);
        bench.reload(&lockout(&format!("threshold: 2, window: 1m, window_kind: {kind}")));
        assert_eq!([bench.ask(&request).0, bench.ask(&request).0], ["200", "l 60s"], "{kind}");
    }

    // A key with more strikes than a lower threshold is locked by its next attempt, and then as any.
    let mut bench = Bench::new(&lockout("threshold: 5, window: 1h"));
    let clients: Vec<_> = (1..9).map(|number| json!({ "peer": format!("192.0.2.{number}") })).collect();
    (0..3).for_each(|_| assert_eq!(bench.at(0).ask(&clients[0]).0, "200"));
    clients[1..].iter().for_each(|client| assert_eq!(bench.ask(client).0, "200"));
    bench.reload(&lockout("threshold: 2, window: 1h, max_keys: 3"));
    let locked = |bench: &Bench| bench.engine.strike_counts().next().unwrap().1.locked;
    assert_eq!((bench.ask(&clients[0]).0.as_str(), locked(&bench)), ("200", 1));
    // Each new key makes two places, until there are no more than there are to be; a locked one stays.
    for number in 20..30 {
        assert_eq!(bench.ask(&json!({ "peer": format!("192.0.2.{number}") })).0, "200");
    }
    assert_eq!(bench.engine.strike_counts().next().unwrap().1.live, 3);
    assert_eq!(bench.ask(&clients[0]).0, "l 3600s");
}

#[test]
fn outcomes_find_the_rules_that_waited() {
    let yaml = |threshold: u32, reset: u16| {
        format!(
            "lockouts: [{{ name: l, key: [], threshold: {threshold}, window: 1h, outcome: {{ reset: [{reset}] }} }}]"
        )
    };
    let mut bench = Bench::new(&yaml(1, 200));
    let (said, reservation) = bench.at(0).ask(&json!({}));
    assert_eq!((said.as_str(), bench.ask(&json!({})).0.as_str()), ("200", "l 3600s"));
    bench.reload(&format!("{}\noutcome_timeout: 1s", yaml(1, 204)));
    let end = |bench: &Bench, status| {
        let settlement = bench.engine.settle(reservation.as_ref().unwrap(), &Outcome { status, ..Outcome::default() });
        (
            settlement.rules.first().map(|(_, settled)| settled.to_string()),
            settlement.refused.map(|why| why.to_string()),
        )
    };
    // It is good for as long as was said when it was made, and settled by the rules that are live.
    assert_eq!(end(bench.at(60), 204), (Some("reset".into()), None));
    assert_eq!(bench.ask(&json!({})).0, "200");
    bench.reload("");
    assert_eq!(end(&bench, 204), (None, Some("repeated".into())));
    let counted = bench.engine.outcome_counts().read().filter(|(_, count)| *count > 0).count();
    assert_eq!(counted, 2, "what was counted before goes on");
}

/// An attempt in flight is settled as it was made, whatever the lockout counts by then; and not in another table.
#[test]
fn attempts_in_flight_outlive_a_reload() {
    let lockout = |key: &str, count: &str| {
        let more = format!("threshold: 1, window: 1h, count: {count}, outcome: {{ count: [401], cancel: [503] }}");
        format!("lockouts: [{{ name: l, key: [{key}], {more} }}]")
    };
    let end = |bench: &Bench, reservation: &str, status| {
        let settlement = bench.engine.settle(reservation, &Outcome { status, ..Outcome::default() });
        settlement.rules[0].1.to_string()
    };
    let request = json!({ "peer": "192.0.2.1" });
    for (first, second, status, settled, then) in [
        ("outcome", "attempt", 401, "counted", "l 3600s"),
        ("outcome", "attempt", 503, "cancelled", "200"),
        ("attempt", "outcome", 401, "counted", "l 3600s"),
        ("attempt", "outcome", 503, "cancelled", "200"),
    ] {
        let mut bench = Bench::new(&lockout("", first));
        let reservation = bench.at(0).ask(&request).1.unwrap();
        bench.reload(&lockout("", second));
        assert_eq!(end(&bench, &reservation, status), settled, "{first} {second}");
        assert_eq!(bench.ask(&request).0, then, "{first} {second} {status}");
    }
    let mut bench = Bench::new(&lockout("", "outcome"));
    let reservation = bench.at(0).ask(&request).1.unwrap();
    bench.reload(&lockout("client.network", "outcome"));
    assert_eq!((end(&bench, &reservation, 401).as_str(), bench.ask(&request).0.as_str()), ("gone", "200"));
}

/// Events of a directory after which the file may be whole.
#[test]
fn a_file_is_read_once_it_is_whole() {
    use notify::EventKind::{Access, Create, Modify, Remove};
    use notify::event::{AccessKind, AccessMode, CreateKind, DataChange, ModifyKind, RemoveKind, RenameMode};
    for (event, expected) in [
        (Create(CreateKind::File), false),
        (Modify(ModifyKind::Data(DataChange::Any)), false),
        (Access(AccessKind::Open(AccessMode::Read)), false),
        (Access(AccessKind::Close(AccessMode::Read)), false),
        (Access(AccessKind::Close(AccessMode::Write)), true),
        (Modify(ModifyKind::Name(RenameMode::To)), true),
    ] {
        assert_eq!(is_whole(event), expected, "{event:?}");
    }
    // While it is written, looks leave it alone: whoever reads it, until it is closed or gone, and for a minute after the last piece.
    let piece = Modify(ModifyKind::Data(DataChange::Any));
    let read = Access(AccessKind::Open(AccessMode::Read));
    let closed = Access(AccessKind::Close(AccessMode::Write));
    for (events, looks) in [
        (&[][..], 0),
        (&[piece], 6),
        (&[Create(CreateKind::File), piece, piece], 6),
        (&[piece, read], 6),
        (&[piece, closed], 0),
        (&[closed, piece], 6),
        (&[piece, Modify(ModifyKind::Name(RenameMode::To))], 0),
        (&[piece, Remove(RemoveKind::File)], 0),
    ] {
        let writing = Writing::default();
        events.iter().for_each(|event| writing.note(*event));
        assert_eq!((0..100).take_while(|_| writing.is_left_alone()).count(), looks, "{events:?}");
    }
}

/// What others write in the directory is no news of the file, nor of what it is a link to.
#[test]
fn neighbours_are_no_news() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let event = |name: &str| notify::Event::new(notify::EventKind::Other).add_path(path(name));
    std::fs::create_dir(path("..1")).unwrap();
    for (link, target) in [("..data", "..1"), ("map.yaml", "..data/map.yaml"), ("link.yaml", "plain.yaml")] {
        std::os::unix::fs::symlink(target, path(link)).unwrap();
    }
    std::os::unix::fs::symlink(path("plain.yaml"), path("whole.yaml")).unwrap();
    std::os::unix::fs::symlink("/elsewhere/plain.yaml", path("away.yaml")).unwrap();
    std::fs::create_dir(path("s")).unwrap();
    let own = folder.path().file_name().unwrap().to_str().unwrap();
    for (link, target) in [
        ("dot.yaml", "./plain.yaml".to_owned()),
        ("up.yaml", format!("../{own}/plain.yaml")),
        ("s/x", "../plain.yaml".to_owned()),
        ("sub.yaml", "s/x".to_owned()),
        ("0.yaml", "plain.yaml".to_owned()),
        ("self", ".".to_owned()),
    ] {
        std::os::unix::fs::symlink(target, path(link)).unwrap();
    }
    for link in 1..12 {
        std::os::unix::fs::symlink(format!("{}.yaml", link - 1), path(&format!("{link}.yaml"))).unwrap();
    }
    for (file, news, no_news) in [
        ("dot.yaml", &["dot.yaml", "plain.yaml"][..], &["up.yaml", "state"][..]),
        ("up.yaml", &["up.yaml", "plain.yaml"], &["dot.yaml", "state"]),
        ("sub.yaml", &["sub.yaml", "s", "plain.yaml"], &["dot.yaml", "state"]),
        ("11.yaml", &["11.yaml", "5.yaml", "plain.yaml"], &["dot.yaml", "state"]),
        ("self/whole.yaml", &["whole.yaml", "plain.yaml"], &["dot.yaml", "state"]),
        ("plain.yaml", &["plain.yaml"], &["state", "state.part", "link.yaml", "..data"]),
        ("map.yaml", &["map.yaml", "..data", "..1"], &["plain.yaml", "state"]),
        ("link.yaml", &["link.yaml", "plain.yaml"], &["..data", "state"]),
        ("whole.yaml", &["whole.yaml", "plain.yaml"], &["link.yaml", "state"]),
        ("away.yaml", &["away.yaml"], &["plain.yaml", "state"]),
    ] {
        let is_about = |name: &&str| is_about(&event(name), &path(file));
        assert!(news.iter().all(is_about) && !no_news.iter().any(is_about), "{file}");
        assert!(tollgate::reload::watch::is_about(&notify::Event::new(notify::EventKind::Other), &path(file)));
    }
}

/// Two rules that change places are locked in one order by requests of the old policy and of the new one.
#[test]
fn rules_that_change_places_hold_nobody_up() {
    let rules = |first: &str, second: &str| {
        let limit = |name: &str| format!("{{ name: {name}, key: [], rate: 1000000/1ms }}");
        let lockout = |name: &str| format!("{{ name: l{name}, key: [], threshold: 1000000, window: 1h }}");
        let (limits, lockouts) =
            ([limit(first), limit(second)].join(", "), [lockout(first), lockout(second)].join(", "));
        format!("limits: [{limits}]\nlockouts: [{lockouts}]")
    };
    let mut bench = Bench::new(&rules("a", "b"));
    let before = {
        let next = config(&rules("b", "a"));
        let next = bench.engine.succeeded(next.token, next.prefixes, next.policy);
        std::mem::replace(&mut bench.engine, next)
    };
    let request = json!({ "headers": { "x": "1" } });
    std::thread::scope(|scope| {
        for engine in [&before, &bench.engine, &before, &bench.engine] {
            let request = &request;
            scope.spawn(move || {
                for _ in 0..5_000 {
                    assert_eq!(ask(engine, request, &Value::Null, describe), "200");
                }
            });
        }
    });
}

/// What an outcome charged beyond the allowance is owed after a reload as it was, and one of a key that means nothing now is
/// charged to nobody.
#[test]
fn debts_outlive_a_reload() {
    let rows = |key: &str| format!("limits: [{{ name: rows, key: {key}, rate: 1/30s, charge: {{ outcome: [201] }} }}]");
    let mut bench = Bench::new(&rows("client.network"));
    let row = json!({ "peer": "192.0.2.1" });
    let reservations: Vec<_> = (0..4).map(|_| bench.at(0).ask(&row).1.unwrap()).collect();
    let end = |bench: &Bench, reservation: &String| {
        let settlement = bench.engine.settle(reservation, &Outcome { status: 201, ..Outcome::default() });
        settlement.rules[0].1.to_string()
    };
    assert_eq!([end(&bench, &reservations[0]), end(&bench, &reservations[1])], ["charged", "charged"]);
    bench.reload(&rows("client.network"));
    assert_eq!(bench.ask(&row).0, "rows 1/30s 60s");
    bench.reload(&rows("client.address"));
    assert_eq!(end(&bench, &reservations[2]), "gone");
    // Nor does it mean anything to a limit that was gone meanwhile, and came back as it was.
    bench.reload("");
    bench.reload(&rows("client.network"));
    assert_eq!(end(&bench, &reservations[3]), "gone");
}
