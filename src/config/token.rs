//! The kinds of values that say where the identity comes from: claim paths and capability prefixes.

use super::kinds::{Kind, text, word};
use super::node::{Tree, quoted};
use super::value::Value;
use crate::capability::Prefixes;
use crate::token::ClaimPath;

/// The only source of this version has nothing to tell but that it is there.
pub const SOURCES: Kind<Vec<()>> = Kind::Is(
    "a list that holds `metadata`",
    r#"{"type": "array", "items": {"const": "metadata"}, "minItems": 1, "maxItems": 1}"#,
    |value| value.list(|source| word(source, &[("metadata", ())])),
);

pub const CLAIMS: Kind<Vec<ClaimPath>> =
    Kind::Is("a claim path or a list of claim paths", SOME_CLAIMS, |value| value.list_or_one(claim));

/// JSON Schema of claim paths: a text with dots, or a list of such texts and of lists of names.
const SOME_CLAIMS: &str = r#"{"oneOf": [{"type": "string", "minLength": 1}, {"type": "array", "minItems": 1, "items": {"oneOf": [
    {"type": "string", "minLength": 1},
    {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}
]}}]}"#;

pub const PREFIXES: Kind<Prefixes> = Kind::Is(
    "a list of texts",
    r#"{"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}"#,
    prefixes,
);

/// Reads a path with dots or, where it is itself an element of a list, a list of names that may hold dots.
fn claim(value: &mut Value<'_, '_>) -> Option<ClaimPath> {
    match &value.node().tree {
        Tree::List(_) => value.elements(text).map(ClaimPath),
        _ => dotted(value),
    }
}

fn dotted(value: &mut Value<'_, '_>) -> Option<ClaimPath> {
    let path = value.text()?;
    if path.split('.').any(str::is_empty) {
        let cause = format!("the claim path {} has an empty name in it", quoted(path));
        return value
            .reject(&cause, "write names with one dot between them; `[[\"a.b\"]]` is one name that holds a dot");
    }
    Some(ClaimPath(path.split('.').map(Into::into).collect()))
}

/// A prefix that stands behind one it begins with is never selected. That is no mistake: the order says which counts.
fn prefixes(value: &mut Value<'_, '_>) -> Option<Prefixes> {
    let list = value.elements(text)?;
    Prefixes::new(&list).map_or_else(|error| value.wrong(&error.to_string()), Some)
}
