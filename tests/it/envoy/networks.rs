//! IPv6 and a Unix socket between the processes, and a Tollgate that is killed and comes back.

use super::child::wait_until;
use super::mesh::{Mesh, PLAIN, must, program};
use super::process::Tollgate;

#[test]
fn everything_on_ipv6() {
    let mesh = Mesh::on("::1", &PLAIN.replace("127.0.0.1:0", "[::1]:0"), &[]);
    assert!(mesh.edge.is_ipv6() && mesh.upstream.address().is_ipv6());
    assert!(mesh.tollgate.address().starts_with("[::1]:"), "{}", mesh.tollgate.address());
    let token = mesh.token("alice", &["prefix:rate:1/24h"]);
    assert_eq!((mesh.get(&token).status, mesh.get(&token).status), (200, 429));
    let record = mesh.logged("a refusal", |record| record["message"] == "refused");
    assert_eq!(record["peer"], "::1");
}

/// Once over a Unix socket, whose file a killed process leaves behind, and once over TCP, on an address that no other
/// test uses: the port must still be free for the second process.
#[test]
fn a_killed_tollgate_fails_closed_and_a_restarted_one_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let socket = format!("unix:{}", folder.path().join("grpc.sock").display());
    for listen in [&*socket, "127.0.0.8:0"] {
        let mut mesh = Mesh::start(&PLAIN.replace("127.0.0.1:0", listen));
        let address = mesh.tollgate.address().to_owned();
        let token = mesh.token("alice", &["prefix:rate:1/24h"]);
        assert_eq!((mesh.get(&token).status, mesh.get(&token).status), (200, 429), "{address}");

        must(mesh.tollgate.signal("KILL"));
        must(mesh.tollgate.wait());
        let down = mesh.get(&token);
        assert_eq!((down.status, &*down.body), (503, ""), "{address}: {down:?}");
        assert_eq!(mesh.upstream.requests(), 1);

        mesh.tollgate = must(Tollgate::start(program(), &[], &PLAIN.replace("127.0.0.1:0", &address)));
        assert_eq!(mesh.tollgate.address(), address);
        let back = must(wait_until("Envoy finds Tollgate again", || {
            let answer = mesh.get(&token);
            Ok((answer.status != 503).then_some(answer.status))
        }));
        assert_eq!((back, mesh.get(&token).status), (200, 429), "{address}: with a fresh allowance");
    }
}
