//! `cargo bench --bench core`: what a decision costs, in turn with governor's keyed limiter, and what a caller weighs.
//!
//! Rounds of both alternate in one process, and the ratio is that of the medians: on a shared machine only a ratio of
//! neighbours means anything. Tollgate's part includes reading the capabilities; governor is handed ready keys.

#[path = "memory/counting.rs"]
#[allow(dead_code, reason = "each bench counts one thing")]
mod counting;

use counting::IN_USE;
use governor::clock::MonotonicClock;
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use std::hint::black_box;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tollgate::{Limiter, ManualClock};

const ROUNDS: usize = 15;
const DECISIONS: usize = 200_000;
const RATES: [&str; 2] = ["prefix:rate:1000000/1m", "prefix:rate:50000000/1h"];

type Keyed = RateLimiter<String, DashMapStateStore<String>, MonotonicClock, NoOpMiddleware<Instant>>;

fn main() {
    println!("{:<28} {:>10} {:>10} {:>7}", "decision, uniform callers", "tollgate", "governor", "ratio");
    for callers in [1_000, 1_000_000] {
        for rates in [1, 2] {
            compare(callers, rates);
        }
    }
    println!();
    [700_000, 1_000_000, 1_400_000].into_iter().for_each(weigh);
    sweep(1_000_000);
}

fn compare(callers: usize, rates: usize) {
    let names: Vec<String> = (0..callers).map(|n| format!("caller-{n:09}")).collect();
    let limiter = Limiter::builder(["prefix:rate:"]).build().unwrap();
    let governors: Vec<Keyed> = [1_000_000, 50_000_000][..rates].iter().map(|&count| keyed(count)).collect();
    let ours = |name: &String| limiter.check(&(), name, &RATES[..rates]).is_allowed();
    let theirs = |name: &String| governors.iter().all(|governor| governor.check_key(name).is_ok());
    names.iter().for_each(|name| assert!(ours(name) && theirs(name)));

    let (mut our_times, mut their_times) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        our_times.push(time(&names, round, ours));
        their_times.push(time(&names, round, theirs));
    }
    let (ours, theirs) = (median(our_times), median(their_times));
    let label = format!("{callers} callers, {rates} rate(s)");
    println!("{label:<28} {ours:>7.0} ns {theirs:>7.0} ns {:>7.2}", ours / theirs);
}

fn keyed(count: u32) -> Keyed {
    let quota = Quota::per_minute(NonZeroU32::new(count).unwrap());
    RateLimiter::new(quota, DashMapStateStore::default(), MonotonicClock)
}

/// Nanoseconds a decision, over callers in random order.
#[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn time(names: &[String], round: usize, decide: impl Fn(&String) -> bool) -> f64 {
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (round as u64 + 1));
    let start = Instant::now();
    for _ in 0..DECISIONS {
        black_box(decide(&names[random.next() % names.len()]));
    }
    start.elapsed().as_nanos() as f64 / DECISIONS as f64
}

/// Bytes a caller with two rates takes, table and all. A table doubles, so the figure depends on the number.
fn weigh(callers: usize) {
    let limiter = Limiter::builder(["prefix:rate:"]).build().unwrap();
    let empty = IN_USE.load(Ordering::Relaxed);
    for n in 0..callers {
        let _ = limiter.check(&(), n.to_ne_bytes(), RATES);
    }
    let bytes = IN_USE.load(Ordering::Relaxed) - empty;
    println!("{callers} callers, 2 rates: {} bytes a caller", bytes / callers);
}

/// The longest that a request waits beside a sweep: one that adds a caller while everything else expires.
#[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn sweep(callers: usize) {
    let clock = Arc::new(ManualClock::default());
    let limiter = Limiter::builder(["prefix:rate:"]).clock(Arc::clone(&clock)).build().unwrap();
    for n in 0..callers {
        let _ = limiter.check(&(), n.to_ne_bytes(), RATES);
    }
    clock.set(Duration::from_secs(3 * 3600));
    let start = Instant::now();
    let mut times: Vec<Duration> = std::thread::scope(|scope| {
        let sweeping = scope.spawn(|| limiter.sweep());
        let mut times = Vec::new();
        while !sweeping.is_finished() {
            let before = Instant::now();
            let _ = black_box(limiter.check(&(), times.len().to_ne_bytes(), RATES));
            times.push(before.elapsed());
        }
        times
    });
    times.sort();
    let at = |part: f64| times.get((times.len() as f64 * part) as usize).or(times.last()).copied().unwrap_or_default();
    println!("sweeping {callers} callers took {:?} beside {} requests", start.elapsed(), times.len());
    println!("those requests: median {:?}, 99.9 % {:?}, longest {:?}", at(0.5), at(0.999), at(1.0));
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// xorshift64*: good enough to visit callers in no order.
struct Random(u64);

impl Random {
    fn next(&mut self) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) as usize
    }
}
