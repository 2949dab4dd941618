//! State that survives a restart: an engine that goes on with a snapshot decides as the one that wrote it would have.

use crate::asking::ask;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use tollgate::config::Config;
use tollgate::engine::Engine;
use tollgate::engine::snapshot::Unusable;
use tollgate::policy::outcomes::Outcome;
use tollgate::{Decision, ManualClock, Verdict};

/// When the first process starts: a Tuesday in 2027, in nanoseconds since 1970.
const START: u64 = 1_800_000_000_000_000_000;

/// What the clock of a process says when it starts.
const BEGUN: u64 = 100_000_000_000_000_000;

const SECOND: u64 = 1_000_000_000;

const RULES: &str = "
callers: { rules: [{ when: { claim.plan: pro }, ceiling: [3/1m] }] }
limits:
  - { name: rolling, key: client.network, rate: 4/1m, burst: 6 }
  - { name: fixed, when: { method: PUT }, key: [], rate: 3/1m, window: fixed }
  - { name: shared, key: { header.x-a: { on_missing: skip } }, rate: 1/1m, max_keys: 2 }
lockouts:
  - { name: login, when: { method: POST }, key: client.network, threshold: 3, window: 1m }
  - { name: tokens, on: failed_token, key: [], threshold: 2, window: 1m, window_kind: fixed }
  - { name: waits, when: { method: DELETE }, key: [], threshold: 2, window: 1m, count: outcome, outcome: { count: [401] } }
";

struct Process {
    engine: Engine,
    clock: Arc<ManualClock>,
    /// What its clock said when it started, and what the calendar said.
    origin: (u64, u64),
}

impl Process {
    fn start(rules: &str, unix: u64) -> Self {
        let yaml = format!("token: {{ prefixes: [\"r:\"], missing: allow }}\nclient: {{ address: peer }}\n{rules}");
        let config = Config::parse("tollgate.yaml", &yaml).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let clock = Arc::new(ManualClock::default());
        clock.set_calendar(Duration::from_nanos(unix - BEGUN));
        let engine = Engine::new(config.token, config.prefixes, config.policy, Arc::clone(&clock));
        let process = Self { engine, clock, origin: (BEGUN, unix) };
        process.at(unix);
        process
    }

    /// Sets the time, on both clocks.
    fn at(&self, unix: u64) -> &Self {
        self.clock.set(Duration::from_nanos(self.origin.0 + (unix - self.origin.1)));
        self
    }

    fn snapshot(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.engine.write_snapshot(&mut bytes).unwrap();
        bytes
    }

    /// Another process that goes on with the state of this one.
    fn next(&self, rules: &str, unix: u64) -> Self {
        let mut next = Self::start(rules, unix);
        next.engine.restore(&self.snapshot()).unwrap();
        next
    }

    fn ask(&self, request: &Value) -> String {
        ask(&self.engine, request, &request["claims"], describe)
    }
}

fn describe(decision: &Decision<'_>) -> String {
    let by = decision.refused_by().unwrap_or("nobody");
    let limits = decision.limits().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    match decision.verdict() {
        Verdict::Allowed => format!("200 [{limits}]"),
        Verdict::RateExceeded { limit, retry_after: Some(wait), .. } => format!("{by} {limit} {wait:?} [{limits}]"),
        Verdict::LockedOut { retry_after, .. } => format!("{by} locked {retry_after:?}"),
        other => format!("{other:?}"),
    }
}

/// Requests of few clients and callers, so that they meet.
fn request(kind: u8) -> Value {
    let peer = format!("192.0.2.{}", kind % 3);
    let sub = ["alice", "bob"][usize::from(kind % 2)];
    match kind % 11 {
        0 => json!({ "peer": peer }),
        1 => json!({ "peer": peer, "claims": { "sub": sub, "capabilities": ["r:2/1m"] } }),
        2 => json!({ "peer": peer, "claims": { "sub": sub, "capabilities": ["r:5/3m", "r:2/1m"] } }),
        3 => json!({ "peer": peer, "claims": { "sub": sub, "plan": "pro" } }),
        4 => json!({ "peer": peer, "claims": { "sub": sub } }),
        5 => json!({ "peer": peer, "method": "PUT" }),
        6 => json!({ "peer": peer, "method": "POST" }),
        7 => json!({ "peer": peer, "claims": 26 }),
        8 => json!({ "peer": peer, "method": "DELETE" }),
        _ => json!({ "peer": peer, "headers": { "x-a": (kind % 5).to_string() } }),
    }
}

proptest! {
    #[test]
    fn who_goes_on_decides_as_who_stopped(
        before in prop::collection::vec((0..20_u64, any::<u8>()), 0..60),
        gap in 0..100_u64,
        after in prop::collection::vec((0..20_u64, any::<u8>()), 1..60),
    ) {
        let first = Process::start(RULES, START);
        let mut unix = START;
        for (seconds, kind) in before {
            unix += seconds * SECOND;
            first.at(unix).ask(&request(kind));
        }
        let snapshot = first.snapshot();
        unix += gap * SECOND;
        let mut second = Process::start(RULES, unix);
        second.engine.restore(&snapshot).unwrap();
        for (seconds, kind) in after {
            unix += seconds * SECOND;
            let request = request(kind);
            prop_assert_eq!(second.at(unix).ask(&request), first.at(unix).ask(&request), "{}", request);
        }
    }
}

/// Writing takes its time, and gives nobody that time back.
#[test]
fn what_is_written_late_is_as_of_the_start() {
    struct Slow<'p>(&'p Process, Vec<u8>, u64);

    impl Write for Slow<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.2 += SECOND / 10;
            self.0.at(self.2);
            self.1.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let first = Process::start(RULES, START);
    let requests: Vec<_> = (0..=255).map(request).collect();
    requests.iter().for_each(|request| drop(first.ask(request)));
    let mut out = Slow(&first, Vec::new(), START);
    first.engine.write_snapshot(&mut out).unwrap();
    let later = START + 30 * SECOND;
    assert!((START + SECOND..later).contains(&out.2), "writing took a while");
    let mut second = Process::start(RULES, later);
    second.engine.restore(&out.1).unwrap();
    first.at(later);
    requests.iter().for_each(|request| assert_eq!(second.ask(request), first.ask(request), "{request}"));
}

#[test]
fn a_rollout_refills_nothing() {
    let token = json!({ "claims": { "sub": "alice", "capabilities": ["r:2/24h"] } });
    let first = Process::start("", START);
    assert_eq!([first.ask(&token), first.ask(&token)], ["200 [2/24h]", "200 [2/24h]"]);
    let mut unix = START;
    let mut process = first;
    for _ in 0..3 {
        unix += 3600 * SECOND;
        process = process.next("", unix);
        let hours = 12 - (unix - START) / SECOND / 3600;
        assert_eq!(process.ask(&token), format!("callers 2/24h {}s [2/24h]", hours * 3600));
    }
    // The time while nobody is there counts.
    assert_eq!(process.next("", START + 12 * 3600 * SECOND).ask(&token), "200 [2/24h]");
    // What an outcome charged beyond the allowance is owed as it was.
    let rows = "limits: [{ name: rows, key: [], rate: 1/1h, charge: { outcome: [201] } }]";
    let first = Process::start(rows, START);
    let reserve =
        || ask(&first.engine, &json!({}), &Value::Null, |decision| decision.reservation().unwrap().to_owned());
    for reservation in [reserve(), reserve()] {
        first.engine.settle(&reservation, &Outcome { status: 201, ..Outcome::default() });
    }
    assert_eq!(first.next(rows, START).ask(&json!({})), "rows 1/1h 7200s []");
    // A rate that only the policy brought, and no longer does, does not come back.
    let pro = json!({ "peer": "192.0.2.1", "claims": { "sub": "alice", "plan": "pro" } });
    let first = Process::start(RULES, START);
    (0..3).for_each(|_| assert_eq!(first.ask(&pro), "200 [3/1m]"));
    assert_eq!(first.next("", START).ask(&pro), "200 []");
}

/// What the policy no longer has, or counts by something else, is left out, and said.
#[test]
fn what_means_nothing_is_left_out() {
    let first = Process::start(RULES, START);
    let request = json!({ "peer": "192.0.2.1" });
    (0..6).for_each(|_| assert_eq!(first.ask(&request), "200 []"));
    let renamed = RULES
        .replace("name: login", "name: logins")
        .replace("name: rolling, key: client.network", "name: rolling, key: client.address");
    let mut second = Process::start(&renamed, START);
    let restored = second.engine.restore(&first.snapshot()).unwrap();
    assert_eq!((restored.left_out, restored.age), (vec!["rolling".to_owned(), "login".to_owned()], 0));
    assert_eq!(second.ask(&request), "200 []");
    // At a lower burst no more is owed than a request can owe.
    let lower = RULES.replace("rate: 4/1m, burst: 6", "rate: 4/1m, burst: 1");
    assert_eq!(first.next(&lower, START).ask(&request), "rolling 4/1m 15s []");
    // One that holds fewer keys keeps as many as it has room for.
    let fewer = RULES.replace("burst: 6", "burst: 6, max_keys: 1, when_full: refuse");
    let others = ["192.0.2.1", "192.0.2.2"].map(|peer| json!({ "peer": peer }));
    first.ask(&others[1]);
    let second = first.next(&fewer, START);
    let counts = second.engine.limit_counts().next().unwrap().1;
    assert_eq!((counts.live, counts.forgiven, counts.refused), (1, 1, 0));
    // Of attempts in flight nobody tells any more.
    let long = RULES.replace("threshold: 2, window: 1m, count", "threshold: 2, window: 1h, count");
    let (first_of_two, delete) = (Process::start(&long, START), json!({ "peer": "192.0.2.1", "method": "DELETE" }));
    let asked = [(); 3].map(|()| first_of_two.ask(&delete));
    assert_eq!(asked, ["200 []", "200 []", "waits locked 60s"]);
    assert_eq!(first_of_two.next(&long, START).ask(&delete), "waits locked 3600s");
    // A lockout is not given up for keys that were used since.
    let post = |peer: &str| json!({ "peer": peer, "method": "POST" });
    (0..3).for_each(|_| assert_eq!(first.ask(&post("192.0.2.9")), "200 []"));
    assert_eq!(first.at(START + SECOND).ask(&post("192.0.2.8")), "200 []");
    let fewer = RULES.replace("threshold: 3, window: 1m", "threshold: 3, window: 1m, max_keys: 1");
    let second = first.next(&fewer, START + SECOND);
    assert_eq!(second.ask(&post("192.0.2.9")), "login locked 59s");
    // A lower threshold locks nobody who did not attempt anything since.
    let lower = RULES.replace("threshold: 3, window: 1m", "threshold: 1, window: 1m");
    let second = first.next(&lower, START + SECOND);
    assert_eq!([(); 2].map(|()| second.ask(&post("192.0.2.8"))), ["200 []", "login locked 60s"]);
    // Unless it is over by then.
    assert_eq!(first.at(START + 30 * SECOND).ask(&post("192.0.2.8")), "200 []");
    let second = first.next(&fewer, START + 61 * SECOND);
    assert_eq!([(); 2].map(|()| second.ask(&post("192.0.2.8"))), ["200 []", "login locked 60s"]);
}

#[test]
fn what_is_not_whole_is_refused() {
    let first = Process::start(RULES, START);
    for kind in 0..=255 {
        first.ask(&request(kind));
    }
    let snapshot = first.snapshot();
    let restore = |bytes: &[u8], unix: u64| Process::start(RULES, unix).engine.restore(bytes);
    assert!(restore(&snapshot, START).unwrap().callers >= 2);
    for at in (0..snapshot.len()).step_by(7).chain([snapshot.len() - 1]) {
        let mut changed = snapshot.clone();
        changed[at] ^= 1;
        let refused = restore(&changed, START).unwrap_err();
        match at {
            0..8 => assert_eq!(refused, Unusable::Foreign),
            8..12 => assert!(matches!(refused, Unusable::Form(_)), "{at}"),
            _ => assert_eq!(refused, Unusable::Damaged, "{at}"),
        }
        assert!(restore(&snapshot[..at], START).is_err(), "{at}");
    }
    assert!(restore(&[&*snapshot, b"x"].concat(), START).is_err());
    assert_eq!(restore(b"", START), Err(Unusable::Foreign));
    assert_eq!(restore(&snapshot, START - 61 * SECOND), Err(Unusable::Future(61)));
    assert_eq!(restore(&snapshot, START - 60 * SECOND).unwrap().age, 0, "a correction of the clock");
}
