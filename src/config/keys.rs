//! Reads what a limit counts by: parts of a request, each with what holds where it is missing.

use super::kinds::Kind;
use super::node::{Node, Tree, quoted};
use super::response::is_header_name;
use super::value::Value;
use crate::policy::facts::Field;
use crate::policy::limits::{KeyPart, OnMissing, Source};
use crate::token::ClaimPath;

pub const KEY: Kind<Vec<KeyPart>> = Kind::Is(
    "a part of the request, a list of parts, or `[]` for everybody",
    r#"{"type": ["string", "array", "object"]}"#,
    key,
);

/// Headers that hold credentials: a refreshed one would be a fresh allowance, and nobody may store them.
const CREDENTIALS: [&str; 3] = ["authorization", "proxy-authorization", "cookie"];

const PARTS: &str = "write a part: principal, client.address, client.network, host, method, path, header.NAME, claim.PATH, \
                     context.KEY, body.json.PATH or body.form.FIELD";

fn key(value: &mut Value<'_, '_>) -> Option<Vec<KeyPart>> {
    match &value.node().tree {
        Tree::List(parts) if parts.is_empty() => Some(Vec::new()),
        Tree::List(_) => value.elements(part),
        _ => part(value).map(|part| vec![part]),
    }
}

/// One part: a source by its name, `{ SOURCE: { ... } }` or `{ first_of: [...], ... }`.
fn part(value: &mut Value<'_, '_>) -> Option<KeyPart> {
    match &value.node().tree {
        Tree::Map(entries) => match &entries[..] {
            [(name, options)] if name.as_text() != Some("first_of") => {
                let source = source(value, name)?;
                let Tree::Map(options) = &options.tree else {
                    return value.reject("the options of a part are a map", "write `{ on_missing: shared }`");
                };
                whole(value, vec![source], options)
            }
            _ => first_of(value, entries),
        },
        _ => {
            let source = source(value, value.node())?;
            whole(value, vec![source], &[])
        }
    }
}

fn first_of(value: &mut Value<'_, '_>, entries: &[(Node, Node)]) -> Option<KeyPart> {
    let (first, options): (Vec<_>, Vec<_>) = entries.iter().partition(|(name, _)| name.as_text() == Some("first_of"));
    let [(_, Node { tree: Tree::List(nodes), .. })] = &first[..] else {
        return value.reject("a part with several keys needs one `first_of`, which is a list", PARTS);
    };
    if nodes.len() < 2 {
        return value.reject("`first_of` needs two parts at least", "add the part that stands in for the first");
    }
    let sources = nodes.iter().map(|node| source(value, node)).collect::<Option<Vec<_>>>()?;
    whole(value, sources, options)
}

/// A part with its options, of which a header, a body and a claim have to state what holds where they are missing.
fn whole<'e>(
    value: &mut Value<'_, '_>,
    first_of: Vec<Source>,
    options: impl IntoIterator<Item = &'e (Node, Node)>,
) -> Option<KeyPart> {
    let (mut normalize, mut on_missing) = (false, None);
    for (name, node) in options {
        match (name.as_text(), node.as_text()) {
            (Some("normalize"), Some("identity")) => normalize = true,
            (Some("on_missing"), Some("shared")) => on_missing = Some(OnMissing::Shared),
            (Some("on_missing"), Some("refuse")) => on_missing = Some(OnMissing::Refuse),
            (Some("on_missing"), Some("skip")) => on_missing = Some(OnMissing::Skip),
            (Some("normalize"), _) => {
                return value.reject("`normalize` must be `identity`", "write `normalize: identity`");
            }
            (Some("on_missing"), _) => {
                return value.reject("`on_missing` must be shared, refuse or skip", "write `on_missing: shared`");
            }
            _ => {
                let cause = format!("unknown option {name} of a part");
                return value.reject(&cause, "known options: normalize, on_missing");
            }
        }
    }
    let may_lack = first_of.iter().all(is_for_clients_to_leave_out);
    if may_lack && on_missing.is_none() {
        let hint = "write `on_missing: shared` (one allowance for all that lack it), `refuse` (400) or `skip` (no limit), as in \
                    `{ header.x-account: { on_missing: refuse } }`";
        return value.reject("a header, a body or a claim may be missing, and nothing says what holds then", hint);
    }
    Some(KeyPart { first_of, normalize, on_missing: on_missing.unwrap_or(OnMissing::Shared) })
}

fn is_for_clients_to_leave_out(source: &Source) -> bool {
    match source {
        Source::BodyJson(_) | Source::BodyForm(_) => true,
        Source::Field(field) => matches!(field, Field::Header(_) | Field::Claim(_)),
        Source::ClientAddress | Source::ClientNetwork => false,
    }
}

fn source(value: &mut Value<'_, '_>, node: &Node) -> Option<Source> {
    let Some(text) = node.as_text() else {
        return value.reject(&format!("a part of a key must be a text, found {node}"), PARTS);
    };
    let names = |path: &str| path.split('.').map(Into::into).collect::<Vec<String>>();
    let after = |prefix| text.strip_prefix(prefix).filter(|rest: &&str| rest.split('.').all(|name| !name.is_empty()));
    let field = |field| Some(Source::Field(field));
    match text {
        "principal" => return field(Field::Principal),
        "host" => return field(Field::Host),
        "method" => return field(Field::Method),
        "path" => return field(Field::Path),
        "client.address" => return Some(Source::ClientAddress),
        "client.network" => return Some(Source::ClientNetwork),
        _ => {}
    }
    if let Some(name) = text.strip_prefix("header.").filter(|name| is_header_name(name)) {
        return header(value, &name.to_ascii_lowercase());
    }
    if let Some(key) = text.strip_prefix("context.").filter(|key| !key.is_empty()) {
        return field(Field::Context(key.into()));
    }
    match (after("claim."), after("body.json."), after("body.form.")) {
        (Some(path), ..) => field(Field::Claim(ClaimPath(names(path)))),
        (_, Some(path), _) => Some(Source::BodyJson(names(path))),
        (.., Some(_)) => Some(Source::BodyForm(text["body.form.".len()..].into())),
        _ => value.reject(&format!("{} is no part of a request", quoted(text)), PARTS),
    }
}

fn header(value: &mut Value<'_, '_>, name: &str) -> Option<Source> {
    if CREDENTIALS.contains(&name) {
        let cause = format!("the header {} holds a credential", quoted(name));
        let hint = "count by `principal`, or by a header that names the account: a refreshed credential would be a fresh allowance";
        return value.reject(&cause, hint);
    }
    Some(Source::Field(Field::Header(name.into())))
}
