//! What is wrong with a file, collected while reading goes on.

use super::node::Span;

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
