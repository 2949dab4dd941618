//! `cargo bench --bench soak -- SECONDS`: thousands of Checks a second by callers that come and go, each an attempt at a lockout
//! whose outcome is told, while the configuration is reloaded (other rates, rules and lockouts), snapshots are written and metrics
//! are scraped every second. Every other caller's attempts are taken back; the others are locked by their last.
//!
//! Every answer is held against what it must be: of a caller with `5/10s`, the first five calls at once go on and the sixth
//! does not. Beside each call a plain tonic server gets one of the same size, and the ratio is that of the same seconds.
//! Memory is that of the process, sampled through the run: it is flat if the last third of it holds what the second held. A run
//! of ten minutes or more fails where memory grows by a tenth, or the 99th percentile is twice that of the plain server.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[path = "../examples/demo/child.rs"]
mod child;
#[path = "../examples/demo/http.rs"]
mod http_client;
#[path = "wire/load.rs"]
#[allow(dead_code, reason = "the soak makes its own rounds")]
mod load;
#[path = "wire/message.rs"]
#[allow(dead_code, reason = "the soak makes its own messages")]
mod message;
#[path = "soak/outcomes.rs"]
mod outcomes;
#[path = "wire/plain.rs"]
mod plain;
#[path = "wire/server.rs"]
mod server;

use bytes::Bytes;
use envoy_types::ext_authz::v3::pb::{CheckResponse, HttpResponse};
use h2::client::SendRequest;
use prost::Message;
use server::{Server, cpu};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// The calls of a caller that go on at once.
const CALLS: u64 = 5;
/// A unit comes back after so long.
const INTERVAL: Duration = Duration::from_secs(2);
/// Callers at a time, each paced.
const TASKS: u64 = 32;
const PACE: Duration = Duration::from_millis(9);
/// A run of so long is held to bounds.
const LONG: Duration = Duration::from_secs(600);

fn main() -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.iter().any(|argument| argument == plain::ARGUMENT) {
        return runtime.block_on(plain::serve());
    }
    let seconds = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(20);
    runtime.block_on(soak(Duration::from_secs(seconds)))
}

async fn soak(time: Duration) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("tollgate.yaml");
    let metrics = free_address();
    std::fs::write(&path, config(folder.path(), metrics, 0)).map_err(|error| error.to_string())?;
    let (tollgate, plain) = (Server::tollgate_with(&path)?, Server::plain()?);
    let end = Instant::now() + time;
    let disturbances = std::thread::spawn({
        let (folder, process) = (folder.path().to_owned(), tollgate.process);
        move || disturb(&folder, metrics, process, end)
    });
    let (callers, before) = (Arc::new(AtomicU64::new(0)), cpu(tollgate.process));
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let ours = load::connect(tollgate.address).await;
        let theirs = load::connect(plain.address).await;
        tasks.spawn(call_until(ours, theirs, Arc::clone(&callers), end));
    }
    let mut times = [Vec::new(), Vec::new()];
    for of_task in tasks.join_all().await {
        times[0].extend(of_task[0].iter().copied());
        times[1].extend(of_task[1].iter().copied());
    }
    let spent = cpu(tollgate.process) - before;
    let memory = disturbances.join().map_err(|_| "a reload, a scrape or a snapshot failed")?;
    let (p99, growth) = report(time, &mut times, &memory, callers.load(Relaxed), spent);
    match time < LONG || p99 <= 2.0 && growth <= 1.1 {
        true => Ok(()),
        false => Err(format!("the 99th percentile is {p99:.2} of the plain server's, memory grew to {growth:.2}")),
    }
}

fn config(folder: &Path, metrics: SocketAddr, turn: u64) -> String {
    let state = folder.join("state");
    let turn = (turn % 2) as usize;
    let (principal, level) = [("plain", "info"), ("hash", "error")][turn];
    let (rate, rule, window) = [(1_000_000, "deny: closed", "20s"), (900_000, "ceiling: [1/1m]", "30s")][turn];
    format!(
        "listen: {{ grpc: \"127.0.0.1:0\", metrics: {metrics}, max_connection_age: off }}\n\
         token: {{ prefixes: [\"r:\"] }}\n\
         callers: {{ window_bounds: {{ min: 1s, max: 24h }}, rules: [{{ when: {{ principal: mallory }}, {rule} }}] }}\n\
         limits: [{{ name: all, key: [], rate: {rate}/1s }}]\n\
         lockouts: [{{ name: tries, key: principal, threshold: {CALLS}, window: {window}, max_keys: 200000, outcome: {{ cancel: [503] }} }}]\n\
         store: {{ memory: {{ snapshot: {state:?}, interval: 1s }} }}\n\
         log: {{ level: {level}, principal: {principal} }}\n"
    )
}

/// Reloads and scrapes every second, and samples the memory in kB.
fn disturb(folder: &Path, metrics: SocketAddr, process: u32, end: Instant) -> Vec<u64> {
    let (mut memory, mut lines, path) = (Vec::new(), Vec::new(), folder.join("tollgate.yaml"));
    for turn in 1.. {
        if Instant::now() > end {
            break;
        }
        std::fs::write(folder.join("next"), config(folder, metrics, turn)).unwrap();
        std::fs::rename(folder.join("next"), &path).unwrap();
        std::thread::sleep(Duration::from_secs(1));
        let mut client = http_client::Client::connect(metrics).unwrap();
        let scrape = client.send("GET", "/metrics", &[]).unwrap();
        let value = |series: &str| -> u64 {
            let found = scrape.body.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
            found.unwrap_or_else(|| panic!("no {series}")).parse::<f64>().unwrap() as u64
        };
        assert_eq!(value("tollgate_config_reloads_total{result=\"applied\"}"), turn, "a reload was missed");
        assert_eq!(value("tollgate_config_reloads_total{result=\"refused\"}"), 0);
        assert_eq!(value("tollgate_snapshots_total{result=\"failed\"}"), 0);
        assert!(value("tollgate_snapshots_total{result=\"written\"}") + 5 > turn / 2, "snapshots are missing");
        assert_eq!(value("tollgate_check_errors_total{kind=\"panic\"}"), 0);
        let told = ["counted", "cancelled"].map(|kind| value(&format!("tollgate_outcomes_total{{result=\"{kind}\"}}")));
        assert!(
            told.iter().sum::<u64>() + 100 >= value("tollgate_reservations_total"),
            "outcomes are missing: {told:?}"
        );
        memory.push(resident(process));
        lines.push(scrape.body.lines().count());
    }
    assert!(lines.iter().skip(5).all(|count| *count == lines[5]), "the size of a scrape depends on callers: {lines:?}");
    memory
}

/// proc(5): `VmRSS` in kB.
fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process that runs, on Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// One caller after another, and beside each call one to the plain server: the times of both, in microseconds.
async fn call_until(
    mut ours: SendRequest<Bytes>,
    mut theirs: SendRequest<Bytes>,
    callers: Arc<AtomicU64>,
    end: Instant,
) -> [Vec<u32>; 2] {
    let mut times = [Vec::new(), Vec::new()];
    let mut pace = tokio::time::interval(PACE);
    let mut log = outcomes::Log::open(&mut ours).await;
    while Instant::now() < end {
        let caller = callers.fetch_add(1, Relaxed);
        let (message, start) = (request(caller), Instant::now());
        for call in 0..=CALLS {
            pace.tick().await;
            let answer = timed(&mut ours, &message, &mut times[0]).await;
            timed(&mut theirs, &message, &mut times[1]).await;
            let is_allowed = is_allowed(&answer);
            if let Some(reservation) = outcomes::reservation(&answer) {
                log.tell(reservation, if caller.is_multiple_of(2) { 503 } else { 200 }).await;
            }
            // Where the machine was away for as long as a unit takes to come back, either is right.
            let is_told = call < CALLS || start.elapsed() < INTERVAL;
            assert!(!is_told || is_allowed == (call < CALLS), "call {call} of a caller: {is_allowed}");
        }
    }
    times
}

async fn timed(connection: &mut SendRequest<Bytes>, message: &Bytes, times: &mut Vec<u32>) -> Bytes {
    let start = Instant::now();
    *connection = connection.clone().ready().await.unwrap();
    let answer = load::call(connection, message.clone()).await;
    times.push(u32::try_from(start.elapsed().as_micros()).unwrap_or(u32::MAX));
    answer
}

fn is_allowed(answer: &[u8]) -> bool {
    let answer = CheckResponse::decode(&answer[5..]).unwrap();
    matches!(answer.http_response.expect("an answer that is not empty"), HttpResponse::OkResponse(_))
}

/// The framed Check of a caller.
fn request(caller: u64) -> Bytes {
    use envoy_types::pb::envoy::config::core::v3::Metadata;
    use envoy_types::pb::envoy::service::auth::v3::{AttributeContext, CheckRequest};
    use envoy_types::pb::google::protobuf::{Struct, Value, value::Kind};
    let text = |text: String| Value { kind: Some(Kind::StringValue(text)) };
    let claims =
        [("sub".to_owned(), text(format!("caller-{caller}"))), ("capabilities".to_owned(), text("r:5/10s".into()))];
    let payload = Value { kind: Some(Kind::StructValue(Struct { fields: claims.into() })) };
    let namespace = Struct { fields: [("jwt_payload".to_owned(), payload)].into() };
    let metadata = Metadata {
        filter_metadata: [("envoy.filters.http.jwt_authn".to_owned(), namespace)].into(),
        ..Metadata::default()
    };
    let attributes = AttributeContext { metadata_context: Some(metadata), ..AttributeContext::default() };
    framed(&CheckRequest { attributes: Some(attributes) })
}

/// A gRPC message: not compressed, its length, itself.
fn framed(message: &impl Message) -> Bytes {
    let message = message.encode_to_vec();
    let mut framed = vec![0];
    framed.extend_from_slice(&(message.len() as u32).to_be_bytes());
    framed.extend_from_slice(&message);
    framed.into()
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port")
}

/// Says how it went, and gives the ratios of the 99th percentiles and of memory.
fn report(time: Duration, times: &mut [Vec<u32>; 2], memory: &[u64], callers: u64, spent: Duration) -> (f64, f64) {
    let checks = times[0].len();
    let per_second = checks as f64 / time.as_secs_f64();
    println!("{checks} Checks of {callers} callers, {per_second:.0} a second, every answer as it must be");
    println!(
        "{:.1} us of CPU a Check, reloads, snapshots and scrapes included",
        spent.as_secs_f64() * 1e6 / checks as f64
    );
    println!("{:<12} {:>10} {:>10} {:>7}", "", "tollgate", "plain", "ratio");
    let [_, p99, _] = [("median", 0.5), ("p99", 0.99), ("p99.9", 0.999)].map(|(name, at)| {
        let [ours, theirs] = times.each_mut().map(|times| {
            let rank = ((times.len() - 1) as f64 * at) as usize;
            *times.select_nth_unstable(rank).1
        });
        let ratio = f64::from(ours) / f64::from(theirs);
        println!("{name:<12} {ours:>7} us {theirs:>7} us {ratio:>7.2}");
        ratio
    });
    let third = memory.len() / 3;
    let mean = |samples: &[u64]| samples.iter().sum::<u64>() as f64 / samples.len().max(1) as f64 / 1024.0;
    let (second, last) = (mean(&memory[third..2 * third]), mean(&memory[2 * third..]));
    let tenths = memory.chunks(memory.len().div_ceil(10).max(1)).map(|tenth| format!("{:.1}", mean(tenth)));
    println!("memory by tenths, in MB: {}", tenths.collect::<Vec<_>>().join(" "));
    println!("memory {second:.1} MB in the second third, {last:.1} MB in the last: {:.2}", last / second);
    (p99, last / second)
}
