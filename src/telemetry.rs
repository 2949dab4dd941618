//! What operators are told of a request, one log line each: refusals, and Envoy configuration that is missing.
//!
//! No header is written but the host and a plain x-request-id, nor the query of a path, where clients put credentials.
//! What comes from a request or a claim is cut at a length, and what does not print is escaped.

pub mod counts;
mod gate;
pub mod metrics;
#[cfg(feature = "otlp")]
pub mod spans;

use crate::claims::Claim;
use crate::config::{LogPrincipal, LogRules};
use crate::decision::{Decision, Engaged, Verdict};
use crate::engine::outcomes::Settlement;
use crate::rate::Rate;
use crate::request::Request;
use crate::store::key::KeySpace;
use crate::time::Now;
use crate::token::{Identity, TokenRules};
use gate::Gate;
use metrics::Metrics;
use std::sync::Arc;
use tracing::{debug, info, warn};

/// The most characters of a text that are written.
const LONGEST: usize = 256;

/// Writes the log lines about requests, and counts them.
pub struct Telemetry {
    principal: LogPrincipal,
    /// How many lines a rule may write.
    refusals: Option<Rate>,
    hashes: KeySpace,
    kept: Arc<Kept>,
}

/// What goes on from one configuration to the next.
#[derive(Default)]
struct Kept {
    metrics: Metrics,
    gate: Gate,
    #[cfg(feature = "otlp")]
    spans: std::sync::OnceLock<spans::Spans>,
}

/// One decided request. What only a log line needs is asked for then.
pub struct Decided<'d, 'r> {
    pub request: &'d Request<'r>,
    pub identity: &'d Identity<'r>,
    pub decision: &'d Decision<'r>,
    /// The trace that Envoy is in (W3C Trace Context), if it told one.
    pub traceparent: &'d dyn Fn() -> Option<&'d [u8]>,
    pub now: &'d dyn Fn() -> Now,
}

impl Telemetry {
    /// Telemetry that writes lines as `rules` say.
    pub fn new(rules: &LogRules) -> Self {
        let LogRules { principal, refusals, .. } = *rules;
        Self { principal, refusals, hashes: KeySpace::new("log"), kept: Arc::default() }
    }

    /// Telemetry that writes lines as `rules` say and goes on counting; a hash is that of before.
    #[must_use]
    pub fn succeeded(&self, rules: &LogRules) -> Self {
        let LogRules { principal, refusals, .. } = *rules;
        Self { principal, refusals, hashes: self.hashes.clone(), kept: Arc::clone(&self.kept) }
    }

    /// Sends spans from now on.
    #[cfg(feature = "otlp")]
    pub fn trace(&self, spans: spans::Spans) {
        // There is one set of spans in a process.
        let _ = self.kept.spans.set(spans);
    }

    /// What sends spans, if they are asked for.
    #[cfg(feature = "otlp")]
    pub fn spans(&self) -> Option<&spans::Spans> {
        self.kept.spans.get()
    }

    /// What is counted.
    pub fn metrics(&self) -> &Metrics {
        &self.kept.metrics
    }

    /// Reports one decided request.
    pub fn report(&self, token: &TokenRules, decided: &Decided<'_, '_>) {
        let Decided { request, identity, decision, now, .. } = *decided;
        self.metrics().note(identity, decision);
        decision.engaged().iter().for_each(|lockout| self.engaged(lockout, now()));
        if *identity == Identity::Unverified
            && let Some(left_out) = self.kept.gate.pass("bearer_without_claims", self.refusals, now())
        {
            warn_of_missing_claims(token, request, left_out);
        }
        match decision.observed() {
            None if decision.is_allowed() => self.allowed(decided),
            observed => {
                // What was observed is told also beside a refusal.
                if !decision.is_allowed() {
                    self.refused(decided, decision, "refused");
                }
                observed.into_iter().for_each(|refusal| self.refused(decided, refusal, "would be refused"));
            }
        }
    }

    fn refused(&self, decided: &Decided<'_, '_>, refusal: &Decision<'_>, message: &str) {
        let Decided { request, identity, traceparent, now, .. } = *decided;
        let rule = refusal.refused_by().unwrap_or_else(|| refusal.reason().as_str());
        let Some(left_out) = self.kept.gate.pass(rule, self.refusals, now()) else { return };
        info!(
            reason = %refusal.reason(),
            refused_by = refusal.refused_by(),
            cause = cause(identity, refusal),
            principal = self.principal(identity),
            method = escaped(request.method),
            host = escaped(request.host),
            path = escaped(request.path_without_query()),
            peer = escaped(request.peer),
            request_id = request_id(request),
            trace_id = trace_id(traceparent()),
            left_out = (left_out > 0).then_some(left_out),
            "{message}"
        );
    }

    /// Reports a message of Envoy that cannot be read.
    pub fn unreadable(&self, what: &str, error: &dyn std::fmt::Display, now: Now) {
        if let Some(left_out) = self.kept.gate.pass(&format!("{what} cannot be read"), self.refusals, now) {
            let left_out = (left_out > 0).then_some(left_out);
            warn!(%error, left_out, "{what} cannot be read");
        }
    }

    /// Reports what became of an outcome.
    pub fn settled(&self, settlement: &Settlement, now: Now) {
        for lockout in &settlement.engaged {
            self.metrics().engaged(lockout);
            self.engaged(lockout, now);
        }
        for (rule, settled) in &settlement.rules {
            debug!(rule, %settled, "an outcome was settled");
        }
        if let Some(refused) = settlement.refused {
            debug!(%refused, "an outcome is not honoured");
        }
    }

    /// Reports a lockout that was engaged. What it counts by is not in the line, only a hash of it.
    fn engaged(&self, engaged: &Engaged, now: Now) {
        let Engaged { lockout, key, lasts, is_observed } = engaged;
        let Some(left_out) = self.kept.gate.pass(&format!("{lockout} engaged"), self.refusals, now) else { return };
        info!(
            lockout = &**lockout,
            key,
            seconds = lasts.as_secs_f64(),
            observed = is_observed,
            left_out = (left_out > 0).then_some(left_out),
            "a lockout was engaged"
        );
    }

    /// Reports lines that were left out, and that no line of their rule told of since.
    pub fn report_left_out(&self) {
        for (rule, lines) in self.kept.gate.take_left_out() {
            info!(rule, lines, "lines were left out, of more than `log.refusals` lets through");
        }
    }

    fn allowed(&self, decided: &Decided<'_, '_>) {
        let Decided { request, identity, traceparent, .. } = *decided;
        debug!(
            principal = self.principal(identity),
            method = escaped(request.method),
            host = escaped(request.host),
            path = escaped(request.path_without_query()),
            request_id = request_id(request),
            trace_id = trace_id(traceparent()),
            "allowed"
        );
    }

    fn principal(&self, identity: &Identity<'_>) -> Option<String> {
        let Identity::Caller(caller) = identity else { return None };
        match self.principal {
            LogPrincipal::Plain => Some(escaped(caller.principal.as_bytes())),
            LogPrincipal::Hash => Some(self.hashes.key(caller.principal.as_bytes()).to_string()),
            LogPrincipal::Off => None,
        }
    }
}

/// Why a request was refused, for operators.
fn cause(identity: &Identity<'_>, decision: &Decision<'_>) -> String {
    let cause = match (decision.verdict(), identity) {
        (Verdict::Denied(denial), _) => denial.to_string(),
        (Verdict::Unavailable(what), _) => what.to_string(),
        (Verdict::LockedOut { retry_after }, _) => format!("locked out, {:.3} s to wait", retry_after.as_secs_f64()),
        (Verdict::RateExceeded { limit, retry_after: Some(wait), .. }, _) => {
            format!("rate {limit} exceeded, {:.3} s to wait", wait.as_secs_f64())
        }
        (Verdict::RateExceeded { limit, .. }, _) if limit.is_zero() => {
            "the zero rate: a rule allows nothing, or every rate of the token is malformed".to_owned()
        }
        (Verdict::RateExceeded { limit, .. }, _) => format!("costs more than rate {limit} holds"),
        (_, Identity::Unverified) => "a bearer token is present but no verified claims arrived".to_owned(),
        (_, Identity::Failed(failed)) => match failed.code {
            Some(code) => format!("Envoy's jwt_authn: {} (code {code})", failed.message),
            None => format!("Envoy's jwt_authn: {}", failed.message),
        },
        _ => "no token".to_owned(),
    };
    escaped(cause.as_bytes())
}

/// A client sent a bearer token, yet neither claims nor a failure came with the Check: some line of Envoy's
/// configuration is missing, and its operator has to learn which.
fn warn_of_missing_claims(token: &TokenRules, request: &Request<'_>, left_out: u64) {
    let namespace = &token.namespace;
    let hint = if request.metadata.get(namespace).is_none() {
        format!(
            "ext_authz sends no metadata of {namespace}: set metadata_context_namespaces: [{namespace}] on \
             ext_authz, place jwt_authn before it, and let a jwt_authn rule cover this path; if the token failed, \
             set failed_status_in_metadata: {} on its provider",
            token.failure
        )
    } else {
        format!(
            "jwt_authn writes other keys: set payload_in_metadata to one of [{}] and failed_status_in_metadata to \
             {} on its provider, or name its keys in token.metadata",
            token.payload.join(", "),
            token.failure
        )
    };
    warn!(
        event = "bearer_without_claims",
        arrived = arrived(request),
        hint,
        path = escaped(request.path_without_query()),
        request_id = request_id(request),
        left_out = (left_out > 0).then_some(left_out),
        "a bearer token is present but no verified claims arrived"
    );
}

/// The metadata that did arrive, by name.
fn arrived(request: &Request<'_>) -> String {
    let keys = |(namespace, claim): (&str, &Claim<'_>)| {
        let keys = claim.object().into_iter().flat_map(|claims| claims.iter()).map(|(key, _)| key);
        format!("{namespace}: {}", keys.take(LONGEST).collect::<Vec<_>>().join(", "))
    };
    let arrived: Vec<String> = request.metadata.iter().take(LONGEST).map(keys).collect();
    if arrived.is_empty() { "nothing".to_owned() } else { escaped(arrived.join("; ").as_bytes()) }
}

/// The x-request-id if it looks like one. A client may choose it; a token, which has dots, never looks like one.
fn request_id<'r>(request: &Request<'r>) -> Option<&'r str> {
    let is_plain = |id: &&str| id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    request.header("x-request-id").and_then(|id| str::from_utf8(id).ok()).filter(is_plain)
}

/// The trace id of a `traceparent` (W3C Trace Context: version, trace, parent, flags): 32 hexadecimal digits.
fn trace_id(traceparent: Option<&[u8]>) -> Option<&str> {
    let id = str::from_utf8(traceparent?).ok()?.split('-').nth(1)?;
    Some(id).filter(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// `text` cut at a length, with backslashes and what does not print escaped, and what is not UTF-8 replaced.
fn escaped(text: &[u8]) -> String {
    let shown = &text[..text.len().min(4 * (LONGEST + 1))];
    let mut escaped = String::with_capacity(shown.len());
    for (at, c) in String::from_utf8_lossy(shown).chars().enumerate() {
        match c {
            _ if at == LONGEST => {
                escaped.push('…');
                break;
            }
            '"' | '\'' => escaped.push(c),
            c => escaped.extend(c.escape_debug()),
        }
    }
    escaped
}
