//! What the sections `limits` and `lockouts` warn of. What they refuse is in `bad/limit*.yaml` and `bad/lockout*.yaml`.

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

const ALONE: &str = "\
warning: this lockout counts by account, and nothing holds a client to anything before it: whoever knows a name can \
lock it, and one client can try every name
 --> tollgate.yaml:2:13
  |
2 | lockouts: [ { name: l, key: principal, threshold: 5, window: 15m } ]
  |             ^
hint: add a limit or a lockout before it with `key: client.network`";

#[test]
fn a_lockout_on_accounts_that_stands_alone_is_warned_of() {
    assert_eq!(warnings("lockouts: [ { name: l, key: principal, threshold: 5, window: 15m } ]"), ALONE);
    let with = |key: &str, before: &str| {
        let yaml =
            format!("client: {{ address: peer }}\n{before}\n  - {{ name: l, key: {key}, threshold: 5, window: 15m }}");
        warnings(&yaml)
    };
    let user = "[client.network, { body.json.user: { on_missing: refuse } }]";
    for alone in [
        "lockouts:",
        "limits: [{ name: a, key: client.network, rate: 1/1s, enabled: false }]\nlockouts:",
        "limits: [{ name: a, key: [], rate: 1/1s }]\nlockouts:",
        "limits: [{ name: a, key: client.network, rate: 1/1s, mode: observe }]\nlockouts:",
        "limits: [{ name: a, key: client.network, rate: 1/1s, charge: { outcome: 201 } }]\nlockouts:",
        "lockouts:\n  - { name: a, key: client.network, threshold: 50, window: 15m, mode: observe }",
        "lockouts:\n  - { name: bad, on: failed_token, key: client.network, threshold: 5, window: 15m }",
    ] {
        assert!(with(user, alone).contains("counts by account"), "{alone}");
    }
    for (key, before) in [
        (user, "limits: [{ name: a, key: client.network, rate: 1/1s }]\nlockouts:"),
        (user, "lockouts:\n  - { name: a, key: client.address, threshold: 50, window: 15m }"),
        ("client.network", "lockouts:"),
        ("[]", "lockouts:"),
    ] {
        assert_eq!(with(key, before), "", "{key} {before}");
    }
}

#[test]
fn a_lockout_that_nothing_can_reach_is_warned_of() {
    let with = |rest: &str| {
        warnings(&format!(
            "client: {{ address: peer }}\nlockouts: [{{ name: l, key: client.network, threshold: 5, window: 15m, {rest} }}]"
        ))
    };
    assert!(with("when: { token: missing }").contains("no request can reach this lockout"));
    assert_eq!(with("when: { token: missing }, enabled: false"), "");
    assert_eq!(with("on: failed_token"), "");
    let nowhere = "lockouts: [{ name: l, key: client.network, threshold: 5, window: 15m }]";
    assert!(warnings(nowhere).starts_with("warning: this lockout counts by client, and nothing says where"));
}
