//! What is found while a file is read, collected while reading goes on.

use super::node::Span;
use super::reference::Entry;

/// One mistake: where, what, and what to write instead.
#[derive(Debug)]
pub struct Mistake {
    pub span: Span,
    pub cause: String,
    pub hint: String,
}

/// The mistakes so far.
#[derive(Debug, Default)]
pub struct Mistakes(Vec<Mistake>);

/// What is found so far.
#[derive(Debug, Default)]
pub struct Notes {
    pub mistakes: Mistakes,
    /// What is no mistake and yet may not be meant.
    pub warnings: Mistakes,
    /// The entries of the section that was described last.
    pub described: Option<Vec<Entry>>,
    /// The entries of described sections that stand in several places, by their names.
    pub shared: Vec<(&'static str, Vec<Entry>)>,
}

impl Mistakes {
    /// Notes a mistake. It gives `None`, since whoever notes one has no value to go on with.
    pub fn add<T>(&mut self, mistake: Mistake) -> Option<T> {
        self.0.push(mistake);
        None
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The mistakes in the order of the text.
    pub fn sorted(mut self) -> Vec<Mistake> {
        self.0.sort_by_key(|mistake| mistake.span);
        self.0
    }
}
