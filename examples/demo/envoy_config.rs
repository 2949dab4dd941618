//! `envoy/envoy.yaml` with its addresses, ports and JWKS file replaced, and its patience with Tollgate longer: else what is
//! shown is what is tested.
#![allow(dead_code, reason = "the demo and the tests use a part each")]

use std::net::SocketAddr;
use std::path::Path;

const TEMPLATE: &str = include_str!("../../envoy/envoy.yaml");
/// The line that is repeated for each Tollgate, and what differs in it.
const TOLLGATE: &str = "- endpoint: { address: { socket_address: { address: tollgate, port_value: 10003 } } }";
const ADDRESS: &str = "socket_address: { address: tollgate, port_value: 10003 }";

/// What a run puts in the place of the file's own addresses.
pub struct Places<'a> {
    /// The IP address Envoy listens on, on a port of its choice.
    pub listen: &'a str,
    /// Where each Tollgate listens, as its log says it: `127.0.0.1:43211`, `[::1]:4000` or `unix:/path`.
    pub tollgates: &'a [&'a str],
    pub upstream: SocketAddr,
    pub jwks: &'a Path,
}

/// The configuration to run, or which place the file no longer has.
pub fn runnable(places: &Places<'_>) -> Result<String, String> {
    let mut yaml = TEMPLATE.to_owned();
    let tollgates = places.tollgates.iter().map(|text| Ok(TOLLGATE.replace(ADDRESS, &address(text)?)));
    let tollgates = tollgates.collect::<Result<Vec<_>, String>>()?;
    let replacements = [
        ("127.0.0.1, port_value: 9901", "127.0.0.1, port_value: 0".into(), 1),
        ("{ address: 0.0.0.0, port_value: 8000 }", format!("{{ address: {:?}, port_value: 0 }}", places.listen), 1),
        (TOLLGATE, tollgates.join("\n        "), 1),
        ("socket_address: { address: app, port_value: 8080 }", socket_address(places.upstream), 1),
        // An address needs no resolver, and a Unix socket could not have one.
        ("type: STRICT_DNS", "type: STATIC".into(), 2),
        ("{ filename: /etc/envoy/jwks.json }", format!("{{ filename: {:?} }}", places.jwks), 1),
        // A machine that compiles or tests beside it may stand still for longer than the file lets an answer take.
        ("                timeout: 0.25s", "                timeout: 5s".into(), 1),
        ("max_interval: 0.25s", "max_interval: 5s".into(), 1),
    ];
    for (from, to, times) in replacements {
        replace(&mut yaml, from, &to, times)?;
    }
    Ok(yaml)
}

fn replace(yaml: &mut String, from: &str, to: &str, times: usize) -> Result<(), String> {
    match yaml.matches(from).count() {
        found if found == times => *yaml = yaml.replace(from, to),
        found => {
            return Err(format!(
                "envoy/envoy.yaml has `{from}` {found} times, expected {times}\nhint: change the file back, or what is replaced here"
            ));
        }
    }
    Ok(())
}

fn address(text: &str) -> Result<String, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return Ok(format!("pipe: {{ path: {path:?} }}"));
    }
    let socket = text.parse().map_err(|error| format!("Tollgate's address `{text}`: {error}"))?;
    Ok(socket_address(socket))
}

fn socket_address(address: SocketAddr) -> String {
    format!("socket_address: {{ address: \"{}\", port_value: {} }}", address.ip(), address.port())
}
