//! The limits of a deployment: rates on keys of its choice.

use super::Mode;
use super::outcomes::OutcomeMatcher;
use super::scope::Scope;
use crate::rate::Rate;
pub use crate::store::limit::WhenFull;
use std::sync::Arc;

/// A limit.
#[derive(Clone, Debug)]
pub struct Limit {
    /// Its name, which is that of its state as well.
    pub name: Arc<str>,
    /// The requests that it is for, and what it counts by.
    pub scope: Scope,
    /// The rate.
    pub rate: Rate,
    /// How many units it permits at once.
    pub burst: u64,
    /// Whether its windows are aligned to the calendar.
    pub is_fixed: bool,
    /// When it is charged.
    pub charge: ChargeAt,
    /// How many keys it holds.
    pub max_keys: usize,
    /// What becomes of a new key where it holds so many.
    pub when_full: WhenFull,
    /// Whether clients are told of it.
    pub advertise: bool,
    /// What a request costs here, if it is not what `costs` say.
    pub cost: Option<u64>,
    /// Whether it is enforced.
    pub mode: Mode,
}

impl Limit {
    /// Whether only requests get there that identity does not stop.
    pub fn is_after_identity(&self) -> bool {
        matches!(self.charge, ChargeAt::Admitted | ChargeAt::Outcome(_))
    }
}

/// When a limit is charged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChargeAt {
    /// Before identity is looked at; what is taken is kept, whatever becomes of the request.
    Entry,
    /// With the caller's rates: all of them or none.
    Admitted,
    /// So many units at entry, and the rest of the cost with the caller's rates.
    Split(u64),
    /// Looked at with the caller's rates, and spent once the request ends in one of these ways.
    Outcome(Arc<[OutcomeMatcher]>),
}
