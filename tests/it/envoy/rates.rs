//! Several rates of one caller: the longest wait is told, and a cut lands at once.

use super::http::Answer;
use super::mesh::{Mesh, PLAIN, assert_wait, now};

const DAY: u64 = 24 * 3600;

#[test]
fn of_several_rates_the_longest_wait_is_told() {
    let mesh = Mesh::start(PLAIN);
    let cases: [(&[&str], usize, &str, u64); 4] = [
        (&["1/12h", "1/24h"], 1, "1/24h", DAY),
        (&["1/24h", "1/12h"], 1, "1/24h", DAY),
        // The shorter window refuses; the longer one still has calls.
        (&["9/24h", "1/12h"], 1, "1/12h", DAY / 2),
        // All three refuse; the middle one is the slowest to come back.
        (&["2/12h", "2/24h", "2/18h"], 2, "2/24h", DAY / 2),
    ];
    for (number, (rates, allowed, told, longest)) in cases.into_iter().enumerate() {
        let capabilities: Vec<String> = rates.iter().map(|rate| format!("prefix:rate:{rate}")).collect();
        let capabilities: Vec<&str> = capabilities.iter().map(String::as_str).collect();
        let token = mesh.token(&format!("caller-{number}"), &capabilities);
        let start = now();
        for _ in 0..allowed {
            assert_eq!(mesh.get(&token).status, 200, "{rates:?}");
        }
        let refused = mesh.get(&token);
        assert_refused_by(&refused, told);
        assert_wait(refused.header("retry-after"), longest, start);
    }
}

/// A token with a lower rate holds the caller's older tokens to it as well, from its first request on.
#[test]
fn a_rate_cut_lands_at_once_on_the_older_token() {
    let mesh = Mesh::start(PLAIN);
    let older = mesh.token("alice", &["prefix:rate:5/24h"]);
    let newer = mesh.token("alice", &["prefix:rate:1/24h"]);
    assert_eq!(mesh.get(&older).status, 200);
    let cut = now();
    assert_eq!(mesh.get(&newer).status, 200);
    let refused = mesh.get(&older);
    assert_refused_by(&refused, "1/24h");
    assert_wait(refused.header("retry-after"), DAY, cut);
    assert_eq!(mesh.get(&mesh.token("bob", &["prefix:rate:5/24h"])).status, 200, "another caller has its own");
}

#[track_caller]
fn assert_refused_by(answer: &Answer, rate: &str) {
    assert_eq!(answer.status, 429, "{answer:?}");
    assert!(answer.body.contains(&format!("The rate {rate} is exceeded.")), "{answer:?}");
}
