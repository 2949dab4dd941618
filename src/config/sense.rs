//! What matchers ask for, as far as that can be told without a request.

use crate::policy::facts::{Field, Presence};
use crate::policy::when::{Matcher, Wanted, When};

/// Why no request can meet all matchers of `when`, if that is so.
pub fn contradiction(when: &When) -> Option<String> {
    let none = "no request can meet this: ";
    let presences = [Presence::Present, Presence::Missing, Presence::Failed];
    if !presences.iter().any(|token| may_meet(when, *token)) {
        let asks = when.0.iter().find_map(needs_token);
        return Some(match asks {
            Some(asks) => format!("{none}only a verified token has {asks}"),
            None => format!("{none}it asks for something and for its opposite"),
        });
    }
    let excluded = when.0.iter().any(|matcher| match matcher {
        Matcher::Not(not) => {
            !not.0.is_empty() && not.0.iter().all(|inner| when.0.iter().any(|outer| implies(outer, inner)))
        }
        Matcher::Is(field, _) => when.0.contains(&Matcher::Absent(field.clone(), true)),
        _ => false,
    });
    excluded.then(|| format!("{none}it asks for something and for its opposite"))
}

/// Whether every request that meets one matcher meets the other, as far as texts that are given in full tell.
fn implies(one: &Matcher, other: &Matcher) -> bool {
    match (one, other) {
        (Matcher::Is(field, _), Matcher::Absent(same, false)) if field == same => true,
        (Matcher::Is(field, ours), Matcher::Is(same, theirs)) if field == same => {
            ours.iter().all(|ours| theirs.contains(ours) || exact(ours).is_some_and(|text| any_is(theirs, text)))
        }
        _ => spell(one) == spell(other),
    }
}

/// What a matcher asks for that only a verified token has.
pub fn needs_token(matcher: &Matcher) -> Option<&'static str> {
    match matcher {
        Matcher::Is(Field::Principal, _) => Some("a principal"),
        Matcher::Is(Field::Claim(_), _) | Matcher::Absent(Field::Claim(_), false) => Some("claims"),
        Matcher::HasRate(true) => Some("a rate"),
        _ => None,
    }
}

/// Whether some request that presents `token` may meet `when`.
pub fn may_meet(when: &When, token: Presence) -> bool {
    meets(when, token) != Some(false)
}

/// Whether some request that identity does not stop may meet `when`. `without_token`: requests without a token get past.
pub fn may_pass(when: &When, without_token: bool) -> bool {
    may_meet(when, Presence::Present) || without_token && may_meet(when, Presence::Missing)
}

/// Whether a request that presents `token` meets `when`, as far as the token alone tells.
fn meets(when: &When, token: Presence) -> Option<bool> {
    let told: Vec<_> = when.0.iter().map(|matcher| is_true(matcher, token)).collect();
    if told.contains(&Some(false)) { Some(false) } else { told.into_iter().collect::<Option<Vec<_>>>().map(|_| true) }
}

fn is_true(matcher: &Matcher, token: Presence) -> Option<bool> {
    match matcher {
        Matcher::Token(tokens) => Some(tokens.contains(&token)),
        Matcher::Not(when) => meets(when, token).map(|meets| !meets),
        _ if token == Presence::Present => None,
        Matcher::HasRate(wanted) => Some(!wanted),
        Matcher::Is(Field::Principal | Field::Claim(_), _) => Some(false),
        Matcher::Absent(Field::Claim(_), absent) => Some(*absent),
        _ => None,
    }
}

/// The matchers, each spelled so that two that mean the same are the same, whatever the order of their lists.
pub fn spelled(when: &When) -> Vec<String> {
    let mut all: Vec<_> = when.0.iter().map(spell).collect();
    all.sort();
    all
}

fn spell(matcher: &Matcher) -> String {
    let sorted = |mut texts: Vec<String>| {
        texts.sort();
        texts.join(" ")
    };
    match matcher {
        Matcher::Is(field, wanted) => {
            format!("{field:?} {}", sorted(wanted.iter().map(|of| format!("{of:?}")).collect()))
        }
        Matcher::Token(tokens) => format!("token {}", sorted(tokens.iter().map(|of| format!("{of:?}")).collect())),
        Matcher::Client(networks) => format!("client {}", sorted(networks.iter().map(ToString::to_string).collect())),
        Matcher::Not(not) => format!("not {}", spelled(not).join(" ")),
        matcher => format!("{matcher:?}"),
    }
}

/// The text that is wanted, if it is given in full.
pub fn exact(wanted: &Wanted) -> Option<&[u8]> {
    match wanted {
        Wanted::Text(pattern) => pattern.as_exact(),
        Wanted::Number(_) | Wanted::Bool(_) => None,
    }
}

/// Whether no request can meet both, as far as fields tell that have one value and are given in full, and what one asks
/// for and the other excludes.
pub fn are_disjoint(one: &When, other: &When) -> bool {
    let all = [spelled(one), spelled(other)].concat();
    let excluded = |matcher: &Matcher| match matcher {
        Matcher::Not(not) => spelled(not).iter().all(|inner| all.contains(inner)),
        _ => false,
    };
    let are_apart = |ours: &Matcher| other.0.iter().any(|theirs| fields_are_apart(ours, theirs));
    one.0.iter().chain(&other.0).any(excluded) || one.0.iter().any(are_apart)
}

fn fields_are_apart(one: &Matcher, other: &Matcher) -> bool {
    let single = |field: &Field| !matches!(field, Field::Header(_) | Field::Claim(_));
    let apart = |ours: &[Wanted], theirs: &[Wanted]| {
        ours.iter().all(|ours| exact(ours).is_some_and(|text| !any_is(theirs, text)))
    };
    match (one, other) {
        (Matcher::Is(field, ours), Matcher::Is(same, theirs)) if field == same && single(field) => {
            apart(ours, theirs) || apart(theirs, ours)
        }
        _ => false,
    }
}

fn any_is(wanted: &[Wanted], text: &[u8]) -> bool {
    wanted.iter().any(|wanted| matches!(wanted, Wanted::Text(pattern) if pattern.matches(text)))
}
