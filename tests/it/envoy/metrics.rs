//! Metrics and health over HTTP: what they say of requests through Envoy, and what they never say.

use super::checks::CHECK;
use super::child::wait_until;
use super::http::Client;
use super::mesh::{Mesh, PLAIN, must};
use super::process::Tollgate;
use super::wire::{Http2, framed, grpc};
use crate::promtool;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

const LOGS: &str = "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs";

const RULES: &str = "
client: { address: { rpc_metadata: x-client-ip } }
callers: { rules: [{ when: { principal: mallory }, deny: closed }, { when: { principal: olga }, ceiling: [1/24h], mode: observe }] }
limits:
  - { name: callers-eu, when: { path: /open }, key: [], rate: 1/24h }
  - { name: network, key: client.network, rate: 1000/24h }
  - { name: rows, when: { path: /rows }, key: [], rate: 1/24h, charge: { outcome: [201] } }
lockouts: [{ name: bad-tokens, on: failed_token, key: client.network, threshold: 1, window: 15m }]
";

/// A configuration with a listener for metrics.
pub fn with_metrics(rules: &str) -> String {
    format!("{}{rules}", PLAIN.replace("listen: {", "listen: { metrics: \"127.0.0.1:0\","))
}

/// Where metrics are served, as the log says.
pub fn address(tollgate: &Tollgate) -> SocketAddr {
    let told = tollgate.log().iter().find_map(|line| {
        let record: Value = serde_json::from_str(line).ok()?;
        (record["message"] == "metrics and health").then(|| record["address"].as_str().unwrap().parse().unwrap())
    });
    told.expect("the address of metrics")
}

pub fn get(tollgate: &Tollgate, path: &str) -> (u16, String) {
    let answer = must(must(Client::connect(address(tollgate))).send("GET", path, &[]));
    (answer.status, answer.body)
}

pub fn scrape(tollgate: &Tollgate) -> String {
    let (status, text) = get(tollgate, "/metrics");
    assert_eq!(status, 200);
    text
}

/// The value of a series, written as in a scrape.
#[track_caller]
fn value(scrape: &str, series: &str) -> f64 {
    let line = scrape.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in\n{scrape}")).parse().unwrap()
}

#[test]
fn what_was_decided_is_counted() {
    let rules = with_metrics(RULES).replace("prefixes:", "missing: { allow_when: { path: /open } }, prefixes:");
    let mesh = Mesh::start(&rules);
    let get = |principal: &str, capabilities: &[&str]| mesh.get(&mesh.token(principal, capabilities)).status;
    let statuses = [
        get("alice", &["prefix:rate:1/24h"]),
        get("alice", &["prefix:rate:1/24h", "prefix:rate:fast"]),
        get("mallory", &[]),
        get("olga", &[]),
        get("olga", &[]),
        mesh.send("GET", "/", &[]).status,
        mesh.get("x").status,
        mesh.get("x").status,
        mesh.get_path("/rows", &mesh.token("bob", &[])).status,
        // Whoever needs no token lacks none, where something else refuses.
        mesh.send("GET", "/open", &[]).status,
        mesh.send("GET", "/open", &[]).status,
    ];
    assert_eq!(statuses, [200, 429, 403, 200, 200, 401, 401, 429, 200, 200, 429]);
    let mut connection = Http2::connect(mesh.tollgate.address());
    let reply = connection.send(grpc(CHECK), framed(b"no CheckRequest"));
    assert_eq!(reply.field("grpc-status"), Some("3"), "InvalidArgument");
    let reply = connection.send(grpc(CHECK), framed(&vec![0; 2 << 20]));
    assert_eq!(reply.field("grpc-status"), Some("11"), "OutOfRange: it is too large");
    let text = scrape(&mesh.tollgate);
    let decisions = |verdict: &str, reason: &str, limit: &str| {
        value(
            &text,
            &format!("tollgate_decisions_total{{verdict=\"{verdict}\",reason=\"{reason}\",limit=\"{limit}\"}}"),
        )
    };
    assert_eq!(decisions("allowed", "none", ""), 4.0);
    assert_eq!(decisions("refused", "rate-exceeded", "callers-eu"), 1.0);
    assert_eq!(decisions("observed", "rate-exceeded", "callers"), 1.0);
    assert_eq!(decisions("refused", "rate-exceeded", "callers"), 1.0);
    assert_eq!(decisions("refused", "denied", "callers"), 1.0);
    assert_eq!(decisions("refused", "missing-token", ""), 1.0);
    assert_eq!(decisions("refused", "failed-token", ""), 1.0);
    assert_eq!(decisions("refused", "lockout", "bad-tokens"), 1.0);
    for (series, expected) in [
        ("tollgate_identity_failures_total{kind=\"missing\"}", 1.0),
        ("tollgate_identity_failures_total{kind=\"malformed\"}", 2.0),
        ("tollgate_identity_failures_total{kind=\"expired\"}", 0.0),
        ("tollgate_check_errors_total{kind=\"unreadable\"}", 2.0),
        ("tollgate_check_errors_total{kind=\"panic\"}", 0.0),
        ("tollgate_capability_warnings_total", 1.0),
        ("tollgate_lockouts_engaged_total{lockout=\"bad-tokens\"}", 1.0),
        ("tollgate_lockout_keys{lockout=\"bad-tokens\"}", 1.0),
        ("tollgate_lockout_locked_keys{lockout=\"bad-tokens\"}", 1.0),
        ("tollgate_limit_keys{limit=\"network\"}", 1.0),
        ("tollgate_limit_keys{limit=\"rows\"}", 0.0),
        ("tollgate_reservations_total", 1.0),
        ("tollgate_reservations_settled_total", 0.0),
        ("tollgate_check_duration_seconds_count", 12.0),
        ("tollgate_callers", 1.0),
        ("tollgate_ready", 1.0),
        ("tollgate_config_is_current", 1.0),
        ("tollgate_config_needs_restart", 0.0),
        ("tollgate_config_reloads_total{result=\"applied\"}", 0.0),
        ("tollgate_unknown_clients_total", 0.0),
    ] {
        assert_eq!(value(&text, series), expected, "{series}");
    }
    assert!(value(&text, "tollgate_connections") >= 1.0);
    assert!(text.contains("tollgate_build_info{version="));
    let said = promtool::run(Path::new("."), &["check", "metrics"], &text);
    assert_eq!(said, "", "promtool finds nothing to say");
    for word in ["alice", "mallory", "olga", "bob", "/rows", "127.0.0.1"] {
        assert!(!text.contains(word), "{word}");
    }

    // Whoever goes in the middle of a Check is no bug.
    let mut gone = Http2::connect(mesh.tollgate.address());
    let pending = gone.begin(grpc(CHECK), framed(b"no CheckRequest").slice(..7));
    assert_eq!(gone.send(grpc(CHECK), framed(b"no CheckRequest")).field("grpc-status"), Some("3"));
    drop((pending, gone));
    let seen =
        || Ok(scrape(&mesh.tollgate).contains("tollgate_check_errors_total{kind=\"unreadable\"} 4").then_some(()));
    must(wait_until("the Check that was cut off", seen));
    assert_eq!(value(&scrape(&mesh.tollgate), "tollgate_check_errors_total{kind=\"panic\"}"), 0.0);

    // Envoy collects access logs while it cannot send them: none is lost for its size, but for one beyond all measure.
    let mut logs = Http2::connect(mesh.tollgate.address());
    for (megabytes, status) in [(2, "0"), (5, "11")] {
        let answered = logs.send(grpc(LOGS), framed(&vec![0; megabytes << 20]));
        assert_eq!(answered.field("grpc-status"), Some(status), "{megabytes} MiB");
    }
    assert_eq!(value(&scrape(&mesh.tollgate), "tollgate_outcomes_total{result=\"unreadable\"}"), 2.0);
    let told = mesh.logged("the lost log", |record| record["message"] == "an access log cannot be read");
    assert!(told["error"].as_str().unwrap().contains("5242880 bytes"), "{told}");

    // What has changed since the configuration did.
    std::fs::write(mesh.tollgate.config(), "mode: watch").unwrap();
    let seen = || Ok(scrape(&mesh.tollgate).contains("tollgate_config_is_current 0").then_some(()));
    must(wait_until("the refused configuration", seen));
    let next = format!("{}shutdown: {{ delay: 1s }}\n", rules.replace("name: network", "name: nets"))
        .replace("name: bad-tokens", "name: guesses");
    std::fs::write(mesh.tollgate.config(), next).unwrap();
    let seen = || Ok(scrape(&mesh.tollgate).contains("tollgate_config_is_current 1").then_some(()));
    must(wait_until("the good configuration", seen));
    let later = scrape(&mesh.tollgate);
    assert_eq!(value(&later, "tollgate_config_reloads_total{result=\"refused\"}"), 1.0);
    assert_eq!(value(&later, "tollgate_config_reloads_total{result=\"applied\"}"), 1.0);
    assert_eq!(value(&later, "tollgate_limit_keys{limit=\"nets\"}"), 0.0);
    assert_eq!(value(&later, "tollgate_capability_warnings_total"), 1.0, "what was counted before goes on");
    assert_eq!(value(&later, "tollgate_lockouts_engaged_total{lockout=\"guesses\"}"), 0.0);
    assert_eq!(value(&later, "tollgate_config_needs_restart"), 1.0);
    // A file that is gone is not the live one.
    std::fs::rename(mesh.tollgate.config(), mesh.tollgate.config().with_extension("away")).unwrap();
    must(mesh.tollgate.signal("HUP"));
    let seen = || Ok(scrape(&mesh.tollgate).contains("tollgate_config_is_current 0").then_some(()));
    must(wait_until("the missing configuration", seen));
    std::fs::rename(mesh.tollgate.config().with_extension("away"), mesh.tollgate.config()).unwrap();
    let seen = || Ok(scrape(&mesh.tollgate).contains("tollgate_config_is_current 1").then_some(()));
    must(wait_until("the same configuration", seen));
}

#[test]
fn health_over_http() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let rules = format!("shutdown: {{ delay: 25s }}\nstore: {{ memory: {{ snapshot: {state:?}, interval: 1h }} }}\n");
    let mut mesh = Mesh::start(&with_metrics(&rules));
    // A snapshot that never comes grows old as well.
    assert!(value(&scrape(&mesh.tollgate), "tollgate_snapshot_timestamp_seconds") > 1e9);
    assert_eq!(get(&mesh.tollgate, "/livez"), (200, "ok\n".into()));
    assert_eq!(get(&mesh.tollgate, "/readyz"), (200, "ok\n".into()));
    assert_eq!(get(&mesh.tollgate, "/"), (404, "here are /metrics, /livez and /readyz\n".into()));
    let posted =
        must(must(Client::connect(address(&mesh.tollgate))).send("POST", "/metrics", &[("content-length", "0")]));
    assert_eq!(posted.status, 405);
    assert_eq!(posted.header("allow"), Some("GET, HEAD"));
    // Connections that say nothing keep nobody out.
    let idle: Vec<_> = (0..100).map(|_| TcpStream::connect(address(&mesh.tollgate)).unwrap()).collect();
    assert_eq!(get(&mesh.tollgate, "/livez").0, 200);
    drop(idle);
    must(mesh.tollgate.signal("TERM"));
    let stopping = || Ok((get(&mesh.tollgate, "/readyz") == (503, "stopping\n".into())).then_some(()));
    must(wait_until("not ready", stopping));
    assert_eq!(get(&mesh.tollgate, "/livez").0, 200);
    assert_eq!(value(&scrape(&mesh.tollgate), "tollgate_ready"), 0.0);
    must(mesh.tollgate.signal("INT"));
    assert!(must(mesh.tollgate.wait()).success());
}

/// The names of Tollgate's metrics in `text`.
fn names(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c: char| !is_part(c)).filter(|word| word.starts_with("tollgate_"));
    words.map(ToOwned::to_owned).collect()
}

/// The labels in a query, a legend or a series: before a value, in `by (...)` and the like, and in braces.
fn labels(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let of = |word: &str| word.trim().to_owned();
    let before_values = text.split('=').filter(|part| part.ends_with(is_part) || part.ends_with('!'));
    let matched = before_values.filter_map(|part| part.trim_end_matches('!').rsplit(|c: char| !is_part(c)).next());
    let listed = ["by (", "on (", "group_left(", "{{"].into_iter().flat_map(|start| text.split(start).skip(1));
    let listed = listed.filter_map(|rest| rest.split([')', '}']).next()).flat_map(|list| list.split(','));
    matched.chain(listed).map(of).filter(|word| !word.is_empty()).collect()
}

/// Every query of the dashboard and the alerts is about metrics that there are, and every metric is in the dashboard.
#[test]
fn dashboard_and_alerts_name_metrics_that_there_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy");
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let mesh =
        Mesh::start(&with_metrics(&format!("{RULES}store: {{ memory: {{ snapshot: {state:?}, interval: 10ms }} }}\n")));
    mesh.send("GET", "/", &[]);
    mesh.get("x");
    let written = || Ok(scrape(&mesh.tollgate).contains("tollgate_snapshot_timestamp_seconds 1").then_some(()));
    must(wait_until("a snapshot", written));
    let text = scrape(&mesh.tollgate);
    let series: BTreeSet<String> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(|line| names(line.split([' ', '{']).next().unwrap()))
        .collect();
    let dashboard: Value =
        serde_json::from_str(&std::fs::read_to_string(root.join("grafana/dashboard.json")).unwrap()).unwrap();
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let targets = panel["targets"].as_array().unwrap();
        queries.extend(targets.iter().map(|target| target["expr"].as_str().unwrap().to_owned()));
    }
    for query in &queries {
        let asked = labels(query);
        let known =
            text.lines().filter(|line| names(line).iter().any(|name| query.contains(name.as_str()))).flat_map(labels);
        let known: BTreeSet<String> = known.chain(["job", "instance"].map(ToOwned::to_owned)).collect();
        assert!(asked.is_subset(&known), "{query}: {asked:?}, of {known:?}");
    }
    let shown: BTreeSet<String> = queries.iter().flat_map(|query| names(query)).collect();
    let alerts = std::fs::read_to_string(root.join("prometheus/alerts.yaml")).unwrap();
    for name in shown.iter().chain(&names(&alerts)) {
        assert!(series.contains(name), "{name} is no metric");
    }
    for name in series.iter().filter(|name| !name.ends_with("_sum") && !name.ends_with("_count")) {
        assert!(shown.contains(name), "{name} is not in the dashboard");
    }
    // The page of operations names each, some by their ends.
    let page = std::fs::read_to_string(root.join("../docs/operations.md")).unwrap();
    let ends = ["_total", "_bucket", "_sum", "_count"];
    for name in &series {
        let stem = ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        let end = ["tollgate_limit", "tollgate_lockout"].iter().find_map(|start| stem.strip_prefix(start));
        let is_named = page.contains(stem) || end.is_some_and(|end| page.contains(&format!("`{end}")));
        assert!(is_named, "{name} is not in docs/operations.md");
    }
    // The queries are PromQL: as rules, promtool reads them.
    let rules: Vec<_> = queries
        .iter()
        .enumerate()
        .map(|(number, query)| {
            let query = query.replace("$job", "tollgate");
            serde_json::json!({ "record": format!("dashboard:q{number}"), "expr": query })
        })
        .collect();
    let file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    std::fs::write(&file, serde_json::json!({ "groups": [{ "name": "dashboard", "rules": rules }] }).to_string())
        .unwrap();
    promtool::run(Path::new("/"), &["check", "rules", file.path().to_str().unwrap()], "");
    promtool::run(&root.join("prometheus"), &["check", "rules", "alerts.yaml"], "");
    promtool::run(&root.join("prometheus"), &["test", "rules", "alerts_test.yaml"], "");
}
