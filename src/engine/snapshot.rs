//! The state of an engine as bytes, for the next process to go on with.
//!
//! ```text
//! mark 8, form 4, written at 8 (ns since 1970)
//! sections: kind 1, secret 16, chunks (callers)
//!           kind 1, name, what it counts by 8, at which rate 8, secret 16, chunks (limits and lockouts)
//! end 0, SHA-256 of all before it 32
//! ```
//!
//! A chunk stands behind its length, 4 bytes, and an empty one ends a section. Keys are hashes, as they are in the tables; the
//! secrets that make them are in the file, which nobody but its owner may read. Times are what is left of them, so that they
//! go on while nobody is there.

use super::Engine;
use super::limits::{Limits, terms};
use super::lockouts::Lockouts;
use crate::store::caller::Caller;
use crate::store::key::{KeySpace, Secret};
use crate::store::meter::Moment;
use crate::store::strikes::written::Written;
use crate::store::written::{Rest, Since};
use aws_lc_rs::digest;
use std::io::{self, Write};

const MARK: &[u8; 8] = b"TOLLGATE";

/// The form that is written, and the only one that is read.
const FORM: u32 = 1;

/// How far a clock may have been set back meanwhile: a correction, which makes what is owed last so much longer.
const SKEW: u64 = 60 * 1_000_000_000;

const CALLERS: u8 = 1;
const LIMIT: u8 = 2;
const LOCKOUT: u8 = 3;
const END: u8 = 0;

/// Why a snapshot is not gone on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// Something else wrote it.
    #[error("this is no snapshot of Tollgate")]
    Foreign,
    /// Another version wrote it.
    #[error("this snapshot is of form {0}, and this version reads form {FORM}")]
    Form(u32),
    /// It is not whole, or was changed.
    #[error("this snapshot is damaged: its checksum is another")]
    Damaged,
    /// The calendar was set back since.
    #[error("this snapshot was written {0} s in the future: the clock was set back")]
    Future(u64),
}

/// What a snapshot brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Callers.
    pub callers: usize,
    /// How old it is, in nanoseconds.
    pub age: u64,
    /// Limits and lockouts that the policy no longer has, or that count by something else now.
    pub left_out: Vec<String>,
}

impl Engine {
    /// Writes the state. No request waits for it longer than for a few keys. All times are as of the start, whenever a key is
    /// come to: who restores them knows no other.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write_snapshot(&self, out: impl Write) -> io::Result<()> {
        let mut out = Hashed { out, context: digest::Context::new(&digest::SHA256) };
        out.put(MARK)?;
        out.put(&FORM.to_le_bytes())?;
        let (written, now, moment) = (self.calendar(), self.now(), self.moment());
        out.put(&written.to_le_bytes())?;
        out.put(&[CALLERS])?;
        out.put(&self.limiter.secret())?;
        self.limiter.write(now, |bytes| out.chunk(bytes))?;
        out.end()?;
        self.limits.write(moment, &mut out)?;
        self.lockouts.write(moment, &mut out)?;
        out.put(&[END])?;
        let Hashed { mut out, context } = out;
        out.write_all(context.finish().as_ref())
    }

    /// Goes on with what a snapshot holds, before the first request.
    ///
    /// # Errors
    ///
    /// [`Unusable`], if it is not to be gone on with.
    pub fn restore(&mut self, snapshot: &[u8]) -> Result<Restored, Unusable> {
        let (mut rest, written) = open(snapshot)?;
        let unix = self.calendar();
        let ahead = written.saturating_sub(unix);
        if ahead > SKEW {
            return Err(Unusable::Future(ahead / 1_000_000_000));
        }
        let elapsed = unix.saturating_sub(written);
        let since = Since { now: self.now().nanos(), elapsed };
        let mut restored = Restored { age: elapsed, ..Restored::default() };
        self.read(&mut rest, since, &mut restored).ok_or(Unusable::Damaged)?;
        self.take_over();
        Ok(restored)
    }

    fn read(&mut self, rest: &mut Rest<'_>, since: Since, restored: &mut Restored) -> Option<()> {
        let now = self.moment();
        loop {
            match rest.byte()? {
                END => return rest.0.is_empty().then_some(()),
                CALLERS => {
                    self.limiter.take_secret(rest.take(16)?.try_into().ok()?);
                    each_chunk(rest, |chunk| {
                        while !chunk.0.is_empty() {
                            self.limiter.put(Caller::read(chunk, since)?);
                            restored.callers += 1;
                        }
                        Some(())
                    })?;
                }
                kind @ (LIMIT | LOCKOUT) => {
                    let section = Section::read(rest)?;
                    let is_known = match kind {
                        LIMIT => self.limits.read(&section, rest, since, now)?,
                        _ => self.lockouts.read(&section, rest, since, now)?,
                    };
                    if !is_known {
                        restored.left_out.push(section.name.to_owned());
                        each_chunk(rest, |_| Some(()))?;
                    }
                }
                _ => return None,
            }
        }
    }
}

/// The sections of a snapshot, and when it was written.
fn open(snapshot: &[u8]) -> Result<(Rest<'_>, u64), Unusable> {
    let mut rest = Rest(snapshot);
    if rest.take(MARK.len()) != Some(MARK) {
        return Err(Unusable::Foreign);
    }
    let form = rest.take(4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes).ok_or(Unusable::Damaged)?;
    if form != FORM {
        return Err(Unusable::Form(form));
    }
    let (whole, code) = snapshot.split_last_chunk::<32>().ok_or(Unusable::Damaged)?;
    if digest::digest(&digest::SHA256, whole).as_ref() != code {
        return Err(Unusable::Damaged);
    }
    let mut rest = Rest(&whole[MARK.len() + 4..]);
    let written = rest.number().ok_or(Unusable::Damaged)?;
    Ok((rest, written))
}

/// Whose state follows.
struct Section<'b> {
    name: &'b str,
    /// What it counts by, so that no key means another.
    counts_by: u64,
    /// The rate of a limit.
    terms: u64,
    secret: Secret,
}

impl<'b> Section<'b> {
    fn read(rest: &mut Rest<'b>) -> Option<Self> {
        let (name, counts_by, terms) = (rest.text()?, rest.number()?, rest.number()?);
        Some(Self { name, counts_by, terms, secret: rest.take(16)?.try_into().ok()? })
    }

    /// The key space of a rule of this name that counts by the same.
    fn space(&self, name: &str, counts_by: u64) -> Option<KeySpace> {
        (self.name == name && self.counts_by == counts_by).then(|| KeySpace::with(name, self.secret))
    }
}

impl Limits {
    fn write<W: Write>(&self, now: Moment, out: &mut Hashed<W>) -> io::Result<()> {
        for built in self.built() {
            let (counts_by, terms) = (built.counts_by, terms(&built.limit));
            out.section(LIMIT, &built.limit.name, [counts_by, terms], built.space.secret)?;
            built.table.write(now, |bytes| out.chunk(bytes))?;
            out.end()?;
        }
        Ok(())
    }

    /// Reads the allowances of a limit; false if there is none of the kind.
    fn read(&mut self, section: &Section<'_>, rest: &mut Rest<'_>, since: Since, now: Moment) -> Option<bool> {
        let found = |at: &usize| section.space(&self.built()[*at].limit.name, self.built()[*at].counts_by);
        let Some((at, space)) = (0..self.built().len()).find_map(|at| Some((at, found(&at)?))) else {
            return Some(false);
        };
        let built = self.built_mut(at);
        built.space = space;
        each_chunk(rest, |chunk| {
            while !chunk.0.is_empty() {
                built.table.read(chunk, since, now)?;
            }
            Some(())
        })?;
        // At another rate nobody owes more than a request can owe.
        if section.terms != terms(&built.limit) {
            built.table.clamp(now);
        }
        Some(true)
    }
}

impl Lockouts {
    fn write<W: Write>(&self, now: Moment, out: &mut Hashed<W>) -> io::Result<()> {
        for built in self.built() {
            out.section(LOCKOUT, &built.lockout.name, [built.counts_by, 0], built.space.secret)?;
            built.table.write(built.window.span(now), |bytes| out.chunk(bytes))?;
            out.end()?;
        }
        Ok(())
    }

    /// Reads the strikes of a lockout; false if there is none of the kind.
    fn read(&mut self, section: &Section<'_>, rest: &mut Rest<'_>, since: Since, now: Moment) -> Option<bool> {
        let found = |at: &usize| section.space(&self.built()[*at].lockout.name, self.built()[*at].counts_by);
        let Some((at, space)) = (0..self.built().len()).find_map(|at| Some((at, found(&at)?))) else {
            return Some(false);
        };
        let built = self.built_mut(at);
        built.space = space;
        let span = built.window.span(now);
        // What is left of a window of the calendar is counted on the calendar.
        let (mut written, since) = (Vec::new(), Since { now: span.now, ..since });
        each_chunk(rest, |chunk| {
            while !chunk.0.is_empty() {
                written.push(Written::read(chunk, since)?);
            }
            Some(())
        })?;
        built.table.fill(written, span);
        Some(true)
    }
}

/// Hands the chunks of a section to `read`.
fn each_chunk<'b>(rest: &mut Rest<'b>, mut read: impl FnMut(&mut Rest<'b>) -> Option<()>) -> Option<()> {
    loop {
        let length = u32::from_le_bytes(rest.take(4)?.try_into().ok()?);
        if length == 0 {
            return Some(());
        }
        read(&mut Rest(rest.take(usize::try_from(length).ok()?)?))?;
    }
}

/// What is written, and its hash.
struct Hashed<W> {
    out: W,
    context: digest::Context,
}

impl<W: Write> Hashed<W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.context.update(bytes);
        self.out.write_all(bytes)
    }

    fn section(&mut self, kind: u8, name: &str, numbers: [u64; 2], secret: Secret) -> io::Result<()> {
        // The name of a rule has at most 64 bytes.
        self.put(&[kind, name.len() as u8])?;
        self.put(name.as_bytes())?;
        for number in numbers {
            self.put(&number.to_le_bytes())?;
        }
        self.put(&secret)
    }

    /// Writes what has come together, if there is anything.
    fn chunk(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        let length = u32::try_from(bytes.len()).map_err(|_| io::Error::other("a table is too large to be written"))?;
        if length > 0 {
            self.put(&length.to_le_bytes())?;
            self.put(bytes)?;
            bytes.clear();
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        self.put(&0_u32.to_le_bytes())
    }
}

/// What a rule counts by, as a number that is the same in every process.
pub(super) fn fingerprint(counts_by: &str) -> u64 {
    let hash = digest::digest(&digest::SHA256, counts_by.as_bytes());
    let mut start = [0; 8];
    start.copy_from_slice(&hash.as_ref()[..8]);
    u64::from_le_bytes(start)
}
