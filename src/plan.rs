//! What a resolver's answer asks of the store: nothing, or a charge on each of the caller's rates, as data.

use crate::held::Rates;
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
    Charge(SmallVec<[Rate; 8]>),
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
        let mut charge: SmallVec<[Rate; 8]> = rates.iter().filter_map(|held| held.rate()).collect();
        charge.sort_unstable();
        charge.dedup();
        Self::Charge(charge)
    }
}
