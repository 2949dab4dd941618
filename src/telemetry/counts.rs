//! What is counted and should not grow: one log line each, whenever it did.

use crate::engine::Engine;
use crate::engine::outcomes::{OutcomeCounts, Settled};
use crate::policy::counts::Counted;
use crate::store::limit::TableCounts;
use crate::store::strikes::StrikeCounts;
use std::collections::HashMap;
use std::net::IpAddr;
use tracing::warn;

/// What was reported last, so that only news is. Numbers are since the start.
#[derive(Default)]
pub struct Reported {
    counts: Counted,
    crowd: Option<IpAddr>,
    tables: HashMap<String, TableCounts>,
    strikes: HashMap<String, StrikeCounts>,
    outcomes: [u64; LOST.len()],
}

/// Outcomes that change nothing although they should.
const LOST: [Settled; 7] = [
    Settled::Foreign,
    Settled::Forged,
    Settled::Late,
    Settled::Unpaid,
    Settled::Repeated,
    Settled::Early,
    Settled::Unreadable,
];

impl Reported {
    /// Reports what `engine` has come through since the last time.
    pub fn report(&mut self, engine: &Engine) {
        self.lacking(engine.policy().counts.read());
        self.crowd(engine.policy().crowd.found());
        engine.limit_counts().for_each(|(limit, counts)| self.table(limit, counts));
        engine.strike_counts().for_each(|(lockout, counts)| self.strikes(lockout, counts));
        self.outcomes(engine.outcome_counts());
    }

    fn lacking(&mut self, counted: Counted) {
        let Counted { missing_costs, unknown_clients } = counted;
        if counted != self.counts {
            warn!(missing_costs, unknown_clients, "requests lacked what rules ask for: numbers since the start");
            self.counts = counted;
        }
    }

    fn crowd(&mut self, found: Option<IpAddr>) {
        if let Some(address) = found.filter(|_| found != self.crowd) {
            let hint = "it is probably a proxy, and all its clients share their allowances: let Envoy send the client's \
                        address (client.address), or name the proxy (client.trusted_proxies)";
            warn!(%address, hint, "nearly all requests come from one private address");
        }
        self.crowd = found;
    }

    fn table(&mut self, limit: &str, counts: TableCounts) {
        let before = self.tables.insert(limit.to_owned(), counts).unwrap_or_default();
        let TableCounts { live, forgiven, overflowed, refused, shared, .. } = counts;
        // One that starts afresh has come through nothing.
        if forgiven > before.forgiven || overflowed > before.overflowed || refused > before.refused {
            let hint = "raise max_keys, or look for who makes up keys";
            warn!(limit, live, forgiven, overflowed, refused, shared, hint, "the table of a limit was full");
        }
    }

    fn strikes(&mut self, lockout: &str, counts: StrikeCounts) {
        let before = self.strikes.insert(lockout.to_owned(), counts).unwrap_or_default();
        let StrikeCounts { live, locked, forgiven, turned_away } = counts;
        if forgiven > before.forgiven || turned_away > before.turned_away {
            let hint = "raise max_keys, or look for who makes up keys";
            warn!(lockout, live, locked, forgiven, turned_away, hint, "the table of a lockout was full");
        }
    }

    fn outcomes(&mut self, counts: &OutcomeCounts) {
        let now = LOST.map(|settled| counts.of(settled));
        if now != self.outcomes {
            let [foreign, forged, late, unpaid, repeated, early, unreadable] = now;
            let hint = "foreign: Envoy tells another Tollgate than it asked, or this one was restarted; late: raise \
                        outcome_timeout, and set buffer_size_bytes: 0; early: log DownstreamEnd alone; forged: nobody \
                        but Envoy should reach this port; unpaid: raise max_keys of the limit";
            warn!(foreign, forged, late, unpaid, repeated, early, unreadable, hint, "outcomes changed nothing");
            self.outcomes = now;
        }
    }
}
