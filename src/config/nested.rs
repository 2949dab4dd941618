//! Sections within a section: maps, lists of maps, and maps in whose place a value may stand.

use super::kinds::Kind;
use super::node::{Node, Span, Tree};
use super::reference::{Field, Shape};
use super::section::{Read, Section};
use super::value::Value;
use super::yaml;

/// The elements of a list that could be read.
pub struct Listed<T> {
    pub read: Vec<T>,
    is_whole: bool,
}

impl<T> Listed<T> {
    /// All elements, if all could be read.
    pub fn whole(self) -> Option<Vec<T>> {
        self.is_whole.then_some(self.read)
    }
}

impl<'d> Section<'d, '_> {
    /// Reads a section within this one. One that is not there, or has nothing in it, is all defaults.
    pub fn section<T>(&mut self, key: &'static str, about: &'static str, read: Read<T>) -> Option<T> {
        let value = self.section_at(key, about, read);
        let entries = self.notes.described.take();
        self.note(key, about, || Shape::Section(entries.unwrap_or_default()));
        value
    }

    fn section_at<T>(&mut self, key: &'static str, about: &str, read: Read<T>) -> Option<T> {
        match self.find(key) {
            Some((name, Node { tree: Tree::Map(entries), .. })) => self.within(key, name.span, entries, read),
            Some((name, Node { tree: Tree::Null, .. })) => self.within(key, name.span, &[], read),
            Some((_, node)) => self.no_map(key, node, about),
            None => self.within(key, self.span, &[], read),
        }
    }

    /// Reads a section within this one, or what may stand in its place. `default` is YAML, as for a field.
    pub fn section_or<T: Clone>(
        &mut self,
        key: &'static str,
        default: &str,
        kind: &Kind<T>,
        about: &'static str,
        read: Read<T>,
    ) -> Option<T> {
        let value = match (self.find(key), yaml::parse(default)) {
            (Some((name, node)), _) => self.either(key, name.span, node, default, kind, about, read),
            (None, Ok(node)) => self.either(key, self.span, &node, default, kind, about, read),
            (None, Err(mistake)) => self.notes.mistakes.add(mistake),
        };
        self.note_either(key, about, Field::new(kind, default, true), read);
        value
    }

    /// Reads a section within this one, or what may stand in its place; it may be absent. `example` is YAML.
    pub fn optional_section_or<T: Clone>(
        &mut self,
        key: &'static str,
        example: &str,
        kind: &Kind<T>,
        about: &'static str,
        read: Read<T>,
    ) -> Option<Option<T>> {
        self.note_either(key, about, Field::new(kind, example, false), read);
        let Some((name, node)) = self.find(key) else { return Some(None) };
        if matches!(node.tree, Tree::Null) {
            return self.optional(key, example, kind, about);
        }
        self.either(key, name.span, node, example, kind, about, read).map(Some)
    }

    #[allow(clippy::too_many_arguments, reason = "a key, its place, its value, and the field that it is")]
    fn either<T: Clone>(
        &mut self,
        key: &'static str,
        span: Span,
        node: &Node,
        sample: &str,
        kind: &Kind<T>,
        about: &str,
        read: Read<T>,
    ) -> Option<T> {
        match &node.tree {
            Tree::Map(entries) => self.within(key, span, entries, read),
            Tree::Null => self.within(key, span, &[], read),
            _ => {
                let mut words = self.words(key, sample, kind, about);
                words.wanted += " or a map";
                kind.read(&mut Value::new(node, &words, &mut self.notes.mistakes))
            }
        }
    }

    fn note_either<T>(&mut self, key: &'static str, about: &'static str, field: Field, read: Read<T>) {
        if self.described.is_some() {
            let _ = self.within(key, self.span, &[], read);
            let entries = self.notes.described.take().unwrap_or_default();
            self.note(key, about, || Shape::Either(field, entries));
        }
    }

    /// Reads a section that stands in several places and may be absent; `name` is what the reference calls it.
    pub fn shared<T>(
        &mut self,
        key: &'static str,
        name: &'static str,
        about: &'static str,
        read: Read<T>,
    ) -> Option<Option<T>> {
        self.note(key, about, || Shape::Shared(name));
        if self.described.is_some() {
            if self.notes.shared.iter().all(|(known, _)| *known != name) {
                self.notes.shared.push((name, Vec::new()));
                let _ = self.within(key, self.span, &[], read);
                let entries = self.notes.described.take().unwrap_or_default();
                self.notes.shared.iter_mut().filter(|(known, _)| *known == name).for_each(|of| of.1 = entries.clone());
            }
            return Some(None);
        }
        match self.find(key) {
            Some((name, Node { tree: Tree::Map(entries), .. })) if !entries.is_empty() => {
                self.within(key, name.span, entries, read).map(Some)
            }
            Some((_, node)) if matches!(node.tree, Tree::Map(_) | Tree::Null) => {
                let cause = format!("`{}` holds nothing", self.path_to(key));
                self.reject(node.span, cause, format!("remove it, or add what it asks for ({about})"))
            }
            Some((_, node)) => self.no_map(key, node, about),
            None => Some(None),
        }
    }

    /// Reads a list of sections. One that is not there is empty.
    pub fn list<T>(&mut self, key: &'static str, about: &'static str, read: Read<T>) -> Listed<T> {
        let elements: Vec<Option<T>> = match self.find(key) {
            None if self.described.is_some() => vec![self.within(key, self.span, &[], read)],
            None => Vec::new(),
            Some((_, Node { tree: Tree::List(nodes), .. })) => {
                nodes.iter().enumerate().map(|(at, node)| self.element(key, at, node, read)).collect()
            }
            Some((_, node)) => {
                let cause = match node.tree {
                    Tree::Null => format!("`{}` has no value", self.path_to(key)),
                    _ => format!("`{}` must be a list, found {node}", self.path_to(key)),
                };
                vec![self.reject(node.span, cause, format!("write a line `- ` with keys for each element ({about})"))]
            }
        };
        let entries = self.notes.described.take();
        self.note(key, about, || Shape::List(entries.unwrap_or_default()));
        let is_whole = elements.iter().all(Option::is_some);
        Listed { read: elements.into_iter().flatten().collect(), is_whole }
    }

    fn element<T>(&mut self, key: &str, at: usize, node: &'d Node, read: Read<T>) -> Option<T> {
        match &node.tree {
            Tree::Map(entries) => self.within(&format!("{key}[{at}]"), node.span, entries, read),
            _ => {
                let cause = format!("`{}[{at}]` must be a map, found {node}", self.path_to(key));
                self.reject(node.span, cause, "write keys and values behind the `- `".into())
            }
        }
    }

    fn no_map<T>(&mut self, key: &str, node: &Node, about: &str) -> Option<T> {
        let cause = format!("`{}` must be a map, found {node}", self.path_to(key));
        self.reject(node.span, cause, format!("write `{key}:` and its keys indented below it ({about})"))
    }

    /// Reads a section. Where it is described, its entries are left in the notes.
    fn within<T>(&mut self, key: &str, span: Span, entries: &[(Node, Node)], read: Read<T>) -> Option<T> {
        let path = self.path_to(key);
        let described = self.described.is_some().then(Vec::new);
        let mut section = Section::new(path, span, entries, self.notes);
        section.described = described;
        let value = read(&mut section);
        let described = section.described.take();
        section.finish();
        self.notes.described = described;
        value
    }
}
