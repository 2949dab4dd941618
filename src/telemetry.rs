//! What operators are told of a request, one log line each: refusals, and Envoy configuration that is missing.
//!
//! No header but x-request-id is ever written, nor is the query of a path, where clients put credentials. What comes
//! from a request or a claim has its control characters escaped.

use crate::config::LogPrincipal;
use crate::decision::{Decision, Verdict};
use crate::request::Request;
use crate::store::key::KeySpace;
use crate::token::{Identity, TokenRules};
use std::fmt::Write;
use tracing::{debug, info, warn};

/// Writes the log lines about requests.
pub struct Telemetry {
    principal: LogPrincipal,
    hashes: KeySpace,
}

impl Telemetry {
    /// Telemetry that writes principals as `principal` says.
    pub fn new(principal: LogPrincipal) -> Self {
        Self { principal, hashes: KeySpace::new("log") }
    }

    /// Reports one decided request.
    pub fn report(&self, token: &TokenRules, request: &Request<'_>, identity: &Identity<'_>, decision: &Decision<'_>) {
        if *identity == Identity::Missing && request.has_bearer() {
            warn_of_missing_claims(token, request);
        }
        if decision.is_allowed() {
            debug!(
                principal = self.principal(identity),
                method = escaped(request.method),
                host = escaped(request.host),
                path = escaped(request.path_without_query()),
                request_id = request.header("x-request-id").map(escaped),
                "allowed"
            );
            return;
        }
        info!(
            reason = %decision.reason(),
            cause = cause(identity, decision),
            principal = self.principal(identity),
            method = escaped(request.method),
            host = escaped(request.host),
            path = escaped(request.path_without_query()),
            peer = escaped(request.peer),
            request_id = request.header("x-request-id").map(escaped),
            "refused"
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
        (Verdict::RateExceeded { limit, retry_after: Some(wait) }, _) => {
            format!("rate {limit} exceeded, {:.3} s to wait", wait.as_secs_f64())
        }
        (Verdict::RateExceeded { limit, retry_after: None }, _) if limit.is_zero() => {
            "a zero rate or a malformed capability holds the caller to nothing".to_owned()
        }
        (Verdict::RateExceeded { limit, retry_after: None }, _) => format!("costs more than rate {limit} holds"),
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
fn warn_of_missing_claims(token: &TokenRules, request: &Request<'_>) {
    let namespace = &token.namespace;
    let hint = if request.metadata.get(namespace).is_none() {
        format!(
            "ext_authz sends no metadata of {namespace}: set metadata_context_namespaces: [{namespace}] on \
             ext_authz, place jwt_authn before it, and let a jwt_authn rule cover this path"
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
        "a bearer token is present but no verified claims arrived"
    );
}

/// The metadata that did arrive, by name.
fn arrived(request: &Request<'_>) -> String {
    let mut text = String::new();
    for namespace in request.metadata.names() {
        let claims = request.metadata.get(namespace).and_then(|claim| claim.object());
        let keys: Vec<&str> = claims.into_iter().flat_map(|claims| claims.names()).collect();
        let separator = if text.is_empty() { "" } else { "; " };
        let _ = write!(text, "{separator}{namespace}: {}", keys.join(", "));
    }
    if text.is_empty() { "nothing".to_owned() } else { escaped(text.as_bytes()) }
}

/// `text` with control characters escaped and bytes that are not UTF-8 replaced.
fn escaped(text: &[u8]) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in String::from_utf8_lossy(text).chars() {
        if c.is_control() {
            escaped.extend(c.escape_default());
        } else {
            escaped.push(c);
        }
    }
    escaped
}
