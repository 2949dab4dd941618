//! The rates a request is held to: each a valid rate or the zero rate, with its text if a token wrote it.

use crate::rate::Rate;
use smallvec::SmallVec;
use std::fmt;

/// A rate that a request is held to: a valid rate, or the zero rate, which allows nothing.
///
/// A rate that a token carries keeps its text and reads back as it was written. A malformed one is the zero rate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HeldRate<'t> {
    rate: Option<Rate>,
    text: Option<&'t [u8]>,
    is_of_token: bool,
}

impl<'t> HeldRate<'t> {
    /// The zero rate. It refuses every request, and waiting never helps.
    pub const ZERO: Self = Self { rate: None, text: None, is_of_token: false };

    /// Reads a rate as a token writes it; a text that is no rate is the zero rate.
    pub fn parse(text: &'t [u8]) -> Self {
        Self { rate: Rate::parse(text).ok(), text: Some(text), is_of_token: true }
    }

    /// The same with other numbers. Its text is lost.
    pub(crate) fn rescaled(self, rate: Rate) -> Self {
        Self { rate: Some(rate), text: None, ..self }
    }

    /// Whether a token carries it.
    pub(crate) fn is_of_token(self) -> bool {
        self.is_of_token
    }

    /// The numbers, or `None` for the zero rate.
    pub fn rate(self) -> Option<Rate> {
        self.rate
    }

    /// Whether this is the zero rate.
    pub fn is_zero(self) -> bool {
        self.rate.is_none()
    }

    /// The text as the token wrote it, or `None` for a rate that was built in code.
    pub fn text(self) -> Option<&'t [u8]> {
        self.text
    }
}

impl From<Rate> for HeldRate<'_> {
    fn from(rate: Rate) -> Self {
        Self { rate: Some(rate), text: None, is_of_token: false }
    }
}

/// Writes the text as the token wrote it, bytes that are not UTF-8 replaced, or else the rate's numbers.
/// The zero rate without a text is the empty string.
impl fmt::Display for HeldRate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.text, self.rate) {
            (Some(text), _) => f.write_str(&String::from_utf8_lossy(text)),
            (None, Some(rate)) => rate.fmt(f),
            (None, None) => Ok(()),
        }
    }
}

impl fmt::Debug for HeldRate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HeldRate({:?})", self.to_string())
    }
}

/// A list of rates, which a [`Resolver`](crate::Resolver) edits in place. Up to eight stay off the heap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rates<'t>(SmallVec<[HeldRate<'t>; 8]>);

impl<'t> Rates<'t> {
    /// Appends a rate.
    pub fn push(&mut self, rate: impl Into<HeldRate<'t>>) {
        self.0.push(rate.into());
    }

    /// Removes every rate. A caller that a resolver leaves without a rate is unrestricted.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Keeps the rates for which `keep` says so.
    pub fn retain(&mut self, mut keep: impl FnMut(HeldRate<'t>) -> bool) {
        self.0.retain(|rate| keep(*rate));
    }

    /// The rates, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, HeldRate<'t>> {
        self.0.iter()
    }

    /// The rates, in order, to be changed.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, HeldRate<'t>> {
        self.0.iter_mut()
    }

    /// The rates, in order.
    pub fn as_slice(&self) -> &[HeldRate<'t>] {
        &self.0
    }

    /// The number of rates.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no rate.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts zero rates first, then shorter windows, then lower counts.
    pub(crate) fn sort(&mut self) {
        self.0.sort_by_key(|held| held.rate());
    }
}

impl<'r, 't> IntoIterator for &'r Rates<'t> {
    type Item = &'r HeldRate<'t>;
    type IntoIter = std::slice::Iter<'r, HeldRate<'t>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'t, T: Into<HeldRate<'t>>> Extend<T> for Rates<'t> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, rates: I) {
        self.0.extend(rates.into_iter().map(Into::into));
    }
}

impl<'t, T: Into<HeldRate<'t>>> FromIterator<T> for Rates<'t> {
    fn from_iter<I: IntoIterator<Item = T>>(rates: I) -> Self {
        Self(rates.into_iter().map(Into::into).collect())
    }
}
