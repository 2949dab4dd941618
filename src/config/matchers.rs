//! Reads `when`: matchers, each in the form in which requests are compared with it.

use super::kinds::{Kind, SWITCH};
use super::node::{Node, Tree, quoted};
use super::patterns::{CLAIM, HOSTS, METHODS, NETWORKS, PATHS, PRINCIPALS, TOKENS, texts};
use super::response::is_header_name;
use super::section::Section;
use super::sense::contradiction;
use super::value::Value;
use crate::policy::facts::Field;
use crate::policy::when::{Matcher, Number, Wanted, When};
use crate::token::ClaimPath;

/// What a header, a context entry or a claim is to be.
#[derive(Clone, Debug)]
pub enum Test {
    Is(Vec<Wanted>),
    Absent(bool),
}

const TEXTS_OR_ABSENT: Kind<Test> = Kind::Is(
    "a text, a list of texts or `{ absent: true }`",
    r##"{"oneOf": [{"$ref": "#/$defs/texts"}, {"$ref": "#/$defs/absent"}]}"##,
    |value| absent(value).unwrap_or_else(|| texts(value).map(Test::Is)),
);

const VALUES_OR_ABSENT: Kind<Test> = Kind::Is(
    "a text, a number, a boolean, a list of these or `{ absent: true }`",
    r##"{"oneOf": [{"$ref": "#/$defs/values"}, {"$ref": "#/$defs/absent"}]}"##,
    |value| absent(value).unwrap_or_else(|| values(value).map(Test::Is)),
);

/// Matchers that must all be true.
pub fn when(when: &mut Section<'_, '_>) -> Option<When> {
    let mut found = plain(when);
    found.extend(named(when));
    found.push(claim_by_list(when));
    let not = when.shared("not", "matchers", "true where one of these is false", self::when);
    found.push(not.map(|not| not.map(Matcher::Not)));
    let matchers: Option<Vec<_>> = found.into_iter().collect();
    let read = When(matchers?.into_iter().flatten().collect());
    if !when.is_clean() {
        return None;
    }
    if let Some(cause) = contradiction(&read) {
        return when.reject(when.span(), cause, "remove one of the two, or make two rules of it".into());
    }
    match repeated(&read) {
        Some(name) => when.twice(&name),
        None => Some(read),
    }
}

/// The field, as the file names it, that two matchers ask for: a header in another case, a claim by dots and by a list.
fn repeated(when: &When) -> Option<String> {
    let fields: Vec<_> = when.0.iter().filter_map(Matcher::field).collect();
    let twice = (1..fields.len()).find(|&at| fields[..at].contains(&fields[at]))?;
    match fields[twice] {
        Field::Header(name) => Some(format!("header.{name}")),
        Field::Claim(path) => Some(format!("claim.{path}")),
        _ => None,
    }
}

/// A matcher, if there is one; `None` if it cannot be read.
type Found = Option<Option<Matcher>>;

fn plain(when: &mut Section<'_, '_>) -> Vec<Found> {
    let is = |field: Field, wanted: Option<Option<Vec<Wanted>>>| {
        wanted.map(|wanted| wanted.map(|wanted| Matcher::Is(field, wanted)))
    };
    let principal = when.optional("principal", "[alice, \"batch-*\"]", &PRINCIPALS, "the caller");
    let token = when.optional("token", "missing", &TOKENS, "what the request presents as its token");
    let has_rate = when.optional("has_rate", "true", &SWITCH, "whether the token carries a rate, be it malformed");
    let method = when.optional("method", "[POST, PUT]", &METHODS, "the method; GET covers HEAD");
    let host = when.optional("host", "\"*.example.com\"", &HOSTS, "the host, without its port; case is ignored");
    let path = when.optional("path", "/v1/exports/**", &PATHS, "the canonical path");
    let client = when.optional("client", "[10.0.0.0/8, \"2001:db8::/32\"]", &NETWORKS, "the client's address");
    vec![
        is(Field::Principal, principal),
        token.map(|token| token.map(Matcher::Token)),
        has_rate.map(|has_rate| has_rate.map(Matcher::HasRate)),
        is(Field::Method, method),
        is(Field::Host, host),
        is(Field::Path, path),
        client.map(|client| client.map(Matcher::Client)),
    ]
}

fn named(when: &mut Section<'_, '_>) -> Vec<Found> {
    let headers = when.named(
        "header.",
        ("header.x-tenant", "acme"),
        &TEXTS_OR_ABSENT,
        "a header that ext_authz sends; case counts",
    );
    let context = when.named(
        "context.",
        ("context.tier", "gold"),
        &TEXTS_OR_ABSENT,
        "an entry of the route's context_extensions",
    );
    let claims = when.named(
        "claim.",
        ("claim.plan", "pro"),
        &VALUES_OR_ABSENT,
        "a claim, by the dotted path to it; of a list, one element suffices",
    );
    let mut found = Vec::new();
    for header in headers {
        found.push(header.and_then(|(name, span, test)| {
            if is_header_name(name) {
                return Some(Some(test.of(Field::Header(name.to_ascii_lowercase().into()))));
            }
            let cause = format!("{} is not the name of a header", quoted(name));
            when.reject(span, cause, "write letters, digits and hyphens, such as `header.x-tenant`".into())
        }));
    }
    for entry in context {
        found.push(entry.map(|(key, _, test)| Some(test.of(Field::Context(key.into())))));
    }
    for claim in claims {
        found.push(claim.and_then(|(path, span, test)| {
            if path.split('.').any(str::is_empty) {
                let cause = format!("the claim path {} has an empty name in it", quoted(path));
                let hint =
                    "write names with one dot between them; for names that hold dots, `claim: [\"a.b\"]` and `is:`";
                return when.reject(span, cause, hint.into());
            }
            Some(Some(test.of(Field::Claim(ClaimPath(path.split('.').map(Into::into).collect())))))
        }));
    }
    found
}

/// `claim` and `is`, for claims whose names hold dots.
fn claim_by_list(when: &mut Section<'_, '_>) -> Found {
    let claim =
        when.optional("claim", "[\"https://idp/plan\"]", &CLAIM, "a claim, by the list of names that lead to it");
    let is = when.optional("is", "pro", &VALUES_OR_ABSENT, "what that claim is");
    match (claim?, is?) {
        (Some(claim), Some(test)) => Some(Some(test.of(Field::Claim(claim)))),
        (None, None) => Some(None),
        (Some(_), None) => {
            when.clash(&["claim"], "`claim` needs `is`".into(), "add `is:` with what the claim is to be")
        }
        (None, Some(_)) => {
            when.clash(&["is"], "`is` needs `claim`".into(), "add `claim:` with the names that lead to it")
        }
    }
}

impl Test {
    fn of(self, field: Field) -> Matcher {
        match self {
            Self::Is(wanted) => Matcher::Is(field, wanted),
            Self::Absent(absent) => Matcher::Absent(field, absent),
        }
    }
}

/// Reads `{ absent: true }`, if the value is a map.
fn absent(value: &mut Value<'_, '_>) -> Option<Option<Test>> {
    let Tree::Map(entries) = &value.node().tree else { return None };
    match &entries[..] {
        [(key, Node { tree: Tree::Bool(absent), .. })] if key.as_text() == Some("absent") => {
            Some(Some(Test::Absent(*absent)))
        }
        _ => Some(value.wrong("write `{ absent: true }`, or what it is to be")),
    }
}

/// Reads texts with wildcards, numbers and booleans.
fn values(value: &mut Value<'_, '_>) -> Option<Vec<Wanted>> {
    value.list_or_one(|value| match &value.node().tree {
        Tree::Bool(bool) => Some(Wanted::Bool(*bool)),
        Tree::Number(number) => match number.parse().ok().filter(|number: &f64| number.abs() < 9_007_199_254_740_992.0)
        {
            Some(number) => Number::new(number).map(Wanted::Number),
            None => value.wrong("numbers of claims are exact up to 2^53-1 only: use a text claim for a larger one"),
        },
        _ => super::patterns::text_pattern(value),
    })
}
