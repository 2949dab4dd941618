//! The addresses that proxies note in a header, each at the end of what came: `X-Forwarded-For`, and `Forwarded` of
//! RFC 7239.

use super::address;
use std::net::IpAddr;

/// The header in which proxies note whom they had a request from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardedHeader {
    /// `X-Forwarded-For`: addresses with commas between them.
    XForwardedFor,
    /// `Forwarded`: elements with commas between them, and in each, among others, `for=` with an address.
    Forwarded,
}

impl ForwardedHeader {
    /// Its name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::XForwardedFor => "x-forwarded-for",
            Self::Forwarded => "forwarded",
        }
    }

    /// The addresses in the `lines` of the header from the right, which is from the last proxy to the first; `None` for
    /// an entry that holds no address. Empty entries are passed over, as lists of HTTP are read.
    ///
    /// What a client sent stands to the left of what proxies added. So what is ill-formed there, such as a quotation
    /// mark without its other half, changes nothing in how the rest is read.
    pub fn addresses<'h>(
        self,
        lines: impl DoubleEndedIterator<Item = &'h [u8]>,
    ) -> impl Iterator<Item = Option<IpAddr>> {
        let entries =
            lines.rev().flat_map(move |line| Entries { rest: Some(line), may_quote: self == Self::Forwarded });
        entries.filter(|entry| !entry.is_empty()).map(move |entry| match self {
            Self::XForwardedFor => address(entry),
            Self::Forwarded => address(&node(entry)?),
        })
    }
}

/// The entries of a line from the right.
struct Entries<'h> {
    rest: Option<&'h [u8]>,
    may_quote: bool,
}

impl<'h> Iterator for Entries<'h> {
    type Item = &'h [u8];

    fn next(&mut self) -> Option<&'h [u8]> {
        let rest = self.rest?;
        let comma = last_comma(rest, self.may_quote);
        self.rest = comma.map(|at| &rest[..at]);
        Some(rest[comma.map_or(0, |at| at + 1)..].trim_ascii())
    }
}

/// The last comma that is not within quotation marks, which are counted from the right.
fn last_comma(text: &[u8], may_quote: bool) -> Option<usize> {
    let is_escaped = |at: usize| text[..at].iter().rev().take_while(|&&byte| byte == b'\\').count() % 2 == 1;
    let mut is_quoted = false;
    (0..text.len()).rev().find(|&at| {
        is_quoted ^= may_quote && text[at] == b'"' && !is_escaped(at);
        text[at] == b',' && !is_quoted
    })
}

/// What `for` is in an element of `Forwarded`: pairs of a name and a value with semicolons between them. None if it is
/// not there, is there twice, or the element is ill-formed.
fn node(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut node = None;
    while !rest.is_empty() {
        let (pair, behind) = match rest.strip_prefix(b";") {
            Some(behind) => (None, behind),
            None => pair(rest).map(|(pair, behind)| (Some(pair), behind))?,
        };
        if let Some((name, value)) = pair
            && name.eq_ignore_ascii_case(b"for")
            && node.replace(value).is_some()
        {
            return None;
        }
        rest = behind.trim_ascii_start();
    }
    node
}

type Pair<'h> = (&'h [u8], Vec<u8>);

/// The pair that `text` begins with, and what is behind it: nothing, or a semicolon and more.
fn pair(text: &[u8]) -> Option<(Pair<'_>, &[u8])> {
    let equals = text.iter().position(|&byte| byte == b'=')?;
    let name = &text[..equals];
    let (value, behind) = match text[equals + 1..].strip_prefix(b"\"") {
        Some(rest) => quoted(rest)?,
        None => plain(&text[equals + 1..]),
    };
    let behind = behind.trim_ascii_start();
    let is_whole = name.iter().all(|&byte| is_token(byte)) && matches!(behind, [] | [b';', ..]);
    is_whole.then_some(((name, value), behind))
}

/// A token. Addresses need quotation marks for their colons and brackets, which some proxies forget.
fn plain(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let end = text.iter().position(|&byte| !is_token(byte) && !b":[]/".contains(&byte)).unwrap_or(text.len());
    (text[..end].to_vec(), &text[end..])
}

/// The rest of a text in quotation marks, and what is behind it. A backslash stands before a character that means
/// itself.
fn quoted(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut value = Vec::new();
    let mut bytes = text.iter();
    loop {
        match bytes.next()? {
            b'"' => return Some((value, bytes.as_slice())),
            b'\\' => value.push(*bytes.next()?),
            byte => value.push(*byte),
        }
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
