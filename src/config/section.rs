//! Reads the fields of one map, each by one call that names its key, its default, its kind and what it is. The same
//! calls describe the map, where there is nothing to read.

use super::kinds::Kind;
use super::mistake::{Mistake, Notes};
use super::node::{Node, Span, Tree, quoted};
use super::reference::{Entry, Field, Shape};
use super::suggest::suggest;
use super::value::{Value, Words};
use super::yaml;
use std::collections::{HashMap, HashSet};

/// What an empty file or one without keys is told.
const SMALLEST: &str = "the smallest useful file is\n\n    token:\n      prefixes: [\"prefix:rate:\"]\n";

/// A map of the file, whose keys are fields and sections. A mistake of one field is noted, that field gives `None`,
/// and reading goes on.
pub struct Section<'d, 'm> {
    pub(super) path: String,
    pub(super) span: Span,
    pub(super) entries: &'d [(Node, Node)],
    pub(super) known: Vec<&'static str>,
    pub(super) notes: &'m mut Notes,
    /// Keys that must be there and are not, with what to say of each.
    pub(super) missing: Vec<(&'static str, Mistake)>,
    /// The entries that were asked for, where the map is described.
    pub(super) described: Option<Vec<Entry>>,
}

/// What reads a section.
pub type Read<T> = fn(&mut Section<'_, '_>) -> Option<T>;

impl<'d, 'm> Section<'d, 'm> {
    /// Reads a whole document.
    pub fn document<T>(document: &'d Node, notes: &'m mut Notes, read: Read<T>) -> Option<T> {
        let cause = match &document.tree {
            Tree::Map(entries) => {
                let span = Span { end: document.span.start, ..document.span };
                let mut section = Section::new(String::new(), span, entries, notes);
                let value = read(&mut section);
                section.finish();
                return value;
            }
            Tree::Null => "the file holds no configuration".into(),
            _ => format!("a configuration is a map of sections, found {document}"),
        };
        notes.mistakes.add(Mistake { span: Span::default(), cause, hint: SMALLEST.into() })
    }

    /// What `read` asks of a document.
    pub fn describe<T>(notes: &'m mut Notes, read: Read<T>) -> Vec<Entry> {
        let mut section = Section::new(String::new(), Span::default(), &[], notes);
        section.described = Some(Vec::new());
        read(&mut section);
        section.described.unwrap_or_default()
    }

    /// A map of which nothing has been read.
    pub(super) fn new(path: String, span: Span, entries: &'d [(Node, Node)], notes: &'m mut Notes) -> Self {
        Self { path, span, entries, known: Vec::new(), notes, missing: Vec::new(), described: None }
    }

    /// The keys that lead here, with dots.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Where it stands.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Reads a field. `default` is YAML, read like the file's own text where the file says nothing.
    pub fn field<T: Clone>(
        &mut self,
        key: &'static str,
        default: &str,
        kind: &Kind<T>,
        about: &'static str,
    ) -> Option<T> {
        self.note(key, about, || Shape::Field(Field::new(kind, default, true)));
        let words = self.words(key, default, kind, about);
        match self.find(key) {
            Some((_, node)) => kind.read(&mut Value::new(node, &words, &mut self.notes.mistakes)),
            None => self.default(default, kind, &words),
        }
    }

    /// Reads a field that has no default and may be absent. `example` is YAML.
    pub fn optional<T: Clone>(
        &mut self,
        key: &'static str,
        example: &str,
        kind: &Kind<T>,
        about: &'static str,
    ) -> Option<Option<T>> {
        self.note(key, about, || Shape::Field(Field::new(kind, example, false)));
        let Some((_, node)) = self.find(key) else { return Some(None) };
        let words = self.words(key, example, kind, about);
        kind.read(&mut Value::new(node, &words, &mut self.notes.mistakes)).map(Some)
    }

    /// Reads a field that has no default and must be there. `example` is YAML.
    pub fn required<T: Clone>(
        &mut self,
        key: &'static str,
        example: &str,
        kind: &Kind<T>,
        about: &'static str,
    ) -> Option<T> {
        self.note(key, about, || Shape::Required(Field::new(kind, example, false)));
        let words = self.words(key, example, kind, about);
        match self.find(key) {
            Some((_, node)) => kind.read(&mut Value::new(node, &words, &mut self.notes.mistakes)),
            None if self.described.is_some() => None,
            None => {
                let hint = format!("below `{}`, {}", self.path, words.advice);
                self.missing
                    .push((key, Mistake { span: self.span, cause: format!("`{}` is missing", words.path), hint }));
                None
            }
        }
    }

    /// Reads the fields whose keys begin with `prefix`, such as `header.`, with what follows it. `example` is such a
    /// key and its value.
    pub fn named<T: Clone>(
        &mut self,
        prefix: &'static str,
        example: (&str, &str),
        kind: &Kind<T>,
        about: &'static str,
    ) -> Vec<Option<(&'d str, Span, T)>> {
        self.note(prefix, about, || Shape::Named(Field::new(kind, example.1, false)));
        self.known.push(prefix);
        let entries = self.entries.iter().filter_map(|(key, node)| {
            let name = key.as_text()?.strip_prefix(prefix).filter(|name| !name.is_empty())?;
            Some((name, key, node))
        });
        let mut found = Vec::new();
        for (name, key, node) in entries {
            let words = self.words(&format!("{prefix}{name}"), example.1, kind, about);
            let value = kind.read(&mut Value::new(node, &words, &mut self.notes.mistakes));
            found.push(value.map(|value| (name, key.span, value)));
        }
        found
    }

    /// Whether `key` is written here.
    pub fn has(&self, key: &str) -> bool {
        self.find_known(key).is_some()
    }

    /// Whether every key is known, now that all were asked for, and stands here once. Otherwise the section may mean
    /// something else than what was read of it, and what seems to follow from it would only hide the mistake.
    pub fn is_clean(&self) -> bool {
        let mut seen = HashSet::new();
        self.entries.iter().all(|(name, _)| {
            let key = name.as_text().unwrap_or_default();
            self.knows(key) && seen.insert(key)
        })
    }

    /// Whether a key stands here that is unknown, and probably meant to be `key`.
    fn is_mistyped(&self, key: &str) -> bool {
        let written = self.entries.iter().map(|(name, _)| name.as_text().unwrap_or_default());
        written.filter(|written| !self.knows(written)).any(|written| suggest(written, [key]).is_some())
    }

    /// Notes a mistake that lies in how fields of this section go together, at the first of `keys` that is written.
    pub fn clash<T>(&mut self, keys: &[&str], cause: String, hint: &str) -> Option<T> {
        let written = keys.iter().find_map(|key| self.find_known(key));
        let span = written.map_or(self.span, |(name, node)| match node.tree {
            Tree::Map(_) => name.span,
            _ => node.span,
        });
        self.reject(span, cause, hint.into())
    }

    /// Notes that fields of different spelling are the one field `key`, at the last of them.
    pub fn twice<T>(&mut self, key: &str) -> Option<T> {
        let spells = |name: &&(Node, Node)| name.0.as_text().is_some_and(|text| text.eq_ignore_ascii_case(key));
        let span = self.entries.iter().rfind(spells).map_or(self.span, |(name, _)| name.span);
        let cause = format!("{} stands here twice, in two spellings", quoted(&self.path_to(key)));
        self.reject(span, cause, "keep one of the two, with a list of what it may be".into())
    }

    /// Notes a mistake.
    pub fn reject<T>(&mut self, span: Span, cause: String, hint: String) -> Option<T> {
        self.notes.mistakes.add(Mistake { span, cause, hint })
    }

    /// Notes what is no mistake and yet may not be meant.
    pub fn warn(&mut self, span: Span, cause: String, hint: &str) {
        self.notes.warnings.add::<()>(Mistake { span, cause, hint: hint.into() });
    }

    pub(super) fn note(&mut self, key: &'static str, about: &'static str, shape: impl FnOnce() -> Shape) {
        if let Some(described) = &mut self.described {
            described.push(Entry { key, about, shape: shape() });
        }
    }

    pub(super) fn find(&mut self, key: &'static str) -> Option<&'d (Node, Node)> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.find_known(key)
    }

    pub(super) fn find_known(&self, key: &str) -> Option<&'d (Node, Node)> {
        self.entries.iter().find(|(name, _)| name.as_text() == Some(key))
    }

    pub(super) fn path_to(&self, key: &str) -> String {
        if self.path.is_empty() { key.into() } else { format!("{}.{key}", self.path) }
    }

    pub(super) fn words<T>(&self, key: &str, example: &str, kind: &Kind<T>, about: &str) -> Words {
        let advice = format!("write `{key}: {example}` ({about})");
        Words { path: self.path_to(key), wanted: kind.wanted(), advice }
    }

    fn default<T: Clone>(&mut self, default: &str, kind: &Kind<T>, words: &Words) -> Option<T> {
        // Ten thousand rules have a mode each; a word needs no YAML reader.
        if let Some(meaning) = kind.word(default) {
            return Some(meaning);
        }
        let mut aside = Notes::default();
        let node = yaml::parse(default).ok();
        let value = node.and_then(|node| kind.read(&mut Value::new(&node, words, &mut aside.mistakes)));
        value.or_else(|| {
            let cause = format!("the built-in default of `{}` cannot be read: {default}", words.path);
            self.reject(self.span, cause, format!("set `{}`", words.path))
        })
    }

    /// Notes keys that nothing asked for, keys that stand there twice, and those that must be there and are not.
    pub(super) fn finish(mut self) {
        for (key, mistake) in std::mem::take(&mut self.missing) {
            // What is mistyped is noted as an unknown key, and that says enough.
            if !self.is_mistyped(key) {
                self.notes.mistakes.add::<()>(mistake);
            }
        }
        let mut lines = HashMap::new();
        for (name, _) in self.entries {
            let key = name.as_text().unwrap_or_default();
            if !self.knows(key) {
                self.unknown(name);
            } else if let Some(line) = lines.insert(key, name.span.line) {
                let cause = format!("`{}` stands here twice", self.path_to(key));
                self.reject::<()>(name.span, cause, format!("keep one of the two; the other is in line {line}"));
            }
        }
    }

    /// Whether something asked for `key`: itself, or every key that begins like it.
    fn knows(&self, key: &str) -> bool {
        self.known.iter().any(|known| match known.ends_with('.') {
            true => key.len() > known.len() && key.starts_with(known),
            false => key == *known,
        })
    }

    fn unknown(&mut self, name: &Node) {
        let place = if self.path.is_empty() { "the file".into() } else { format!("`{}`", self.path) };
        let cause = match &name.tree {
            Tree::Text(key) | Tree::Number(key) => format!("unknown key {} in {place}", quoted(key)),
            _ => format!("a key in {place} must be a text, found {name}"),
        };
        let known =
            || self.known.iter().map(|key| if key.ends_with('.') { format!("{key}NAME") } else { (*key).to_owned() });
        let hint = match self.nearest(name.as_text().unwrap_or_default()) {
            Some(key) => format!("did you mean {}?", quoted(&key)),
            None => format!("known keys here: {}", known().collect::<Vec<_>>().join(", ")),
        };
        self.reject::<()>(name.span, cause, hint);
    }

    /// The known key that an unknown one was probably meant to be.
    fn nearest(&self, written: &str) -> Option<String> {
        let known = || self.known.iter().copied();
        let (start, rest) = written.split_once('.').unwrap_or((written, ""));
        let named = || suggest(&format!("{start}."), known().filter(|key| key.ends_with('.')));
        let key = suggest(written, known()).or_else(|| named().filter(|_| !rest.is_empty()))?;
        let name = if rest.is_empty() { "NAME" } else { rest };
        Some(if key.ends_with('.') { format!("{key}{name}") } else { key.into() })
    }
}
