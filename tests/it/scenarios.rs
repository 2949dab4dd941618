//! The decision scenarios of `tests/conformance/` as configurations, and through Check, message to message.

use crate::conformance::{cases, strings};
use crate::envoy::check_request;
use envoy_types::pb::envoy::config::core::v3::{Address, SocketAddress, address};
use envoy_types::pb::envoy::service::auth::v3::attribute_context::{self, HttpRequest, Peer};
use envoy_types::pb::envoy::service::auth::v3::check_response::HttpResponse;
use envoy_types::pb::envoy::service::auth::v3::{CheckRequest, CheckResponse};
use prost::Message;
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tollgate::config::Config;
use tollgate::envoy::ext_authz::ExtAuthz;
use tollgate::reload::{Hash, Live};
use tollgate::server::scrape::registry;
use tollgate::server::status::Status;
use tollgate::{ManualClock, Rate};

/// A configuration for the scenario's resolver, if there is one: a rate that is none cannot be written.
pub fn configuration(scenario: &Value) -> Option<String> {
    let resolver = &scenario["resolver"];
    let mut callers = match (resolver["kind"].as_str().unwrap(), resolver["base"].as_str()) {
        ("raw", _) | (_, Some("raw")) => json!({"window_bounds": "off", "malformed": "keep"}),
        _ => json!({}),
    };
    callers["rules"] = rules(resolver)?.into();
    // JSON is YAML.
    Some(json!({"token": {"prefixes": scenario["prefixes"]}, "callers": callers}).to_string())
}

fn rules(resolver: &Value) -> Option<Vec<Value>> {
    let rates = || rates(&resolver["rates"]);
    let blocked = || json!({"when": {"principal": resolver["principals"]}, "deny": "resolver:blocked"});
    Some(match resolver["kind"].as_str().unwrap() {
        "default" | "raw" => vec![],
        "none" => vec![json!({"unrestricted": true})],
        "fixed" => vec![held_to(&resolver["rates"])?],
        "vouch" => vec![json!({"vouch": rates()?})],
        "ceiling" if resolver["keep_unrestricted"] == true => {
            vec![json!({"ceiling": {"rates": rates()?, "unrestricted": "leave"}})]
        }
        "ceiling" => vec![json!({"ceiling": rates()?})],
        "override" => overrides(resolver)?,
        "require" => vec![json!({"require_rate": true})],
        "block" => vec![blocked()],
        "docs" => [overrides(resolver)?, vec![json!({"require_rate": true}), json!({"ceiling": rates()?})]].concat(),
        "zero-append" => return None,
        other => panic!("unknown resolver {other}"),
    })
}

fn overrides(resolver: &Value) -> Option<Vec<Value>> {
    let rule = |(principal, list): (&String, &Value)| {
        let mut rule = held_to(list)?;
        rule["when"] = json!({"principal": principal});
        Some(rule)
    };
    resolver["overrides"].as_object().unwrap().iter().map(rule).collect()
}

/// The rule that holds everybody to a list of rates, which may be empty, or hold the zero rate alone.
fn held_to(list: &Value) -> Option<Value> {
    match list.as_array().map(Vec::as_slice) {
        None | Some([]) => Some(json!({"unrestricted": true})),
        Some([zero]) if zero["count"] == 0 && zero["window_ns"] == 0 => Some(json!({"allow_nothing": true})),
        Some(_) => Some(json!({"override": rates(list)?})),
    }
}

fn rates(list: &Value) -> Option<Vec<String>> {
    let rate = |rate: &Value| {
        let window = Duration::from_nanos(rate["window_ns"].as_u64()?);
        Some(Rate::new(rate["count"].as_u64()?, window).ok()?.to_string())
    };
    list.as_array().unwrap().iter().map(rate).collect()
}

#[test]
fn through_check() {
    let (mut scenarios, mut steps) = (0, 0);
    for scenario in cases("decisions.jsonl") {
        let Some(yaml) = configuration(&scenario) else { continue };
        let clock = Arc::new(ManualClock::default());
        let ext_authz = ext_authz(&yaml, Arc::clone(&clock));
        for step in scenario["steps"].as_array().unwrap() {
            // No token has an empty principal; through Envoy, such a request is denied.
            if step["principal"] == "" {
                continue;
            }
            clock.set(Duration::from_nanos(step["at_ns"].as_u64().unwrap()));
            let request = check_request(step["principal"].as_str().unwrap(), &strings(&step["capabilities"]));
            let mut answer = Vec::new();
            ext_authz.check(&request, |_| None).unwrap().encode(&mut answer).unwrap();
            check_answer(&CheckResponse::decode(&*answer).unwrap(), step);
            steps += 1;
        }
        scenarios += 1;
    }
    assert_eq!((scenarios, steps), (301, 5_737));
}

fn ext_authz(yaml: &str, clock: Arc<ManualClock>) -> ExtAuthz {
    let config = Config::parse("tollgate.yaml", yaml).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    ExtAuthz::new(config, clock)
}

fn check_answer(answer: &CheckResponse, step: &Value) {
    let (status, headers) = match answer.http_response.as_ref().unwrap() {
        HttpResponse::OkResponse(ok) => (200, &ok.response_headers_to_add),
        HttpResponse::DeniedResponse(denied) => (denied.status.as_ref().unwrap().code, &denied.headers),
        other => panic!("{other:?}"),
    };
    let all = |name: &str| -> Vec<String> {
        let lines = headers.iter().filter_map(|option| option.header.as_ref());
        lines.filter(|header| header.key == name).map(|header| header.value.clone()).collect()
    };
    assert_eq!(step["status"], status, "{step}");
    assert_eq!(answer.status.as_ref().unwrap().code == 0, step["allowed"], "{step}");
    let retry_after = step["retry_after_header"].as_u64().map(|seconds| seconds.to_string());
    assert_eq!(all("retry-after"), Vec::from_iter(retry_after), "{step}");
    let without_controls = |text: &&str| text.replace(|c: char| c.is_ascii_control(), " ");
    let warnings: Vec<String> = strings(&step["warnings"]).iter().map(without_controls).collect();
    assert_eq!(all("x-webpa-capability-warning"), warnings, "{step}");
    let told = answer.dynamic_metadata.as_ref().map(|metadata| &metadata.fields["reason"]);
    let reason = told.map(|value| format!("{:?}", value.kind));
    let expected = (step["allowed"] == false).then(|| format!("Some(StringValue({}))", step["reason"]));
    assert_eq!(reason, expected, "{step}");
}

/// The size of a scrape does not depend on callers, their addresses, paths and hosts: after as many as these there is no label
/// more than after one.
#[test]
fn callers_leave_the_size_of_a_scrape_as_it_is() {
    let yaml = "token: { prefixes: [\"r:\"] }
client: { address: peer, on_missing: peer }
limits: [{ name: pages, key: [path, host, client.network], rate: 1/1h, max_keys: 100 }]
lockouts: [{ name: logins, key: principal, threshold: 2, window: 1h, max_keys: 100 }]
";
    let live = Arc::new(Live::new(ext_authz(yaml, Arc::default()), Hash::of(b"")));
    let registry = registry(&live, Status::default());
    let ask = |caller: usize| {
        for capabilities in [&["r:1/1m"][..], &["r:1/1m"], &["r:fast"], &[]] {
            let message = check_request(&format!("caller-{caller}"), capabilities);
            live.load().check(&from(caller, &message), |_| None).unwrap();
        }
        live.load().check(b"", |_| None).unwrap();
    };
    let series = || {
        let mut text = String::new();
        prometheus_client::encoding::prometheus_text::encode(&mut text, &registry).unwrap();
        text.lines().map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect::<Vec<_>>()
    };
    ask(0);
    let before = series();
    (1..3_000).for_each(ask);
    assert_eq!(series(), before);
    assert_eq!(live.load().engine.limit_counts().next().unwrap().1.live, 100, "they were told apart");
}

/// A request of a client, for a page of a host, of its own.
fn from(caller: usize, message: &[u8]) -> Vec<u8> {
    let mut request = CheckRequest::decode(message).unwrap();
    let attributes = request.attributes.get_or_insert_default();
    let http = HttpRequest {
        method: "GET".into(),
        path: format!("/pages/{caller}"),
        host: format!("{caller}.example"),
        ..HttpRequest::default()
    };
    attributes.request = Some(attribute_context::Request { http: Some(http), ..Default::default() });
    let address = SocketAddress { address: Ipv4Addr::from_bits(caller as u32).to_string(), ..SocketAddress::default() };
    let address = Address { address: Some(address::Address::SocketAddress(address)) };
    attributes.source = Some(Peer { address: Some(address), ..Peer::default() });
    request.encode_to_vec()
}
