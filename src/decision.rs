//! What is decided of a request: the plan and what the store said make a verdict, with the facts behind it.

#[cfg(feature = "server")]
mod service;

#[cfg(feature = "server")]
pub use service::Engaged;

use crate::capability::Malformed;
use crate::held::{HeldRate, Rates};
use crate::plan::{Plan, Presented};
use crate::rate::Rate;
use crate::resolver::Denial;
use crate::warning::Warning;
use smallvec::SmallVec;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

/// What a limiter decided of one request. It borrows the token's texts; nothing is formatted until asked for.
#[derive(Clone, Debug)]
#[must_use = "a decision that nobody looks at lets the request through"]
pub struct Decision<'t> {
    verdict: Verdict<'t>,
    limits: Rates<'t>,
    malformed: Malformed<'t>,
    /// What the rate belongs to that refused it, if one did.
    #[cfg_attr(not(feature = "server"), expect(dead_code, reason = "a limiter alone has no limits"))]
    by: By,
    #[cfg_attr(not(feature = "server"), expect(dead_code, reason = "a limiter alone has no limits"))]
    quotas: SmallVec<[Quota; 1]>,
    observed: Option<Box<Decision<'t>>>,
    /// By what the outcome of the request will be told, and the lockouts that it engaged.
    #[cfg(feature = "server")]
    reservation: Option<String>,
    #[cfg(feature = "server")]
    engaged: Vec<Engaged>,
}

/// Whether a request goes on, and if not, why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict<'t> {
    /// The request goes on. It spent its cost of every rate that applies.
    Allowed,
    /// A rate does not permit the request now. Nothing was spent.
    #[non_exhaustive]
    RateExceeded {
        /// The refusing rate with the longest wait, or the zero rate.
        limit: HeldRate<'t>,
        /// Waiting so long, alone, always suffices, and a nanosecond less does not, unless the refusing rate is one
        /// that only another token presented and that is forgotten meanwhile. `None`: waiting never helps.
        retry_after: Option<Duration>,
    },
    /// Too many attempts were made. A [`Limiter`](crate::Limiter) never says so; the service does.
    #[non_exhaustive]
    LockedOut {
        /// The time until attempts are permitted again.
        retry_after: Duration,
    },
    /// The resolver denied the request.
    Denied(Denial),
    /// The request shows no identity that could be limited. A [`Limiter`](crate::Limiter) never says so; the
    /// service does, for a missing or a failed token.
    Unauthenticated(Unauthenticated),
    /// The request cannot be decided now. A [`Limiter`](crate::Limiter) never says so.
    Unavailable(Unavailable),
}

/// What a decision lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// The address of the client, which a rule asks for.
    #[error("the address of the client is missing or unreadable, and a rule asks for it")]
    Client,
}

/// Why a request shows no identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unauthenticated {
    /// It presents no token.
    MissingToken,
    /// It presents a token that failed verification.
    FailedToken,
}

/// The kind of a verdict in one word, as logs and metrics write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Allowed.
    None,
    /// A rate was exceeded.
    RateExceeded,
    /// Too many attempts.
    LockedOut,
    /// Denied by the resolver, for an unusable token or an unsafe path.
    Denied,
    /// No token.
    MissingToken,
    /// A failed token.
    FailedToken,
    /// Something that the decision depends on is not there.
    Unavailable,
}

/// What the store answered to a charge.
#[derive(Default)]
pub(crate) struct Taken {
    /// The rates that apply to the caller, shortest window first.
    pub applied: SmallVec<[Rate; 8]>,
    /// The refusing rate with the longest wait; `None` if everything was taken.
    pub refused: Option<Refused>,
    /// The same of limits that are only observed, and the numbers of those.
    pub observed: Option<Refused>,
    #[cfg(feature = "server")]
    pub unfit: SmallVec<[usize; 1]>,
    /// What clients may be told of allowances, where it is asked for.
    pub quotas: SmallVec<[Quota; 1]>,
}

/// What a client may be told of an allowance.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub struct Quota {
    /// The limit's name; `None` for a rate of the caller.
    pub name: Option<Arc<str>>,
    /// The rate.
    pub rate: Rate,
    /// The units that the allowance holds when it is full.
    pub most: u64,
    /// What the allowance holds.
    pub reading: Reading,
}

/// What an allowance holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub struct Reading {
    /// Whole units that it holds now.
    pub remaining: u64,
    /// Nanoseconds until it holds one more; 0 if it is full.
    pub next_unit: u64,
    /// Nanoseconds until it is full.
    pub full_in: u64,
}

/// What a rate belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum By {
    /// The caller.
    #[default]
    Callers,
    /// The limit of this name, and whether clients may be told of it.
    #[cfg(feature = "server")]
    Limit { name: Arc<str>, is_advertised: bool },
    /// The lockout of this name.
    #[cfg(feature = "server")]
    Lockout { name: Arc<str> },
}

/// What did not permit a request.
pub(crate) struct Refused {
    pub by: By,
    /// The rate that is exceeded; a lockout has none.
    pub rate: Option<Rate>,
    /// Nanoseconds until the request fits; `None` if it never does.
    pub wait: Option<NonZeroU64>,
}

impl<'t> Decision<'t> {
    fn new(verdict: Verdict<'t>, malformed: Malformed<'t>) -> Self {
        Self {
            verdict,
            limits: Rates::default(),
            malformed,
            by: By::Callers,
            quotas: SmallVec::new(),
            observed: None,
            #[cfg(feature = "server")]
            reservation: None,
            #[cfg(feature = "server")]
            engaged: Vec::new(),
        }
    }

    /// The refusal that rules ask for which are only observed. A [`Limiter`](crate::Limiter) has none; the service may.
    pub fn observed(&self) -> Option<&Decision<'t>> {
        self.observed.as_deref()
    }

    /// Decides `plan`, asking the store by `take` only where there is something to charge.
    pub(crate) fn of(plan: Plan<'t>, malformed: Malformed<'t>, take: impl FnOnce(&[Presented]) -> Taken) -> Self {
        let (verdict, limits) = match plan {
            Plan::Deny(denial) => (Verdict::Denied(denial), Rates::default()),
            Plan::Zero(rates) => (Verdict::RateExceeded { limit: HeldRate::ZERO, retry_after: None }, rates),
            Plan::Charge(rates) => return Self::taken(take(&rates), malformed),
        };
        Self { limits, ..Self::new(verdict, malformed) }
    }

    pub(crate) fn taken(taken: Taken, malformed: Malformed<'t>) -> Self {
        // A refusal that is carried out leaves nothing to observe.
        let observed = taken.observed.filter(|_| taken.refused.is_none()).map(|refused| {
            Box::new(Self { by: refused.by.clone(), ..Self::new(Verdict::exceeded(Some(&refused)), Malformed::new()) })
        });
        let verdict = Verdict::exceeded(taken.refused.as_ref());
        let by = taken.refused.map(|refused| refused.by).unwrap_or_default();
        let limits = taken.applied.into_iter().collect();
        Self { limits, by, quotas: taken.quotas, observed, ..Self::new(verdict, malformed) }
    }

    /// Whether the request goes on.
    pub fn is_allowed(&self) -> bool {
        matches!(self.verdict, Verdict::Allowed)
    }

    /// Whether the request goes on, and if not, why.
    pub fn verdict(&self) -> &Verdict<'t> {
        &self.verdict
    }

    /// The verdict in one word.
    pub fn reason(&self) -> Reason {
        match self.verdict {
            Verdict::Allowed => Reason::None,
            Verdict::RateExceeded { .. } => Reason::RateExceeded,
            Verdict::LockedOut { .. } => Reason::LockedOut,
            Verdict::Denied(_) => Reason::Denied,
            Verdict::Unauthenticated(Unauthenticated::MissingToken) => Reason::MissingToken,
            Verdict::Unauthenticated(Unauthenticated::FailedToken) => Reason::FailedToken,
            Verdict::Unavailable(_) => Reason::Unavailable,
        }
    }

    /// The rates that applied, remembered ones included, shortest window first, then lowest count. If a zero rate
    /// refused the request: the resolver's rates in that order, zero rates first. None if no rate applied.
    pub fn limits(&self) -> &[HeldRate<'t>] {
        self.limits.as_slice()
    }

    /// One warning per malformed capability of the token, in token order, whatever the verdict.
    pub fn warnings(&self) -> impl ExactSizeIterator<Item = Warning<'t>> {
        self.malformed.iter().map(|capability| Warning::malformed_rate(capability))
    }
}

impl Refused {
    /// Keeps the longest wait, "never" being the longest; the first on a tie.
    pub(crate) fn worsen(worst: &mut Option<Self>, other: Self) {
        let rank = |refused: &Self| refused.wait.map_or(u64::MAX, NonZeroU64::get);
        if worst.as_ref().is_none_or(|known| rank(&other) > rank(known)) {
            *worst = Some(other);
        }
    }
}

impl Verdict<'_> {
    fn exceeded(refused: Option<&Refused>) -> Self {
        let Some(Refused { rate, wait, .. }) = refused else { return Self::Allowed };
        let retry_after = wait.map(|nanos| Duration::from_nanos(nanos.get()));
        match rate {
            Some(rate) => Self::RateExceeded { limit: (*rate).into(), retry_after },
            None => Self::LockedOut { retry_after: retry_after.unwrap_or(Duration::MAX) },
        }
    }
}

impl Reason {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::RateExceeded => "rate-exceeded",
            Self::LockedOut => "lockout",
            Self::Denied => "denied",
            Self::MissingToken => "missing-token",
            Self::FailedToken => "failed-token",
            Self::Unavailable => "unavailable",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
