//! Reads what requests cost.

use super::kinds::{Kind, SWITCH, UNITS};
use super::limits::PlacedLimit;
use super::matchers::when;
use super::node::{Span, quoted};
use super::reach::Reach;
use super::response::is_header_name;
use super::rules::{self, Placed};
use super::section::Section;
use super::sense::{are_disjoint, spelled};
use crate::policy::Mode;
use crate::policy::costs::{Cost, CostRule, CostSource};
use crate::policy::facts::Field;
use crate::policy::when::When;

/// A cost, and where it stands.
pub struct PlacedCost {
    pub rule: CostRule,
    span: Span,
}

impl PlacedCost {
    /// What a request costs that says nothing.
    fn least(&self) -> u64 {
        match &self.rule.cost {
            Cost::Constant(units) => *units,
            Cost::From(source) => source.default,
        }
    }
}

const CONSTANT: Kind<Cost> =
    Kind::Is("a whole number", r#"{"type": "integer", "minimum": 0}"#, |value| UNITS.read(value).map(Cost::Constant));

const SOURCE: Kind<Field> = Kind::Is("`context.KEY` or `header.NAME`", super::kinds::A_TEXT, |value| {
    let text = value.text()?;
    let after = |prefix| text.strip_prefix(prefix).filter(|name: &&str| !name.is_empty());
    match (after("context."), after("header.")) {
        (Some(key), _) => Some(Field::Context(key.into())),
        (_, Some(name)) if is_header_name(name) => Some(Field::Header(name.to_ascii_lowercase().into())),
        _ => value.wrong("write `context.cost` or `header.x-cost`"),
    }
});

/// One cost.
pub fn cost_rule(rule: &mut Section<'_, '_>) -> Option<PlacedCost> {
    let when = rule.shared("when", "matchers", "the requests that the cost is for; without it, all", when);
    let cost = rule.optional_section_or(
        "cost",
        "10",
        &CONSTANT,
        "units of every rate that a request spends; 0 is a look that spends nothing",
        source,
    );
    if !rule.is_clean() {
        return None;
    }
    match (when?, cost?) {
        (when, Some(cost)) => {
            Some(PlacedCost { rule: CostRule { when: when.unwrap_or_default(), cost }, span: rule.span() })
        }
        (_, None) => rule.reject(rule.span(), format!("`{}.cost` is missing", rule.path()), "add `cost: 10`".into()),
    }
}

fn source(source: &mut Section<'_, '_>) -> Option<Cost> {
    let from = source.required("from", "context.cost", &SOURCE, "where the request says its cost, a whole number");
    let default = source.field("default", "1", &UNITS, "the cost where it says none; this is counted");
    let max = source.field("max", "100", &UNITS, "the most that it can cost");
    let trusted = source.field(
        "trusted",
        "false",
        &SWITCH,
        "whether clients cannot write the header; else it can only raise the cost",
    );
    let (field, default, max, trusted) = (from?, default?, max?, trusted?);
    let is_header = matches!(field, Field::Header(_));
    if !is_header && source.has("trusted") {
        return source.clash(
            &["trusted"],
            "`trusted` is about headers: clients cannot write a context entry".into(),
            "remove it",
        );
    }
    if max < default {
        return source.clash(
            &["max", "default"],
            format!("the most, {max}, is less than the default, {default}"),
            "write a `max` that is at least `default`",
        );
    }
    if let (Field::Header(name), false) = (&field, trusted) {
        let cause = format!("the cost comes from the header {}, which clients may write", quoted(name));
        source.warn(source.span(), cause, "write `trusted: true` if Envoy removes what clients send in it; until then it can only raise the cost above `default`");
    }
    Some(Cost::From(CostSource { trusted: trusted || !is_header, field, default, max }))
}

/// Notes costs that can never apply, and those that never fit into a rate of the caller rules. `without_token`: requests
/// without a token get here.
pub fn check(
    section: &mut Section<'_, '_>,
    costs: &[PlacedCost],
    callers: &[Placed],
    limits: &[PlacedLimit],
    without_token: bool,
) {
    let mut reach = Reach::new("cost", without_token);
    for (at, cost) in costs.iter().enumerate() {
        reach.visit(section, &cost.rule.when, cost.span, true);
        let by_callers = || (0..callers.len()).find_map(|rule| too_dear(cost, &costs[..at], &callers[..=rule]));
        let found = limits.iter().find_map(|limit| too_dear_for(cost, &costs[..at], limit)).or_else(by_callers);
        let Some((certainty, cause)) = found else { continue };
        let hint = "write a lower cost or a higher count, or keep the two apart by `when`";
        match certainty {
            Certainty::Always => section.reject(cost.span, cause, hint.into()).unwrap_or(()),
            Certainty::Maybe => section.warn(cost.span, cause, hint),
        }
    }
}

/// Whether what is found holds for every request with the cost.
enum Certainty {
    Always,
    Maybe,
}

/// Why a request with this cost never fits into a limit, if both may be for the same request.
fn too_dear_for(cost: &PlacedCost, before: &[PlacedCost], placed: &PlacedLimit) -> Option<(Certainty, String)> {
    let limit = &placed.limit;
    let units = cost.least();
    let (ours, theirs) = (spelled(&cost.rule.when), spelled(&limit.scope.when));
    let both = [&ours[..], &theirs[..]].concat();
    let taken = before.iter().any(|cost| spelled(&cost.rule.when).iter().all(|matcher| both.contains(matcher)));
    if limit.cost.is_some()
        || units <= limit.burst
        || !placed.is_enabled
        || taken
        || are_disjoint(&cost.rule.when, &limit.scope.when)
    {
        return None;
    }
    let is_certain = limit.mode == Mode::Enforce && theirs.iter().all(|matcher| ours.contains(matcher));
    let certainty = if is_certain { Certainty::Always } else { Certainty::Maybe };
    let cause =
        format!("a request that costs {units} never fits into the limit {}, which holds {}", limit.name, limit.burst);
    Some((certainty, cause))
}

/// Why a request with this cost never fits into a rate of the last of `rules`, if both may be for the same request:
/// costs and rules before them may take it first.
fn too_dear(cost: &PlacedCost, before: &[PlacedCost], rules: &[Placed]) -> Option<(Certainty, String)> {
    let (rule, earlier) = rules.split_last()?;
    let units = cost.least();
    let rate = rule.rule.action.rates().iter().find(|rate| rate.count() < units)?;
    let (ours, theirs) = (spelled(&cost.rule.when), spelled(&rule.rule.when));
    let both = [&ours[..], &theirs[..]].concat();
    let takes = |when: &When| spelled(when).iter().all(|matcher| both.contains(matcher));
    let ends =
        |placed: &Placed| placed.rule.action.ends() && placed.rule.mode == Mode::Enforce && takes(&placed.rule.when);
    let taken = before.iter().any(|cost| takes(&cost.rule.when)) || earlier.iter().any(ends);
    if taken || are_disjoint(&cost.rule.when, &rule.rule.when) {
        return None;
    }
    let is_certain = rule.rule.mode == Mode::Enforce && theirs.iter().all(|matcher| ours.contains(matcher));
    let certainty = if is_certain { Certainty::Always } else { Certainty::Maybe };
    let line = rule.span.line;
    Some((
        certainty,
        format!("a request that costs {units} never fits into the rate {rate} of the rule in line {line}"),
    ))
}

/// Notes costs that ask for a principal where it is several claims.
pub fn refuse_principals(section: &mut Section<'_, '_>, costs: &[PlacedCost]) {
    costs.iter().for_each(|cost| rules::refuse_principal(section, &cost.rule.when, cost.span));
}
