//! The allowances of a limit as bytes: `shared 1, key 16, level 16` each.

use super::{Entry, LimitTable};
use crate::store::meter::Moment;
use crate::store::swept::{change_all, lock};
use crate::store::written::{Rest, Since};
use std::sync::atomic::Ordering::Relaxed;

impl LimitTable {
    /// Hands all allowances to `write`, as bytes, their times as of `now`.
    pub(crate) fn write<E>(&self, now: Moment, mut write: impl FnMut(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        let mut bytes = Vec::new();
        let shards = self.contents.shards.iter().map(|shard| (0, shard));
        for (is_shared, table) in shards.chain([(1, &self.contents.overflow)]) {
            change_all(table, |entry| {
                if !self.meter.is_full(entry.level, now) {
                    bytes.push(is_shared);
                    bytes.extend_from_slice(&entry.key.to_bytes());
                    self.meter.write(entry.level, &mut bytes, now);
                }
            });
            write(&mut bytes)?;
        }
        Ok(())
    }

    /// Reads an allowance into the table; `None` if the bytes are none. One that finds no room is forgotten; one
    /// that is worth nothing by now is left out.
    pub(crate) fn read(&self, rest: &mut Rest<'_>, since: Since, now: Moment) -> Option<()> {
        let (is_shared, key) = (rest.byte()? != 0, rest.key()?);
        let level = self.meter.read_level(rest, since)?;
        if self.meter.is_full(level, now) {
            return Some(());
        }
        let entry = Entry { key, level, seen: now.monotonic };
        match is_shared {
            true => lock(&self.contents.overflow).put(key, level, entry.seen),
            false if self.lock(key).level(key).is_some() || self.reserve() => {
                self.lock(key).put(key, level, entry.seen)
            }
            false => drop(self.contents.counts.forgiven.fetch_add(1, Relaxed)),
        }
        Some(())
    }
}
