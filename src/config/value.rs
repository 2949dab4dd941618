//! One value on its way from the tree to what it means.

use super::mistake::{Mistake, Mistakes};
use super::node::{Node, Tree};

/// More elements than any list of the configuration needs.
const LONGEST_LIST: usize = 1_000;

/// What messages say of a field.
pub struct Words {
    /// The keys that lead to it, with dots: `token.metadata.failure`.
    pub path: String,
    /// What it must be: "a text".
    pub wanted: String,
    /// What to write.
    pub advice: String,
}

/// A value that stands in the file, with the words for what may be wrong with it.
pub struct Value<'d, 'm> {
    node: &'d Node,
    found: &'static str,
    words: &'m Words,
    mistakes: &'m mut Mistakes,
}

impl<'d, 'm> Value<'d, 'm> {
    /// The value of a field.
    pub fn new(node: &'d Node, words: &'m Words, mistakes: &'m mut Mistakes) -> Self {
        Self { node, found: "found", words, mistakes }
    }

    pub fn node(&self) -> &'d Node {
        self.node
    }

    /// The keys that lead to the field.
    pub fn path(&self) -> &'m str {
        &self.words.path
    }

    /// What the field's documentation says to write.
    pub fn advice(&self) -> &'m str {
        &self.words.advice
    }

    /// The text that the value must be. The empty text is a mistake.
    pub fn text(&mut self) -> Option<&'d str> {
        match self.node.as_text() {
            Some("") => self.reject(&format!("`{}` holds an empty text", self.path()), self.advice()),
            Some(text) => Some(text),
            None => self.wrong_kind(),
        }
    }

    /// The elements of the list that the value must be. One that cannot be read does not keep the others from being
    /// looked at. An empty list is a mistake.
    pub fn elements<T>(&mut self, read: impl Fn(&mut Value<'d, '_>) -> Option<T>) -> Option<Vec<T>> {
        let Tree::List(nodes) = &self.node.tree else { return self.wrong_kind() };
        if nodes.is_empty() {
            return self.reject(&format!("`{}` is an empty list", self.path()), self.advice());
        }
        if nodes.len() > LONGEST_LIST {
            let cause = format!("`{}` holds {} elements", self.path(), nodes.len());
            return self.reject(&cause, &format!("keep it to {LONGEST_LIST}"));
        }
        let elements: Vec<_> = nodes.iter().map(|node| read(&mut self.element(node))).collect();
        elements.into_iter().collect()
    }

    /// The elements of the list that the value must be, in which a repeated one is a mistake too.
    pub fn list<T: PartialEq>(&mut self, read: impl Fn(&mut Value<'d, '_>) -> Option<T>) -> Option<Vec<T>> {
        let list = self.elements(read)?;
        match (1..list.len()).find(|&at| list[..at].contains(&list[at])) {
            Some(at) => {
                self.reject_element(at, &format!("`{}` holds this twice", self.path()), "remove one of the two")
            }
            None => Some(list),
        }
    }

    /// The elements of a list, or the one that stands there without a list.
    pub fn list_or_one<T: PartialEq>(&mut self, read: impl Fn(&mut Value<'d, '_>) -> Option<T>) -> Option<Vec<T>> {
        match self.node.tree {
            Tree::List(_) => self.list(read),
            _ => read(self).map(|one| vec![one]),
        }
    }

    fn element(&mut self, node: &'d Node) -> Value<'d, '_> {
        Value { node, found: "but one is", words: self.words, mistakes: self.mistakes }
    }

    /// What stands within the value, so that a mistake there has its own place.
    pub fn inner(&mut self, node: &'d Node) -> Value<'d, '_> {
        Value { node, found: self.found, words: self.words, mistakes: self.mistakes }
    }

    /// The same, where it is a field of its own.
    pub fn option<'o>(&'o mut self, node: &'d Node, words: &'o Words) -> Value<'d, 'o> {
        Value { node, found: "found", words, mistakes: self.mistakes }
    }

    /// Notes a mistake of the element `at` of a list, and what to write instead.
    pub fn reject_element<T>(&mut self, at: usize, cause: &str, hint: &str) -> Option<T> {
        let node = match &self.node.tree {
            Tree::List(nodes) => nodes.get(at).unwrap_or(self.node),
            _ => self.node,
        };
        self.element(node).reject(cause, hint)
    }

    /// Notes that the value is of another kind than the wanted one.
    pub fn wrong_kind<T>(&mut self) -> Option<T> {
        self.wrong(self.advice())
    }

    /// Notes that the value is not what is wanted, and what to write instead.
    pub fn wrong<T>(&mut self, hint: &str) -> Option<T> {
        let Words { path, wanted, .. } = self.words;
        let cause = match &self.node.tree {
            Tree::Null => format!("`{path}` has no value"),
            _ => format!("`{path}` must be {wanted}, {} {}", self.found, self.node),
        };
        self.reject(&cause, hint)
    }

    /// Notes a mistake, and what to write instead.
    pub fn reject<T>(&mut self, cause: &str, hint: &str) -> Option<T> {
        self.mistakes.add(Mistake { span: self.node.span, cause: cause.into(), hint: hint.into() })
    }

    /// Notes a path that can only match where encoded slashes are literal.
    pub fn encoded_slash(&mut self, cause: String, hint: &str) {
        self.mistakes.add_encoded_slash(Mistake { span: self.node.span, cause, hint: hint.into() });
    }
}
