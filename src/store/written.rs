//! State as bytes, for another process to go on with: numbers little-endian, times as what is left of them or how long ago.
//!
//! ```text
//! allowance   count 8, window 8, debt 8, age 8, of a policy 1      (ns)
//! caller      key 16, number of allowances 1, each allowance
//! level       debt 8, 0 8 (rolling);  index 8, units 8 (fixed)
//! ```

use crate::store::key::Key;

/// How the time of the writer is that of the reader, in nanoseconds: what the reader's clock says, and how long ago the
/// bytes were written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Since {
    pub now: u64,
    pub elapsed: u64,
}

impl Since {
    /// When something is over of which so much was left.
    pub(crate) fn until(self, left: u64) -> u64 {
        self.now.saturating_add(left.saturating_sub(self.elapsed))
    }

    /// When something was that was so long ago.
    pub(crate) fn ago(self, age: u64) -> u64 {
        self.now.saturating_sub(age.saturating_add(self.elapsed))
    }
}

/// Appends a number.
pub(crate) fn put(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

/// What is left to read.
pub(crate) struct Rest<'b>(pub &'b [u8]);

impl<'b> Rest<'b> {
    pub(crate) fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    pub(crate) fn key(&mut self) -> Option<Key> {
        self.take(16)?.try_into().ok().map(Key::from_bytes)
    }

    /// A text behind its length.
    pub(crate) fn text(&mut self) -> Option<&'b str> {
        let length = self.byte()?;
        std::str::from_utf8(self.take(length.into())?).ok()
    }
}
