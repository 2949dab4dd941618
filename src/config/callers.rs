//! The field table's section `callers`: what the rates of a token mean, and rules about callers.

use super::kinds::{DURATION, Kind, duration_text};
use super::nested::Listed;
use super::rules::{Placed, caller_rule};
use super::section::Section;
use crate::resolver::{DefaultResolver, MalformedRule, WindowBounds};

const MALFORMED: Kind<MalformedRule> =
    Kind::Word(&[("ignore_beside_valid", MalformedRule::IgnoreBesideValid), ("keep", MalformedRule::Keep)]);

/// The section `callers`.
pub struct Callers {
    pub base: Option<DefaultResolver>,
    pub rules: Listed<Placed>,
}

pub fn callers(callers: &mut Section<'_, '_>) -> Option<Callers> {
    let window_bounds = callers.section_or(
        "window_bounds",
        "{ min: 1m, max: 24h }",
        &OFF,
        "the windows that a token's rate may have; others are rescaled",
        window_bounds,
    );
    let malformed = callers.field(
        "malformed",
        "ignore_beside_valid",
        &MALFORMED,
        "what a malformed capability means beside a valid one",
    );
    let rules = callers.list("rules", "rules about callers, from top to bottom", caller_rule);
    let bounded = window_bounds.map(|bounds| DefaultResolver::default().with_window_bounds(bounds));
    let base = bounded.zip(malformed).map(|(base, malformed)| base.with_malformed(malformed));
    Some(Callers { base, rules })
}

const OFF: Kind<WindowBounds> = Kind::Word(&[("off", WindowBounds::OFF)]);

fn window_bounds(bounds: &mut Section<'_, '_>) -> Option<WindowBounds> {
    let min = bounds.field("min", "1m", &DURATION, "the shortest window that a token's rate may have");
    let max = bounds.field("max", "24h", &DURATION, "the longest window that a token's rate may have");
    let (min, max) = (min?, max?);
    WindowBounds::within(min, max).map_or_else(
        |_| {
            let cause = format!(
                "the shortest window, {}, is longer than the longest, {}",
                duration_text(min),
                duration_text(max)
            );
            bounds.clash(&["min", "max"], cause, "write a `min` that is at most `max`")
        },
        Some,
    )
}
