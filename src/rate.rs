//! The rate grammar: a count of calls per window, as text and as numbers.

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

mod duration;

pub use duration::{format_duration, parse_duration};

/// The largest count and the largest window in nanoseconds, 2^63 - 1.
const LARGEST: u64 = i64::MAX as u64;

/// A number of calls per window: the count is 1 to 2^63 - 1, the window one nanosecond to 2^63 - 1 of them, 292 years.
///
/// Whatever the moment, a caller is admitted at most `count` calls at once, and over any time `t` at most `count` plus
/// one for each `window / count` that went by; rounding to whole nanoseconds may admit a call by less than one
/// nanosecond per call of the count earlier than that.
///
/// ```
/// use std::time::Duration;
/// use tollgate::Rate;
///
/// let rate: Rate = "100/1h30m".parse()?;
/// assert_eq!((rate.count(), rate.window()), (100, Duration::from_secs(5400)));
/// assert_eq!(Rate::new(100, Duration::from_secs(5400))?, rate);
/// assert_eq!(rate.to_string(), "100/1h30m");
/// # Ok::<(), tollgate::InvalidRate>(())
/// ```
///
/// Rates are ordered by window, then by count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate {
    window: Window,
    count: NonZeroU64,
}

/// A window in nanoseconds, at most [`LARGEST`].
pub(crate) type Window = NonZeroU64;

/// A rate that is not one: a text outside the grammar, or a number outside 1 to 2^63 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid rate: want <count>/<window>, such as 50/1m, both positive")]
pub struct InvalidRate(());

impl Rate {
    /// One call a second.
    pub(crate) const ONE_A_SECOND: Self =
        Self { window: NonZeroU64::new(1_000_000_000).unwrap(), count: NonZeroU64::MIN };

    /// The rate of `count` calls per `window`.
    ///
    /// # Errors
    ///
    /// [`InvalidRate`] if either is zero, the count is above 2^63 - 1, or the window above 2^63 - 1 nanoseconds.
    pub fn new(count: u64, window: Duration) -> Result<Self, InvalidRate> {
        Ok(Self { count: bounded(count)?, window: window_of(window)? })
    }

    /// Reads `<count>/<window>`: decimal digits, and a positive Go duration (`1m`, `1h30m`, `1.5h`, `100ms`).
    /// Every byte counts; nothing is trimmed.
    ///
    /// # Errors
    ///
    /// [`InvalidRate`] if `text` is anything else.
    pub fn parse(text: &[u8]) -> Result<Self, InvalidRate> {
        let slash = text.iter().position(|&byte| byte == b'/').ok_or(InvalidRate(()))?;
        let count = parse_count(&text[..slash]).ok_or(InvalidRate(()))?;
        let window = parse_duration(&text[slash + 1..]).ok_or(InvalidRate(()))?;
        Ok(Self { count: bounded(count)?, window: bounded(window)? })
    }

    /// Calls per window; also the burst: the calls that a full allowance permits at once.
    pub fn count(self) -> u64 {
        self.count.get()
    }

    /// The window.
    pub fn window(self) -> Duration {
        Duration::from_nanos(self.nanos())
    }

    /// The window in nanoseconds.
    pub(crate) fn nanos(self) -> u64 {
        self.window.get()
    }

    /// The same calls per second over another window: the count is rounded, halves up, and at least 1.
    pub(crate) fn rescaled(self, window: Window) -> Self {
        let (count, old, new) = (u128::from(self.count()), u128::from(self.nanos()), u128::from(window.get()));
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
        format_duration(f, self.nanos())
    }
}

/// The window that lasts as long as `duration`.
pub(crate) fn window_of(duration: Duration) -> Result<Window, InvalidRate> {
    bounded(u64::try_from(duration.as_nanos()).map_err(|_| InvalidRate(()))?)
}

fn bounded(number: u64) -> Result<NonZeroU64, InvalidRate> {
    NonZeroU64::new(number).filter(|number| number.get() <= LARGEST).ok_or(InvalidRate(()))
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
