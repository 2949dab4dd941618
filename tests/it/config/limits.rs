//! What the section `limits` warns of. What it refuses is in `bad/limit*.yaml`.

use tollgate::config::Config;

/// The warnings of a file with these lines.
fn warnings(lines: &str) -> String {
    let text = format!("token: {{ prefixes: [\"r:\"] }}\n{lines}\n");
    let config = Config::parse("tollgate.yaml", &text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    config.warnings.map(|warnings| warnings.to_string()).unwrap_or_default()
}

const NO_CLIENT: &str = "\
warning: this limit counts by client, and nothing says where the client's address comes from
 --> tollgate.yaml:2:11
  |
2 | limits: [ { name: l, key: client.network, rate: 1/1s } ]
  |           ^
hint: write `client: { address: { rpc_metadata: x-client-ip } }` if Envoy sends it, as envoy/envoy.yaml does; \
`address: peer` if the peer of Envoy is the client; or name the proxies in front of it";

#[test]
fn a_limit_by_client_asks_where_the_address_comes_from() {
    assert_eq!(warnings("limits: [ { name: l, key: client.network, rate: 1/1s } ]"), NO_CLIENT);
    for key in ["client.address", "[method, client.network]", "{ first_of: [principal, client.address] }"] {
        assert!(warnings(&format!("limits: [{{ name: l, key: {key}, rate: 1/1s }}]")).contains("counts by client"));
    }
    for quiet in [
        "limits: [{ name: l, key: client.network, rate: 1/1s, enabled: false }]",
        "limits: [{ name: l, key: principal, rate: 1/1s }]",
        "client: { address: peer }\nlimits: [{ name: l, key: client.network, rate: 1/1s }]",
    ] {
        assert_eq!(warnings(quiet), "", "{quiet}");
    }
}

const UNREACHABLE: &str = "\
warning: no request can reach this limit: those that it is for are refused for their token before
 --> tollgate.yaml:2:11
  |
2 | limits: [ { name: l, key: [], rate: 1/1s, when: { token: missing } } ]
  |           ^
hint: write `charge: entry`, which comes before identity";

#[test]
fn a_limit_that_no_request_can_reach_is_warned_of() {
    assert_eq!(warnings("limits: [ { name: l, key: [], rate: 1/1s, when: { token: missing } } ]"), UNREACHABLE);
    let with = |rest: &str| warnings(&format!("limits: [{{ name: l, key: [], rate: 1/1s, {rest} }}]"));
    assert!(with("when: { token: [missing, failed] }").contains("no request can reach"));
    for quiet in [
        "when: { token: missing }, charge: entry",
        "when: { token: failed }, charge: { entry: 1 }",
        "when: { token: missing }, enabled: false",
        "when: { token: missing, method: OPTIONS }",
        "when: { token: [present, missing] }",
    ] {
        assert_eq!(with(quiet), "", "{quiet}");
    }
    let missing = "limits: [{ name: l, key: [], rate: 1/1s, when: { token: missing } }]";
    let allowed = format!("token: {{ prefixes: [\"r:\"], missing: allow }}\n{missing}\n");
    assert!(Config::parse("tollgate.yaml", &allowed).unwrap().warnings.is_none());
}
