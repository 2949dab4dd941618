//! The kinds of values that fields of several sections have.

use super::node::Tree;
use super::suggest::suggest;
use super::value::Value;
use crate::rate::{Rate, format_duration, parse_duration};
use crate::time::nanos;
use std::time::Duration;

/// What a field may hold, and how it is read.
pub enum Kind<T: 'static> {
    /// One of these words.
    Word(&'static [(&'static str, T)]),
    /// What the words say, what JSON Schema says, and how it is read.
    Is(&'static str, &'static str, for<'d, 'm> fn(&mut Value<'d, 'm>) -> Option<T>),
}

/// JSON Schema of a text.
pub const A_TEXT: &str = r#"{"type": "string", "minLength": 1}"#;

/// JSON Schema of a text, or a list of them.
pub const A_TEXT_OR_TEXTS: &str = r#"{"oneOf": [
    {"type": "string", "minLength": 1},
    {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}
]}"#;

pub const TEXT: Kind<String> = Kind::Is("a text", A_TEXT, text);
pub const TEXT_OR_TEXTS: Kind<Vec<String>> =
    Kind::Is("a text or a list of texts", A_TEXT_OR_TEXTS, |value| value.list_or_one(text));
pub const SWITCH: Kind<bool> = Kind::Is("true or false", r#"{"type": "boolean"}"#, switch);
pub const TRUE: Kind<()> = Kind::Is("true", r#"{"const": true}"#, only_true);
pub const DURATION: Kind<Duration> = Kind::Is("a positive duration", A_TEXT, |value| duration(value, 1));
pub const DELAY: Kind<Duration> = Kind::Is("a duration", A_TEXT, |value| duration(value, 0));
pub const DURATION_OR_OFF: Kind<Option<Duration>> = Kind::Is("a positive duration or `off`", A_TEXT, |value| {
    if value.node().as_text() == Some("off") { Some(None) } else { duration(value, 1).map(Some) }
});
pub const RATE: Kind<Rate> = Kind::Is("a rate", A_TEXT, rate);
pub const RATE_OR_OFF: Kind<Option<Rate>> = Kind::Is("a rate or `off`", A_TEXT, |value| {
    if value.node().as_text() == Some("off") { Some(None) } else { rate(value).map(Some) }
});
pub const RATES: Kind<Vec<Rate>> =
    Kind::Is("a rate or a list of rates", A_TEXT_OR_TEXTS, |value| value.list_or_one(rate));
pub const UNITS: Kind<u64> = Kind::Is("a whole number", r#"{"type": "integer", "minimum": 0}"#, units);

impl<T> Kind<T> {
    /// What the value must be, for messages.
    pub fn wanted(&self) -> String {
        match self {
            Self::Word(words) => {
                let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
                if let [word] = &words[..] { format!("`{word}`") } else { format!("one of {}", words.join(", ")) }
            }
            Self::Is(wanted, ..) => (*wanted).into(),
        }
    }

    /// JSON Schema of the value, as JSON.
    pub fn schema(&self) -> String {
        match self {
            Self::Word(words) => {
                let words: Vec<_> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
                format!("{{\"enum\": [{}]}}", words.join(", "))
            }
            Self::Is(_, schema, _) => (*schema).into(),
        }
    }
}

impl<T: Clone> Kind<T> {
    pub fn read(&self, value: &mut Value<'_, '_>) -> Option<T> {
        match self {
            Self::Word(words) => word(value, words),
            Self::Is(.., read) => read(value),
        }
    }

    /// What `text` means, if it is one of the words.
    pub fn word(&self, text: &str) -> Option<T> {
        match self {
            Self::Word(words) => words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| meaning.clone()),
            Self::Is(..) => None,
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

fn only_true(value: &mut Value<'_, '_>) -> Option<()> {
    match value.node().tree {
        Tree::Bool(true) => Some(()),
        Tree::Bool(false) => value.wrong("write `true`, or remove the line"),
        _ => value.wrong_kind(),
    }
}

/// Reads a rate that the deployment sets, which may have any window.
fn rate(value: &mut Value<'_, '_>) -> Option<Rate> {
    let text = value.text()?;
    let hint = "write `<count>/<window>`: a positive whole number and a duration, such as `50/1m` or `10000/24h`";
    text.parse().ok().or_else(|| value.wrong(hint))
}

fn units(value: &mut Value<'_, '_>) -> Option<u64> {
    match &value.node().tree {
        Tree::Number(number) => {
            number.parse().ok().or_else(|| match number.bytes().all(|byte| byte.is_ascii_digit()) {
                true => value.reject(&format!("`{}` is too large", value.path()), value.advice()),
                false => value.wrong_kind(),
            })
        }
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

/// A duration as the file writes it.
pub fn duration_text(duration: Duration) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail; what was read from a duration text has no more nanoseconds.
    let _ = format_duration(&mut text, nanos(duration));
    text
}
