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
pub struct Mistakes {
    found: Vec<Mistake>,
    /// Paths with an encoded slash, which are mistakes unless the file says that such paths can come.
    encoded_slashes: Vec<Mistake>,
}

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
        self.found.push(mistake);
        None
    }

    /// Notes a path that can only match where encoded slashes are literal.
    pub fn add_encoded_slash(&mut self, mistake: Mistake) {
        self.encoded_slashes.push(mistake);
    }

    /// No path that is matched holds an encoded slash.
    pub fn refuse_encoded_slashes(&mut self) {
        self.found.append(&mut self.encoded_slashes);
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The mistakes in the order of the text. One that several aliases repeat is one.
    pub fn sorted(mut self) -> Vec<Mistake> {
        self.found.sort_by_key(|mistake| mistake.span);
        self.found.dedup_by(|one, other| one.span == other.span && one.cause == other.cause);
        self.found
    }
}
