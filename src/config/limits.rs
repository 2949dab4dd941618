//! Reads the limits: rates on keys of the deployment's choice.

use super::keys::KEY;
use super::kinds::{Kind, RATE, SWITCH, UNITS, duration_text};
use super::matchers::when;
use super::node::{Span, quoted};
use super::outcomes::OUTCOMES;
use super::section::Section;
use super::sense::{exact, may_pass};
use super::table::MODE;
use super::value::Value;
use crate::policy::facts::Field;
use crate::policy::limits::{ChargeAt, Limit};
use crate::policy::scope::Scope;
use crate::policy::when::{Matcher, Wanted, When};
use crate::rate::Rate;
use crate::store::limit::WhenFull;
use std::time::Duration;

/// A limit, where it stands, and whether it is built.
pub struct PlacedLimit {
    pub limit: Limit,
    pub span: Span,
    pub name_span: Span,
    pub is_enabled: bool,
}

pub const NAME: Kind<String> =
    Kind::Is("a name", r#"{"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,63}$"}"#, name);

pub const WINDOW: Kind<bool> = Kind::Word(&[("rolling", false), ("fixed", true)]);

const WHEN_FULL: Kind<WhenFull> =
    Kind::Word(&[("overflow", WhenFull::Overflow), ("evict", WhenFull::Evict), ("refuse", WhenFull::Refuse)]);

const CHARGE: Kind<ChargeAt> = Kind::Word(&[("entry", ChargeAt::Entry), ("admitted", ChargeAt::Admitted)]);

pub const POSITIVE: Kind<u64> =
    Kind::Is("a whole number, at least 1", r#"{"type": "integer", "minimum": 1}"#, |value| {
        match UNITS.read(value)? {
            0 => value.wrong("write at least 1"),
            units => Some(units),
        }
    });

/// Names that answers and logs use for other things.
const TAKEN: [&str; 4] = ["callers", "client", "host", "paths"];

/// The largest burst, and the most keys of a limit.
const LARGEST_BURST: u64 = 1_000_000;
pub const MOST_KEYS: u64 = 100_000_000;

pub const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn name(value: &mut Value<'_, '_>) -> Option<String> {
    let text = value.text()?;
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    if TAKEN.contains(&text) {
        let cause = format!("the name {} means something else in answers and logs", quoted(text));
        return value.reject(&cause, &format!("write another name, such as `per-{text}`"));
    }
    let is_name = |text: &str| {
        text.bytes().all(is_part) && text.len() <= 64 && text.starts_with(|first: char| first.is_ascii_alphanumeric())
    };
    let lower = text.to_ascii_lowercase().replace([' ', '.'], "-");
    match is_name(text) {
        true => Some(text.into()),
        false if is_name(&lower) => value.wrong(&format!("write `{lower}`: lower-case letters, digits, `-` and `_`")),
        false => value.wrong("write lower-case letters, digits, `-` and `_`, at most 64, such as `per-network`"),
    }
}

/// One limit.
pub fn limit(limit: &mut Section<'_, '_>) -> Option<PlacedLimit> {
    let name = limit.required("name", "network", &NAME, "what its state, logs and answers call it");
    let when = limit.shared("when", "matchers", "the requests that it is for; without it, all", when);
    let key = limit.required("key", "client.network", &KEY, "what it counts by; `[]` is one allowance for everybody");
    let rate = limit.required("rate", "10/1s", &RATE, "the rate");
    let burst = limit.optional("burst", "100", &POSITIVE, "units that it permits at once; the rate's count by default");
    let is_fixed =
        limit.field("window", "rolling", &WINDOW, "fixed: all units come back at once, at times of the calendar (UTC)");
    let charge = limit.section_or(
        "charge",
        "admitted",
        &CHARGE,
        "entry: before identity is looked at, and kept; admitted: with the caller's rates, all or none",
        charged,
    );
    let cost = limit.optional("cost", "1", &UNITS, "units that a request takes here; what `costs` say by default");
    let max_keys = limit.field("max_keys", "100000", &POSITIVE, "keys that it holds");
    let when_full = limit.field("when_full", "overflow", &WHEN_FULL, "what a new key gets where it holds so many: an allowance shared with its wider network, the place of the key seen least recently, which is forgiven, or a 429");
    let advertise = limit.field("advertise", "false", &SWITCH, "whether clients may be told of it");
    let is_enabled = limit.field("enabled", "true", &SWITCH, "false: it is checked, and not built");
    let mode =
        limit.field("mode", "enforce", &MODE, "observe: it refuses nobody, and what it would refuse is reported");
    if !limit.is_clean() {
        return None;
    }
    let (rate, burst, is_fixed, max_keys, cost) = (rate?, burst?, is_fixed?, max_keys?, cost?);
    check_bounds(limit, rate, burst, is_fixed, max_keys)?;
    let (most, charge) = (burst.unwrap_or(rate.count()), charge?);
    check_cost(limit, cost, &charge, most)?;
    let read = Limit {
        name: name?.into(),
        scope: Scope { when: when?.unwrap_or_default(), key: key? },
        rate,
        burst: most,
        is_fixed,
        charge,
        max_keys: usize::try_from(max_keys).unwrap_or(usize::MAX),
        when_full: when_full?,
        advertise: advertise?,
        cost,
        mode: mode?,
    };
    let name_span = limit.find_known("name").map_or(limit.span(), |(_, node)| node.span);
    Some(PlacedLimit { limit: read, span: limit.span(), name_span, is_enabled: is_enabled? })
}

fn charged(charge: &mut Section<'_, '_>) -> Option<ChargeAt> {
    let about = "units taken at entry; the rest of the cost with the caller's rates";
    let entry = charge.optional("entry", "1", &POSITIVE, about);
    let about = "outcomes that are charged: looked at with the caller's rates, spent once the request ended so";
    let outcome = charge.optional("outcome", "[201]", &OUTCOMES, about);
    if !charge.is_clean() {
        return None;
    }
    match (entry?, outcome?) {
        (Some(units), None) => Some(ChargeAt::Split(units)),
        (None, Some(outcomes)) => Some(ChargeAt::Outcome(outcomes.into())),
        (None, None) => charge.clash(
            &[],
            format!("`{}` says nothing", charge.path()),
            "write `{ entry: 1 }` or `{ outcome: [201] }`",
        ),
        (Some(_), Some(_)) => {
            let cause = "a limit is charged at entry or by outcomes, not both".to_owned();
            charge.clash(&["outcome"], cause, "remove one of the two, or write two limits")
        }
    }
}

fn check_bounds(
    limit: &mut Section<'_, '_>,
    rate: Rate,
    burst: Option<u64>,
    is_fixed: bool,
    max_keys: u64,
) -> Option<()> {
    let window = rate.window();
    check_window(limit, "rate", window, is_fixed)?;
    if !is_fixed && u128::from(rate.count()) > window.as_nanos() {
        let cause = format!("more than one unit a nanosecond is no limit: {rate}");
        return limit.clash(&["rate"], cause, "write a lower count, or a longer window");
    }
    if is_fixed && burst.is_some() {
        return limit.clash(
            &["burst"],
            "a fixed window has no burst: it permits its count at once".into(),
            "remove `burst`",
        );
    }
    let most = burst.unwrap_or(rate.count());
    if !is_fixed && most > LARGEST_BURST {
        let cause = match burst {
            Some(_) => format!("a burst is at most {LARGEST_BURST}, and this is {most}"),
            None => format!("a limit permits its count at once, at most {LARGEST_BURST}, and this is {most}"),
        };
        let hint = match burst {
            Some(_) => "write a lower `burst`; the rate may keep its count",
            None => "add a lower `burst`; the rate may keep its count",
        };
        return limit.clash(&["burst", "rate"], cause, hint);
    }
    if max_keys > MOST_KEYS {
        let cause = format!("a limit holds at most {MOST_KEYS} keys, and this is {max_keys}");
        return limit.clash(&["max_keys"], cause, "write fewer: each key that has spent something takes memory");
    }
    Some(())
}

/// Whether a window, which the field `key` gives, is within bounds.
pub fn check_window(section: &mut Section<'_, '_>, key: &str, window: Duration, is_fixed: bool) -> Option<()> {
    let length = duration_text(window);
    if window < Duration::from_millis(1) || window > 366 * DAY {
        let cause = format!("a window is from 1ms to 366 days, and this is {length}");
        return section.clash(&[key], cause, "write a window within these bounds, such as 1s, 1h or 24h");
    }
    if is_fixed && window < Duration::from_secs(1) {
        let cause = format!("a fixed window is at least 1s, and this is {length}");
        return section.clash(&[key], cause, "write a longer window, or a rolling one");
    }
    let divides_a_day = DAY.as_nanos().is_multiple_of(window.as_nanos());
    let is_days = window <= 7 * DAY && window.as_nanos().is_multiple_of(DAY.as_nanos());
    if is_fixed && !divides_a_day && !is_days {
        let cause = format!("a fixed window divides a day or is whole days up to a week, and {length} is neither");
        let hint = "write a window such as 1m, 15m, 1h, 6h, 24h or 168h, or a rolling one";
        return section.clash(&[key], cause, hint);
    }
    Some(())
}

/// `most`: the units that it permits at once.
fn check_cost(limit: &mut Section<'_, '_>, cost: Option<u64>, charge: &ChargeAt, most: u64) -> Option<()> {
    if cost == Some(0) {
        return limit.clash(
            &["cost"],
            "a limit on which requests cost nothing refuses nobody".into(),
            "write at least 1",
        );
    }
    if cost.is_some_and(|cost| cost > most) {
        let cause = format!("a request that costs so much never fits, since the limit holds {most}");
        return limit.clash(&["cost"], cause, "write a lower cost, or a higher rate or burst");
    }
    if matches!(charge, ChargeAt::Split(units) if *units > most || cost.is_some_and(|cost| *units >= cost)) {
        let cause = "so many units at entry leave nothing for later, or never fit".to_owned();
        return limit.clash(&["charge"], cause, "write fewer units, or `charge: entry`");
    }
    Some(())
}

/// Warns of limits that no request can reach: those that charge after identity, for requests that identity stops.
/// `without_token`: requests without a token get there. Preflights may, so one that asks for these is left alone.
pub fn warn_of_unreachable(section: &mut Section<'_, '_>, limits: &[PlacedLimit], without_token: bool) {
    let asks_for_preflights = |when: &When| {
        let is_options = |wanted: &Wanted| exact(wanted) == Some(b"OPTIONS");
        when.0.iter().any(|matcher| matches!(matcher, Matcher::Is(Field::Method, of) if of.iter().any(is_options)))
    };
    let is_built = |placed: &&PlacedLimit| placed.is_enabled && placed.limit.is_after_identity();
    for PlacedLimit { limit, span, .. } in limits.iter().filter(is_built) {
        let when = &limit.scope.when;
        if !may_pass(when, without_token) && !asks_for_preflights(when) {
            let cause = "no request can reach this limit: those that it is for are refused for their token before";
            section.warn(*span, cause.into(), "write `charge: entry`, which comes before identity");
        }
    }
}
