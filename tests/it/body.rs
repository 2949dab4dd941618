//! Fields of JSON and form bodies, and bodies that could be read in two ways.

use proptest::prelude::*;
use std::borrow::Cow;
use tollgate::body::{form, json};
use tollgate::request::Request;

fn path(dotted: &str) -> Vec<String> {
    dotted.split('.').filter(|name| !name.is_empty()).map(Into::into).collect()
}

fn request<'r>(body: &'r [u8], headers: &[(&'r str, &'r str)]) -> Request<'r> {
    let headers = headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
    Request { body, headers, ..Request::default() }
}

#[track_caller]
fn check_json(cases: &[(&str, &str, Option<&str>)]) {
    for (body, at, expected) in cases {
        assert_eq!(json(&request(body.as_bytes(), &[]), &path(at)).as_deref(), *expected, "{at} in {body}");
    }
}

#[test]
fn json_values() {
    check_json(&[
        (r#"{"user": "alice"}"#, "user", Some("alice")),
        (r#" {"a": [1, {"user": 2}], "user": "alice", "b": {"user": "bob"}} "#, "user", Some("alice")),
        (r#"{"a": {"b": {"c": "deep"}}}"#, "a.b.c", Some("deep")),
        (r#"{"user": ""}"#, "user", Some("")),
        (r#"{"user": "a\u006cice\n\"é"}"#, "user", Some("alice\n\"é")),
        (r#"{"us\u0065r": "alice"}"#, "user", Some("alice")),
        (r#"{"user": 7}"#, "user", Some("7")),
        (r#"{"user": "7"}"#, "user", Some("7")),
        (r#"{"user": 7.0}"#, "user", Some("7")),
        (r#"{"user": 7e2}"#, "user", Some("700")),
        (r#"{"user": 0}"#, "user", Some("0")),
        (r#"{"user": -0}"#, "user", Some("0")),
        (r#"{"user": 9007199254740991}"#, "user", Some("9007199254740991")),
        (r#"{"user": true}"#, "user", Some("true")),
        (r#"{"user": false}"#, "user", Some("false")),
        // Not there, or nothing that names somebody.
        (r#"{"name": "alice"}"#, "user", None),
        (r#"{}"#, "user", None),
        (r#"{"user": null}"#, "user", None),
        (r#"{"user": ["alice"]}"#, "user", None),
        (r#"{"user": {"name": "alice"}}"#, "user", None),
        (r#"{"user": "alice"}"#, "user.name", None),
        (r#"{"user": ["alice"]}"#, "user.0", None),
        (r#"["alice"]"#, "user", None),
        (r#""alice""#, "user", None),
        (r#""alice""#, "", Some("alice")),
        (r#"{"user": 7.5}"#, "user", None),
        (r#"{"user": -7}"#, "user", None),
        (r#"{"user": 9007199254740992}"#, "user", None),
        (r#"{"user": 9007199254740993}"#, "user", None),
        (r#"{"user": 1e400}"#, "user", None),
        (r#"{"user": 123456789012345678901234567890}"#, "user", None),
        // Two readings.
        (r#"{"user": "a", "user": "b"}"#, "user", None),
        (r#"{"user": "a", "user": "a"}"#, "user", None),
        (r#"{"user": "a", "us\u0065r": "b"}"#, "user", None),
        (r#"{"user": "a", "User": "b"}"#, "user", None),
        (r#"{"USER": "b", "user": "a"}"#, "user", None),
        (r#"{"user": "a", "u\u017fer": "b"}"#, "user", None),
        (r#"{"USER": "b"}"#, "user", None),
        (r#"{"a": {"user": "a"}, "a": {"user": "b"}}"#, "a.user", None),
        (r#"{"a": {"user": "a"}, "A": {"user": "b"}}"#, "a.user", None),
        (r#"{"other": 1, "other": 2, "user": "a"}"#, "user", Some("a")),
        // No JSON.
        ("", "user", None),
        (r#"{"user": "alice""#, "user", None),
        (r#"{"user": "alice"} x"#, "user", None),
        (r#"{"user": "alice"}{"user": "bob"}"#, "user", None),
        (r#"{"user": "alice",}"#, "user", None),
        (r#"{'user': 'alice'}"#, "user", None),
        (r#"{"user": "\ud800"}"#, "user", None),
        ("\u{feff}{\"user\": \"alice\"}", "user", None),
    ]);
    assert_eq!(json(&request(b"{\"user\": \"a\xff\"}", &[]), &path("user")), None);
    let borrowed = request(br#"{"user": "alice"}"#, &[]);
    assert!(matches!(json(&borrowed, &path("user")), Some(Cow::Borrowed("alice"))), "no copy");
}

#[test]
fn json_that_nests_deep() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        for depth in [10, 100, 1_000] {
            let deep = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            let body = format!("{{\"deep\": {deep}, \"user\": \"alice\"}}");
            let found = json(&request(body.as_bytes(), &[]), &path("user"));
            assert!(matches!(found.as_deref(), None | Some("alice")), "{depth}: {found:?}");
        }
    }
    let names = vec!["a"; 1_000].join(".");
    let deep = format!("{}1{}", "{\"a\":".repeat(1_000), "}".repeat(1_000));
    assert_eq!(json(&request(deep.as_bytes(), &[]), &path(&names)), None);
}

#[test]
fn form_values() {
    for (body, expected) in [
        ("user=alice", Some("alice")),
        ("a=1&user=alice&b=2", Some("alice")),
        ("user=a%6cice+b%2B%26%3D", Some("alice b+&=")),
        ("%75ser=alice", Some("alice")),
        ("user=caf%C3%A9", Some("café")),
        ("user=caf\u{e9}", Some("café")),
        ("user=", Some("")),
        ("user", Some("")),
        ("&&user=alice&", Some("alice")),
        ("user=a%4", Some("a%4")),
        ("user=a=b", Some("a=b")),
        ("", None),
        ("name=alice", None),
        ("user[]=alice", None),
        ("USER=alice", None),
        ("user=a&user=b", None),
        ("user=a&user=a", None),
        ("user=a&us%65r=b", None),
        ("user=a&User=b", None),
        ("user=a&user", None),
        ("user=caf%E9", None),
        ("user=%FF", None),
    ] {
        assert_eq!(form(&request(body.as_bytes(), &[]), "user").as_deref(), expected, "{body}");
    }
}

/// A body that is a form to one reader and JSON to another is neither but what its type says.
#[test]
fn the_content_type_decides() {
    const FORM: &str = "application/x-www-form-urlencoded";
    let both = br#"{"user": "mallory", "x": "&name=alice&"}"#;
    for (kind, is_json, is_form) in [
        ("application/json", true, false),
        ("Application/JSON; charset=utf-8", true, false),
        ("application/problem+json", true, false),
        (FORM, false, true),
        ("application/X-WWW-form-urlencoded ;charset=UTF-8", false, true),
        ("text/plain", false, false),
        ("multipart/form-data; boundary=x", false, false),
        ("application/jsonp", false, false),
        ("application/json, application/x-www-form-urlencoded", false, false),
        ("application/json; x=, application/x-www-form-urlencoded", false, false),
        ("", false, false),
    ] {
        let request = request(both, &[("content-type", kind)]);
        assert_eq!(json(&request, &path("user")).is_some(), is_json, "{kind}");
        assert_eq!(form(&request, "name").is_some(), is_form, "{kind}");
    }
    let two = request(both, &[("content-type", "application/json"), ("content-type", FORM)]);
    assert_eq!((json(&two, &path("user")), form(&two, "name")), (None, None));
}

#[test]
fn a_body_that_may_be_cut_is_missing() {
    for (partial, is_there) in [(&["false"][..], true), (&["true"], false), (&["false", "true"], false), (&[""], false)]
    {
        let headers: Vec<_> = partial.iter().map(|partial| ("x-envoy-auth-partial-body", *partial)).collect();
        assert_eq!(json(&request(br#"{"user": "alice"}"#, &headers), &path("user")).is_some(), is_there, "{partial:?}");
        assert_eq!(form(&request(b"user=alice", &headers), "user").is_some(), is_there, "{partial:?}");
    }
    for (length, is_there) in [(8_191, true), (8_192, false), (8_193, false), (1_000_000, false)] {
        let start = "{\"user\":\"alice\",\"x\":\"";
        let body = format!("{start}{}\"}}", "x".repeat(length - start.len() - 2));
        assert_eq!(json(&request(body.as_bytes(), &[]), &path("user")).is_some(), is_there, "{length}");
        let body = format!("user=alice&x={}", "x".repeat(length - 13));
        assert_eq!(form(&request(body.as_bytes(), &[]), "user").is_some(), is_there, "{length}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1024) })]

    #[test]
    fn a_text_is_read_as_it_was_written(name in any::<String>(), value in any::<String>(), other in "[a-z]{0,4}") {
        let mut object = serde_json::Map::from_iter([(format!("other {other}"), other.into())]);
        object.insert(name.clone(), value.clone().into());
        let body = serde_json::to_vec(&object).unwrap();
        let read = request(&body, &[]);
        let found = json(&read, std::slice::from_ref(&name));
        prop_assert_eq!(found.as_deref(), Some(&*value));
        let value = value.replace(char::REPLACEMENT_CHARACTER, "");
        let body = form_urlencoded::Serializer::new(String::new()).append_pair(&name, &value).append_pair("~", "").finish();
        prop_assume!(name != "~" && !name.contains(char::REPLACEMENT_CHARACTER));
        let read = request(body.as_bytes(), &[]);
        let found = form(&read, &name);
        prop_assert_eq!(found.as_deref(), Some(&*value));
    }

    /// What is read is what the JSON library finds in the whole tree, or nothing.
    #[test]
    fn what_is_read_is_there(body in r#"(\{|\}|\[|\]|"a":|"b":|"a"|"A":|,|1|true| ){0,16}"#) {
        let found = json(&request(body.as_bytes(), &[]), &path("a.b"));
        if let Some(found) = found {
            let tree: serde_json::Value = serde_json::from_str(&body).unwrap();
            let there = &tree["a"]["b"];
            prop_assert_eq!(there.as_str().map_or_else(|| there.to_string(), Into::into), found.into_owned());
        }
    }

    #[test]
    fn any_bytes_are_read_or_missing(body in prop::collection::vec(any::<u8>(), 0..64)) {
        let request = request(&body, &[]);
        let _ = (json(&request, &path("a")), form(&request, "a"));
    }
}
