//! Proxies in front of Envoy whose word about their clients is taken, and which client a request is from by it.

use super::forwarded::ForwardedHeader;
use super::{IpNet, contains};
use std::net::IpAddr;

/// More proxies than a request passes. What names more is not read to its end.
const MOST_HOPS: usize = 64;

/// Who is believed, and what they write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxies {
    /// The networks of the proxies.
    pub trusted: Vec<IpNet>,
    /// The header in which they note whom they had a request from. Any other is anybody's.
    pub header: ForwardedHeader,
}

impl Proxies {
    /// The client of a request that came from `peer`, with these `lines` of the header.
    ///
    /// Each proxy adds whom it had the request from at the right, so a trusted one is believed about the entry that it
    /// added, and no further. That leads from the peer to the left, to the first address that is no trusted proxy's:
    /// that is the client. What stands left of it, the client wrote. If all are trusted, the leftmost began it.
    ///
    /// None where a trusted proxy has noted no address that can be read: there is no entry, it is `unknown`, a name in
    /// place of an address, or garbage. To go on behind it would believe what an unknown hop wrote.
    pub fn client<'h>(&self, peer: IpAddr, lines: impl DoubleEndedIterator<Item = &'h [u8]>) -> Option<IpAddr> {
        if !contains(&self.trusted, peer) {
            return Some(peer);
        }
        let mut leftmost = None;
        for (hop, address) in self.header.addresses(lines).enumerate() {
            let address = address.filter(|_| hop < MOST_HOPS)?;
            if !contains(&self.trusted, address) {
                return Some(address);
            }
            leftmost = Some(address);
        }
        leftmost
    }
}
