//! The field table as data: every key, its default, what it may hold and what it is.

mod markdown;
mod schema;

use super::kinds::Kind;
use super::mistake::Notes;
use super::section::Section;
use super::table;

/// A key of a section.
#[derive(Clone, Debug)]
pub struct Entry {
    pub key: &'static str,
    pub about: &'static str,
    pub shape: Shape,
}

/// What stands under a key.
#[derive(Clone, Debug)]
pub enum Shape {
    Field(Field),
    /// A field that must be there.
    Required(Field),
    /// Any number of fields whose keys begin like this.
    Named(Field),
    Section(Vec<Entry>),
    /// A field, or a section in its place.
    Either(Field, Vec<Entry>),
    /// A section that stands in several places.
    Shared(&'static str),
    /// A list of sections.
    List(Vec<Entry>),
}

/// What a field may hold.
#[derive(Clone, Debug)]
pub struct Field {
    wanted: String,
    /// JSON Schema, as JSON.
    schema: String,
    /// YAML: what holds where the file says nothing, or an example.
    sample: String,
    is_default: bool,
}

/// Everything that a file may hold.
pub struct Reference {
    entries: Vec<Entry>,
    shared: Vec<(&'static str, Vec<Entry>)>,
}

impl Field {
    pub fn new<T>(kind: &Kind<T>, sample: &str, is_default: bool) -> Self {
        Self { wanted: kind.wanted(), schema: kind.schema(), sample: sample.into(), is_default }
    }
}

impl Reference {
    /// The reference of this version.
    pub fn new() -> Self {
        let mut notes = Notes::default();
        let entries = Section::describe(&mut notes, table::document);
        Self { entries, shared: notes.shared }
    }
}

impl Default for Reference {
    fn default() -> Self {
        Self::new()
    }
}
