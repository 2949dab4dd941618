//! What state is kept under: a keyed 128-bit hash, so that no name of a caller is stored and nobody outside the
//! process can choose names that collide.

use siphasher::sip128::{Hasher128, SipHasher13};
use std::hash::{BuildHasher, Hasher, RandomState};

/// The keyed hash of a name in its key space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key([u64; 2]);

/// A secret drawn from the system's randomness. Hashes under the standard library's random SipHash keys are as secret as
/// those keys.
pub(crate) fn secret() -> Secret {
    let random = RandomState::new();
    let mut secret = [0; 16];
    secret[..8].copy_from_slice(&random.hash_one(0).to_le_bytes());
    secret[8..].copy_from_slice(&random.hash_one(1).to_le_bytes());
    secret
}

/// Makes the keys of one key space. Keys of different spaces never meet.
#[derive(Clone)]
pub(crate) struct KeySpace {
    hasher: SipHasher13,
    #[cfg_attr(not(feature = "server"), expect(dead_code, reason = "the library writes nothing down"))]
    pub secret: Secret,
}

/// What a key space's hashes cannot be made without.
pub(crate) type Secret = [u8; 16];

impl KeySpace {
    /// The key space `name`, under a secret drawn from the system's randomness.
    pub(crate) fn new(name: &str) -> Self {
        Self::with(name, secret())
    }

    /// The key space `name` under this secret.
    pub(crate) fn with(name: &str, secret: Secret) -> Self {
        let mut hasher = SipHasher13::new_with_key(&secret);
        hasher.write_usize(name.len());
        hasher.write(name.as_bytes());
        Self { hasher, secret }
    }

    /// The key of `name`, any bytes, the empty ones included.
    pub(crate) fn key(&self, name: &[u8]) -> Key {
        let mut hasher = self.hasher;
        hasher.write(name);
        Key::of(&hasher)
    }

    /// The key of several parts, of which each is any bytes or missing. Lists that differ in anything have different
    /// keys. Parts that stand for one another, such as a principal and an address, are told apart by a part before
    /// them that says which it is.
    pub(crate) fn key_of<'p>(&self, parts: impl IntoIterator<Item = Option<&'p [u8]>>) -> Key {
        let mut hasher = self.hasher;
        encode(parts, |bytes| hasher.write(bytes));
        Key::of(&hasher)
    }
}

/// Hands the bytes of several parts to `write`: of a missing one a zero, of any other its length and one and then
/// itself. It can be read back, so no two lists have the same bytes.
fn encode<'p>(parts: impl IntoIterator<Item = Option<&'p [u8]>>, mut write: impl FnMut(&[u8])) {
    for part in parts {
        let length = part.map_or(0, |part| part.len() as u64 + 1);
        write(&length.to_le_bytes());
        part.into_iter().for_each(&mut write);
    }
}

impl Key {
    /// The key of what all share that find no room; no name hashes to it but by a chance of 2^-128.
    pub(crate) const SHARED: Self = Self([0; 2]);

    #[cfg(feature = "server")]
    pub(crate) fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.0[0]) | u128::from(self.0[1]) << 64).to_le_bytes()
    }

    #[cfg(feature = "server")]
    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Self {
        let bits = u128::from_le_bytes(bytes);
        Self([bits as u64, (bits >> 64) as u64])
    }

    /// Chooses among `parts`, independently of [`Key::bucket`].
    pub(crate) fn part(self, parts: usize) -> usize {
        ((u128::from(self.0[0]) * parts as u128) >> 64) as usize
    }

    fn of(hasher: &SipHasher13) -> Self {
        let hash = hasher.finish128();
        Self([hash.h1, hash.h2])
    }

    /// Chooses among `shards`, independently of [`Key::bucket`], and on purpose not evenly: the first gets 1.5 times
    /// the mean, falling to 0.75 times for the last. A table doubles when it is full; if all shards held the same
    /// number, all would double at the same moment, and the memory per caller would swing by a factor of two.
    pub(crate) fn shard(self, shards: u32) -> usize {
        const ONE: u64 = 1 << 31;
        let uniform = self.0[0] >> 33;
        // x = u (2 + u) / 3 for u in [0, 1), in units of 2^-62.
        let skewed = uniform * (2 * ONE + uniform) / 3;
        (((skewed >> 30) * u64::from(shards)) >> 32) as usize
    }

    /// Chooses within a shard's table.
    pub(crate) fn bucket(self) -> u64 {
        self.0[1]
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}{:016x}", self.0[0], self.0[1])
    }
}

#[cfg(test)]
mod tests;
