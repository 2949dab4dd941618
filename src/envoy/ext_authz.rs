//! `envoy.service.auth.v3.Authorization`: a CheckRequest in, its facts decided, a CheckResponse out.

use crate::answer::{Answer, ResponseRules};
use crate::claims::{Claim, Claims};
use crate::engine::Engine;
use crate::envoy::check_request::{Attributes, CheckRequest, Entry, HttpRequest, Metadata};
use crate::envoy::check_response::CheckResponse;
use crate::envoy::claims::{Unreadable, decode_struct};
use crate::request::Request;
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
    /// Answers one Check.
    ///
    /// # Errors
    ///
    /// [`Unreadable`], if the metadata cannot be read. Envoy takes an error for a failure of the service.
    pub fn check(&self, message: &CheckRequest) -> Result<CheckResponse, Unreadable> {
        let request = request(message)?;
        let identity = self.engine.token().identify(&request);
        let decision = self.engine.check(&request, &identity);
        let answer = self.response.answer(&decision, request.protocol());
        self.telemetry.report(self.engine.token(), &request, &identity, &decision);
        Ok(response(answer))
    }
}

/// The facts of a Check.
///
/// # Errors
///
/// [`Unreadable`], if the metadata cannot be read.
pub fn request(message: &CheckRequest) -> Result<Request<'_>, Unreadable> {
    let CheckRequest { attributes } = message;
    let Some(Attributes { source, request, context_extensions, metadata_context }) = attributes else {
        return Ok(Request::default());
    };
    let peer = source.as_ref().and_then(|peer| peer.address.as_ref()?.socket_address.as_ref());
    let facts = Request {
        peer: peer.map_or(&[], |socket| &socket.address),
        context: context_extensions.iter().map(pair).collect(),
        metadata: metadata_context.as_ref().map_or_else(|| Ok(Claims::default()), namespaces)?,
        ..Request::default()
    };
    Ok(match request.as_ref().and_then(|request| request.http.as_ref()) {
        Some(http) => with_http(facts, http),
        None => facts,
    })
}

fn with_http<'r>(facts: Request<'r>, http: &'r HttpRequest) -> Request<'r> {
    let HttpRequest { method, headers, path, host, header_map } = http;
    let mut lines: Vec<_> = headers.iter().map(pair).collect();
    if let Some(map) = header_map {
        // The two encodings exclude each other; `raw_value` is what a raw line has in place of `value`.
        lines.extend(map.headers.iter().map(|line| {
            let value = if line.raw_value.is_empty() { &line.value } else { &line.raw_value };
            (&*line.key, &**value)
        }));
    }
    Request { method, path, host, headers: lines, ..facts }
}

fn namespaces(metadata: &Metadata) -> Result<Claims<'_>, Unreadable> {
    metadata.filter_metadata.iter().map(namespace).collect()
}

fn namespace(entry: &Entry) -> Result<(&str, Claim<'_>), Unreadable> {
    Ok((str::from_utf8(&entry.key)?, Claim::Object(decode_struct(&entry.value)?)))
}

fn pair(entry: &Entry) -> (&[u8], &[u8]) {
    (&entry.key, &entry.value)
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
