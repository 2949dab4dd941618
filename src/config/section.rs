//! Reads the fields of one map, each by one call that names its key, its default, its kind and what it is.

use super::kinds::Kind;
use super::mistake::{Mistake, Mistakes};
use super::node::{Node, Span, Tree, quoted};
use super::suggest::suggest;
use super::value::{Value, Words};
use super::yaml;
use std::collections::HashMap;

/// What an empty file or one without keys is told.
const SMALLEST: &str = "the smallest useful file is\n\n    token:\n      prefixes: [\"prefix:rate:\"]\n";

/// A map of the file, whose keys are fields and sections. A mistake of one field is noted, that field gives `None`,
/// and reading goes on.
pub struct Section<'d, 'm> {
    path: String,
    span: Span,
    entries: &'d [(Node, Node)],
    known: Vec<&'static str>,
    mistakes: &'m mut Mistakes,
}

/// What reads a section.
pub type Read<T> = fn(&mut Section<'_, '_>) -> Option<T>;

impl<'d, 'm> Section<'d, 'm> {
    /// Reads a whole document.
    pub fn document<T>(document: &'d Node, mistakes: &'m mut Mistakes, read: Read<T>) -> Option<T> {
        let cause = match &document.tree {
            Tree::Map(entries) => {
                let span = Span { end: document.span.start, ..document.span };
                let mut section = Self { path: String::new(), span, entries, known: Vec::new(), mistakes };
                let value = read(&mut section);
                section.finish();
                return value;
            }
            Tree::Null => "the file holds no configuration".into(),
            _ => format!("a configuration is a map of sections, found {document}"),
        };
        mistakes.add(Mistake { span: Span::default(), cause, hint: SMALLEST.into() })
    }

    /// Reads a field. `default` is YAML, read like the file's own text where the file says nothing.
    pub fn field<T: Clone>(&mut self, key: &'static str, default: &str, kind: &Kind<T>, about: &str) -> Option<T> {
        let words = self.words(key, default, kind, about);
        match self.find(key) {
            Some((_, node)) => kind.read(&mut Value::new(node, &words, self.mistakes)),
            None => self.default(default, kind, &words),
        }
    }

    /// Reads a field that has no default. `example` is YAML.
    pub fn required<T: Clone>(&mut self, key: &'static str, example: &str, kind: &Kind<T>, about: &str) -> Option<T> {
        let words = self.words(key, example, kind, about);
        match self.find(key) {
            Some((_, node)) => kind.read(&mut Value::new(node, &words, self.mistakes)),
            None => {
                let hint = format!("below `{}`, {}", self.path, words.advice);
                self.reject(self.span, format!("`{}` is missing", words.path), hint)
            }
        }
    }

    /// Reads a section within this one. One that is not there, or has nothing in it, is all defaults.
    pub fn section<T>(&mut self, key: &'static str, about: &str, read: Read<T>) -> Option<T> {
        match self.find(key) {
            Some((name, Node { tree: Tree::Map(entries), .. })) => self.within(key, name.span, entries, read),
            Some((name, Node { tree: Tree::Null, .. })) => self.within(key, name.span, &[], read),
            Some((_, node)) => {
                let cause = format!("`{}` must be a map, found {node}", self.path_to(key));
                self.reject(node.span, cause, format!("write `{key}:` and its keys indented below it ({about})"))
            }
            None => self.within(key, self.span, &[], read),
        }
    }

    /// Reads a section within this one, or the word that may stand in its place.
    pub fn section_or<T>(&mut self, key: &'static str, word: (&str, T), about: &str, read: Read<T>) -> Option<T> {
        match self.find(key) {
            Some((_, node)) if node.as_text() == Some(word.0) => Some(word.1),
            Some((_, node)) if !matches!(node.tree, Tree::Map(_) | Tree::Null) => {
                let cause = format!("`{}` must be `{}` or a map, found {node}", self.path_to(key), word.0);
                self.reject(
                    node.span,
                    cause,
                    format!("write `{key}: {}`, or its keys indented below it ({about})", word.0),
                )
            }
            _ => self.section(key, about, read),
        }
    }

    /// Notes a mistake that lies in how fields of this section go together, at the first of `keys` that is written.
    pub fn clash<T>(&mut self, keys: &[&str], cause: String, hint: &str) -> Option<T> {
        let written = keys.iter().find_map(|key| self.find_known(key));
        let span = written.map_or(self.span, |(_, node)| node.span);
        self.reject(span, cause, hint.into())
    }

    fn within<T>(&mut self, key: &str, span: Span, entries: &[(Node, Node)], read: Read<T>) -> Option<T> {
        let path = self.path_to(key);
        let mut section = Section { path, span, entries, known: Vec::new(), mistakes: self.mistakes };
        let value = read(&mut section);
        section.finish();
        value
    }

    fn find(&mut self, key: &'static str) -> Option<&'d (Node, Node)> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.find_known(key)
    }

    fn find_known(&self, key: &str) -> Option<&'d (Node, Node)> {
        self.entries.iter().find(|(name, _)| name.as_text() == Some(key))
    }

    fn path_to(&self, key: &str) -> String {
        if self.path.is_empty() { key.into() } else { format!("{}.{key}", self.path) }
    }

    fn words<T: Clone>(&self, key: &str, example: &str, kind: &Kind<T>, about: &str) -> Words {
        let advice = format!("write `{key}: {example}` ({about})");
        Words { path: self.path_to(key), wanted: kind.wanted(), advice }
    }

    fn default<T: Clone>(&mut self, default: &str, kind: &Kind<T>, words: &Words) -> Option<T> {
        let mut mistakes = Mistakes::default();
        let node = yaml::parse(default).ok();
        let value = node.and_then(|node| kind.read(&mut Value::new(&node, words, &mut mistakes)));
        value.or_else(|| {
            let cause = format!("the built-in default of `{}` cannot be read: {default}", words.path);
            self.reject(self.span, cause, format!("set `{}`", words.path))
        })
    }

    fn reject<T>(&mut self, span: Span, cause: String, hint: String) -> Option<T> {
        self.mistakes.add(Mistake { span, cause, hint })
    }

    /// Notes keys that nothing asked for, and keys that stand there twice.
    fn finish(mut self) {
        let mut lines = HashMap::new();
        for (name, _) in self.entries {
            let key = name.as_text().unwrap_or_default();
            if !self.known.contains(&key) {
                self.unknown(name);
            } else if let Some(line) = lines.insert(key, name.span.line) {
                let cause = format!("`{}` stands here twice", self.path_to(key));
                self.reject::<()>(name.span, cause, format!("keep one of the two; the other is in line {line}"));
            }
        }
    }

    fn unknown(&mut self, name: &Node) {
        let place = if self.path.is_empty() { "the file".into() } else { format!("`{}`", self.path) };
        let cause = match &name.tree {
            Tree::Text(key) | Tree::Number(key) => format!("unknown key {} in {place}", quoted(key)),
            _ => format!("a key in {place} must be a text, found {name}"),
        };
        let hint = match suggest(name.as_text().unwrap_or_default(), self.known.iter().copied()) {
            Some(key) => format!("did you mean `{key}`?"),
            None => format!("known keys here: {}", self.known.join(", ")),
        };
        self.reject::<()>(name.span, cause, hint);
    }
}
