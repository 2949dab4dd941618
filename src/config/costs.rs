//! Reads what requests cost.

use super::kinds::{Kind, SWITCH, UNITS};
use super::matchers::when;
use super::node::{Span, quoted};
use super::reach::Reach;
use super::response::is_header_name;
use super::rules::{self, Placed};
use super::section::Section;
use super::sense::are_disjoint;
use crate::policy::costs::{Cost, CostRule, CostSource};
use crate::policy::facts::Field;

/// A cost, and where it stands.
pub struct PlacedCost {
    pub rule: CostRule,
    span: Span,
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

/// Notes costs that can never apply, and those that could never fit into a rate of the caller rules. `without_token`:
/// requests without a token get here.
pub fn check(section: &mut Section<'_, '_>, costs: &[PlacedCost], callers: &[Placed], without_token: bool) {
    let mut reach = Reach::new("cost", without_token);
    for PlacedCost { rule, span } in costs {
        reach.visit(section, &rule.when, *span, true);
        let units = match &rule.cost {
            Cost::Constant(units) => *units,
            Cost::From(source) => source.default,
        };
        for placed in callers {
            let small = rules::rates(placed).iter().find(|rate| rate.count() < units);
            if let Some(rate) = small.filter(|_| !are_disjoint(&rule.when, &placed.rule.when)) {
                let line = placed.span.line;
                let cause =
                    format!("a request that costs {units} never fits into the rate {rate} of the rule in line {line}");
                section.reject::<()>(
                    *span,
                    cause,
                    "write a lower cost or a higher count, or keep the two apart by `when`".into(),
                );
                break;
            }
        }
    }
}
