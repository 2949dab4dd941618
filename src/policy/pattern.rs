//! Texts with wildcards: `*` is any run of characters, in a path without slashes; `**`, in paths only, is any run.

use memchr::memmem;
use smallvec::SmallVec;

/// A text to compare with, which may hold wildcards.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern {
    whole: Shape,
    /// What suffices as well: `/x/**` matches `/x`.
    short: Option<Shape>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Shape {
    /// The whole text, as it is.
    Exact(Box<[u8]>),
    /// These texts, the first at the start and the last at the end, with any runs between them.
    Parts(Box<[Box<[u8]>]>),
    /// These pieces, one behind another.
    Pieces(Box<[Piece]>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Piece {
    Byte(u8),
    /// Any run of bytes but slashes.
    Run,
    /// Any run of bytes.
    AnyRun,
}

/// What a pattern is compared with, and so what a star means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Any text: `*` is any run.
    Text,
    /// A path: `*` stops at a slash, `**` does not.
    Path,
}

/// Why a text is no pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum BadPattern {
    #[error("`**` is for paths only: write `*`, or `\\*\\*` for two stars")]
    TwoStars,
    #[error("`***` is no wildcard: write `*` for a run without slashes, `**` for any run")]
    ThreeStars,
}

impl Pattern {
    /// The pattern of one text, whose stars are stars.
    pub fn exact(text: &[u8]) -> Self {
        Self { whole: Shape::Exact(text.into()), short: None }
    }

    /// Reads a pattern; `\*` is a star.
    ///
    /// # Errors
    ///
    /// [`BadPattern`], if stars stand together that have no meaning.
    pub fn parse(text: &str, dialect: Dialect) -> Result<Self, BadPattern> {
        let pieces = pieces(text, dialect)?;
        let below = pieces.strip_suffix(&[Piece::Byte(b'/'), Piece::AnyRun]);
        let short = below.filter(|short| dialect == Dialect::Path && !short.is_empty());
        Ok(Self { whole: Shape::of(&pieces), short: short.map(Shape::of) })
    }

    /// Whether the whole of `text` is as the pattern says.
    pub fn matches(&self, text: &[u8]) -> bool {
        self.whole.matches(text) || self.short.as_ref().is_some_and(|short| short.matches(text))
    }

    /// The text, if there is only one that matches.
    pub fn as_exact(&self) -> Option<&[u8]> {
        match &self.whole {
            Shape::Exact(text) => Some(text),
            _ => None,
        }
    }

    /// What every matching text begins with.
    pub fn literal_start(&self) -> Vec<u8> {
        match self.short.as_ref().unwrap_or(&self.whole) {
            Shape::Exact(text) => text.to_vec(),
            Shape::Parts(parts) => parts[0].to_vec(),
            Shape::Pieces(pieces) => pieces.iter().map_while(|piece| piece.byte()).collect(),
        }
    }
}

fn pieces(text: &str, dialect: Dialect) -> Result<Vec<Piece>, BadPattern> {
    let mut pieces = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        let stars = rest.iter().take_while(|&&byte| byte == b'*').count();
        let (piece, length) = match (dialect, stars) {
            (_, 0) if rest.starts_with(br"\*") => (Piece::Byte(b'*'), 2),
            (_, 0) => (Piece::Byte(byte), 1),
            (Dialect::Text, 1) | (Dialect::Path, 2) => (Piece::AnyRun, stars),
            (Dialect::Path, 1) => (Piece::Run, 1),
            (Dialect::Text, _) => return Err(BadPattern::TwoStars),
            (Dialect::Path, _) => return Err(BadPattern::ThreeStars),
        };
        pieces.push(piece);
        rest = &behind[length - 1..];
    }
    Ok(pieces)
}

impl Piece {
    fn byte(self) -> Option<u8> {
        match self {
            Self::Byte(byte) => Some(byte),
            Self::Run | Self::AnyRun => None,
        }
    }
}

impl Shape {
    fn of(pieces: &[Piece]) -> Self {
        if pieces.contains(&Piece::Run) {
            return Self::Pieces(pieces.into());
        }
        let bytes = |part: &[Piece]| part.iter().filter_map(|piece| piece.byte()).collect::<Box<[u8]>>();
        let mut parts: Vec<_> = pieces.split(|piece| *piece == Piece::AnyRun).map(bytes).collect();
        match parts.len() {
            1 => Self::Exact(parts.swap_remove(0)),
            _ => Self::Parts(parts.into()),
        }
    }

    fn matches(&self, text: &[u8]) -> bool {
        match self {
            Self::Exact(exact) => **exact == *text,
            Self::Parts(parts) => matches_parts(parts, text),
            Self::Pieces(pieces) => ends_alike(pieces, text) && matches_pieces(pieces, text),
        }
    }
}

/// Takes every part where it is found first, which leaves most to those behind it.
fn matches_parts(parts: &[Box<[u8]>], text: &[u8]) -> bool {
    let [first, middle @ .., last] = parts else { return false };
    let within = text.strip_prefix(&**first).and_then(|rest| rest.strip_suffix(&**last));
    let Some(mut rest) = within else { return false };
    middle.iter().all(|part| match memmem::find(rest, part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

/// Whether the text ends as the pattern does, as far as the pattern says how. Most texts do not.
fn ends_alike(pieces: &[Piece], text: &[u8]) -> bool {
    let ends = pieces.iter().rev().map_while(|piece| piece.byte());
    ends.zip(text.iter().rev().map(Some).chain(std::iter::repeat(None))).all(|(wanted, found)| found == Some(&wanted))
}

/// Follows every reading of the pattern at once, byte by byte, so that no text takes more than its length times the
/// pattern's. `places` are the pieces that the next byte may belong to, in ascending order.
fn matches_pieces(pieces: &[Piece], text: &[u8]) -> bool {
    let mut places = Places::new();
    reach(pieces, 0, &mut places);
    let mut next = Places::new();
    for &byte in text {
        for &place in &places {
            match pieces.get(place) {
                Some(Piece::AnyRun) => reach(pieces, place, &mut next),
                Some(Piece::Run) if byte != b'/' => reach(pieces, place, &mut next),
                Some(&Piece::Byte(wanted)) if byte == wanted => reach(pieces, place + 1, &mut next),
                _ => {}
            }
        }
        if next.is_empty() {
            return false;
        }
        std::mem::swap(&mut places, &mut next);
        next.clear();
    }
    places.last() == Some(&pieces.len())
}

type Places = SmallVec<[usize; 16]>;

/// Adds a place and, since a run may be empty, those behind the runs that begin there.
fn reach(pieces: &[Piece], place: usize, places: &mut Places) {
    if places.last().is_none_or(|&last| last < place) {
        places.push(place);
    }
    if matches!(pieces.get(place), Some(Piece::Run | Piece::AnyRun)) {
        reach(pieces, place + 1, places);
    }
}
