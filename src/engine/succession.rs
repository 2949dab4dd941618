//! How engines come about: the first, and each that goes on with the state of the one before it.

use super::limits::Limits;
use super::lockouts::Lockouts;
use super::{Engine, Outcomes};
use crate::capability::Prefixes;
use crate::limiter::Limiter;
use crate::policy::callers::{Enforced, Observed};
use crate::policy::{Mode, Policy};
use crate::time::Clock;
use crate::token::TokenRules;
use std::sync::Arc;

impl Engine {
    /// An engine that reads identities by `token`, and holds them to the rates behind `prefixes` and to `policy`.
    pub fn new(token: TokenRules, prefixes: Prefixes, policy: Policy, clock: impl Clock + 'static) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(clock);
        let rules = Arc::clone(&policy.callers);
        let limiter = Limiter::new(prefixes, Enforced(rules), clock);
        let (limits, lockouts) = (Limits::new(&policy, None), Lockouts::new(&policy, None));
        Self::whole(token, policy, limiter, None, limits, lockouts, Arc::default())
    }

    /// An engine by another configuration that goes on with the state of this one: callers, limits, lockouts and
    /// reservations, by their names. A limit that counts by something else, or in other windows, starts afresh.
    #[must_use]
    pub fn succeeded(&self, token: TokenRules, prefixes: Prefixes, mut policy: Policy) -> Self {
        policy.keep(&self.policy);
        let limiter = self.limiter.succeeded(prefixes, Enforced(Arc::clone(&policy.callers)));
        let limits = Limits::new(&policy, Some(&self.limits));
        let lockouts = Lockouts::new(&policy, Some(&self.lockouts));
        let rehearsal = self.rehearsal.as_ref();
        Self::whole(token, policy, limiter, rehearsal, limits, lockouts, Arc::clone(&self.outcomes))
    }

    fn whole(
        token: TokenRules,
        policy: Policy,
        limiter: Limiter<Enforced>,
        rehearsed: Option<&Limiter<Observed>>,
        limits: Limits,
        lockouts: Lockouts,
        outcomes: Arc<Outcomes>,
    ) -> Self {
        let rehearse = || {
            let (prefixes, rules) = (limiter.prefixes().clone(), Observed(Arc::clone(&policy.callers)));
            match rehearsed {
                Some(rehearsed) => rehearsed.succeeded(prefixes, rules),
                None => Limiter::new(prefixes, rules, limiter.shared_clock()),
            }
        };
        Self {
            needs: policy.needs(None),
            enforced_needs: policy.needs(Some(Mode::Enforce)),
            asks_calendar: policy.asks_calendar(),
            counts_clients: policy.counts_clients(),
            rehearsal: policy.callers.observes().then(rehearse),
            token,
            policy,
            limits,
            lockouts,
            outcomes,
            limiter,
        }
    }

    /// Has state be as this policy would have it, once no request is judged by the one before. Rates go that only that one
    /// brought: they no longer apply, and what is owed stays owed. Of a limit whose rate is another, nobody owes more than a
    /// request can owe. It walks all state.
    pub fn take_over(&self) {
        self.limits.clamp(self.moment());
        let rules = &self.policy.callers;
        self.limiter.forget_policy_rates(&rules.rates(Mode::Enforce));
        self.rehearsal.iter().for_each(|rehearsal| rehearsal.forget_policy_rates(&rules.rates(Mode::Observe)));
    }
}
