//! A line that `replay` writes: the decision and the answer that it makes, or what became of an outcome.

use crate::answer::{Answer, Headers, status};
use crate::decision::{Decision, Verdict};
use crate::engine::outcomes::Settlement;
use crate::time::nanos;
use serde::Serialize;
use std::collections::BTreeMap;

/// One decision.
#[derive(Debug, Serialize)]
pub struct Line {
    line: u64,
    allowed: bool,
    /// The HTTP status of the answer, 200 for a request that goes on.
    status: u16,
    reason: String,
    limits: Vec<String>,
    limit: Option<String>,
    /// What refused the request.
    refused_by: Option<String>,
    /// 0 if there is no wait, or none that helps.
    retry_after_ns: u64,
    headers: Headers,
    warnings: Vec<String>,
    /// The reason of a denial, which the log shows and the client does not see.
    error: Option<String>,
    /// The lockouts that the request engaged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    engaged: Vec<String>,
    /// The refusal that is only observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    observed: Option<Observed>,
}

/// What became of an outcome.
#[derive(Debug, Serialize)]
pub struct Ended {
    line: u64,
    /// The line of the request.
    of: u64,
    /// For each rule that waited for it: `reset`, `cancelled`, `counted`, `charged`, `uncharged`, `unpaid`, `late` or `gone`.
    settled: BTreeMap<String, String>,
    /// Why it changes nothing: `repeated` or `late`.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    /// The lockouts that it engaged.
    engaged: Vec<String>,
}

impl Ended {
    pub fn new(line: u64, of: u64, settlement: &Settlement) -> Self {
        Self {
            line,
            of,
            settled: settlement.rules.iter().map(|(rule, settled)| (rule.clone(), settled.to_string())).collect(),
            refused: settlement.refused.map(|refused| refused.to_string()),
            engaged: settlement.engaged.iter().map(|engaged| engaged.lockout.to_string()).collect(),
        }
    }
}

/// A refusal that is only observed.
#[derive(Debug, Serialize)]
struct Observed {
    status: Option<u16>,
    reason: String,
    limit: Option<String>,
    refused_by: Option<String>,
    retry_after_ns: u64,
    error: Option<String>,
}

impl Line {
    /// The line about the decision of line `line`.
    pub fn new(line: u64, decision: &Decision<'_>, answer: Answer) -> Self {
        let (status, headers) = match answer {
            Answer::Allow { headers, .. } => (200, headers),
            Answer::Refuse { status, headers, .. } => (status, headers),
        };
        Self {
            line,
            allowed: decision.is_allowed(),
            status,
            reason: decision.reason().to_string(),
            limits: decision.limits().iter().map(ToString::to_string).collect(),
            limit: limit(decision),
            refused_by: decision.refused_by().map(ToOwned::to_owned),
            retry_after_ns: wait(decision),
            headers,
            warnings: decision.warnings().map(|warning| warning.to_string()).collect(),
            error: error(decision),
            engaged: decision.engaged().iter().map(|engaged| engaged.lockout.to_string()).collect(),
            observed: decision.observed().map(Observed::new),
        }
    }
}

impl Observed {
    fn new(decision: &Decision<'_>) -> Self {
        Self {
            status: status(decision),
            reason: decision.reason().to_string(),
            limit: limit(decision),
            refused_by: decision.refused_by().map(ToOwned::to_owned),
            retry_after_ns: wait(decision),
            error: error(decision),
        }
    }
}

fn limit(decision: &Decision<'_>) -> Option<String> {
    match decision.verdict() {
        Verdict::RateExceeded { limit, .. } => Some(limit.to_string()),
        _ => None,
    }
}

fn wait(decision: &Decision<'_>) -> u64 {
    match decision.verdict() {
        Verdict::RateExceeded { retry_after: Some(wait), .. } | Verdict::LockedOut { retry_after: wait } => {
            nanos(*wait)
        }
        _ => 0,
    }
}

fn error(decision: &Decision<'_>) -> Option<String> {
    match decision.verdict() {
        Verdict::Denied(denial) => Some(denial.to_string()),
        Verdict::Unavailable(what) => Some(what.to_string()),
        _ => None,
    }
}
