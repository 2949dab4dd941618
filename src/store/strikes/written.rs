//! The strikes of a lockout as bytes: `key 16, left 8, strikes 4, provisional 4, locked 1` each.

use super::ends::Ends;
use super::window::Span;
use super::{COUNTING, Entry, LOCKED, StrikeTable};
use crate::store::key::Key;
use crate::store::written::{Rest, Since, put};
use std::sync::atomic::Ordering::Relaxed;

impl StrikeTable {
    /// Hands all strikes to `write`, as bytes, their times as of `span`. The lock is held for a few keys at a time.
    pub(crate) fn write<E>(&self, span: Span, mut write: impl FnMut(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        let (mut bytes, mut chunk) = (Vec::new(), 0);
        loop {
            let strikes = self.lock();
            let Some(entries) = strikes.keys.chunk(chunk) else { return Ok(()) };
            for (entry, queue) in entries.filter(|(entry, _)| !entry.is_over(span)) {
                bytes.extend_from_slice(&entry.key.to_bytes());
                put(&mut bytes, entry.until - span.now);
                bytes.extend_from_slice(&entry.strikes.to_le_bytes());
                bytes.extend_from_slice(&entry.provisional.to_le_bytes());
                bytes.push((queue == LOCKED).into());
            }
            drop(strikes);
            write(&mut bytes)?;
            chunk += 1;
        }
    }

    /// Puts strikes that were written into the table, in the order in which their keys were used. What is over by now is left
    /// out; what finds no room is forgotten.
    pub(crate) fn fill(&self, mut written: Vec<Written>, span: Span) {
        written.retain(|written| !span.is_over(written.until));
        // Where there is not room for all, lockouts come first, and then those that were used last.
        written.sort_unstable_by_key(|written| std::cmp::Reverse((written.is_locked, written.until)));
        let surplus = written.len().saturating_sub(self.max_keys);
        self.contents.forgiven.fetch_add(surplus as u64, Relaxed);
        written.truncate(self.max_keys);
        written.sort_unstable_by_key(|written| written.until);
        let mut table = self.lock();
        for Written { key, until, strikes, provisional, is_locked } in written {
            table.generation += 1;
            // Nobody tells the outcomes of another process.
            let (ends, awaited, generation) = (Ends::of(until), 0, table.generation);
            let entry = Entry { key, until, ends, generation, strikes, provisional, awaited };
            if table.keys.find(key).is_none() {
                let queue = if is_locked { LOCKED } else { self.queue(&entry).min(COUNTING) };
                table.keys.add(entry, queue);
            }
        }
    }
}

/// The strikes of a key, as they were written.
pub(crate) struct Written {
    key: Key,
    until: u64,
    strikes: u32,
    provisional: u32,
    is_locked: bool,
}

impl Written {
    /// Reads the strikes of a key; `None` if the bytes are none.
    pub(crate) fn read(rest: &mut Rest<'_>, since: Since) -> Option<Self> {
        let (key, until) = (rest.key()?, since.until(rest.number()?));
        let mut count = || rest.take(4)?.try_into().ok().map(u32::from_le_bytes);
        let (strikes, provisional) = (count()?, count()?);
        let is_locked = rest.byte()? != 0;
        Some(Self { key, until, strikes, provisional: provisional.min(strikes), is_locked })
    }
}
