//! Properties of the caller limiter, and its agreement with a naive model.

use crate::conformance::nanos;
use crate::model::{self, Numbers};
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;
use tollgate::{Decision, Denial, Limiter, ManualClock, Rate, Rates, Verdict};

type Raw = fn(&(), &[u8], &mut Rates<'_>) -> Result<(), Denial>;

/// A limiter that holds callers to the rates as presented, on a clock that stands still.
struct Bench {
    limiter: Limiter<Raw>,
    clock: Arc<ManualClock>,
}

impl Bench {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::default());
        let raw: Raw = |_, _, _| Ok(());
        let limiter = Limiter::builder(["r:"]).resolver(raw).clock(Arc::clone(&clock)).build().unwrap();
        Self { limiter, clock }
    }

    /// One request of `principal` at `now` that presents `rates`; `look` sees the decision.
    fn request<T>(
        &self,
        now: u64,
        principal: &str,
        rates: &[Numbers],
        cost: u64,
        look: impl FnOnce(&Decision<'_>) -> T,
    ) -> T {
        self.clock.set(Duration::from_nanos(now));
        let capabilities: Vec<String> = rates.iter().map(|rate| format!("r:{}", build(*rate))).collect();
        look(&self.limiter.check_cost(cost, &(), principal, &capabilities))
    }

    fn allows(&self, now: u64, principal: &str, rates: &[Numbers]) -> bool {
        self.request(now, principal, rates, 1, |decision| decision.is_allowed())
    }

    /// How many calls at once `principal` gets at `now`, up to `most`.
    fn burst(&self, now: u64, principal: &str, rates: &[Numbers], most: usize) -> usize {
        (0..most).take_while(|_| self.allows(now, principal, rates)).count()
    }
}

fn build((count, window): Numbers) -> Rate {
    Rate::new(count, Duration::from_nanos(window)).unwrap()
}

fn numbers(rate: Rate) -> Numbers {
    (rate.count(), nanos(rate))
}

fn verdict(decision: &Decision<'_>) -> model::Verdict {
    model::Verdict {
        limits: decision.limits().iter().map(|held| numbers(held.rate().unwrap())).collect(),
        refused: match decision.verdict() {
            Verdict::RateExceeded { limit, retry_after, .. } => {
                let wait = retry_after.map(|wait| u64::try_from(wait.as_nanos()).unwrap());
                Some((numbers(limit.rate().unwrap()), wait))
            }
            _ => None,
        },
    }
}

/// Small numbers, so that rates meet and time matters; and the largest ones.
fn rate() -> impl Strategy<Value = Numbers> {
    const LARGEST: u64 = i64::MAX as u64;
    prop_oneof![
        8 => (1..6u64, 1..60u64),
        1 => (1..6u64, LARGEST - 5..=LARGEST),
        1 => (LARGEST - 5..=LARGEST, 1..60u64),
    ]
}

fn rates() -> impl Strategy<Value = Vec<Numbers>> {
    prop::collection::vec(rate(), 1..4)
}

/// Moments that never decrease, most of them close together.
fn moments<T: std::fmt::Debug>(step: impl Strategy<Value = T>, most: usize) -> impl Strategy<Value = Vec<(u64, T)>> {
    let gap = prop_oneof![3 => 0..4u64, 2 => 0..80u64, 1 => 0..400u64];
    prop::collection::vec((gap, step), 1..most).prop_map(|steps| {
        let mut now = 0;
        let moment = |(gap, step)| {
            now += gap;
            (now, step)
        };
        steps.into_iter().map(moment).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn agrees_with_the_model(steps in moments((0..2usize, rates(), 0..4u64), 60)) {
        let bench = Bench::new();
        let mut callers = [model::Caller::default(), model::Caller::default()];
        for (now, (caller, rates, cost)) in steps {
            let expected = callers[caller].request(now, &rates, cost);
            prop_assert_eq!(bench.request(now, ["a", "b"][caller], &rates, cost, verdict), expected);
        }
    }

    /// The published bound. What a window does not divide into whole intervals, `rest`, comes back as a head start
    /// of less than a nanosecond a call; where it divides, the bound is the burst and the intervals that went by.
    #[test]
    fn admits_no_more_than_burst_plus_time(rate in (1..6u64, 1..60u64), steps in moments(Just(()), 120)) {
        let bench = Bench::new();
        let mut moments = steps.into_iter().map(|(now, ())| now);
        let admitted: Vec<u64> = moments.by_ref().filter(|&now| bench.allows(now, "a", &[rate])).collect();
        let (count, window) = rate;
        let interval = (window / count).max(1);
        let rest = (window % count).min(interval - 1);
        for (first, from) in admitted.iter().enumerate() {
            for (last, to) in admitted.iter().enumerate().skip(first) {
                let calls = (last - first + 1) as u64;
                prop_assert!(calls <= count.min(window) + (to - from + rest) / interval);
            }
        }
    }

    /// Waiting as told, alone, succeeds; a nanosecond less is refused if the refusing rate is presented.
    #[test]
    fn waits_are_tight(steps in moments(rates(), 40), last in rates()) {
        let at = steps.last().map_or(0, |(now, _)| *now);
        let play = || {
            let bench = Bench::new();
            for (now, rates) in &steps {
                bench.allows(*now, "a", rates);
            }
            let refused = bench.request(at, "a", &last, 1, verdict).refused;
            (bench, refused)
        };
        if let (bench, Some((limit, wait))) = play() {
            let wait = wait.expect("a cost of one always fits at some time");
            prop_assume!(at + wait <= i64::MAX as u64, "the clock ends there");
            prop_assert!(bench.allows(at + wait, "a", &last));
            if last.contains(&limit) {
                prop_assert!(!play().0.allows(at + wait - 1, "a", &last));
            }
        }
    }

    #[test]
    fn a_refusal_changes_no_allowance(steps in moments(rates(), 40), cost in 1..4u64) {
        let bench = Bench::new();
        for (now, rates) in steps {
            bench.request(now, "a", &rates, 0, |_| ());
            let before = bench.limiter.allowances("a");
            if bench.request(now, "a", &rates, cost, |decision| !decision.is_allowed()) {
                prop_assert_eq!(bench.limiter.allowances("a"), before);
            }
        }
    }

    #[test]
    fn idling_never_gives_more_than_a_new_caller_has(
        steps in moments(rates(), 20), idle in 0..500u64, rate in (1..6u64, 1..60u64),
    ) {
        let bench = Bench::new();
        let now = steps.iter().fold(0, |_, (now, rates)| { bench.allows(*now, "old", rates); *now }) + idle;
        let new = bench.burst(now, "new", &[rate], 10);
        prop_assert!(bench.burst(now, "old", &[rate], 10) <= new);
    }

    #[test]
    fn the_order_of_capabilities_does_not_matter(
        (rates, shuffled) in rates().prop_flat_map(|rates| (Just(rates.clone()), Just(rates).prop_shuffle())),
        times in moments(Just(()), 20),
    ) {
        let (one, other) = (Bench::new(), Bench::new());
        for (now, ()) in times {
            let expected = one.request(now, "a", &rates, 1, verdict);
            prop_assert_eq!(other.request(now, "a", &shuffled, 1, verdict), expected);
        }
    }

    #[test]
    fn a_full_allowance_is_worth_its_count(count in 1..50u64, window in 50..5_000u64, later in 0..10_000u64) {
        prop_assert_eq!(Bench::new().burst(later, "a", &[(count, window)], 60) as u64, count);
    }
}

/// A clock that steps back admits too little, never too much, and remembers for no shorter.
#[test]
fn a_clock_that_steps_back() {
    let (bench, rate) = (Bench::new(), [(2, 60)]);
    assert_eq!(bench.burst(1_000, "a", &rate, 5), 2);
    assert_eq!(bench.burst(0, "a", &rate, 5), 0, "the debt is longer, seen from an earlier moment");
    assert_eq!(bench.burst(1_000, "a", &rate, 5), 0);
    assert!(bench.request(1_120, "a", &[(9, 9)], 1, |decision| decision.limits().len() == 2), "last seen at 1000");
    assert_eq!(bench.burst(1_200, "a", &rate, 5), 2);
}
