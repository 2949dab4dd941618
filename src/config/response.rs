//! Reads how answers look.

use super::kinds::{A_TEXT, Kind, SWITCH};
use super::node::quoted;
use super::section::Section;
use super::value::Value;
use crate::answer::{BodyFormat, DecisionMetadata, QuotaHeaders, ResetTime, ResponseRules};

const HEADER: Kind<String> = Kind::Is("the name of an HTTP header", A_TEXT, header);
pub const METADATA_KEY: Kind<String> = Kind::Is("a key of gRPC metadata", A_TEXT, metadata_key);
const REALM: Kind<String> = Kind::Is("a text of printable ASCII", A_TEXT, realm);

const BODY: Kind<BodyFormat> = Kind::Word(&[
    ("problem", BodyFormat::Problem),
    ("json", BodyFormat::Json),
    ("text", BodyFormat::Text),
    ("none", BodyFormat::None),
]);

const QUOTAS: Kind<QuotaHeaders> = Kind::Word(&[
    ("off", QuotaHeaders::Off),
    ("ietf-10", QuotaHeaders::Ietf10),
    ("ietf-03", QuotaHeaders::Ietf03),
    ("x-ratelimit", QuotaHeaders::XRateLimit(ResetTime::Unix)),
]);

const RESET: Kind<ResetTime> = Kind::Word(&[("unix", ResetTime::Unix), ("seconds", ResetTime::Seconds)]);

const METADATA: Kind<DecisionMetadata> = Kind::Word(&[
    ("refused", DecisionMetadata::Refused),
    ("all", DecisionMetadata::All),
    ("off", DecisionMetadata::Off),
]);

/// Headers that a proxy or an answer's framing owns, and those that Tollgate sets itself.
const TAKEN: [&str; 38] = [
    "access-control-allow-credentials",
    "access-control-allow-headers",
    "access-control-allow-methods",
    "access-control-allow-origin",
    "access-control-expose-headers",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "date",
    "grpc-message",
    "grpc-status",
    "host",
    "keep-alive",
    "last-modified",
    "location",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "ratelimit",
    "ratelimit-limit",
    "ratelimit-policy",
    "ratelimit-remaining",
    "ratelimit-reset",
    "retry-after",
    "server",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "vary",
    "www-authenticate",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
];

/// The section.
pub fn response(response: &mut Section<'_, '_>) -> Option<ResponseRules> {
    let header = response.field(
        "warning_header",
        "X-Webpa-Capability-Warning",
        &HEADER,
        "the header that tells a caller of its malformed capabilities",
    );
    let warnings =
        response.field("warnings", "true", &SWITCH, "whether a caller is told of its malformed capabilities");
    let body = response.field("body", "problem", &BODY, "the form of a refusal's body");
    let realm = response.field("realm", "tollgate", &REALM, "the realm of a Bearer challenge");
    let quotas = response.field("ratelimit_headers", "off", &QUOTAS, "the headers that tell a client its quotas");
    let reset = response.field(
        "x_ratelimit_reset",
        "unix",
        &RESET,
        "X-RateLimit-Reset as the time of the calendar (seconds since 1970) or as a wait in seconds",
    );
    let expose_headers = response.field(
        "expose_headers",
        "false",
        &SWITCH,
        "whether scripts in browsers may read Retry-After, the quota headers and the warning header",
    );
    let decision_metadata = response.field(
        "decision_metadata",
        "refused",
        &METADATA,
        "the decisions that Envoy is told of as dynamic metadata, for its access log",
    );
    let (header, warnings) = (header?, warnings?);
    Some(ResponseRules {
        warning_header: warnings.then_some(header),
        body: body?,
        realm: realm?,
        quota_headers: quota_headers(response, quotas?, reset?)?,
        expose_headers: expose_headers?,
        decision_metadata: decision_metadata?,
    })
}

fn quota_headers(response: &mut Section<'_, '_>, style: QuotaHeaders, reset: ResetTime) -> Option<QuotaHeaders> {
    match style {
        QuotaHeaders::XRateLimit(_) => Some(QuotaHeaders::XRateLimit(reset)),
        _ if response.has("x_ratelimit_reset") => {
            let cause = "`response.x_ratelimit_reset` is for headers that are not sent".to_owned();
            response.clash(&["x_ratelimit_reset"], cause, "remove it, or write `ratelimit_headers: x-ratelimit`")
        }
        style => Some(style),
    }
}

/// Reads a field name (RFC 9110, section 5.1) that is free for Tollgate to use, in lower case.
fn header(value: &mut Value<'_, '_>) -> Option<String> {
    let text = value.text()?;
    if !is_header_name(text) {
        let cause = format!("{} is not the name of a header", quoted(text));
        return value.reject(&cause, "write letters, digits and hyphens only, such as `X-Webpa-Capability-Warning`");
    }
    let name = text.to_ascii_lowercase();
    if TAKEN.contains(&name.as_str()) {
        let cause = format!("the header {} has another meaning in an answer", quoted(text));
        return value.reject(&cause, value.advice());
    }
    Some(name)
}

/// Whether a text is a field name (RFC 9110, section 5.1).
pub fn is_header_name(text: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_token)
}

/// Reads a key of gRPC metadata whose values are text, in lower case.
fn metadata_key(value: &mut Value<'_, '_>) -> Option<String> {
    let text = value.text()?;
    let name = text.to_ascii_lowercase();
    let is_key = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if is_key && !name.ends_with("-bin") && !name.starts_with("grpc-") {
        return Some(name);
    }
    let cause = format!("{} is not a key of gRPC metadata with a text", quoted(text));
    value.reject(&cause, value.advice())
}

fn realm(value: &mut Value<'_, '_>) -> Option<String> {
    let text = value.text()?;
    let printable = |byte| (b' '..=b'~').contains(&byte);
    if text.bytes().all(printable) {
        Some(text.into())
    } else {
        let cause = format!("`{}` holds a character that is not printable ASCII: {}", value.path(), quoted(text));
        value.reject(&cause, value.advice())
    }
}
