//! Takes a group of charges together: all of them, or none.
//!
//! Every limit and every lockout has a table of its own and a request charges it once. Locks are taken in the order in which
//! these tables were made, which no reload changes: those of limits, that of a limit's overflow after its shard's, then those
//! of lockouts, and the caller's last. All are held until it is decided.

use crate::decision::{By, Quota, Refused, Taken};
use crate::plan::Presented;
use crate::rate::Rate;
use crate::store::gcra::Fit;
use crate::store::key::{Key, KeySpace};
use crate::store::limit::{LimitTable, Place};
use crate::store::memory::MemoryStore;
use crate::store::meter::{Level, Moment};
use crate::store::strikes::window::Span;
use crate::store::strikes::{Strike, StrikeTable, Strikes};
use crate::time::Clock;
use smallvec::SmallVec;
use std::num::NonZeroU64;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

/// Units that a request asks of one limit.
pub(crate) struct Charge<'l> {
    /// The number of the limit.
    pub number: usize,
    pub name: &'l Arc<str>,
    pub table: &'l LimitTable,
    pub rate: Rate,
    pub key: Key,
    /// What new keys share by, where the table is full.
    pub wider: Wider<'l>,
    pub cost: u64,
    /// What the whole request takes of the limit, at entry and with the caller's rates.
    pub whole: u64,
    /// Whether it has to fit and is not taken yet.
    pub is_deferred: bool,
    /// Whether it is only observed: it is taken where it fits and holds up nobody.
    pub is_observed: bool,
    /// Whether clients may be told of it.
    pub is_advertised: bool,
    /// Whether they are to be told of what this charge leaves of it.
    pub is_told: bool,
}

/// What a key shares an allowance by, where there is no room for its own: its client's wider networks, or with all.
#[derive(Clone)]
pub(crate) struct Wider<'l> {
    pub space: &'l KeySpace,
    pub networks: SmallVec<[[u8; 18]; 1]>,
}

impl Wider<'_> {
    pub(crate) fn key(&self) -> Key {
        match self.networks.is_empty() {
            true => Key::SHARED,
            false => self.space.key_of(self.networks.iter().map(|network| Some(&network[..]))),
        }
    }
}

/// An attempt at what a lockout guards.
pub(crate) struct Attempt<'l> {
    /// The number of the lockout.
    pub number: usize,
    pub name: &'l Arc<str>,
    pub table: &'l StrikeTable,
    pub key: Key,
    pub span: Span,
    /// Whether it only counts once its outcome says so.
    pub is_provisional: bool,
    /// Whether it is only observed: it counts where it is not denied and holds up nobody.
    pub is_observed: bool,
}

/// What a request asks of limits, of lockouts and of a caller's rates.
#[derive(Clone, Copy, Default)]
pub(crate) struct Group<'g> {
    /// In the order of their locks.
    pub charges: &'g [Charge<'g>],
    /// In the order of their locks.
    pub attempts: &'g [Attempt<'g>],
    pub caller: Option<&'g CallerCharge<'g>>,
}

/// Units that a request asks of a caller's rates.
pub(crate) struct CallerCharge<'l> {
    pub callers: &'l MemoryStore,
    pub key: Key,
    pub rates: &'l [Presented],
    pub cost: u64,
}

impl CallerCharge<'_> {
    pub(crate) fn take(&self, clock: &dyn Clock) -> Taken {
        self.callers.take(self.key, self.rates, self.cost, clock)
    }

    /// How it would fit.
    fn weigh(&self, clock: &dyn Clock) -> Taken {
        self.callers.weigh(self.key, self.rates, self.cost, clock)
    }
}

/// How long a key waits that found no room.
const NO_ROOM: NonZeroU64 = NonZeroU64::new(1_000_000_000).unwrap();

/// What is known of the refusals of a group.
#[derive(Default)]
struct Refusals {
    enforced: Option<Refused>,
    observed: Option<Refused>,
}

impl Refusals {
    fn note(&mut self, refusal: Option<Refused>, is_observed: bool) {
        let worst = if is_observed { &mut self.observed } else { &mut self.enforced };
        refusal.into_iter().for_each(|refusal| Refused::worsen(worst, refusal));
    }
}

/// The attempts that were counted, each with the number of its lockout.
pub(crate) type Struck = SmallVec<[(usize, Strike); 2]>;

/// Takes all that a group asks for, or none of it.
pub(crate) fn take(group: Group<'_>, now: Moment, clock: &dyn Clock) -> (Taken, Struck) {
    let Group { charges, attempts, caller } = group;
    debug_assert!(group.is_in_order(), "locks of limits are taken in one order, and then those of lockouts");
    let mut refusals = Refusals::default();
    let weighed = weigh(charges, &mut refusals, now);
    let looked_at = look_at(attempts, &mut refusals);
    let mut taken = match (caller, &refusals.enforced) {
        (None, _) => Taken::default(),
        (Some(caller), None) => caller.take(clock),
        (Some(caller), Some(_)) => caller.weigh(clock),
    };
    if let Some(refusal) = refusals.enforced {
        let of_caller = taken.refused.replace(refusal);
        of_caller.into_iter().for_each(|of_caller| Refused::worsen(&mut taken.refused, of_caller));
    }
    let all_fit = taken.refused.is_none();
    for (charge, (place, fits)) in charges.iter().zip(weighed) {
        let has_room = place.is_room();
        let level = if all_fit && fits { charge.spend(place, now) } else { place.level };
        if charge.is_told && has_room {
            taken.quotas.push(charge.quota(level, now));
        }
        if charge.is_observed && !fits {
            taken.unfit.push(charge.number);
        }
    }
    let passed = attempts.iter().zip(looked_at).filter(|(_, (_, passes))| all_fit && *passes);
    let struck = passed.map(|(attempt, (mut strikes, _))| (attempt.number, attempt.strike(&mut strikes))).collect();
    (Taken { observed: refusals.observed, ..taken }, struck)
}

/// The places of charges, locked, each with whether there is room for what is charged.
fn weigh<'g>(charges: &'g [Charge<'g>], refusals: &mut Refusals, now: Moment) -> SmallVec<[(Place<'g>, bool); 8]> {
    let weigh = |charge: &'g Charge<'g>| {
        let place = charge.place(refusals.enforced.is_none(), now);
        let refusal = charge.weigh(&place, now);
        let fits = refusal.is_none();
        refusals.note(refusal, charge.is_observed);
        (place, fits)
    };
    charges.iter().map(weigh).collect()
}

/// The strikes of lockouts, locked, each with whether the attempt passes.
fn look_at<'g>(attempts: &'g [Attempt<'g>], refusals: &mut Refusals) -> SmallVec<[(MutexGuard<'g, Strikes>, bool); 2]> {
    let look = |attempt: &'g Attempt<'g>| {
        let strikes = attempt.table.lock();
        let denied = attempt.denied(&strikes);
        let passes = denied.is_none();
        refusals.note(denied, attempt.is_observed);
        (strikes, passes)
    };
    attempts.iter().map(look).collect()
}

impl Group<'_> {
    fn is_in_order(&self) -> bool {
        let limits = self.charges.iter().map(|charge| charge.table.lock_place());
        let lockouts = self.attempts.iter().map(|attempt| attempt.table.lock_place());
        limits.is_sorted_by(|one, next| one < next) && lockouts.is_sorted_by(|one, next| one < next)
    }
}

impl Attempt<'_> {
    fn denied(&self, strikes: &Strikes) -> Option<Refused> {
        let wait = self.table.denied(strikes, self.key, self.span)?;
        self.table.note_denied(strikes, self.key);
        Some(Refused { by: By::Lockout { name: Arc::clone(self.name) }, rate: None, wait: Some(wait) })
    }

    fn strike(&self, strikes: &mut Strikes) -> Strike {
        self.table.strike(strikes, self.key, self.span, self.is_provisional)
    }
}

impl Charge<'_> {
    /// The place of the allowance. What follows a refusal is only looked at, so that no state is made for it, and so is
    /// what costs nothing.
    fn place(&self, may_take: bool, now: Moment) -> Place<'_> {
        match may_take && self.cost > 0 {
            true => self.table.place(self.key, || self.wider.key(), now),
            false => self.table.look(self.key, || self.wider.key()),
        }
    }

    /// Takes what is charged now, and says what is left.
    fn spend(&self, place: Place<'_>, now: Moment) -> Level {
        if self.is_deferred {
            return place.level;
        }
        let level = self.table.meter.take(place.level, now, self.cost);
        place.put(level, now);
        level
    }

    fn quota(&self, level: Level, now: Moment) -> Quota {
        let meter = &self.table.meter;
        let most = meter.burst().unwrap_or(self.rate.count());
        Quota { name: Some(Arc::clone(self.name)), rate: self.rate, most, reading: meter.read(level, now) }
    }

    fn refused(&self, wait: Option<NonZeroU64>) -> Refused {
        let by = By::Limit { name: Arc::clone(self.name), is_advertised: self.is_advertised };
        Refused { by, rate: Some(self.rate), wait }
    }

    /// Why it does not fit, if it does not. The wait is for the whole request, since it comes again as a whole; and what
    /// never fits as a whole is not begun.
    fn weigh(&self, place: &Place<'_>, now: Moment) -> Option<Refused> {
        let weigh = |cost| self.table.meter.weigh(place.level, now, cost);
        match (weigh(self.whole), weigh(self.cost)) {
            (Fit::Never, _) => Some(self.refused(None)),
            _ if !place.is_room() => Some(self.refused(Some(NO_ROOM))),
            (_, Fit::Fits) => None,
            (Fit::Wait(wait), _) => Some(self.refused(Some(wait))),
            (Fit::Fits, _) => Some(self.refused(None)),
        }
    }
}

/// How long a request waits for what these charge, which it has paid, if it comes again.
pub(crate) fn wait(charges: &[Charge<'_>], now: Moment) -> Duration {
    let wait = |charge: &Charge<'_>| {
        let level = charge.table.look(charge.key, || charge.wider.key()).level;
        match charge.table.meter.weigh(level, now, charge.whole) {
            Fit::Wait(wait) if !charge.is_observed => Duration::from_nanos(wait.get()),
            _ => Duration::ZERO,
        }
    };
    charges.iter().map(wait).max().unwrap_or_default()
}
