//! Reads the caller rules: one action each, in an order in which every rule can apply.

use super::kinds::{Kind, RATES, TEXT, TRUE};
use super::matchers::when;
use super::node::{Span, Tree};
use super::reach::Reach;
use super::section::Section;
use super::table::MODE;
use crate::policy::Mode;
use crate::policy::callers::{Action, CallerRule};
use crate::policy::facts::Field;
use crate::policy::when::{Matcher, When};
use crate::resolver::{Denial, DenialStatus};

const STATUS: Kind<DenialStatus> =
    Kind::Is("400 or 404", r#"{"enum": [400, 404]}"#, |value| match &value.node().tree {
        Tree::Number(number) if number == "400" => Some(DenialStatus::BadRequest),
        Tree::Number(number) if number == "404" => Some(DenialStatus::NotFound),
        _ => value.wrong("write `400` or `404`, without quotes; for 403, `deny:` and why"),
    });

/// Whether a ceiling spares those who carry no rate.
const SPARES: Kind<bool> = Kind::Word(&[("hold", false), ("leave", true)]);

/// A rule, and where it stands.
pub struct Placed {
    pub rule: CallerRule,
    pub span: Span,
}

/// One caller rule.
pub fn caller_rule(rule: &mut Section<'_, '_>) -> Option<Placed> {
    let when = rule.shared("when", "matchers", "the requests that the rule is for; without it, all", when);
    let actions = actions(rule);
    let mode =
        rule.field("mode", "enforce", &MODE, "observe: the rule refuses nobody, and what it would do is reported");
    if !rule.is_clean() {
        return None;
    }
    let actions: Vec<_> = actions.into_iter().collect::<Option<Vec<_>>>()?.into_iter().flatten().collect();
    let (when, mode) = (when?.unwrap_or_default(), mode?);
    let names: Vec<_> = actions.iter().map(|(name, _)| format!("`{name}`")).collect();
    match <[_; 1]>::try_from(actions) {
        Ok([(name, Action::Unrestricted)]) if mode == Mode::Observe => {
            rule.clash(&["mode"], format!("`{name}` refuses nobody, so there is nothing to observe"), "remove `mode`")
        }
        Ok([(_, action)]) => Some(Placed { rule: CallerRule { when, action, mode }, span: rule.span() }),
        Err(none) if none.is_empty() => {
            let hint = "add one of deny, reject, allow_nothing, override, unrestricted, vouch, require_rate, ceiling";
            rule.reject(rule.span(), "this rule does nothing".into(), hint.into())
        }
        Err(_) => {
            let cause = format!("a rule does one thing, and this one has {}", names.join(" and "));
            rule.reject(rule.span(), cause, "make a rule of each".into())
        }
    }
}

type Found = Option<Option<(&'static str, Action)>>;

fn actions(rule: &mut Section<'_, '_>) -> Vec<Found> {
    let name = rule.path().to_owned();
    let denial = |reason: String| Denial::new(reason).with_rule(name.as_str());
    let deny = rule.optional(
        "deny",
        "account closed",
        &TEXT,
        "403; why goes to the log and never to the caller. Ends the list",
    );
    let reject = rule.optional("reject", "404", &STATUS, "this status. Ends the list");
    let nothing =
        rule.optional("allow_nothing", "true", &TRUE, "the zero rate: 429 without Retry-After. Ends the list");
    let over = rule.optional("override", "[10000/1m]", &RATES, "these rates, whatever the token says. Ends the list");
    let free = rule.optional("unrestricted", "true", &TRUE, "no caller rate at all. Ends the list");
    let vouch = rule.optional("vouch", "[10000/24h]", &RATES, "these rates, for a token that carries none");
    let require =
        rule.optional("require_rate", "true", &TRUE, "403 for a token that carries no rate; a malformed one counts");
    let ceiling = rule.optional_section_or(
        "ceiling",
        "[500/1m]",
        &CEILING,
        "these rates, besides what the token carries",
        ceiling,
    );
    let no_rate = || Action::RequireRate(denial("the token carries no rate".into()));
    vec![
        found("deny", deny, |reason| Action::Deny(denial(reason))),
        found("reject", reject, |status| Action::Deny(denial("rejected by this rule".into()).with_status(status))),
        found("allow_nothing", nothing, |()| Action::AllowNothing),
        found("override", over, Action::Override),
        found("unrestricted", free, |()| Action::Unrestricted),
        found("vouch", vouch, Action::Vouch),
        found("require_rate", require, |()| no_rate()),
        found("ceiling", ceiling, |action| action),
    ]
}

fn found<T>(name: &'static str, value: Option<Option<T>>, action: impl FnOnce(T) -> Action) -> Found {
    value.map(|value| value.map(|value| (name, action(value))))
}

const CEILING: Kind<Action> = Kind::Is("a rate, a list of rates", super::kinds::A_TEXT_OR_TEXTS, |value| {
    RATES.read(value).map(|rates| Action::Ceiling { rates, spares_unrestricted: false })
});

fn ceiling(ceiling: &mut Section<'_, '_>) -> Option<Action> {
    let rates = ceiling.required("rates", "[500/1m]", &RATES, "the rates");
    let spares = ceiling.field("unrestricted", "hold", &SPARES, "leave: those who carry no rate are spared");
    Some(Action::Ceiling { rates: rates?, spares_unrestricted: spares? })
}

/// Notes rules that can never apply. `without_token`: requests without a token get here. Rates that a rule gives by what
/// a request is, not by who makes it, are a warning: they are remembered for the caller, as a token's are.
pub fn check(section: &mut Section<'_, '_>, rules: &[Placed], without_token: bool) {
    let mut reach = Reach::new("rule", without_token);
    for Placed { rule, span } in rules {
        reach.visit(section, &rule.when, *span, rule.action.ends() && rule.mode == Mode::Enforce);
        if !rule.action.rates().is_empty() && rule.when.asks(&is_about_request) {
            let cause = "the rates of this rule go on applying to the caller's other requests".to_owned();
            let hint = "a caller's rates are remembered for twice their window, whichever request brought them: ask for who \
                        the caller is (principal, claims), or expect it";
            section.warn(*span, cause, hint);
        }
    }
}

/// Whether it differs between requests of one caller.
fn is_about_request(matcher: &Matcher) -> bool {
    match matcher.field() {
        Some(field) => !matches!(field, Field::Principal | Field::Claim(_)),
        None => matches!(matcher, Matcher::Client(_)),
    }
}

/// Notes rules that ask for a principal where it is several claims.
pub fn refuse_principals(section: &mut Section<'_, '_>, rules: &[Placed]) {
    rules.iter().for_each(|placed| refuse_principal(section, &placed.rule.when, placed.span));
}

/// Notes a mistake, if `when` asks for a principal.
pub fn refuse_principal(section: &mut Section<'_, '_>, when: &When, span: Span) {
    if when.asks(&|matcher| matcher.field() == Some(&Field::Principal)) {
        let cause = "this asks for the principal, which `token.principal` makes of several claims".to_owned();
        section.reject::<()>(span, cause, "ask for each of these claims: `claim.sub`, `claim.iss`".into());
    }
}
