//! The field table's section `token`: where the identity of a request comes from.

use super::kinds::{Kind, TEXT, TEXT_OR_TEXTS};
use super::matchers::when;
use super::node::quoted;
use super::section::Section;
use super::token::{CLAIMS, PREFIXES, SOURCES};
use crate::capability::Prefixes;
use crate::policy::MissingToken;
use crate::policy::facts::Field;
use crate::policy::when::Matcher;
use crate::token::TokenRules;

const MISSING: Kind<MissingToken> = Kind::Word(&[("deny", MissingToken::Deny), ("allow", MissingToken::Allow)]);

/// Whether preflights are skipped.
const PREFLIGHT: Kind<bool> = Kind::Word(&[("skip", true), ("check", false)]);

/// The section `token`.
pub struct Token {
    pub rules: TokenRules,
    pub prefixes: Prefixes,
    pub missing: MissingToken,
    pub skips_preflights: bool,
}

pub fn token(token: &mut Section<'_, '_>) -> Option<Token> {
    let source = token.field("source", "[metadata]", &SOURCES, "where a token is looked for, in order");
    let metadata = token.section("metadata", "what Envoy's jwt_authn filter is told to write", metadata);
    let principal = token.field("principal", "sub", &CLAIMS, "the claim, or the claims, that name the caller");
    let capabilities = token.field("capabilities", "[capabilities]", &CLAIMS, "the claims that hold capabilities");
    let prefixes = token.required(
        "prefixes",
        "[\"prefix:rate:\"]",
        &PREFIXES,
        "what rate capabilities start with; the first that fits counts",
    );
    let missing = token.section_or(
        "missing",
        "deny",
        &MISSING,
        "what a request without a token may do; deny is a 401",
        allow_when,
    );
    let preflight = token.field(
        "preflight",
        "skip",
        &PREFLIGHT,
        "skip: a browser's preflight (OPTIONS, Origin, Access-Control-Request-Method) is let through; check: it is a request",
    );
    source?;
    let Metadata { namespace, payload, failure } = metadata?;
    let (principal, capabilities, missing, preflight) = (principal?, capabilities?, missing?, preflight?);
    let rules = TokenRules { namespace, payload, failure, principal, capabilities };
    Some(Token { rules, prefixes: prefixes?, missing, skips_preflights: preflight })
}

fn allow_when(missing: &mut Section<'_, '_>) -> Option<MissingToken> {
    let when = missing.shared("allow_when", "matchers", "the requests that need no token", when)?;
    let hint = "write `deny`, `allow`, or `allow_when:` and matchers below it";
    if !missing.is_clean() {
        return None;
    }
    let Some(when) = when else { return missing.clash(&[], "`token.missing` says nothing".into(), hint) };
    if !when.asks(&is_about_token) {
        return Some(MissingToken::AllowWhen(when));
    }
    let cause = "this asks for what a token says, and is about requests without one".to_owned();
    missing.clash(&["allow_when"], cause, "ask for what they have: a path, a method, a host, a client, a header")
}

fn is_about_token(matcher: &Matcher) -> bool {
    match matcher.field() {
        Some(field) => matches!(field, Field::Principal | Field::Claim(_)),
        None => matches!(matcher, Matcher::Token(_) | Matcher::HasRate(_)),
    }
}

struct Metadata {
    namespace: String,
    payload: Vec<String>,
    failure: String,
}

fn metadata(metadata: &mut Section<'_, '_>) -> Option<Metadata> {
    let namespace = metadata.field(
        "namespace",
        "envoy.filters.http.jwt_authn",
        &TEXT,
        "the metadata namespace of Envoy's jwt_authn filter",
    );
    let payload = metadata.field(
        "payload",
        "[payload, jwt_payload]",
        &TEXT_OR_TEXTS,
        "the payload_in_metadata of the jwt_authn provider",
    );
    let failure =
        metadata.field("failure", "jwt_failure", &TEXT, "the failed_status_in_metadata of the jwt_authn provider");
    let (namespace, payload, failure) = (namespace?, payload?, failure?);
    if payload.contains(&failure) {
        let cause = format!("{} is the key of the payload and of the failure", quoted(&failure));
        let hint = "give each its own key, or a failed token would be read as claims";
        return metadata.clash(&["failure", "payload"], cause, hint);
    }
    Some(Metadata { namespace, payload, failure })
}
