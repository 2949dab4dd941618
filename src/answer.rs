//! What Envoy is to tell the client: a decision as status, headers and body, as data.

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
