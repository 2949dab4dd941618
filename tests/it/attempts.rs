//! The strike counter as a library: against a naive model, among threads, at its bounds.

use proptest::prelude::*;
use std::sync::Barrier;
use std::time::Duration;
use tollgate::Now;
use tollgate::attempts::{AttemptLimiter, InvalidPolicy, Outcome, Policy, Reservation};

fn at(nanos: u64) -> Now {
    Now::after(Duration::from_nanos(nanos))
}

fn limiter(threshold: u32, window: u64, keys: usize) -> AttemptLimiter {
    let window = Duration::from_nanos(window);
    AttemptLimiter::new(Policy { threshold, lockout_window: window, max_tracked_keys: keys }).unwrap()
}

proptest! {
    /// However many are open at once, and in whatever order they are taken back, so many stand as are left.
    #[test]
    fn of_many_at_once_the_rest_stand(
        order in (1..40_usize).prop_flat_map(|count| Just((0..count).collect::<Vec<_>>()).prop_shuffle()),
        left in 0..40_usize,
        pace in 0..8_usize,
    ) {
        let limiter = limiter(100, 1_000, 10);
        let time = |number: usize| at((number * pace / 5) as u64);
        let mut open: Vec<_> = (0..order.len()).map(|number| Some(limiter.reserve("k", time(number)).1)).collect();
        let cancelled = order.len().saturating_sub(left);
        for attempt in &order[..cancelled] {
            limiter.cancel(open[*attempt].take().unwrap(), at(60));
        }
        let stand = order.len() - cancelled;
        prop_assert_eq!(limiter.tracked(), usize::from(stand > 0));
        let more = (0..100).take_while(|_| limiter.attempt("k", at(61)) == Outcome::Allowed).count();
        prop_assert_eq!(more, 99 - stand);
    }
}

#[test]
fn bounds() {
    let new = |threshold, window, max_tracked_keys| {
        let policy = Policy { threshold, lockout_window: Duration::from_nanos(window), max_tracked_keys };
        AttemptLimiter::new(policy).err()
    };
    assert_eq!(new(0, 1, 1), Some(InvalidPolicy::Threshold));
    assert_eq!(new(1, 0, 1), Some(InvalidPolicy::Window));
    assert_eq!(new(1, 1, 0), Some(InvalidPolicy::Keys));
    assert_eq!(new(1, 1, u32::MAX as usize), Some(InvalidPolicy::Keys));
    assert_eq!(new(1, 1, 1), None);
    assert_eq!(new(u32::MAX, u64::MAX, u32::MAX as usize - 1), None);
    assert_eq!(Outcome::default(), Outcome::Denied);
}

#[test]
fn an_attempt_is_taken_back_alone() {
    use Outcome::{Allowed, AllowedLastAttempt, Denied};
    let limiter = limiter(3, 100, 10);
    let (first, of_first) = limiter.reserve("k", at(0));
    let (second, of_second) = limiter.reserve("k", at(1));
    let (third, of_third) = limiter.reserve("k", at(2));
    let (fourth, of_fourth) = limiter.reserve("k", at(3));
    assert_eq!([first, second, third, fourth], [Allowed, Allowed, AllowedLastAttempt, Denied]);
    // Nobody's attempt is lifted but that of the one that engaged it, and a denied one has nothing to take back.
    limiter.cancel(of_fourth, at(4));
    limiter.cancel(of_first, at(4));
    assert_eq!(limiter.locked("k", at(4)), Some(Duration::from_nanos(98)));
    limiter.cancel(of_third, at(5));
    assert_eq!(limiter.locked("k", at(5)), None);
    // One of three is left, so two more are allowed.
    assert_eq!([limiter.attempt("k", at(6)), limiter.attempt("k", at(7))], [Allowed, AllowedLastAttempt]);
    limiter.reset("k");
    assert_eq!(limiter.attempt("k", at(8)), Allowed);
    limiter.cancel(of_second, at(8));
    assert_eq!(
        [limiter.attempt("k", at(8)), limiter.attempt("k", at(8))],
        [Allowed, AllowedLastAttempt],
        "a reservation of before the reset takes nothing back"
    );
    // Where every key is locked, a new one is too, until the first of them is free.
    let limiter = self::limiter(1, 100, 2);
    assert_eq!([limiter.attempt("a", at(0)), limiter.attempt("b", at(9))], [AllowedLastAttempt; 2]);
    assert_eq!((limiter.attempt("c", at(10)), limiter.locked("c", at(10))), (Denied, Some(Duration::from_nanos(90))));
    assert_eq!((limiter.attempt("c", at(100)), limiter.tracked()), (AllowedLastAttempt, 2));
}

/// What the limiter is, in the plainest words: a list in the order of use.
struct Model {
    threshold: u32,
    window: u64,
    most: usize,
    keys: Vec<Tracked>,
    generation: u64,
}

#[derive(Clone)]
struct Tracked {
    key: u8,
    /// When each attempt that stands is over.
    strikes: Vec<u64>,
    until: u64,
    is_locked: bool,
    generation: u64,
}

/// The key, its generation, when the attempt is over and whether it engaged a lockout.
type Reserved = Option<(u8, u64, u64, bool)>;

impl Model {
    fn find(&self, key: u8, now: u64) -> Option<usize> {
        self.keys.iter().position(|tracked| tracked.key == key && tracked.until > now)
    }

    /// The key that is displaced by a new one: the first unlocked or the first locked one if its window is over, else the
    /// first unlocked one.
    fn displaced(&self, now: u64) -> Option<usize> {
        let first = |locked: bool| self.keys.iter().position(|tracked| tracked.is_locked == locked);
        let is_over = |at: &usize| self.keys[*at].until <= now;
        first(false).filter(is_over).or(first(true).filter(is_over)).or(first(false))
    }

    fn locked(&self, key: u8, now: u64) -> Option<u64> {
        match self.find(key, now) {
            Some(at) => Some(self.keys[at].until - now).filter(|_| self.keys[at].is_locked),
            None if self.keys.iter().any(|tracked| tracked.key == key) => None,
            None if self.keys.len() < self.most || self.displaced(now).is_some() => None,
            None => self.keys.iter().map(|tracked| tracked.until - now).min(),
        }
    }

    fn reserve(&mut self, key: u8, now: u64) -> (Outcome, Reserved) {
        if self.locked(key, now).is_some() {
            return (Outcome::Denied, None);
        }
        let mut tracked = match self.find(key, now) {
            Some(at) => self.keys.remove(at),
            None => {
                self.keys.retain(|tracked| tracked.key != key);
                if self.keys.len() == self.most {
                    self.keys.remove(self.displaced(now).unwrap());
                }
                self.generation += 1;
                Tracked { key, strikes: Vec::new(), until: 0, is_locked: false, generation: self.generation }
            }
        };
        tracked.until = now + self.window;
        tracked.strikes.push(tracked.until);
        tracked.is_locked = tracked.strikes.len() == self.threshold as usize;
        let reserved = (key, tracked.generation, tracked.until, tracked.is_locked);
        let outcome = if tracked.is_locked { Outcome::AllowedLastAttempt } else { Outcome::Allowed };
        self.keys.push(tracked);
        (outcome, Some(reserved))
    }

    fn cancel(&mut self, reserved: Reserved, now: u64) {
        let Some((key, generation, end, engaged)) = reserved else { return };
        let Some(at) = self.find(key, now).filter(|&at| self.keys[at].generation == generation) else { return };
        self.take_back(at, end);
        if engaged {
            let mut lifted = self.keys.remove(at);
            lifted.is_locked = false;
            self.keys.push(lifted);
        }
        self.settle();
    }

    fn take_back(&mut self, at: usize, end: u64) {
        let strikes = &mut self.keys[at].strikes;
        if let Some(strike) = strikes.iter().position(|strike| *strike == end) {
            strikes.remove(strike);
        }
    }

    /// Keys that are not locked are worth something until their last attempt is over.
    fn settle(&mut self) {
        self.keys.retain(|tracked| !tracked.strikes.is_empty() || tracked.is_locked);
        for tracked in self.keys.iter_mut().filter(|tracked| !tracked.is_locked) {
            tracked.until = *tracked.strikes.iter().max().unwrap();
        }
    }

    fn refund(&mut self, key: u8, now: u64) {
        let unlocked = self.find(key, now).filter(|&at| !self.keys[at].is_locked);
        if let Some(at) = unlocked {
            self.take_back(at, self.keys[at].until);
            self.settle();
        }
    }
}

#[derive(Clone, Debug)]
enum Act {
    Wait(u64),
    Attempt(u8),
    Reserve(u8),
    Cancel(usize),
    Refund(u8),
    Reset(u8),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => (0..7_u64).prop_map(Act::Wait),
        5 => (0..6_u8).prop_map(Act::Attempt),
        5 => (0..6_u8).prop_map(Act::Reserve),
        5 => (0..8_usize).prop_map(Act::Cancel),
        1 => (0..6_u8).prop_map(Act::Refund),
        1 => (0..6_u8).prop_map(Act::Reset),
    ]
}

proptest! {
    #[test]
    fn it_agrees_with_the_model(
        threshold in 1..9_u32, window in 1..20_u64, most in 1..5_usize, acts in prop::collection::vec(act(), 1..120),
    ) {
        let limiter = limiter(threshold, window, most);
        let mut model = Model { threshold, window, most, keys: Vec::new(), generation: 0 };
        let mut reservations: Vec<(Reservation, Reserved)> = Vec::new();
        let mut now = 0;
        for act in acts {
            match act {
                Act::Wait(time) => now += time,
                Act::Attempt(key) => prop_assert_eq!(limiter.attempt([key], at(now)), model.reserve(key, now).0),
                Act::Reserve(key) => {
                    let ((ours, reservation), (theirs, reserved)) = (limiter.reserve([key], at(now)), model.reserve(key, now));
                    prop_assert_eq!(ours, theirs);
                    reservations.push((reservation, reserved));
                }
                Act::Cancel(number) if number < reservations.len() => {
                    let (reservation, reserved) = reservations.swap_remove(number);
                    limiter.cancel(reservation, at(now));
                    model.cancel(reserved, now);
                }
                Act::Cancel(_) => {}
                Act::Refund(key) => {
                    limiter.refund([key], at(now));
                    model.refund(key, now);
                }
                Act::Reset(key) => {
                    limiter.reset([key]);
                    model.keys.retain(|tracked| tracked.key != key);
                }
            }
            for key in 0..6 {
                let locked = limiter.locked([key], at(now)).map(|wait| wait.as_nanos() as u64);
                prop_assert_eq!(locked, model.locked(key, now), "key {} at {}", key, now);
            }
            prop_assert!(limiter.tracked() <= most);
        }
    }
}

/// An attempt that is taken back never was: who succeeds every now and then does not keep old strikes alive.
#[test]
fn what_is_taken_back_prolongs_nothing() {
    let limiter = limiter(3, 100, 10);
    let _ = limiter.attempt("k", at(0));
    for now in [50, 90, 99] {
        let (_, reservation) = limiter.reserve("k", at(now));
        limiter.cancel(reservation, at(now));
    }
    let in_flight = [limiter.reserve("k", at(99)).1];
    assert_eq!(limiter.attempt("k", at(100)), Outcome::AllowedLastAttempt);
    in_flight.into_iter().for_each(|reservation| limiter.cancel(reservation, at(101)));
    limiter.reset("k");

    // A refund and a cancel of one attempt take back one, also of many.
    let limiter = self::limiter(30, 100, 10);
    let mut open: Vec<_> = (1..=12).map(|now| limiter.reserve("k", at(now)).1).collect();
    limiter.refund("k", at(13));
    limiter.cancel(open.pop().unwrap(), at(13));
    let attempts = std::iter::repeat_with(|| limiter.attempt("k", at(13)));
    assert_eq!(attempts.take_while(|outcome| *outcome == Outcome::Allowed).count(), 18);

    // Eight at once and again leave one that was there before them as it was.
    let limiter = self::limiter(30, 100, 10);
    let _ = limiter.attempt("k", at(0));
    for now in [80, 90, 99] {
        let open: Vec<_> = (0..8).map(|_| limiter.reserve("k", at(now)).1).collect();
        open.into_iter().for_each(|reservation| limiter.cancel(reservation, at(now)));
    }
    limiter.sweep(at(100));
    assert_eq!(limiter.tracked(), 0);

    // So many at once that their ends are not known apart: those before the last eight end together.
    for (now, allowed, why) in
        [(101, 28, "the first is left, to the end of the third"), (102, 29, "with that it is over")]
    {
        let limiter = self::limiter(30, 100, 10);
        let _ = limiter.attempt("k", at(0));
        let open: Vec<_> = (1..=10).map(|now| limiter.reserve("k", at(now)).1).collect();
        open.into_iter().for_each(|reservation| limiter.cancel(reservation, at(20)));
        let attempts = std::iter::repeat_with(|| limiter.attempt("k", at(now)));
        assert_eq!(attempts.take_while(|outcome| *outcome == Outcome::Allowed).count(), allowed, "{why}");
    }
}

/// Runs `act` on so many threads at once.
fn race<T: Send>(threads: usize, act: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(threads);
    std::thread::scope(|scope| {
        let run = |thread| {
            let (barrier, act) = (&barrier, &act);
            scope.spawn(move || {
                barrier.wait();
                act(thread)
            })
        };
        let threads: Vec<_> = (0..threads).map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn threads_get_exactly_the_threshold() {
    for round in 0..50 {
        let limiter = limiter(5, 1_000, 10);
        let outcomes = race(8, |_| (0..4).map(|_| limiter.attempt("k", at(round))).collect::<Vec<_>>()).concat();
        let count = |wanted| outcomes.iter().filter(|outcome| **outcome == wanted).count();
        assert_eq!((count(Outcome::Allowed), count(Outcome::AllowedLastAttempt), count(Outcome::Denied)), (4, 1, 27));
    }
}

#[test]
fn concurrent_cancels_leave_no_strikes() {
    for _ in 0..50 {
        let limiter = limiter(8, 1_000, 10);
        race(8, |_| {
            let (_, reservation) = limiter.reserve("k", at(0));
            limiter.cancel(reservation, at(0));
        });
        assert_eq!((limiter.tracked(), limiter.locked("k", at(0))), (0, None));
    }
}

/// A flood of new keys forgets the least recently used of those that are not locked, and never a lockout.
#[test]
fn a_flood_forgets_no_lockout() {
    let limiter = limiter(2, 1_000_000, 100);
    for _ in 0..2 {
        let _ = limiter.attempt("victim", at(0));
    }
    let _ = limiter.attempt("counting", at(1));
    for key in 0..10_000_u32 {
        assert_eq!(limiter.attempt(key.to_le_bytes(), at(2)), Outcome::Allowed);
    }
    assert!(limiter.locked("victim", at(3)).is_some());
    assert_eq!(limiter.attempt("counting", at(3)), Outcome::Allowed, "it starts from zero");
    assert_eq!(limiter.tracked(), 100);
    limiter.sweep(at(1_000_000_000));
    assert_eq!(limiter.tracked(), 0);
}
