//! The field table's section `client`: where the address of a client is read.

use super::kinds::{Kind, UNITS};
use super::node::{Node, Tree};
use super::patterns::MAYBE_NETWORKS;
use super::response::METADATA_KEY;
use super::section::Section;
use crate::network::{forwarded::ForwardedHeader, proxies::Proxies};
use crate::policy::{ClientAddress, ClientRules, MissingClient};

const ON_MISSING: Kind<MissingClient> = Kind::Word(&[("refuse", MissingClient::Refuse), ("peer", MissingClient::Peer)]);

const PEER: Kind<ClientAddress> = Kind::Word(&[("peer", ClientAddress::Peer)]);

const HEADER: Kind<ForwardedHeader> =
    Kind::Word(&[("x_forwarded_for", ForwardedHeader::XForwardedFor), ("forwarded", ForwardedHeader::Forwarded)]);

const IPV6_PREFIX: Kind<u8> = Kind::Is(
    "a whole number from 1 to 128",
    r#"{"type": "integer", "minimum": 1, "maximum": 128}"#,
    |value| match UNITS.read(value).map(u8::try_from)? {
        Ok(length @ 1..=128) => Some(length),
        _ => value.wrong_kind(),
    },
);

/// The section `client`, and whether the file says where clients' addresses stand.
pub struct Client {
    pub rules: ClientRules,
    pub says_where: bool,
}

/// The section `client`.
pub fn client(client: &mut Section<'_, '_>) -> Option<Client> {
    let address = client.section_or(
        "address",
        "{ rpc_metadata: x-client-ip }",
        &PEER,
        "where the address of a client stands, unless proxies are trusted",
        rpc_metadata,
    );
    let on_missing = client.field(
        "on_missing",
        "refuse",
        &ON_MISSING,
        "where a rule asks for the address and it is missing or unreadable: refuse with 503, or take the peer",
    );
    let proxies = proxies(client);
    let ipv6_prefix = client.field(
        "ipv6_prefix",
        "64",
        &IPV6_PREFIX,
        "the bits of an IPv6 address that tell one client's network from another's",
    );
    let address = proxies?.map(ClientAddress::Behind).or(address);
    let says_where = client.has("address") || client.has("trusted_header");
    let rules = ClientRules { address: address?, on_missing: on_missing?, ipv6_prefix: ipv6_prefix? };
    Some(Client { rules, says_where })
}

fn rpc_metadata(address: &mut Section<'_, '_>) -> Option<ClientAddress> {
    let key = "rpc_metadata";
    let about = "the key of the gRPC metadata in which Envoy sends it";
    address.field(key, "x-client-ip", &METADATA_KEY, about).map(ClientAddress::RpcMetadata)
}

/// Proxies that are trusted, if there are some.
fn proxies(client: &mut Section<'_, '_>) -> Option<Option<Proxies>> {
    let trusted = client.field(
        "trusted_proxies",
        "[]",
        &MAYBE_NETWORKS,
        "the proxies that are believed about the address of their client",
    );
    let header = client.optional("trusted_header", "x_forwarded_for", &HEADER, "the header in which they write it");
    match (trusted?, header?) {
        (trusted, None) if trusted.is_empty() => Some(None),
        (_, None) => client.clash(
            &["trusted_proxies"],
            "`client.trusted_proxies` needs `client.trusted_header`".into(),
            "add `trusted_header:` with the one that they write, `x_forwarded_for` or `forwarded`",
        ),
        (trusted, Some(_)) if trusted.is_empty() => client.clash(
            &["trusted_header"],
            "`client.trusted_header` needs `client.trusted_proxies`".into(),
            "add `trusted_proxies:` with the networks of the proxies that write it: from others it is never read",
        ),
        (trusted, Some(header)) => believed(client, Proxies { trusted, header }).map(Some),
    }
}

fn believed(client: &mut Section<'_, '_>, proxies: Proxies) -> Option<Proxies> {
    if matches!(client.find_known("address"), Some((_, Node { tree: Tree::Map(_), .. }))) {
        let cause = "`client.trusted_header` says where the address stands, and `client.address` says another place";
        let hint = "remove `address`: with trusted proxies it is the peer's, or what they wrote in the header";
        return client.clash(&["address"], cause.into(), hint);
    }
    if proxies.trusted.iter().any(|network| network.prefix_len() == 0) {
        let hint = "name the networks of your own proxies";
        client.warn(
            client.span(),
            "`client.trusted_proxies` holds everybody: a client can write any address".into(),
            hint,
        );
    }
    Some(proxies)
}
