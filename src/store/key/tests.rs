//! Lists of parts never meet, before they are hashed and after.

use super::{KeySpace, encode};
use proptest::prelude::*;

fn encoded(parts: &[Option<Vec<u8>>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(parts.iter().map(Option::as_deref), |chunk| bytes.extend_from_slice(chunk));
    bytes
}

/// Short parts of few bytes, so that lists come close to each other: their own lengths among them.
fn parts() -> impl Strategy<Value = Vec<Option<Vec<u8>>>> {
    let text = prop::collection::vec(prop_oneof![Just(0), Just(1), Just(2), Just(9), Just(b'a')], 0..12);
    prop::collection::vec(prop::option::of(text), 0..4)
}

/// The list that an encoding was made of.
fn decoded(mut bytes: &[u8]) -> Vec<Option<Vec<u8>>> {
    let mut parts = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap();
        let (part, rest) = rest.split_at(length.saturating_sub(1));
        parts.push((length > 0).then(|| part.to_vec()));
        bytes = rest;
    }
    parts
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4096) })]

    /// What can be read back is one list's only.
    #[test]
    fn an_encoding_is_that_of_one_list(one in parts(), other in parts()) {
        prop_assert_eq!(decoded(&encoded(&one)), one.clone());
        prop_assert_eq!(encoded(&one) == encoded(&other), one == other);
    }

    #[test]
    fn keys_differ_where_lists_do(one in parts(), other in parts()) {
        let space = KeySpace::new("test");
        let key = |parts: &[Option<Vec<u8>>]| space.key_of(parts.iter().map(Option::as_deref));
        prop_assert_eq!(key(&one) == key(&other), one == other);
    }
}

#[test]
fn parts_that_look_alike() {
    let text = |text: &str| Some(text.as_bytes().to_vec());
    let lists = [
        vec![],
        vec![None],
        vec![text("")],
        vec![None, None],
        vec![text(""), text("")],
        vec![None, text("")],
        vec![text("ab"), text("c")],
        vec![text("a"), text("bc")],
        vec![text("abc")],
        vec![text("abc"), None],
        vec![text("c"), text("ab")],
        vec![text("\0")],
        vec![text("\0\0\0\0\0\0\0\0")],
    ];
    let space = KeySpace::new("test");
    for (at, one) in lists.iter().enumerate() {
        for other in &lists[..at] {
            assert_ne!(encoded(one), encoded(other));
            let key = |parts: &[Option<Vec<u8>>]| space.key_of(parts.iter().map(Option::as_deref));
            assert_ne!(key(one), key(other));
        }
    }
}
