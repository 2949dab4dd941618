//! Names of accounts in the form in which they are compared.

use proptest::prelude::*;
use std::borrow::Cow;
use tollgate::identity::normalize;
use unicode_normalization::UnicodeNormalization;

#[test]
fn forms() {
    for (name, expected) in [
        ("", ""),
        ("@", ""),
        ("alice", "alice"),
        ("Alice@Example.COM", "alice@example.com"),
        ("alice@", "alice"),
        ("alice@@", "alice"),
        ("@alice", "@alice"),
        (" alice ", " alice "),
        ("ａｌｉｃｅ＠", "alice"),
        ("ＡＬＩＣＥ", "alice"),
        ("Straße", "strasse"),
        ("STRAẞE", "strasse"),
        ("ﬁN", "fin"),
        ("ΣΊΣΥΦΟΣ", "σίσυφοσ"),
        ("Σίσυφος", "σίσυφοσ"),
        ("İstanbul", "i\u{307}stanbul"),
        ("I\u{307}stanbul", "i\u{307}stanbul"),
        ("ı", "ı"),
        ("\u{212a}elvin", "kelvin"),
        ("caf\u{e9}", "café"),
        ("cafe\u{301}", "café"),
        ("CAFE\u{301}", "café"),
        ("ŉ", "ʼn"),
        ("\u{1d4d0}lice", "alice"),
        ("①", "1"),
        ("㎒", "mhz"),
        ("ᾼ", "αι"),
        ("\u{3b1}\u{345}", "αι"),
        ("Ꭰ", "Ꭰ"),
        ("ꭰ", "Ꭰ"),
    ] {
        assert_eq!(normalize(name), expected, "{name}");
    }
    assert!(matches!(normalize("alice@"), Cow::Borrowed("alice")), "no copy");
}

/// Every character that changes, alone and between others. Unicode has none of these beyond its second plane.
#[test]
fn every_character() {
    let mut changed = 0;
    for character in '\0'..='\u{1ffff}' {
        let name = character.to_string();
        if normalize(&name) != name {
            changed += 1;
            check(&name);
            check(&format!("A{character}\u{345}\u{301}"));
        }
    }
    assert!(changed > 5_000, "{changed}");
}

/// The form is stable, and Unicode's own compatibility matching takes it for the name that it came from.
fn check(name: &str) {
    let form = normalize(name);
    assert_eq!(normalize(&form), form, "{name:?}");
    assert!(form.nfkc().eq(form.chars()), "{name:?} is in the compatibility form");
    if !form.is_empty() && !name.nfkc().collect::<String>().ends_with('@') {
        assert!(caseless::compatibility_caseless_match_str(&form, name), "{name:?}");
    }
}

/// Letters that fold to several, that compose, that reorder.
fn odd() -> impl Strategy<Value = String> {
    let letters = "aAßẞİıſſſΣςιΙ\u{345}\u{301}\u{307}\u{327}ΐᾳᾼﬀﬃŉǰＡ＠@㎒\u{212a}\u{1e9b}가ᄀ\u{1161}\u{11a8}";
    prop::collection::vec(prop::sample::select(letters.chars().collect::<Vec<_>>()), 0..8)
        .prop_map(|letters| letters.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2048) })]

    #[test]
    fn a_form_is_stable(name in prop_oneof![any::<String>(), odd()]) {
        check(&name);
    }

    /// Two names have one form exactly where Unicode's compatibility caseless matching takes them for the same.
    #[test]
    fn names_that_match_have_one_form(one in odd(), other in odd()) {
        let ends = |name: &str| name.nfkc().collect::<String>().ends_with('@');
        prop_assume!(!ends(&one) && !ends(&other));
        let upper = one.to_uppercase();
        for other in [&other, &upper] {
            let matches = caseless::compatibility_caseless_match_str(&one, other);
            prop_assert_eq!(normalize(&one) == normalize(other), matches, "{:?} {:?}", one, other);
        }
    }

    #[test]
    fn canonically_equal_names_have_one_form(name in any::<String>()) {
        let apart: String = name.nfd().collect();
        prop_assert_eq!(normalize(&apart), normalize(&name));
    }
}
