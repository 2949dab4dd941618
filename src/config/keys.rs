//! Reads what a limit counts by: parts of a request, each with what holds where it is missing.

use super::kinds::{Kind, word};
use super::node::{Node, Tree, quoted};
use super::sources::source;
use super::suggest::suggest;
use super::value::{Value, Words};
use crate::policy::facts::Field;
use crate::policy::limits::{KeyPart, OnMissing, Source};

pub const KEY: Kind<Vec<KeyPart>> = Kind::Is(
    "a part of the request, a list of parts, or `[]` for everybody",
    r#"{"type": ["string", "array", "object"]}"#,
    key,
);

const OPTIONS: [&str; 2] = ["normalize", "on_missing"];

const NORMALIZE: [(&str, ()); 1] = [("identity", ())];

const ON_MISSING: [(&str, OnMissing); 3] =
    [("shared", OnMissing::Shared), ("refuse", OnMissing::Refuse), ("skip", OnMissing::Skip)];

/// What is said of a part, each with the name that it stands behind.
#[derive(Default)]
struct Options<'d> {
    normalize: Option<&'d Node>,
    on_missing: Option<(&'d Node, OnMissing)>,
}

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
    if nodes.len() < 2 {
        let cause = format!("`first_of` needs two parts at least, and holds {}", nodes.len());
        return value.inner(name).reject(&cause, "add the part that stands in where the first is missing");
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

fn options_of<'d>(value: &mut Value<'d, '_>, name: &Node, node: &'d Node) -> Option<Options<'d>> {
    match &node.tree {
        Tree::Map(entries) => options(value, entries),
        Tree::Null => Some(Options::default()),
        _ => {
            let cause = format!("the options of {} are a map, found {node}", spelled(name));
            value.inner(node).reject(&cause, "write `{ on_missing: refuse }`")
        }
    }
}

fn options<'d>(value: &mut Value<'d, '_>, entries: impl IntoIterator<Item = &'d (Node, Node)>) -> Option<Options<'d>> {
    let mut options = Options::default();
    for (name, node) in entries {
        let is_new = match name.as_text() {
            Some("normalize") => {
                option(value, "normalize", node, &NORMALIZE, "the names of accounts become one spelling")?;
                options.normalize.replace(name).is_none()
            }
            Some("on_missing") => {
                let about = "shared: one allowance for all that lack it; refuse: 400; skip: no limit";
                let read = option(value, "on_missing", node, &ON_MISSING, about)?;
                options.on_missing.replace((name, read)).is_none()
            }
            text => {
                let hint = match suggest(text.unwrap_or_default(), OPTIONS) {
                    Some(option) => format!("did you mean `{option}`?"),
                    None => "the options of a part are normalize and on_missing".into(),
                };
                return value.inner(name).reject(&format!("{} is no option of a part", spelled(name)), &hint);
            }
        };
        if !is_new {
            let cause = format!("{} stands here twice", spelled(name));
            return value.inner(name).reject(&cause, "keep one of the two");
        }
    }
    Some(options)
}

/// Reads what is said of a part in one word.
fn option<'d, T: Clone>(
    value: &mut Value<'d, '_>,
    name: &str,
    node: &'d Node,
    meanings: &[(&str, T)],
    about: &str,
) -> Option<T> {
    let known: Vec<_> = meanings.iter().map(|(word, _)| *word).collect();
    let wanted = if let [word] = &known[..] { format!("`{word}`") } else { format!("one of {}", known.join(", ")) };
    let advice = format!("write `{name}: {}` ({about})", known[0]);
    let words = Words { path: format!("{}.{name}", value.path()), wanted, advice };
    word(&mut value.option(node, &words), meanings)
}

/// A part with its options, of which a header, a body and a claim have to state what holds where they are missing. `at`
/// is where the part stands.
fn whole<'d>(
    value: &mut Value<'d, '_>,
    at: &'d Node,
    first_of: Vec<Source>,
    Options { normalize, on_missing }: Options<'d>,
) -> Option<KeyPart> {
    if let Some(name) = normalize.filter(|_| !first_of.iter().any(may_name_an_account)) {
        return value.inner(name).reject("this part does not hold the name of an account", "remove `normalize`");
    }
    match on_missing {
        Some((name, _)) if first_of.iter().any(is_client) => {
            let cause = "where the client's address is missing, the section `client` says what holds";
            value.inner(name).reject(cause, "remove it, and write `client: { on_missing: refuse }` or `peer`")
        }
        Some((name, _)) if first_of.iter().any(is_always_there) => {
            value.inner(name).reject("every request has this part", "remove `on_missing`")
        }
        None if first_of.iter().all(is_for_clients_to_leave_out) => {
            let part = if first_of.len() > 1 { "first_of: [...], ".into() } else { format!("{}: {{ ", at.as_text()?) };
            let end = if first_of.len() > 1 { "" } else { " }" };
            let hint = format!(
                "write `{{ {part}on_missing: refuse{end} }}` (400), `shared` (one allowance for all that lack it) or \
                 `skip` (no limit)"
            );
            value.inner(at).reject("this may be missing from a request, and nothing says what holds then", &hint)
        }
        _ => Some(KeyPart {
            first_of,
            normalize: normalize.is_some(),
            on_missing: on_missing.map_or(OnMissing::Shared, |(_, on_missing)| on_missing),
        }),
    }
}

fn is_option(name: &Node) -> bool {
    name.as_text().is_some_and(|name| OPTIONS.contains(&name))
}

fn is_client(source: &Source) -> bool {
    matches!(source, Source::ClientAddress | Source::ClientNetwork)
}

fn is_always_there(source: &Source) -> bool {
    matches!(source, Source::Field(Field::Host | Field::Method | Field::Path))
}

fn may_name_an_account(source: &Source) -> bool {
    !is_client(source) && !is_always_there(source)
}

fn is_for_clients_to_leave_out(source: &Source) -> bool {
    match source {
        Source::BodyJson(_) | Source::BodyForm(_) => true,
        Source::Field(field) => matches!(field, Field::Header(_) | Field::Claim(_)),
        Source::ClientAddress | Source::ClientNetwork => false,
    }
}

/// What stands there, for a message.
fn spelled(node: &Node) -> String {
    node.as_text().map_or_else(|| node.to_string(), quoted)
}
