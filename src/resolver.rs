//! The final say over the rates a token counts as carrying, and the say that holds unless another is given.

use crate::held::Rates;
use crate::rate::{InvalidRate, Rate, Window, window_of};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// Has the final say over the rates that a request is held to.
///
/// It runs on every check, outside any lock and before any state is touched. What it leaves in `rates` is trusted:
/// no rate means unrestricted, a zero rate refuses the request, an error denies it. `cx` is what
/// [`Limiter::check`](crate::Limiter::check) was given. A closure is a resolver:
///
/// ```
/// use tollgate::{DefaultResolver, Limiter, Rate, Rates, Resolver};
///
/// let ceiling: Rate = "500/1m".parse()?;
/// let partner: Rate = "10000/1m".parse()?;
/// let limiter = Limiter::builder(["prefix:rate:"])
///     .resolver(move |cx: &(), principal: &[u8], rates: &mut Rates<'_>| {
///         if principal == b"partner" {
///             rates.clear();
///             rates.push(partner); // whatever the token says
///         } else {
///             DefaultResolver::default().resolve(cx, principal, rates)?;
///             rates.push(ceiling); // besides what the token says
///         }
///         Ok(())
///     })
///     .build()?;
///
/// let decision = limiter.check(&(), "alice", ["prefix:rate:50/1m"]);
/// assert_eq!(decision.limits().iter().map(|rate| rate.to_string()).collect::<Vec<_>>(), ["50/1m", "500/1m"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Resolver<C: ?Sized> {
    /// Edits `rates`, which come in token order, into those that the request is held to.
    ///
    /// # Errors
    ///
    /// A [`Denial`] refuses the request with 403. Its reason is for the log; the caller never sees it.
    fn resolve(&self, cx: &C, principal: &[u8], rates: &mut Rates<'_>) -> Result<(), Denial>;
}

impl<C: ?Sized, F> Resolver<C> for F
where
    F: Fn(&C, &[u8], &mut Rates<'_>) -> Result<(), Denial>,
{
    fn resolve(&self, cx: &C, principal: &[u8], rates: &mut Rates<'_>) -> Result<(), Denial> {
        self(cx, principal, rates)
    }
}

/// Why a request is denied. The reason goes to the log and never to the caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Denial {
    reason: Cow<'static, str>,
    status: DenialStatus,
    rule: Option<Arc<str>>,
}

/// What a denied caller is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DenialStatus {
    /// 403.
    #[default]
    Forbidden,
    /// 400: the request is not one to be answered.
    BadRequest,
    /// 404: not even that there is something to be denied.
    NotFound,
}

impl Denial {
    /// A denial for `reason`, with the status 403.
    pub fn new(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { reason: reason.into(), status: DenialStatus::default(), rule: None }
    }

    /// The same with another status.
    #[must_use]
    pub fn with_status(self, status: DenialStatus) -> Self {
        Self { status, ..self }
    }

    /// The same with the name of the rule that says so.
    #[must_use]
    pub fn with_rule(self, rule: impl Into<Arc<str>>) -> Self {
        Self { rule: Some(rule.into()), ..self }
    }

    /// What the caller is told.
    pub fn status(&self) -> DenialStatus {
        self.status
    }

    /// The name of the rule that says so, if it has one.
    pub fn rule(&self) -> Option<&str> {
        self.rule.as_deref()
    }
}

impl From<InvalidRate> for Denial {
    fn from(error: InvalidRate) -> Self {
        Self::new(error.to_string())
    }
}

/// The rules that hold unless a deployment says otherwise: malformed capabilities are ignored beside valid ones and hold
/// the token to zero when alone; windows outside the bounds are rescaled to the nearer bound at the same calls per
/// second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DefaultResolver {
    window_bounds: WindowBounds,
    malformed: MalformedRule,
}

/// The windows that a token's rate may have; the bounds themselves are included. One minute to 24 hours by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowBounds(Option<(Window, Window)>);

/// Window bounds that are none: zero, above 2^63 - 1 nanoseconds, or the shortest above the longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid window bounds: want two positive durations, the shorter one first")]
pub struct InvalidBounds(());

/// What a malformed capability means beside a valid one. Alone, it always holds the token to zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MalformedRule {
    /// It is ignored.
    #[default]
    IgnoreBesideValid,
    /// It holds the token to zero.
    Keep,
}

impl DefaultResolver {
    /// The same with other bounds for the windows of a token's rates.
    #[must_use]
    pub fn with_window_bounds(self, window_bounds: WindowBounds) -> Self {
        Self { window_bounds, ..self }
    }

    /// The same with another meaning of a malformed capability beside a valid one.
    #[must_use]
    pub fn with_malformed(self, malformed: MalformedRule) -> Self {
        Self { malformed, ..self }
    }
}

impl WindowBounds {
    /// Any window is taken as it is.
    pub const OFF: Self = Self(None);

    /// Windows from `min` to `max`.
    ///
    /// # Errors
    ///
    /// [`InvalidBounds`] if either is zero or above 2^63 - 1 nanoseconds, or `min` is above `max`.
    pub fn within(min: Duration, max: Duration) -> Result<Self, InvalidBounds> {
        let window = |duration| window_of(duration).map_err(|_| InvalidBounds(()));
        let (min, max) = (window(min)?, window(max)?);
        if min > max { Err(InvalidBounds(())) } else { Ok(Self(Some((min, max)))) }
    }

    /// The rate rescaled to the nearer bound, if its window lies outside.
    fn rescale(self, rate: Rate) -> Option<Rate> {
        match self.0 {
            Some((min, _)) if rate.nanos() < min.get() => Some(rate.rescaled(min)),
            Some((_, max)) if rate.nanos() > max.get() => Some(rate.rescaled(max)),
            _ => None,
        }
    }
}

impl Default for WindowBounds {
    fn default() -> Self {
        // Unwrapped by the compiler: a zero here would not build.
        const MINUTE: Window = Window::new(60_000_000_000).unwrap();
        const DAY: Window = Window::new(24 * 60 * 60_000_000_000).unwrap();
        Self(Some((MINUTE, DAY)))
    }
}

impl<C: ?Sized> Resolver<C> for DefaultResolver {
    fn resolve(&self, _: &C, _: &[u8], rates: &mut Rates<'_>) -> Result<(), Denial> {
        let any_valid = rates.iter().any(|held| !held.is_zero());
        if any_valid && self.malformed == MalformedRule::IgnoreBesideValid {
            rates.retain(|held| !held.is_zero());
        }
        for held in rates.iter_mut() {
            if let Some(rescaled) = held.rate().and_then(|rate| self.window_bounds.rescale(rate)) {
                *held = held.rescaled(rescaled);
            }
        }
        Ok(())
    }
}
