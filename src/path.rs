//! The one form of a request's path that rules are matched against, or why it has none.

use std::borrow::Cow;

/// What an encoded slash (`%2F`) in a path means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EncodedSlash {
    /// The path is unsafe: what is behind Envoy may or may not take it for a slash.
    #[default]
    Refuse,
    /// It stays as the three characters `%2F`.
    Literal,
}

/// Why a path has no canonical form: what is behind Envoy might take it for another path than a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum UnsafePath {
    #[error("the path does not begin with a slash")]
    NoSlash,
    #[error("the path holds a percent sign without two hexadecimal digits behind it")]
    BadEscape,
    #[error("the path holds an encoded slash")]
    EncodedSlash,
    #[error("the path holds an encoded dot segment")]
    EncodedDots,
    #[error("the path holds a `..` that takes back a doubled slash or what is before it")]
    DotsBehindSlashes,
    #[error("the path holds something that is encoded twice")]
    EncodedTwice,
    #[error("the path holds a backslash")]
    Backslash,
    #[error("the path holds a semicolon")]
    Semicolon,
    #[error("the path holds a fragment")]
    Fragment,
    #[error("the path holds a control character")]
    Control,
    #[error("the path is not UTF-8")]
    NotUtf8,
    #[error("the path is longer than 8 KiB")]
    TooLong,
}

/// The longest path that is compared with rules, in bytes.
const LONGEST: usize = 8192;

/// Brings `path` into its canonical form: without its query, percent-decoded once, without dot segments and doubled
/// slashes. A trailing slash stays, and a `..` at the root is dropped. The empty path (CONNECT) and `*` (OPTIONS) are
/// canonical. Nothing is copied where nothing changes.
///
/// # Errors
///
/// [`UnsafePath`], if it can be read in several ways.
pub fn canonical(path: &[u8], encoded_slash: EncodedSlash) -> Result<Cow<'_, str>, UnsafePath> {
    let path = path.split(|&byte| byte == b'?').next().unwrap_or_default();
    if path.len() > LONGEST {
        return Err(UnsafePath::TooLong);
    }
    if matches!(path, b"" | b"*") || is_plain(path) {
        return std::str::from_utf8(path).map(Cow::Borrowed).map_err(|_| UnsafePath::NotUtf8);
    }
    let segments = path.strip_prefix(b"/").ok_or(UnsafePath::NoSlash)?.split(|&byte| byte == b'/');
    let mut whole = Vec::with_capacity(path.len());
    let mut ends_in_slash = true;
    for raw in segments {
        let segment = decoded(raw, encoded_slash)?;
        ends_in_slash = matches!(&*segment, b"" | b"." | b"..");
        match &*segment {
            b"." => {}
            // It takes back an empty segment by RFC 3986, and the name before it where slashes are merged first.
            b".." if whole.ends_with(b"/") => return Err(UnsafePath::DotsBehindSlashes),
            b".." => whole.truncate(whole.iter().rposition(|&byte| byte == b'/').unwrap_or(0)),
            name => {
                whole.push(b'/');
                whole.extend_from_slice(name);
            }
        }
    }
    if ends_in_slash || whole.is_empty() {
        whole.push(b'/');
    }
    whole.dedup_by(|next, before| *next == b'/' && *before == b'/');
    String::from_utf8(whole).map(Cow::Owned).map_err(|_| UnsafePath::NotUtf8)
}

/// Whether a path is canonical as it is, as far as a look at single bytes and their neighbours tells. Most paths are.
fn is_plain(path: &[u8]) -> bool {
    let has_plain_bytes = path.iter().all(|&byte| !matches!(byte, b'%' | b'#' | b';' | b'\\' | 0..0x20 | 0x7f));
    path.starts_with(b"/") && has_plain_bytes && !path.windows(2).any(|pair| matches!(pair, b"//" | b"/."))
}

/// One segment, decoded. Dot segments are told from names that turn out to be one.
fn decoded(raw: &[u8], encoded_slash: EncodedSlash) -> Result<Cow<'_, [u8]>, UnsafePath> {
    let is_fragment = |byte: u8| (byte == b'#').then_some(UnsafePath::Fragment);
    if let Some(refusal) = raw.iter().find_map(|&byte| is_fragment(byte).or(refusal(byte))) {
        return Err(refusal);
    }
    if !raw.contains(&b'%') {
        return Ok(raw.into());
    }
    let segment = unescaped(raw, encoded_slash)?;
    // An encoded slash that stays is three characters, and yet a slash to some.
    let mut pieces = segment.split(|&byte| byte == 0).map(|piece| matches!(piece, b"." | b".."));
    if pieces.any(|is_dots| is_dots) {
        return Err(UnsafePath::EncodedDots);
    }
    let written = segment.iter().flat_map(|byte| if *byte == 0 { &b"%2F"[..] } else { std::slice::from_ref(byte) });
    Ok(written.copied().collect())
}

/// One segment with its escapes resolved. A slash among them that stays is a zero, which nothing else can be.
fn unescaped(raw: &[u8], encoded_slash: EncodedSlash) -> Result<Vec<u8>, UnsafePath> {
    let mut segment = Vec::with_capacity(raw.len());
    let (mut rest, mut percents) = (raw, Vec::new());
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'%' {
            segment.push(byte);
            continue;
        }
        let (byte, behind) = escape(behind)?;
        rest = behind;
        match (byte, encoded_slash) {
            (b'/', EncodedSlash::Refuse) => return Err(UnsafePath::EncodedSlash),
            (b'/', EncodedSlash::Literal) => segment.push(0),
            (byte, _) => match refusal(byte) {
                Some(refusal) => return Err(refusal),
                None => segment.push(byte),
            },
        }
        if byte == b'%' {
            percents.push(segment.len());
        }
    }
    let is_escape = |&behind: &usize| escape(&segment[behind..]).is_ok();
    if percents.iter().any(is_escape) { Err(UnsafePath::EncodedTwice) } else { Ok(segment) }
}

/// The byte that two hexadecimal digits at the start of `text` stand for, and what is behind them.
fn escape(text: &[u8]) -> Result<(u8, &[u8]), UnsafePath> {
    let digit = |at: usize| text.get(at).and_then(|&byte| char::from(byte).to_digit(16));
    let (Some(high), Some(low)) = (digit(0), digit(1)) else { return Err(UnsafePath::BadEscape) };
    Ok(((high * 16 + low) as u8, &text[2..]))
}

/// Why a byte, written plainly or encoded, makes a path unsafe; `None` for most. An encoded `#` is a character.
fn refusal(byte: u8) -> Option<UnsafePath> {
    match byte {
        b'\\' => Some(UnsafePath::Backslash),
        b';' => Some(UnsafePath::Semicolon),
        0..0x20 | 0x7f => Some(UnsafePath::Control),
        _ => None,
    }
}
