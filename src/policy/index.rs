//! Finds the rules that may apply to a request, so that a Check does not pay for rules that cannot.
//!
//! A rule that wants a field to be one of some texts can only match a request with such a text in that field. It is
//! filed there, under the text or, if the text has wildcards, under what stands before the first one. A rule that wants
//! several fields is filed under the one that fewest others share; one that wants none is always looked at.

use super::facts::{Facts, Field, Value};
use super::pattern::Pattern;
use super::when::{Matcher, Wanted, When};
use smallvec::SmallVec;
use std::collections::HashMap;

/// The numbers of rules, by what a request must have for them to apply.
#[derive(Debug, Default)]
pub struct Index {
    always: Vec<u32>,
    files: Vec<File>,
    /// How many rules there are.
    count: usize,
}

/// The rules that are filed under the texts of one field.
#[derive(Debug)]
struct File {
    field: Field,
    exact: HashMap<Box<[u8]>, Vec<u32>>,
    starts: HashMap<Box<[u8]>, Vec<u32>>,
    /// How long the starts are; few lengths, as a rule.
    lengths: Vec<usize>,
}

/// Rules that may apply, in order.
pub type Candidates = SmallVec<[u32; 16]>;

/// Where a text is filed: a field, whether the text is a whole one, and the text.
type Place = (Field, bool, Vec<u8>);

impl Index {
    /// Files rules, which are numbered in this order.
    pub fn new<'w>(rules: impl Iterator<Item = &'w When> + Clone) -> Self {
        let mut shared: HashMap<Place, usize> = HashMap::new();
        for place in rules.clone().flat_map(|when| choices(when).flatten().collect::<Vec<_>>()) {
            *shared.entry(place).or_default() += 1;
        }
        let mut index = Self::default();
        for (number, when) in (0..).zip(rules) {
            let crowd = |places: &Vec<Place>| places.iter().map(|place| shared[place]).max();
            match choices(when).min_by_key(crowd) {
                Some(places) => places.into_iter().for_each(|place| index.file(place, number)),
                None => index.always.push(number),
            }
            index.count += 1;
        }
        index
    }

    fn file(&mut self, (field, is_exact, text): Place, number: u32) {
        let at = self.files.iter().position(|file| file.field == field).unwrap_or_else(|| {
            self.files.push(File { field, exact: HashMap::new(), starts: HashMap::new(), lengths: Vec::new() });
            self.files.len() - 1
        });
        let file = &mut self.files[at];
        if !is_exact && !file.lengths.contains(&text.len()) {
            file.lengths.push(text.len());
        }
        let texts = if is_exact { &mut file.exact } else { &mut file.starts };
        texts.entry(text.into()).or_default().push(number);
    }

    /// The rules that may apply to a request. Those that are left out do not.
    pub fn candidates(&self, facts: &Facts<'_>) -> Candidates {
        let mut found = Candidates::from_slice(&self.always);
        for file in &self.files {
            facts.any(&file.field, |value| {
                if let Value::Text(text) = value {
                    file.find(text, &mut found);
                }
                // Many values that are alike find the same rules again and again.
                if found.len() > 2 * self.count {
                    order(&mut found);
                }
                false
            });
        }
        if !self.files.is_empty() {
            order(&mut found);
        }
        found
    }
}

fn order(found: &mut Candidates) {
    found.sort_unstable();
    found.dedup();
}

impl File {
    fn find(&self, text: &[u8], found: &mut Candidates) {
        let starts = self.lengths.iter().filter_map(|&length| self.starts.get(text.get(..length)?));
        for numbers in self.exact.get(text).into_iter().chain(starts) {
            found.extend_from_slice(numbers);
        }
    }
}

/// The ways to file a rule: for each matcher that allows it, the places that together hold every text it wants.
fn choices(when: &When) -> impl Iterator<Item = Vec<Place>> {
    when.0.iter().filter_map(|matcher| match matcher {
        Matcher::Is(field, wanted) => wanted.iter().map(|wanted| place(field, wanted)).collect(),
        _ => None,
    })
}

fn place(field: &Field, wanted: &Wanted) -> Option<Place> {
    let Wanted::Text(pattern) = wanted else { return None };
    let text = pattern.literal_start();
    let is_exact = matches!(pattern, Pattern::Exact(_));
    // A pattern that begins with a wildcard could be anywhere.
    (is_exact || !text.is_empty()).then(|| (field.clone(), is_exact, text))
}
