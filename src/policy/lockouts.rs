//! The lockouts of a deployment: strikes on keys of its choice, and keys that are locked by them.

use super::Mode;
use super::outcomes::{Effect, Outcome, OutcomeRules};
use super::scope::Scope;
use crate::token::Failure;
use std::sync::Arc;
use std::time::Duration;

/// A lockout.
#[derive(Clone, Debug)]
pub struct Lockout {
    /// Its name, which is that of its state as well.
    pub name: Arc<str>,
    /// The requests that it is for, and what it counts them by.
    pub scope: Scope,
    /// What counts as an attempt.
    pub on: Trigger,
    /// The attempt that locks its key.
    pub threshold: u32,
    /// How long a key stays locked, and how long it takes for its attempts to be forgotten.
    pub window: Duration,
    /// Whether windows are aligned to the calendar.
    pub is_fixed: bool,
    /// How many keys are known.
    pub max_keys: usize,
    /// Whether an attempt only counts once its outcome says so.
    pub is_provisional: bool,
    /// What outcomes do to attempts.
    pub outcome: OutcomeRules,
    /// Whether it is enforced.
    pub mode: Mode,
}

/// What counts as an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A request that nothing else refuses.
    Request,
    /// A token that failed in one of these ways.
    FailedToken(Vec<Failure>),
}

impl Lockout {
    /// Whether an attempt may be taken back or confirmed later.
    pub fn asks_for_outcomes(&self) -> bool {
        !self.outcome.is_empty()
    }

    /// What `outcome` does to an attempt. `is_grpc`: the request may be a gRPC call.
    pub fn effect(&self, outcome: &Outcome<'_>, is_grpc: bool) -> Effect {
        self.outcome.effect(outcome, is_grpc, if self.is_provisional { Effect::Cancel } else { Effect::Count })
    }
}
