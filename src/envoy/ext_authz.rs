//! `envoy.service.auth.v3.Authorization`: a CheckRequest in, its facts decided, a CheckResponse out; and what becomes of
//! the requests that went on.

use crate::answer::{Answer, ResponseRules};
use crate::config::Config;
use crate::engine::Engine;
use crate::engine::outcomes::Settled;
use crate::envoy::check_response::CheckResponse;
use crate::envoy::wire::Unreadable;
use crate::envoy::{access_log, check_request};
use crate::telemetry::{Decided, Telemetry};
use crate::time::Clock;
use std::fmt::Display;
use tonic::Code;

/// All that a Check needs.
pub struct ExtAuthz {
    /// Decides.
    pub engine: Engine,
    /// How answers look.
    pub response: ResponseRules,
    /// Tells the operators.
    pub telemetry: Telemetry,
}

impl ExtAuthz {
    /// What answers Checks by `config`.
    pub fn new(config: Config, clock: impl Clock + 'static) -> Self {
        let Config { token, prefixes, policy, response, log, .. } = config;
        let engine = Engine::new(token, prefixes, policy, clock);
        Self { engine, response, telemetry: Telemetry::new(&log) }.begun()
    }

    /// What answers Checks by another configuration, and goes on with the state of this one.
    #[must_use]
    pub fn succeeded(&self, config: Config) -> Self {
        let Config { token, prefixes, policy, response, log, .. } = config;
        let engine = self.engine.succeeded(token, prefixes, policy);
        Self { engine, response, telemetry: self.telemetry.succeeded(&log) }.begun()
    }

    /// Counts from zero on what the policy may bring about.
    fn begun(self) -> Self {
        let lockouts = &self.engine.policy().lockouts;
        self.telemetry.metrics().begin(lockouts.iter().map(|lockout| &*lockout.name));
        self
    }

    /// Answers one Check, whose CheckRequest is `message`. `metadata` gives the gRPC metadata that came with it.
    ///
    /// # Errors
    ///
    /// [`Unreadable`], if it is none. Envoy takes an error for a failure of the service.
    pub fn check<'m>(
        &self,
        message: &'m [u8],
        metadata: impl Fn(&str) -> Option<&'m [u8]>,
    ) -> Result<CheckResponse, Unreadable> {
        #[cfg(feature = "otlp")]
        let spans = self.telemetry.spans();
        #[cfg(feature = "otlp")]
        let span = spans.and_then(|spans| spans.begin(metadata("traceparent"), || self.engine.calendar()));
        let mut request = check_request::read(message)
            .inspect_err(|error| self.telemetry.unreadable("a CheckRequest", error, self.engine.now()))?;
        if let Some(key) = self.engine.client_key() {
            request.client = metadata(key).unwrap_or_default();
        }
        let identity = self.engine.token().identify(&request);
        let decision = self.engine.check(&request, &identity);
        let answer = self.response.answer(&decision, request.protocol(), || self.engine.calendar());
        let decided = Decided {
            request: &request,
            identity: &identity,
            decision: &decision,
            traceparent: &|| metadata("traceparent"),
            now: &|| self.engine.now(),
        };
        self.telemetry.report(self.engine.token(), &decided);
        #[cfg(feature = "otlp")]
        if let (Some(spans), Some(span)) = (spans, span) {
            spans.end(span, &decision, self.engine.calendar());
        }
        Ok(response(answer))
    }

    /// Takes in one message of Envoy's access log.
    pub fn log(&self, message: &[u8]) {
        access_log::settle(&self.engine, message, |settlement| self.telemetry.settled(&settlement, self.engine.now()));
    }

    /// Counts a message of Envoy's access log that is lost, whose outcomes nobody knows.
    pub fn lose_log(&self, error: &dyn Display) {
        let now = self.engine.now();
        self.telemetry.settled(&self.engine.not_settled(Settled::Unreadable), now);
        self.telemetry.unreadable("an access log", error, now);
    }
}

fn response(answer: Answer) -> CheckResponse {
    match answer {
        Answer::Allow { headers, metadata } => CheckResponse::allow(headers, metadata),
        Answer::Refuse { status, headers, body, metadata } => {
            CheckResponse::refuse(code(status), status, headers, body, metadata)
        }
    }
}

/// The gRPC code of a refusal. Envoy only asks whether it is zero.
fn code(status: u16) -> Code {
    match status {
        400 => Code::InvalidArgument,
        401 => Code::Unauthenticated,
        404 => Code::NotFound,
        429 => Code::ResourceExhausted,
        503 => Code::Unavailable,
        _ => Code::PermissionDenied,
    }
}
