//! What the service makes of decisions: several of one request go together, and clients are told more.

use super::{By, Decision, Quota, Reading, Unavailable, Verdict};
use crate::capability::Malformed;
use crate::rate::Rate;
use crate::time::nanos;
use std::sync::Arc;
use std::time::Duration;

/// A lockout that a request engaged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub struct Engaged {
    /// The lockout.
    pub lockout: Arc<str>,
    /// The hash of the key that it locked.
    pub key: String,
    /// How long it lasts.
    pub lasts: Duration,
    /// Whether it is only observed.
    pub is_observed: bool,
}

impl Quota {
    /// Of an allowance of the caller.
    pub(crate) fn of_caller(rate: Rate, remaining: u64, next_in: Duration, full_in: Duration) -> Self {
        let reading = Reading { remaining, next_unit: nanos(next_in), full_in: nanos(full_in) };
        Self { name: None, rate, most: rate.count(), reading }
    }
}

impl<'t> Decision<'t> {
    /// A verdict that is reached without asking about any rate.
    pub(crate) fn without_rates(verdict: Verdict<'t>, malformed: Malformed<'t>) -> Self {
        Self::new(verdict, malformed)
    }

    /// The same, with a refusal beside it that is only observed. Of several, the one with the longest wait is kept; a
    /// denial is one that never ends.
    pub(crate) fn observing(mut self, mut refusal: Decision<'t>) -> Self {
        if let Some(beside) = refusal.observed.take() {
            self = self.observing(*beside);
        }
        let wait = |decision: &Decision<'_>| match decision.verdict {
            Verdict::RateExceeded { retry_after, .. } => retry_after.unwrap_or(Duration::MAX),
            Verdict::LockedOut { retry_after } => retry_after,
            _ => Duration::MAX,
        };
        if self.observed.as_deref().is_none_or(|known| wait(&refusal) > wait(known)) {
            self.observed = Some(Box::new(refusal));
        }
        self
    }

    /// The same, with the refusal for what the request lacks of what rules ask for that are only observed.
    pub(crate) fn observing_lack(self, lack: Option<Verdict<'t>>) -> Self {
        match lack {
            Some(verdict) => self.observing(Self::without_rates(verdict, Malformed::new())),
            None => self,
        }
    }

    /// The decision that lets the request go on and observes this one, if that is a refusal.
    pub(crate) fn observed_only(self) -> Self {
        if self.is_allowed() {
            return self;
        }
        Self::without_rates(Verdict::Allowed, self.malformed.clone()).observing(self)
    }

    /// What clients may be told of allowances, where it was asked for: limits first, then the caller's rates. Beside a
    /// refusal by a limit that is not advertised there is nothing to tell, so that no such refusal looks like another's.
    #[doc(hidden)]
    pub fn quotas(&self) -> &[Quota] {
        if self.is_advertised() { &self.quotas } else { &[] }
    }

    /// Whether clients may be told which rate refused the request, if one did.
    pub(crate) fn is_advertised(&self) -> bool {
        !matches!(self.by, By::Limit { is_advertised: false, .. } | By::Lockout { .. })
    }

    /// The limit or the lockout that refused the request, if one did.
    pub(crate) fn limit_name(&self) -> Option<&str> {
        match &self.by {
            By::Callers => None,
            By::Limit { name, .. } | By::Lockout { name } => Some(name),
        }
    }

    /// The same, with what the outcome of the request will be told by.
    pub(crate) fn with_reservation(self, reservation: String) -> Self {
        Self { reservation: Some(reservation), ..self }
    }

    /// The same, with the lockouts that the request engaged.
    pub(crate) fn engaging(self, engaged: Vec<Engaged>) -> Self {
        Self { engaged, ..self }
    }

    /// By what the outcome of the request is to be told, if some rule asks for it.
    #[doc(hidden)]
    pub fn reservation(&self) -> Option<&str> {
        self.reservation.as_deref()
    }

    /// The lockouts that the request engaged.
    #[doc(hidden)]
    pub fn engaged(&self) -> &[Engaged] {
        &self.engaged
    }

    /// The same with the warnings of another decision.
    pub(crate) fn with_malformed_of(self, other: Self) -> Self {
        Self { malformed: other.malformed, ..self }
    }

    /// The same, where waiting helps, with a wait of at least `least`; and so for what is observed.
    pub(crate) fn waiting(mut self, least: &impl Fn() -> Duration) -> Self {
        self.observed = self.observed.map(|observed| Box::new(observed.waiting(least)));
        if let Verdict::RateExceeded { retry_after: Some(wait), .. } | Verdict::LockedOut { retry_after: wait } =
            &mut self.verdict
        {
            *wait = (*wait).max(least());
        }
        self
    }

    /// The same, with what was observed and is told of `entry`, which came before: enforced, there would be no more.
    pub(crate) fn after(mut self, entry: Self) -> Self {
        // Of a limit that is charged twice, what it holds last.
        let mut quotas = entry.quotas;
        quotas.retain(|quota| self.quotas.iter().all(|own| own.name != quota.name));
        quotas.extend(std::mem::take(&mut self.quotas));
        self.quotas = quotas;
        self.observed = entry.observed.or(self.observed);
        self
    }

    /// The same with what clients may be told of the caller's rates.
    pub(crate) fn with_quotas(mut self, quotas: impl IntoIterator<Item = Quota>) -> Self {
        self.quotas.extend(quotas);
        self
    }

    /// What refused the request: a limit, a caller rule, a section of the configuration; `None` for an identity.
    #[doc(hidden)]
    pub fn refused_by(&self) -> Option<&str> {
        match &self.verdict {
            Verdict::Allowed | Verdict::Unauthenticated(_) => None,
            Verdict::RateExceeded { .. } | Verdict::LockedOut { .. } => Some(self.limit_name().unwrap_or("callers")),
            Verdict::Denied(denial) => denial.rule(),
            Verdict::Unavailable(Unavailable::Client) => Some("client"),
        }
    }
}
