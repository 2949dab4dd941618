//! The rate grammar: a count of calls per window, as text and as numbers.

use std::fmt;
use std::num::NonZeroU64;

mod duration;

pub use duration::{format_duration, parse_duration};

/// The largest count and the largest window in nanoseconds, 2^63 - 1.
const LARGEST: u64 = i64::MAX as u64;

/// A number of calls per window. Both are positive and at most 2^63 - 1; the window is in nanoseconds.
///
/// ```
/// use tollgate::Rate;
/// let rate: Rate = "100/1h30m".parse()?;
/// assert_eq!((rate.count(), rate.window()), (100, 5_400_000_000_000));
/// assert_eq!(Rate::new(100, 5_400_000_000_000)?, rate);
/// assert_eq!(rate.to_string(), "100/1h30m");
/// # Ok::<(), tollgate::InvalidRate>(())
/// ```
///
/// Rates are ordered by window, then by count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate {
    window: NonZeroU64,
    count: NonZeroU64,
}

/// A rate that is not one: a text outside the grammar, or a number outside 1 to 2^63 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid rate: want <count>/<window>, such as 50/1m, both positive")]
pub struct InvalidRate;

impl Rate {
    /// The rate of `count` calls per `window` nanoseconds.
    ///
    /// # Errors
    ///
    /// [`InvalidRate`] if either is zero or above 2^63 - 1.
    pub fn new(count: u64, window: u64) -> Result<Self, InvalidRate> {
        let bounded = |n: u64| NonZeroU64::new(n).filter(|n| n.get() <= LARGEST).ok_or(InvalidRate);
        Ok(Self { count: bounded(count)?, window: bounded(window)? })
    }

    /// Reads `<count>/<window>`: decimal digits, and a positive Go duration (`1m`, `1h30m`, `1.5h`, `100ms`).
    /// Every byte counts; nothing is trimmed.
    ///
    /// # Errors
    ///
    /// [`InvalidRate`] if `text` is anything else.
    pub fn parse(text: &[u8]) -> Result<Self, InvalidRate> {
        let slash = text.iter().position(|&byte| byte == b'/').ok_or(InvalidRate)?;
        let count = parse_count(&text[..slash]).ok_or(InvalidRate)?;
        let window = parse_duration(&text[slash + 1..]).ok_or(InvalidRate)?;
        Self::new(count, window)
    }

    /// Calls per window; also the burst: the calls that a full allowance permits at once.
    pub fn count(self) -> u64 {
        self.count.get()
    }

    /// The window in nanoseconds.
    pub fn window(self) -> u64 {
        self.window.get()
    }

    /// The same calls per second over another `window`: the count is rounded, halves up, and at least 1.
    #[must_use]
    pub fn rescaled(self, window: NonZeroU64) -> Self {
        let (count, old, new) = (u128::from(self.count()), u128::from(self.window()), u128::from(window.get()));
        let scaled = (count * new + old / 2) / old;
        let count = u64::try_from(scaled).unwrap_or(LARGEST).clamp(1, LARGEST);
        Self { count: NonZeroU64::new(count).unwrap_or(NonZeroU64::MIN), window }
    }
}

impl std::str::FromStr for Rate {
    type Err = InvalidRate;

    fn from_str(text: &str) -> Result<Self, InvalidRate> {
        Self::parse(text.as_bytes())
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.count)?;
        format_duration(f, self.window())
    }
}

fn parse_count(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |count, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        count.checked_mul(10)?.checked_add(digit)
    })
}
