//! One request from its facts to a decision: who makes it, and what the limiter says of that caller.

use crate::capability::Prefixes;
use crate::decision::{Decision, Unauthenticated, Verdict};
use crate::limiter::Limiter;
use crate::request::Request;
use crate::resolver::{DefaultResolver, Denial};
use crate::time::Clock;
use crate::token::{Identity, MissingToken, TokenRules};

/// Decides requests. It holds the live policy and the callers' state.
pub struct Engine {
    token: TokenRules,
    limiter: Limiter,
}

impl Engine {
    /// An engine that reads identities by `token`, and holds them to the rates behind `prefixes` by `callers`.
    pub fn new(token: TokenRules, prefixes: Prefixes, callers: DefaultResolver, clock: impl Clock + 'static) -> Self {
        Self { token, limiter: Limiter::new(prefixes, callers, Box::new(clock)) }
    }

    /// Where this engine reads identities.
    pub fn token(&self) -> &TokenRules {
        &self.token
    }

    /// Drops expired state; see [`Limiter::sweep`].
    pub fn sweep(&self) {
        self.limiter.sweep();
    }

    /// Decides `request` of `identity`, which [`TokenRules::identify`] read from it.
    pub fn check<'r>(&self, request: &Request<'r>, identity: &Identity<'r>) -> Decision<'r> {
        match identity {
            Identity::Caller(caller) => {
                self.limiter.check(request, &*caller.principal, caller.capabilities.iter().copied())
            }
            Identity::Missing if self.token.missing == MissingToken::Allow => self.limiter.check(request, "", [""; 0]),
            Identity::Missing => self.unauthenticated(Unauthenticated::MissingToken),
            Identity::Failed(_) | Identity::Unverified => self.unauthenticated(Unauthenticated::FailedToken),
            Identity::Unusable(token) => {
                let denied = Verdict::Denied(Denial::new(token.reason.to_string()));
                self.limiter.decline(denied, &token.capabilities)
            }
        }
    }

    fn unauthenticated<'r>(&self, why: Unauthenticated) -> Decision<'r> {
        self.limiter.decline(Verdict::Unauthenticated(why), &[])
    }
}
