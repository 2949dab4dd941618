//! Texts with wildcards: `*` is any run of characters, in a path without slashes; `**`, in paths only, is any run.

use smallvec::SmallVec;

/// A text to compare with, which may hold wildcards.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// The whole text, as it is.
    Exact(Box<[u8]>),
    /// A text with wildcards.
    Wild {
        /// All of it.
        pieces: Box<[Piece]>,
        /// How many of the pieces suffice, where not all of them are needed: `/x/**` matches `/x` as well.
        short: Option<usize>,
    },
}

/// A part of a text with wildcards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Piece {
    /// This byte.
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
    /// Reads a pattern; `\*` is a star.
    ///
    /// # Errors
    ///
    /// [`BadPattern`], if stars stand together that have no meaning.
    pub fn parse(text: &str, dialect: Dialect) -> Result<Self, BadPattern> {
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
        let bytes: Option<Vec<u8>> = pieces.iter().map(|piece| piece.byte()).collect();
        Ok(bytes.map_or_else(|| Self::wild(pieces, dialect), |bytes| Self::Exact(bytes.into())))
    }

    fn wild(pieces: Vec<Piece>, dialect: Dialect) -> Self {
        let below = pieces.strip_suffix(&[Piece::Byte(b'/'), Piece::AnyRun]).map(<[_]>::len);
        let short = below.filter(|&length| dialect == Dialect::Path && length > 0);
        Self::Wild { pieces: pieces.into(), short }
    }

    /// Whether the whole of `text` is as the pattern says.
    pub fn matches(&self, text: &[u8]) -> bool {
        match self {
            Self::Exact(exact) => **exact == *text,
            Self::Wild { pieces, short } => {
                matches(pieces, text) || short.is_some_and(|length| matches(&pieces[..length], text))
            }
        }
    }

    /// What every matching text begins with.
    pub fn literal_start(&self) -> Vec<u8> {
        match self {
            Self::Exact(exact) => exact.to_vec(),
            Self::Wild { pieces, short } => {
                pieces.iter().take(short.unwrap_or(pieces.len())).map_while(|piece| piece.byte()).collect()
            }
        }
    }
}

impl Piece {
    fn byte(self) -> Option<u8> {
        match self {
            Self::Byte(byte) => Some(byte),
            Self::Run | Self::AnyRun => None,
        }
    }
}

/// Follows every reading of the pattern at once, byte by byte, so that no text takes more than its length times the
/// pattern's. `places` are the pieces that the next byte may belong to, in ascending order.
fn matches(pieces: &[Piece], text: &[u8]) -> bool {
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
