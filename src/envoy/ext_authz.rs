//! `envoy.service.auth.v3.Authorization`: a CheckRequest in, its facts decided, a CheckResponse out.

use crate::answer::{Answer, ResponseRules};
use crate::engine::Engine;
use crate::envoy::check_request;
use crate::envoy::check_response::CheckResponse;
use crate::envoy::wire::Unreadable;
use crate::telemetry::Telemetry;
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
    /// Answers one Check, whose CheckRequest is `message`.
    ///
    /// # Errors
    ///
    /// [`Unreadable`], if it is none. Envoy takes an error for a failure of the service.
    pub fn check(&self, message: &[u8]) -> Result<CheckResponse, Unreadable> {
        let request = check_request::read(message)?;
        let identity = self.engine.token().identify(&request);
        let decision = self.engine.check(&request, &identity);
        let answer = self.response.answer(&decision, request.protocol());
        self.telemetry.report(self.engine.token(), &request, &identity, &decision);
        Ok(response(answer))
    }
}

fn response(answer: Answer) -> CheckResponse {
    match answer {
        Answer::Allow(headers) => CheckResponse::allow(headers),
        Answer::Refuse { status, headers, body } => CheckResponse::refuse(code(status), status, headers, body),
    }
}

/// The gRPC code of a refusal. Envoy only asks whether it is zero.
fn code(status: u16) -> Code {
    match status {
        401 => Code::Unauthenticated,
        429 => Code::ResourceExhausted,
        _ => Code::PermissionDenied,
    }
}
