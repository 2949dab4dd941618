//! Finds rules that can never apply: an operator who wrote one believes in something that does not hold.

use super::node::Span;
use super::section::Section;
use crate::policy::facts::{Field, Presence};
use crate::policy::pattern::Pattern;
use crate::policy::when::{Matcher, Wanted, When};
use std::collections::HashMap;

/// Why no request can meet all matchers of `when`, if that is so.
pub fn contradiction(when: &When) -> Option<String> {
    let none = "no request can meet this: ";
    let without_token = when.0.iter().any(|matcher| match matcher {
        Matcher::Token(tokens) => !tokens.contains(&Presence::Present),
        _ => false,
    });
    if let Some(asks) = when.0.iter().find_map(needs_token).filter(|_| without_token) {
        return Some(format!("{none}only a verified token has {asks}"));
    }
    let all = spelled(when);
    let excluded = when.0.iter().any(|matcher| match matcher {
        Matcher::Not(not) => spelled(not).iter().all(|matcher| all.contains(matcher)),
        Matcher::Is(field, _) => when.0.contains(&Matcher::Absent(field.clone(), true)),
        _ => false,
    });
    excluded.then(|| format!("{none}it asks for something and for its opposite"))
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

/// The matchers, each spelled so that two that mean the same are the same, whatever the order of their lists.
fn spelled(when: &When) -> Vec<String> {
    let sorted = |mut texts: Vec<String>| {
        texts.sort();
        texts.join(" ")
    };
    let spell = |matcher: &Matcher| match matcher {
        Matcher::Is(field, wanted) => {
            format!("{field:?} {}", sorted(wanted.iter().map(|of| format!("{of:?}")).collect()))
        }
        Matcher::Token(tokens) => format!("token {}", sorted(tokens.iter().map(|of| format!("{of:?}")).collect())),
        Matcher::Client(networks) => format!("client {}", sorted(networks.iter().map(ToString::to_string).collect())),
        Matcher::Not(not) => format!("not {}", sorted(spelled(not))),
        matcher => format!("{matcher:?}"),
    };
    when.0.iter().map(spell).collect()
}

/// What the rules of a list so far leave to those behind them.
#[derive(Default)]
pub struct Reach {
    /// The line of a rule that ends the list for everybody.
    all: Option<usize>,
    /// The lines of rules that end it, by all that they ask for, spelled and sorted.
    whens: HashMap<Vec<String>, usize>,
    /// The lines of rules that end it for these principals.
    principals: HashMap<Vec<u8>, usize>,
}

impl Reach {
    /// Notes a mistake if no request can reach a rule behind those before it, and takes it into account. `ends` says
    /// whether it leaves the requests that it applies to for no rule behind it.
    pub fn visit(&mut self, section: &mut Section<'_, '_>, when: &When, span: Span, ends: bool) {
        let mut all = spelled(when);
        all.sort();
        if let Some(line) = self.taken_by(when, &all) {
            let cause = "this rule can never apply: a rule before it takes every request that it is for".to_owned();
            let hint = format!("remove it, or place it before the rule in line {line}");
            section.reject::<()>(span, cause, hint);
        }
        if ends {
            self.end(when, all, span.line);
        }
    }

    fn taken_by(&self, when: &When, all: &Vec<String>) -> Option<usize> {
        let single = |matcher: &String| self.whens.get(std::slice::from_ref(matcher));
        let principals = || {
            let lines = principals(when)?.into_iter().map(|principal| self.principals.get(principal));
            lines.collect::<Option<Vec<_>>>()?.into_iter().max()
        };
        let line = self.all.as_ref().or_else(|| self.whens.get(all)).or_else(|| all.iter().find_map(single));
        line.or_else(principals).copied()
    }

    fn end(&mut self, when: &When, all: Vec<String>, line: usize) {
        if all.is_empty() {
            self.all.get_or_insert(line);
        }
        if let (1, Some(principals)) = (all.len(), principals(when)) {
            principals.into_iter().for_each(|principal| {
                self.principals.entry(principal.to_vec()).or_insert(line);
            });
        }
        self.whens.entry(all).or_insert(line);
    }
}

/// The principals that a rule is for, if it names each.
fn principals(when: &When) -> Option<Vec<&[u8]>> {
    when.0.iter().find_map(|matcher| match matcher {
        Matcher::Is(Field::Principal, wanted) => wanted.iter().map(exact).collect(),
        _ => None,
    })
}

fn exact(wanted: &Wanted) -> Option<&[u8]> {
    match wanted {
        Wanted::Text(Pattern::Exact(text)) => Some(text),
        _ => None,
    }
}

/// Whether no request can meet both, as far as fields tell that have one value and are given in full.
pub fn are_disjoint(one: &When, other: &When) -> bool {
    let single = |field: &Field| matches!(field, Field::Principal | Field::Method | Field::Host | Field::Path);
    let apart = |ours: &[Wanted], theirs: &[Wanted]| {
        ours.iter().all(|ours| exact(ours).is_some_and(|text| !theirs.iter().any(|theirs| meets(theirs, text))))
    };
    one.0.iter().any(|ours| match ours {
        Matcher::Is(field, ours) if single(field) => other.0.iter().any(|theirs| match theirs {
            Matcher::Is(same, theirs) if same == field => apart(ours, theirs) || apart(theirs, ours),
            _ => false,
        }),
        _ => false,
    })
}

fn meets(wanted: &Wanted, text: &[u8]) -> bool {
    matches!(wanted, Wanted::Text(pattern) if pattern.matches(text))
}
