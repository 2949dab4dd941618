//! Who makes a request: claims, failures, and tokens that cannot be used.

use serde_json::{Value, json};
use tollgate::claims::{Claim, Claims};
use tollgate::config::Config;
use tollgate::request::Request;
use tollgate::token::{Identity, TokenRules};

fn rules(token: &str) -> TokenRules {
    let text = format!("token: {{ prefixes: [\"prefix:rate:\"], {token} }}");
    Config::parse("tollgate.yaml", &text).unwrap_or_else(|mistakes| panic!("{mistakes}")).token
}

fn claim(value: &Value) -> Claim<'_> {
    match value {
        Value::Null => Claim::Null,
        Value::Bool(value) => Claim::Bool(*value),
        Value::Number(number) => Claim::Number(number.as_f64().unwrap()),
        Value::String(text) => Claim::Text(text),
        Value::Array(items) => Claim::List(items.iter().map(claim).collect()),
        Value::Object(_) => Claim::Object(object(value)),
    }
}

pub fn object(value: &Value) -> Claims<'_> {
    value.as_object().unwrap().iter().map(|(name, value)| (&**name, claim(value))).collect()
}

/// The identity of a request with `metadata`, in short.
fn identify(rules: &TokenRules, metadata: &Value) -> String {
    let request = Request { metadata: object(metadata), ..Request::default() };
    describe(rules.identify(&request))
}

fn describe(identity: Identity<'_>) -> String {
    match identity {
        Identity::Caller(caller) => format!("{} [{}]", caller.principal, caller.capabilities.join(", ")),
        Identity::Missing => "missing".to_owned(),
        Identity::Failed(failed) => format!("failed {:?} {}", failed.code, failed.message),
        Identity::Unverified => "unverified".to_owned(),
        Identity::Unusable(token) => format!("unusable: {}", token.reason),
    }
}

/// Checks the identity that `claims`, as the payload of a verified token, give under `rules`.
#[track_caller]
fn check(rules: &TokenRules, claims: Value, expected: &str) {
    let metadata = json!({"envoy.filters.http.jwt_authn": {"jwt_payload": claims}});
    assert_eq!(identify(rules, &metadata), expected);
}

#[test]
fn principals() {
    let rules = rules("");
    let wanted = "want a non-empty string, or an integer from 0 to 2^53-1";
    for (sub, expected) in [
        (json!("alice"), "alice []".to_owned()),
        (json!("a\u{0}b\n"), "a\u{0}b\n []".to_owned()),
        (json!(7), "7 []".to_owned()),
        (json!("7"), "7 []".to_owned()),
        (json!(0), "0 []".to_owned()),
        (json!(9_007_199_254_740_991u64), "9007199254740991 []".to_owned()),
        (json!(9_007_199_254_740_992u64), format!("unusable: the principal claim sub is another number; {wanted}")),
        (json!(1e21), format!("unusable: the principal claim sub is another number; {wanted}")),
        (json!(1.5), format!("unusable: the principal claim sub is another number; {wanted}")),
        (json!(-1), format!("unusable: the principal claim sub is another number; {wanted}")),
        (json!(""), format!("unusable: the principal claim sub is empty; {wanted}")),
        (json!(null), format!("unusable: the principal claim sub is null; {wanted}")),
        (json!(true), format!("unusable: the principal claim sub is a boolean; {wanted}")),
        (json!(["alice"]), format!("unusable: the principal claim sub is a list; {wanted}")),
        (json!({"id": 1}), format!("unusable: the principal claim sub is an object; {wanted}")),
    ] {
        check(&rules, json!({"sub": sub}), &expected);
    }
    check(&rules, json!({}), "unusable: the principal claim sub is absent");
}

/// Several claims form a principal that no other list of claims forms.
#[test]
fn principals_of_several_claims() {
    let rules = rules("principal: [iss, user.id]");
    let principal = |iss: &str, id: &str| json!({"iss": iss, "user": {"id": id}});
    check(&rules, principal("a", "b"), "1:a1:b []");
    check(&rules, principal("a1:b", "c"), "4:a1:b1:c []");
    check(&rules, principal("a", "b1:c"), "1:a4:b1:c []");
    check(&rules, json!({"iss": "a"}), "unusable: the principal claim user.id is absent");
    check(
        &rules,
        json!({"iss": "a", "user": "b"}),
        "unusable: the principal claim user.id is below something that is no object; \
         want a non-empty string, or an integer from 0 to 2^53-1",
    );
}

#[test]
fn capabilities() {
    let rules = rules("capabilities: [capabilities, [\"https://idp.example/caps\"]]");
    let wanted = "want a list of strings, or one space-separated string";
    let with = |capabilities: Value| json!({"sub": "a", "capabilities": capabilities});
    check(&rules, with(json!(["x", "prefix:rate:5/1m"])), "a [x, prefix:rate:5/1m]");
    check(&rules, with(json!(" x  prefix:rate:5/1m ")), "a [x, prefix:rate:5/1m]");
    check(&rules, with(json!([])), "a []");
    check(&rules, json!({"sub": "a", "capabilities": ["x"], "https://idp.example/caps": "y z"}), "a [x, y, z]");
    for (claim, kind) in [
        (json!(5), "a number"),
        (json!(null), "null"),
        (json!({}), "an object"),
        (json!(["x", 5]), "a list that holds something else"),
    ] {
        check(&rules, with(claim), &format!("unusable: the capabilities claim capabilities is {kind}; {wanted}"));
    }
}

/// Where a path leads through something that is no object, the capabilities are not simply absent.
#[test]
fn nested_capabilities() {
    let rules = rules("capabilities: [realm.capabilities]");
    check(&rules, json!({"sub": "a", "realm": {"capabilities": ["x"]}}), "a [x]");
    check(&rules, json!({"sub": "a", "realm": {}}), "a []");
    check(&rules, json!({"sub": "a"}), "a []");
    check(
        &rules,
        json!({"sub": "a", "realm": ["x"]}),
        "unusable: the capabilities claim realm.capabilities is below something that is no object; \
         want a list of strings, or one space-separated string",
    );
}

/// A bearer token of which Envoy says nothing is not the same as none.
#[test]
fn unverified_tokens() {
    let rules = rules("");
    let failure = json!({"envoy.filters.http.jwt_authn": {"jwt_failure": {"code": 1, "message": "Jwt is missing"}}});
    for (authorization, metadata, expected) in [
        ("Bearer x", json!({}), "unverified"),
        ("bearer x", json!({}), "unverified"),
        ("Bearer x", json!({"envoy.filters.http.jwt_authn": {"other": {"sub": "a"}}}), "unverified"),
        ("Bearer x", failure, "missing"),
        ("Basic x", json!({}), "missing"),
    ] {
        let headers = vec![(&b"authorization"[..], authorization.as_bytes())];
        let request = Request { headers, metadata: object(&metadata), ..Request::default() };
        assert_eq!(describe(rules.identify(&request)), expected, "{authorization} {metadata}");
    }
}

/// A payload decides, even beside a failure; a failure is never a payload; nothing is missing.
#[test]
fn sources() {
    let rules = rules("");
    let (namespace, good) = ("envoy.filters.http.jwt_authn", json!({"sub": "a"}));
    let failure = json!({"code": 26, "message": "Jwt verification fails"});
    for (metadata, expected) in [
        (json!({}), "missing"),
        (json!({"other": {"jwt_payload": good}}), "missing"),
        (json!({namespace: {}}), "missing"),
        (json!({namespace: {"other": good}}), "missing"),
        (json!({namespace: {"payload": good}}), "a []"),
        (json!({namespace: {"jwt_payload": good, "jwt_failure": failure}}), "a []"),
        (json!({namespace: {"jwt_failure": failure}}), "failed Some(26) Jwt verification fails"),
        (json!({namespace: {"jwt_failure": {"code": 1, "message": "Jwt is missing"}}}), "missing"),
        (json!({namespace: {"jwt_failure": good}}), "failed None "),
        (json!({namespace: {"jwt_failure": "broken"}}), "failed None "),
        (
            json!({namespace: {"jwt_payload": "text"}}),
            "unusable: the payload under \"jwt_payload\" is a string, not an object of claims",
        ),
    ] {
        assert_eq!(identify(&rules, &metadata), expected, "{metadata}");
    }
}
