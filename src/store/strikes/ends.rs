//! When the attempts of a key are over: so many of the latest that one which is taken back leaves no trace.

use smallvec::SmallVec;

/// How many ends are known apart.
const MOST: usize = 8;

/// The ends of the attempts that stand, oldest first. Where more stand than are known apart, the first end is that of all
/// the older ones as well.
#[derive(Default)]
pub(super) struct Ends(SmallVec<[u64; MOST]>);

impl Ends {
    #[cfg(feature = "server")]
    pub(super) fn of(end: u64) -> Self {
        Self(SmallVec::from_iter([end]))
    }

    /// Adds a new attempt, and says when it is over: at `end`, and no sooner than those before it.
    pub(super) fn add(&mut self, end: u64) -> u64 {
        let end = end.max(self.last());
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        self.0.push(end);
        end
    }

    /// Takes back an attempt that ends at `end`, of so many that stand; false if none of them does.
    pub(super) fn take_back(&mut self, end: u64, attempts: u32) -> bool {
        let are_all_known = attempts as usize <= self.0.len();
        match self.0.iter().rposition(|known| *known == end) {
            Some(0) | None if !are_all_known => true,
            Some(at) => {
                self.0.remove(at);
                true
            }
            None => false,
        }
    }

    /// The end of the last attempt that stands; 0 if none does.
    pub(super) fn last(&self) -> u64 {
        self.0.last().copied().unwrap_or_default()
    }
}
