//! `tollgate health` beside a real service, beside none, and beside those that are something else.

use super::{check_failure, tollgate};
use crate::envoy::mesh::{PLAIN, must, program};
use crate::envoy::process::Tollgate;
use crate::envoy::upstream::Upstream;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

/// `tollgate health` with this configuration, and with more arguments.
fn health(folder: &Path, yaml: &str, arguments: &[&str]) -> Command {
    let file = folder.join("tollgate.yaml");
    std::fs::write(&file, yaml).unwrap();
    tollgate(&[&["health", "--config", file.to_str().unwrap()], arguments].concat())
}

/// On a machine that stands still an answer may take longer than `tollgate health` waits by itself.
#[track_caller]
fn check_success(mut command: Command) {
    let output = command.args(["--timeout", "20s"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
}

/// At the file's address, a Unix socket; at the flag's; and on loopback where the service listens on every network.
#[test]
fn a_service_that_serves_is_found_where_serve_listens() {
    let folder = tempfile::tempdir().unwrap();
    let socket = PLAIN.replace("127.0.0.1:0", &format!("unix:{}", folder.path().join("grpc.sock").display()));
    let mut on_socket = must(Tollgate::start(program(), &[], &socket));
    check_success(health(folder.path(), &socket, &[]));
    let on_port = must(Tollgate::start(program(), &[], PLAIN));
    check_success(health(folder.path(), &socket, &["--listen", on_port.address()]));

    let open = PLAIN.replace("\"127.0.0.1:0\"", "\"0.0.0.0:0\", trusted_network: true");
    let everywhere = must(Tollgate::start(program(), &[], &open));
    assert!(everywhere.address().starts_with("0.0.0.0:"), "{}", everywhere.address());
    check_success(health(folder.path(), &open, &["--listen", everywhere.address()]));
    let mut environment = health(folder.path(), &open, &[]);
    environment.env("TOLLGATE_LISTEN", everywhere.address());
    check_success(environment);

    must(on_socket.stop());
    check_failure(&mut health(folder.path(), &socket, &[]), 1, &["grpc.sock: cannot connect: ", "hint: run"]);
}

/// One that listens and never answers, one that is not there, and one that does not speak HTTP/2.
#[test]
fn what_does_not_serve_is_named_with_the_cause() {
    let folder = tempfile::tempdir().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let on = |address: &str| health(folder.path(), PLAIN, &["--timeout", "500ms", "--listen", address]);
    check_failure(&mut on(&address), 1, &[&format!("error: {address}: no answer within 500ms")]);
    // Nothing here listens on this address.
    let nobody = "127.0.0.15:1";
    check_failure(&mut on(nobody), 1, &[&format!("error: {nobody}: cannot connect: Connection refused")]);

    let upstream = must(Upstream::start("127.0.0.1")).address().to_string();
    let mut patient = health(folder.path(), PLAIN, &["--timeout", "20s", "--listen", &upstream]);
    check_failure(&mut patient, 1, &[&format!("error: {upstream}: no answer in HTTP/2: ")]);
    check_failure(&mut on("nowhere"), 2, &["--listen or TOLLGATE_LISTEN is \"nowhere\""]);
    check_failure(&mut health(folder.path(), PLAIN, &["--timeout", "0s"]), 2, &["such as 500ms or 2s"]);
}
