//! The kinds of values that say how answers look: a header's name and the realm of a challenge.

use super::kinds::{A_TEXT, Kind};
use super::node::quoted;
use super::value::Value;

pub const HEADER: Kind<String> = Kind::Is("the name of an HTTP header", A_TEXT, header);
pub const METADATA_KEY: Kind<String> = Kind::Is("a key of gRPC metadata", A_TEXT, metadata_key);
pub const REALM: Kind<String> = Kind::Is("a text of printable ASCII", A_TEXT, realm);

/// Headers that a proxy or an answer's framing owns, and those that Tollgate sets itself.
const TAKEN: [&str; 22] = [
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "date",
    "grpc-message",
    "grpc-status",
    "host",
    "keep-alive",
    "location",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "retry-after",
    "server",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "www-authenticate",
];

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
