//! A line that `replay` writes: the decision, and the answer that it makes.

use crate::answer::{Answer, Headers};
use crate::decision::{Decision, Verdict};
use serde::Serialize;

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
}

impl Line {
    /// The line about the decision of line `line`.
    pub fn new(line: u64, decision: &Decision<'_>, answer: Answer) -> Self {
        let (limit, wait) = match decision.verdict() {
            Verdict::RateExceeded { limit, retry_after } => (Some(limit), *retry_after),
            _ => (None, None),
        };
        let error = match decision.verdict() {
            Verdict::Denied(denial) => Some(denial.to_string()),
            _ => None,
        };
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
            limit: limit.map(ToString::to_string),
            refused_by: decision.refused_by().map(ToOwned::to_owned),
            retry_after_ns: wait.map_or(0, |wait| u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)),
            headers,
            warnings: decision.warnings().map(|warning| warning.to_string()).collect(),
            error,
        }
    }
}
