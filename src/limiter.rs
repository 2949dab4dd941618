//! The limiter as a library: holds each caller to the rates of its token, with the clock passed in.

#[cfg(feature = "server")]
mod service;

use crate::capability::{Malformed, PrefixError, Prefixes};
use crate::decision::{Decision, Taken};
use crate::plan::Plan;
use crate::resolver::{DefaultResolver, Resolver};
use crate::store::caller::Allowance;
use crate::store::key::KeySpace;
use crate::store::memory::MemoryStore;
use crate::time::{Clock, SystemClock};
use std::fmt;
use std::sync::Arc;

/// Holds each caller to every rate that its tokens carry.
///
/// One limiter is shared by all threads. A check takes one short lock, and allocates nothing for a known caller whose
/// token carries up to eight rates, two of them malformed.
///
/// ```
/// use tollgate::Limiter;
///
/// let limiter = Limiter::builder(["prefix:rate:"]).build()?;
/// let capabilities = ["orders:read", "prefix:rate:2/1m"];
///
/// assert!(limiter.check(&(), "alice", capabilities).is_allowed());
/// assert!(limiter.check(&(), "alice", capabilities).is_allowed());
/// let refused = limiter.check(&(), "alice", capabilities);
/// assert_eq!(refused.reason().to_string(), "rate-exceeded");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Limiter<R = DefaultResolver> {
    prefixes: Prefixes,
    resolver: R,
    clock: Arc<dyn Clock>,
    callers: KeySpace,
    store: Arc<MemoryStore>,
}

/// The key space of callers.
const CALLERS: &str = "callers";

/// Builds a [`Limiter`]; see [`Limiter::builder`].
#[must_use = "a builder does nothing until it is built"]
pub struct Builder<R> {
    prefixes: Result<Prefixes, PrefixError>,
    resolver: R,
    clock: Arc<dyn Clock>,
}

impl Limiter {
    /// Starts a limiter for the capabilities that begin with one of `prefixes`, with the default resolver and
    /// the machine's clock.
    pub fn builder<P: AsRef<[u8]>>(prefixes: impl IntoIterator<Item = P>) -> Builder<DefaultResolver> {
        Builder {
            prefixes: Prefixes::new(prefixes),
            resolver: DefaultResolver::default(),
            clock: Arc::new(SystemClock::default()),
        }
    }
}

impl<R> Builder<R> {
    /// Gives `resolver` the final say over the rates; a closure is a resolver.
    ///
    /// A required rate, for example:
    ///
    /// ```
    /// use tollgate::{DefaultResolver, Denial, Limiter, Rates, Resolver};
    ///
    /// let limiter = Limiter::builder(["prefix:rate:"])
    ///     .resolver(|cx: &(), principal: &[u8], rates: &mut Rates<'_>| {
    ///         DefaultResolver::default().resolve(cx, principal, rates)?;
    ///         if rates.is_empty() { Err(Denial::new("no rate capability")) } else { Ok(()) }
    ///     })
    ///     .build()?;
    ///
    /// assert!(limiter.check(&(), "alice", ["prefix:rate:5/1m"]).is_allowed());
    /// assert_eq!(limiter.check(&(), "bob", ["orders:read"]).reason().to_string(), "denied");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resolver<S>(self, resolver: S) -> Builder<S> {
        Builder { prefixes: self.prefixes, resolver, clock: self.clock }
    }

    /// Takes the time from `clock`.
    pub fn clock(self, clock: impl Clock + 'static) -> Self {
        Self { clock: Arc::new(clock), ..self }
    }

    /// Builds the limiter.
    ///
    /// # Errors
    ///
    /// [`PrefixError`] if there is no prefix, or one is empty.
    pub fn build(self) -> Result<Limiter<R>, PrefixError> {
        Ok(Limiter::new(self.prefixes?, self.resolver, self.clock))
    }
}

impl<R> Limiter<R> {
    pub(crate) fn new(prefixes: Prefixes, resolver: R, clock: Arc<dyn Clock>) -> Self {
        Self { prefixes, resolver, clock, callers: KeySpace::new(CALLERS), store: Arc::new(MemoryStore::new()) }
    }

    /// Decides one request of the caller `principal` whose token has `capabilities`, at the cost of one unit of
    /// every rate that applies. The resolver is handed `cx`; without one that reads it, pass `&()`.
    pub fn check<'t, X, C>(
        &self,
        cx: &X,
        principal: impl AsRef<[u8]>,
        capabilities: impl IntoIterator<Item = &'t C>,
    ) -> Decision<'t>
    where
        X: ?Sized,
        R: Resolver<X>,
        C: AsRef<[u8]> + ?Sized + 't,
    {
        self.check_cost(1, cx, principal, capabilities)
    }

    /// Like [`Limiter::check`], at the cost of `cost` units: all of them are spent or none, and a cost above what
    /// a rate's full allowance holds never fits. At a cost of 0 the caller spends nothing.
    pub fn check_cost<'t, X, C>(
        &self,
        cost: u64,
        cx: &X,
        principal: impl AsRef<[u8]>,
        capabilities: impl IntoIterator<Item = &'t C>,
    ) -> Decision<'t>
    where
        X: ?Sized,
        R: Resolver<X>,
        C: AsRef<[u8]> + ?Sized + 't,
    {
        let principal = principal.as_ref();
        let (plan, malformed) = self.plan(cx, principal, capabilities);
        Decision::of(plan, malformed, |rates| match rates {
            [] => Taken::default(),
            rates => self.store.take(self.callers.key(principal), rates, cost, &*self.clock),
        })
    }

    /// What the request is to be charged, and the malformed capabilities of its token.
    pub(crate) fn plan<'t, X, C>(
        &self,
        cx: &X,
        principal: &[u8],
        capabilities: impl IntoIterator<Item = &'t C>,
    ) -> (Plan<'t>, Malformed<'t>)
    where
        X: ?Sized,
        R: Resolver<X>,
        C: AsRef<[u8]> + ?Sized + 't,
    {
        let mut carried = self.prefixes.read(capabilities);
        let resolved = self.resolver.resolve(cx, principal, &mut carried.rates);
        (Plan::new(resolved, carried.rates), carried.malformed)
    }

    /// The allowances of the caller `principal`, shortest window first. It spends and changes nothing.
    ///
    /// ```
    /// # use tollgate::Limiter;
    /// let limiter = Limiter::builder(["prefix:rate:"]).build()?;
    /// let _ = limiter.check(&(), "alice", ["prefix:rate:5/1m"]);
    /// assert_eq!(limiter.allowances("alice")[0].remaining, 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn allowances(&self, principal: impl AsRef<[u8]>) -> Vec<Allowance> {
        self.store.look(self.callers.key(principal.as_ref()), &*self.clock)
    }

    /// The number of callers that have state.
    pub fn callers(&self) -> usize {
        self.store.len()
    }

    /// Drops all expired state and gives memory back. Checks that add a caller sweep as they go; calling this from
    /// time to time as well frees what is left after a wave of callers. It holds the lock of a thousandth of the
    /// callers at a time, for a few of them or to let their table shrink.
    pub fn sweep(&self) {
        self.store.sweep(&*self.clock);
    }
}

impl<R> fmt::Debug for Limiter<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").field("prefixes", &self.prefixes).finish_non_exhaustive()
    }
}

impl<R> fmt::Debug for Builder<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("prefixes", &self.prefixes).finish_non_exhaustive()
    }
}
