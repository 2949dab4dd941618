//! What the client is to be told: a decision as status, headers and body, as data.

use crate::decision::{Decision, Unauthenticated, Verdict};
use crate::held::HeldRate;
use crate::request::Protocol;
use crate::warning::Warning;
use std::time::Duration;

/// How answers look.
#[derive(Clone, Debug)]
pub struct ResponseRules {
    /// The name of the warning header, or `None` if callers get no warnings.
    pub warning_header: Option<String>,
    /// The form of a refusal's body.
    pub body: BodyFormat,
    /// The realm of a Bearer challenge: printable ASCII.
    pub realm: String,
}

/// The form of a refusal's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFormat {
    /// `application/problem+json` (RFC 9457).
    Problem,
    /// `application/json`: `{"error": ..., "retry_after": ...}`.
    Json,
    /// `text/plain`.
    Text,
    /// No body.
    None,
}

/// Header lines for the client, names in lower case.
pub type Headers = Vec<(String, String)>;

/// What the client is told. There is none that says nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The request goes on; the response to it gets these headers.
    Allow(Headers),
    /// The request is refused.
    Refuse {
        /// The HTTP status.
        status: u16,
        /// The headers.
        headers: Headers,
        /// The body, or the message of a gRPC status.
        body: String,
    },
}

/// The most warnings that one answer carries; one more line counts the rest.
const WARNINGS: usize = 16;

/// The longest warning line, in bytes.
const WARNING_BYTES: usize = 1024;

/// RESOURCE_EXHAUSTED. Without it Envoy turns a 429 into UNAVAILABLE, which clients retry at once.
const GRPC_RESOURCE_EXHAUSTED: &str = "8";

/// A refusal in words: what the text and JSON bodies say, and what the problem body explains.
struct Words {
    status: u16,
    title: &'static str,
    error: &'static str,
    detail: String,
    retry_after: Option<u64>,
}

impl ResponseRules {
    /// Builds the answer of a decision.
    pub fn answer(&self, decision: &Decision<'_>, protocol: Protocol) -> Answer {
        let mut headers = self.warnings(decision);
        let words = match decision.verdict() {
            Verdict::Allowed => return Answer::Allow(headers),
            Verdict::RateExceeded { limit, retry_after } => Words::rate_exceeded(*limit, *retry_after),
            Verdict::Denied(_) => Words::new(403, "Forbidden", "denied", "This request is not permitted."),
            Verdict::Unauthenticated(why) => {
                headers.push(("www-authenticate".into(), self.challenge(*why)));
                Words::unauthenticated(*why)
            }
        };
        self.refuse(&words, protocol, headers)
    }

    fn refuse(&self, words: &Words, protocol: Protocol, mut headers: Headers) -> Answer {
        let mut add = |name: &str, value: String| headers.push((name.into(), value));
        if let Some(seconds) = words.retry_after {
            add("retry-after", seconds.to_string());
        }
        add("cache-control", "no-store".into());
        let format = match protocol {
            Protocol::Http => self.body,
            Protocol::Grpc => BodyFormat::Text,
        };
        if protocol == Protocol::Grpc && words.status == 429 {
            add("grpc-status", GRPC_RESOURCE_EXHAUSTED.into());
        }
        if let Some(content_type) = format.content_type() {
            add("content-type", content_type.into());
        }
        Answer::Refuse { status: words.status, headers, body: words.body(format) }
    }

    fn challenge(&self, why: Unauthenticated) -> String {
        let realm = self.realm.replace('\\', "\\\\").replace('"', "\\\"");
        match why {
            Unauthenticated::MissingToken => format!("Bearer realm=\"{realm}\""),
            Unauthenticated::FailedToken => format!("Bearer realm=\"{realm}\", error=\"invalid_token\""),
        }
    }

    fn warnings(&self, decision: &Decision<'_>) -> Headers {
        let Some(name) = &self.warning_header else { return Vec::new() };
        let all = decision.warnings();
        let left_out = all.len().saturating_sub(WARNINGS);
        let mut lines: Vec<_> = all.take(WARNINGS).map(|warning| (name.clone(), line(&warning))).collect();
        if left_out > 0 {
            let count = left_out.to_string();
            lines.push((name.clone(), line(&Warning::new(b"omitted").with(b"count", count.as_bytes()))));
        }
        lines
    }
}

/// The warning as one header line of bounded length. Unicode has more control characters than ASCII.
fn line(warning: &Warning<'_>) -> String {
    String::from_utf8_lossy(&warning.to_header_value_within(WARNING_BYTES)).replace(char::is_control, " ")
}

impl BodyFormat {
    fn content_type(self) -> Option<&'static str> {
        match self {
            Self::Problem => Some("application/problem+json"),
            Self::Json => Some("application/json"),
            Self::Text => Some("text/plain; charset=utf-8"),
            Self::None => None,
        }
    }
}

impl Words {
    fn new(status: u16, title: &'static str, error: &'static str, detail: impl Into<String>) -> Self {
        Self { status, title, error, detail: detail.into(), retry_after: None }
    }

    fn rate_exceeded(limit: HeldRate<'_>, wait: Option<Duration>) -> Self {
        let retry_after = wait.map(whole_seconds);
        let detail = match (limit.rate(), retry_after) {
            (Some(rate), Some(seconds)) => format!("The rate {rate} is exceeded. Retry after {seconds} seconds."),
            (Some(rate), None) => format!("The request costs more than the rate {rate} ever permits."),
            (None, _) => "The token permits no requests.".to_owned(),
        };
        Self { retry_after, ..Self::new(429, "Too Many Requests", "rate limit exceeded", detail) }
    }

    fn unauthenticated(why: Unauthenticated) -> Self {
        let (error, detail) = match why {
            Unauthenticated::MissingToken => ("missing token", "A bearer token is required."),
            Unauthenticated::FailedToken => ("invalid token", "The bearer token failed verification."),
        };
        Self::new(401, "Unauthorized", error, detail)
    }

    /// The body. Every text in it is of this file or a number, so that nothing needs escaping.
    fn body(&self, format: BodyFormat) -> String {
        let Self { status, title, error, detail, retry_after } = self;
        match (format, retry_after) {
            (BodyFormat::Problem, _) => format!(r#"{{"title":"{title}","status":{status},"detail":"{detail}"}}"#),
            (BodyFormat::Json, Some(seconds)) => format!(r#"{{"error":"{error}","retry_after":{seconds}}}"#),
            (BodyFormat::Json, None) => format!(r#"{{"error":"{error}"}}"#),
            (BodyFormat::Text, Some(seconds)) => format!("{error}; retry after {seconds} s"),
            (BodyFormat::Text, None) => (*error).to_owned(),
            (BodyFormat::None, _) => String::new(),
        }
    }
}

/// RFC 9110, section 10.2.3: whole seconds. Rounded up, so that a client that waits so long is not too early, and since
/// no wait is zero, at least 1.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}
