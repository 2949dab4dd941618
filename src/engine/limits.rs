//! The limits with their tables: what they charge a request, at entry and with the caller's rates.

use crate::decision::{Taken, Verdict};
use crate::policy::Mode;
use crate::policy::facts::Facts;
use crate::policy::limits::{ChargeAt, Lack, Limit};
use crate::store::group::{self, CallerCharge, Charge, Wider};
use crate::store::key::KeySpace;
use crate::store::limit::{LimitTable, TableCounts};
use crate::store::meter::{Meter, Moment};
use crate::time::Clock;
use smallvec::SmallVec;
use std::time::Duration;

/// The limits of the live policy.
pub struct Limits {
    limits: Vec<Built>,
    /// Whether some limit asks for the calendar.
    asks_calendar: bool,
    counts_clients: bool,
    ipv6_prefix: u8,
    /// Whether clients are told of the limits that are advertised.
    tells: bool,
}

struct Built {
    limit: Limit,
    space: KeySpace,
    table: LimitTable,
}

/// Charges in the order of their limits.
pub type Charges<'l> = SmallVec<[Charge<'l>; 4]>;

/// What a request is charged.
pub struct Bill<'l> {
    /// Before identity is looked at.
    pub entry: Charges<'l>,
    /// With the caller's rates.
    pub admitted: Charges<'l>,
    /// The verdict that comes in place of the latter, where the request lacks what a limit counts by.
    pub lack: Option<Verdict<'static>>,
    /// The same of a limit that is only observed.
    pub observed_lack: Option<Verdict<'static>>,
}

impl Bill<'_> {
    /// Notes that a request lacks what `limit` counts by. It is an error where that ends the request at once.
    fn note(&mut self, limit: &Limit, lack: Lack) -> Result<(), Verdict<'static>> {
        let verdict = limit.refusal(lack);
        match limit.mode {
            Mode::Observe => self.observed_lack.get_or_insert(verdict),
            Mode::Enforce if lack == Lack::TooLong || limit.charge != ChargeAt::Admitted => return Err(verdict),
            Mode::Enforce => self.lack.get_or_insert(verdict),
        };
        Ok(())
    }

    /// Leaves out the rests of splits whose entry did not fit, which are only observed.
    pub fn drop_rests_of(&mut self, unfit: &[usize]) {
        self.admitted.retain(|charge| !unfit.contains(&charge.number));
    }
}

impl Limits {
    /// Full allowances for every limit.
    pub fn new(limits: &[Limit], ipv6_prefix: u8, tells: bool) -> Self {
        let limits: Vec<_> = limits.iter().map(Built::new).collect();
        Self {
            asks_calendar: limits.iter().any(|built| built.limit.is_fixed),
            counts_clients: limits.iter().any(|built| built.limit.counts_clients()),
            limits,
            ipv6_prefix,
            tells,
        }
    }

    /// What limits charge a request that costs `cost`. A preflight is charged by those that count by client alone.
    ///
    /// # Errors
    ///
    /// The verdict on a request that lacks what an enforced limit counts by at entry, or has too much of it. A limit that
    /// is observed is passed over.
    pub fn bill(&self, facts: &Facts<'_>, cost: u64, is_preflight: bool) -> Result<Bill<'_>, Verdict<'static>> {
        let mut bill = Bill { entry: Charges::new(), admitted: Charges::new(), lack: None, observed_lack: None };
        for (number, built) in self.limits.iter().enumerate() {
            if is_preflight && !built.limit.is_for_preflights() {
                continue;
            }
            let keys = match built.limit.keys(facts, self.ipv6_prefix, &built.space) {
                Ok(Some(keys)) => keys,
                Ok(None) => continue,
                Err(lack) => {
                    bill.note(&built.limit, lack)?;
                    continue;
                }
            };
            let whole = built.limit.cost.unwrap_or(cost);
            let is_observed = built.limit.mode == Mode::Observe;
            let is_advertised = built.limit.advertise;
            let charge = |cost| Charge {
                number,
                name: &built.limit.name,
                table: &built.table,
                rate: built.limit.rate,
                key: keys.key,
                wider: Wider { space: &built.space, networks: keys.wider.clone() },
                cost,
                whole,
                is_observed,
                is_advertised,
                is_told: self.tells && is_advertised && !is_observed,
            };
            match built.limit.charge {
                ChargeAt::Entry => bill.entry.push(charge(whole)),
                ChargeAt::Admitted => bill.admitted.push(charge(whole)),
                ChargeAt::Split(units) => {
                    let at_entry = whole.min(units);
                    bill.entry.push(charge(at_entry));
                    bill.admitted.push(charge(whole - at_entry));
                }
            }
        }
        Ok(bill)
    }

    /// Whether some limit counts by client.
    pub fn count_clients(&self) -> bool {
        self.counts_clients
    }

    /// Takes these charges and the caller's, all of it or none.
    pub fn take(&self, charges: &[Charge<'_>], caller: Option<&CallerCharge<'_>>, clock: &dyn Clock) -> Taken {
        match caller {
            _ if !charges.is_empty() => group::take(charges, caller, self.now(clock), clock),
            Some(caller) => caller.take(clock),
            None => Taken::default(),
        }
    }

    /// How long a request waits for what these charge, which it has paid, if it comes again.
    pub fn wait(&self, charges: &[Charge<'_>], clock: &dyn Clock) -> Duration {
        if charges.is_empty() { Duration::ZERO } else { group::wait(charges, self.now(clock)) }
    }

    /// The present moment, on both clocks where that is asked for.
    fn now(&self, clock: &dyn Clock) -> Moment {
        let unix = if self.asks_calendar { clock.calendar() } else { 0 };
        Moment { monotonic: clock.now().nanos(), unix }
    }

    /// Drops allowances that are full.
    pub fn trim(&self, clock: &dyn Clock) {
        self.limits.iter().for_each(|built| built.table.trim(self.now(clock)));
    }

    /// What the table of each limit has come through, by name.
    pub fn counts(&self) -> impl Iterator<Item = (&str, TableCounts)> {
        self.limits.iter().map(|built| (&*built.limit.name, built.table.counts()))
    }
}

impl Built {
    fn new(limit: &Limit) -> Self {
        let meter = if limit.is_fixed { Meter::fixed(limit.rate) } else { Meter::rolling(limit.rate, limit.burst) };
        let table = LimitTable::new(meter, limit.max_keys, limit.when_full);
        Self { space: KeySpace::new(&limit.name), table, limit: limit.clone() }
    }
}
