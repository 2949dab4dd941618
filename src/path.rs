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
}

/// Brings `path` into its canonical form: without its query, percent-decoded once, without dot segments and doubled
/// slashes. A trailing slash stays, and a `..` at the root is dropped. The empty path (CONNECT) and `*` (OPTIONS) are
/// canonical. Nothing is copied where nothing changes.
///
/// # Errors
///
/// [`UnsafePath`], if it can be read in several ways.
pub fn canonical(path: &[u8], encoded_slash: EncodedSlash) -> Result<Cow<'_, str>, UnsafePath> {
    let path = path.split(|&byte| byte == b'?').next().unwrap_or_default();
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
            b"" | b"." => {}
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
    String::from_utf8(whole).map(Cow::Owned).map_err(|_| UnsafePath::NotUtf8)
}

/// Whether a path is canonical as it is, as far as a look at single bytes and their neighbours tells. Most paths are.
fn is_plain(path: &[u8]) -> bool {
    let has_plain_bytes = path.iter().all(|&byte| !matches!(byte, b'%' | b'#' | b';' | b'\\' | 0..0x20 | 0x7f));
    path.starts_with(b"/") && has_plain_bytes && !path.windows(2).any(|pair| matches!(pair, b"//" | b"/."))
}

/// One segment, decoded. Dot segments are told from names that turn out to be one.
fn decoded(raw: &[u8], encoded_slash: EncodedSlash) -> Result<Cow<'_, [u8]>, UnsafePath> {
    let is_plain_fragment = |byte: u8| (byte == b'#').then_some(UnsafePath::Fragment);
    if let Some(refusal) = raw.iter().find_map(|&byte| is_plain_fragment(byte).or(refusal(byte))) {
        return Err(refusal);
    }
    if !raw.contains(&b'%') {
        return Ok(raw.into());
    }
    let mut segment = Vec::with_capacity(raw.len());
    let (mut rest, mut slashes, mut percents) = (raw, 0, Vec::new());
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
            (b'/', EncodedSlash::Literal) => {
                slashes += 1;
                segment.extend_from_slice(b"%2F");
            }
            (b'%', _) => {
                percents.push(segment.len());
                segment.push(b'%');
            }
            _ => match refusal(byte) {
                Some(refusal) => return Err(refusal),
                None => segment.push(byte),
            },
        }
    }
    if percents.iter().any(|&at| escape(&segment[at + 1..]).is_ok()) {
        return Err(UnsafePath::EncodedTwice);
    }
    let is_dots = |name: &[u8]| matches!(name, b"." | b"..");
    let pieces_are_dots = || String::from_utf8_lossy(&segment).split("%2F").any(|piece| is_dots(piece.as_bytes()));
    if is_dots(&segment) || (slashes > 0 && pieces_are_dots()) {
        return Err(UnsafePath::EncodedDots);
    }
    Ok(segment.into())
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
