//! What rules may ask about one request, each fact in the form in which it is compared.

use crate::claims::{Claim, Claims};
use crate::path::UnsafePath;
use crate::request::Request;
use crate::token::ClaimPath;
use std::borrow::Cow;
use std::net::IpAddr;

/// What is known of one request when its rules are walked.
#[derive(Debug)]
pub struct Facts<'f> {
    /// What came.
    pub request: &'f Request<'f>,
    /// What the request presents as its token.
    pub token: Presence,
    /// The principal of a verified caller.
    pub principal: Option<&'f str>,
    /// The claims of a verified caller.
    pub claims: Option<&'f Claims<'f>>,
    /// Whether the token carries a rate capability, be it a malformed one. Only kept where a rule asks for it.
    pub has_rate: bool,
    /// The canonical path. Only kept where a rule asks for it.
    pub path: Cow<'f, str>,
    /// Why there is none, although a rule asks for it.
    pub unsafe_path: Option<UnsafePath>,
    /// The host without its port, in lower case.
    pub host: Cow<'f, [u8]>,
    /// The client's address. Only kept where a rule asks for it.
    pub client: Option<IpAddr>,
}

/// What a request presents as its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Presence {
    /// A verified token.
    Present,
    /// None.
    Missing,
    /// One that failed verification.
    Failed,
}

/// A fact that has a name and values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// The caller's principal.
    Principal,
    /// The method.
    Method,
    /// The host, without its port.
    Host,
    /// The canonical path.
    Path,
    /// The lines of a header; its name is in lower case.
    Header(Box<str>),
    /// An entry of the route's `context_extensions`.
    Context(Box<str>),
    /// A claim of the token; of a list, each element.
    Claim(ClaimPath),
}

/// One value of a field.
#[derive(Clone, Copy, Debug)]
pub enum Value<'v> {
    /// A text.
    Text(&'v [u8]),
    /// A number, of a claim.
    Number(f64),
    /// A boolean, of a claim.
    Bool(bool),
    /// Something that is there and cannot be compared: null, an object, a list in a list.
    Other,
}

impl Facts<'_> {
    /// Whether some value of `field` passes `test`.
    pub fn any<'s>(&'s self, field: &Field, mut test: impl FnMut(Value<'s>) -> bool) -> bool {
        let mut text = |text: &'s [u8]| test(Value::Text(text));
        match field {
            Field::Principal => self.principal.is_some_and(|principal| text(principal.as_bytes())),
            Field::Method => text(self.request.method),
            Field::Host => text(&self.host),
            Field::Path => text(self.path.as_bytes()),
            Field::Header(name) => named(&self.request.headers, name).any(text),
            Field::Context(key) => named(&self.request.context, key).any(text),
            Field::Claim(path) => match self.claim(path) {
                Some(Claim::List(list)) => list.iter().any(|claim| test(value(claim))),
                claim => claim.is_some_and(|claim| test(value(claim))),
            },
        }
    }

    /// Whom the request counts for; those without a token are one caller, whom no token can name.
    pub fn caller(&self) -> &str {
        self.principal.unwrap_or_default()
    }

    /// Whether the request has `field` at all; a claim that is an empty list is there.
    pub fn has(&self, field: &Field) -> bool {
        match field {
            Field::Claim(path) => self.claim(path).is_some(),
            field => self.any(field, |_| true),
        }
    }

    /// A claim whose path leads through something that is no object is not there.
    fn claim(&self, path: &ClaimPath) -> Option<&Claim<'_>> {
        self.claims?.at(&path.0).ok().flatten()
    }
}

/// The values of the entries that have this name.
fn named<'v>(entries: &'v [(&[u8], &[u8])], name: &str) -> impl Iterator<Item = &'v [u8]> {
    entries.iter().filter(move |(key, _)| *key == name.as_bytes()).map(|(_, value)| *value)
}

fn value<'v>(claim: &'v Claim<'_>) -> Value<'v> {
    match claim {
        Claim::Text(text) => Value::Text(text.as_bytes()),
        Claim::Number(number) => Value::Number(*number),
        Claim::Bool(bool) => Value::Bool(*bool),
        Claim::Null | Claim::List(_) | Claim::Object(_) | Claim::TooDeep => Value::Other,
    }
}

/// A host as it is compared: in lower case, without a port and without the dot that ends a full name.
pub fn host(host: &[u8]) -> Cow<'_, [u8]> {
    let is_port = |port: &[u8]| port.iter().all(u8::is_ascii_digit);
    let host = match host.iter().rposition(|&byte| byte == b':') {
        // Of an IPv6 address without brackets, the last group is no port.
        Some(colon)
            if is_port(&host[colon + 1..]) && (host[..colon].ends_with(b"]") || !host[..colon].contains(&b':')) =>
        {
            &host[..colon]
        }
        _ => host,
    };
    let host = host.strip_suffix(b".").unwrap_or(host);
    if host.iter().any(u8::is_ascii_uppercase) { host.to_ascii_lowercase().into() } else { host.into() }
}
