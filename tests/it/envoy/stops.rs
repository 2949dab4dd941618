//! An orderly stop: no new connections, GOAWAY on the old ones, and requests in flight are answered.

use super::checks::{Held, check, hold, verdict};
use super::child::wait_until;
use super::mesh::{Mesh, PLAIN, must, now, program};
use super::process::Tollgate;
use super::services::{AUTHORIZATION, health, serving};
use super::wire::{Http2, framed, grpc};
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;
use tonic_health::pb::health_check_response::ServingStatus;

/// How the protocol writes the two.
const SERVING: u8 = 1;
const NOT_SERVING: u8 = 2;

/// For tests that are not about the delay.
const NO_DELAY: &str = "shutdown: { delay: 0s }\n";

/// The harness waits for less time than this delay.
const LONG_DELAY: &str = "shutdown: { delay: 25s }\n";

#[test]
fn a_signal_ends_the_process_when_requests_in_flight_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let socket = format!("unix:{}", folder.path().join("grpc.sock").display());
    // SIGINT skips the delay.
    for (listen, signal, shutdown) in [("127.0.0.1:0", "TERM", NO_DELAY), (&*socket, "INT", LONG_DELAY)] {
        let mut tollgate = start(&PLAIN.replace("127.0.0.1:0", listen), shutdown);
        let address = tollgate.address().to_owned();
        let (mut connection, held) = connect_and_hold(&tollgate);

        must(tollgate.signal(signal));
        until_logged(&tollgate, "draining: no new connections");
        must(wait_until("no new connections", || Ok((!connects(&address)).then_some(()))));
        connection.until_goaway();

        assert_eq!(verdict(&held.finish(&mut connection)), 200, "{signal}");
        assert_eq!(must(tollgate.wait()).code(), Some(0), "{signal}: {:?}", tollgate.log());
        assert!(address.strip_prefix("unix:").is_none_or(|path| !Path::new(path).exists()), "the socket file is gone");
    }
}

/// The delay: every client sees NOT_SERVING, and is still answered.
#[test]
fn until_the_delay_is_over_requests_and_connections_are_taken() {
    let mut tollgate = start(PLAIN, LONG_DELAY);
    let (mut connection, held) = connect_and_hold(&tollgate);
    let pending = connection.ask(grpc("/grpc.health.v1.Health/Watch"), framed(b""));
    let mut watch = connection.head(pending);
    assert_eq!(connection.next(&mut watch), Some(framed(&[8, SERVING])));

    must(tollgate.signal("TERM"));
    assert_eq!(connection.next(&mut watch), Some(framed(&[8, NOT_SERVING])));
    let mut another = Http2::connect(tollgate.address());
    for service in ["", AUTHORIZATION] {
        assert_eq!(serving(&health(&mut another, service)), ServingStatus::NotServing, "{service}");
    }
    for connection in [&mut connection, &mut another] {
        assert_eq!(verdict(&check(connection, "carol", "prefix:rate:2/24h")), 200);
    }
    until_logged(&tollgate, "stopping: the health is NOT_SERVING");
    assert!(!logged(&tollgate, "draining"), "{:?}", tollgate.log());
    drop((connection, another, held));
    must(tollgate.signal("INT"));
    assert_eq!(must(tollgate.wait()).code(), Some(0), "{:?}", tollgate.log());
}

#[test]
fn when_the_delay_is_over_connections_end_in_order() {
    let mut tollgate = start(PLAIN, "shutdown: { delay: 500ms }\n");
    let (mut connection, held) = connect_and_hold(&tollgate);
    let pending = connection.ask(grpc("/grpc.health.v1.Health/Watch"), framed(b""));
    let mut watch = connection.head(pending);
    let signalled = now();
    must(tollgate.signal("TERM"));
    connection.until_goaway();
    assert!(signalled.elapsed() >= Duration::from_millis(500));
    for status in [SERVING, NOT_SERVING] {
        assert_eq!(connection.next(&mut watch), Some(framed(&[8, status])));
    }
    assert_eq!(connection.next(&mut watch), None, "the watch is let go");
    assert_eq!(verdict(&held.finish(&mut connection)), 200);
    assert_eq!(must(tollgate.wait()).code(), Some(0), "{:?}", tollgate.log());
}

/// The harness waits for less time than the delay, and than requests in flight are given.
#[test]
fn a_second_signal_waits_neither_for_the_delay_nor_for_requests_in_flight() {
    for (shutdown, line) in [(NO_DELAY, "draining"), (LONG_DELAY, "stopping")] {
        let mut tollgate = start(PLAIN, shutdown);
        let (_connection, _held) = connect_and_hold(&tollgate);
        must(tollgate.signal("TERM"));
        until_logged(&tollgate, line);
        must(tollgate.signal("INT"));
        assert_eq!(must(tollgate.wait()).code(), Some(0), "{:?}", tollgate.log());
        until_logged_last(&tollgate, "told to stop again");
    }
}

#[test]
fn a_request_that_does_not_end_is_cut_off_at_the_timeout() {
    let mut tollgate = start(PLAIN, "shutdown: { delay: 100ms, timeout: 300ms }\n");
    let (_connection, _held) = connect_and_hold(&tollgate);
    let signalled = now();
    must(tollgate.signal("TERM"));
    assert_eq!(must(tollgate.wait()).code(), Some(0), "{:?}", tollgate.log());
    assert!(signalled.elapsed() >= Duration::from_millis(300));
    until_logged_last(&tollgate, "did not end before the shutdown timeout and are cut off");
}

/// A connection that is not HTTP/2 yet, as a port check makes one, held the process for all of the time that requests
/// in flight are given: a GOAWAY is for those whose preface was read.
#[test]
fn a_client_that_says_nothing_does_not_delay_the_stop() {
    for said in ["", "PRI * HTTP/2.0"] {
        let mut tollgate = start(PLAIN, NO_DELAY);
        let mut silent = TcpStream::connect(tollgate.address()).unwrap();
        silent.write_all(said.as_bytes()).unwrap();
        // Connections are taken in their order, so the silent one has been as well.
        assert_eq!(verdict(&check(&mut Http2::connect(tollgate.address()), "bob", "prefix:rate:1/24h")), 200);
        assert_eq!(must(tollgate.stop()).code(), Some(0), "{:?}", tollgate.log());
    }
}

/// A client whose machine vanished, or that hangs, answers no ping; a GOAWAY ends its connection only when it does.
#[test]
fn a_client_that_hangs_does_not_delay_the_stop() {
    let mut tollgate = must(Tollgate::start(program(), &[], PLAIN));
    let mut hanging = TcpStream::connect(tollgate.address()).unwrap();
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    hanging.write_all(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &settings[..]].concat()).unwrap();
    assert_eq!(verdict(&check(&mut Http2::connect(tollgate.address()), "bob", "prefix:rate:1/24h")), 200);
    assert_eq!(must(tollgate.stop()).code(), Some(0), "{:?}", tollgate.log());
    assert!(!tollgate.log().iter().any(|line| line.contains("cut off")), "{:?}", tollgate.log());
}

/// Whoever watches the health holds a request open that never ends by itself; it delayed every stop.
#[test]
fn a_watch_of_the_health_does_not_delay_the_stop() {
    let mut tollgate = start(PLAIN, NO_DELAY);
    let mut connection = Http2::connect(tollgate.address());
    let watch = connection.ask(grpc("/grpc.health.v1.Health/Watch"), framed(b""));
    assert_eq!(verdict(&check(&mut connection, "bob", "prefix:rate:1/24h")), 200);
    must(tollgate.signal("TERM"));
    let told = connection.read(watch);
    assert!(told.body.ends_with(&[8, NOT_SERVING]), "the last it says is NOT_SERVING: {told:?}");
    // The client has to be there: the server waits for its answer to the ping that comes with a GOAWAY.
    connection.until_goaway();
    assert_eq!(must(tollgate.wait()).code(), Some(0), "{:?}", tollgate.log());
}

/// A process that goes removed the socket file of the one that had taken its place.
#[test]
fn a_socket_file_of_another_process_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("grpc.sock");
    let yaml = PLAIN.replace("127.0.0.1:0", &format!("unix:{}", path.display()));
    let mut tollgate = start(&yaml, NO_DELAY);
    std::fs::rename(&path, folder.path().join("old.sock")).unwrap();
    let _another = UnixListener::bind(&path).unwrap();
    assert_eq!(must(tollgate.stop()).code(), Some(0), "{:?}", tollgate.log());
    assert!(path.exists());
}

#[test]
fn envoy_lets_a_stopping_tollgate_go() {
    let mut mesh = Mesh::start(&format!("{PLAIN}{NO_DELAY}"));
    let token = mesh.token("alice", &[]);
    assert_eq!(mesh.get(&token).status, 200);
    assert_eq!(must(mesh.tollgate.stop()).code(), Some(0), "{:?}", mesh.tollgate.log());
    assert_eq!(mesh.get(&token).status, 503);
}

fn start(yaml: &str, shutdown: &str) -> Tollgate {
    must(Tollgate::start(program(), &[], &format!("{yaml}{shutdown}")))
}

/// A connection with a Check that is half sent.
pub fn connect_and_hold(tollgate: &Tollgate) -> (Http2, Held) {
    let mut connection = Http2::connect(tollgate.address());
    let held = hold(&mut connection, "alice", "prefix:rate:1/24h");
    // It comes after that half on the same connection, so its answer shows that the half has arrived.
    assert_eq!(verdict(&check(&mut connection, "bob", "prefix:rate:1/24h")), 200);
    (connection, held)
}

pub fn logged(tollgate: &Tollgate, text: &str) -> bool {
    tollgate.log().iter().any(|line| line.contains(text))
}

pub fn until_logged(tollgate: &Tollgate, text: &str) {
    must(wait_until(text, || Ok(logged(tollgate, text).then_some(()))));
}

fn until_logged_last(tollgate: &Tollgate, text: &str) {
    must(wait_until(text, || Ok(tollgate.log().last().filter(|line| line.contains(text)).map(drop))));
}

/// Whether a connection can be made.
fn connects(address: &str) -> bool {
    match address.strip_prefix("unix:") {
        Some(path) => UnixStream::connect(path).is_ok(),
        None => TcpStream::connect(address).is_ok(),
    }
}
