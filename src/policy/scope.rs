//! Which requests a limit or a lockout is for, and what it counts them by.

use super::Needs;
use super::facts::{Facts, Field, Value};
use super::when::When;
use crate::body;
use crate::decision::{Unavailable, Verdict};
use crate::identity;
use crate::network::{self, IpNet};
use crate::resolver::{Denial, DenialStatus};
use crate::store::key::{Key, KeySpace};
use smallvec::SmallVec;
use std::borrow::Cow;

/// The longest part of a key, in bytes, after it has been normalised.
const LONGEST: usize = 255;

/// Which requests count, and by what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The requests.
    pub when: When,
    /// What they are counted by; without parts, all are counted together.
    pub key: Vec<KeyPart>,
}

/// A part of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPart {
    /// Where it is read; the first that the request has counts.
    pub first_of: Vec<Source>,
    /// Whether it is the name of an account, of which there are many spellings.
    pub normalize: bool,
    /// What holds where the request has none.
    pub on_missing: OnMissing,
}

/// Where a part of a key is read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Source {
    Field(Field),
    /// The address of the client.
    ClientAddress,
    /// Its network: the address itself for IPv4, a prefix for IPv6.
    ClientNetwork,
    BodyJson(Vec<String>),
    BodyForm(String),
}

/// What holds where a request lacks a part of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnMissing {
    /// All requests without it share an allowance.
    Shared,
    /// The request is refused with 400.
    Refuse,
    /// The limit does not apply.
    Skip,
}

/// Why a request has no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// The address of its client cannot be told.
    Client,
    /// It lacks a part, and the limit says to refuse it.
    Part,
    /// A part is too long.
    TooLong,
}

/// What a request is counted by.
pub(crate) struct Keys {
    pub key: Key,
    /// The wider networks of its clients, by which it shares where there is no room for its own: what a client can make
    /// up is none of it.
    pub wider: SmallVec<[[u8; 18]; 1]>,
}

impl Scope {
    /// What it asks of every request. Its key asks for the client only where no part before stands in for it.
    pub fn needs(&self) -> Needs {
        let field = |field: Field| self.sources().any(|source| *source == Source::Field(field.clone()));
        let matched = Needs::of(std::iter::once(&self.when));
        Needs { path: matched.path || field(Field::Path), host: matched.host || field(Field::Host), ..matched }
    }

    /// Whether its key may ask for the client.
    pub fn counts_clients(&self) -> bool {
        self.sources().any(Source::is_client)
    }

    /// Whether it counts by nothing but the client: then it is for preflights as well.
    pub fn is_for_preflights(&self) -> bool {
        self.sources().all(Source::is_client)
    }

    /// What makes its keys, whatever becomes of requests without one: where two are alike, keys mean the same.
    pub(crate) fn counts_by(&self) -> Vec<(&[Source], bool)> {
        self.key.iter().map(|part| (&part.first_of[..], part.normalize)).collect()
    }

    fn sources(&self) -> impl Iterator<Item = &Source> {
        self.key.iter().flat_map(|part| &part.first_of)
    }

    /// What a request is counted by; `None` if it is not for it.
    pub(crate) fn keys(&self, facts: &Facts<'_>, prefix: u8, space: &KeySpace) -> Result<Option<Keys>, Lack> {
        if !self.when.matches(facts) {
            return Ok(None);
        }
        let mut parts: SmallVec<[Found<'_>; 4]> = SmallVec::new();
        for part in &self.key {
            let Some(found) = part.read(facts, prefix)? else { return Ok(None) };
            parts.push(found);
        }
        let key = space.key_of(parts.iter().flat_map(|found| [Some(&found.source[..]), found.value.as_deref()]));
        let networks = parts.iter().filter_map(|found| match found.value {
            Some(Part::Network(network, _)) => Some(network::bytes(network::wider(network))),
            _ => None,
        });
        Ok(Some(Keys { key, wider: networks.collect() }))
    }
}

impl Lack {
    /// The verdict on a request that lacks what the rule `name` counts by.
    pub(crate) fn verdict(self, name: &str) -> Verdict<'static> {
        let why = match self {
            Self::Client => return Verdict::Unavailable(Unavailable::Client),
            Self::Part => "the request lacks a part of the key",
            Self::TooLong => "a part of the key has more than 255 bytes",
        };
        Verdict::Denied(Denial::new(why).with_rule(name).with_status(DenialStatus::BadRequest))
    }
}

/// A part of a key, as a request has it.
struct Found<'f> {
    /// The number of the source that it was read from, so that values of different sources never meet.
    source: [u8; 1],
    /// `None`: missing, and shared by all requests that lack it.
    value: Option<Part<'f>>,
}

/// The value of a part.
enum Part<'f> {
    Text(Cow<'f, [u8]>),
    Network(IpNet, [u8; 18]),
}

impl Part<'_> {
    fn network(network: IpNet) -> Self {
        Self::Network(network, network::bytes(network))
    }
}

impl std::ops::Deref for Part<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Text(text) => text,
            Self::Network(_, bytes) => bytes,
        }
    }
}

impl KeyPart {
    /// Reads the part; `None` if the limit is to be skipped.
    fn read<'f>(&self, facts: &'f Facts<'_>, prefix: u8) -> Result<Option<Found<'f>>, Lack> {
        for (source, number) in self.first_of.iter().zip(0..) {
            let Some(value) = source.read(facts, prefix) else { continue };
            let value = if self.normalize { normalized(value) } else { value };
            if value.len() > LONGEST {
                return Err(Lack::TooLong);
            }
            return Ok(Some(Found { source: [number], value: Some(value) }));
        }
        if self.first_of.iter().any(Source::is_client) {
            return Err(Lack::Client);
        }
        match self.on_missing {
            OnMissing::Shared => Ok(Some(Found { source: [u8::MAX], value: None })),
            OnMissing::Refuse => Err(Lack::Part),
            OnMissing::Skip => Ok(None),
        }
    }
}

impl Source {
    fn read<'f>(&self, facts: &'f Facts<'_>, prefix: u8) -> Option<Part<'f>> {
        match self {
            Self::Field(field) => only(facts, field).map(Part::Text),
            Self::ClientAddress => facts.client.map(|client| Part::network(client.into())),
            Self::ClientNetwork => facts.client.map(|client| Part::network(network::prefix(client, prefix))),
            Self::BodyJson(path) => body::json(facts.request, path).map(text),
            Self::BodyForm(field) => body::form(facts.request, field).map(text),
        }
    }

    fn is_client(&self) -> bool {
        matches!(self, Self::ClientAddress | Self::ClientNetwork)
    }
}

/// The value of a field that has exactly one: of several, nobody says which counts.
fn only<'f>(facts: &'f Facts<'_>, field: &Field) -> Option<Cow<'f, [u8]>> {
    /// The largest integer up to which every integer is a double of its own, 2^53 - 1.
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    let (mut found, mut count) = (None, 0);
    facts.any(field, |value| {
        count += 1;
        found = match value {
            Value::Text(text) => Some(Cow::Borrowed(text)),
            Value::Bool(bool) => Some(Cow::Borrowed(if bool { &b"true"[..] } else { b"false" })),
            Value::Number(number) if number.fract() == 0.0 && number.abs() <= LARGEST => {
                Some(Cow::Owned((number as i64).to_string().into_bytes()))
            }
            Value::Number(_) | Value::Other => None,
        };
        false
    });
    found.filter(|_| count == 1)
}

fn text(text: Cow<'_, str>) -> Part<'_> {
    Part::Text(match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    })
}

/// Bytes that are no text have one spelling, and so has a network, even if its bytes could be read as a text.
fn normalized(value: Part<'_>) -> Part<'_> {
    match value {
        Part::Text(Cow::Borrowed(text)) => match std::str::from_utf8(text).map(identity::normalize) {
            Ok(normal) => self::text(normal),
            Err(_) => value,
        },
        Part::Text(Cow::Owned(ref owned)) => match std::str::from_utf8(owned).map(identity::normalize) {
            Ok(normal) => self::text(normal.into_owned().into()),
            Err(_) => value,
        },
        Part::Network(..) => value,
    }
}
