//! The limits with their tables: what they charge a request, at entry, with the caller's rates, and by its outcome.

use super::outcomes::Settled;
use super::snapshot::fingerprint;
use crate::decision::Verdict;
use crate::policy::facts::Facts;
use crate::policy::limits::{ChargeAt, Limit};
use crate::policy::outcomes::Outcome;
use crate::policy::scope::{Keys, Lack};
use crate::policy::{Mode, Policy};
use crate::store::group::{Attempt, Charge, Wider};
use crate::store::key::{Key, KeySpace};
use crate::store::limit::{LimitTable, TableCounts};
use crate::store::meter::{Meter, Moment};
use smallvec::SmallVec;

/// The limits of the live policy.
pub struct Limits {
    limits: Vec<Built>,
    ipv6_prefix: u8,
    /// Whether clients are told of the limits that are advertised.
    tells: bool,
}

/// What a request will be charged by its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owed {
    pub key: Key,
    /// What the key shares by, where there is no room for it.
    pub wider: Key,
    pub cost: u64,
    /// The table that it is spent in: in another the key means nothing.
    pub table: u64,
}

/// A limit with its table.
pub struct Built {
    pub(super) limit: Limit,
    pub(super) space: KeySpace,
    pub(super) table: LimitTable,
    /// What it counts by, and in which windows: where two are alike, what was spent means the same.
    pub(super) counts_by: u64,
    /// Whether it counted at another rate before.
    has_new_rate: bool,
}

/// Charges in the order of their limits.
pub type Charges<'l> = SmallVec<[Charge<'l>; 4]>;

/// What a request is charged.
#[derive(Default)]
pub struct Bill<'l> {
    /// Before identity is looked at.
    pub entry: Charges<'l>,
    /// With the caller's rates.
    pub admitted: Charges<'l>,
    /// What counts as attempts, with the caller's rates.
    pub attempts: SmallVec<[Attempt<'l>; 2]>,
    /// The verdict that comes in place of both, where the request lacks what a limit counts by.
    pub lack: Option<Verdict<'static>>,
    /// The same of a rule that is only observed.
    pub observed_lack: Option<Verdict<'static>>,
    /// The same where it would end the request at entry.
    pub observed_at_entry: Option<Verdict<'static>>,
}

impl Bill<'_> {
    /// Notes that a request lacks what the rule `name` counts by. It is an error where that ends the request at once.
    pub fn note(&mut self, name: &str, mode: Mode, at_entry: bool, lack: Lack) -> Result<(), Verdict<'static>> {
        let verdict = lack.verdict(name);
        match (mode, at_entry || lack == Lack::TooLong) {
            (Mode::Enforce, true) => return Err(verdict),
            (Mode::Enforce, false) => self.lack.get_or_insert(verdict),
            (Mode::Observe, true) => self.observed_at_entry.get_or_insert(verdict),
            (Mode::Observe, false) => self.observed_lack.get_or_insert(verdict),
        };
        Ok(())
    }

    /// Leaves out all that is only observed.
    pub fn drop_observed(&mut self) {
        self.entry.retain(|charge| !charge.is_observed);
        self.admitted.retain(|charge| !charge.is_observed);
        self.attempts.retain(|attempt| !attempt.is_observed);
        (self.observed_lack, self.observed_at_entry) = (None, None);
    }

    /// Leaves out what limits that are only observed still charge, where it did not fit before: the rests of splits, and
    /// outcomes.
    pub fn drop_charges_of(&mut self, unfit: &[usize]) {
        self.admitted.retain(|charge| !unfit.contains(&charge.number));
    }
}

impl Limits {
    /// The limits of `policy`. Those that were there before, by their names, keep what was spent.
    pub fn new(policy: &Policy, before: Option<&Self>) -> Self {
        let (ipv6_prefix, tells) = (policy.client.ipv6_prefix, policy.tells_quotas);
        let build = |limit: &Limit| {
            let of_same_name = |built: &&Built| built.limit.name == limit.name;
            let counts_by = counts_by(limit);
            let kept = before.and_then(|limits| limits.limits.iter().find(of_same_name));
            let kept = kept.filter(|built| built.counts_by == counts_by).map(|built| built.succeeded(limit));
            kept.unwrap_or_else(|| Built::new(limit, counts_by))
        };
        Self { limits: policy.limits.iter().map(build).collect(), ipv6_prefix, tells }
    }

    /// Adds to `bill` what limits charge a request that costs `cost`. A preflight is charged by those that count by client
    /// alone.
    ///
    /// # Errors
    ///
    /// The verdict on a request that lacks what an enforced limit counts by at entry, or has too much of it. A limit that
    /// is observed is passed over.
    pub fn bill<'l>(
        &'l self,
        facts: &Facts<'_>,
        cost: u64,
        is_preflight: bool,
        bill: &mut Bill<'l>,
    ) -> Result<(), Verdict<'static>> {
        for (number, built) in self.limits.iter().enumerate() {
            if is_preflight && !built.limit.scope.is_for_preflights() {
                continue;
            }
            match built.limit.scope.keys(facts, self.ipv6_prefix, &built.space) {
                Ok(Some(keys)) => built.charge(Charging { number, keys, cost, tells: self.tells }, bill),
                Ok(None) => {}
                Err(lack) => {
                    let at_entry = matches!(built.limit.charge, ChargeAt::Entry | ChargeAt::Split(_));
                    bill.note(&built.limit.name, built.limit.mode, at_entry, lack)?;
                }
            }
        }
        bill.entry.sort_by_key(|charge| charge.table.lock_place());
        bill.admitted.sort_by_key(|charge| charge.table.lock_place());
        Ok(())
    }

    /// Spends what the limit `name` charges by the outcome of a request, if it charges for this one. What the allowance
    /// does not hold becomes a debt.
    pub fn owe(&self, name: &str, owed: &Owed, outcome: &Outcome<'_>, now: Moment) -> Settled {
        let is_same = |built: &&Built| *built.limit.name == *name && built.table.lock_place() == owed.table;
        let Some(built) = self.limits.iter().find(is_same) else { return Settled::Gone };
        let ChargeAt::Outcome(charged) = &built.limit.charge else { return Settled::Gone };
        if !charged.iter().any(|matcher| matcher.matches(outcome)) {
            return Settled::Uncharged;
        }
        let place = built.table.place(owed.key, || owed.wider, now);
        if !place.is_room() {
            return Settled::Unpaid;
        }
        let level = built.table.meter.take(place.level, now, owed.cost);
        place.put(level, now);
        Settled::Charged
    }

    /// Drops allowances that are full.
    pub fn trim(&self, now: Moment) {
        self.limits.iter().for_each(|built| built.table.trim(now));
    }

    /// Lets nobody owe more than a request can owe, where the rate has changed. It walks all keys.
    pub fn clamp(&self, now: Moment) {
        self.limits.iter().filter(|built| built.has_new_rate).for_each(|built| built.table.clamp(now));
    }

    pub(super) fn built(&self) -> &[Built] {
        &self.limits
    }

    pub(super) fn built_mut(&mut self, number: usize) -> &mut Built {
        &mut self.limits[number]
    }

    /// What the table of each limit has come through, by name.
    pub fn counts(&self) -> impl Iterator<Item = (&str, TableCounts)> {
        self.limits.iter().map(|built| (&*built.limit.name, built.table.counts()))
    }
}

/// A request that a limit charges.
struct Charging {
    /// The number of the limit.
    number: usize,
    keys: Keys,
    /// What it costs, unless the limit has a cost of its own.
    cost: u64,
    /// Whether clients are told of what is advertised.
    tells: bool,
}

impl Built {
    /// Adds to `bill` what the limit charges.
    fn charge<'l>(&'l self, charging: Charging, bill: &mut Bill<'l>) {
        let Charging { number, keys, cost, tells } = charging;
        let Limit { rate, advertise, .. } = self.limit;
        let is_observed = self.limit.mode == Mode::Observe;
        let whole = self.limit.cost.unwrap_or(cost);
        let charge = |cost| Charge {
            number,
            name: &self.limit.name,
            table: &self.table,
            rate,
            key: keys.key,
            wider: Wider { space: &self.space, networks: keys.wider.clone() },
            cost,
            whole,
            is_deferred: matches!(self.limit.charge, ChargeAt::Outcome(_)),
            is_observed,
            is_advertised: advertise,
            is_told: tells && advertise && !is_observed,
        };
        match self.limit.charge {
            ChargeAt::Entry => bill.entry.push(charge(whole)),
            ChargeAt::Admitted | ChargeAt::Outcome(_) => bill.admitted.push(charge(whole)),
            ChargeAt::Split(units) => {
                let at_entry = whole.min(units);
                bill.entry.push(charge(at_entry));
                bill.admitted.push(charge(whole - at_entry));
            }
        }
    }

    fn new(limit: &Limit, counts_by: u64) -> Self {
        let table = LimitTable::new(meter(limit), limit.max_keys, limit.when_full);
        Self { space: KeySpace::new(&limit.name), table, limit: limit.clone(), counts_by, has_new_rate: false }
    }

    /// The same limit as the file has it now, with what was spent.
    fn succeeded(&self, limit: &Limit) -> Self {
        let table = self.table.succeeded(meter(limit), limit.max_keys, limit.when_full);
        let has_new_rate = (self.limit.rate, self.limit.burst) != (limit.rate, limit.burst);
        Self { space: self.space.clone(), table, limit: limit.clone(), counts_by: self.counts_by, has_new_rate }
    }
}

/// What a limit counts by, and in which windows, as a number.
fn counts_by(limit: &Limit) -> u64 {
    let window = limit.is_fixed.then(|| limit.rate.nanos());
    fingerprint(&format!("{:?} {window:?}", limit.scope.counts_by()))
}

/// The rate at which a limit counts, as a number.
pub(super) fn terms(limit: &Limit) -> u64 {
    fingerprint(&format!("{} {}", limit.rate, limit.burst))
}

fn meter(limit: &Limit) -> Meter {
    if limit.is_fixed { Meter::fixed(limit.rate) } else { Meter::rolling(limit.rate, limit.burst) }
}
