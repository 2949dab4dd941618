//! Finds rules that can never apply: an operator who wrote one believes in something that does not hold.

use super::node::Span;
use super::section::Section;
use super::sense::{may_meet, spelled};
use crate::policy::facts::{Field, Presence};
use crate::policy::pattern::Pattern;
use crate::policy::when::{Matcher, Wanted, When};
use std::collections::HashMap;

/// What the rules of a list so far leave to those behind them.
pub struct Reach {
    /// What messages call an element of the list.
    name: &'static str,
    /// Whether requests without a token get here.
    without_token: bool,
    /// The line of a rule that ends the list for everybody.
    all: Option<usize>,
    /// The lines of rules that end it, by all that they ask for, spelled and sorted.
    whens: HashMap<Vec<String>, usize>,
    /// What rules end it for that ask for one field only.
    fields: HashMap<Field, Taken>,
}

/// The texts of a field that are taken, and the lines of the rules that take them.
#[derive(Default)]
struct Taken {
    exact: HashMap<Vec<u8>, usize>,
    /// Texts with wildcards, by what stands before the first one.
    wild: HashMap<Vec<u8>, Vec<(Pattern, usize)>>,
}

impl Reach {
    /// A list of which nothing is read; its elements are called `name`.
    pub fn new(name: &'static str, without_token: bool) -> Self {
        Self { name, without_token, all: None, whens: HashMap::new(), fields: HashMap::new() }
    }

    /// Notes a mistake if no request can reach a rule behind those before it, and takes it into account. `ends` says
    /// whether it leaves the requests that it applies to for no rule behind it.
    pub fn visit(&mut self, section: &mut Section<'_, '_>, when: &When, span: Span, ends: bool) {
        let never = format!("this {} can never apply", self.name);
        let comes = may_meet(when, Presence::Present) || self.without_token && may_meet(when, Presence::Missing);
        let all = spelled(when);
        if !comes {
            let cause = format!("{never}: such a request is refused for its token");
            let hint = "a failed token is always a 401; a missing one is, unless `token.missing` lets it through";
            section.reject::<()>(span, cause, hint.into());
        } else if let Some(line) = self.taken_by(when, &all) {
            let cause = format!("{never}: one before it takes every request that it is for");
            let hint = format!("remove it, or place it before the {} in line {line}", self.name);
            section.reject::<()>(span, cause, hint);
        }
        if ends {
            self.end(when, all, span.line);
        }
    }

    fn taken_by(&self, when: &When, all: &Vec<String>) -> Option<usize> {
        let single = |matcher: &String| self.whens.get(std::slice::from_ref(matcher));
        let line = self.all.as_ref().or_else(|| self.whens.get(all)).or_else(|| all.iter().find_map(single));
        line.copied().or_else(|| when.0.iter().find_map(|matcher| self.texts_taken(matcher)))
    }

    /// The line of the last of the rules that take every text that `matcher` wants.
    fn texts_taken(&self, matcher: &Matcher) -> Option<usize> {
        let Matcher::Is(field, wanted) = matcher else { return None };
        let taken = self.fields.get(field)?;
        let lines = wanted.iter().map(|wanted| taken.line(wanted)).collect::<Option<Vec<_>>>()?;
        lines.into_iter().max()
    }

    fn end(&mut self, when: &When, all: Vec<String>, line: usize) {
        if all.is_empty() {
            self.all.get_or_insert(line);
        }
        if let [Matcher::Is(field, wanted)] = &when.0[..] {
            let taken = self.fields.entry(field.clone()).or_default();
            wanted.iter().for_each(|wanted| taken.take(wanted, line));
        }
        self.whens.entry(all).or_insert(line);
    }
}

impl Taken {
    fn take(&mut self, wanted: &Wanted, line: usize) {
        let Wanted::Text(pattern) = wanted else { return };
        match pattern.as_exact() {
            Some(text) => drop(self.exact.entry(text.to_vec()).or_insert(line)),
            None => self.wild.entry(pattern.literal_start()).or_default().push((pattern.clone(), line)),
        }
    }

    fn line(&self, wanted: &Wanted) -> Option<usize> {
        let Wanted::Text(pattern) = wanted else { return None };
        match pattern.as_exact() {
            Some(text) => self.exact.get(text).copied().or_else(|| self.wild_line(text)),
            None => {
                self.wild.get(&pattern.literal_start())?.iter().find(|(of, _)| of == pattern).map(|(_, line)| *line)
            }
        }
    }

    /// The line of a rule whose wildcards match the text.
    fn wild_line(&self, text: &[u8]) -> Option<usize> {
        let starts = (0..=text.len()).filter_map(|end| self.wild.get(&text[..end]));
        starts.flatten().find(|(wild, _)| wild.matches(text)).map(|(_, line)| *line)
    }
}
