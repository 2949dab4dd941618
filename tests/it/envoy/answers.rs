//! Every answer: status, headers and body, and that a refused request goes no further.

use super::http::Answer;
use super::mesh::{Mesh, PLAIN, assert_wait, key, now, unix_seconds, whole};
use serde_json::{Value, json};

/// Bodies of one format: of a 429 with `{}` for its seconds, of a 403, of a 401 without and of one with a token.
struct Format {
    name: &'static str,
    content_type: Option<&'static str>,
    bodies: [&'static str; 4],
}

const FORMATS: [Format; 4] = [
    Format {
        name: "problem",
        content_type: Some("application/problem+json"),
        bodies: [
            r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests","status":429,"detail":"The rate 2/24h is exceeded. Retry after {} s.","violated-policies":["2/24h"]}"#,
            r#"{"title":"Forbidden","status":403,"detail":"This request is not permitted."}"#,
            r#"{"title":"Unauthorized","status":401,"detail":"A bearer token is required."}"#,
            r#"{"title":"Unauthorized","status":401,"detail":"The bearer token failed verification."}"#,
        ],
    },
    Format {
        name: "json",
        content_type: Some("application/json"),
        bodies: [
            r#"{"error":"rate limit exceeded","retry_after":{}}"#,
            r#"{"error":"denied"}"#,
            r#"{"error":"missing token"}"#,
            r#"{"error":"invalid token"}"#,
        ],
    },
    Format {
        name: "text",
        content_type: Some("text/plain; charset=utf-8"),
        bodies: ["rate limit exceeded; retry after {} s", "denied", "missing token", "invalid token"],
    },
    Format { name: "none", content_type: None, bodies: [""; 4] },
];

const INVALID: &str = r#"Bearer realm="tollgate", error="invalid_token""#;

#[test]
fn every_answer_in_every_body_format() {
    for format in &FORMATS {
        every_answer(format);
    }
}

fn every_answer(format: &Format) {
    let mesh = Mesh::start(&format!("{PLAIN}response: {{ body: {} }}\n", format.name));
    let alice = mesh.token("alice", &["prefix:rate:2/24h"]);
    let start = now();
    for _ in 0..2 {
        let allowed = mesh.get(&alice);
        assert_eq!((allowed.status, &*allowed.body), (200, "ok GET /\n"), "{allowed:?}");
        assert_eq!(refusal_headers(&allowed), Vec::<&str>::new());
    }
    let answers = [
        mesh.get(&alice),
        mesh.get(&mesh.sign(json!({ "sub": "bob", "capabilities": 7 }))),
        mesh.send("GET", "/", &[]),
        mesh.get("not-a-token"),
    ];
    assert_eq!(mesh.upstream.requests(), 2, "a refused request goes no further");

    let expected = [
        (429, vec!["cache-control: no-store", "retry-after"]),
        (403, vec!["cache-control: no-store"]),
        (401, vec![r#"www-authenticate: Bearer realm="tollgate""#, "cache-control: no-store"]),
        (401, vec![r#"www-authenticate: Bearer realm="tollgate", error="invalid_token""#, "cache-control: no-store"]),
    ];
    let wait = answers[0].header("retry-after");
    assert_wait(wait, 43_200, start);
    for ((answer, (status, headers)), body) in answers.iter().zip(expected).zip(format.bodies) {
        let headers = headers.iter().map(|header| match *header {
            "retry-after" => format!("retry-after: {}", wait.unwrap()),
            header => header.to_owned(),
        });
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(refusal_headers(answer), sorted(headers.collect()), "{answer:?}");
        assert_eq!(answer.body, body.replace("{}", wait.unwrap()));
        assert_eq!(answer.header("content-type"), format.content_type, "{answer:?}");
        if format.content_type.is_some_and(|content_type| content_type.ends_with("json")) {
            serde_json::from_str::<Value>(&answer.body).unwrap();
        }
    }
}

/// The lines of the headers that refusals may have.
fn refusal_headers(answer: &Answer) -> Vec<String> {
    let of_refusals = ["cache-control", "retry-after", "www-authenticate"];
    let lines = answer.headers.iter().filter(|(name, _)| of_refusals.contains(&&**name));
    sorted(lines.map(|(name, value)| format!("{name}: {value}")).collect())
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

#[test]
fn an_unusable_token_is_denied_and_only_the_log_says_why() {
    let mesh = Mesh::start(&PLAIN.replace("prefixes:", "principal: uid, prefixes:"));
    let cases = [
        (json!({ "uid": "a", "capabilities": 7 }), "claim capabilities is a number"),
        (json!({ "uid": "a", "capabilities": { "a": 1 } }), "claim capabilities is an object"),
        (json!({ "uid": "a", "capabilities": ["a", 7] }), "claim capabilities is a list that holds something else"),
        (json!({ "uid": "a", "capabilities": null }), "claim capabilities is null"),
        (json!({ "sub": "a" }), "claim uid is absent"),
        (json!({ "uid": "" }), "claim uid is empty"),
        (json!({ "uid": 1.5 }), "claim uid is another number"),
        (json!({ "uid": -1 }), "claim uid is another number"),
        (json!({ "uid": 9_007_199_254_740_992_u64 }), "claim uid is another number"),
        (json!({ "uid": ["a"] }), "claim uid is a list"),
    ];
    let mut answers = Vec::new();
    for (number, (claims, cause)) in cases.iter().enumerate() {
        let path = format!("/case-{number}");
        let answer = mesh.get_path(&path, &mesh.sign(claims.clone()));
        assert_eq!(answer.status, 403, "{claims}: {answer:?}");
        answers.push(without_date(answer));
        let record = mesh.logged(&path, |record| record["path"] == *path);
        assert_eq!((&record["message"], &record["reason"]), (&json!("refused"), &json!("denied")));
        assert!(record["cause"].as_str().unwrap().contains(cause), "{claims}: {record}");
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "the answer is the same whatever the reason: {answers:#?}");
    assert_eq!(mesh.upstream.requests(), 0);

    let exact = mesh.sign(json!({ "uid": 9_007_199_254_740_991_u64, "capabilities": ["prefix:rate:1/24h"] }));
    assert_eq!((mesh.get(&exact).status, mesh.get(&exact).status), (200, 429));
    let record = mesh.logged("a refusal", |record| record["reason"] == "rate-exceeded");
    assert_eq!(record["principal"], "9007199254740991");
}

#[test]
fn a_failed_token_gets_one_answer_whatever_failed() {
    let mesh = Mesh::start(PLAIN);
    let alice = |over: Value| {
        let mut claims = json!({ "sub": "alice" });
        claims.as_object_mut().unwrap().extend(over.as_object().unwrap().clone());
        mesh.sign(claims)
    };
    let good = alice(json!({}));
    let (content, _) = good.rsplit_once('.').unwrap();
    let another = alice(json!({ "jti": "another" }));
    let (_, signature) = another.rsplit_once('.').unwrap();
    let past = unix_seconds() - 3600;
    let cases = [
        ("signature of another token", format!("{content}.{signature}")),
        ("no signature", format!("{content}.")),
        ("unknown key", key().sign(&whole(json!({ "sub": "alice" }))).unwrap()),
        ("expired", alice(json!({ "exp": past }))),
        ("not yet valid", alice(json!({ "nbf": past + 7200 }))),
        ("issuer", alice(json!({ "iss": "https://else.example/" }))),
        ("audience", alice(json!({ "aud": "else" }))),
        ("sub", alice(json!({ "sub": 1.5 }))),
        ("no token at all", "x".into()),
    ];
    let mut answers = Vec::new();
    for (number, (name, token)) in cases.iter().enumerate() {
        let path = format!("/case-{number}");
        let answer = mesh.get_path(&path, token);
        let challenge = answer.header("www-authenticate");
        assert_eq!((answer.status, challenge), (401, Some(INVALID)), "{name}: {answer:?}");
        answers.push(without_date(answer));
        let record = mesh.logged(name, |record| record["path"] == *path);
        assert_eq!(record["reason"], "failed-token", "{name}: {record}");
        assert!(record["cause"].as_str().unwrap().starts_with("Envoy's jwt_authn: "), "{name}: {record}");
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:#?}");
    assert_eq!(mesh.upstream.requests(), 0);
    assert_eq!(mesh.get(&good).status, 200);
}

#[test]
fn without_a_token_a_request_may_pass_where_the_rules_say_so_and_a_failed_token_never() {
    let mesh = Mesh::start(&PLAIN.replace("prefixes:", "missing: allow, prefixes:"));
    for headers in [&[][..], &[("authorization", "Basic YTpi")]] {
        assert_eq!(mesh.send("GET", "/", headers).status, 200, "{headers:?}");
    }
    assert_eq!(mesh.get(&key().sign(&whole(json!({ "sub": "alice" }))).unwrap()).status, 401);
    assert_eq!(mesh.get("x").status, 401);
    assert_eq!(mesh.upstream.requests(), 2);
}

fn without_date(mut answer: Answer) -> (u16, Vec<(String, String)>, String) {
    answer.headers.retain(|(name, _)| name != "date");
    (answer.status, answer.headers, answer.body)
}
