//! What a resolver's answer asks of the store: nothing, or a charge on each of the caller's rates, as data.

use crate::held::{HeldRate, Rates};
use crate::rate::Rate;
use crate::resolver::Denial;
use smallvec::SmallVec;

/// What a request is to be charged, before anybody is asked whether it fits.
pub(crate) enum Plan<'t> {
    /// The resolver denied the request.
    Deny(Denial),
    /// A zero rate stands among the rates: the request is refused whatever the store holds.
    Zero(Rates<'t>),
    /// The caller spends units of each of these rates, which are sorted and no two alike; without any it is
    /// unrestricted.
    Charge(SmallVec<[Presented; 8]>),
}

/// A rate that a request is held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Presented {
    pub rate: Rate,
    /// Whether the request's token carries it. If not, the policy brings it.
    pub is_of_token: bool,
}

impl<'t> Plan<'t> {
    /// No rate applies.
    #[cfg(feature = "server")]
    pub(crate) fn unrestricted() -> Self {
        Self::Charge(SmallVec::new())
    }

    pub(crate) fn new(resolved: Result<(), Denial>, mut rates: Rates<'t>) -> Self {
        if let Err(denial) = resolved {
            return Self::Deny(denial);
        }
        if rates.iter().any(|held| held.is_zero()) {
            rates.sort();
            return Self::Zero(rates);
        }
        let presented = |held: &HeldRate<'_>| Some(Presented { rate: held.rate()?, is_of_token: held.is_of_token() });
        let mut charge: SmallVec<[Presented; 8]> = rates.iter().filter_map(presented).collect();
        // Of two that are alike, the token's counts.
        charge.sort_unstable_by_key(|presented| (presented.rate, !presented.is_of_token));
        charge.dedup_by_key(|presented| presented.rate);
        Self::Charge(charge)
    }
}
