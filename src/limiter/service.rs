//! What the service asks of a limiter beside decisions: charges that go with others, and a successor by another policy.

use super::{CALLERS, Limiter};
use crate::capability::Prefixes;
use crate::decision::{Decision, Quota, Verdict};
use crate::plan::Presented;
use crate::rate::Rate;
use crate::store::caller::Caller;
use crate::store::group::CallerCharge;
use crate::store::key::{KeySpace, Secret};
use crate::time::{Clock, Now};
use smallvec::SmallVec;
use std::collections::HashSet;
use std::sync::Arc;

impl<R> Limiter<R> {
    /// A limiter of the same callers, by other prefixes and another resolver.
    pub(crate) fn succeeded<S>(&self, prefixes: Prefixes, resolver: S) -> Limiter<S> {
        let (clock, store) = (Arc::clone(&self.clock), Arc::clone(&self.store));
        Limiter { prefixes, resolver, clock, callers: self.callers.clone(), store }
    }

    /// Forgets the rates that a resolver brought, but for those to keep: they no longer apply, and what is owed stays owed.
    pub(crate) fn forget_policy_rates(&self, keep: &HashSet<Rate>) {
        self.store.forget_policy_rates(&*self.clock, keep);
    }

    /// The charge of `cost` units on each of `rates` of the caller `principal`.
    pub(crate) fn charge<'l>(&'l self, principal: &[u8], rates: &'l [Presented], cost: u64) -> CallerCharge<'l> {
        CallerCharge { callers: &self.store, key: self.callers.key(principal), rates, cost }
    }

    /// What clients may be told of the caller's rates.
    pub(crate) fn quotas(&self, principal: &[u8]) -> SmallVec<[Quota; 1]> {
        let allowances = self.store.look(self.callers.key(principal), &*self.clock).into_iter();
        let told = allowances.filter(|allowance| allowance.remembered);
        told.map(|of| Quota::of_caller(of.rate, of.remaining, of.next_in, of.full_in)).collect()
    }

    pub(crate) fn shared_clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    pub(crate) fn prefixes(&self) -> &Prefixes {
        &self.prefixes
    }

    /// The verdict on a request that is not held to any rate, with the warnings that its capabilities call for.
    pub(crate) fn decline<'t>(&self, verdict: Verdict<'t>, capabilities: &[&'t str]) -> Decision<'t> {
        Decision::without_rates(verdict, self.prefixes.read(capabilities.iter().copied()).malformed)
    }

    /// What callers' keys cannot be made without.
    pub(crate) fn secret(&self) -> Secret {
        self.callers.secret
    }

    /// Makes callers' keys as another process made them.
    pub(crate) fn take_secret(&mut self, secret: Secret) {
        self.callers = KeySpace::with(CALLERS, secret);
    }

    /// Hands all callers to `write`, as bytes, their times as of `now`.
    pub(crate) fn write<E>(&self, now: Now, write: impl FnMut(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        self.store.write(now, write)
    }

    /// Goes on with a caller of another process.
    pub(crate) fn put(&self, caller: Caller) {
        self.store.put(caller);
    }
}
