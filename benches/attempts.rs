//! `cargo bench --bench attempts`: what an attempt costs in a flood of distinct keys, whatever the number of keys, and what a
//! key weighs.
//!
//! Two limiters, one of 50,000 keys and one of 5,000,000, are flooded in turn, first while they fill up and then while each
//! new key displaces another; the ratio is that of neighbours. Whoever waited for a scan, or for a table that grows as a
//! whole, would wait a hundred times longer with a hundred times the keys: the slowest of a hundred thousand attempts shows
//! that nobody does. (The machine itself interrupts more often than that.)

#[path = "memory/counting.rs"]
#[allow(dead_code, reason = "each bench counts one thing")]
mod counting;

use counting::IN_USE;
use std::hint::black_box;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tollgate::Now;
use tollgate::attempts::{AttemptLimiter, Policy};

const SIZES: [usize; 2] = [50_000, 5_000_000];

/// Attempts of one turn.
const TURN: usize = 50_000;

/// Limiters of both sizes, and the next key of each.
struct Flooded {
    limiter: AttemptLimiter,
    next: u64,
    times: Vec<u32>,
}

fn main() {
    let before = IN_USE.load(Ordering::Relaxed);
    let mut small = Flooded::new(SIZES[0]);
    let mut large = Flooded::new(SIZES[1]);
    println!("{:<40} {:>9} {:>9} {:>7}", "attempts on distinct keys", "50,000", "5,000,000", "ratio");
    compare("while the larger one fills up", &mut small, &mut large, SIZES[1] / TURN);
    compare("while each key displaces another", &mut small, &mut large, SIZES[1] / TURN);
    let times = small.times.capacity() + large.times.capacity();
    let bytes = IN_USE.load(Ordering::Relaxed) - before - times * size_of::<u32>();
    let keys = small.limiter.tracked() + large.limiter.tracked();
    println!("\n{keys} keys, {:.0} bytes each", bytes as f64 / keys as f64);
}

fn compare(label: &str, small: &mut Flooded, large: &mut Flooded, turns: usize) {
    small.times.clear();
    large.times.clear();
    for _ in 0..turns {
        small.flood();
        large.flood();
    }
    println!("{label}");
    for (name, at) in [("  median", 0.5), ("  1 of 100,000", 0.999_99)] {
        let (small, large) = (small.quantile(at), large.quantile(at));
        let ratio = f64::from(large) / f64::from(small);
        println!("{name:<40} {small:>6} ns {large:>6} ns {ratio:>7.2}");
    }
}

impl Flooded {
    fn new(max_tracked_keys: usize) -> Self {
        let lockout_window = Duration::from_secs(900);
        let limiter = AttemptLimiter::new(Policy { threshold: 5, lockout_window, max_tracked_keys }).unwrap();
        Self { limiter, next: 0, times: Vec::with_capacity(SIZES[1]) }
    }

    #[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
    fn flood(&mut self) {
        let now = Now::after(Duration::from_secs(1));
        for _ in 0..TURN {
            let start = Instant::now();
            let _ = black_box(self.limiter.attempt(self.next.to_le_bytes(), now));
            self.times.push(u32::try_from(start.elapsed().as_nanos()).unwrap_or(u32::MAX));
            self.next += 1;
        }
    }

    fn quantile(&mut self, at: f64) -> u32 {
        let rank = ((self.times.len() - 1) as f64 * at) as usize;
        *self.times.select_nth_unstable(rank).1
    }
}
