//! A document as a tree in which everything has a place.

use std::fmt;

/// Where something stands in the text: a range of bytes, and the line of its start, counted from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    pub start: usize,
    pub end: usize,
    pub line: usize,
}

impl Span {
    /// In bytes.
    pub fn length(self) -> usize {
        self.end.saturating_sub(self.start)
    }
}

/// One value and its place. What an alias stands for has the place where it is written out.
#[derive(Debug)]
pub struct Node {
    pub span: Span,
    pub tree: Tree,
}

/// A value. The entries of a map are in the order of the text, repeated keys included.
#[derive(Debug)]
pub enum Tree {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

impl Node {
    /// The text that this node is, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match &self.tree {
            Tree::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Node {
    /// The value as JSON. A number that is none of JSON's is null.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.tree {
            Tree::Null => serde_json::Value::Null,
            Tree::Bool(bool) => (*bool).into(),
            Tree::Number(number) => serde_json::from_str(number).unwrap_or_default(),
            Tree::Text(text) => text.as_str().into(),
            Tree::List(nodes) => nodes.iter().map(Self::to_json).collect(),
            Tree::Map(entries) => {
                let entry = |(key, value): &(Self, Self)| Some((key.as_text()?.to_owned(), value.to_json()));
                entries.iter().filter_map(entry).collect()
            }
        }
    }
}

/// Says what was found, for a message.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tree {
            Tree::Null => f.write_str("nothing"),
            Tree::Bool(value) => write!(f, "the boolean `{value}`"),
            Tree::Number(number) => write!(f, "the number {}", quoted(number)),
            Tree::Text(text) => write!(f, "the text {}", quoted(text)),
            Tree::List(_) => f.write_str("a list"),
            Tree::Map(_) => f.write_str("a map"),
        }
    }
}

/// What the user wrote, in quotes, for a message: what does not print is escaped, long texts are cut.
pub fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut quoted = String::from("`");
    for (at, char) in text.chars().enumerate() {
        match char {
            _ if at == LONGEST => {
                quoted += "...";
                break;
            }
            '"' | '\'' | '\\' => quoted.push(char),
            char => quoted.extend(char.escape_debug()),
        }
    }
    quoted + "`"
}
