//! An orderly stop: no new connections, GOAWAY on the old ones, and requests in flight are answered.

use super::checks::{check, hold, verdict};
use super::child::wait_until;
use super::mesh::{Mesh, PLAIN, must, program};
use super::process::Tollgate;
use super::wire::{Http2, framed, grpc};
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

#[test]
fn a_signal_ends_the_process_when_requests_in_flight_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let socket = format!("unix:{}", folder.path().join("grpc.sock").display());
    for (listen, signal) in [("127.0.0.1:0", "TERM"), (&*socket, "INT")] {
        let mut tollgate = must(Tollgate::start(program(), &[], &PLAIN.replace("127.0.0.1:0", listen)));
        let address = tollgate.address().to_owned();
        let mut connection = Http2::connect(&address);
        let held = hold(&mut connection, "alice", "prefix:rate:1/24h");
        // It comes after that half on the same connection, so its answer shows that the half has arrived.
        assert_eq!(verdict(&check(&mut connection, "bob", "prefix:rate:1/24h")), 200);

        must(tollgate.signal(signal));
        must(wait_until("the log says so", || Ok(logged_stop(&tollgate).then_some(()))));
        must(wait_until("no new connections", || Ok((!connects(&address)).then_some(()))));
        connection.until_goaway();

        assert_eq!(verdict(&held.finish(&mut connection)), 200, "{signal}");
        assert_eq!(must(tollgate.wait()).code(), Some(0), "{signal}: {:?}", tollgate.log());
        assert!(address.strip_prefix("unix:").is_none_or(|path| !Path::new(path).exists()), "the socket file is gone");
    }
}

/// The harness waits for less time than requests in flight are given.
#[test]
fn a_second_signal_does_not_wait_for_requests_in_flight() {
    let mut tollgate = must(Tollgate::start(program(), &[], PLAIN));
    let mut connection = Http2::connect(tollgate.address());
    let held = hold(&mut connection, "alice", "prefix:rate:1/24h");
    assert_eq!(verdict(&check(&mut connection, "bob", "prefix:rate:1/24h")), 200);
    must(tollgate.signal("TERM"));
    must(wait_until("the log says so", || Ok(logged_stop(&tollgate).then_some(()))));
    connection.until_goaway();
    must(tollgate.signal("INT"));
    assert_eq!(must(tollgate.wait()).code(), Some(0), "{:?}", tollgate.log());
    must(wait_until("the last line says so", || {
        Ok(tollgate.log().last().filter(|line| line.contains("told to stop again")).cloned())
    }));
    drop(held);
}

/// A connection that is not HTTP/2 yet, as a port check makes one, held the process for all of the time that requests
/// in flight are given: a GOAWAY is for those whose preface was read.
#[test]
fn a_client_that_says_nothing_does_not_delay_the_stop() {
    for said in ["", "PRI * HTTP/2.0"] {
        let mut tollgate = must(Tollgate::start(program(), &[], PLAIN));
        let mut silent = TcpStream::connect(tollgate.address()).unwrap();
        silent.write_all(said.as_bytes()).unwrap();
        // Connections are taken in their order, so the silent one has been as well.
        assert_eq!(verdict(&check(&mut Http2::connect(tollgate.address()), "bob", "prefix:rate:1/24h")), 200);
        assert_eq!(must(tollgate.stop()).code(), Some(0), "{:?}", tollgate.log());
    }
}

/// Whoever watches the health holds a request open that never ends by itself; it delayed every stop.
#[test]
fn a_watch_of_the_health_does_not_delay_the_stop() {
    let mut tollgate = must(Tollgate::start(program(), &[], PLAIN));
    let mut connection = Http2::connect(tollgate.address());
    let watch = connection.ask(grpc("/grpc.health.v1.Health/Watch"), framed(b""));
    assert_eq!(verdict(&check(&mut connection, "bob", "prefix:rate:1/24h")), 200);
    must(tollgate.signal("TERM"));
    let told = connection.read(watch);
    assert!(told.body.ends_with(&[8, 2]), "the last it says is NOT_SERVING: {told:?}");
    assert_eq!(must(tollgate.wait()).code(), Some(0), "{:?}", tollgate.log());
}

/// A process that goes removed the socket file of the one that had taken its place.
#[test]
fn a_socket_file_of_another_process_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("grpc.sock");
    let yaml = PLAIN.replace("127.0.0.1:0", &format!("unix:{}", path.display()));
    let mut tollgate = must(Tollgate::start(program(), &[], &yaml));
    std::fs::rename(&path, folder.path().join("old.sock")).unwrap();
    let _another = UnixListener::bind(&path).unwrap();
    assert_eq!(must(tollgate.stop()).code(), Some(0), "{:?}", tollgate.log());
    assert!(path.exists());
}

#[test]
fn envoy_lets_a_stopping_tollgate_go() {
    let mut mesh = Mesh::start(PLAIN);
    let token = mesh.token("alice", &[]);
    assert_eq!(mesh.get(&token).status, 200);
    assert_eq!(must(mesh.tollgate.stop()).code(), Some(0), "{:?}", mesh.tollgate.log());
    assert_eq!(mesh.get(&token).status, 503);
}

fn logged_stop(tollgate: &Tollgate) -> bool {
    tollgate.log().iter().any(|line| line.contains("stopping: no new connections"))
}

/// Whether a connection can be made.
fn connects(address: &str) -> bool {
    match address.strip_prefix("unix:") {
        Some(path) => UnixStream::connect(path).is_ok(),
        None => TcpStream::connect(address).is_ok(),
    }
}
