//! The example client, through a real Envoy: what it prints, and what it says of a wrong command line.

use crate::envoy::mesh::{Mesh, PLAIN};
use std::process::{Command, Output};

fn burst(arguments: &[&str]) -> Output {
    let mut cargo = Command::new("cargo");
    cargo.args(["run", "--quiet", "--example", "burst", "--"]).args(arguments);
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_burst_is_refused_at_its_end_and_the_wait_that_it_is_told_is_right() {
    // A unit comes back every ten seconds, so that a slow machine sends the burst before.
    let mesh = Mesh::start(&format!("{PLAIN}callers: {{ window_bounds: off }}\n"));
    let token = mesh.token("alice", &["prefix:rate:2/20s", "prefix:rate:fast"]);
    let url = format!("http://{}/orders?page=2", mesh.edge);
    let output = burst(&[&url, &token, "3", "--wait"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let told = |seconds: u32| {
        format!(
            "\
3 requests, as fast as they go
   #  status  Retry-After  warning
   1  200     -            malformed; kind=rate; cap=\"prefix:rate:fast\"
   2  200     -            malformed; kind=rate; cap=\"prefix:rate:fast\"
   3  429     {seconds:<11}  malformed; kind=rate; cap=\"prefix:rate:fast\"
waiting {seconds} s, as told
   4  200     -            malformed; kind=rate; cap=\"prefix:rate:fast\"
"
        )
    };
    let printed = text(&output.stdout);
    assert!((1..=10).any(|seconds| printed == told(seconds)), "{printed}");
    assert_eq!(mesh.upstream.requests(), 3);

    let unrestricted = burst(&[&url, &mesh.token("bob", &[]), "1", "--wait"]);
    assert!(text(&unrestricted.stdout).ends_with("\nnot waiting: the last answer has no Retry-After\n"));
}

#[test]
fn what_it_cannot_do_it_says() {
    let nowhere = burst(&["localhost:8000", "x"]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert_eq!(text(&nowhere.stderr), "error: localhost:8000: not a URL of the form http://HOST:PORT/PATH\n");
    for wrong in [&["http://localhost/"][..], &["http://localhost/", "x", "0"], &["http://localhost/", "x", "1", "y"]] {
        let usage = burst(wrong);
        assert_eq!(usage.status.code(), Some(2), "{wrong:?}");
        assert!(text(&usage.stderr).starts_with("usage: cargo run --example burst -- URL TOKEN [COUNT] [--wait]\n"));
    }
}
