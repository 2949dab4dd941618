//! Reads what a limit counts by: parts of a request, alone, in a list, or one that stands in for another.

use super::key_options::{
    OPTIONS, Options, is_always_there, is_client, is_option, options, options_of, spelled, whole,
};
use super::kinds::Kind;
use super::node::{Node, Tree};
use super::sources::source;
use super::suggest::suggest;
use super::value::Value;
use crate::policy::scope::{KeyPart, Source};

pub const KEY: Kind<Vec<KeyPart>> = Kind::Is(
    "a part of the request, a list of parts, or `[]` for everybody",
    r#"{"type": ["string", "array", "object"]}"#,
    key,
);

/// The most parts that stand in for one another; more than anybody needs.
const MOST_SOURCES: usize = 16;

/// The entries of a map.
type Entries<'d> = &'d [(Node, Node)];

fn key(value: &mut Value<'_, '_>) -> Option<Vec<KeyPart>> {
    match &value.node().tree {
        Tree::List(parts) if parts.is_empty() => Some(Vec::new()),
        Tree::List(_) => value.list(part),
        _ => part(value).map(|part| vec![part]),
    }
}

/// One part: a source by its name, `{ SOURCE: { ... } }` or `{ first_of: [...], ... }`.
fn part(value: &mut Value<'_, '_>) -> Option<KeyPart> {
    let node = value.node();
    let Tree::Map(entries) = &node.tree else {
        let read = source(value)?;
        return whole(value, node, vec![read], Options::default());
    };
    if let Some((name, list)) = entries.iter().find(|(name, _)| name.as_text() == Some("first_of")) {
        return first_of(value, entries, name, list);
    }
    match &entries[..] {
        [] => value.reject("an empty map is no part of a request", "write `[]` for one allowance for everybody"),
        [(name, options)] => {
            let read = source(&mut value.inner(name))?;
            let options = options_of(value, name, options)?;
            whole(value, name, vec![read], options)
        }
        [(first, _), (second, _), ..] => several(value, entries, first, second),
    }
}

fn first_of<'d>(value: &mut Value<'d, '_>, entries: Entries<'d>, name: &'d Node, list: &'d Node) -> Option<KeyPart> {
    let besides = || entries.iter().filter(|(other, _)| !std::ptr::eq(other, name));
    if let Some((other, _)) = besides().find(|(other, _)| !is_option(other)) {
        return stray(value, other);
    }
    let Tree::List(nodes) = &list.tree else {
        let cause = format!("`first_of` must be a list of parts, found {list}");
        return value.inner(list).reject(&cause, "write `first_of: [principal, client.network]`");
    };
    if !(2..=MOST_SOURCES).contains(&nodes.len()) {
        let cause = format!("`first_of` needs 2 to {MOST_SOURCES} parts, and holds {}", nodes.len());
        return value.inner(name).reject(&cause, "write the part, and those that stand in where it is missing");
    }
    let sources: Vec<_> = nodes.iter().map(|node| one_of(value, node)).collect();
    let sources = sources.into_iter().collect::<Option<Vec<_>>>()?;
    refuse_covered(value, nodes, &sources)?;
    let options = options(value, besides())?;
    whole(value, name, sources, options)
}

/// Notes what stands beside `first_of` and is none of its options.
fn stray<'d, T>(value: &mut Value<'d, '_>, other: &'d Node) -> Option<T> {
    let text = other.as_text().unwrap_or_default();
    if text == "first_of" {
        return value.inner(other).reject("`first_of` stands here twice", "keep one of the two");
    }
    let hint = match suggest(text, OPTIONS) {
        Some(option) => format!("did you mean `{option}`?"),
        None => "only `normalize` and `on_missing` stand beside it; write other parts as elements of a list".into(),
    };
    value.inner(other).reject(&format!("{} does not go with `first_of`", spelled(other)), &hint)
}

/// A source in `first_of`, whose options stand beside the list.
fn one_of<'d>(value: &mut Value<'d, '_>, node: &'d Node) -> Option<Source> {
    match &node.tree {
        Tree::Map(_) => {
            let hint = "write `{ first_of: [header.x-account, principal], on_missing: shared }`";
            value.inner(node).reject("a part in `first_of` has no options of its own", hint)
        }
        _ => source(&mut value.inner(node)),
    }
}

/// Notes a source that is never looked at, since one before it is there whenever it is.
fn refuse_covered<'d>(value: &mut Value<'d, '_>, nodes: &'d [Node], sources: &[Source]) -> Option<()> {
    let covers =
        |one: &Source, other: &Source| one == other || is_always_there(one) || is_client(one) && is_client(other);
    for (at, source) in sources.iter().enumerate() {
        if let Some(before) = sources[..at].iter().position(|before| covers(before, source)) {
            let before = spelled(&nodes[before]);
            let cause =
                format!("{} never counts here: {before} before it is there whenever it is", spelled(&nodes[at]));
            return value.inner(&nodes[at]).reject(&cause, "remove one of the two, or change their order");
        }
    }
    Some(())
}

/// Notes a map of several keys, none of which is `first_of`.
fn several<'d, T>(value: &mut Value<'d, '_>, entries: Entries<'d>, first: &'d Node, second: &'d Node) -> Option<T> {
    let names = || entries.iter().map(|(name, _)| name);
    match names().find(|name| is_option(name)) {
        Some(option) => {
            let cause = format!("{} stands beside the part that it is about", spelled(option));
            let part = names().find(|name| !is_option(name)).and_then(Node::as_text).unwrap_or("header.x-account");
            let hint = format!("write it into the part: `{{ {part}: {{ on_missing: refuse }} }}`");
            value.inner(option).reject(&cause, &hint)
        }
        None => {
            let cause = format!("a part has one name, and here {} stands beside {}", spelled(second), spelled(first));
            let hint = "write a list of parts, or `{ first_of: [...] }` if one stands in for the other";
            value.inner(second).reject(&cause, hint)
        }
    }
}
