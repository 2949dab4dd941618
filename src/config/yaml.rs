//! From YAML text to a tree of our own; the only file that knows how YAML is read.

use super::mistake::Mistake;
use super::node::{Node, Span, Tree, quoted};
use super::syntax;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Error, Location, Options, Spanned};
use std::fmt;

/// How deep lists and maps may lie in each other.
const DEPTH: usize = 32;
/// How many values a file may hold; ten thousand rules are 80,000.
const NODES: usize = 1_000_000;
/// How many parser events aliases may repeat. A bomb of nested aliases ends here, after some milliseconds.
const REPEATED: usize = 20_000;

/// Reads one document. An empty one is null.
pub fn parse(text: &str) -> Result<Node, Mistake> {
    serde_saphyr::from_str_with_options(text, options()).map_err(|error| mistake(text, &error))
}

fn options() -> Options {
    serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        merge_keys: MergeKeyPolicy::Error,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_depth: DEPTH,
            flow_nesting_limit: DEPTH,
            max_nodes: NODES,
            max_events: 3 * NODES,
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: REPEATED },
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value: tree, defined, .. } = Spanned::deserialize(deserializer)?;
        Ok(Self { span: bytes(defined).unwrap_or_default(), tree })
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyTree)
    }
}

struct AnyTree;

impl<'de> Visitor<'de> for AnyTree {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Number(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Number(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Number(value.to_string()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Tree, E> {
        Ok(Tree::Text(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Tree, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = access.next_element()? {
            elements.push(element);
        }
        Ok(Tree::List(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Tree, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Tree::Map(entries))
    }
}

fn mistake(text: &str, error: &Error) -> Mistake {
    let span = error.location().map(|location| place(text, location)).unwrap_or_default();
    let (cause, hint) = words(error, text.lines().nth(span.line.saturating_sub(1)).unwrap_or_default());
    Mistake { span, cause, hint: hint.into() }
}

/// Syntax errors have a place in characters only.
fn place(text: &str, location: Location) -> Span {
    bytes(location).unwrap_or_else(|| {
        let offset = usize::try_from(location.span().offset()).unwrap_or(usize::MAX);
        let (start, char) = text.char_indices().nth(offset).unwrap_or((text.len(), '\0'));
        Span { start, end: (start + char.len_utf8()).min(text.len()), line: line(location) }
    })
}

fn bytes(location: Location) -> Option<Span> {
    let start = usize::try_from(location.span().byte_offset()?).ok()?;
    let length = usize::try_from(location.span().byte_len()?).ok()?;
    Some(Span { start, end: start + length, line: line(location) })
}

fn line(location: Location) -> usize {
    usize::try_from(location.line()).unwrap_or(usize::MAX)
}

fn words(error: &Error, line: &str) -> (String, &'static str) {
    match error {
        Error::AliasError { error, .. } => words(error, line),
        Error::Budget { breach: serde_saphyr::budget::BudgetBreach::Depth { .. }, .. } => too_deep(),
        Error::Budget { .. } => {
            (format!("the file holds too much: over {NODES} values, or as much text"), "split the deployment in two")
        }
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. } => (
            format!("aliases repeat too much: over {REPEATED} values"),
            "write the values out where they are needed instead of aliases of aliases",
        ),
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            ("this alias stands inside the very value that it repeats".into(), "write the value out")
        }
        Error::UnknownAnchor { .. } => (
            "there is no anchor of this name before this alias".into(),
            "a text that begins with `*` must be in quotes; an alias needs an anchor, such as `&name`, before it",
        ),
        Error::MergeKeyNotAllowed { .. } => {
            ("merge keys (`<<`) are not supported".into(), "write the keys out, or alias a whole value: `key: *name`")
        }
        Error::MultipleDocuments { .. } => {
            ("a second document begins here".into(), "keep one document: remove the line `---` and what follows it")
        }
        Error::UnsupportedTag { tag, .. } => {
            (format!("unknown tag {}", quoted(tag)), "remove the tag; a text that begins with `!` must be in quotes")
        }
        Error::ExternalMessage { msg, .. } if msg.contains("recursion limit") => too_deep(),
        Error::ExternalMessage { msg, .. } => not_yaml(msg, line),
        Error::InvalidScalar { .. }
        | Error::InvalidBinaryBase64 { .. }
        | Error::BinaryNotUtf8 { .. }
        | Error::TaggedScalarCannotDeserializeIntoString { .. } => {
            ("the value does not fit its tag".into(), "remove the tag")
        }
        other => not_yaml(other.to_string().split(" at line ").next().unwrap_or_default(), line),
    }
}

fn not_yaml(message: &str, line: &str) -> (String, &'static str) {
    (format!("this is not YAML: {message}"), syntax::hint(message, line))
}

fn too_deep() -> (String, &'static str) {
    (
        format!("lists and maps lie in each other more than {DEPTH} deep"),
        "no setting lies that deep; look for a stray bracket",
    )
}
