//! The mistakes of a file, each shown with its place, its line and what to write instead.

use super::mistake::{Mistake, Mistakes};
use super::node::Span;
use annotate_snippets::renderer::{DEFAULT_HELP_STYLE, Renderer, Style};
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Snippet};
use std::fmt;

/// How many mistakes are shown; the others are counted.
const SHOWN: usize = 50;

/// The mistakes of one file, in the order of its lines. It prints as plain text.
#[derive(Debug)]
pub struct Diagnostics {
    name: String,
    severity: Severity,
    /// The mistakes that are shown, each with its line.
    shown: Vec<(Mistake, Line)>,
    count: usize,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Severity {
    Mistake,
    Warning,
}

/// A line of the file, or the part of a long one that is near a mistake.
#[derive(Debug)]
struct Line {
    text: String,
    number: usize,
    /// In characters, from 1, if the start of the line is left out.
    column: Option<usize>,
    /// In bytes of `text`.
    underlined: std::ops::Range<usize>,
}

impl Diagnostics {
    /// The `mistakes` of the file `name`, which holds `text`.
    pub(super) fn mistakes(name: &str, text: &str, mistakes: Mistakes) -> Self {
        Self::new(name, text, Severity::Mistake, mistakes)
    }

    /// What is no mistake of the file `name` and yet may not be meant.
    pub(super) fn warnings(name: &str, text: &str, warnings: Mistakes) -> Self {
        Self::new(name, text, Severity::Warning, warnings)
    }

    fn new(name: &str, text: &str, severity: Severity, mistakes: Mistakes) -> Self {
        let mistakes = mistakes.sorted();
        let count = mistakes.len();
        let shown = mistakes.into_iter().take(SHOWN);
        let shown = shown
            .map(|mistake| {
                let line = Line::of(text, mistake.span);
                (mistake, line)
            })
            .collect();
        Self { name: name.into(), severity, shown, count }
    }

    /// The file and the number of its mistakes.
    pub fn summary(&self) -> String {
        let plural = if self.count == 1 { "" } else { "s" };
        format!("{}: {} {}{plural}", self.name, self.count, self.severity.word())
    }

    /// What is shown, each as its line, its cause and its hint.
    pub fn records(&self) -> impl Iterator<Item = (usize, &str, &str)> {
        self.shown.iter().map(|(mistake, line)| (line.number, &*mistake.cause, &*mistake.hint))
    }

    /// The text in colours, for a terminal.
    pub fn to_styled(&self) -> String {
        self.render(&Renderer::styled(), DEFAULT_HELP_STYLE)
    }

    fn render(&self, renderer: &Renderer, hint: Style) -> String {
        let mut text = String::new();
        for (mistake, line) in &self.shown {
            text += &renderer.render(&line.report(&self.name, self.severity, &mistake.cause));
            text += &format!("\n{hint}hint:{hint:#} {}\n\n", mistake.hint);
        }
        match self.count - self.shown.len() {
            0 => text.truncate(text.trim_end().len()),
            1 => text += &format!("and 1 more {}", self.severity.word()),
            more => text += &format!("and {more} more {}s", self.severity.word()),
        }
        text
    }
}

impl Severity {
    fn word(self) -> &'static str {
        match self {
            Self::Mistake => "mistake",
            Self::Warning => "warning",
        }
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(&Renderer::plain(), Style::new()))
    }
}

impl std::error::Error for Diagnostics {}

impl Line {
    /// Characters that are kept before and after the start of a mistake. The snippet shows still fewer.
    const BEFORE: usize = 1_000;
    const AFTER: usize = 100;

    fn of(text: &str, span: Span) -> Self {
        let (before, after) = text.split_at(text.floor_char_boundary(span.start));
        let line_start = before.rfind(['\n', '\r']).map_or(0, |end| end + 1);
        let line_end = after.find(['\n', '\r']).unwrap_or(after.len());
        let (before, after) = (&before[line_start..], &after[..line_end]);
        let (left, right) = (last_chars(before, Self::BEFORE), first_chars(after, Self::AFTER));
        let length = right.floor_char_boundary(span.end.saturating_sub(span.start));
        let more = if right.len() < after.len() { "..." } else { "" };
        Self {
            text: format!("{left}{right}{more}"),
            number: span.line.max(1),
            column: (left.len() < before.len()).then(|| before.chars().count() + 1),
            underlined: left.len()..left.len() + length,
        }
    }

    fn report<'a>(&'a self, name: &'a str, severity: Severity, cause: &'a str) -> Vec<Group<'a>> {
        let level = if severity == Severity::Mistake { Level::ERROR } else { Level::WARNING };
        let title = level.clone().primary_title(cause);
        let snippet = Snippet::source(&self.text).line_start(self.number);
        let snippet = snippet.annotation(AnnotationKind::Primary.span(self.underlined.clone()));
        match self.column {
            None => vec![title.element(snippet.path(name))],
            Some(column) => {
                let origin = Origin::path(name).line(self.number).char_column(column);
                vec![title.element(origin), Group::with_level(level).element(snippet)]
            }
        }
    }
}

fn first_chars(text: &str, count: usize) -> &str {
    text.char_indices().nth(count).map_or(text, |(end, _)| &text[..end])
}

fn last_chars(text: &str, count: usize) -> &str {
    text.char_indices().rev().nth(count.saturating_sub(1)).map_or(text, |(start, _)| &text[start..])
}
