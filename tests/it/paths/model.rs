//! What texts with wildcards match, by their definition. The fuzz target `pattern` uses it too.

use tollgate::policy::pattern::Dialect;

/// Whether the pattern matches, with `/x/**` for `/x` as well.
pub fn model(pattern: &str, text: &str, dialect: Dialect) -> bool {
    let short = pattern.strip_suffix("/**").filter(|short| dialect == Dialect::Path && !short.is_empty());
    naive_match(pattern, text, dialect) || short.is_some_and(|short| naive_match(short, text, dialect))
}

fn naive_match(pattern: &str, text: &str, dialect: Dialect) -> bool {
    if let Some(rest) = pattern.strip_prefix("\\*") {
        return text.strip_prefix('*').is_some_and(|text| naive_match(rest, text, dialect));
    }
    let (any_run, rest) = match (pattern.strip_prefix("**"), pattern.strip_prefix('*')) {
        (Some(rest), _) => (true, rest),
        (None, Some(rest)) => (dialect == Dialect::Text, rest),
        (None, None) => {
            let Some(first) = pattern.chars().next() else { return text.is_empty() };
            return text
                .strip_prefix(first)
                .is_some_and(|text| naive_match(&pattern[first.len_utf8()..], text, dialect));
        }
    };
    (0..=text.len())
        .filter(|&end| text.is_char_boundary(end))
        .take_while(|&end| any_run || !text[..end].contains('/'))
        .any(|end| naive_match(rest, &text[end..], dialect))
}
