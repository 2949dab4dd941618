//! The snapshot as a file: written at SIGTERM and from time to time, read at the start, whole or not at all.

use super::checks::{check, verdict};
use super::child::wait_until;
use super::mesh::{PLAIN, must, now, program};
use super::process::Tollgate;
use super::wire::Http2;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

const RATE: &str = "prefix:rate:10000/24h";

/// A unit of it comes back after so long.
const UNIT: Duration = Duration::from_millis(8_640);

fn start(path: &Path, interval: &str) -> Tollgate {
    let store =
        format!("store: {{ memory: {{ snapshot: {path:?}, interval: {interval} }} }}\nshutdown: {{ delay: 0s }}\n");
    must(Tollgate::start(program(), &[], &format!("{PLAIN}{store}response: {{ ratelimit_headers: x-ratelimit }}\n")))
}

/// Asks so often, and says what is left of the caller's rate then.
fn ask(tollgate: &Tollgate, times: usize) -> u64 {
    let mut connection = Http2::connect(tollgate.address());
    let mut left = 0;
    for _ in 0..times {
        let reply = check(&mut connection, "carol", RATE);
        assert_eq!(verdict(&reply), 200);
        left = remaining(&reply.message());
    }
    left
}

/// The header `x-ratelimit-remaining` of an answer.
fn remaining(message: &[u8]) -> u64 {
    use envoy_types::pb::envoy::service::auth::v3::{CheckResponse, check_response::HttpResponse};
    use prost::Message;
    let response = CheckResponse::decode(message).unwrap();
    let Some(HttpResponse::OkResponse(ok)) = response.http_response else { panic!("{response:?}") };
    let headers = ok.response_headers_to_add.into_iter().filter_map(|option| option.header);
    let mut left = headers.filter(|header| header.key == "x-ratelimit-remaining");
    left.next().unwrap().value.parse().unwrap()
}

fn record(tollgate: &Tollgate, message: &str) -> Value {
    let found = wait_until(message, || {
        let log = tollgate.log();
        let records = log.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        Ok(records.into_iter().find(|record| record["message"].as_str().is_some_and(|text| text.contains(message))))
    });
    must(found)
}

#[test]
fn a_restart_goes_on_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let states = folder.path().join("states");
    fs::create_dir(&states).unwrap();
    let path = states.join("state");
    let mut tollgate = start(&path, "1h");
    record(&tollgate, "there is no snapshot yet");
    assert_eq!(ask(&tollgate, 3), 9_997);
    assert!(must(tollgate.stop()).success());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "nobody else may read it");
    let mut tollgate = start(&path, "1h");
    assert_eq!(record(&tollgate, "was restored")["callers"], 1);
    assert!((9_996..=9_997).contains(&ask(&tollgate, 1)), "some units come back while it is away");
    assert!(must(tollgate.stop()).success());
    // Damaged, and not there to be written.
    fs::write(&path, "nonsense").unwrap();
    let mut tollgate = start(&path, "10ms");
    assert_eq!(record(&tollgate, "was not restored")["cause"], "this is no snapshot of Tollgate");
    assert_eq!(ask(&tollgate, 1), 9_999);
    fs::remove_file(&path).unwrap();
    must(wait_until("the next snapshot", || Ok(path.exists().then_some(()))));
    // Moved away in one step: who deletes a folder races with whoever writes into it.
    fs::rename(&states, folder.path().join("elsewhere")).unwrap();
    assert_eq!(record(&tollgate, "was not written")["level"], "WARN");
    assert!(must(tollgate.stop()).success());
}

/// So many that a snapshot is written in several pieces.
const CALLERS: usize = 10_000;

/// Killed at any moment, the last whole snapshot counts: never a damaged one, and never more than it had left.
#[test]
fn who_is_killed_leaves_a_whole_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let (path, part) = (folder.path().join("state"), folder.path().join("state.part"));
    let (mut kept, mut cut_off): (Option<(u64, Instant)>, usize) = (None, 0);
    let mut tollgate = start(&path, "1h");
    let mut connection = Http2::connect(tollgate.address());
    for caller in 0..CALLERS {
        assert_eq!(verdict(&check(&mut connection, &caller.to_string(), RATE)), 200);
    }
    drop(connection);
    assert!(must(tollgate.stop()).success());
    for round in 0..100 {
        let mut tollgate = start(&path, "10ms");
        let restored = record(&tollgate, "was restored")["callers"].as_u64().unwrap();
        assert!(restored >= CALLERS as u64, "{restored}");
        let first = ask(&tollgate, 1);
        if let Some((left, since)) = kept.take() {
            let come_back = since.elapsed().as_secs_f64() / UNIT.as_secs_f64();
            assert!(first < left + come_back.ceil() as u64, "{first} after {left}, of which {come_back} came back");
        }
        let since = now();
        let left = ask(&tollgate, 5 + round % 7);
        // Every other time what was spent is in the file by now; else it is cut off wherever it is.
        if round % 2 == 0 {
            (0..2).for_each(|_| until_written(&path));
            kept = Some((left, since));
        }
        must(tollgate.signal("KILL"));
        must(tollgate.wait());
        cut_off += usize::from(part.exists());
        assert!(!tollgate.log().iter().any(|line| line.contains("was not restored")), "{:?}", tollgate.log());
    }
    assert!(cut_off > 0, "no snapshot was cut off in the middle");
}

/// Waits for another snapshot.
fn until_written(path: &Path) {
    let written = || fs::metadata(path).ok().map(|metadata| metadata.ino());
    let before = written();
    must(wait_until("another snapshot", || Ok((written() != before).then_some(()))));
}
