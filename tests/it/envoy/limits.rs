//! Limits through a real Envoy: at entry and admitted, who a client is, costs, plans.

use super::http::Answer;
use super::mesh::{Mesh, PLAIN, assert_wait, now};
use serde_json::json;

#[track_caller]
fn from(mesh: &Mesh, address: &str, token: Option<&str>) -> Answer {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let mut headers = vec![("x-forwarded-for", address)];
    headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
    mesh.send("GET", "/", &headers)
}

/// Envoy behind one proxy: it takes the client's address from the last entry that the proxy wrote.
const BEHIND_A_PROXY: (&str, &str) =
    ("use_remote_address: true", "use_remote_address: true\n          xff_num_trusted_hops: 1");

#[test]
fn a_network_limit_comes_before_identity_and_is_kept() {
    let limits = "limits: [{ name: network, key: client.network, charge: entry, rate: 3/24h }, { name: user, key: principal, rate: 2/24h }]\n";
    let mesh = Mesh::patched(
        &format!("{PLAIN}client: {{ address: {{ rpc_metadata: x-client-ip }} }}\n{limits}"),
        &[BEHIND_A_PROXY],
    );
    let start = now();
    let statuses: Vec<u16> = (0..4).map(|_| from(&mesh, "198.51.100.1", None).status).collect();
    assert_eq!(statuses, [401, 401, 401, 429], "a request that gets a 401 has paid its entry");
    let good = mesh.token("alice", &["prefix:rate:9/24h"]);
    let refused = from(&mesh, "198.51.100.1", Some(&good));
    assert_eq!(refused.status, 429);
    assert_wait(refused.header("retry-after"), 8 * 3600, start);
    let record = mesh.logged("the refusal", |record| record["refused_by"] == "network");
    assert_eq!(record["reason"], "rate-exceeded");

    // A token that refuses does not spend the admitted limit.
    let tight = mesh.token("bob", &["prefix:rate:1/24h"]);
    let statuses: Vec<u16> = (0..3).map(|_| from(&mesh, "198.51.100.2", Some(&tight)).status).collect();
    assert_eq!(statuses, [200, 429, 429]);
    let record = mesh.logged("the refusal", |record| record["principal"] == "bob" && record["message"] == "refused");
    assert_eq!(record["refused_by"], "callers");
    let free = mesh.token("bob", &[]);
    let statuses: Vec<u16> = (0..2).map(|_| from(&mesh, "198.51.100.3", Some(&free)).status).collect();
    assert_eq!(statuses, [200, 429], "one of two units was left");
    assert_eq!(mesh.upstream.requests(), 2);
}

#[test]
fn clients_behind_one_proxy_are_told_apart_and_forged_addresses_are_not_believed() {
    let limits = "client: { address: { rpc_metadata: x-client-ip } }\nlimits: [{ name: network, key: client.network, rate: 1/24h }]\n";
    let config = format!("{}{limits}", PLAIN.replace("prefixes:", "missing: allow, prefixes:"));
    let mesh = Mesh::patched(&config, &[BEHIND_A_PROXY]);
    let ask = |mesh: &Mesh, address: &str| from(mesh, address, None).status;
    assert_eq!([ask(&mesh, "198.51.100.1"), ask(&mesh, "198.51.100.2"), ask(&mesh, "198.51.100.1")], [200, 200, 429]);
    // What the client itself wrote stands to the left of what the proxy wrote.
    assert_eq!(ask(&mesh, "203.0.113.9, 198.51.100.1"), 429);
    // Neighbours in a /64 share, those in another one do not.
    assert_eq!([ask(&mesh, "2001:db8::1"), ask(&mesh, "2001:db8::2"), ask(&mesh, "2001:db8:0:1::1")], [200, 429, 200]);

    // Without a proxy in front, the peer of Envoy is the client, whatever it writes.
    let mesh = Mesh::start(&config);
    assert_eq!([ask(&mesh, "203.0.113.1"), ask(&mesh, "203.0.113.2")], [200, 429]);

    // Where Envoy believes the header, Tollgate may count the peer, or walk the header past proxies it is told of.
    let believes = [("use_remote_address: true", "use_remote_address: false")];
    let by_peer = config.replace("{ rpc_metadata: x-client-ip }", "peer");
    let mesh = Mesh::patched(&by_peer, &believes);
    assert_eq!([ask(&mesh, "203.0.113.1"), ask(&mesh, "203.0.113.2")], [200, 429]);
    let by_header = config.replace(
        "address: { rpc_metadata: x-client-ip }",
        "trusted_proxies: [127.0.0.0/8, 10.0.0.0/8], trusted_header: x_forwarded_for",
    );
    let sends = (
        "- { exact: access-control-request-method }",
        "- { exact: access-control-request-method }\n                - { exact: x-forwarded-for }",
    );
    let mesh = Mesh::patched(&by_header, &[believes[0], sends]);
    assert_eq!(
        [
            ask(&mesh, "198.51.100.1, 10.0.0.1"),
            ask(&mesh, "198.51.100.2, 10.0.0.2"),
            ask(&mesh, "203.0.113.7, 198.51.100.1")
        ],
        [200, 200, 429]
    );
}

/// What a full table does to clients is counted, and the log says so.
#[test]
fn a_full_table_is_reported() {
    let limits = "client: { address: { rpc_metadata: x-client-ip } }\nlimits: [{ name: tiny, key: client.network, rate: 5/24h, max_keys: 1, when_full: refuse }]\n";
    let config = format!("{}{limits}", PLAIN.replace("prefixes:", "missing: allow, prefixes:"));
    let mut mesh = Mesh::patched(&config, &[BEHIND_A_PROXY]);
    assert_eq!(from(&mesh, "198.51.100.1", None).status, 200);
    let refused = from(&mesh, "198.51.100.2", None);
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
    assert!(super::mesh::must(mesh.tollgate.stop()).success());
    let record = mesh.logged("the report", |record| record["limit"] == "tiny" && record["level"] == "WARN");
    assert_eq!((&record["live"], &record["refused"], &record["forgiven"]), (&json!(1), &json!(1), &json!(0)));
}

#[test]
fn costs_and_plans() {
    let config = "
client: { address: peer }
costs: [{ when: { path: /look }, cost: 0 }, { when: { path: /ten }, cost: 10 }]
callers: { rules: [{ when: { claim.plan: free }, vouch: [2/24h] }, { when: { claim.plan: pro }, vouch: [30/24h] }] }
limits: [{ name: units, when: { path: [/ten, /look] }, key: principal, rate: 50/1m }]
";
    let mesh = Mesh::start(&format!("{PLAIN}{config}"));
    let token = mesh.token("alice", &["prefix:rate:1000/24h"]);
    let statuses: Vec<u16> = (0..6).map(|_| mesh.get_path("/ten", &token).status).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 429]);
    for _ in 0..3 {
        assert_eq!(mesh.get_path("/look", &token).status, 200, "a look spends nothing");
    }
    let calls = |plan: &str| {
        let token = mesh.sign(json!({"sub": plan, "plan": plan}));
        (0..40).take_while(|_| mesh.get(&token).status == 200).count()
    };
    assert_eq!([calls("free"), calls("pro")], [2, 30]);
}

/// Body parts, where Envoy sends the body; a truncated one is missing.
#[test]
fn a_body_may_be_what_is_counted() {
    let limits = "limits: [{ name: login, key: { body.json.user: { normalize: identity, on_missing: refuse } }, rate: 1/24h }]\n";
    let config = format!("{}{limits}", PLAIN.replace("prefixes:", "missing: allow, prefixes:"));
    let with_body = (
        "              encode_raw_headers: true\n",
        "              encode_raw_headers: true\n              with_request_body: { max_request_bytes: 8192, allow_partial_message: true, pack_as_bytes: true }\n",
    );
    let mesh = Mesh::patched(&config, &[with_body]);
    let post = |body: &str| {
        let headers = [("content-type", "application/json"), ("content-length", &*body.len().to_string())];
        super::mesh::must(
            super::mesh::must(super::http::Client::connect(mesh.edge)).send_body("POST", "/login", &headers, body),
        )
        .status
    };
    assert_eq!(
        [post(r#"{"user":"Alice"}"#), post(r#"{"user": "alice@"}"#), post(r#"{"user":"bob"}"#)],
        [200, 429, 200]
    );
    assert_eq!(post(r#"{"name":"bob"}"#), 400);
    assert_eq!(post(&format!(r#"{{"x":"{}","user":"carl"}}"#, "x".repeat(9000))), 400, "a truncated body is missing");
    let record = mesh.logged("the refusal", |record| record["refused_by"] == "login" && record["reason"] == "denied");
    assert_eq!(record["cause"], "the request lacks a part of the key");
}
