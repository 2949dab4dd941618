//! The field table's section `client`: where the address of a client is read.

use super::kinds::Kind;
use super::response::METADATA_KEY;
use super::section::Section;
use crate::policy::{ClientAddress, ClientRules, MissingClient};

const ON_MISSING: Kind<MissingClient> = Kind::Word(&[("refuse", MissingClient::Refuse), ("peer", MissingClient::Peer)]);

/// The section `client`.
pub fn client(client: &mut Section<'_, '_>) -> Option<ClientRules> {
    let address = client.section_or(
        "address",
        "{ rpc_metadata: x-client-ip }",
        &PEER,
        "where the address of a client stands",
        rpc_metadata,
    );
    let on_missing = client.field(
        "on_missing",
        "refuse",
        &ON_MISSING,
        "where a rule asks for the address and it is missing or unreadable: refuse with 503, or take the peer",
    );
    Some(ClientRules { address: address?, on_missing: on_missing? })
}

const PEER: Kind<ClientAddress> = Kind::Word(&[("peer", ClientAddress::Peer)]);

fn rpc_metadata(address: &mut Section<'_, '_>) -> Option<ClientAddress> {
    let key = "rpc_metadata";
    let about = "the key of the gRPC metadata in which Envoy sends it";
    address.field(key, "x-client-ip", &METADATA_KEY, about).map(ClientAddress::RpcMetadata)
}
