//! The greatest age of a connection: it ends in order, and no request pays for it.

use super::checks::{check, verdict};
use super::http::Client;
use super::mesh::{Mesh, PLAIN, must, program};
use super::process::Tollgate;
use super::stops::connect_and_hold;
use super::wire::Http2;

fn aged(age: &str) -> String {
    PLAIN.replace("grpc:", &format!("max_connection_age: {age}, grpc:"))
}

/// tonic's grace for old connections would cut the request that is half sent, without a GOAWAY.
#[test]
fn an_old_connection_gets_a_goaway_and_its_request_an_answer() {
    let tollgate = must(Tollgate::start(program(), &[], &aged("2s")));
    let (mut old, held) = connect_and_hold(&tollgate);
    old.until_goaway();
    assert_eq!(verdict(&held.finish(&mut old)), 200);
    assert_eq!(verdict(&check(&mut Http2::connect(tollgate.address()), "alice", "prefix:rate:1/24h")), 429);
}

/// Envoy goes from one connection to the next without a failure.
#[test]
fn envoy_follows_through_many_connections() {
    let mesh = Mesh::start(&aged("20ms"));
    let bearer = format!("Bearer {}", mesh.token("alice", &[]));
    let mut client = must(Client::connect(mesh.edge));
    let mut count = 0;
    while must(mesh.envoy.stat::<u64>(mesh.tollgate.address(), "cx_total")) < 20 {
        for _ in 0..20 {
            assert_eq!(must(client.send("GET", "/", &[("authorization", &bearer)])).status, 200, "after {count}");
            count += 1;
        }
    }
    assert_eq!(mesh.upstream.requests(), count);
}
