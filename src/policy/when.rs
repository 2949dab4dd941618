//! When a rule applies: matchers that must all be true of a request.

use super::facts::{Facts, Field, Presence, Value};
use super::pattern::Pattern;
use crate::network::{IpNet, contains};

/// Matchers that must all be true; without any, it is always so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct When(pub Vec<Matcher>);

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Matcher {
    /// What the request presents as its token is one of these.
    Token(Vec<Presence>),
    /// The token carries a rate capability, or none.
    HasRate(bool),
    /// The client lies in one of these networks.
    Client(Vec<IpNet>),
    /// Some value of the field is one of these.
    Is(Field, Vec<Wanted>),
    /// The field is absent, or there.
    Absent(Field, bool),
    /// Some matcher in there is false.
    Not(When),
}

/// What a value is compared with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// A text, which may hold wildcards.
    Text(Pattern),
    /// A number of a claim.
    Number(Number),
    /// A boolean of a claim.
    Bool(bool),
}

/// A number that is none of the doubles that differ from themselves.
#[derive(Clone, Copy, Debug)]
pub struct Number(f64);

impl When {
    /// Whether it applies to the request.
    pub fn matches(&self, facts: &Facts<'_>) -> bool {
        self.0.iter().all(|matcher| matcher.matches(facts))
    }

    /// Whether it, or one within it, asks for something that `asks` recognises.
    pub fn asks(&self, asks: &dyn Fn(&Matcher) -> bool) -> bool {
        self.0.iter().any(|matcher| match matcher {
            Matcher::Not(when) => when.asks(asks),
            matcher => asks(matcher),
        })
    }
}

impl Matcher {
    fn matches(&self, facts: &Facts<'_>) -> bool {
        match self {
            Self::Token(wanted) => wanted.contains(&facts.token),
            Self::HasRate(wanted) => *wanted == facts.has_rate,
            Self::Client(networks) => facts.client.is_some_and(|client| contains(networks, client)),
            Self::Is(field, wanted) => facts.any(field, |value| wanted.iter().any(|wanted| wanted.is(value))),
            Self::Absent(field, wanted) => *wanted != facts.has(field),
            Self::Not(when) => !when.matches(facts),
        }
    }

    /// The field that the matcher asks for, if it asks for one by its name.
    pub fn field(&self) -> Option<&Field> {
        match self {
            Self::Is(field, _) | Self::Absent(field, _) => Some(field),
            _ => None,
        }
    }
}

impl Wanted {
    fn is(&self, value: Value<'_>) -> bool {
        match (self, value) {
            (Self::Text(pattern), Value::Text(text)) => pattern.matches(text),
            (Self::Number(wanted), Value::Number(number)) => wanted.0 == number,
            (Self::Bool(wanted), Value::Bool(bool)) => *wanted == bool,
            _ => false,
        }
    }
}

impl Number {
    /// Takes `number`, unless it is not a number.
    pub fn new(number: f64) -> Option<Self> {
        // Zero has two signs and one meaning.
        (!number.is_nan()).then_some(Self(number + 0.0))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Number {}

impl std::hash::Hash for Number {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}
