//! The strike counter as a library: so many attempts of a key, and then it is locked for a while.

use crate::store::key::KeySpace;
use crate::store::meter::Moment;
use crate::store::strikes::window::{Span, Window};
use crate::store::strikes::{Strike, StrikeTable};
use crate::time::{Now, nanos};
use std::fmt;
use std::time::Duration;

/// Counts the attempts of keys of any kind, and locks a key out after so many.
///
/// An attempt counts before anybody knows how it ends, so that no number of them at once gets past the threshold. What
/// turns out not to count is taken back: [`cancel`](Self::cancel) for one attempt, [`reset`](Self::reset) for all.
///
/// Every call for which time matters is given it, and it never decreases. No call looks at more than a few keys.
///
/// ```
/// use std::time::Duration;
/// use tollgate::Now;
/// use tollgate::attempts::{AttemptLimiter, Outcome, Policy};
///
/// let fifteen_minutes = Duration::from_secs(15 * 60);
/// let logins = AttemptLimiter::new(Policy { threshold: 2, lockout_window: fifteen_minutes, max_tracked_keys: 50_000 })?;
/// let at = |seconds| Now::after(Duration::from_secs(seconds));
///
/// assert_eq!(logins.attempt("alice", at(0)), Outcome::Allowed);
/// // The password service failed: this attempt was none.
/// let (outcome, reservation) = logins.reserve("alice", at(1));
/// assert_eq!(outcome, Outcome::AllowedLastAttempt);
/// logins.cancel(reservation, at(1));
///
/// assert_eq!(logins.attempt("alice", at(2)), Outcome::AllowedLastAttempt);
/// assert_eq!(logins.attempt("alice", at(3)), Outcome::Denied);
/// assert_eq!(logins.locked("alice", at(3)), Some(fifteen_minutes - Duration::from_secs(1)));
/// assert_eq!(logins.attempt("alice", at(2 + 15 * 60)), Outcome::Allowed);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AttemptLimiter {
    keys: KeySpace,
    table: StrikeTable,
    window: Window,
}

/// When keys are locked, and how many are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The attempt that locks its key; at least 1.
    pub threshold: u32,
    /// How long a key stays locked, and how long after its last attempt one that is not locked starts from zero; at least
    /// a nanosecond.
    pub lockout_window: Duration,
    /// The most keys that are known, at least 1 and less than 2^32 - 1; each takes about 180 bytes. Beyond, a new key takes
    /// the place of the one that was used least recently and is not locked, which starts from zero then. A lockout is never
    /// given up: where every key is locked, new ones are denied. Memory stays at its peak for as long as the limiter lives.
    pub max_tracked_keys: usize,
}

/// Why a [`Policy`] cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPolicy {
    /// No attempt would ever pass.
    #[error("the threshold must be at least 1")]
    Threshold,
    /// A lockout would end as it begins.
    #[error("the lockout window must be at least a nanosecond")]
    Window,
    /// No key could be known, or more than there are numbers for.
    #[error("the number of tracked keys must be at least 1 and less than 2^32 - 1")]
    Keys,
}

/// What became of an attempt.
#[must_use = "an attempt that is denied has to be refused"]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// The key is locked. The attempt was not counted, and the lockout is no longer for it.
    #[default]
    Denied,
    /// The attempt was counted.
    Allowed,
    /// The attempt was counted and locked its key: those after it are denied. A lockout has exactly one such attempt.
    AllowedLastAttempt,
}

/// One counted attempt, which may be taken back by [`AttemptLimiter::cancel`]. That of a denied attempt takes back nothing.
#[derive(Debug, Default)]
pub struct Reservation(Option<Strike>);

impl AttemptLimiter {
    /// A limiter without any attempts.
    ///
    /// # Errors
    ///
    /// [`InvalidPolicy`] if a number is below one, or there are too many keys.
    pub fn new(policy: Policy) -> Result<Self, InvalidPolicy> {
        let Policy { threshold, lockout_window, max_tracked_keys } = policy;
        let is_number = u32::try_from(max_tracked_keys).is_ok_and(|keys| keys > 0 && keys < u32::MAX);
        match (threshold, lockout_window, is_number) {
            (0, ..) => Err(InvalidPolicy::Threshold),
            (_, Duration::ZERO, _) => Err(InvalidPolicy::Window),
            (_, _, false) => Err(InvalidPolicy::Keys),
            _ => Ok(Self {
                keys: KeySpace::new("attempts"),
                table: StrikeTable::new(threshold, max_tracked_keys, u64::MAX),
                window: Window::Rolling(nanos(lockout_window)),
            }),
        }
    }

    /// Checks and counts an attempt of `key` in one step.
    pub fn attempt(&self, key: impl AsRef<[u8]>, now: Now) -> Outcome {
        self.reserve(key, now).0
    }

    /// The same, with what it takes to take the attempt back.
    pub fn reserve(&self, key: impl AsRef<[u8]>, now: Now) -> (Outcome, Reservation) {
        let (key, span) = (self.keys.key(key.as_ref()), self.span(now));
        let mut strikes = self.table.lock();
        if self.table.denied(&strikes, key, span).is_some() {
            return (Outcome::Denied, Reservation(None));
        }
        let strike = self.table.strike(&mut strikes, key, span, false);
        let outcome = if strike.engaged { Outcome::AllowedLastAttempt } else { Outcome::Allowed };
        (outcome, Reservation(Some(strike)))
    }

    /// Takes back exactly the attempt of `reservation`, as if it had never been: the window of its key ends with the attempts
    /// that stand. (The ends of the last eight are known apart. Those of more
    /// end together, with the last of them.) A lockout is lifted only
    /// if that attempt engaged it; the key does not start from zero otherwise. A key that was reset or forgotten meanwhile,
    /// or whose window is over, is left alone.
    pub fn cancel(&self, reservation: Reservation, now: Now) {
        if let Some(strike) = reservation.0 {
            self.table.cancel(strike, self.span(now));
        }
    }

    /// Takes back the last attempt of `key`, if it is not locked. It is the worse choice, for those who have no
    /// [`Reservation`]: that may be somebody else's attempt, the lockout that it engaged is not lifted, and two refunds for
    /// one attempt are an attempt too many.
    pub fn refund(&self, key: impl AsRef<[u8]>, now: Now) {
        self.table.refund(self.keys.key(key.as_ref()), self.span(now));
    }

    /// Forgets `key`, its lockout included: for an attempt that shows its key to be in the right hands.
    pub fn reset(&self, key: impl AsRef<[u8]>) {
        self.table.reset(self.keys.key(key.as_ref()));
    }

    /// How long an attempt of `key` will be denied, without counting one; `None` if it would be allowed. Where every tracked
    /// key is locked, a new one is locked until the first of these is free.
    pub fn locked(&self, key: impl AsRef<[u8]>, now: Now) -> Option<Duration> {
        let wait = self.table.denied(&self.table.lock(), self.keys.key(key.as_ref()), self.span(now))?;
        Some(Duration::from_nanos(wait.get()))
    }

    /// Drops keys whose window is over. New keys take their places anyway: call it where [`tracked`](Self::tracked) is to say
    /// how many count.
    pub fn sweep(&self, now: Now) {
        self.table.sweep(self.span(now));
    }

    /// The keys that are tracked, those included whose window is over and that nobody asked for since.
    pub fn tracked(&self) -> usize {
        self.table.counts().live
    }

    fn span(&self, now: Now) -> Span {
        self.window.span(Moment { monotonic: now.nanos(), unix: 0 })
    }
}

impl fmt::Debug for AttemptLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptLimiter").field("tracked", &self.tracked()).finish_non_exhaustive()
    }
}
