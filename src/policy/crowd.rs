//! Whether nearly all requests seem to come from one address that is no client's: then everybody shares one allowance,
//! and nobody said where the clients' addresses stand.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// One of so many requests is looked at.
const EACH: u64 = 16;

/// So many looks are a round. A crowd is an address that has so many looks more than all others: 19 of 20.
const ROUND: u32 = 1000;
const CROWD: u32 = 900;

/// Watches for one address that most requests share.
#[derive(Debug, Default)]
pub struct Crowd {
    requests: AtomicU64,
    round: Mutex<Round>,
}

#[derive(Debug, Default)]
struct Round {
    address: Option<IpAddr>,
    looks: u32,
    /// Looks at the address less looks at others: a majority keeps it above 0.
    votes: u32,
    found: Option<IpAddr>,
}

impl Crowd {
    /// Takes a request's client into account. It waits for nobody.
    pub fn note(&self, client: IpAddr) {
        if !self.requests.fetch_add(1, Relaxed).is_multiple_of(EACH) {
            return;
        }
        let Ok(mut round) = self.round.try_lock() else { return };
        round.vote(client);
        if round.looks == ROUND {
            let found = round.address.filter(|address| round.votes >= CROWD && is_private(*address));
            *round = Round { found, ..Round::default() };
        }
    }

    /// The private address that nearly all requests of the last round came from.
    pub fn found(&self) -> Option<IpAddr> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner).found
    }
}

impl Round {
    fn vote(&mut self, client: IpAddr) {
        self.looks += 1;
        match (self.address == Some(client), self.votes) {
            (true, votes) => self.votes = votes + 1,
            (false, 0) => (self.address, self.votes) = (Some(client), 1),
            (false, votes) => self.votes = votes - 1,
        }
    }
}

/// Whether an address is of a network that no client of the internet is in.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [first, second, ..] = v4.octets();
            let is_shared = first == 100 && (64..128).contains(&second);
            v4.is_private() || v4.is_loopback() || v4.is_link_local() || is_shared
        }
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}
