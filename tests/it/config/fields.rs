//! Files in which every field is set to something else than its default.

use super::{good, path, within};
use std::time::Duration;
use tollgate::answer::{BodyFormat, DecisionMetadata, QuotaHeaders, ResetTime};
use tollgate::config::{Config, ListenAddress, LogFormat, LogLevel, LogPrincipal, Shutdown, Snapshot};
use tollgate::path::EncodedSlash;
use tollgate::policy::callers::{Action, CallerRule};
use tollgate::policy::costs::{Cost, CostSource};
use tollgate::policy::facts::{Field, Presence};
use tollgate::policy::limits::{ChargeAt, WhenFull};
use tollgate::policy::lockouts::{Lockout, Trigger};
use tollgate::policy::outcomes::{OutcomeMatcher, OutcomeRules};
use tollgate::policy::scope::{KeyPart, OnMissing, Source};
use tollgate::policy::when::{Matcher, When};
use tollgate::policy::{ClientAddress, ClientRules, MissingClient, MissingToken, Mode};
use tollgate::token::Failure;
use tollgate::{DenialStatus, MalformedRule, Prefixes, Rate};

pub const FULL: &str = r#"
listen: { grpc: "[::]:0", metrics: "0.0.0.0:10005", trusted_network: true, max_connection_age: off }
token:
  source: [metadata]
  metadata: { namespace: other.filter, payload: claims, failure: why }
  principal: [["https://idp/sub"]]
  capabilities: realm.caps
  prefixes: ["a:new:", "a:", "b:"]
  missing: allow
  preflight: check
callers:
  window_bounds: { min: 30s, max: 1h30m }
  malformed: keep
  rules:
    - { when: &who { principal: mallory }, deny: account closed, mode: observe }
    - { when: *who, reject: 404 }
    - { when: { token: [present, missing], has_rate: false, method: PUT, host: a.b, path: /a, client: ::1 }, reject: 400 }
    - { when: { header.X: a, context.y: b, claim.c.d: [7, true] }, allow_nothing: true }
    - { when: { claim: [e.f], is: { absent: true }, not: *who }, override: &rates [5/1m] }
    - { when: { path: /free/** }, unrestricted: true }
    - { when: { path: /vouched }, vouch: *rates }
    - require_rate: true
    - ceiling: 9/1h
    - ceiling: { rates: *rates, unrestricted: leave }
costs:
  - { when: { path: /look }, cost: 0 }
  - { when: *who, cost: { from: context.cost } }
  - cost: { from: header.X-Cost, default: 2, max: 5, trusted: true }
limits:
  - { name: plain, key: [], rate: 5/1m }
  - { name: all-set_1, when: *who, key: [principal, client.network], rate: 10/1s, burst: 30, window: rolling, charge: entry, max_keys: 7, when_full: evict, advertise: true, enabled: true, mode: observe }
  - { name: fixed, key: { first_of: [header.X-A, claim.a.b, body.form.a.b], on_missing: skip, normalize: identity }, rate: 5/24h, window: fixed, charge: { entry: 2 }, when_full: refuse }
  - { name: parts, key: [{ body.json.a.b: { on_missing: refuse } }, { context.K: { normalize: identity } }, host, method, path, client.address], rate: 2/1h, charge: admitted, when_full: overflow }
  - { name: off, key: principal, rate: 5/1m, enabled: false }
  - { name: rows, key: principal, rate: 5/1m, charge: { outcome: [201, "3xx"] } }
lockouts:
  - { name: plain-lockout, key: [], threshold: 5, window: 15m }
  - { name: tokens, on: failed_token, failures: [expired, key_set], when: { method: GET }, key: client.network, threshold: 20, window: 1h, window_kind: fixed, max_keys: 7, mode: observe }
  - { name: login, on: request, key: principal, threshold: 3, window: 100ms, window_kind: rolling, count: outcome, outcome: { count: [401, grpc.unauthenticated], cancel: aborted, reset: ["2xx", header.X-Known] }, enabled: true, mode: enforce }
  - { name: off-lockout, key: [], threshold: 5, window: 15m, enabled: false }
outcome_timeout: 90s
client: { address: peer, on_missing: peer }
response: { warning_header: X-Notes, warnings: true, body: none, realm: "the \"api\"", decision_metadata: all, ratelimit_headers: x-ratelimit, x_ratelimit_reset: seconds, expose_headers: true }
store: { memory: { snapshot: /var/lib/tollgate/state, interval: 10s } }
paths: { encoded_slash: literal }
shutdown: { delay: 0s, timeout: 100ms }
log: { format: text, level: trace, principal: off, refusals: off }
"#;

#[test]
fn every_field_can_be_set() {
    let Config { listen, token, prefixes, policy, response, snapshot, shutdown, log, .. } = good(FULL);
    assert_eq!(listen.grpc, ListenAddress::Tcp("[::]:0".parse().unwrap()));
    assert_eq!(listen.metrics, Some(ListenAddress::Tcp("0.0.0.0:10005".parse().unwrap())));
    assert_eq!(log.refusals, None);
    let interval = Duration::from_secs(10);
    assert_eq!(snapshot, Some(Snapshot { path: "/var/lib/tollgate/state".into(), interval }));
    assert_eq!((listen.trusted_network, listen.max_connection_age), (true, None));
    assert_eq!(shutdown, Shutdown { delay: Duration::ZERO, timeout: Duration::from_millis(100) });
    assert_eq!((token.namespace.as_str(), token.failure.as_str()), ("other.filter", "why"));
    assert_eq!(token.payload, ["claims"]);
    assert_eq!(token.principal, [path(&["https://idp/sub"])]);
    assert_eq!(token.capabilities, [path(&["realm", "caps"])]);
    assert_eq!(policy.missing, MissingToken::Allow);
    assert_eq!(prefixes, Prefixes::new(["a:new:", "a:", "b:"]).unwrap());
    assert_eq!(policy.callers.base(), within(30, 5_400).with_malformed(MalformedRule::Keep));
    assert_eq!(response.warning_header.as_deref(), Some("x-notes"));
    assert_eq!((response.body, response.realm.as_str()), (BodyFormat::None, "the \"api\""));
    assert_eq!(response.decision_metadata, DecisionMetadata::All);
    let quotas = QuotaHeaders::XRateLimit(ResetTime::Seconds);
    assert_eq!((response.quota_headers, response.expose_headers, policy.tells_quotas), (quotas, true, true));
    assert_eq!((log.format, log.level, log.principal), (LogFormat::Text, LogLevel::Trace, LogPrincipal::Off));
    assert_eq!((policy.mode, policy.skips_preflights), (Mode::Enforce, false));
    assert_eq!(
        policy.client,
        ClientRules { address: ClientAddress::Peer, on_missing: MissingClient::Peer, ipv6_prefix: 64 }
    );
    assert_eq!(policy.encoded_slash, EncodedSlash::Literal);
    let modes: Vec<_> = policy.callers.rules().iter().map(|rule| rule.mode).collect();
    assert_eq!((modes[0], &modes[1..]), (Mode::Observe, &[Mode::Enforce; 9][..]));
    let actions: Vec<_> = policy.callers.rules().iter().map(action).collect();
    let expected = [
        "403 account closed",
        "404 rejected by this rule",
        "400 rejected by this rule",
        "nothing",
        "override [5/1m]",
        "free",
        "vouch [5/1m]",
        "403 the token carries no rate",
        "ceiling [9/1h] for all",
        "ceiling [5/1m] for some",
    ];
    assert_eq!(actions, expected);
    let costs: Vec<_> = policy.costs.rules().iter().map(|rule| cost(&rule.cost)).collect();
    assert_eq!(costs, ["0", "Context(\"cost\") 1 to 100 true", "Header(\"x-cost\") 2 to 5 true"]);
}

#[test]
fn every_field_of_a_limit_can_be_set() {
    let policy = good(FULL).policy;
    let names: Vec<_> = policy.limits.iter().map(|limit| &*limit.name).collect();
    assert_eq!(names, ["plain", "all-set_1", "fixed", "parts", "rows"], "one that is not enabled is not built");
    let rates: Vec<_> = policy.limits.iter().map(|limit| (limit.rate.to_string(), limit.burst)).collect();
    let rate = |text: &str, burst| (text.to_owned(), burst);
    assert_eq!(rates, [rate("5/1m", 5), rate("10/1s", 30), rate("5/24h", 5), rate("2/1h", 2), rate("5/1m", 5)]);
    let facts = policy.limits.iter().map(|limit| {
        (limit.is_fixed, limit.charge.clone(), limit.max_keys, limit.when_full, limit.advertise, limit.mode)
    });
    let expected = [
        (false, ChargeAt::Admitted, 100_000, WhenFull::Overflow, false, Mode::Enforce),
        (false, ChargeAt::Entry, 7, WhenFull::Evict, true, Mode::Observe),
        (true, ChargeAt::Split(2), 100_000, WhenFull::Refuse, false, Mode::Enforce),
        (false, ChargeAt::Admitted, 100_000, WhenFull::Overflow, false, Mode::Enforce),
        (
            false,
            ChargeAt::Outcome([OutcomeMatcher::Status(201), OutcomeMatcher::Class(3)].into()),
            100_000,
            WhenFull::Overflow,
            false,
            Mode::Enforce,
        ),
    ];
    assert_eq!(facts.collect::<Vec<_>>(), expected);
    assert_eq!(policy.limits[1].scope.when, policy.callers.rules()[0].when);
    assert!(policy.limits[0].scope.key.is_empty() && policy.limits[0].scope.when == When::default());
}

#[test]
fn every_field_of_a_lockout_can_be_set() {
    let policy = good(FULL).policy;
    assert_eq!(policy.outcome_timeout, Duration::from_secs(90));
    let [plain, tokens, login] = &policy.lockouts[..] else { panic!("{:?}", policy.lockouts) };
    let numbers = |lockout: &Lockout| {
        let Lockout { threshold, window, is_fixed, max_keys, is_provisional, mode, .. } = lockout;
        (*threshold, window.as_millis(), *is_fixed, *max_keys, *is_provisional, *mode)
    };
    assert_eq!(numbers(plain), (5, 900_000, false, 100_000, false, Mode::Enforce));
    assert_eq!(numbers(tokens), (20, 3_600_000, true, 7, false, Mode::Observe));
    assert_eq!(numbers(login), (3, 100, false, 100_000, true, Mode::Enforce));
    assert_eq!((&plain.on, plain.asks_for_outcomes()), (&Trigger::Request, false));
    assert_eq!(tokens.on, Trigger::FailedToken(vec![Failure::Expired, Failure::KeySet]));
    assert_eq!(tokens.scope.when.0.len(), 1);
    let expected = OutcomeRules {
        count: vec![OutcomeMatcher::Status(401), OutcomeMatcher::Grpc(16)],
        cancel: vec![OutcomeMatcher::Aborted],
        reset: vec![OutcomeMatcher::Class(2), OutcomeMatcher::Header("x-known".into())],
    };
    assert_eq!((&login.on, &login.outcome), (&Trigger::Request, &expected));
}

#[test]
fn every_part_of_a_key_can_be_set() {
    use OnMissing::{Refuse, Shared, Skip};
    let limits = good(FULL).policy.limits;
    let one = |source: Source, normalize, on_missing| KeyPart { first_of: vec![source], normalize, on_missing };
    let field = |field| one(Source::Field(field), false, Shared);
    let names = || vec!["a".to_owned(), "b".to_owned()];
    assert_eq!(limits[1].scope.key, [field(Field::Principal), one(Source::ClientNetwork, false, Shared)]);
    let sources = [
        Source::Field(Field::Header("x-a".into())),
        Source::Field(Field::Claim(path(&["a", "b"]))),
        Source::BodyForm("a.b".into()),
    ];
    assert_eq!(limits[2].scope.key, [KeyPart { first_of: sources.to_vec(), normalize: true, on_missing: Skip }]);
    let parts = [
        one(Source::BodyJson(names()), false, Refuse),
        one(Source::Field(Field::Context("K".into())), true, Shared),
        field(Field::Host),
        field(Field::Method),
        field(Field::Path),
        one(Source::ClientAddress, false, Shared),
    ];
    assert_eq!(limits[3].scope.key, parts);
}

fn action(rule: &CallerRule) -> String {
    let texts = |rates: &[Rate]| rates.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    match &rule.action {
        Action::Deny(denial) | Action::RequireRate(denial) => {
            let status = match denial.status() {
                DenialStatus::BadRequest => 400,
                DenialStatus::NotFound => 404,
                _ => 403,
            };
            format!("{status} {denial}")
        }
        Action::AllowNothing => "nothing".into(),
        Action::Override(rates) => format!("override [{}]", texts(rates)),
        Action::Unrestricted => "free".into(),
        Action::Vouch(rates) => format!("vouch [{}]", texts(rates)),
        Action::Ceiling { rates, spares_unrestricted } => {
            format!("ceiling [{}] for {}", texts(rates), if *spares_unrestricted { "some" } else { "all" })
        }
    }
}

fn cost(cost: &Cost) -> String {
    match cost {
        Cost::Constant(units) => units.to_string(),
        Cost::From(CostSource { field, default, max, trusted }) => format!("{field:?} {default} to {max} {trusted}"),
    }
}

#[test]
fn every_matcher_can_be_set() {
    let policy = good(FULL).policy;
    let when = |rule: usize| &policy.callers.rules()[rule].when;
    assert_eq!(when(0), when(1), "an alias");
    let [Matcher::Token(tokens), Matcher::HasRate(false), method, host, at, Matcher::Client(networks)] = &when(2).0[..]
    else {
        panic!("{:?}", when(2))
    };
    assert_eq!(tokens, &[Presence::Present, Presence::Missing]);
    assert_eq!([method, host, at].map(Matcher::field), [Some(&Field::Method), Some(&Field::Host), Some(&Field::Path)]);
    assert_eq!(networks, &["::1/128".parse().unwrap()]);
    let claim = |names: &[&str]| Field::Claim(path(names));
    let fields = [Field::Header("x".into()), Field::Context("y".into()), claim(&["c", "d"])];
    assert_eq!(when(3).0.iter().map(Matcher::field).collect::<Vec<_>>(), fields.iter().map(Some).collect::<Vec<_>>());
    let negated = Matcher::Not(when(0).clone());
    assert_eq!(when(4), &When(vec![Matcher::Absent(claim(&["e.f"]), true), negated]));
    assert_eq!(when(8), &When::default());
    let policy = good("token: { prefixes: [a], missing: { allow_when: { client: \"::1\" } } }").policy;
    assert_eq!(policy.missing, MissingToken::AllowWhen(When(vec![Matcher::Client(networks.clone())])));
}
