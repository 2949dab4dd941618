//! One request from its facts to a decision: what it is charged at entry, who makes it, what the policy says of it, and
//! whether limits and the caller's rates have room for it.

mod limits;
mod lockouts;
pub mod outcomes;
mod reservations;
pub mod snapshot;
mod succession;

use crate::capability::Malformed;
use crate::decision::{Decision, Quota, Taken, Verdict};
use crate::limiter::Limiter;
use crate::plan::Plan;
use crate::policy::callers::{Enforced, Observed};
use crate::policy::facts::Facts;
use crate::policy::{ClientAddress, Mode, Needs, Policy};
use crate::request::Request;
use crate::store::group::{self, Group, Struck};
use crate::store::limit::TableCounts;
use crate::store::meter::Moment;
use crate::store::strikes::{Strike, StrikeCounts};
use crate::time::Now;
use crate::token::{Identity, TokenRules};
use limits::{Bill, Limits, Owed};
use lockouts::Lockouts;
use outcomes::OutcomeCounts;
use reservations::{Hold, Holds, Reservations};
use smallvec::SmallVec;
use std::sync::Arc;

/// Decides requests. It holds the live policy and its state: callers', limits' and lockouts'.
pub struct Engine {
    token: TokenRules,
    policy: Policy,
    /// What rules ask of every request.
    needs: Needs,
    /// The same of those that are enforced.
    enforced_needs: Needs,
    limits: Limits,
    lockouts: Lockouts,
    /// Whether some limit or lockout asks for the calendar.
    asks_calendar: bool,
    /// Whether the key of some limit or lockout may ask for the client.
    counts_clients: bool,
    outcomes: Arc<Outcomes>,
    limiter: Limiter<Enforced>,
    /// Holds callers to what the rules add that are only observed, if there are any.
    rehearsal: Option<Limiter<Observed>>,
}

/// What requests that go on will tell, and what became of that.
#[derive(Default)]
struct Outcomes {
    reservations: Reservations,
    counts: OutcomeCounts,
}

/// A request that got past entry.
struct Entered<'l, 'r> {
    cost: u64,
    /// Whether it lacks what rules ask for that are only observed: then they are asked nothing else.
    lacks: bool,
    /// What it is charged, at entry and with the caller's rates.
    bill: Bill<'l>,
    /// What was decided at entry: allowed, with what is observed and told of it.
    entry: Decision<'r>,
}

impl Engine {
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
            ClientAddress::RpcMetadata(key) if self.reads().client => Some(key),
            _ => None,
        }
    }

    /// What the table of each limit has come through, by name.
    pub fn limit_counts(&self) -> impl Iterator<Item = (&str, TableCounts)> {
        self.limits.counts()
    }

    /// What the table of each lockout has come through, by name.
    pub fn strike_counts(&self) -> impl Iterator<Item = (&str, StrikeCounts)> {
        self.lockouts.counts()
    }

    /// Callers that have state.
    pub fn callers(&self) -> usize {
        self.limiter.callers()
    }

    /// Reservations that were made.
    pub fn reservations(&self) -> u64 {
        self.outcomes.reservations.made()
    }

    /// What became of outcomes.
    pub fn outcome_counts(&self) -> &OutcomeCounts {
        &self.outcomes.counts
    }

    /// The present moment.
    pub fn now(&self) -> Now {
        self.limiter.clock().now()
    }

    /// The calendar: nanoseconds since the Unix epoch.
    pub fn calendar(&self) -> u64 {
        self.limiter.clock().calendar()
    }

    /// Drops expired state; see [`Limiter::sweep`].
    pub fn sweep(&self) {
        self.limits.trim(self.moment());
        self.lockouts.sweep(self.moment());
        self.limiter.sweep();
        self.rehearsal.iter().for_each(Limiter::sweep);
    }

    /// Decides `request` of `identity`, which [`TokenRules::identify`] read from it. A bad identity is refused in every
    /// mode; what else is refused goes on where the policy is only observed.
    pub fn check<'r>(&self, request: &Request<'r>, identity: &Identity<'r>) -> Decision<'r> {
        self.check_cost(None, request, identity)
    }

    /// The same at a given cost, whatever the policy says.
    pub fn check_cost<'r>(&self, cost: Option<u64>, request: &Request<'r>, identity: &Identity<'r>) -> Decision<'r> {
        let facts = self.policy.facts(self.reads(), self.limiter.prefixes(), request, identity);
        let decline = |verdict| self.limiter.decline(verdict, capabilities(identity));
        let is_excused = self.policy.skips_preflights && request.is_preflight();
        let bad_identity = || self.policy.bad_identity(identity, &facts).filter(|_| !is_excused);
        let mode = self.policy.mode;
        match self.enter(cost, is_excused, &facts, &decline) {
            Err(refused) if mode == Mode::Enforce => refused,
            Err(refused) => match bad_identity() {
                Some(verdict) => decline(verdict).observing(refused),
                None => refused.observed_only(),
            },
            Ok(mut entered) => {
                let decision = match bad_identity() {
                    Some(verdict) => self.refuse(verdict, identity, &facts, entered.lacks, decline),
                    None if is_excused => {
                        by_mode(mode, self.admit(&facts, &mut entered, Plan::unrestricted(), Malformed::new()))
                    }
                    None => by_mode(mode, self.hold(&facts, identity, &mut entered)),
                };
                self.end(decision, entered)
            }
        }
    }

    /// What comes before identity: what rules need to decide, the keys of limits, and what these charge at entry, which
    /// is kept whatever becomes of the request.
    #[allow(clippy::result_large_err, reason = "a box would be an allocation for each request that is refused")]
    fn enter<'r>(
        &self,
        cost: Option<u64>,
        is_preflight: bool,
        facts: &Facts<'_>,
        decline: &impl Fn(Verdict<'r>) -> Decision<'r>,
    ) -> Result<Entered<'_, 'r>, Decision<'r>> {
        if let Some(verdict) = self.policy.lacking(self.enforced_needs, facts) {
            return Err(decline(verdict));
        }
        if let Some(client) = facts.client.filter(|_| self.counts_clients) {
            self.policy.crowd.note(client);
        }
        let cost = cost.unwrap_or_else(|| self.policy.price(facts));
        let (lack, mut bill) = (self.policy.lacking(self.needs, facts), Bill::default());
        let billed = self.bill(facts, cost, is_preflight, &mut bill);
        let lacks = lack.is_some();
        if lacks {
            bill.drop_observed();
        }
        let observed = lack.or(bill.observed_at_entry.take());
        if let Err(verdict) = billed {
            return Err(decline(verdict).observing_lack(observed));
        }
        let (taken, _) = self.take(Group { charges: &bill.entry, ..Group::default() });
        bill.drop_charges_of(&taken.unfit);
        let entry = Decision::taken(taken, Malformed::new()).observing_lack(observed);
        match entry.is_allowed() {
            true => Ok(Entered { cost, lacks, entry, bill }),
            false => Err(entry.with_malformed_of(decline(Verdict::Allowed))),
        }
    }

    /// Adds to `bill` what limits charge, and what lockouts count.
    fn bill<'l>(
        &'l self,
        facts: &Facts<'_>,
        cost: u64,
        is_preflight: bool,
        bill: &mut Bill<'l>,
    ) -> Result<(), Verdict<'static>> {
        self.limits.bill(facts, cost, is_preflight, bill)?;
        match is_preflight || self.lockouts.is_empty() {
            true => Ok(()),
            false => self.lockouts.bill(facts, self.moment(), bill),
        }
    }

    /// What is read of a request: the client also where a key only asks for it if nothing stands in for it.
    fn reads(&self) -> Needs {
        Needs { client: self.needs.client || self.counts_clients, ..self.needs }
    }

    /// Refuses a request for who makes it. A token that failed is counted where a lockout asks for that, unless too many
    /// were: then the client has to wait.
    fn refuse<'r>(
        &self,
        verdict: Verdict<'r>,
        identity: &Identity<'r>,
        facts: &Facts<'_>,
        lacks: bool,
        decline: impl Fn(Verdict<'r>) -> Decision<'r>,
    ) -> Decision<'r> {
        let Some(failure) = identity.failure().filter(|_| !self.lockouts.is_empty()) else { return decline(verdict) };
        let (taken, struck) = self.lockouts.fail(failure, facts, lacks, self.moment(), self.limiter.clock());
        if taken.refused.is_some() && self.policy.mode == Mode::Enforce {
            return Decision::taken(taken, Malformed::new());
        }
        let declined = decline(verdict).engaging(self.lockouts.engaged(&struck, || self.moment()));
        match taken.refused.or(taken.observed) {
            None => declined,
            refused => declined.observing(Decision::taken(Taken { refused, ..Taken::default() }, Malformed::new())),
        }
    }

    /// Holds the caller to its rates and the policy's: first to what is enforced and then, if the request goes on, to
    /// what is only observed.
    fn hold<'r>(&self, facts: &Facts<'_>, identity: &Identity<'r>, entered: &mut Entered<'_, 'r>) -> Decision<'r> {
        let (cost, lacks, capabilities) = (entered.cost, entered.lacks, capabilities(identity));
        let (plan, malformed) = self.limiter.plan(facts, facts.caller().as_bytes(), capabilities.iter().copied());
        let decision = self.admit(facts, entered, plan, malformed);
        match &self.rehearsal {
            Some(rehearsal) if decision.is_allowed() && !lacks => {
                let rehearsed = rehearsal.check_cost(cost, facts, facts.caller(), capabilities.iter().copied());
                if rehearsed.is_allowed() { decision } else { decision.observing(rehearsed) }
            }
            _ => decision,
        }
    }

    /// Takes what limits charge with the caller's rates, all of it or none.
    fn admit<'r>(
        &self,
        facts: &Facts<'_>,
        Entered { cost, bill, .. }: &mut Entered<'_, 'r>,
        plan: Plan<'r>,
        malformed: Malformed<'r>,
    ) -> Decision<'r> {
        let is_charged = matches!(plan, Plan::Charge(_));
        if let Some(verdict) = bill.lack.take().filter(|_| is_charged) {
            return Decision::without_rates(verdict, malformed);
        }
        let observed_lack = bill.observed_lack.take().filter(|_| is_charged);
        let caller = facts.caller().as_bytes();
        let (mut is_held, mut struck, mut unfit) = (false, Struck::new(), SmallVec::new());
        let decision = Decision::of(plan, malformed, |rates| {
            is_held = !rates.is_empty();
            let of_caller = is_held.then(|| self.limiter.charge(caller, rates, *cost));
            let group = Group { charges: &bill.admitted, attempts: &bill.attempts, caller: of_caller.as_ref() };
            let (mut taken, counted) = self.take(group);
            (struck, unfit) = (counted, std::mem::take(&mut taken.unfit));
            taken
        });
        bill.drop_charges_of(&unfit);
        let tells = self.policy.tells_quotas && is_held;
        let quotas = if tells { self.limiter.quotas(caller) } else { SmallVec::<[Quota; 1]>::new() };
        let decision = match decision.is_allowed() {
            true => self.reserve(decision, facts, bill, &struck),
            false => decision,
        };
        decision.observing_lack(observed_lack).with_quotas(quotas)
    }

    /// Puts together what was decided at entry and after it. Waits are for the whole request: who comes again pays at entry
    /// again.
    fn end<'r>(&self, decision: Decision<'r>, Entered { bill, entry, .. }: Entered<'_, 'r>) -> Decision<'r> {
        let decision = match bill.entry.is_empty() {
            true => decision,
            false => decision.waiting(&|| group::wait(&bill.entry, self.moment())),
        };
        decision.after(entry)
    }

    /// Gives a request that goes on what its outcome is to be told by, where some rule waits for that.
    fn reserve<'r>(
        &self,
        decision: Decision<'r>,
        facts: &Facts<'_>,
        bill: &Bill<'_>,
        struck: &[(usize, Strike)],
    ) -> Decision<'r> {
        let mut holds = Holds::new();
        for (number, strike) in struck {
            let lockout = self.lockouts.get(*number);
            if lockout.asks_for_outcomes() {
                holds.push(((*lockout.name).to_owned(), Hold::Attempt(*strike)));
            }
        }
        for charge in bill.admitted.iter().filter(|charge| charge.is_deferred && charge.cost > 0) {
            let table = charge.table.lock_place();
            let owed = Owed { key: charge.key, wider: charge.wider.key(), cost: charge.cost, table };
            holds.push(((**charge.name).to_owned(), Hold::Charge(owed)));
        }
        let decision = decision.engaging(self.lockouts.engaged(struck, || self.moment()));
        if holds.is_empty() {
            return decision;
        }
        let is_grpc = facts.request.may_be_grpc();
        let (now, timeout) = (self.now(), self.policy.outcome_timeout);
        decision.with_reservation(self.outcomes.reservations.make(now, timeout, is_grpc, holds))
    }

    /// Takes all that a group asks for, or none of it.
    fn take(&self, group: Group<'_>) -> (Taken, Struck) {
        match group {
            Group { charges: [], attempts: [], caller: None } => Default::default(),
            Group { charges: [], attempts: [], caller: Some(caller) } => {
                (caller.take(self.limiter.clock()), Struck::new())
            }
            group => group::take(group, self.moment(), self.limiter.clock()),
        }
    }

    /// The present moment, on both clocks where that is asked for.
    fn moment(&self) -> Moment {
        let clock = self.limiter.clock();
        let unix = if self.asks_calendar { clock.calendar() } else { 0 };
        Moment { monotonic: clock.now().nanos(), unix }
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
