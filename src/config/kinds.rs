//! The kinds of values that fields of several sections have.

use super::node::Tree;
use super::suggest::suggest;
use super::value::Value;
use crate::rate::parse_duration;
use std::time::Duration;

/// What a field may hold, and how it is read.
pub enum Kind<T: 'static> {
    /// One of these words.
    Word(&'static [(&'static str, T)]),
    /// What the words say, read by the function.
    Is(&'static str, for<'d, 'm> fn(&mut Value<'d, 'm>) -> Option<T>),
}

pub const TEXT: Kind<String> = Kind::Is("a text", text);
pub const TEXT_OR_TEXTS: Kind<Vec<String>> = Kind::Is("a text or a list of texts", |value| value.list_or_one(text));
pub const SWITCH: Kind<bool> = Kind::Is("true or false", switch);
pub const DURATION: Kind<Duration> = Kind::Is("a positive duration", |value| duration(value, 1));
pub const DELAY: Kind<Duration> = Kind::Is("a duration", |value| duration(value, 0));
pub const DURATION_OR_OFF: Kind<Option<Duration>> = Kind::Is("a positive duration or `off`", |value| {
    if value.node().as_text() == Some("off") { Some(None) } else { duration(value, 1).map(Some) }
});

impl<T: Clone> Kind<T> {
    /// What the value must be, for messages.
    pub fn wanted(&self) -> String {
        match self {
            Self::Word(words) => {
                let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
                format!("one of {}", words.join(", "))
            }
            Self::Is(wanted, _) => (*wanted).into(),
        }
    }

    pub fn read(&self, value: &mut Value<'_, '_>) -> Option<T> {
        match self {
            Self::Word(words) => word(value, words),
            Self::Is(_, read) => read(value),
        }
    }
}

/// Reads one of `words`.
pub fn word<T: Clone>(value: &mut Value<'_, '_>, words: &[(&str, T)]) -> Option<T> {
    let written = value.node().as_text().unwrap_or_default();
    match words.iter().find(|(word, _)| *word == written) {
        Some((_, meaning)) => Some(meaning.clone()),
        None => match suggest(written, words.iter().map(|(word, _)| *word)) {
            Some(word) => value.wrong(&format!("did you mean `{word}`?")),
            None => value.wrong_kind(),
        },
    }
}

pub fn text(value: &mut Value<'_, '_>) -> Option<String> {
    value.text().map(Into::into)
}

fn switch(value: &mut Value<'_, '_>) -> Option<bool> {
    match value.node().tree {
        Tree::Bool(switch) => Some(switch),
        _ => value.wrong_kind(),
    }
}

/// Reads a duration of at least `least` nanoseconds.
fn duration(value: &mut Value<'_, '_>, least: u64) -> Option<Duration> {
    if let Tree::Number(number) = &value.node().tree {
        return value.wrong(&format!("a duration has a unit: write `{number}s`, `{number}m` or `{number}h`"));
    }
    let text = value.text()?;
    let nanos = parse_duration(text.as_bytes()).filter(|nanos| *nanos >= least);
    match nanos {
        Some(nanos) => Some(Duration::from_nanos(nanos)),
        None => value.wrong("write numbers with units, such as `30s`, `1h30m` or `100ms`"),
    }
}
