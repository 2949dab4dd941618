//! One caller's allowances: created, remembered, weighed together, taken all or none.

#[cfg(feature = "server")]
mod written;

use crate::decision::{By, Refused, Taken};
use crate::plan::Presented;
use crate::rate::Rate;
use crate::store::gcra::{Fit, Terms, debt};
use crate::store::key::Key;
use crate::time::Now;
use smallvec::SmallVec;
#[cfg(feature = "server")]
use std::collections::HashSet;
use std::time::Duration;

/// A caller that has state. Two allowances stay within the table's entry.
#[derive(Clone)]
pub(crate) struct Caller {
    pub key: Key,
    /// Sorted by rate: shortest window first, then lowest count.
    allowances: SmallVec<[State; 2]>,
}

/// The state of one allowance, in nanoseconds of the clock.
#[derive(Clone)]
struct State {
    rate: Rate,
    /// When it is full again.
    tat: u64,
    seen: Seen,
}

/// When a request last brought a rate, and what did: its token, or the policy. Moments take 63 bits, so one tells.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Seen(u64);

impl Seen {
    const OF_POLICY: u64 = 1 << 63;

    /// The policy brought it, and no longer does.
    const GONE: Self = Self(u64::MAX);

    fn new(now: u64, is_of_token: bool) -> Self {
        Self(if is_of_token { now } else { now | Self::OF_POLICY })
    }

    fn at(self) -> u64 {
        self.0 & !Self::OF_POLICY
    }

    fn is_of_policy(self) -> bool {
        self.0 & Self::OF_POLICY != 0
    }
}

/// One allowance of a caller, as [`Limiter::allowances`](crate::Limiter::allowances) shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Allowance {
    /// The rate.
    pub rate: Rate,
    /// The calls that it permits at once now.
    pub remaining: u64,
    /// The time until it permits one call more, if nothing is spent meanwhile; zero if it is full.
    pub next_in: Duration,
    /// The time until it is full, if nothing is spent meanwhile.
    pub full_in: Duration,
    /// Whether it applies to a request that does not present it. If not, its debt alone is kept.
    pub remembered: bool,
}

impl Caller {
    pub(crate) fn new(key: Key) -> Self {
        Self { key, allowances: SmallVec::new() }
    }

    /// Takes `cost` units of each allowance that applies, or of none. No two of `presented` are alike.
    pub(crate) fn take(&mut self, presented: &[Presented], cost: u64, now: Now) -> Taken {
        self.present(presented, now);
        self.allowances.retain(|state| !state.is_expired(now));
        let refused = self.longest_wait(cost, now);
        if refused.is_none() {
            self.allowances.iter_mut().filter(|state| !state.is_forgotten(now)).for_each(|state| state.take(cost, now));
        }
        Taken { applied: self.applied(now).map(|state| state.rate).collect(), refused, ..Taken::default() }
    }

    pub(crate) fn look(&self, now: Now) -> Vec<Allowance> {
        self.allowances.iter().map(|state| state.look(now)).collect()
    }

    /// Forgets the rates that the policy brought, but for those to keep.
    #[cfg(feature = "server")]
    pub(crate) fn forget_policy_rates(&mut self, now: Now, keep: &HashSet<Rate>) {
        let goes = |state: &&mut State| state.seen.is_of_policy() && !keep.contains(&state.rate);
        self.allowances.iter_mut().filter(goes).for_each(|state| state.seen = Seen::GONE);
        self.allowances.retain(|state| !state.is_expired(now));
    }

    pub(crate) fn is_expired(&self, now: Now) -> bool {
        self.allowances.iter().all(|state| state.is_expired(now))
    }

    /// Remembers the `presented` rates from now on; the allowance of a new one is full.
    fn present(&mut self, presented: &[Presented], now: Now) {
        let known = self.allowances.len();
        for &Presented { rate, is_of_token } in presented {
            match self.allowances[..known].binary_search_by_key(&rate, |state| state.rate) {
                Ok(at) => self.allowances[at].present(is_of_token, now),
                Err(_) => {
                    let seen = Seen::new(now.nanos(), is_of_token);
                    self.allowances.push(State { rate, tat: now.nanos(), seen });
                }
            }
        }
        if self.allowances.len() > known {
            self.allowances.sort_unstable_by_key(|state| state.rate);
        }
    }

    /// The applied allowances, in their order.
    fn applied(&self, now: Now) -> impl Iterator<Item = &State> {
        self.allowances.iter().filter(move |state| !state.is_forgotten(now))
    }

    /// The refusing rate with the longest wait, "never" being the longest; the first in order on a tie.
    fn longest_wait(&self, cost: u64, now: Now) -> Option<Refused> {
        let mut longest: Option<Refused> = None;
        for state in self.applied(now) {
            let wait = match state.weigh(cost, now) {
                Fit::Fits => continue,
                Fit::Wait(wait) => Some(wait),
                Fit::Never => None,
            };
            Refused::worsen(&mut longest, Refused { by: By::Callers, rate: Some(state.rate), wait });
        }
        longest
    }
}

impl State {
    fn weigh(&self, cost: u64, now: Now) -> Fit {
        Terms::of(self.rate).weigh(self.tat, now.nanos(), cost)
    }

    fn take(&mut self, cost: u64, now: Now) {
        self.tat = Terms::of(self.rate).take(self.tat, now.nanos(), cost);
    }

    /// Brought once more. What a token brought is a token's as long as it is remembered.
    fn present(&mut self, is_of_token: bool, now: Now) {
        let is_of_token = is_of_token || !self.seen.is_of_policy() && !self.is_forgotten(now);
        let before = if self.is_gone() { 0 } else { self.seen.at() };
        self.seen = Seen::new(before.max(now.nanos()), is_of_token);
    }

    fn is_gone(&self) -> bool {
        self.seen == Seen::GONE
    }

    /// Not presented for more than twice its window.
    fn is_forgotten(&self, now: Now) -> bool {
        self.is_gone() || now.nanos().saturating_sub(self.seen.at()) > self.rate.nanos() * 2
    }

    /// Forgotten and full: worth no more than an allowance that does not exist.
    fn is_expired(&self, now: Now) -> bool {
        self.is_forgotten(now) && debt(self.tat, now.nanos()) == 0
    }

    fn look(&self, now: Now) -> Allowance {
        let terms = Terms::of(self.rate);
        let remaining = terms.remaining(self.tat, now.nanos());
        let next = if remaining < self.rate.count() { terms.next_unit(self.tat, now.nanos()) } else { 0 };
        Allowance {
            rate: self.rate,
            remaining,
            next_in: Duration::from_nanos(next),
            full_in: Duration::from_nanos(debt(self.tat, now.nanos())),
            remembered: !self.is_forgotten(now),
        }
    }
}
