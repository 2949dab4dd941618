//! The lockouts with their tables: attempts that are counted, and what outcomes do to them.

use super::limits::Bill;
use super::outcomes::{Ended, Settled};
use super::snapshot::fingerprint;
use crate::decision::{Engaged, Taken, Verdict};
use crate::policy::facts::Facts;
use crate::policy::lockouts::{self, Lockout};
use crate::policy::outcomes::Effect;
use crate::policy::{Mode, Policy, scope};
use crate::store::group::{self, Attempt, Group, Struck};
use crate::store::key::KeySpace;
use crate::store::meter::Moment;
use crate::store::strikes::window::Window;
use crate::store::strikes::{Change, Strike, StrikeCounts, StrikeTable};
use crate::time::{Clock, nanos};
use crate::token::Failure;
use smallvec::SmallVec;
use std::time::Duration;

/// The lockouts of the live policy.
pub struct Lockouts {
    lockouts: Vec<Built>,
    ipv6_prefix: u8,
}

/// A lockout with its table.
pub struct Built {
    pub(super) lockout: Lockout,
    pub(super) space: KeySpace,
    pub(super) table: StrikeTable,
    pub(super) window: Window,
    /// What it counts by, and how: where two are alike, strikes mean the same.
    pub(super) counts_by: u64,
}

impl Lockouts {
    /// The lockouts of `policy`. Those that were there before, by their names, keep their strikes.
    pub fn new(policy: &Policy, before: Option<&Self>) -> Self {
        let ipv6_prefix = policy.client.ipv6_prefix;
        let patience = nanos(policy.outcome_timeout);
        let build = |lockout: &Lockout| {
            let counts_by = counts_by(lockout);
            let is_same = |built: &&Built| built.lockout.name == lockout.name && built.counts_by == counts_by;
            match before.and_then(|before| before.lockouts.iter().find(is_same)) {
                Some(before) => before.succeeded(lockout, patience),
                None => Built::new(lockout, counts_by, patience),
            }
        };
        Self { lockouts: policy.lockouts.iter().map(build).collect(), ipv6_prefix }
    }

    pub fn is_empty(&self) -> bool {
        self.lockouts.is_empty()
    }

    /// Adds to `bill` what counts a request as an attempt.
    ///
    /// # Errors
    ///
    /// The verdict on a request that has too much of what an enforced lockout counts by.
    pub fn bill<'l>(&'l self, facts: &Facts<'_>, now: Moment, bill: &mut Bill<'l>) -> Result<(), Verdict<'static>> {
        for (number, built) in self.lockouts.iter().enumerate() {
            if built.lockout.on != lockouts::Trigger::Request {
                continue;
            }
            match built.attempt(number, facts, self.ipv6_prefix, now) {
                Ok(attempt) => bill.attempts.extend(attempt),
                Err(lack) => bill.note(&built.lockout.name, built.lockout.mode, false, lack)?,
            }
        }
        bill.attempts.sort_by_key(|attempt| attempt.table.lock_place());
        Ok(())
    }

    /// Counts a token that failed, unless too many did. One whose key cannot be told is refused all the same, and not
    /// counted. Where the request `lacks` what rules ask for that are only observed, these are left out.
    pub fn fail(
        &self,
        failure: Failure,
        facts: &Facts<'_>,
        lacks: bool,
        now: Moment,
        clock: &dyn Clock,
    ) -> (Taken, Struck) {
        let counts = |lockout: &Lockout| {
            let is_for_it = matches!(&lockout.on, lockouts::Trigger::FailedToken(of) if of.contains(&failure));
            is_for_it && !(lacks && lockout.mode == Mode::Observe)
        };
        let counting = self.lockouts.iter().enumerate().filter(|(_, built)| counts(&built.lockout));
        let attempts =
            counting.filter_map(|(number, built)| built.attempt(number, facts, self.ipv6_prefix, now).ok()?);
        let mut attempts: SmallVec<[Attempt<'_>; 2]> = attempts.collect();
        attempts.sort_by_key(|attempt| attempt.table.lock_place());
        group::take(Group { attempts: &attempts, ..Group::default() }, now, clock)
    }

    /// The lockout `number`.
    pub fn get(&self, number: usize) -> &Lockout {
        &self.lockouts[number].lockout
    }

    /// What these strikes engaged.
    pub fn engaged(&self, strikes: &[(usize, Strike)], now: impl Fn() -> Moment) -> Vec<Engaged> {
        let engaged = strikes.iter().filter(|(_, strike)| strike.engaged);
        engaged.map(|(number, strike)| self.lockouts[*number].engaged(*strike, now())).collect()
    }

    /// Does to an attempt at the lockout `name` what its end asks for, and says what that was. A lockout that is engaged so comes
    /// with it. What is told late makes a provisional attempt count, and changes nothing else.
    pub fn settle(&self, name: &str, strike: Strike, ended: &Ended<'_, '_>, now: Moment) -> (Settled, Option<Engaged>) {
        let Some(built) = self.lockouts.iter().find(|built| *built.lockout.name == *name) else {
            return (Settled::Gone, None);
        };
        let (span, effect) = (built.window.span(now), built.lockout.effect(ended.outcome, ended.is_grpc));
        let change = match effect {
            Effect::Count if strike.provisional => built.table.confirm(strike, span),
            _ if ended.is_late => return (Settled::Late, None),
            Effect::Count => Change::Done,
            Effect::Cancel => built.table.cancel(strike, span),
            Effect::Reset => built.table.reset_by(strike, span),
        };
        match change {
            Change::Gone => (Settled::Gone, None),
            Change::Done => (effect.into(), None),
            Change::Engaged => (effect.into(), Some(built.engaged(strike, now))),
        }
    }

    pub(super) fn built(&self) -> &[Built] {
        &self.lockouts
    }

    pub(super) fn built_mut(&mut self, number: usize) -> &mut Built {
        &mut self.lockouts[number]
    }

    /// Drops keys that are worth nothing.
    pub fn sweep(&self, now: Moment) {
        self.lockouts.iter().for_each(|built| built.table.sweep(built.window.span(now)));
    }

    /// What the table of each lockout has come through, by name.
    pub fn counts(&self) -> impl Iterator<Item = (&str, StrikeCounts)> {
        self.lockouts.iter().map(|built| (&*built.lockout.name, built.table.counts()))
    }
}

impl Built {
    fn new(lockout: &Lockout, counts_by: u64, patience: u64) -> Self {
        let table = StrikeTable::new(lockout.threshold, lockout.max_keys, patience);
        let length = nanos(lockout.window);
        let window = if lockout.is_fixed { Window::fixed(length) } else { Window::Rolling(length) };
        let space = KeySpace::new(&lockout.name);
        Self { space, table, window, lockout: lockout.clone(), counts_by }
    }

    /// The same lockout as the file has it now, with its strikes.
    fn succeeded(&self, lockout: &Lockout, patience: u64) -> Self {
        let table = self.table.succeeded(lockout.threshold, lockout.max_keys, patience);
        let window = self.window.succeeded(nanos(lockout.window));
        Self { space: self.space.clone(), table, window, lockout: lockout.clone(), counts_by: self.counts_by }
    }

    /// The attempt that a request is, if the lockout is for it.
    fn attempt(
        &self,
        number: usize,
        facts: &Facts<'_>,
        prefix: u8,
        now: Moment,
    ) -> Result<Option<Attempt<'_>>, scope::Lack> {
        let keys = self.lockout.scope.keys(facts, prefix, &self.space)?;
        Ok(keys.map(|keys| Attempt {
            number,
            name: &self.lockout.name,
            table: &self.table,
            key: keys.key,
            span: self.window.span(now),
            is_provisional: self.lockout.is_provisional,
            is_observed: self.lockout.mode == Mode::Observe,
        }))
    }

    /// The lockout that a strike engages now.
    fn engaged(&self, strike: Strike, now: Moment) -> Engaged {
        let span = self.window.span(now);
        Engaged {
            lockout: self.lockout.name.clone(),
            key: strike.key.to_string(),
            lasts: Duration::from_nanos(span.end - span.now),
            is_observed: self.lockout.mode == Mode::Observe,
        }
    }
}

/// What a lockout counts by, and by which clock, as a number.
fn counts_by(lockout: &Lockout) -> u64 {
    fingerprint(&format!("{:?} {}", lockout.scope.counts_by(), lockout.is_fixed))
}
