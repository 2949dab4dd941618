//! What a deployment adds to the rates in tokens: who needs no token, rules about callers, what requests cost.

pub mod callers;
pub mod costs;
pub mod counts;
pub mod crowd;
pub mod facts;
pub mod index;
pub mod limits;
pub mod lockouts;
pub mod outcomes;
pub mod pattern;
pub mod scope;
pub mod when;

use crate::capability::Prefixes;
use crate::decision::{Unauthenticated, Unavailable, Verdict};
use crate::network::{self, proxies::Proxies};
use crate::path::{EncodedSlash, canonical};
use crate::request::Request;
use crate::resolver::{Denial, DenialStatus};
use crate::token::{Caller, Identity};
use callers::CallerRules;
use costs::Costs;
use counts::Counts;
use crowd::Crowd;
use facts::{Facts, Field, Presence};
use limits::Limit;
use lockouts::Lockout;
use scope::Scope;
use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use when::{Matcher, When};

/// The policy of a deployment.
#[derive(Debug)]
pub struct Policy {
    /// What becomes of a request that the policy refuses.
    pub mode: Mode,
    /// What a request without a token may do.
    pub missing: MissingToken,
    /// Whether a browser's preflight is let through without asking who makes it.
    pub skips_preflights: bool,
    /// The caller rules.
    pub callers: Arc<CallerRules>,
    /// What requests cost.
    pub costs: Costs,
    /// Where the address of a client is read.
    pub client: ClientRules,
    /// What an encoded slash in a path means.
    pub encoded_slash: EncodedSlash,
    /// The limits, in order.
    pub limits: Vec<Limit>,
    /// The lockouts, in order.
    pub lockouts: Vec<Lockout>,
    /// How long the outcome of a request is waited for.
    pub outcome_timeout: Duration,
    /// Whether clients are told of their quotas.
    pub tells_quotas: bool,
    /// What requests lacked.
    pub counts: Arc<Counts>,
    /// Whether clients seem to be one.
    pub crowd: Arc<Crowd>,
}

/// What becomes of a request that is to be refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// It is refused.
    #[default]
    Enforce,
    /// It goes on, and what would have become of it is reported.
    Observe,
}

/// What a request without a token may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingToken {
    /// It is refused with 401.
    Deny,
    /// It goes on as a caller without a name and without capabilities.
    Allow,
    /// It goes on like that where this applies.
    AllowWhen(When),
}

/// Where the address of a client is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRules {
    /// Where it stands.
    pub address: ClientAddress,
    /// What holds where it cannot be read.
    pub on_missing: MissingClient,
    /// How many bits of an IPv6 address tell one client's network from another's.
    pub ipv6_prefix: u8,
}

/// Where the address of a client stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientAddress {
    /// In the gRPC metadata of the Check, under this key, where no client can write it.
    RpcMetadata(String),
    /// At the other end of Envoy's connection.
    Peer,
    /// In a header, where proxies that are trusted wrote it; else at the other end of Envoy's connection.
    Behind(Proxies),
}

/// What holds where the address of a client cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingClient {
    /// The request is refused with 503.
    Refuse,
    /// The address at the other end of Envoy's connection counts.
    Peer,
}

/// The facts that some rules ask for, and that are not to be had for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The canonical path.
    pub path: bool,
    /// The host.
    pub host: bool,
    /// The address of the client.
    pub client: bool,
    /// Whether the token carries a rate.
    pub has_rate: bool,
}

impl Needs {
    /// What these matchers ask for.
    pub fn of<'w>(whens: impl Iterator<Item = &'w When> + Clone) -> Self {
        let asked = |asks: &dyn Fn(&Matcher) -> bool| whens.clone().any(|when| when.asks(asks));
        Self {
            path: asked(&|matcher| matcher.field() == Some(&Field::Path)),
            host: asked(&|matcher| matcher.field() == Some(&Field::Host)),
            client: asked(&|matcher| matches!(matcher, Matcher::Client(_))),
            has_rate: asked(&|matcher| matches!(matcher, Matcher::HasRate(_))),
        }
    }

    /// What either asks for.
    fn and(self, other: Self) -> Self {
        Self {
            path: self.path || other.path,
            host: self.host || other.host,
            client: self.client || other.client,
            has_rate: self.has_rate || other.has_rate,
        }
    }
}

impl Policy {
    /// Goes on counting where `before` counted.
    pub fn keep(&mut self, before: &Self) {
        self.counts = Arc::clone(&before.counts);
        self.crowd = Arc::clone(&before.crowd);
    }

    /// What rules of this mode ask of every request, or all of them.
    pub fn needs(&self, mode: Option<Mode>) -> Needs {
        self.scopes(mode).map(Scope::needs).fold(Needs::of(self.whens(mode)), Needs::and)
    }

    /// Whether some limit or lockout counts by client.
    pub fn counts_clients(&self) -> bool {
        self.scopes(None).any(Scope::counts_clients)
    }

    /// Whether some limit or lockout asks for the calendar.
    pub fn asks_calendar(&self) -> bool {
        self.limits.iter().any(|limit| limit.is_fixed) || self.lockouts.iter().any(|lockout| lockout.is_fixed)
    }

    /// What limits and lockouts of this mode are for.
    fn scopes(&self, mode: Option<Mode>) -> impl Iterator<Item = &Scope> {
        let limits = self.limits.iter().map(|limit| (limit.mode, &limit.scope));
        let lockouts = self.lockouts.iter().map(|lockout| (lockout.mode, &lockout.scope));
        limits.chain(lockouts).filter(move |(own, _)| mode.is_none_or(|mode| mode == *own)).map(|(_, scope)| scope)
    }

    /// What caller rules of this mode are for, and the rules that have none.
    fn whens(&self, mode: Option<Mode>) -> impl Iterator<Item = &When> + Clone {
        self.excuses().chain(self.caller_rules(mode)).chain(self.cost_rules())
    }

    fn excuses(&self) -> impl Iterator<Item = &When> + Clone {
        let when = match &self.missing {
            MissingToken::AllowWhen(when) => Some(when),
            MissingToken::Deny | MissingToken::Allow => None,
        };
        when.into_iter()
    }

    fn caller_rules(&self, mode: Option<Mode>) -> impl Iterator<Item = &When> + Clone {
        let rules = self.callers.rules().iter();
        rules.filter(move |rule| mode.is_none_or(|mode| rule.mode == mode)).map(|rule| &rule.when)
    }

    fn cost_rules(&self) -> impl Iterator<Item = &When> + Clone {
        self.costs.rules().iter().map(|rule| &rule.when)
    }

    /// Brings what rules ask for into the form in which it is compared, as far as the request has it.
    pub fn facts<'f>(
        &self,
        needs: Needs,
        prefixes: &Prefixes,
        request: &'f Request<'f>,
        identity: &'f Identity<'_>,
    ) -> Facts<'f> {
        let caller = match identity {
            Identity::Caller(caller) => Some(caller),
            _ => None,
        };
        let carries = |caller: &Caller<'_>| prefixes.any(caller.capabilities.iter().copied());
        let host = if needs.host { facts::canonical_host(request.host) } else { Some(b"".into()) };
        let path = if needs.path { canonical(request.path, self.encoded_slash) } else { Ok("".into()) };
        Facts {
            request,
            token: presence(identity),
            principal: caller.map(|caller| &*caller.principal),
            claims: caller.and_then(|caller| caller.claims),
            has_rate: needs.has_rate && caller.is_some_and(carries),
            unsafe_path: path.as_ref().err().copied(),
            path: path.unwrap_or_default(),
            unsafe_host: host.is_none(),
            host: host.unwrap_or_default(),
            client: if needs.client { self.client(request) } else { None },
        }
    }

    /// The verdict on a request that lacks what rules need to decide it, if it does.
    pub fn lacking(&self, needs: Needs, facts: &Facts<'_>) -> Option<Verdict<'static>> {
        let unsafe_path = facts.unsafe_path.filter(|_| needs.path).map(|why| ("paths", why.to_string().into()));
        let unsafe_host =
            (needs.host && facts.unsafe_host).then(|| ("host", "the host can be read in several ways".into()));
        if let Some((rule, why)) = unsafe_path.or(unsafe_host) {
            let why: Cow<'static, str> = why;
            let denial = Denial::new(why).with_rule(rule);
            return Some(Verdict::Denied(denial.with_status(DenialStatus::BadRequest)));
        }
        (needs.client && facts.client.is_none()).then_some(Verdict::Unavailable(Unavailable::Client))
    }

    fn client(&self, request: &Request<'_>) -> Option<IpAddr> {
        let peer = network::address(request.peer);
        let told = match &self.client.address {
            ClientAddress::Peer => return peer,
            ClientAddress::RpcMetadata(_) => network::address(request.client),
            ClientAddress::Behind(proxies) => {
                peer.and_then(|peer| proxies.client(peer, request.lines(proxies.header.name())))
            }
        };
        told.or_else(|| {
            self.counts.unknown_client();
            peer.filter(|_| self.client.on_missing == MissingClient::Peer)
        })
    }

    /// What a request costs.
    pub fn price(&self, facts: &Facts<'_>) -> u64 {
        let price = self.costs.price(facts);
        if price.is_default {
            self.counts.missing_cost();
        }
        price.units
    }

    /// The verdict on a request for who makes it, if it is refused for that.
    pub fn bad_identity(&self, identity: &Identity<'_>, facts: &Facts<'_>) -> Option<Verdict<'static>> {
        match (identity, &self.missing) {
            (Identity::Caller(_), _) | (Identity::Missing, MissingToken::Allow) => None,
            (Identity::Missing, MissingToken::AllowWhen(when)) if self.excuse(when, facts) => None,
            (Identity::Missing, _) => Some(Verdict::Unauthenticated(Unauthenticated::MissingToken)),
            (Identity::Failed(_) | Identity::Unverified, _) => {
                Some(Verdict::Unauthenticated(Unauthenticated::FailedToken))
            }
            (Identity::Unusable(token), _) => Some(Verdict::Denied(Denial::new(token.reason.to_string()))),
        }
    }

    /// Whether a missing token is excused. What the request lacks excuses nothing.
    fn excuse(&self, when: &When, facts: &Facts<'_>) -> bool {
        self.lacking(Needs::of(std::iter::once(when)), facts).is_none() && when.matches(facts)
    }
}

fn presence(identity: &Identity<'_>) -> Presence {
    match identity {
        Identity::Caller(_) | Identity::Unusable(_) => Presence::Present,
        Identity::Missing => Presence::Missing,
        Identity::Failed(_) | Identity::Unverified => Presence::Failed,
    }
}
