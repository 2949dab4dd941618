//! A caller as bytes: what it owes, and how long ago each rate was brought.

use super::{Caller, Seen, State};
use crate::rate::Rate;
use crate::store::gcra::debt;
use crate::store::written::{Rest, Since, put};
use crate::time::Now;
use smallvec::SmallVec;
use std::time::Duration;

impl Caller {
    /// Appends the caller as it is at `now`; one that is worth nothing is left out.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>, now: Now) {
        // More allowances than a byte counts are of nobody who means well.
        let worth = || self.allowances.iter().filter(|state| !state.is_expired(now)).take(u8::MAX.into());
        let number = worth().count();
        if number == 0 {
            return;
        }
        bytes.extend_from_slice(&self.key.to_bytes());
        bytes.push(number as u8);
        for state in worth() {
            put(bytes, state.rate.count());
            put(bytes, state.rate.nanos());
            put(bytes, debt(state.tat, now.nanos()));
            let age = if state.is_gone() { u64::MAX } else { now.nanos().saturating_sub(state.seen.at()) };
            put(bytes, age);
            bytes.push(state.seen.is_of_policy().into());
        }
    }

    /// Reads a caller; `None` if the bytes are none.
    pub(crate) fn read(rest: &mut Rest<'_>, since: Since) -> Option<Self> {
        let (key, number) = (rest.key()?, rest.byte()?);
        let mut allowances = SmallVec::new();
        for _ in 0..number {
            let (count, window) = (rest.number()?, rest.number()?);
            let rate = Rate::new(count, Duration::from_nanos(window)).ok()?;
            let (tat, age, is_of_policy) = (since.until(rest.number()?), rest.number()?, rest.byte()? != 0);
            let seen = if age == u64::MAX { Seen::GONE } else { Seen::new(since.ago(age), !is_of_policy) };
            allowances.push(State { rate, tat, seen });
        }
        Some(Self { key, allowances })
    }
}
