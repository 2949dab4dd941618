//! When the attempts of a key are over: so many of the latest that one which is taken back leaves no trace.

use smallvec::SmallVec;

/// How many ends are known apart.
const MOST: usize = 8;

/// The ends of the attempts that stand, oldest first.
#[derive(Default)]
pub(super) struct Ends {
    known: SmallVec<[u64; MOST]>,
    /// Whether the first stands for all attempts that the others do not: for those that were the oldest of more.
    is_first_shared: bool,
}

impl Ends {
    /// Those of attempts of which only the last end is known.
    #[cfg(feature = "server")]
    pub(super) fn of(end: u64) -> Self {
        Self { known: SmallVec::from_iter([end]), is_first_shared: true }
    }

    /// Adds a new attempt, and says when it is over: at `end`, and no sooner than those before it.
    pub(super) fn add(&mut self, end: u64) -> u64 {
        let end = end.max(self.last());
        if self.known.len() == MOST {
            self.known.remove(0);
            self.is_first_shared = true;
        }
        self.known.push(end);
        end
    }

    /// Takes back an attempt that ends at `end`, of so many that stand; false if none of them does.
    pub(super) fn take_back(&mut self, end: u64, attempts: u32) -> bool {
        let is_of_first = self.is_first_shared && self.known.first().is_some_and(|first| end <= *first);
        let of_first = (attempts as usize + 1).saturating_sub(self.known.len());
        let at = if is_of_first { Some(0) } else { self.known.iter().rposition(|known| *known == end) };
        if let Some(at) = at.filter(|_| !is_of_first || of_first <= 1) {
            self.known.remove(at);
            self.is_first_shared &= !is_of_first;
        }
        at.is_some()
    }

    /// The end of the last attempt that stands; 0 if none does.
    pub(super) fn last(&self) -> u64 {
        self.known.last().copied().unwrap_or_default()
    }
}
