//! One request from its facts to a decision: who makes it, what the policy says of it, and what the limiter says of
//! its caller.

use crate::capability::Prefixes;
use crate::decision::{Decision, Verdict};
use crate::limiter::Limiter;
use crate::policy::callers::{Enforced, Observed};
use crate::policy::facts::Facts;
use crate::policy::{ClientAddress, Mode, Needs, Policy};
use crate::request::Request;
use crate::time::Clock;
use crate::token::{Identity, TokenRules};
use std::sync::Arc;

/// Decides requests. It holds the live policy and the callers' state.
pub struct Engine {
    token: TokenRules,
    policy: Policy,
    needs: Needs,
    enforced_needs: Needs,
    limiter: Limiter<Enforced>,
    /// Holds callers to what the rules add that are only observed, if there are any.
    rehearsal: Option<Limiter<Observed>>,
}

impl Engine {
    /// An engine that reads identities by `token`, and holds them to the rates behind `prefixes` and to `policy`.
    pub fn new(token: TokenRules, prefixes: Prefixes, policy: Policy, clock: impl Clock + 'static) -> Self {
        let clock = Arc::new(clock);
        let rules = &policy.callers;
        let rehearse = || Limiter::new(prefixes.clone(), Observed(Arc::clone(rules)), Box::new(Arc::clone(&clock)));
        let rehearsal = rules.observes().then(rehearse);
        let limiter = Limiter::new(prefixes, Enforced(Arc::clone(rules)), Box::new(clock));
        Self { needs: policy.needs(), enforced_needs: policy.enforced_needs(), token, policy, limiter, rehearsal }
    }

    /// Where this engine reads identities.
    pub fn token(&self) -> &TokenRules {
        &self.token
    }

    /// The policy that it holds requests to.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The gRPC metadata in which it looks for the address of a client, if some rule asks for that.
    pub fn client_key(&self) -> Option<&str> {
        match &self.policy.client.address {
            ClientAddress::RpcMetadata(key) if self.needs.client => Some(key),
            _ => None,
        }
    }

    /// Drops expired state; see [`Limiter::sweep`].
    pub fn sweep(&self) {
        self.limiter.sweep();
        self.rehearsal.iter().for_each(Limiter::sweep);
    }

    /// Decides `request` of `identity`, which [`TokenRules::identify`] read from it. A bad identity is refused in every
    /// mode; what else is refused goes on where the policy is only observed.
    pub fn check<'r>(&self, request: &Request<'r>, identity: &Identity<'r>) -> Decision<'r> {
        let facts = self.policy.facts(self.needs, self.limiter.prefixes(), request, identity);
        let decline = |verdict| self.limiter.decline(verdict, capabilities(identity));
        let is_excused = self.policy.skips_preflights && request.is_preflight();
        let lacking = self.policy.lacking(self.enforced_needs, &facts);
        let bad_identity = || self.policy.bad_identity(identity, &facts).filter(|_| !is_excused);
        match (lacking, self.policy.mode) {
            (Some(verdict), Mode::Enforce) => decline(verdict),
            (Some(verdict), Mode::Observe) => bad_identity().map_or_else(|| decline(verdict).observed_only(), decline),
            (None, mode) => match bad_identity() {
                Some(verdict) => decline(verdict),
                None if is_excused => decline(Verdict::Allowed),
                None => by_mode(mode, self.hold(&facts, identity)),
            },
        }
    }

    /// Holds the caller to its rates and the policy's: first to what is enforced and then, if the request goes on, to
    /// what is only observed.
    fn hold<'r>(&self, facts: &Facts<'_>, identity: &Identity<'r>) -> Decision<'r> {
        let cost = self.policy.price(facts);
        let decision = self.limiter.check_cost(cost, facts, facts.caller(), capabilities(identity).iter().copied());
        match &self.rehearsal {
            Some(rehearsal) if decision.is_allowed() => {
                let rehearsed = self.rehearse(rehearsal, cost, facts, capabilities(identity));
                if rehearsed.is_allowed() { decision } else { decision.observing(rehearsed) }
            }
            _ => decision,
        }
    }

    /// What the rules that are only observed say of a request that goes on.
    fn rehearse<'r>(
        &self,
        rehearsal: &Limiter<Observed>,
        cost: u64,
        facts: &Facts<'_>,
        capabilities: &[&'r str],
    ) -> Decision<'r> {
        match self.policy.lacking(self.needs, facts) {
            Some(verdict) => rehearsal.decline(verdict, capabilities),
            None => rehearsal.check_cost(cost, facts, facts.caller(), capabilities.iter().copied()),
        }
    }
}

fn by_mode(mode: Mode, decision: Decision<'_>) -> Decision<'_> {
    match mode {
        Mode::Enforce => decision,
        Mode::Observe => decision.observed_only(),
    }
}

/// The capabilities of a verified token, as far as they could be read.
fn capabilities<'i, 'r>(identity: &'i Identity<'r>) -> &'i [&'r str] {
    match identity {
        Identity::Caller(caller) => &caller.capabilities,
        Identity::Unusable(token) => &token.capabilities,
        Identity::Missing | Identity::Failed(_) | Identity::Unverified => &[],
    }
}
