//! Reads what is said of a part of a key: the form in which it is compared, and what holds where it is missing.

use super::kinds::word;
use super::node::{Node, Tree, quoted};
use super::suggest::suggest;
use super::value::{Value, Words};
use crate::policy::facts::Field;
use crate::policy::scope::{KeyPart, OnMissing, Source};

/// What may be said of a part.
pub const OPTIONS: [&str; 2] = ["normalize", "on_missing"];

const NORMALIZE: [(&str, ()); 1] = [("identity", ())];

const ON_MISSING: [(&str, OnMissing); 3] =
    [("shared", OnMissing::Shared), ("refuse", OnMissing::Refuse), ("skip", OnMissing::Skip)];

/// What is said of a part, each with the name that it stands behind.
#[derive(Default)]
pub struct Options<'d> {
    normalize: Option<&'d Node>,
    on_missing: Option<(&'d Node, OnMissing)>,
}

/// Reads what stands behind the name of a part.
pub fn options_of<'d>(value: &mut Value<'d, '_>, name: &Node, node: &'d Node) -> Option<Options<'d>> {
    match &node.tree {
        Tree::Map(entries) => options(value, entries),
        Tree::Null => Some(Options::default()),
        _ => {
            let cause = format!("the options of {} are a map, found {node}", spelled(name));
            value.inner(node).reject(&cause, "write `{ on_missing: refuse }`")
        }
    }
}

/// Reads the options of a part.
pub fn options<'d>(
    value: &mut Value<'d, '_>,
    entries: impl IntoIterator<Item = &'d (Node, Node)>,
) -> Option<Options<'d>> {
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
pub fn whole<'d>(
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

/// Whether this is the name of an option.
pub fn is_option(name: &Node) -> bool {
    name.as_text().is_some_and(|name| OPTIONS.contains(&name))
}

/// Whether it is the client, of whom the section `client` says what holds where it is missing.
pub fn is_client(source: &Source) -> bool {
    matches!(source, Source::ClientAddress | Source::ClientNetwork)
}

/// Whether every request has it.
pub fn is_always_there(source: &Source) -> bool {
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
pub fn spelled(node: &Node) -> String {
    node.as_text().map_or_else(|| node.to_string(), quoted)
}
