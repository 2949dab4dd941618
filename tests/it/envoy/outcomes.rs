//! Lockouts and outcomes through a real Envoy, which tells by its access log how requests to a toy login ended.

use super::http::{Answer, Client};
use super::mesh::{Mesh, assert_wait, must, now, program};
use super::process::Tollgate;
use super::upstream::{Asked, Upstream};
use super::wait_until;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::Write;
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

const SNIPPET: &str = include_str!("../../../envoy/outcomes.yaml");

const HIDDEN: &str = include_str!("../../../envoy/hidden-headers.yaml");

const HEAD: &str = "
listen: { grpc: \"127.0.0.1:0\" }
token: { prefixes: [\"prefix:rate:\"], missing: allow }
client: { address: { rpc_metadata: x-client-ip } }
log: { level: debug }
";

const LOGIN: &str = "
lockouts:
  - name: login
    when: { method: POST, path: /login }
    key: [client.network, { body.json.username: { normalize: identity, on_missing: refuse } }]
    threshold: 5
    window: 15m
    outcome: { reset: [\"2xx\"], cancel: [\"5xx\", aborted] }
";

/// A gate before the answers that have to wait.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn wait(&self) {
        let (open, opened) = &*self.0;
        let _open = opened.wait_while(open.lock().unwrap(), |open| !*open).unwrap();
    }

    fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }
}

/// The toy login: the password says how it ends. `right` is 200, `wrong` is 401, `boom` is 500, `hold` is a 401 once the gate
/// is open; rows are made with 201; a gRPC call is refused.
fn answer(gate: &Gate, asked: &Asked) -> String {
    let body: Value = serde_json::from_str(&asked.body).unwrap_or_default();
    let is_grpc = asked.headers.iter().any(|(_, value)| value == "application/grpc");
    let (status, fields) = match (asked.line.as_str(), body["password"].as_str()) {
        _ if is_grpc => ("200 OK", "content-type: application/grpc\r\ngrpc-status: 16\r\n"),
        ("POST /rows", _) => ("201 Created", ""),
        ("POST /login", Some("right")) => ("200 OK", ""),
        ("POST /login", Some("boom")) => ("500 Internal Server Error", ""),
        ("POST /login", Some("hold")) => {
            gate.wait();
            ("401 Unauthorized", "")
        }
        ("POST /login", _) if body["username"] == "known" => ("401 Unauthorized", "x-account: known\r\n"),
        ("POST /login", _) => ("401 Unauthorized", ""),
        _ => ("200 OK", ""),
    };
    format!("HTTP/1.1 {status}\r\n{fields}content-length: 0\r\n\r\n")
}

/// Everything a request goes through, with Envoy behind one proxy.
struct Login {
    mesh: Mesh,
    gate: Gate,
}

/// What is changed of envoy.yaml: the access log is there, Envoy hides a header, sends bodies and is behind one proxy.
fn patches() -> [(&'static str, String); 4] {
    let entry = |text: &str| -> String {
        text.lines().filter(|line| !line.starts_with('#')).map(|line| format!("          {line}\n")).collect()
    };
    let body = "              encode_raw_headers: true\n              with_request_body: { max_request_bytes: 8192, allow_partial_message: true, pack_as_bytes: true }\n";
    [
        ("          access_log:\n", format!("          access_log:\n{}", entry(SNIPPET))),
        ("          http_filters:\n", format!("          http_filters:\n{}", entry(HIDDEN))),
        ("              encode_raw_headers: true\n", body.to_owned()),
        ("use_remote_address: true", "use_remote_address: true\n          xff_num_trusted_hops: 1".to_owned()),
    ]
}

impl Login {
    fn start(rules: &str) -> Self {
        Self::on(must(Tollgate::start(program(), &[], &format!("{HEAD}{rules}"))))
    }

    fn on(tollgate: Tollgate) -> Self {
        let gate = Gate::default();
        let address = tollgate.address().to_owned();
        Self { mesh: before(&gate, tollgate, &address), gate }
    }

    fn post(&self, path: &str, from: &str, body: &Value) -> Answer {
        must(send(&self.mesh, path, from, body))
    }

    /// The status of an attempt from an address, once its outcome is settled.
    #[track_caller]
    fn attempt(&self, from: &str, user: &str, password: &str) -> u16 {
        let before = self.settled();
        let answer = self.post("/login", from, &json!({ "username": user, "password": password }));
        if answer.status != 429 {
            self.until_settled(before + 1);
        }
        answer.status
    }

    #[track_caller]
    fn attempts(&self, from: &str, user: &str, passwords: &[&str]) -> Vec<u16> {
        passwords.iter().map(|password| self.attempt(from, user, password)).collect()
    }

    /// How many outcomes were settled by one rule.
    fn settled(&self) -> usize {
        self.mesh.tollgate.log().iter().filter(|line| line.contains("an outcome was settled")).count()
    }

    #[track_caller]
    fn until_settled(&self, count: usize) {
        let settled = || Ok((self.settled() >= count).then_some(()));
        must(wait_until(&format!("{count} outcomes, of {}", self.settled()), settled));
    }
}

/// Envoy before a toy login.
fn before<T>(gate: &Gate, tollgate: T, address: &str) -> Mesh<T> {
    let patches = patches();
    let patches = patches.each_ref().map(|(from, to)| (*from, to.as_str()));
    let gate = gate.clone();
    let upstream = must(Upstream::answering("127.0.0.1", move |asked| answer(&gate, asked)));
    Mesh::before(upstream, tollgate, &[address], "127.0.0.1", &patches)
}

fn send<T>(mesh: &Mesh<T>, path: &str, from: &str, body: &Value) -> Result<Answer, String> {
    let body = body.to_string();
    let length = body.len().to_string();
    let headers = [("x-forwarded-for", from), ("content-type", "application/json"), ("content-length", &*length)];
    Client::connect(mesh.edge)?.send_body("POST", path, &headers, &body)
}

const WRONG: [&str; 5] = ["wrong"; 5];

#[test]
fn five_wrong_passwords_lock_one_key() {
    let login = Login::start(LOGIN);
    let (here, there) = ("198.51.100.1", "198.51.100.2");
    assert_eq!(login.attempts(here, "alice", &WRONG), [401; 5]);
    assert_eq!(
        login.attempts(here, "Alice@", &["wrong", "right"]),
        [429, 429],
        "whatever the password and the spelling"
    );
    assert_eq!(login.attempt(here, "bob", "wrong"), 401);
    assert_eq!(login.attempt(there, "alice", "right"), 200);
    // What is refused reached nobody, and one line says that a lockout was engaged; none says whose.
    assert_eq!(login.mesh.upstream.requests(), 7);
    let log = login.mesh.tollgate.log().join("\n");
    assert_eq!(log.matches("a lockout was engaged").count(), 1);
    assert!(!log.to_lowercase().contains("alice") && !log.contains("bob"), "{log}");
    let refused = login.mesh.logged("the refusal", |record| record["reason"] == "lockout");
    assert_eq!(refused["refused_by"], "login");

    // A right password forgets the wrong ones before it.
    assert_eq!(
        login.attempts(there, "carol", &["wrong", "wrong", "wrong", "wrong", "right"]),
        [401, 401, 401, 401, 200]
    );
    assert_eq!(login.attempts(there, "carol", &WRONG), [401; 5]);
    assert_eq!(login.attempt(there, "carol", "right"), 429);
}

#[test]
fn what_was_no_attempt_is_given_back() {
    let login = Login::start(LOGIN);
    let here = "198.51.100.1";
    // The fifth locks the key, and fails: the lock is lifted.
    assert_eq!(login.attempts(here, "alice", &["wrong", "wrong", "wrong", "wrong", "boom"]), [401, 401, 401, 401, 500]);
    assert_eq!(login.attempts(here, "alice", &["wrong", "wrong"]), [401, 429]);
    // A client that leaves before it is answered.
    assert_eq!(login.attempts(here, "bob", &WRONG[..4]), [401; 4]);
    let (count, reached) = (login.settled(), login.mesh.upstream.requests());
    let body = json!({ "username": "bob", "password": "hold" }).to_string();
    let mut client = TcpStream::connect(login.mesh.edge).unwrap();
    write!(
        client,
        "POST /login HTTP/1.1\r\nhost: a\r\nx-forwarded-for: {here}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    must(wait_until("the request", || Ok((login.mesh.upstream.requests() > reached).then_some(()))));
    assert_eq!(login.attempt(here, "bob", "right"), 429, "the fifth is on its way");
    drop(client);
    login.until_settled(count + 1);
    assert_eq!(login.attempts(here, "bob", &["wrong", "wrong"]), [401, 429]);
    login.gate.open();
}

/// Nobody is answered before all Checks are decided.
#[test]
fn of_a_hundred_at_once_the_threshold_passes() {
    let login = Login::start(LOGIN);
    let guess = json!({ "username": "alice", "password": "hold" });
    let decided = Mutex::new(0);
    let answers: Vec<u16> = thread::scope(|scope| {
        let threads: Vec<_> = (0..100)
            .map(|_| {
                scope.spawn(|| {
                    let status = login.post("/login", "198.51.100.1", &guess).status;
                    *decided.lock().unwrap() += 1;
                    status
                })
            })
            .collect();
        let all = || Ok((*decided.lock().unwrap() + login.mesh.upstream.requests() == 100).then_some(()));
        must(wait_until("a hundred decisions", all));
        login.gate.open();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let count = |status| answers.iter().filter(|answer| **answer == status).count();
    assert_eq!((count(401), count(429), login.mesh.upstream.requests()), (5, 95, 5));
}

#[test]
fn a_lockout_ends_by_itself() {
    let login = Login::start(&LOGIN.replace("15m", "1s").replace("threshold: 5", "threshold: 1"));
    let here = "198.51.100.1";
    // On a machine that stands still it may be over before it is looked at: then once more.
    let refused = must(wait_until("a lockout", || {
        login.attempt(here, "alice", "wrong");
        let answer = login.post("/login", here, &json!({ "username": "alice", "password": "right" }));
        Ok((answer.status == 429).then_some(answer))
    }));
    assert_eq!(refused.header("retry-after"), Some("1"));
    must(wait_until("the end of the lockout", || Ok((login.attempt(here, "alice", "right") == 200).then_some(()))));
}

/// Who owns one account cannot wipe the strikes of guessing, where success takes back itself alone.
#[test]
fn an_account_of_ones_own_wipes_no_strikes() {
    let network = "
lockouts:
  - { name: network, when: { path: /login }, key: client.network, threshold: 4, window: 1h, outcome: { cancel: [\"2xx\", \"5xx\", aborted] } }
";
    let login = Login::start(network);
    let here = "198.51.100.1";
    for victim in ["a", "b", "c"] {
        assert_eq!([login.attempt(here, victim, "wrong"), login.attempt(here, "mallory", "right")], [401, 200]);
    }
    assert_eq!([login.attempt(here, "d", "wrong"), login.attempt(here, "mallory", "right")], [401, 429]);
}

#[test]
fn bad_tokens_lock_their_address_and_no_neighbour() {
    let rules = "lockouts: [{ name: bad-tokens, on: failed_token, key: client.network, threshold: 20, window: 1m }]";
    let login = Login::start(rules);
    let get = |token: &str| {
        let bearer = format!("Bearer {token}");
        login.mesh.send("GET", "/", &[("x-forwarded-for", "198.51.100.1"), ("authorization", &bearer)])
    };
    let good = login.mesh.token("alice", &[]);
    // Signed by nobody whom Envoy knows.
    let forged = super::mesh::key().sign(&super::mesh::whole(json!({ "sub": "alice" }))).unwrap();
    let start = now();
    for attempt in 0..20 {
        let refused = get(&forged);
        let challenge = "Bearer realm=\"tollgate\", error=\"invalid_token\"";
        assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some(challenge)), "{attempt}");
    }
    let refused = get(&forged);
    assert_eq!((refused.status, refused.header("www-authenticate")), (429, None));
    assert_wait(refused.header("retry-after"), 60, start);
    assert_eq!(get(&good).status, 200);
    // None is no failure.
    assert_eq!(login.mesh.send("GET", "/", &[("x-forwarded-for", "198.51.100.1")]).status, 200);
    assert!(!login.mesh.tollgate.log().join("\n").contains(&forged));
}

/// Byte for byte but for the wait, whatever the account.
#[test]
fn refusals_are_the_same_whatever_the_account() {
    let login = Login::start(&LOGIN.replace("threshold: 5", "threshold: 1"));
    let mut seen = HashMap::new();
    for user in ["alice", "nobody@example.com", "x"] {
        assert_eq!(login.attempt("198.51.100.1", user, "wrong"), 401);
        let mut refused = login.post("/login", "198.51.100.1", &json!({ "username": user, "password": "right" }));
        refused.headers.retain(|(name, _)| name != "date");
        let wait = refused.header("retry-after").unwrap().to_owned();
        let headers: Vec<_> =
            refused.headers.iter().map(|(name, value)| (name, value.replace(&wait, "WAIT"))).collect();
        *seen.entry(format!("{} {headers:?} {}", refused.status, refused.body.replace(&wait, "WAIT"))).or_insert(0) +=
            1;
    }
    assert_eq!(seen.into_values().collect::<Vec<_>>(), [3]);
}

#[test]
fn a_quota_of_rows_counts_what_is_created() {
    let rules = "
limits:
  - { name: network-rows, when: { path: /rows }, key: client.network, rate: 2/24h, charge: { outcome: [201] } }
  - { name: all-rows, when: { path: [/rows, /login] }, key: [], rate: 3/24h, charge: { outcome: [201] } }
";
    let login = Login::start(rules);
    let post = |path: &str, from: &str, outcomes: usize| {
        let before = login.settled();
        let status = login.post(path, from, &json!({})).status;
        login.until_settled(before + outcomes);
        status
    };
    assert_eq!([post("/login", "198.51.100.1", 1), post("/login", "198.51.100.1", 1)], [401, 401], "no row, no charge");
    assert_eq!([post("/rows", "198.51.100.1", 2), post("/rows", "198.51.100.1", 2)], [201, 201]);
    assert_eq!(post("/rows", "198.51.100.1", 0), 429);
    assert_eq!([post("/rows", "198.51.100.2", 2), post("/rows", "198.51.100.2", 0)], [201, 429], "three for all");
    assert_eq!(login.mesh.upstream.requests(), 5);
}

/// The upstream says which accounts exist, and no client hears it.
#[test]
fn a_hidden_header_tells_accounts_that_exist() {
    let rules = "
lockouts:
  - name: account
    when: { path: /login }
    key: { body.json.username: { normalize: identity, on_missing: refuse } }
    threshold: 2
    window: 15m
    count: outcome
    outcome: { count: [header.x-account] }
";
    let login = Login::start(rules);
    let here = "198.51.100.1";
    let guess = login.post("/login", here, &json!({ "username": "known", "password": "wrong" }));
    assert_eq!((guess.status, guess.header("x-account")), (401, None));
    login.until_settled(1);
    assert_eq!(login.attempts(here, "known", &["wrong", "wrong", "right"]), [401, 429, 429]);
    assert_eq!(login.attempts(here, "made-up", &WRONG), [401; 5]);
}

/// A gRPC call that is refused has the HTTP status 200, which resets nothing.
#[test]
fn grpc_calls_end_with_their_own_status() {
    let rules = "lockouts: [{ name: grpc, key: client.network, threshold: 2, window: 15m, outcome: { reset: [\"2xx\"], count: [grpc.unauthenticated] } }]";
    let login = Login::start(rules);
    let call = || {
        let headers = [("content-type", "application/grpc"), ("content-length", "0"), ("te", "trailers")];
        let answer = login.mesh.send("POST", "/login", &headers);
        (answer.status, answer.header("grpc-status").map(ToOwned::to_owned))
    };
    for _ in 0..2 {
        let before = login.settled();
        assert_eq!(call(), (200, Some("16".into())));
        login.until_settled(before + 1);
    }
    assert_eq!(call(), (200, Some("8".into())));
}

/// Envoy opens its stream again; what was reserved before a restart is another process's, and changes nothing.
#[test]
fn the_stream_is_opened_again() {
    let rules = format!("{HEAD}{LOGIN}shutdown: {{ delay: 0s }}\n");
    let rules = rules.replace("127.0.0.1:0", "127.0.0.13:0");
    let mut login = Login::on(must(Tollgate::start(program(), &[], &rules)));
    let here = "198.51.100.1";
    assert_eq!(login.attempts(here, "alice", &WRONG[..4]), [401; 4]);
    let (edge, reached) = (login.mesh.edge, login.mesh.upstream.requests());
    let held = thread::spawn(move || {
        let body = json!({ "username": "alice", "password": "hold" }).to_string();
        let length = body.len().to_string();
        let headers = [("x-forwarded-for", here), ("content-type", "application/json"), ("content-length", &*length)];
        Client::connect(edge)?.send_body("POST", "/login", &headers, &body)
    });
    must(wait_until("the request", || Ok((login.mesh.upstream.requests() > reached).then_some(()))));
    let address = login.mesh.tollgate.address().to_owned();
    let stopped = must(login.mesh.tollgate.stop());
    assert!(stopped.success());
    login.mesh.tollgate = must(Tollgate::start(program(), &[], &rules.replace("127.0.0.13:0", &address)));
    let again =
        || Ok((login.post("/login", here, &json!({ "username": "x", "password": "x" })).status == 401).then_some(()));
    must(wait_until("Envoy to be back", again));
    login.gate.open();
    assert_eq!(must(held.join().unwrap()).status, 401);
    must(wait_until("a foreign outcome", || {
        let log = login.mesh.tollgate.log();
        Ok(log.iter().any(|line| line.contains("an outcome is not honoured") && line.contains("foreign")).then_some(()))
    }));
    assert_eq!(login.attempts(here, "alice", &WRONG), [401; 5], "a restart forgets");
    assert_eq!(login.attempt(here, "alice", "right"), 429);
    assert!(must(login.mesh.tollgate.stop()).success());
    let record = login.mesh.logged("the report", |record| record["foreign"].as_u64().is_some());
    assert_eq!((&record["level"], &record["foreign"]), (&json!("WARN"), &json!(1)));
}

/// Two Envoys tell one Tollgate.
#[test]
fn two_envoys_tell_one_tollgate() {
    let login = Login::start(LOGIN);
    let other = before(&login.gate, (), login.mesh.tollgate.address());
    let here = "198.51.100.1";
    for round in 0..2 {
        assert_eq!(login.attempts(here, "alice", &WRONG[..2]), [401; 2]);
        let before = login.settled();
        let password = if round == 0 { "right" } else { "wrong" };
        let status = must(send(&other, "/login", here, &json!({ "username": "alice", "password": password }))).status;
        assert_eq!(status, if round == 0 { 200 } else { 401 });
        login.until_settled(before + 1);
    }
    assert_eq!(login.attempts(here, "alice", &WRONG[..3]), [401, 401, 429], "two, one and two are five");
}
