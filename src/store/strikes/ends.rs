//! When the attempts of a key are over: so many of the latest that one which is taken back leaves no trace.

use smallvec::SmallVec;

/// How many ends are known apart.
const MOST: usize = 8;

/// The ends of the attempts that stand.
#[derive(Default)]
pub(super) struct Ends {
    /// Those that are known apart, oldest first.
    known: SmallVec<[u64; MOST]>,
    /// The last end of all that are older.
    older: u64,
}

impl Ends {
    /// Those of attempts of which only the last end is known.
    #[cfg(feature = "server")]
    pub(super) fn of(end: u64) -> Self {
        Self { known: SmallVec::new(), older: end }
    }

    /// Adds a new attempt, and says when it is over: at `end`, and no sooner than those before it.
    pub(super) fn add(&mut self, end: u64) -> u64 {
        let end = end.max(self.last());
        if self.known.len() == MOST {
            self.older = self.known.remove(0);
        }
        self.known.push(end);
        end
    }

    /// Takes back an attempt that ends at `end`, of so many that stand; false if none of them does.
    pub(super) fn take_back(&mut self, end: u64, attempts: u32) -> bool {
        if let Some(at) = self.known.iter().rposition(|known| *known == end) {
            self.known.remove(at);
            return true;
        }
        attempts as usize > self.known.len() && end <= self.older
    }

    /// The end of the last attempt that stands; 0 if none does.
    pub(super) fn last(&self) -> u64 {
        self.known.last().copied().unwrap_or(self.older)
    }
}
