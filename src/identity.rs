//! Pure: the one form in which names of accounts are compared, for the limits and for whoever authenticates.

use caseless::Caseless;
use std::borrow::Cow;
use unicode_normalization::UnicodeNormalization;

/// Rounds after which every text is stable; most are after one.
const ROUNDS: usize = 4;

/// Brings the name of an account into the form in which names are compared: Unicode's compatibility form NFKC, letters
/// case-folded in full (`ß` is `ss`), every `@` at the end cut off. What is normalised stays as it is when it is
/// normalised again.
///
/// A service that authenticates should look accounts up by the same form. Else a client that writes `ALICE`, `ａｌｉｃｅ`
/// and `alice@` in turn is one account there and three here, and has three times as many attempts.
///
/// ```
/// use tollgate::identity::normalize;
///
/// for name in ["alice", "ALICE", "ａｌｉｃｅ", "alice@"] {
///     assert_eq!(normalize(name), "alice");
/// }
/// assert_eq!(normalize("Straße"), normalize("STRASSE"));
/// ```
pub fn normalize(name: &str) -> Cow<'_, str> {
    if !name.is_ascii() {
        return without_at(normalize_unicode(name)).into();
    }
    let name = name.trim_end_matches('@');
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) { name.to_ascii_lowercase().into() } else { name.into() }
}

/// Letters fold apart from their marks (NFD): an iota below, U+0345, folds to a letter, which would take the marks
/// behind it along. The compatibility form of what is folded may hold letters that fold, so it goes on until nothing
/// changes.
fn normalize_unicode(name: &str) -> String {
    let round = |text: &str| text.nfd().default_case_fold().nfkc().collect::<String>();
    let mut text = round(name);
    for _ in 1..ROUNDS {
        let next = round(&text);
        if next == text {
            break;
        }
        text = next;
    }
    text
}

fn without_at(mut name: String) -> String {
    name.truncate(name.trim_end_matches('@').len());
    name
}
