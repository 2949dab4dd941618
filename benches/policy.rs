//! `cargo bench --bench policy`: what a policy adds to a decision, whether the number of its rules matters, and what each
//! further limit costs.
//!
//! Rounds of two policies alternate in one process, and the ratio is that of the medians: on a shared machine only a
//! ratio of neighbours means anything. Who makes a request is read from it before the clock runs.

#[path = "memory/counting.rs"]
#[allow(dead_code, reason = "each bench counts one thing")]
mod counting;

use counting::ALLOCATIONS;
use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tollgate::SystemClock;
use tollgate::claims::{Claim, Claims};
use tollgate::config::Config;
use tollgate::engine::Engine;
use tollgate::reload::Hash;
use tollgate::request::Request;
use tollgate::telemetry::metrics::Metrics;
use tollgate::token::Identity;

const ROUNDS: usize = 31;
const DECISIONS: usize = 50_000;
const MANY: usize = 10_000;
const CALLERS: usize = 1_000_000;

/// As in `tests/it/policy.rs`, with a ceiling that no round reaches.
const NINE: &str = "
callers:
  rules:
    - { when: { principal: mallory }, deny: account closed }
    - { when: { principal: gone }, reject: 404 }
    - { when: { principal: odd }, reject: 400 }
    - { when: { principal: partner }, override: [10/1m, 2/1s] }
    - { when: { principal: free }, unrestricted: true }
    - { when: { principal: nothing }, allow_nothing: true }
    - { when: { claim.plan: pro }, vouch: 7/24h }
    - require_rate: true
    - ceiling: [600000000/1m]
";

fn main() {
    let by_principal = |n: usize| format!("principal: caller-{n:05}");
    let by_path = |n: usize| format!("path: /v1/t{n:04}");
    let by_start = |n: usize| format!("path: /v1/t{n:04}/**");
    println!("{:<44} {:>9} {:>9} {:>6}", "decision", "first", "second", "ratio");
    compare("override by principal: 1, 10,000", &overrides(&[7], by_principal), &overrides(&all(), by_principal), 1);
    compare("override by path: 1, 10,000", &overrides(&[7], by_path), &overrides(&all(), by_path), 1);
    compare("override by start of path: 1, 10,000", &overrides(&[7], by_start), &overrides(&all(), by_start), 1);
    compare("no rules, 9 rules", "", NINE, 2);
    for count in [1, 2, 4] {
        compare(
            &format!("limits by network and principal: 0, {count}"),
            "",
            &limits(count, "rate: 1000000/1ms, window: rolling"),
            1,
        );
    }
    compare("limits of a fixed window: 0, 1", "", &limits(1, "rate: 1000000/1s, window: fixed"), 1);
    counted();
    println!();
    let [one, two, four] = [1, 2, 4].map(|count| limits(count, "rate: 1000000/1ms, advertise: true"));
    let split = limits(4, "rate: 1000000/1ms, charge: { entry: 1 }");
    for (name, policy) in [
        ("no rules", ""),
        ("9 rules", NINE),
        ("1 limit", &one),
        ("2 limits", &two),
        ("4 limits", &four),
        ("4 limits, split", &split),
    ] {
        println!("{name}: {} allocations in a known caller's allowed check", allocations(policy));
    }
    for limits in [one, two, four, split] {
        assert_eq!(allocations(&limits), allocations(""), "a limit allocates in a known key's allowed check");
    }
    load();
    snapshot();
}

fn all() -> Vec<usize> {
    (0..MANY).collect()
}

/// Rules that give a high rate, each for what `when` says of its number.
fn overrides(numbers: &[usize], when: impl Fn(usize) -> String) -> String {
    let rule = |&n: &usize| format!("    - {{ when: {{ {} }}, override: [500000000/1m] }}\n", when(n));
    format!("callers:\n  rules:\n{}", numbers.iter().map(rule).collect::<String>())
}

/// So many limits that no round reaches, each by network and principal.
fn limits(count: usize, more: &str) -> String {
    let limit = |n| format!("  - {{ name: l{n}, key: [client.network, principal], {more} }}\n");
    format!("client: {{ address: peer }}\nlimits:\n{}", (0..count).map(limit).collect::<String>())
}

fn text(policy: &str) -> String {
    format!("token: {{ prefixes: [\"r:\"] }}\n{policy}")
}

fn engine(policy: &str) -> Engine {
    let config = Config::parse("tollgate.yaml", &text(policy)).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    Engine::new(config.token, config.prefixes, config.policy, SystemClock::default())
}

/// A request as Envoy tells of it: six claims, three headers, a caller and a path that one of the rules is for.
fn request() -> Request<'static> {
    let claims = Claims::new(vec![
        ("iss", Claim::Text("https://idp.example.com/")),
        ("aud", Claim::Text("api")),
        ("sub", Claim::Text("caller-00007")),
        ("exp", Claim::Number(2_000_000_000.0)),
        ("plan", Claim::Text("basic")),
        ("capabilities", Claim::List(vec![Claim::Text("orders:read"), Claim::Text("r:500000000/1m")])),
    ]);
    let payload = Claims::new(vec![("jwt_payload", Claim::Object(claims))]);
    Request {
        method: b"GET",
        path: b"/v1/t0007?page=2",
        host: b"api.example.com",
        headers: vec![(b"user-agent", b"curl/8"), (b"x-request-id", b"5d3c"), (b"accept", b"*/*")],
        peer: b"192.0.2.1",
        metadata: Claims::new(vec![("envoy.filters.http.jwt_authn", Claim::Object(payload))]),
        ..Request::default()
    }
}

/// Compares two policies; each has to allow the request, and hold it to so many rates as it says.
fn compare(name: &str, first: &str, second: &str, second_rates: usize) {
    let engines = [engine(first), engine(second)];
    let request = request();
    let rates =
        engines.each_ref().map(|engine| engine.check(&request, &engine.token().identify(&request)).limits().len());
    assert_eq!(rates, [1, second_rates], "{name}");
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..=ROUNDS {
        for (engine, times) in engines.iter().zip(&mut times) {
            let time = time(engine, &request);
            // The first round warms up.
            times.extend((round > 0).then_some(time));
        }
    }
    let [first, second] = times.map(median);
    println!("{name:<44} {first:>6.0} ns {second:>6.0} ns {:>6.2}", second / first);
}

/// Nanoseconds a decision.
#[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn time(engine: &Engine, request: &Request<'static>) -> f64 {
    let identity = engine.token().identify(request);
    let start = Instant::now();
    for _ in 0..DECISIONS {
        assert!(black_box(engine.check(black_box(request), &identity)).is_allowed());
    }
    start.elapsed().as_nanos() as f64 / DECISIONS as f64
}

/// Compares decisions with decisions that are counted, the time of each included.
#[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn counted() {
    let (engine, request, metrics) = (engine(""), request(), Metrics::default());
    let identity = engine.token().identify(&request);
    let time = |counts: bool| {
        let start = Instant::now();
        for _ in 0..DECISIONS {
            let decision = black_box(engine.check(black_box(&request), &identity));
            if counts {
                metrics.note(&identity, &decision);
                metrics.took(Duration::from_micros(7));
            }
        }
        start.elapsed().as_nanos() as f64 / DECISIONS as f64
    };
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        times[0].push(time(false));
        times[1].push(time(true));
    }
    let [plain, counted] = times.map(median);
    println!("{:<44} {plain:>6.0} ns {counted:>6.0} ns {:>6.2}", "decision alone, and counted", counted / plain);
}

fn allocations(policy: &str) -> usize {
    let (engine, request) = (engine(policy), request());
    let identity = engine.token().identify(&request);
    let check = || assert!(engine.check(&request, &identity).is_allowed());
    check();
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    check();
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

/// How long ten thousand overrides take to be read and checked.
#[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn load() {
    let text = text(&overrides(&all(), |n| format!("principal: caller-{n:05}")));
    let start = Instant::now();
    let is_good = Config::parse("tollgate.yaml", &text).is_ok();
    println!("10,000 overrides by principal, {} KiB: read in {:?}", text.len() / 1024, start.elapsed());
    assert!(is_good);
}

/// How long a snapshot of a million callers takes to be written and to be gone on with, and how large it is.
#[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn snapshot() {
    let (first, request) = (engine(""), request());
    for caller in 0..CALLERS {
        let identity = of_caller(first.token().identify(&request), caller);
        assert!(first.check(&request, &identity).is_allowed());
    }
    beside_a_snapshot(&first);
    let (start, mut bytes) = (Instant::now(), Vec::new());
    first.write_snapshot(&mut bytes).unwrap();
    let written = start.elapsed();
    let (mut second, start) = (engine(""), Instant::now());
    let restored = second.restore(&bytes).unwrap();
    let read = start.elapsed();
    let each = bytes.len() / restored.callers;
    println!(
        "a snapshot of {} callers, {each} bytes each: written in {written:.2?}, read in {read:.2?}",
        restored.callers
    );
}

/// The same identity, of another caller.
fn of_caller(mut identity: Identity<'_>, caller: usize) -> Identity<'_> {
    if let Identity::Caller(of) = &mut identity {
        of.principal = format!("caller-{caller}").into();
    }
    identity
}

/// Decisions of all callers while these are written by another thread, and while that hashes bytes of its own.
fn beside_a_snapshot(engine: &Engine) {
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..10 {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let own = vec![1; 1 << 20];
                while !stop.load(Ordering::Relaxed) {
                    match round % 2 {
                        0 => drop(black_box(Hash::of(black_box(&own)))),
                        _ => engine.write_snapshot(io::sink()).unwrap(),
                    }
                }
            });
            times[round % 2].extend((0..DECISIONS * 4).map(|number| one(engine, number * 7919 % CALLERS)));
            stop.store(true, Ordering::Relaxed);
        });
    }
    for (name, share) in [("median", 0.5), ("p99.9", 0.999), ("slowest", 1.0)] {
        let [first, second] = times.each_mut().map(|times| {
            times.sort_by(f64::total_cmp);
            times[((times.len() - 1) as f64 * share) as usize]
        });
        println!(
            "{:<44} {first:>6.0} ns {second:>6.0} ns {:>6.2}",
            format!("beside a snapshot: {name}"),
            second / first
        );
    }
}

/// How long a decision about a caller takes, in nanoseconds.
#[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn one(engine: &Engine, caller: usize) -> f64 {
    let request = request();
    let identity = of_caller(engine.token().identify(&request), caller);
    let start = Instant::now();
    black_box(engine.check(black_box(&request), &identity).is_allowed());
    start.elapsed().as_nanos() as f64
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
