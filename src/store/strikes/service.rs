//! What only the service does with strikes: provisional ones are kept, keys are forgotten by one of their strikes, and tables
//! go on under another configuration.

use super::window::Span;
use super::{Change, LOCKED, Strike, StrikeTable, Strikes};
use crate::store::key::Key;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl StrikeTable {
    /// The same strikes, with other numbers. A key stays locked as long as it was, and one that has so many strikes by now
    /// is locked by its next attempt.
    pub(crate) fn succeeded(&self, threshold: u32, max_keys: usize, patience: u64) -> Self {
        Self { threshold, max_keys, patience, contents: Arc::clone(&self.contents) }
    }

    /// Its place in the order of locks.
    pub(crate) fn lock_place(&self) -> u64 {
        self.contents.place
    }

    /// Notes an attempt that was [denied](Self::denied).
    pub(crate) fn note_denied(&self, strikes: &Strikes, key: Key) {
        let is_turned_away = strikes.keys.find(key).is_none();
        self.contents.turned_away.fetch_add(is_turned_away.into(), Relaxed);
    }

    /// Keeps a provisional strike; one whose key was forgotten since counts from now on. A lockout that it engages begins now.
    pub(crate) fn confirm(&self, strike: Strike, span: Span) -> Change {
        let mut strikes = self.lock();
        let is_engaged = match self.find(&strikes, strike, span) {
            Some(at) => self.confirm_at(&mut strikes, at, span),
            None if strike.table != self.contents.place || self.is_barred(&strikes, strike.key, span) => {
                return Change::Gone;
            }
            None => self.strike(&mut strikes, strike.key, span, false).engaged,
        };
        if is_engaged { Change::Engaged } else { Change::Done }
    }

    /// Whether `key` is locked, or finds no room.
    fn is_barred(&self, strikes: &Strikes, key: Key, span: Span) -> bool {
        match strikes.keys.find(key) {
            Some(at) => strikes.keys.queue(at) == LOCKED && !strikes.keys.get(at).is_over(span),
            None => self.wait_for_room(strikes, span).is_some(),
        }
    }

    /// It says whether the key got locked.
    fn confirm_at(&self, strikes: &mut Strikes, at: u32, span: Span) -> bool {
        let entry = strikes.keys.get_mut(at);
        entry.provisional = entry.provisional.saturating_sub(1);
        strikes.keys.queue(at) != LOCKED && self.used(strikes, at, span)
    }

    /// Forgets the key of a strike, lockout included.
    pub(crate) fn reset_by(&self, strike: Strike, span: Span) -> Change {
        let mut strikes = self.lock();
        let Some(at) = self.find(&strikes, strike, span) else { return Change::Gone };
        strikes.keys.remove(at);
        Change::Done
    }
}
