//! What limits and lockouts have in common, looked at together: names, principals, clients.

use super::limits::PlacedLimit;
use super::lockouts::PlacedLockout;
use super::node::{Span, quoted};
use super::rules;
use super::section::Section;
use crate::policy::facts::Field;
use crate::policy::scope::{KeyPart, Scope, Source};

/// A limit or a lockout.
pub struct Rule<'p> {
    /// What it is.
    what: &'static str,
    name: &'p str,
    pub scope: &'p Scope,
    span: Span,
    name_span: Span,
    is_enabled: bool,
}

/// What to do where something counts by client and the section `client` is absent.
const SAY_WHERE: &str = "write `client: { address: { rpc_metadata: x-client-ip } }` if Envoy sends it, as envoy/envoy.yaml \
                         does; `address: peer` if the peer of Envoy is the client; or name the proxies in front of it";

/// The limits, and then the lockouts.
pub fn rules<'p>(limits: &'p [PlacedLimit], lockouts: &'p [PlacedLockout]) -> Vec<Rule<'p>> {
    let limits = limits.iter().map(|placed| Rule {
        what: "limit",
        name: &placed.limit.name,
        scope: &placed.limit.scope,
        span: placed.span,
        name_span: placed.name_span,
        is_enabled: placed.is_enabled,
    });
    let lockouts = lockouts.iter().map(|placed| Rule {
        what: "lockout",
        name: &placed.lockout.name,
        scope: &placed.lockout.scope,
        span: placed.span,
        name_span: placed.name_span,
        is_enabled: placed.is_enabled,
    });
    limits.chain(lockouts).collect()
}

/// Notes names that stand twice.
pub fn check_names(section: &mut Section<'_, '_>, rules: &[Rule<'_>]) {
    for (at, rule) in rules.iter().enumerate() {
        if let Some(other) = rules[..at].iter().find(|other| other.name == rule.name) {
            let kinds =
                if rule.what == other.what { format!("two {}s", rule.what) } else { "a limit and a lockout".into() };
            let cause = format!("{kinds} have the name {}", quoted(rule.name));
            let hint = format!("give each its own; the other stands in line {}", other.name_span.line);
            section.reject::<()>(rule.name_span, cause, hint);
        }
    }
}

/// Warns where something counts by client and nothing says where clients' addresses stand.
pub fn warn_of_clients(section: &mut Section<'_, '_>, rules: &[Rule<'_>]) {
    if let Some(rule) = rules.iter().find(|rule| rule.is_enabled && rule.scope.counts_clients()) {
        let cause =
            format!("this {} counts by client, and nothing says where the client's address comes from", rule.what);
        section.warn(rule.span, cause, SAY_WHERE);
    }
}

/// Notes what asks for a principal where it is several claims.
pub fn refuse_principals(section: &mut Section<'_, '_>, rules: &[Rule<'_>]) {
    for Rule { scope, span, .. } in rules {
        rules::refuse_principal(section, &scope.when, *span);
        let is_normal = |part: &KeyPart| part.normalize && part.first_of.contains(&Source::Field(Field::Principal));
        if scope.key.iter().any(is_normal) {
            let cause = "the principal is several claims, which are not one name to be normalised".to_owned();
            let hint = "count by each: `[claim.iss, claim.sub]`, with `normalize: identity` at the one that is a name";
            section.reject::<()>(*span, cause, hint.into());
        }
    }
}
