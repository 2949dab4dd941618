//! The composition without its containers: the same commands and configurations, with other addresses.

use super::files::{read, root, service, texts};
use super::image::words;
use super::mounted_file;
use crate::envoy::envoy_config::{Places, runnable};
use crate::envoy::http::{Answer, Client};
use crate::envoy::mesh::{WARNING, must, program};
use crate::envoy::process::Tollgate;
use crate::envoy::proxy::Envoy;
use std::path::Path;
use std::process::Command;

/// What `tokens` prints, its folder replaced.
fn tokens(folder: &Path) -> String {
    let place = format!("={}/", folder.display());
    let arguments = texts(&service("tokens")["command"]).into_iter().map(|word| word.replace("=/keys/", &place));
    let output = Command::new(program()).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A file of the repository with an address replaced.
fn with_address(file: &str, from: &str, to: &str) -> String {
    let text = read(file);
    assert_eq!(text.matches(from).count(), 1, "{file} has `{from}` once");
    text.replace(from, to)
}

/// The application, whose admin side the harness asks whether it is up.
fn app() -> Envoy {
    let own = with_address(&mounted_file("app"), "0.0.0.0, port_value: 8080", "127.0.0.1, port_value: 0");
    let admin = "admin: { address: { socket_address: { address: 127.0.0.1, port_value: 0 } } }\n";
    must(Envoy::start(&(own + admin)))
}

/// The answers to a curl line's six requests.
fn answers(line: &str, edge: std::net::SocketAddr) -> Vec<Answer> {
    let header = line.strip_prefix("curl -isS -H 'Authorization: ").unwrap_or_else(|| panic!("{line}"));
    let (bearer, url) = header.split_once("' '").unwrap();
    assert_eq!(url, "http://localhost:8000/[1-6]'");
    let mut client = must(Client::connect(edge));
    (1..=6).map(|number| must(client.send("GET", &format!("/{number}"), &[("authorization", bearer)]))).collect()
}

#[test]
fn the_printed_curl_lines_get_through_until_their_rate_is_exceeded() {
    let keys = tempfile::tempdir().unwrap();
    let printed = tokens(keys.path());
    let jwks = keys.path().join("jwks.json");
    let app = app();
    let yaml = with_address(&mounted_file("tollgate"), "0.0.0.0:10003", "127.0.0.1:0");
    let tollgate = must(Tollgate::start(program(), &[], &yaml));
    let upstream = must(app.listener("app"));
    let places = Places { listen: "127.0.0.1", tollgates: &[tollgate.address()], upstream, jwks: &jwks };
    let envoy = must(Envoy::start(&must(runnable(&places))));
    let edge = must(envoy.listener("edge"));

    let lines: Vec<&str> = printed.lines().collect();
    let callers = [
        ("# alice prefix:rate:5/1m", [200, 200, 200, 200, 200, 429], None),
        ("# bob orders:read", [200; 6], None),
        (
            "# carol prefix:rate:fast prefix:rate:3/1m",
            [200, 200, 200, 429, 429, 429],
            Some("malformed; kind=rate; cap=\"prefix:rate:fast\""),
        ),
    ];
    assert_eq!(lines.len(), 2 * callers.len(), "{printed}");
    for (pair, (comment, statuses, warning)) in lines.chunks(2).zip(callers) {
        assert_eq!(pair[0], comment);
        let answers = answers(pair[1], edge);
        assert_eq!(answers.iter().map(|answer| answer.status).collect::<Vec<_>>(), statuses, "{comment}");
        assert_eq!(answers[0].body, "hello from the application\n");
        assert!(answers.iter().all(|answer| answer.header(WARNING) == warning), "{answers:?}");
        assert!(answers.iter().all(|answer| answer.header("retry-after").is_some() == (answer.status == 429)));
    }
    check_health(tollgate.address());
}

/// The image's health check, with the configuration of the composition.
fn check_health(address: &str) {
    let mut health = Command::new(program());
    health
        .args(&words("HEALTHCHECK")[1..])
        .args(["--timeout", "20s"])
        .env("TOLLGATE_CONFIG", root(&mounted_file("tollgate")));
    let output = health.env("TOLLGATE_LISTEN", address).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Envoy has read the JWKS when `tokens` runs again, so that the JWKS must not change.
#[test]
fn tokens_of_a_later_run_fit_the_same_jwks() {
    let keys = tempfile::tempdir().unwrap();
    let jwks = || std::fs::read_to_string(keys.path().join("jwks.json")).unwrap();
    tokens(keys.path());
    let first = jwks();
    tokens(keys.path());
    assert_eq!(jwks(), first);
}
