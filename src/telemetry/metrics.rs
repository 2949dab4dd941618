//! What is counted of decided requests. Every label is a word of this file or a name of the configuration, never of a caller.

use crate::decision::{Decision, Engaged, Reason};
use crate::token::{Failure, Identity};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::time::Duration;

/// The upper bounds of the buckets of a Check's duration, in seconds. Most take some microseconds.
const SECONDS: [f64; 13] = [2.5e-6, 5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 5e-3, 2.5e-2, 0.1, 0.5];

/// What was counted since the start.
#[derive(Debug)]
pub struct Metrics {
    decisions: Family<Verdict, Counter>,
    /// That of requests that go on, which most do.
    allowed: Counter,
    identities: Family<Kind, Counter>,
    warnings: Counter,
    lockouts: Family<Lockout, Counter>,
    checks: Histogram,
    errors: Family<Kind, Counter>,
    lost_lines: Counter,
}

/// Why a Check has no answer: Envoy is told of an error.
#[derive(Clone, Copy, Debug)]
pub enum CheckError {
    /// The CheckRequest cannot be read.
    Unreadable,
    /// A bug.
    Panic,
}

impl CheckError {
    fn as_str(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::Panic => "panic",
        }
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Verdict {
    verdict: &'static str,
    reason: &'static str,
    limit: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Kind {
    kind: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Lockout {
    lockout: String,
}

impl Default for Metrics {
    fn default() -> Self {
        let decisions = Family::<Verdict, Counter>::default();
        let labels = Verdict { verdict: "allowed", reason: "none", limit: String::new() };
        let lacking = ["missing", "unusable", "unverified"];
        let errors = [CheckError::Unreadable, CheckError::Panic].map(CheckError::as_str);
        Self {
            allowed: decisions.get_or_create_owned(&labels),
            decisions,
            identities: at_zero(lacking.into_iter().chain(Failure::ALL.map(Failure::as_str))),
            warnings: Counter::default(),
            lockouts: Family::default(),
            checks: Histogram::new(SECONDS),
            errors: at_zero(errors),
            lost_lines: Counter::default(),
        }
    }
}

impl Metrics {
    /// Has them written where `registry` is.
    pub fn register(&self, registry: &mut Registry) {
        let help = "Checks decided, by verdict (allowed, refused, or observed: let through, and refused if it were enforced), reason, \
                    and what refused: a limit, a lockout, callers or a section of the configuration";
        registry.register("tollgate_decisions", help, self.decisions.clone());
        let help = "Requests refused for who makes them, by what their token lacks";
        registry.register("tollgate_identity_failures", help, self.identities.clone());
        let help = "Warnings about malformed capabilities, one for each capability of each request";
        registry.register("tollgate_capability_warnings", help, self.warnings.clone());
        registry.register("tollgate_lockouts_engaged", "Lockouts that were engaged", self.lockouts.clone());
        let help = "Time from the whole CheckRequest to its answer";
        registry.register("tollgate_check_duration_seconds", help, self.checks.clone());
        let help = "Checks without an answer, since the CheckRequest was too large, cut off or none (unreadable), or by a bug (panic)";
        registry.register("tollgate_check_errors", help, self.errors.clone());
        let help = "Log lines that were lost, since standard error did not keep up";
        registry.register("tollgate_log_lines_lost", help, self.lost_lines.clone());
    }

    /// Counts what these lockouts engage, from zero on: of what is not there yet nobody sees that it grows.
    pub fn begin<'l>(&self, lockouts: impl IntoIterator<Item = &'l str>) {
        for lockout in lockouts {
            drop(self.lockouts.get_or_create(&Lockout { lockout: lockout.to_owned() }));
        }
    }

    /// Counts a decision.
    pub fn note(&self, identity: &Identity<'_>, decision: &Decision<'_>) {
        if decision.warnings().len() > 0 {
            self.warnings.inc_by(decision.warnings().len() as u64);
        }
        decision.engaged().iter().for_each(|engaged| self.engaged(engaged));
        let (verdict, refusal) = match decision.observed().filter(|_| decision.is_allowed()) {
            Some(refusal) => ("observed", refusal),
            None if decision.is_allowed() => {
                self.allowed.inc();
                return;
            }
            None => ("refused", decision),
        };
        if let Some(kind) = failure(identity, refusal) {
            self.identities.get_or_create(&Kind { kind }).inc();
        }
        let labels = Verdict { verdict, reason: refusal.reason().as_str(), limit: limit(refusal).to_owned() };
        self.decisions.get_or_create(&labels).inc();
    }

    /// Counts a lockout.
    pub fn engaged(&self, engaged: &Engaged) {
        self.lockouts.get_or_create(&Lockout { lockout: engaged.lockout.to_string() }).inc();
    }

    /// Counts a Check without an answer.
    pub fn failed(&self, error: CheckError) {
        self.errors.get_or_create(&Kind { kind: error.as_str() }).inc();
    }

    /// Counts log lines that were lost.
    pub fn lost(&self, lines: u64) {
        self.lost_lines.inc_by(lines);
    }

    /// Counts how long a Check took.
    pub fn took(&self, duration: Duration) {
        self.checks.observe(duration.as_secs_f64());
    }
}

/// Counters of kinds that are known, which begin at zero.
fn at_zero(kinds: impl IntoIterator<Item = &'static str>) -> Family<Kind, Counter> {
    let counters = Family::<Kind, Counter>::default();
    kinds.into_iter().for_each(|kind| drop(counters.get_or_create(&Kind { kind })));
    counters
}

/// What refused, by a name of the configuration; of ten thousand caller rules none has a name of its own.
fn limit<'d>(refusal: &'d Decision<'_>) -> &'d str {
    match refusal.refused_by() {
        Some(rule) if rule == "callers" || rule.starts_with("callers.") => "callers",
        by => by.unwrap_or_default(),
    }
}

/// What a token lacks, if `refusal` is for that. Where too many failed, a lockout refuses in its place.
fn failure(identity: &Identity<'_>, refusal: &Decision<'_>) -> Option<&'static str> {
    match (identity, refusal.reason()) {
        (Identity::Missing, Reason::MissingToken) => Some("missing"),
        (Identity::Unusable(_), Reason::Denied) if refusal.refused_by().is_none() => Some("unusable"),
        (Identity::Unverified, Reason::FailedToken | Reason::LockedOut) => Some("unverified"),
        (Identity::Failed(_), Reason::FailedToken | Reason::LockedOut) => identity.failure().map(Failure::as_str),
        _ => None,
    }
}
