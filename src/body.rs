//! Pure: what one field of a JSON or a form body holds. What is not there, or could be read in two ways, is missing.

use crate::identity::normalize;
use crate::request::Request;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// A body that is shorter is whole. A longer one may be the start of one: where a client's first bytes fill Envoy's
/// `max_request_bytes` to the last, Envoy sends them without a mark, whatever follows.
const LIMIT: usize = 8 * 1024;

/// Where Envoy says whether it cut the body; it drops what a client sends under this name.
const PARTIAL: &str = "x-envoy-auth-partial-body";

/// What the JSON body of `request` holds at `path`, the names of the objects it lies in and its own: a text, an integer
/// from 0 to 2^53-1 in its plain form, or a boolean. A name that is there twice, also in other letters for which lenient
/// readers take it, is missing, since nobody knows which one will be read.
pub fn json<'r>(request: &Request<'r>, path: &[String]) -> Option<Cow<'r, str>> {
    let body = std::str::from_utf8(whole(request, is_json)?).ok()?;
    let mut reader = serde_json::Deserializer::from_str(body);
    let found = At(path).deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some(found)
}

/// What the form in the body of `request` holds as `field`. A field that is there twice, also in other letters, is
/// missing, as is one that is not UTF-8.
pub fn form<'r>(request: &Request<'r>, field: &str) -> Option<Cow<'r, str>> {
    let mut found = form_urlencoded::parse(whole(request, is_form)?).filter(|(name, _)| is_like(name, field));
    let (name, value) = found.next()?;
    let is_clear = name == field && found.next().is_none() && !value.contains(char::REPLACEMENT_CHARACTER);
    is_clear.then_some(value)
}

/// The body, if it is whole and of the right kind. Without a content type, which only Envoy's `allowed_headers` or the
/// client can have left out, it is taken for what it should be; one that says otherwise would be read otherwise.
fn whole<'r>(request: &Request<'r>, is_right: fn(&[u8]) -> bool) -> Option<&'r [u8]> {
    let is_whole = request.body.len() < LIMIT && request.lines(PARTIAL).all(|partial| partial == b"false");
    let is_right = request.lines("content-type").all(|kind| is_right(essence(kind)));
    (is_whole && is_right).then_some(request.body)
}

/// A content type without its parameters. Of two that are joined to one line, that is none.
fn essence(kind: &[u8]) -> &[u8] {
    if kind.contains(&b',') { b"" } else { kind.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii() }
}

fn is_json(kind: &[u8]) -> bool {
    let ends = |end: &[u8]| kind.len() >= end.len() && kind[kind.len() - end.len()..].eq_ignore_ascii_case(end);
    kind.eq_ignore_ascii_case(b"application/json") || ends(b"+json")
}

fn is_form(kind: &[u8]) -> bool {
    kind.eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
}

/// Whether some reader takes one name for the other: in Go, JSON names match in any case.
fn is_like(name: &str, wanted: &str) -> bool {
    name == wanted || normalize(name) == normalize(wanted)
}

/// Reads what stands at a path; anything else than one plain value is an error.
struct At<'p>(&'p [String]);

impl<'de> DeserializeSeed<'de> for At<'_> {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        if self.0.is_empty() { reader.deserialize_any(Plain) } else { reader.deserialize_map(self) }
    }
}

impl<'de> Visitor<'de> for At<'_> {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let missing = || A::Error::custom("not one such name");
        let (wanted, below) = self.0.split_first().ok_or_else(missing)?;
        let mut found = None;
        while let Some(likeness) = map.next_key_seed(Name(wanted))? {
            match likeness {
                Likeness::Other => drop(map.next_value::<IgnoredAny>()?),
                Likeness::Same if found.is_none() => found = Some(map.next_value_seed(At(below))?),
                Likeness::Same | Likeness::Alike => return Err(missing()),
            }
        }
        found.ok_or_else(missing)
    }
}

enum Likeness {
    Same,
    Alike,
    Other,
}

/// Compares a name with the wanted one, and keeps none.
struct Name<'p>(&'p str);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Likeness;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Likeness, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Likeness;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Likeness, E> {
        Ok(match name {
            name if name == self.0 => Likeness::Same,
            name if is_like(name, self.0) => Likeness::Alike,
            _ => Likeness::Other,
        })
    }
}

/// Reads a text, an integer or a boolean as a text.
struct Plain;

impl<'de> Visitor<'de> for Plain {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, an integer from 0 to 2^53-1 or a boolean")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(text.into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(text.to_owned().into())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(if value { "true".into() } else { "false".into() })
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        self.visit_f64(number as f64)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        /// The largest integer up to which every integer is a double of its own, 2^53 - 1.
        const LARGEST: f64 = 9_007_199_254_740_991.0;
        match number.fract() == 0.0 && (0.0..=LARGEST).contains(&number) {
            true => Ok((number as u64).to_string().into()),
            false => Err(E::custom("a number that readers take for different ones")),
        }
    }
}
