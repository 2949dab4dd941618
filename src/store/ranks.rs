//! Entries by key that also stand in queues, in the order of their last use: the first of a queue is found at once, and
//! nothing is ever scanned or moved as a whole.
//!
//! Entries live in slots of chunks that never move. A slot holds the numbers of its neighbours in its queue, and many
//! small index tables lead from keys to slots, so that one that doubles holds nobody up for long.

use crate::store::key::Key;
use crate::store::swept::Keyed;
use hashbrown::HashTable;

/// Slots of a chunk.
const CHUNK: usize = 1024;

/// Keys for each index table, and the most tables.
const KEYS_A_TABLE: usize = 128;
const MOST_TABLES: usize = 1 << 20;

/// No slot.
const NONE: u32 = u32::MAX;

/// Entries that each stand in one of `QUEUES` queues.
pub(crate) struct Ranks<T, const QUEUES: usize> {
    index: Box<[HashTable<Place>]>,
    chunks: Vec<Vec<Slot<T>>>,
    free: Vec<u32>,
    queues: [Queue; QUEUES],
}

/// Where the entry of a key is. It holds the hash, so that a table that grows need not look at the entries.
#[derive(Clone, Copy)]
struct Place {
    hash: u64,
    at: u32,
}

struct Slot<T> {
    entry: T,
    queue: u8,
    before: u32,
    behind: u32,
}

#[derive(Clone, Copy)]
struct Queue {
    first: u32,
    last: u32,
    len: usize,
}

impl<T: Keyed, const QUEUES: usize> Ranks<T, QUEUES> {
    /// No entries, with room for some `capacity` of them to be found fast.
    pub(crate) fn new(capacity: usize) -> Self {
        let tables = (capacity / KEYS_A_TABLE).clamp(1, MOST_TABLES);
        Self {
            index: (0..tables).map(|_| HashTable::new()).collect(),
            chunks: Vec::new(),
            free: Vec::new(),
            queues: [Queue { first: NONE, last: NONE, len: 0 }; QUEUES],
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.queues.iter().map(|queue| queue.len).sum()
    }

    /// How many stand in `queue`.
    pub(crate) fn len_of(&self, queue: usize) -> usize {
        self.queues[queue].len
    }

    /// The place of `key`, if it has an entry.
    pub(crate) fn find(&self, key: Key) -> Option<u32> {
        let table = &self.index[key.part(self.index.len())];
        table.find(key.bucket(), |place| self.get(place.at).key() == key).map(|place| place.at)
    }

    pub(crate) fn get(&self, at: u32) -> &T {
        &self.slot(at).entry
    }

    pub(crate) fn get_mut(&mut self, at: u32) -> &mut T {
        &mut self.slot_mut(at).entry
    }

    /// The queue that an entry stands in.
    pub(crate) fn queue(&self, at: u32) -> usize {
        self.slot(at).queue.into()
    }

    /// The entry of `queue` that was used least recently.
    pub(crate) fn first(&self, queue: usize) -> Option<u32> {
        Some(self.queues[queue].first).filter(|&at| at != NONE)
    }

    /// The entries of the chunk `number`, each with its queue; `None` behind the last one.
    #[cfg(feature = "server")]
    pub(crate) fn chunk(&self, number: usize) -> Option<impl Iterator<Item = (&T, usize)>> {
        let slots = self.chunks.get(number)?.iter().zip(number * CHUNK..);
        let is_live = |(slot, at): &(&Slot<T>, usize)| self.find(slot.entry.key()) == Some(*at as u32);
        Some(slots.filter(is_live).map(|(slot, _)| (&slot.entry, slot.queue.into())))
    }

    /// Adds an entry whose key has none, at the end of `queue`, and says where.
    pub(crate) fn add(&mut self, entry: T, queue: usize) -> u32 {
        let key = entry.key();
        let at = self.store(Slot { entry, queue: queue as u8, before: NONE, behind: NONE });
        let place = Place { hash: key.bucket(), at };
        self.index[key.part(self.index.len())].insert_unique(place.hash, place, |place| place.hash);
        self.join(at, queue);
        at
    }

    /// Moves an entry to the end of `queue`.
    pub(crate) fn move_to(&mut self, at: u32, queue: usize) {
        self.leave(at);
        self.join(at, queue);
    }

    /// Removes an entry.
    pub(crate) fn remove(&mut self, at: u32) {
        let key = self.get(at).key();
        self.leave(at);
        if let Ok(found) = self.index[key.part(self.index.len())].find_entry(key.bucket(), |place| place.at == at) {
            found.remove();
        }
        self.free.push(at);
    }

    fn store(&mut self, slot: Slot<T>) -> u32 {
        if let Some(at) = self.free.pop() {
            *self.slot_mut(at) = slot;
            return at;
        }
        let is_full = |chunk: &Vec<Slot<T>>| chunk.len() == CHUNK;
        if self.chunks.last().is_none_or(is_full) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        let number = self.chunks.len() - 1;
        self.chunks[number].push(slot);
        (number * CHUNK + self.chunks[number].len() - 1) as u32
    }

    fn leave(&mut self, at: u32) {
        let Slot { queue, before, behind, .. } = *self.slot(at);
        self.queues[usize::from(queue)].len -= 1;
        match before {
            NONE => self.queues[usize::from(queue)].first = behind,
            before => self.slot_mut(before).behind = behind,
        }
        match behind {
            NONE => self.queues[usize::from(queue)].last = before,
            behind => self.slot_mut(behind).before = before,
        }
    }

    fn join(&mut self, at: u32, queue: usize) {
        self.queues[queue].len += 1;
        let last = std::mem::replace(&mut self.queues[queue].last, at);
        match last {
            NONE => self.queues[queue].first = at,
            last => self.slot_mut(last).behind = at,
        }
        let slot = self.slot_mut(at);
        (slot.queue, slot.before, slot.behind) = (queue as u8, last, NONE);
    }

    fn slot(&self, at: u32) -> &Slot<T> {
        &self.chunks[at as usize / CHUNK][at as usize % CHUNK]
    }

    fn slot_mut(&mut self, at: u32) -> &mut Slot<T> {
        &mut self.chunks[at as usize / CHUNK][at as usize % CHUNK]
    }
}
