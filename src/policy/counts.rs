//! What was not there although a rule asked for it, counted since the start.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts of what requests lacked.
#[derive(Debug, Default)]
pub struct Counts {
    missing_costs: AtomicU64,
    unknown_clients: AtomicU64,
}

/// Counts at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Requests that cost the default, because they did not say what they cost.
    pub missing_costs: u64,
    /// Requests that came without a readable address of their client, whatever stood in for it.
    pub unknown_clients: u64,
}

impl Counts {
    pub(super) fn missing_cost(&self) {
        self.missing_costs.fetch_add(1, Relaxed);
    }

    pub(super) fn unknown_client(&self) {
        self.unknown_clients.fetch_add(1, Relaxed);
    }

    /// The counts now.
    pub fn read(&self) -> Counted {
        Counted { missing_costs: self.missing_costs.load(Relaxed), unknown_clients: self.unknown_clients.load(Relaxed) }
    }
}
