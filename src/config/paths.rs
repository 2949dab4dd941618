//! Reads paths with wildcards. One that no canonical path looks like could never match, and is a mistake.

use super::node::quoted;
use super::patterns::pattern;
use super::value::Value;
use crate::path::{EncodedSlash, UnsafePath, canonical};
use crate::policy::pattern::Dialect;
use crate::policy::when::Wanted;

/// What would be taken for an escape, a query or a fragment where it is written plainly.
const ESCAPES: [(&str, &str); 3] = [("%25", "%"), ("%3F", "?"), ("%23", "#")];

/// Reads a path with wildcards. It is written in its canonical form, but for what [`ESCAPES`] holds.
pub fn path_pattern(value: &mut Value<'_, '_>) -> Option<Wanted> {
    let text = value.text()?;
    let cause = format!("no path that is matched looks like {}", quoted(text));
    if text.starts_with('*') && !text.starts_with("**") {
        let longer = if text == "*" { "/**".into() } else { format!("*{text}") };
        return value.reject(&cause, &format!("`*` stops at a slash: write {}", quoted(&longer)));
    }
    let sample = sample(text);
    match canonical(sample.as_bytes(), EncodedSlash::Literal) {
        Ok(path) if path == decoded(&sample) => {
            if path.contains("%2F") {
                value.encoded_slash(cause, "write it without `%2F`, or set `encoded_slash: literal` below `paths`");
            }
            pattern(value, &decoded(text), Dialect::Path)
        }
        Ok(path) if !text.contains('*') => {
            value.reject(&cause, &format!("write {}: that is its canonical form", quoted(&encoded(&path))))
        }
        Ok(_) => value.reject(&cause, "write it decoded, without `//`, dot segments and a query"),
        Err(error) => value.reject(&format!("{cause}: {error}"), &hint(error, text)),
    }
}

/// A path that the pattern matches, if there is one.
fn sample(text: &str) -> String {
    let sample = text.replace("\\*", "x").replace('*', "x");
    match text {
        "\\*" => "*".into(),
        _ if text.starts_with('*') => format!("/{sample}"),
        _ => sample,
    }
}

fn decoded(text: &str) -> String {
    let decode = |text: String, (escape, plain): &(&str, &str)| text.replace(escape, plain);
    ESCAPES.iter().rev().fold(text.replace("%3f", "%3F"), decode)
}

/// A canonical path as a pattern writes it. In it, `%2F` is an encoded slash.
fn encoded(path: &str) -> String {
    let encode = |text: String, (escape, plain): &(&str, &str)| text.replace(plain, escape);
    let pieces = path.split("%2F").map(|piece| ESCAPES.iter().fold(piece.to_owned(), encode));
    pieces.collect::<Vec<_>>().join("%2F")
}

fn hint(error: UnsafePath, text: &str) -> String {
    let path = text.split("://").last().unwrap_or_default();
    match error {
        UnsafePath::NoSlash if path.len() < text.len() => "write the path alone, without a scheme and a host".into(),
        UnsafePath::NoSlash => format!("write {}", quoted(&format!("/{text}"))),
        UnsafePath::BadEscape => "write `%25` for a percent sign".into(),
        UnsafePath::Fragment => "write `%23` for this character".into(),
        _ => "remove it: requests with such a path are refused with 400 before any rule is asked".into(),
    }
}
