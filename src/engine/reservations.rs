//! Reservations: what a request carries through Envoy, so that its outcome can be told to the rules that wait for it.
//!
//! A reservation needs no table. It says itself which rules wait, for which key which strike, and until when; a
//! message authentication code (HMAC-SHA-256 under a secret of this process) keeps others from making one. What was settled
//! is known for as long as a reservation lives, so that none counts twice.

use super::limits::Owed;
use crate::store::meter::Moment;
use crate::store::strikes::Strike;
use crate::store::written::{Rest, put};
use crate::time::{Now, nanos};
use aws_lc_rs::{hmac, rand};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The form of a reservation; its first byte.
const FORM: u8 = 1;

/// Bytes of its code.
const CODE: usize = 32;

/// Makes reservations, and reads those that it made.
pub struct Reservations {
    /// Tells the reservations of this process from those of others.
    instance: [u8; 8],
    secret: hmac::Key,
    next: AtomicU64,
    /// The longest time that one was good for, in nanoseconds.
    longest: AtomicU64,
    told: Mutex<Told>,
}

/// How long after its time an outcome still charges, and makes a provisional attempt count, in nanoseconds: it takes an
/// answer as slow as that to get off, since Envoy tells of an answer once it is whole.
const OVERTIME: u64 = 60 * 60 * 1_000_000_000;

/// What some rules wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reservation {
    number: u64,
    until: u64,
    /// Whether the request may be a gRPC call.
    pub is_grpc: bool,
    pub holds: Holds,
}

/// What rules hold, by their names.
pub(crate) type Holds = SmallVec<[(String, Hold); 2]>;

/// What one rule holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    Attempt(Strike),
    Charge(Owed),
}

/// Why a reservation is not honoured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Its outcome was told before.
    Repeated,
    /// Its time is over.
    Late,
    /// Another process made it, or this one before it was started again.
    Foreign,
    /// Nobody made it.
    Forged,
}

/// The reservations whose outcomes were told: since the last turn, and since the one before.
#[derive(Default)]
struct Told {
    recent: Numbers,
    before: Numbers,
    turned: u64,
}

/// A set of numbers that are given out in turn: a bit for each, in pages.
#[derive(Default)]
struct Numbers(HashMap<u64, Box<[u64; PAGE]>>);

/// Words of a page.
const PAGE: usize = 64;

impl Default for Reservations {
    fn default() -> Self {
        let mut key = [0; 32];
        assert!(rand::fill(&mut key).is_ok(), "the system has no randomness: reservations could be made up");
        let secret = hmac::Key::new(hmac::HMAC_SHA256, &key);
        let mut instance = [0; 8];
        instance.copy_from_slice(&hmac::sign(&secret, b"instance").as_ref()[..8]);
        Self { instance, secret, next: AtomicU64::new(0), longest: AtomicU64::new(0), told: Mutex::default() }
    }
}

impl Reservations {
    /// The text of a reservation that is good for `timeout` from `now` on.
    pub(crate) fn make(&self, now: Now, timeout: Duration, is_grpc: bool, holds: Holds) -> String {
        let timeout = nanos(timeout);
        let until = now.nanos().saturating_add(timeout);
        let reservation = Reservation { number: self.next.fetch_add(1, Relaxed), until, is_grpc, holds };
        self.longest.fetch_max(timeout.saturating_add(reservation.overtime()), Relaxed);
        let mut bytes = vec![FORM];
        bytes.extend_from_slice(&self.instance);
        reservation.write(&mut bytes);
        let code = hmac::sign(&self.secret, &bytes);
        bytes.extend_from_slice(code.as_ref());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// How many were made.
    pub(crate) fn made(&self) -> u64 {
        self.next.load(Relaxed)
    }

    /// Reads the text of a reservation whose outcome is told at `now`. It can be read once.
    ///
    /// # Errors
    ///
    /// [`Refused`], if it is not to be honoured.
    pub(crate) fn open(&self, text: &str, now: Now) -> Result<Reservation, Refused> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| Refused::Forged)?;
        let (signed, code) = bytes.split_last_chunk::<CODE>().ok_or(Refused::Forged)?;
        let (&form, rest) = signed.split_first().ok_or(Refused::Forged)?;
        let (instance, body) = rest.split_first_chunk::<8>().ok_or(Refused::Forged)?;
        if form != FORM || *instance != self.instance {
            return Err(Refused::Foreign);
        }
        hmac::verify(&self.secret, signed, code).map_err(|_| Refused::Forged)?;
        let reservation = Reservation::read(body).ok_or(Refused::Forged)?;
        let now = now.nanos();
        if now > reservation.until.saturating_add(reservation.overtime()) {
            return Err(Refused::Late);
        }
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.add(reservation.number, now, self.longest.load(Relaxed)) {
            Ok(reservation)
        } else {
            Err(Refused::Repeated)
        }
    }
}

impl Told {
    /// Notes a number; false if it is noted already. Nothing is forgotten within `timeout`.
    fn add(&mut self, number: u64, now: u64, timeout: u64) -> bool {
        if now.saturating_sub(self.turned) > timeout {
            self.before = std::mem::take(&mut self.recent);
            self.turned = now;
        }
        !self.before.contains(number) && self.recent.insert(number)
    }
}

impl Numbers {
    /// The page of a number, the word in it, and the bit in that.
    fn place(number: u64) -> (u64, usize, u64) {
        let word = number / 64;
        (word / PAGE as u64, (word % PAGE as u64) as usize, 1 << (number % 64))
    }

    fn contains(&self, number: u64) -> bool {
        let (page, word, bit) = Self::place(number);
        self.0.get(&page).is_some_and(|words| words[word] & bit != 0)
    }

    /// Adds a number; false if it is there already.
    fn insert(&mut self, number: u64) -> bool {
        let (page, word, bit) = Self::place(number);
        let words = self.0.entry(page).or_insert_with(|| Box::new([0; PAGE]));
        let is_new = words[word] & bit == 0;
        words[word] |= bit;
        is_new
    }
}

impl Reservation {
    /// Whether the time is over in which an outcome takes back attempts.
    pub(crate) fn is_late(&self, now: Moment) -> bool {
        now.monotonic > self.until
    }

    fn overtime(&self) -> u64 {
        let is_free_until_told = |hold: &Hold| match hold {
            Hold::Charge(_) => true,
            Hold::Attempt(strike) => strike.provisional,
        };
        if self.holds.iter().any(|(_, hold)| is_free_until_told(hold)) { OVERTIME } else { 0 }
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        [self.number, self.until].into_iter().for_each(|number| put(bytes, number));
        bytes.push(self.is_grpc.into());
        for (rule, hold) in &self.holds {
            // The name of a rule has at most 64 bytes.
            bytes.push(rule.len() as u8);
            bytes.extend_from_slice(rule.as_bytes());
            match hold {
                Hold::Attempt(Strike { table, key, generation, end, provisional, engaged }) => {
                    bytes.push(u8::from(*engaged) | u8::from(*provisional) << 1);
                    bytes.extend_from_slice(&key.to_bytes());
                    [table, generation, end].into_iter().for_each(|number| put(bytes, *number));
                }
                Hold::Charge(Owed { key, wider, cost, table }) => {
                    bytes.push(CHARGE);
                    bytes.extend_from_slice(&key.to_bytes());
                    bytes.extend_from_slice(&wider.to_bytes());
                    [cost, table].into_iter().for_each(|number| put(bytes, *number));
                }
            }
        }
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut rest = Rest(bytes);
        let (number, until, is_grpc) = (rest.number()?, rest.number()?, rest.byte()? != 0);
        let mut holds = Holds::new();
        while !rest.0.is_empty() {
            let rule = rest.text()?.to_owned();
            let hold = match rest.byte()? {
                CHARGE => Hold::Charge(Owed {
                    key: rest.key()?,
                    wider: rest.key()?,
                    cost: rest.number()?,
                    table: rest.number()?,
                }),
                flags => Hold::Attempt(Strike {
                    engaged: flags & 1 != 0,
                    provisional: flags & 2 != 0,
                    key: rest.key()?,
                    table: rest.number()?,
                    generation: rest.number()?,
                    end: rest.number()?,
                }),
            };
            holds.push((rule, hold));
        }
        Some(Self { number, until, is_grpc, holds })
    }
}

/// Marks a charge; an attempt is marked by whether it engaged its lockout, and whether it is provisional.
const CHARGE: u8 = 4;
