//! The final say over the rates a token counts as carrying, and the say that holds unless another is given.

use crate::held::Rates;
use crate::rate::{InvalidRate, Rate};
use std::borrow::Cow;
use std::num::NonZeroU64;

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
#[error("{0}")]
pub struct Denial(Cow<'static, str>);

impl Denial {
    /// A denial for `reason`.
    pub fn new(reason: impl Into<Cow<'static, str>>) -> Self {
        Self(reason.into())
    }
}

impl From<InvalidRate> for Denial {
    fn from(error: InvalidRate) -> Self {
        Self::new(error.to_string())
    }
}

/// Malformed capabilities are ignored beside valid ones and hold the token to zero when alone; windows outside the
/// bounds are rescaled to the nearer bound at the same calls per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DefaultResolver {
    /// The windows that a token's rate may have.
    pub window_bounds: WindowBounds,
    /// What a malformed capability means beside a valid one.
    pub malformed: MalformedRule,
}

/// The windows that a token's rate may have; the bounds themselves are included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowBounds {
    /// Any window is taken as it is.
    Off,
    /// At least `min` and at most `max` nanoseconds.
    Within {
        /// The shortest window, in nanoseconds.
        min: NonZeroU64,
        /// The longest window, in nanoseconds.
        max: NonZeroU64,
    },
}

/// One minute to 24 hours.
impl Default for WindowBounds {
    fn default() -> Self {
        const MINUTE: NonZeroU64 = NonZeroU64::new(60_000_000_000).unwrap();
        const DAY: NonZeroU64 = NonZeroU64::new(24 * 60 * 60_000_000_000).unwrap();
        Self::Within { min: MINUTE, max: DAY }
    }
}

impl WindowBounds {
    /// The rate as it is if its window lies within the bounds, or else rescaled to the nearer bound.
    fn bound(self, rate: Rate) -> Option<Rate> {
        match self {
            Self::Within { min, .. } if rate.window() < min.get() => Some(rate.rescaled(min)),
            Self::Within { max, .. } if rate.window() > max.get() => Some(rate.rescaled(max)),
            _ => None,
        }
    }
}

/// What a malformed capability means beside a valid one. Alone, it always holds the token to zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MalformedRule {
    /// It is ignored.
    #[default]
    IgnoreBesideValid,
    /// It holds the token to zero.
    Keep,
}

impl<C: ?Sized> Resolver<C> for DefaultResolver {
    fn resolve(&self, _: &C, _: &[u8], rates: &mut Rates<'_>) -> Result<(), Denial> {
        let any_valid = rates.iter().any(|held| !held.is_zero());
        if any_valid && self.malformed == MalformedRule::IgnoreBesideValid {
            rates.retain(|held| !held.is_zero());
        }
        for held in rates.iter_mut() {
            if let Some(rescaled) = held.rate().and_then(|rate| self.window_bounds.bound(rate)) {
                *held = rescaled.into();
            }
        }
        Ok(())
    }
}
