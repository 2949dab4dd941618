//! Canonical paths and texts with wildcards, against naive models and a list of attacks.

mod model;

use model::model;
use proptest::prelude::*;
use std::borrow::Cow;
use tollgate::path::{EncodedSlash, UnsafePath, canonical};
use tollgate::policy::pattern::{Dialect, Pattern};

#[test]
fn canonical_paths() {
    for (path, expected) in [
        ("", ""),
        ("*", "*"),
        ("/", "/"),
        ("/a", "/a"),
        ("/a/", "/a/"),
        ("/a?b=/../c;%2F", "/a"),
        ("/?", "/"),
        ("//", "/"),
        ("//a///b//", "/a/b/"),
        ("/./a/./b/.", "/a/b/"),
        ("/a/../b", "/b"),
        ("/a/b/..", "/a/"),
        ("/..", "/"),
        ("/../../a", "/a"),
        ("/a//b/../c", "/a/c"),
        ("/.well-known/x", "/.well-known/x"),
        ("/...", "/..."),
        ("/a..b/c.", "/a..b/c."),
        ("/%61%7e%2D", "/a~-"),
        ("/a%20b", "/a b"),
        ("/caf%C3%A9", "/café"),
        ("/café", "/café"),
        ("/a%2Etxt", "/a.txt"),
        ("/100%25", "/100%"),
        ("/%25%25", "/%%"),
        ("/%23%3F", "/#?"),
        ("/a:b@c!$&'()*+,=", "/a:b@c!$&'()*+,="),
    ] {
        assert_eq!(canonical(path.as_bytes(), EncodedSlash::Refuse).as_deref(), Ok(expected), "{path}");
    }
    assert!(matches!(canonical(b"/v1/items?q=1", EncodedSlash::Refuse), Ok(Cow::Borrowed("/v1/items"))), "no copy");
}

/// Paths that reach a looser rule than what is behind Envoy serves, where they are taken at face value.
#[test]
fn attacks_are_refused() {
    use UnsafePath::*;
    for (path, why) in [
        (&b"/public/..%2fadmin"[..], EncodedSlash),
        (b"/public%2F..%2Fadmin", EncodedSlash),
        (b"/a%2Fb", EncodedSlash),
        (b"/%2e%2e/admin", EncodedDots),
        (b"/public/%2E./admin", EncodedDots),
        (b"/public/.%2e", EncodedDots),
        (b"/%2e/admin", EncodedDots),
        (b"/admin//../x", DotsBehindSlashes),
        (b"/secret//../pub/x", DotsBehindSlashes),
        (b"/a//b/../../pub", DotsBehindSlashes),
        (b"//../x", DotsBehindSlashes),
        (b"/%252e%252e/admin", EncodedTwice),
        (b"/%252Fadmin", EncodedTwice),
        (b"/%25%32%66admin", EncodedTwice),
        (b"/public/..;/admin", Semicolon),
        (b"/admin;jsessionid=1", Semicolon),
        (b"/admin%3Bx", Semicolon),
        (b"/public\\..\\admin", Backslash),
        (b"/public/..%5cadmin", Backslash),
        (b"/admin%00.png", Control),
        (b"/admin\0", Control),
        (b"/admin%0a", Control),
        (b"/ad\tmin", Control),
        (b"/admin%7f", Control),
        (b"/admin#x", Fragment),
        (b"/%", BadEscape),
        (b"/%2", BadEscape),
        (b"/%zz", BadEscape),
        (b"/%u002e", BadEscape),
        (b"/%c0%ae%c0%ae/admin", NotUtf8),
        (b"/%c0%afadmin", NotUtf8),
        (b"/\xff", NotUtf8),
        (b"/%e9", NotUtf8),
        (b"admin", NoSlash),
        (b"http://host/admin", NoSlash),
        (b"%2Fadmin", NoSlash),
    ] {
        assert_eq!(canonical(path, tollgate::path::EncodedSlash::Refuse), Err(why), "{}", path.escape_ascii());
    }
}

#[test]
fn an_encoded_slash_may_be_three_characters() {
    let literal = |path: &str| canonical(path.as_bytes(), EncodedSlash::Literal).map(Cow::into_owned);
    assert_eq!(literal("/a%2fb/%2F"), Ok("/a%2Fb/%2F".into()));
    assert_eq!(literal("/a%2Fb/../c"), Ok("/c".into()));
    assert_eq!(literal("/a%252Fb"), Err(UnsafePath::EncodedTwice), "it would read like an encoded slash");
    assert_eq!(literal("/public%2F..%2Fadmin"), Err(UnsafePath::EncodedDots));
    assert_eq!(literal("/public/..%2Fadmin"), Err(UnsafePath::EncodedDots));
    assert_eq!(literal("/a%2F..b"), Ok("/a%2F..b".into()));
}

/// The canonical form of a path without escapes, by its definition: dot segments by RFC 3986 and then slashes merged, if
/// merging them first gives the same at every step.
fn naive(path: &str) -> Result<String, UnsafePath> {
    let path = path.split('?').next().unwrap();
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        match (segment, kept.last()) {
            (".", _) => {}
            ("..", Some(&"")) => return Err(UnsafePath::DotsBehindSlashes),
            ("..", _) => drop(kept.pop()),
            (name, _) => kept.push(name),
        }
    }
    kept.retain(|segment| !segment.is_empty());
    let last = path.rsplit('/').next().unwrap();
    let slash = if kept.is_empty() || !["", ".", ".."].contains(&last) { "" } else { "/" };
    Ok(format!("/{}{slash}", kept.join("/")))
}

const PARTS: &[&str] = &[
    "/", "/", "a", "b", ".", "..", "%2e", "%2E", "%2f", "%61", "%25", "%", "2e", "?", ";", "\\", "%00", "é", "%c3%a9",
    "%ff", "#",
];

proptest! {
    #[test]
    fn a_path_without_escapes_is_what_the_model_says(parts in prop::collection::vec(prop::sample::select(&["/", "a", "b", ".", "?"][..]), 0..14)) {
        let path = format!("/{}", parts.concat());
        prop_assert_eq!(canonical(path.as_bytes(), EncodedSlash::Refuse).map(Cow::into_owned), naive(&path));
    }

    /// Nothing in a canonical path is left to be resolved, and encoding letters changes nothing.
    #[test]
    fn a_canonical_path_has_one_reading(parts in prop::collection::vec(prop::sample::select(PARTS), 0..12)) {
        let path = format!("/{}", parts.concat());
        let Ok(found) = canonical(path.as_bytes(), EncodedSlash::Refuse) else { return Ok(()) };
        prop_assert!(found.starts_with('/') && !found.contains("//") && !found.contains(['\\', ';', '\0']));
        prop_assert!(found.split('/').all(|segment| segment != "." && segment != ".."));
        prop_assert!(!found.to_ascii_lowercase().contains("%2f") && !found.to_ascii_lowercase().contains("%2e"));
        let encoded = path.replace('a', "%61").replace('b', "%62");
        if let Ok(again) = canonical(encoded.as_bytes(), EncodedSlash::Refuse) {
            prop_assert_eq!(&again, &found);
        }
        if !found.contains('%') {
            let written = found.replace('?', "%3F").replace('#', "%23");
            let again = canonical(written.as_bytes(), EncodedSlash::Refuse).map(Cow::into_owned);
            prop_assert_eq!(again.as_deref(), Ok(&*found));
        }
    }

    #[test]
    fn any_bytes_have_a_canonical_form_or_none(path in prop::collection::vec(any::<u8>(), 0..40)) {
        let _ = canonical(&path, EncodedSlash::Refuse);
        let _ = canonical(&path, EncodedSlash::Literal);
    }

    #[test]
    fn patterns_match_as_the_model_says(
        pattern in prop::collection::vec(prop::sample::select(&["a", "b", "/", "*", "/**", "\\*"][..]), 0..8),
        texts in prop::collection::vec("[ab/*]{0,10}", 8),
    ) {
        let pattern = pattern.concat();
        for dialect in [Dialect::Text, Dialect::Path] {
            let Ok(read) = Pattern::parse(&pattern, dialect) else { continue };
            for text in &texts {
                prop_assert_eq!(read.matches(text.as_bytes()), model(&pattern, text, dialect), "{} on {}", pattern, text);
                if read.matches(text.as_bytes()) {
                    prop_assert!(text.as_bytes().starts_with(&read.literal_start()));
                }
            }
        }
    }
}

#[test]
fn a_long_text_takes_its_length_times_the_patterns() {
    let pattern = Pattern::parse("/**a*a*a*a*a*b*/", Dialect::Path).unwrap();
    assert!(!pattern.matches(format!("/{}/", "a".repeat(60_000)).as_bytes()));
}
