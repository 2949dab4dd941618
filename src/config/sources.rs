//! Reads where a part of a key comes from: `principal`, `client.network`, `header.x-account`.

use super::node::quoted;
use super::response::is_header_name;
use super::suggest::suggest;
use super::value::Value;
use crate::policy::facts::Field;
use crate::policy::scope::Source;
use crate::token::ClaimPath;

/// Sources that have a name of their own.
const PLAIN: [(&str, Source); 6] = [
    ("principal", Source::Field(Field::Principal)),
    ("client.address", Source::ClientAddress),
    ("client.network", Source::ClientNetwork),
    ("host", Source::Field(Field::Host)),
    ("method", Source::Field(Field::Method)),
    ("path", Source::Field(Field::Path)),
];

/// How sources begin that name something, each with an example.
const NAMED: [(&str, &str); 5] = [
    ("header.", "header.x-account"),
    ("claim.", "claim.org"),
    ("context.", "context.tier"),
    ("body.json.", "body.json.username"),
    ("body.form.", "body.form.username"),
];

/// Headers that hold credentials: a refreshed one would be a fresh allowance, and nobody may store them.
const CREDENTIALS: [&str; 3] = ["authorization", "proxy-authorization", "cookie"];

const PARTS: &str = "parts are principal, client.address, client.network, host, method, path, header.NAME, claim.PATH, \
                     context.KEY, body.json.PATH and body.form.FIELD";

/// Reads a source by its name.
pub fn source(value: &mut Value<'_, '_>) -> Option<Source> {
    if value.node().as_text().is_none() {
        return value.wrong(PARTS);
    }
    let text = value.text()?;
    if let Some((_, source)) = PLAIN.iter().find(|(name, _)| *name == text) {
        return Some(source.clone());
    }
    let named = NAMED.iter().find_map(|(start, example)| Some((*start, text.strip_prefix(start)?, *example)));
    match named {
        Some((_, "", example)) => nameless(value, text, example),
        Some(("header.", name, _)) => header(value, name),
        Some(("claim.", path, _)) => names(value, path).map(|names| Source::Field(Field::Claim(ClaimPath(names)))),
        Some(("body.json.", path, _)) => names(value, path).map(Source::BodyJson),
        Some(("body.form.", field, _)) => Some(Source::BodyForm(field.into())),
        Some((_, key, _)) => Some(Source::Field(Field::Context(key.into()))),
        None => unknown(value, text),
    }
}

fn header(value: &mut Value<'_, '_>, name: &str) -> Option<Source> {
    if !is_header_name(name) {
        let cause = format!("{} is not the name of a header", quoted(name));
        return value.reject(&cause, "write letters, digits and hyphens, such as `header.x-account`");
    }
    let name = name.to_ascii_lowercase();
    if CREDENTIALS.contains(&name.as_str()) {
        let cause = format!("the header {} holds a credential, and a new one would be a new allowance", quoted(&name));
        return value.reject(&cause, "count by `principal`, or by a header that names the account");
    }
    Some(Source::Field(Field::Header(name.into())))
}

fn names(value: &mut Value<'_, '_>, path: &str) -> Option<Vec<String>> {
    if path.split('.').any(str::is_empty) {
        let cause = format!("the path {} has an empty name in it", quoted(path));
        return value.reject(&cause, "write names with one dot between them");
    }
    Some(path.split('.').map(Into::into).collect())
}

/// A source that says what it reads and not which.
fn nameless<T>(value: &mut Value<'_, '_>, text: &str, example: &str) -> Option<T> {
    value.reject(&format!("{} does not say which", quoted(text)), &format!("add the name, such as `{example}`"))
}

fn unknown<T>(value: &mut Value<'_, '_>, text: &str) -> Option<T> {
    if let Some((_, example)) = NAMED.iter().find(|(start, _)| start.strip_suffix('.') == Some(text)) {
        return nameless(value, text, example);
    }
    let hint = match (text.split_once(','), nearest(text)) {
        (Some(_), _) => "write several parts as a list, such as `[client.network, principal]`".into(),
        (None, Some(near)) => format!("did you mean {}?", quoted(&near)),
        (None, None) if text.starts_with("client") => "write `client.network` or `client.address`".into(),
        (None, None) if text.starts_with("body") => "write `body.json.username` or `body.form.username`".into(),
        (None, None) => PARTS.into(),
    };
    value.reject(&format!("{} is no part of a request", quoted(text)), &hint)
}

/// The source that an unknown one was probably meant to be.
fn nearest(text: &str) -> Option<String> {
    let names = PLAIN.iter().map(|(name, _)| *name);
    if let Some(name) = suggest(text, names.chain(["first_of"])).filter(|name| *name != text) {
        return Some(name.into());
    }
    // The start of `body.json.` holds one dot more than that of `header.`.
    [2, 1].into_iter().find_map(|dots| {
        let (end, _) = text.match_indices('.').nth(dots - 1)?;
        let (start, name) = text.split_at(end + 1);
        let starts = NAMED.iter().map(|(start, _)| *start).filter(|start| start.matches('.').count() == dots);
        suggest(start, starts).filter(|_| !name.is_empty()).map(|start| format!("{start}{name}"))
    })
}
