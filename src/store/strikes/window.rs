//! How long an attempt counts, and a lockout lasts.

#[cfg(feature = "server")]
use crate::store::fixed_window::FixedWindow;
use crate::store::meter::Moment;

/// How long an attempt counts, and a lockout lasts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Window {
    /// From the last attempt on.
    Rolling(u64),
    /// To the end of a window of the calendar, the longest of which had this length.
    #[cfg(feature = "server")]
    Fixed(FixedWindow, u64),
}

#[cfg(feature = "server")]
impl Window {
    /// Windows of the calendar of this length, each of which ends for all keys at once.
    pub(crate) fn fixed(length: u64) -> Self {
        Self::Fixed(FixedWindow::new(1, length), length)
    }

    /// Windows of another length, in which what was noted before is worth as much as it was.
    pub(crate) fn succeeded(self, length: u64) -> Self {
        match self {
            Self::Rolling(_) => Self::Rolling(length),
            Self::Fixed(_, longest) => Self::Fixed(FixedWindow::new(1, length), longest.max(length)),
        }
    }
}

impl Window {
    pub(crate) fn span(self, now: Moment) -> Span {
        match self {
            Self::Rolling(window) => {
                Span { now: now.monotonic, end: now.monotonic.saturating_add(window), latest: u64::MAX }
            }
            #[cfg(feature = "server")]
            Self::Fixed(window, longest) => {
                let end = window.end(now.unix);
                Span { now: now.unix, end, latest: end.saturating_add(longest) }
            }
        }
    }
}

/// A moment, and when the window of an attempt at that moment ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub now: u64,
    pub end: u64,
    /// What ends later was noted by a clock that has been set back since; it is worth nothing.
    pub latest: u64,
}

impl Span {
    pub(super) fn is_over(self, until: u64) -> bool {
        self.now >= until || until > self.latest
    }
}
