//! From the capability strings of a token to rates and warnings, by prefix.

use crate::held::{HeldRate, Rates};
use smallvec::SmallVec;

/// The capability prefixes of a deployment, in order: the first that a capability starts with selects it.
///
/// Prefixes are compared byte by byte; they are no patterns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefixes(Vec<Box<[u8]>>);

/// Why a list of capability prefixes cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PrefixError {
    /// A prefix is the empty string, which every capability starts with.
    #[error("a capability prefix cannot be empty")]
    Empty,
    /// There is no prefix, so no capability could carry a rate.
    #[error("at least one capability prefix is required")]
    Missing,
    /// The first prefix is empty, so none is left.
    #[error("a capability prefix cannot be empty\nat least one capability prefix is required")]
    EmptyAndMissing,
}

/// What the capabilities of one token amount to.
pub(crate) struct Carried<'t> {
    /// One rate, or the zero rate, per rate capability, in token order.
    pub rates: Rates<'t>,
    /// The malformed ones among them, whole, in token order, repeats included.
    pub malformed: Malformed<'t>,
}

/// The malformed capabilities of a token, whole.
pub(crate) type Malformed<'t> = SmallVec<[&'t [u8]; 2]>;

impl Prefixes {
    /// Takes a list of prefixes, in order.
    ///
    /// # Errors
    ///
    /// [`PrefixError`] if the list is empty or holds an empty prefix.
    pub fn new<P: AsRef<[u8]>>(prefixes: impl IntoIterator<Item = P>) -> Result<Self, PrefixError> {
        let mut list = Vec::new();
        for prefix in prefixes {
            match (prefix.as_ref(), list.is_empty()) {
                ([], true) => return Err(PrefixError::EmptyAndMissing),
                ([], false) => return Err(PrefixError::Empty),
                (prefix, _) => list.push(prefix.into()),
            }
        }
        if list.is_empty() { Err(PrefixError::Missing) } else { Ok(Self(list)) }
    }

    /// Reads the rate capabilities among `capabilities`; those that start with no prefix are ignored.
    pub(crate) fn read<'t, C>(&self, capabilities: impl IntoIterator<Item = &'t C>) -> Carried<'t>
    where
        C: AsRef<[u8]> + ?Sized + 't,
    {
        let mut carried = Carried { rates: Rates::default(), malformed: Malformed::new() };
        for capability in capabilities {
            let capability = capability.as_ref();
            let Some(text) = self.strip(capability) else { continue };
            let rate = HeldRate::parse(text);
            if rate.is_zero() {
                carried.malformed.push(capability);
            }
            carried.rates.push(rate);
        }
        carried
    }

    /// Whether one of `capabilities` is a rate capability, be it a malformed one.
    #[cfg(feature = "server")]
    pub(crate) fn any<'t>(&self, mut capabilities: impl Iterator<Item = &'t str>) -> bool {
        capabilities.any(|capability| self.strip(capability.as_bytes()).is_some())
    }

    fn strip<'t>(&self, capability: &'t [u8]) -> Option<&'t [u8]> {
        self.0.iter().find_map(|prefix| capability.strip_prefix(&**prefix))
    }
}
