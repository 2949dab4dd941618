//! What the client is to be told: a decision as status, headers and body, as data.

mod metadata;
mod quotas;

pub use metadata::{DecisionMetadata, Metadata, MetadataValue};
pub use quotas::{QuotaHeaders, ResetTime};

use crate::decision::{Decision, Unauthenticated, Verdict};
use crate::held::HeldRate;
use crate::policy::Mode;
use crate::request::Protocol;
use crate::resolver::DenialStatus;
use crate::time::whole_seconds;
use crate::warning::Warning;
use std::borrow::Cow;
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
    /// How clients are told of their quotas.
    pub quota_headers: QuotaHeaders,
    /// Whether scripts in browsers may read the headers that Tollgate adds.
    pub expose_headers: bool,
    /// Which decisions Envoy is told of beside the answer.
    pub decision_metadata: DecisionMetadata,
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
    /// The request goes on.
    Allow {
        /// The headers that the response to it gets.
        headers: Headers,
        /// What Envoy is told of the decision.
        metadata: Metadata,
    },
    /// The request is refused.
    Refuse {
        /// The HTTP status.
        status: u16,
        /// The headers.
        headers: Headers,
        /// The body, or the message of a gRPC status.
        body: String,
        /// What Envoy is told of the decision.
        metadata: Metadata,
    },
}

/// The most warnings that one answer carries; one more line counts the rest.
const WARNINGS: usize = 16;

/// The longest warning line, in bytes.
const WARNING_BYTES: usize = 1024;

/// RESOURCE_EXHAUSTED. Without it Envoy turns a 429 into UNAVAILABLE, which clients retry at once.
const GRPC_RESOURCE_EXHAUSTED: &str = "8";

/// The problem type of a refusal by a quota that clients are told of.
const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";

/// A refusal in words: what the text and JSON bodies say, and what the problem body explains.
struct Words {
    status: u16,
    title: &'static str,
    error: &'static str,
    detail: Cow<'static, str>,
    retry_after: Option<u64>,
    /// The name of the quota that is exceeded, where clients may be told of it.
    violated: Option<Cow<'static, str>>,
    /// What a Bearer challenge says beside its realm, if there is one.
    challenge: Option<&'static str>,
}

/// The HTTP status of a refusal; `None` where the request goes on.
pub fn status(decision: &Decision<'_>) -> Option<u16> {
    Words::of(decision).map(|words| words.status)
}

impl ResponseRules {
    /// The same for a policy in this mode: where it is only observed, no answer is changed.
    #[must_use]
    pub fn in_mode(self, mode: Mode) -> Self {
        match mode {
            Mode::Enforce => self,
            Mode::Observe => {
                Self { warning_header: None, quota_headers: QuotaHeaders::Off, expose_headers: false, ..self }
            }
        }
    }

    /// Builds the answer of a decision. `calendar` tells the nanoseconds since the Unix epoch, if that is asked for.
    pub fn answer(&self, decision: &Decision<'_>, protocol: Protocol, calendar: impl FnOnce() -> u64) -> Answer {
        let (mut headers, mut metadata) = (self.warnings(decision), self.decision_metadata.of(decision));
        headers.extend(self.quota_headers.of(decision.quotas(), calendar));
        match Words::of(decision) {
            None => {
                metadata.extend(decision.reservation().map(metadata::reservation));
                self.expose(&mut headers);
                Answer::Allow { headers, metadata }
            }
            Some(words) => {
                let format = if protocol == Protocol::Grpc { BodyFormat::Text } else { self.body };
                let (mut headers, body) = (self.headers(&words, protocol, format, headers), words.body(format));
                self.expose(&mut headers);
                Answer::Refuse { status: words.status, headers, body, metadata }
            }
        }
    }

    /// Names those of `headers` that a client may want to read and that a browser hides from its scripts.
    fn expose(&self, headers: &mut Headers) {
        let is_told = |name: &&str| {
            *name == "retry-after" || quotas::NAMES.contains(name) || self.warning_header.as_deref() == Some(*name)
        };
        let mut names: Vec<_> = headers.iter().map(|(name, _)| name.as_str()).filter(is_told).collect();
        names.dedup();
        if self.expose_headers && !names.is_empty() {
            let names = names.join(", ");
            headers.push(("access-control-expose-headers".into(), names));
        }
    }

    fn headers(&self, words: &Words, protocol: Protocol, format: BodyFormat, mut headers: Headers) -> Headers {
        let mut add = |name: &str, value: String| headers.push((name.into(), value));
        if let Some(parameters) = words.challenge {
            let realm = self.realm.replace('\\', "\\\\").replace('"', "\\\"");
            add("www-authenticate", format!("Bearer realm=\"{realm}\"{parameters}"));
        }
        if let Some(seconds) = words.retry_after {
            add("retry-after", seconds.to_string());
        }
        add("cache-control", "no-store".into());
        if protocol == Protocol::Grpc && words.status == 429 {
            add("grpc-status", GRPC_RESOURCE_EXHAUSTED.into());
        }
        if let Some(content_type) = format.content_type() {
            add("content-type", content_type.into());
        }
        headers
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
    /// The words about a decision; there are none where the request goes on.
    fn of(decision: &Decision<'_>) -> Option<Self> {
        match decision.verdict() {
            Verdict::Allowed => None,
            Verdict::RateExceeded { retry_after, .. } if !decision.is_advertised() => {
                Some(Self::rate_hidden(*retry_after))
            }
            Verdict::RateExceeded { limit, retry_after } => {
                let name = |rate| quotas::name(decision.limit_name(), rate).into_owned().into();
                let words = Self::rate_exceeded(*limit, *retry_after);
                Some(Self { violated: limit.rate().map(name), ..words })
            }
            Verdict::LockedOut { retry_after } => Some(Self::rate_hidden(Some(*retry_after))),
            Verdict::Denied(denial) => Some(Self::denied(denial.status())),
            Verdict::Unauthenticated(why) => Some(Self::unauthenticated(*why)),
            Verdict::Unavailable(_) => {
                let words = Self::new(503, "Service Unavailable", "unavailable", "This request cannot be decided now.");
                Some(Self { retry_after: Some(1), ..words })
            }
        }
    }

    fn new(status: u16, title: &'static str, error: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { status, title, error, detail: detail.into(), retry_after: None, violated: None, challenge: None }
    }

    fn rate_exceeded(limit: HeldRate<'_>, wait: Option<Duration>) -> Self {
        let retry_after = wait.map(whole_seconds);
        let detail = match (limit.rate(), retry_after) {
            (Some(rate), Some(seconds)) => format!("The rate {rate} is exceeded. Retry after {seconds} s."),
            (Some(rate), None) => format!("The request costs more than the rate {rate} ever permits."),
            (None, _) => "This caller is permitted no requests.".to_owned(),
        };
        Self { retry_after, ..Self::too_many(detail) }
    }

    /// The same where clients are not told of the limit: nothing in it depends on which one it was.
    fn rate_hidden(wait: Option<Duration>) -> Self {
        let retry_after = wait.map(whole_seconds);
        let detail = match retry_after {
            Some(seconds) => format!("There are too many requests. Retry after {seconds} s."),
            None => "The request costs more than is ever permitted.".to_owned(),
        };
        Self { retry_after, ..Self::too_many(detail) }
    }

    fn too_many(detail: String) -> Self {
        Self::new(429, "Too Many Requests", "rate limit exceeded", detail)
    }

    fn denied(status: DenialStatus) -> Self {
        match status {
            DenialStatus::Forbidden => Self::new(403, "Forbidden", "denied", "This request is not permitted."),
            DenialStatus::BadRequest => {
                Self::new(400, "Bad Request", "bad request", "The request cannot be answered as it is written.")
            }
            DenialStatus::NotFound => Self::new(404, "Not Found", "not found", "There is nothing here."),
        }
    }

    fn unauthenticated(why: Unauthenticated) -> Self {
        let (error, detail, challenge) = match why {
            Unauthenticated::MissingToken => ("missing token", "A bearer token is required.", ""),
            Unauthenticated::FailedToken => {
                ("invalid token", "The bearer token failed verification.", ", error=\"invalid_token\"")
            }
        };
        Self { challenge: Some(challenge), ..Self::new(401, "Unauthorized", error, detail) }
    }

    /// The body. Every text in it is of this file, a number, a rate or the name of a limit, which is of a-z, 0-9, `-` and
    /// `_`, so that nothing needs escaping.
    fn body(&self, format: BodyFormat) -> String {
        let Self { error, retry_after, .. } = self;
        match (format, retry_after) {
            (BodyFormat::Problem, _) => self.problem(),
            (BodyFormat::Json, Some(seconds)) => format!(r#"{{"error":"{error}","retry_after":{seconds}}}"#),
            (BodyFormat::Json, None) => format!(r#"{{"error":"{error}"}}"#),
            (BodyFormat::Text, Some(seconds)) => format!("{error}; retry after {seconds} s"),
            (BodyFormat::Text, None) => (*error).to_owned(),
            (BodyFormat::None, _) => String::new(),
        }
    }

    /// RFC 9457, with the type and the member of the draft about RateLimit fields (section 5.1 of its revision 10).
    fn problem(&self) -> String {
        let Self { status, title, detail, violated, .. } = self;
        let about = format!(r#""title":"{title}","status":{status},"detail":"{detail}""#);
        match violated {
            Some(name) => format!(r#"{{"type":"{QUOTA_EXCEEDED}",{about},"violated-policies":["{name}"]}}"#),
            None => format!("{{{about}}}"),
        }
    }
}
