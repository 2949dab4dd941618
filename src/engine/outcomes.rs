//! Outcomes: what rules do with them, in counts and one by one.

use super::Engine;
use super::reservations::{Hold, Refused};
use crate::decision::Engaged;
use crate::policy::outcomes::{Effect, Outcome};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What became of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The attempt stays counted.
    Counted,
    /// The attempt was taken back.
    Cancelled,
    /// All attempts of the key were forgotten.
    Reset,
    /// A limit was charged.
    Charged,
    /// A limit charges nothing for it.
    Uncharged,
    /// There was nothing left to change: the key was forgotten meanwhile, or found no room, or the rule is gone.
    Gone,
    /// A limit that refuses keys without room has none to charge by now.
    Unpaid,
    /// It was told before.
    Repeated,
    /// It came after the time for it.
    Late,
    /// Another process waits for it, or waited.
    Foreign,
    /// Nobody waits for it.
    Forged,
    /// The request goes on.
    Early,
    /// What was told could not be read.
    Unreadable,
}

impl Settled {
    /// All kinds, in order.
    pub const ALL: [Self; 13] = [
        Self::Counted,
        Self::Cancelled,
        Self::Reset,
        Self::Charged,
        Self::Uncharged,
        Self::Gone,
        Self::Unpaid,
        Self::Repeated,
        Self::Late,
        Self::Foreign,
        Self::Forged,
        Self::Early,
        Self::Unreadable,
    ];
}

impl From<Effect> for Settled {
    fn from(effect: Effect) -> Self {
        match effect {
            Effect::Count => Self::Counted,
            Effect::Cancel => Self::Cancelled,
            Effect::Reset => Self::Reset,
        }
    }
}

impl From<Refused> for Settled {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Repeated => Self::Repeated,
            Refused::Late => Self::Late,
            Refused::Foreign => Self::Foreign,
            Refused::Forged => Self::Forged,
        }
    }
}

impl Settled {
    /// The kind in one word, as logs and metrics write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::Cancelled => "cancelled",
            Self::Reset => "reset",
            Self::Charged => "charged",
            Self::Uncharged => "uncharged",
            Self::Gone => "gone",
            Self::Unpaid => "unpaid",
            Self::Repeated => "repeated",
            Self::Late => "late",
            Self::Foreign => "foreign",
            Self::Forged => "forged",
            Self::Early => "early",
            Self::Unreadable => "unreadable",
        }
    }
}

impl fmt::Display for Settled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What became of one outcome: for each rule that waited, by its name, or as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settlement {
    /// For each rule.
    pub rules: Vec<(String, Settled)>,
    /// Why it is not honoured at all.
    pub refused: Option<Settled>,
    /// The lockouts that it engaged.
    pub engaged: Vec<Engaged>,
}

/// How a request that a rule waited for ended.
pub(super) struct Ended<'e, 'o> {
    pub outcome: &'e Outcome<'o>,
    /// Whether it may be a gRPC call.
    pub is_grpc: bool,
    /// Whether it is told after its time: then it frees nobody.
    pub is_late: bool,
}

/// Outcomes since the start, by what became of them.
#[derive(Debug, Default)]
pub struct OutcomeCounts {
    settled: [AtomicU64; Settled::ALL.len()],
    in_time: AtomicU64,
}

impl OutcomeCounts {
    pub(super) fn note(&self, settled: Settled) {
        self.settled[settled as usize].fetch_add(1, Relaxed);
    }

    fn note_in_time(&self) {
        self.in_time.fetch_add(1, Relaxed);
    }

    /// Reservations whose outcome was told in time.
    pub fn in_time(&self) -> u64 {
        self.in_time.load(Relaxed)
    }

    /// The count of a kind.
    pub fn of(&self, settled: Settled) -> u64 {
        self.settled[settled as usize].load(Relaxed)
    }

    /// The counts, by kind.
    pub fn read(&self) -> impl Iterator<Item = (Settled, u64)> {
        Settled::ALL.into_iter().map(|settled| (settled, self.of(settled)))
    }
}

impl Engine {
    /// Does what rules ask for now that the outcome of a request is known.
    pub fn settle(&self, reservation: &str, outcome: &Outcome<'_>) -> Settlement {
        let opened = match self.outcomes.reservations.open(reservation, self.now()) {
            Ok(opened) => opened,
            Err(refused) => return self.not_settled(refused.into()),
        };
        let (now, mut settlement) = (self.moment(), Settlement::default());
        let ended = Ended { outcome, is_grpc: opened.is_grpc, is_late: opened.is_late(now) };
        for (rule, hold) in opened.holds {
            let settled = match hold {
                Hold::Attempt(strike) => {
                    let (settled, engaged) = self.lockouts.settle(&rule, strike, &ended, now);
                    settlement.engaged.extend(engaged);
                    settled
                }
                Hold::Charge(owed) => self.limits.owe(&rule, &owed, outcome, now),
            };
            self.outcomes.counts.note(settled);
            settlement.rules.push((rule, settled));
        }
        if !ended.is_late {
            self.outcomes.counts.note_in_time();
        }
        settlement
    }

    /// Notes what was told and is no outcome.
    pub fn not_settled(&self, settled: Settled) -> Settlement {
        self.outcomes.counts.note(settled);
        Settlement { refused: Some(settled), ..Settlement::default() }
    }
}
