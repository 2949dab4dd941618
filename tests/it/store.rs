//! The memory store: threads, sweeping, and what a check allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tollgate::{Limiter, ManualClock};

const MINUTE: Duration = Duration::from_secs(60);

/// The system's allocator, counting what each thread allocates.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// How often `act` allocates.
pub fn allocations(act: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    act();
    ALLOCATIONS.get() - before
}

fn start() -> (Limiter, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    let limiter = Limiter::builder(["r:"]).clock(Arc::clone(&clock)).build().unwrap();
    (limiter, clock)
}

#[test]
fn a_known_callers_allowed_request_allocates_nothing() {
    let (limiter, _) = start();
    let two = ["orders:read", "r:1000/1m", "r:fast", "r:slow", "r:2000/1h"];
    let eight: Vec<String> = (1..=8).map(|minutes| format!("r:1000/{minutes}m")).collect();
    assert!(allocations(|| drop(limiter.check(&(), "alice", two))) > 0, "the first request makes the caller's state");
    assert_eq!(allocations(|| assert!(limiter.check(&(), "alice", two).is_allowed())), 0);
    let _ = limiter.check(&(), "bob", &eight);
    assert_eq!(allocations(|| assert!(limiter.check(&(), "bob", &eight).is_allowed())), 0);
}

/// `threads` threads make `calls` calls each, spread over `callers` callers; the number of allowed ones.
fn storm(limiter: &Limiter, threads: usize, calls: usize, callers: usize) -> usize {
    let allowed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let allowed = &allowed;
            scope.spawn(move || {
                for call in 0..calls {
                    let principal = format!("caller {}", (call + thread) % callers);
                    let decision = limiter.check(&(), &principal, ["r:100/1m", "r:150/1h"]);
                    allowed.fetch_add(usize::from(decision.is_allowed()), Ordering::Relaxed);
                }
            });
        }
    });
    allowed.into_inner()
}

#[test]
fn threads_never_admit_more_than_the_burst() {
    for callers in [1, 7, 200] {
        let (limiter, clock) = start();
        assert_eq!(storm(&limiter, 8, 100 * callers, callers), 100 * callers);
        clock.set(MINUTE);
        let left = 50 + 2; // of the hour's 150, and the minute brought two back
        assert_eq!(storm(&limiter, 8, 100 * callers, callers), left * callers);
    }
}

#[test]
fn expired_state_is_swept_and_live_state_is_not() {
    let (limiter, clock) = start();
    let visit = |name: &str, rate: &str| drop(limiter.check(&(), name, [rate]));
    (0..10_000).for_each(|n| visit(&format!("short {n}"), "r:5/1m"));
    visit("long", "r:5/1h");
    assert_eq!(limiter.callers(), 10_001);

    clock.set(2 * MINUTE);
    limiter.sweep();
    assert_eq!(limiter.callers(), 10_001, "exactly twice the window is still remembered");

    clock.set(2 * MINUTE + Duration::from_nanos(1));
    limiter.sweep();
    assert_eq!(limiter.callers(), 1);
    assert_eq!(limiter.allowances("long").len(), 1);
}

/// Whoever adds callers sweeps, so that the table follows what lives in it without anybody calling `sweep`.
#[test]
fn new_callers_sweep_as_they_come() {
    let (limiter, clock) = start();
    for wave in 0..10u32 {
        clock.set(wave * 3 * MINUTE);
        for n in 0..20_000 {
            let _ = limiter.check(&(), format!("caller {n} of wave {wave}"), ["r:5/1m"]);
        }
        assert!(limiter.callers() < 40_000, "{} callers after wave {wave}", limiter.callers());
    }
}
