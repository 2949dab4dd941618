//! The headers about quotas on the wire: on what the application answers, on what Envoy answers and on refusals.

use super::http::Answer;
use super::mesh::{Mesh, PLAIN, unix_seconds};

/// Envoy answers one path itself, as an application would that knows nothing there.
const NOTHING_HERE: (&str, &str) = (
    "- match: { prefix: / }\n                route: { cluster: app }",
    "- { match: { path: /nothing }, direct_response: { status: 404 } }\n              \
     - match: { prefix: / }\n                route: { cluster: app }",
);

const HALF_A_DAY: u64 = 43_200;

/// Each style with its lines, where `{}` is what is left, and what the reset counts from.
type Style = (&'static str, [&'static str; 2], fn() -> u64);

const STYLES: [Style; 4] = [
    ("ietf-10", [r#"ratelimit-policy: "2/24h";q=2;w=86400"#, r#"ratelimit: "2/24h";r={}"#], || 0),
    ("ietf-03", ["ratelimit-limit: 2", "ratelimit-remaining: {}"], || 0),
    ("x-ratelimit", ["x-ratelimit-limit: 2", "x-ratelimit-remaining: {}"], unix_seconds),
    ("x-ratelimit, x_ratelimit_reset: seconds", ["x-ratelimit-limit: 2", "x-ratelimit-remaining: {}"], || 0),
];

/// The headers about quotas but for what changes with the time, and that: the wait for a unit, or the reset.
fn told(answer: &Answer) -> (Vec<String>, Option<u64>) {
    let lines = || answer.headers.iter().filter(|(name, _)| name.contains("ratelimit"));
    let rest = lines().filter(|(name, _)| !name.ends_with("-reset"));
    let rest = rest.map(|(name, value)| format!("{name}: {}", value.split(";t=").next().unwrap()));
    let time = |(name, value): &(String, String)| match name.ends_with("-reset") {
        true => Some(value.parse().unwrap()),
        false => value.split_once(";t=").map(|(_, seconds)| seconds.parse().unwrap()),
    };
    (rest.collect(), lines().find_map(time))
}

#[test]
fn every_style_arrives_on_every_answer() {
    for (style, lines, origin) in STYLES {
        let config = format!("{PLAIN}response: {{ ratelimit_headers: {style}, expose_headers: true }}\n");
        let mesh = Mesh::patched(&config, &[NOTHING_HERE]);
        let token = mesh.token("alice", &["prefix:rate:2/24h"]);
        let start = origin();
        for (path, status, left) in [("/", 200, 1), ("/nothing", 404, 0), ("/", 429, 0)] {
            let answer = mesh.get_path(path, &token);
            let (told, time) = told(&answer);
            let expected = lines.map(|line| line.replace("{}", &left.to_string()));
            assert_eq!((answer.status, told), (status, expected.to_vec()), "{style}: {answer:?}");
            // A unit comes back in half a day, and the quota is full when all have.
            let wait = if style == "ietf-10" { HALF_A_DAY } else { HALF_A_DAY * (2 - left) };
            let range = start + wait - 60..=origin() + wait + 1;
            assert!(range.contains(&time.unwrap()), "{style}: {time:?} is not in {range:?}");
            check_exposed(&answer);
        }
        let other = mesh.get(&mesh.token("bob", &[]));
        assert_eq!((other.status, told(&other)), (200, (vec![], None)), "{other:?}");
        assert_eq!(mesh.get("not-a-token").header("access-control-expose-headers"), None);
    }
}

fn check_exposed(answer: &Answer) {
    let exposed = answer.header("access-control-expose-headers").unwrap();
    assert!(exposed.contains("ratelimit"), "{answer:?}");
    assert!(exposed.split(", ").all(|name| answer.header(name).is_some()), "{answer:?}");
    assert_eq!(exposed.contains("retry-after"), answer.status == 429, "{answer:?}");
}
