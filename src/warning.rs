//! Capability warnings: notes to the caller, as header text.

use smallvec::SmallVec;
use std::fmt;

/// A note to the caller: a reason and its parameters, such as `malformed; kind=rate; cap="prefix:rate:fast"`.
///
/// ```
/// use tollgate::Warning;
/// let warning = Warning::new(b"malformed").with(b"kind", b"rate").with(b"cap", b"prefix:rate:5");
/// assert_eq!(warning.to_string(), r#"malformed; kind=rate; cap="prefix:rate:5""#);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning<'t> {
    reason: &'t [u8],
    params: SmallVec<[(&'t [u8], &'t [u8]); 2]>,
}

impl<'t> Warning<'t> {
    /// A warning without parameters.
    pub fn new(reason: &'t [u8]) -> Self {
        Self { reason, params: SmallVec::new() }
    }

    /// The warning with one more parameter.
    #[must_use]
    pub fn with(mut self, name: &'t [u8], value: &'t [u8]) -> Self {
        self.params.push((name, value));
        self
    }

    /// `capability`, whole, is a rate capability whose rate cannot be parsed.
    pub(crate) fn malformed_rate(capability: &'t [u8]) -> Self {
        Self::new(b"malformed").with(b"kind", b"rate").with(b"cap", capability)
    }

    /// The text byte by byte: control characters are still in it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = self.reason.to_vec();
        for (name, value) in &self.params {
            text.extend_from_slice(b"; ");
            text.extend_from_slice(name);
            text.push(b'=');
            push_value(&mut text, value);
        }
        text
    }

    /// The text as it may stand in a header: each control character has become one space.
    pub fn to_header_value(&self) -> Vec<u8> {
        let mut text = self.to_bytes();
        text.iter_mut().filter(|byte| byte.is_ascii_control()).for_each(|byte| *byte = b' ');
        text
    }

    /// [`Warning::to_header_value`] in at most `most` bytes, which must hold all but the last parameter's value:
    /// that value is cut, at a character where it is UTF-8, and stays well-formed.
    pub fn to_header_value_within(&self, most: usize) -> Vec<u8> {
        let mut cut = self.clone();
        cut.shorten(most);
        loop {
            let text = cut.to_header_value();
            // An escaped byte takes two, so taking off half of what is too much never takes off too much.
            let excess = text.len().saturating_sub(most).div_ceil(2);
            let length = cut.params.last().map_or(0, |(_, value)| value.len());
            if excess == 0 || length == 0 {
                return text;
            }
            cut.shorten(length.saturating_sub(excess));
        }
    }

    /// Cuts the last parameter's value to at most `most` bytes.
    fn shorten(&mut self, most: usize) {
        if let Some((_, value)) = self.params.last_mut() {
            *value = &value[..floor_char_boundary(value, most)];
        }
    }
}

/// The text of [`Warning::to_header_value`], bytes that are not UTF-8 replaced.
impl fmt::Display for Warning<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.to_header_value()))
    }
}

/// A non-empty run of HTTP token characters stands bare; anything else in quotes, `"` and `\` escaped.
fn push_value(text: &mut Vec<u8>, value: &[u8]) {
    if !value.is_empty() && value.iter().all(|&byte| is_token(byte)) {
        text.extend_from_slice(value);
        return;
    }
    text.push(b'"');
    for &byte in value {
        if matches!(byte, b'"' | b'\\') {
            text.push(b'\\');
        }
        text.push(byte);
    }
    text.push(b'"');
}

/// RFC 9110, section 5.6.2: `tchar`.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The last character boundary at or before `at`, where `text` is UTF-8.
fn floor_char_boundary(text: &[u8], at: usize) -> usize {
    let is_continuation = |byte: u8| byte & 0b1100_0000 == 0b1000_0000;
    let at = at.min(text.len());
    (0..=at).rev().find(|&at| text.get(at).is_none_or(|&byte| !is_continuation(byte))).unwrap_or(0)
}
