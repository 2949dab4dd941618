//! The reference as Markdown tables, one a section.

use super::{Entry, Field, Reference, Shape};

impl Reference {
    /// Every section as a heading and a table of its keys.
    pub fn to_markdown(&self) -> String {
        let mut text = String::new();
        section(&mut text, "", &self.entries);
        for (name, entries) in &self.shared {
            table(&mut text, name, entries);
        }
        text.trim_end().to_owned() + "\n"
    }
}

/// A section's table, and those of the sections within it.
fn section(text: &mut String, path: &str, entries: &[Entry]) {
    table(text, if path.is_empty() { "the file" } else { path }, entries);
    for Entry { key, shape, .. } in entries {
        let below = if path.is_empty() { (*key).to_owned() } else { format!("{path}.{key}") };
        match shape {
            Shape::Section(inner) | Shape::Either(_, inner) => section(text, &below, inner),
            Shape::List(inner) => section(text, &format!("{below}[]"), inner),
            _ => {}
        }
    }
}

fn table(text: &mut String, name: &str, entries: &[Entry]) {
    *text += &format!("### {name}\n\n| key | default | holds | what it is |\n|---|---|---|---|\n");
    for Entry { key, about, shape } in entries {
        let (name, default, holds) = match shape {
            Shape::Field(field) => ("", default(field), held(field)),
            Shape::Required(field) => ("", "required".into(), held(field)),
            Shape::Named(field) => ("NAME", String::new(), held(field)),
            Shape::Section(_) => ("", String::new(), "a section, below".into()),
            Shape::Either(field, _) => ("", default(field), format!("{}, or a section, below", held(field))),
            Shape::Shared(name) => ("", String::new(), format!("[{name}](#{name})")),
            Shape::List(_) => ("", String::new(), "a list, below".into()),
        };
        *text += &format!("| `{key}{name}` | {default} | {} | {} |\n", cell(&holds), cell(about));
    }
    *text += "\n";
}

fn default(field: &Field) -> String {
    if field.is_default { format!("`{}`", field.sample) } else { String::new() }
}

/// What a field holds, and an example where it has no default.
fn held(field: &Field) -> String {
    if field.is_default { field.wanted.clone() } else { format!("{}, as `{}`", field.wanted, field.sample) }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
