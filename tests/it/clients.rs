//! Whose address a request is from: what proxies wrote, and what clients forged.

use proptest::prelude::*;
use std::net::IpAddr;
use tollgate::config::Config;
use tollgate::network::forwarded::ForwardedHeader::{self, Forwarded, XForwardedFor};
use tollgate::network::proxies::Proxies;
use tollgate::network::{IpNet, address, bytes, prefix, wider};
use tollgate::policy::ClientAddress;

const LB: &str = "10.0.0.1";

fn proxies(header: ForwardedHeader) -> Proxies {
    let trusted = ["10.0.0.0/8", "2001:db8:ffff::/48"].map(|network| network.parse().unwrap()).to_vec();
    Proxies { trusted, header }
}

/// The client of a request from `peer` with these header lines, or `-`.
fn client(header: ForwardedHeader, peer: &str, lines: &[&str]) -> String {
    let client = proxies(header).client(peer.parse().unwrap(), lines.iter().map(|line| line.as_bytes()));
    client.map_or("-".into(), |client| client.to_string())
}

#[track_caller]
fn check(header: ForwardedHeader, cases: &[(&[&str], &str)]) {
    for (lines, expected) in cases {
        assert_eq!(client(header, LB, lines), *expected, "{lines:?}");
    }
}

#[test]
fn only_a_trusted_peer_is_believed() {
    for header in [XForwardedFor, Forwarded] {
        for peer in ["192.0.2.1", "11.0.0.1", "2001:db8::1", "9.255.255.255"] {
            assert_eq!(client(header, peer, &["198.51.100.7"]), peer);
            assert_eq!(client(header, peer, &["for=198.51.100.7, for=10.0.0.1"]), peer);
            assert_eq!(client(header, peer, &[]), peer);
        }
    }
    assert_eq!(client(XForwardedFor, "2001:db8:ffff::1", &["198.51.100.7"]), "198.51.100.7");
}

#[test]
fn x_forwarded_for() {
    check(
        XForwardedFor,
        &[
            (&["203.0.113.9"], "203.0.113.9"),
            (&["198.51.100.7, 203.0.113.9"], "203.0.113.9"),
            (&["127.0.0.1,10.9.9.9,203.0.113.9"], "203.0.113.9"),
            (&["203.0.113.9, 10.0.0.2, 10.0.0.3"], "203.0.113.9"),
            (&["198.51.100.7, 203.0.113.9, 10.0.0.2,10.0.0.1"], "203.0.113.9"),
            // Several lines are one list.
            (&["198.51.100.7", "203.0.113.9"], "203.0.113.9"),
            (&["198.51.100.7, 203.0.113.9", "10.0.0.2", "10.0.0.3"], "203.0.113.9"),
            (&["203.0.113.9", ""], "203.0.113.9"),
            // IPv6, ports, zones, IPv4 in IPv6.
            (&["2001:db8::9"], "2001:db8::9"),
            (&["[2001:db8::9]"], "2001:db8::9"),
            (&["[2001:db8::9]:4711, 10.0.0.2:80"], "2001:db8::9"),
            (&["2001:db8::9, 2001:db8:ffff::2"], "2001:db8::9"),
            (&["fe80::9%eth0, 10.0.0.2"], "fe80::9"),
            (&["[fe80::9%25eth0]:80"], "fe80::9"),
            (&["203.0.113.9:4711"], "203.0.113.9"),
            (&["::ffff:203.0.113.9"], "203.0.113.9"),
            (&["203.0.113.9, ::ffff:10.0.0.2"], "203.0.113.9"),
            (&["203.0.113.9, ::ffff:a00:2"], "203.0.113.9"),
            // Whitespace and empty elements.
            (&[" \t203.0.113.9\t ,  10.0.0.2 "], "203.0.113.9"),
            (&[",,203.0.113.9, ,10.0.0.2,,"], "203.0.113.9"),
            // All trusted: the leftmost began it.
            (&["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
            (&["10.0.0.1"], "10.0.0.1"),
            // A trusted proxy that does not say.
            (&[], "-"),
            (&[""], "-"),
            (&[" , ,"], "-"),
            (&["203.0.113.9, unknown"], "-"),
            (&["203.0.113.9, unknown, 10.0.0.2"], "-"),
            (&["203.0.113.9, _hidden"], "-"),
            (&["unknown, 10.0.0.2"], "-"),
            // Garbage left of the client is the client's own; further right it ends the walk.
            (&["unknown, ;;\", 203.0.113.9, 10.0.0.2"], "203.0.113.9"),
            (&["\"", "203.0.113.9"], "203.0.113.9"),
            (&["203.0.113.9, garbage"], "-"),
            (&["203.0.113.9 10.0.0.2"], "-"),
            (&["\"203.0.113.9\""], "-"),
            (&["for=203.0.113.9"], "-"),
            (&["203.0.113.9, 10.0.0.256"], "-"),
            (&["203.0.113.9, 10.0.0"], "-"),
            (&["203.0.113.9, 010.0.0.2"], "-"),
            (&["203.0.113.9, 10.0.0.2/8"], "-"),
            (&["203.0.113.9, 10.0.0.2:99999"], "-"),
            (&["203.0.113.9, 10.0.0.2:"], "-"),
            (&["203.0.113.9, [10.0.0.2]"], "-"),
            (&["203.0.113.9, [2001:db8:ffff::2"], "-"),
            (&["203.0.113.9, [2001:db8:ffff::2]80"], "-"),
            (&["203.0.113.9, 2001:db8:ffff:::2"], "-"),
            (&["203.0.113.9, 10.0.0.2\0"], "-"),
            (&["203.0.113.9, 10.0.0.2\u{a0}"], "-"),
        ],
    );
}

#[test]
fn forwarded() {
    check(
        Forwarded,
        &[
            (&["for=203.0.113.9"], "203.0.113.9"),
            (&["For=203.0.113.9;proto=https;by=10.0.0.1"], "203.0.113.9"),
            (&["proto=https;FOR=203.0.113.9"], "203.0.113.9"),
            (&["for=198.51.100.7, for=203.0.113.9, for=10.0.0.2"], "203.0.113.9"),
            (&["for=198.51.100.7,for=203.0.113.9", "for=10.0.0.2"], "203.0.113.9"),
            (&["for=\"203.0.113.9\""], "203.0.113.9"),
            (&["for=\"203.0.113.9:4711\""], "203.0.113.9"),
            (&["for=\"203.0.113.9:_port\""], "203.0.113.9"),
            (&["for=\"[2001:db8::9]\""], "2001:db8::9"),
            (&["for=\"[2001:db8::9]:4711\";host=\"a,b;c\", for=10.0.0.2"], "2001:db8::9"),
            (&["for=\"[2001:db8::9]:_a.b-c\""], "2001:db8::9"),
            (&["for=\"[::ffff:203.0.113.9]\""], "203.0.113.9"),
            (&["for=\"[fe80::9%eth0]:80\""], "fe80::9"),
            (&["for=\"\\2\\03.0.113.9\""], "203.0.113.9"),
            (&["host=\"a\\\"b, for=1.1.1.1\";for=203.0.113.9"], "203.0.113.9"),
            (&["for=203.0.113.9;host=\"a\\\\\", for=10.0.0.2"], "203.0.113.9"),
            (&["for=203.0.113.9;host=\"a\\\\\\\", for=10.0.0.3\", for=10.0.0.2"], "203.0.113.9"),
            (&["for=203.0.113.9;x=\"\", for=10.0.0.2;y=\",\""], "203.0.113.9"),
            // Quotation marks that some proxies forget, and whitespace.
            (&["for=203.0.113.9:80"], "203.0.113.9"),
            (&["for=[2001:db8::9]:80;proto=http"], "2001:db8::9"),
            (&[" for=203.0.113.9 ; proto=http ,\tfor=10.0.0.2 "], "203.0.113.9"),
            (&[";;for=203.0.113.9;;proto=http;, , for=10.0.0.2,"], "203.0.113.9"),
            // All trusted.
            (&["for=10.0.0.3, for=\"[2001:db8:ffff::2]\""], "10.0.0.3"),
            // Hops without an address.
            (&[], "-"),
            (&[""], "-"),
            (&["for=203.0.113.9, for=unknown"], "-"),
            (&["for=203.0.113.9, for=\"unknown\", for=10.0.0.2"], "-"),
            (&["for=203.0.113.9, for=_hidden"], "-"),
            (&["for=203.0.113.9, for=\"_SEVKISEK:_port\""], "-"),
            (&["for=203.0.113.9, proto=https"], "-"),
            (&["for=203.0.113.9, by=10.0.0.2"], "-"),
            // What a client wrote changes nothing, whatever it is.
            (&["for=\"198.51.100.7, for=203.0.113.9"], "203.0.113.9"),
            (&["for=\"", "for=203.0.113.9"], "203.0.113.9"),
            (&["for=198.51.100.7;x=\", for=\"[2001:db8::9]:1\""], "2001:db8::9"),
            (&["for=198.51.100.7;x=\"\\, for=\"[2001:db8::9]:1\""], "2001:db8::9"),
            (&["x=\\, for=\"[2001:db8::9]\""], "2001:db8::9"),
            (&["garbage, for=203.0.113.9"], "203.0.113.9"),
            // Ill-formed further right.
            (&["for=203.0.113.9, garbage"], "-"),
            (&["for=203.0.113.9, 10.0.0.2"], "-"),
            (&["for=203.0.113.9, for=10.0.0.2;for=10.0.0.3"], "-"),
            (&["for=203.0.113.9, for=10.0.0.2;FOR=10.0.0.2"], "-"),
            (&["for=203.0.113.9, for =10.0.0.2"], "-"),
            (&["for=203.0.113.9, for= 10.0.0.2"], "-"),
            (&["for=203.0.113.9, for="], "-"),
            (&["for=203.0.113.9, for=\"\""], "-"),
            (&["for=203.0.113.9, for=10.0.0.2 for=10.0.0.3"], "-"),
            (&["for=203.0.113.9, for=\"10.0.0.2\"x"], "-"),
            (&["for=203.0.113.9, for=10.0.0.2\""], "-"),
            (&["for=203.0.113.9, for=\"10.0.0.2"], "-"),
            (&["for=203.0.113.9, for=\"10.0.0.2\\\""], "-"),
            (&["for=203.0.113.9, xfor=10.0.0.2"], "-"),
            (&["for=203.0.113.9, for=\"[10.0.0.2]\""], "-"),
        ],
    );
}

#[test]
fn many_hops() {
    let trusted = vec!["10.0.0.2"; 10_000].join(", ");
    let forged = vec!["198.51.100.7"; 10_000].join(", ");
    let long = |count: usize| format!("203.0.113.9{}", ", 10.0.0.2".repeat(count));
    check(
        XForwardedFor,
        &[
            (&[&trusted], "-"),
            (&["203.0.113.9", &trusted], "-"),
            (&[&forged, "203.0.113.9"], "203.0.113.9"),
            (&[&forged, "203.0.113.9, 10.0.0.2"], "203.0.113.9"),
            (&[&long(63)], "203.0.113.9"),
            (&[&long(64)], "-"),
            (&[&",".repeat(60_000), "203.0.113.9"], "203.0.113.9"),
            (&["203.0.113.9", &",".repeat(60_000)], "203.0.113.9"),
        ],
    );
    let lines = vec!["10.0.0.2"; 10_000];
    check(XForwardedFor, &[(&lines, "-")]);
    let quotes = format!("for=203.0.113.9;x=\"{}\"", "\\\"".repeat(30_000));
    check(Forwarded, &[(&[&quotes], "203.0.113.9"), (&[&"\"".repeat(60_000), "for=203.0.113.9"], "203.0.113.9")]);
}

#[test]
fn networks_of_clients() {
    let key = |text: &str, length| prefix(text.parse().unwrap(), length);
    for (client, length, network, around) in [
        ("192.0.2.77", 64, "192.0.2.77/32", "192.0.2.0/24"),
        ("192.0.2.77", 1, "192.0.2.77/32", "192.0.2.0/24"),
        ("::ffff:192.0.2.77", 64, "192.0.2.77/32", "192.0.2.0/24"),
        ("2001:db8:1:2:3:4:5:6", 64, "2001:db8:1:2::/64", "2001:db8:1::/48"),
        ("2001:db8:1:2:ffff::", 64, "2001:db8:1:2::/64", "2001:db8:1::/48"),
        ("2001:db8:1:2::1", 128, "2001:db8:1:2::1/128", "2001:db8:1::/48"),
        ("2001:db8:1:2::1", 56, "2001:db8:1::/56", "2001:db8:1::/48"),
        ("2001:db8:1:2::1", 32, "2001:db8::/32", "2001:db8::/32"),
    ] {
        let found = key(client, length);
        assert_eq!((found.to_string(), wider(found).to_string()), (network.into(), around.into()));
    }
    let networks = ["192.0.2.0/24", "192.0.2.0/32", "::ffff:192.0.2.0/128", "::ffff:192.0.2.0/120", "::/0", "::/1"];
    let mut all = networks.map(|network| bytes(network.parse().unwrap())).to_vec();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), networks.len());
}

#[test]
fn the_section() {
    let read = |yaml: &str| {
        let yaml = format!("token: {{ prefixes: [\"r:\"] }}\nclient: {{ {yaml} }}");
        Config::parse("tollgate.yaml", &yaml)
    };
    let rules = |yaml: &str| read(yaml).unwrap_or_else(|mistakes| panic!("{mistakes}")).policy.client;
    let told = rules("trusted_proxies: []");
    assert_eq!((told.address, told.ipv6_prefix), (ClientAddress::RpcMetadata("x-client-ip".into()), 64));
    let behind =
        |trusted: &str, header| ClientAddress::Behind(Proxies { trusted: vec![trusted.parse().unwrap()], header });
    let header = rules("trusted_proxies: 10.0.0.0/8, trusted_header: forwarded, ipv6_prefix: 56");
    assert_eq!((header.address, header.ipv6_prefix), (behind("10.0.0.0/8", Forwarded), 56));
    let peer = rules("address: peer, trusted_proxies: [\"::ffff:10.0.0.0/104\"], trusted_header: x_forwarded_for");
    assert_eq!(peer.address, behind("10.0.0.0/8", XForwardedFor));
    assert!(read("trusted_proxies: 0.0.0.0/0, trusted_header: forwarded").unwrap().warnings.is_some());
    assert!(read("trusted_proxies: 10.0.0.0/8, trusted_header: forwarded").unwrap().warnings.is_none());
    for bad in ["0", "129", "-1", "64.5", "\"64\"", "many"] {
        assert!(read(&format!("ipv6_prefix: {bad}")).is_err(), "{bad}");
    }
}

fn entry() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<[u8; 4]>().prop_map(|octets| IpAddr::from(octets).to_string()),
        any::<[u16; 8]>().prop_map(|groups| format!("[{}]:80", IpAddr::from(groups))),
        "[ -~]{0,12}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1024) })]

    /// Whatever a client sends, in lines of its own or joined with what proxies add, the proxies' word holds.
    #[test]
    fn no_client_forges_its_address(forged in prop::collection::vec(entry(), 0..6), joined in any::<bool>()) {
        for (header, added) in [
            (XForwardedFor, "203.0.113.9, 10.0.0.2"),
            (XForwardedFor, "[2001:db8::9]:99,10.0.0.2"),
            (Forwarded, "for=203.0.113.9;proto=https, for=10.0.0.2"),
            (Forwarded, "for=\"[2001:db8::9]:80\";host=\"a\\\"b\", for=\"10.0.0.2\""),
        ] {
            let expected = if added.contains("203") { "203.0.113.9" } else { "2001:db8::9" };
            let sent = forged.join(", ");
            let whole = format!("{sent}, {added}");
            let lines = if joined { vec![&*whole] } else { vec![&*sent, added] };
            prop_assert_eq!(client(header, LB, &lines), expected, "{:?}", lines);
            prop_assert_eq!(client(header, "192.0.2.1", &lines), "192.0.2.1");
        }
    }

    /// Every address is read in all its forms.
    #[test]
    fn addresses_are_read(octets in any::<[u8; 4]>(), groups in any::<[u16; 8]>(), port in any::<u16>()) {
        let (v4, v6) = (IpAddr::from(octets), IpAddr::from(groups));
        let mapped = format!("::ffff:{v4}");
        for text in [v4.to_string(), format!("{v4}:{port}"), mapped.clone(), format!("[{mapped}]:{port}")] {
            prop_assert_eq!(address(text.as_bytes()), Some(v4));
        }
        for text in [v6.to_string(), format!("[{v6}]"), format!("[{v6}]:{port}"), format!("[{v6}%1]:_x"), format!("{v6}%eth0")] {
            prop_assert_eq!(address(text.as_bytes()), Some(v6.to_canonical()));
        }
    }

    #[test]
    fn neighbours_share_a_network(groups in any::<[u16; 8]>(), other in any::<[u16; 8]>(), length in 1u8..=128) {
        let (one, other) = (IpAddr::from(groups), IpAddr::from(other));
        let network = prefix(one, length);
        prop_assert!(wider(network).contains(&network));
        if let (IpNet::V6(_), IpNet::V6(_)) = (network, prefix(other, length)) {
            prop_assert_eq!(network == prefix(other, length), network.contains(&other));
            prop_assert_eq!(bytes(network) == bytes(prefix(other, length)), network.contains(&other));
        }
    }
}
