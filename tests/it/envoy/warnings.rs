//! Capability warnings on the wire: which, how many, how long, under which name.

use super::http::Answer;
use super::mesh::{Mesh, PLAIN, WARNING};

fn warnings(answer: &Answer) -> Vec<&str> {
    answer.all(WARNING).collect()
}

#[test]
fn a_malformed_capability_is_told_on_every_answer_one_line_each() {
    let mesh = Mesh::start(PLAIN);
    let malformed = |text: &str| format!("malformed; kind=rate; cap=\"prefix:rate:{text}\"");

    let both = mesh.token("both", &["prefix:rate:fast", "prefix:rate:1/24h", "orders:read", "prefix:rate:0/1m"]);
    let (allowed, refused) = (mesh.get(&both), mesh.get(&both));
    assert_eq!((allowed.status, refused.status), (200, 429));
    for answer in [&allowed, &refused] {
        assert_eq!(warnings(answer), [malformed("fast"), malformed("0/1m")]);
    }
    assert!(refused.header("retry-after").is_some());

    let alone = mesh.get(&mesh.token("alone", &["prefix:rate:fast"]));
    assert_eq!((alone.status, alone.header("retry-after")), (429, None), "{alone:?}");
    assert_eq!(warnings(&alone), [malformed("fast")]);
    assert!(alone.body.contains("This caller is permitted no requests."), "{alone:?}");

    let many: Vec<String> = (0..20).map(|number| format!("prefix:rate:{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).chain(["prefix:rate:9/24h"]).collect();
    let capped = mesh.get(&mesh.token("many", &many));
    let mut expected: Vec<String> = (0..16).map(|number| malformed(&number.to_string())).collect();
    expected.push("omitted; count=4".into());
    assert_eq!((capped.status, warnings(&capped)), (200, expected.iter().map(String::as_str).collect()));

    let long = mesh.get(&mesh.token("long", &[&format!("prefix:rate:{}", "x".repeat(5_000)), "prefix:rate:9/24h"]));
    let line = format!("{}\"", &malformed(&"x".repeat(2_000))[..1023]);
    assert_eq!((long.status, warnings(&long)), (200, vec![&*line]));
}

#[test]
fn the_warning_header_can_have_another_name_or_be_off() {
    for (response, name) in [("warnings: false", None), ("warning_header: X-Hint", Some("x-hint"))] {
        let mesh = Mesh::start(&format!("{PLAIN}response: {{ {response} }}\n"));
        let token = mesh.token("alice", &["prefix:rate:fast", "prefix:rate:1/24h"]);
        for status in [200, 429] {
            let answer = mesh.get(&token);
            assert_eq!(answer.status, status, "{answer:?}");
            let told = answer.headers.iter().filter(|(_, value)| value.contains("malformed"));
            let names: Vec<&str> = told.map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, name.into_iter().collect::<Vec<_>>(), "{response}");
        }
    }
}
