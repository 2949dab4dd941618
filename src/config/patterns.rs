//! The kinds of values that requests are compared with: texts with wildcards, methods, hosts, paths, networks.

use super::kinds::{A_TEXT_OR_TEXTS, Kind, text, word};
use super::node::{Tree, quoted};
use super::paths::path_pattern;
use super::value::Value;
use crate::network::IpNet;
use crate::policy::facts::{Presence, host};
use crate::policy::pattern::{Dialect, Pattern};
use crate::policy::when::Wanted;
use crate::token::ClaimPath;
use std::net::IpAddr;

pub const PRINCIPALS: Kind<Vec<Wanted>> =
    Kind::Is("a text, a number or a list of these", r##"{"$ref": "#/$defs/values"}"##, |value| {
        value.list_or_one(principal)
    });

pub const TOKENS: Kind<Vec<Presence>> = Kind::Is(
    "present, missing, failed or a list of these",
    r#"{"oneOf": [{"enum": ["present", "missing", "failed"]}, {"type": "array", "minItems": 1, "items": {"enum": ["present", "missing", "failed"]}}]}"#,
    |value| value.list_or_one(|value| word(value, &PRESENCES)),
);

const PRESENCES: [(&str, Presence); 3] =
    [("present", Presence::Present), ("missing", Presence::Missing), ("failed", Presence::Failed)];

pub const METHODS: Kind<Vec<Wanted>> = Kind::Is("a method or a list of methods", A_TEXT_OR_TEXTS, methods);

pub const HOSTS: Kind<Vec<Wanted>> =
    Kind::Is("a host or a list of hosts", A_TEXT_OR_TEXTS, |value| value.list_or_one(host_pattern));

pub const PATHS: Kind<Vec<Wanted>> =
    Kind::Is("a path or a list of paths", A_TEXT_OR_TEXTS, |value| value.list_or_one(path_pattern));

pub const NETWORKS: Kind<Vec<IpNet>> =
    Kind::Is("a network or a list of networks", A_TEXT_OR_TEXTS, |value| value.list_or_one(network));

/// Networks, of which there may be none.
pub const MAYBE_NETWORKS: Kind<Vec<IpNet>> = Kind::Is(
    "a network or a list of networks",
    r#"{"oneOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": {"type": "string", "minLength": 1}}]}"#,
    |value| match &value.node().tree {
        Tree::List(nodes) if nodes.is_empty() => Some(Vec::new()),
        _ => value.list_or_one(network),
    },
);

pub const CLAIM: Kind<ClaimPath> = Kind::Is(
    "a list of names",
    r#"{"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}"#,
    |value| value.elements(text).map(ClaimPath),
);

/// Reads texts with wildcards.
pub fn texts(value: &mut Value<'_, '_>) -> Option<Vec<Wanted>> {
    value.list_or_one(|value| match value.node().tree {
        Tree::Number(_) | Tree::Bool(_) => value.wrong("put it in quotes: what a request holds here is a text"),
        _ => text_pattern(value),
    })
}

/// Reads one text with wildcards.
pub fn text_pattern(value: &mut Value<'_, '_>) -> Option<Wanted> {
    let text = value.text()?;
    pattern(value, text, Dialect::Text)
}

/// Reads `text` as a pattern.
pub fn pattern(value: &mut Value<'_, '_>, text: &str, dialect: Dialect) -> Option<Wanted> {
    match Pattern::parse(text, dialect) {
        Ok(pattern) => Some(Wanted::Text(pattern)),
        Err(error) => value.reject(&format!("{} is no pattern", quoted(text)), &error.to_string()),
    }
}

/// A number in a token is a principal in its plain form, so only a number in that form names one.
fn principal(value: &mut Value<'_, '_>) -> Option<Wanted> {
    const LARGEST: u64 = (1 << 53) - 1;
    let Tree::Number(number) = &value.node().tree else { return text_pattern(value) };
    let is_exact = number.parse::<u64>().is_ok_and(|number| number <= LARGEST);
    if is_exact && value.node().span.length() == number.len() {
        return pattern(value, number, Dialect::Text);
    }
    value.wrong("put it in quotes: a number means another text in YAML, in a token or in both")
}

fn methods(value: &mut Value<'_, '_>) -> Option<Vec<Wanted>> {
    let mut methods = value.list_or_one(method)?;
    if methods.contains(&"GET") && !methods.contains(&"HEAD") {
        methods.push("HEAD");
    }
    Some(methods.iter().map(|method| Wanted::Text(Pattern::exact(method.as_bytes()))).collect())
}

fn method<'d>(value: &mut Value<'d, '_>) -> Option<&'d str> {
    let text = value.text()?;
    if text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-') {
        return Some(text);
    }
    let cause = format!("{} is not a method", quoted(text));
    if text.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-') {
        return value.reject(&cause, &format!("write {}: case counts", quoted(&text.to_ascii_uppercase())));
    }
    value.reject(&cause, "write one method, or a list such as `[POST, PUT]`; for every method, remove `method`")
}

fn host_pattern(value: &mut Value<'_, '_>) -> Option<Wanted> {
    let text = value.text()?;
    let cause = format!("no host that is matched looks like {}", quoted(text));
    let lower = text.to_ascii_lowercase();
    let authority = lower.split("://").last().unwrap_or_default().split('/').next().unwrap_or_default();
    let compared = String::from_utf8_lossy(&host(authority.as_bytes())).into_owned();
    let is_odd = |char: char| char.is_whitespace() || char.is_control() || "?#@,;".contains(char);
    if compared.is_empty() || lower.contains(is_odd) && compared == lower {
        return value.reject(&cause, value.advice());
    }
    if compared != lower {
        let hint = "hosts are matched without a scheme, a port, a path or a dot at the end";
        return value.reject(&cause, &format!("write {}: {hint}", quoted(&compared)));
    }
    if !lower.is_ascii() {
        return value.reject(&cause, "write it as it is sent, in ASCII, such as `xn--bcher-kva.example`");
    }
    if lower.starts_with('.') {
        return value.reject(&cause, &format!("write {}", quoted(&format!("*{lower}"))));
    }
    if lower.contains(':') && !lower.starts_with('[') {
        return value.reject(&cause, "an IPv6 address stands in brackets, such as \"[2001:db8::1]\"");
    }
    pattern(value, &lower, Dialect::Text)
}

fn network(value: &mut Value<'_, '_>) -> Option<IpNet> {
    let text = value.text()?;
    let Some(network) = plain_network(text).map(canonical_network) else {
        return value.wrong("write a network such as 10.0.0.0/8 or 2001:db8::/32, or one address");
    };
    if network.trunc() == network {
        return Some(network);
    }
    let cause = format!("{} has bits set behind its prefix", quoted(text));
    value.reject(&cause, &format!("write `{}`, or a longer prefix", network.trunc()))
}

/// The address is read as the standard library does: a number that begins with 0 might be octal, and is none.
fn plain_network(text: &str) -> Option<IpNet> {
    match text.split_once('/') {
        None => text.parse::<IpAddr>().ok().map(IpNet::from),
        Some((address, length)) => IpNet::new(address.parse().ok()?, length.parse().ok()?).ok(),
    }
}

/// IPv4 that is mapped into IPv6 is IPv4, in a network as in an address.
fn canonical_network(network: IpNet) -> IpNet {
    let IpNet::V6(v6) = network else { return network };
    let mapped = v6.addr().to_ipv4_mapped().zip(v6.prefix_len().checked_sub(96));
    mapped.and_then(|(address, length)| IpNet::new(address.into(), length).ok()).unwrap_or(network)
}
