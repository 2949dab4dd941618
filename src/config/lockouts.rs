//! Reads the lockouts: strikes on keys of the deployment's choice.

use super::keys::KEY;
use super::kinds::{DURATION, Kind, SWITCH, word};
use super::limits::{MOST_KEYS, NAME, POSITIVE, WINDOW, check_window};
use super::matchers::when;
use super::node::{Span, Tree};
use super::outcomes::OUTCOMES;
use super::section::Section;
use super::sense::{are_disjoint, may_meet, may_pass};
use super::table::MODE;
use crate::policy::Mode;
use crate::policy::facts::{Field, Presence};
use crate::policy::limits::{ChargeAt, Limit};
use crate::policy::lockouts::{Lockout, Trigger};
use crate::policy::outcomes::OutcomeRules;
use crate::policy::scope::{Scope, Source};
use crate::token::Failure;

/// A lockout, where it stands, and whether it is built.
pub struct PlacedLockout {
    pub lockout: Lockout,
    pub span: Span,
    pub name_span: Span,
    pub is_enabled: bool,
}

/// What counts as an attempt, in one word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    Request,
    FailedToken,
}

const ON: Kind<On> = Kind::Word(&[("request", On::Request), ("failed_token", On::FailedToken)]);

const COUNT: Kind<bool> = Kind::Word(&[("attempt", false), ("outcome", true)]);

const FAILURES: Kind<Vec<Failure>> = Kind::Is(
    "a list of failures",
    r#"{"type": "array", "minItems": 1, "items": {"enum": ["not_yet_valid", "expired", "malformed", "issuer", "audience",
        "signature", "unknown_key", "key_set", "unknown"]}}"#,
    |value| value.list(|failure| word(failure, &Failure::ALL.map(|failure| (failure.as_str(), failure)))),
);

/// The highest threshold.
const MOST_STRIKES: u64 = 1_000_000;

/// One lockout.
pub fn lockout(lockout: &mut Section<'_, '_>) -> Option<PlacedLockout> {
    let name = lockout.required("name", "login", &NAME, "what its state and logs call it");
    let on = lockout.field(
        "on",
        "request",
        &ON,
        "request: each request that nothing else refuses is an attempt; failed_token: each token that fails is",
    );
    let failures = lockout.field(
        "failures",
        "[not_yet_valid, expired, malformed, issuer, audience, signature, unknown_key, unknown]",
        &FAILURES,
        "the failures of a token that count; key_set is one of Envoy's own",
    );
    let when = lockout.shared("when", "matchers", "the requests that it is for; without it, all", when);
    let key = lockout.required("key", "client.network", &KEY, "what it counts by; `[]` counts all together");
    let threshold = lockout.required("threshold", "5", &POSITIVE, "the attempt that locks its key");
    let window = lockout.required(
        "window",
        "15m",
        &DURATION,
        "how long a key stays locked, and how long after its last attempt it starts from zero",
    );
    let is_fixed = lockout.field(
        "window_kind",
        "rolling",
        &WINDOW,
        "fixed: windows of the calendar (UTC), at whose end every key starts from zero",
    );
    let max_keys = lockout.field("max_keys", "100000", &POSITIVE, "keys that are known; a new one takes the place of the one used least recently that is not locked, and is refused where all are");
    let is_provisional = lockout.field(
        "count",
        "attempt",
        &COUNT,
        "attempt: each counts unless its outcome says otherwise; outcome: each counts only if its outcome says so",
    );
    let outcome = lockout.section("outcome", "what becomes of an attempt, by how its request ends", outcome);
    let is_enabled = lockout.field("enabled", "true", &SWITCH, "false: it is checked, and not built");
    let mode =
        lockout.field("mode", "enforce", &MODE, "observe: it refuses nobody, and what it would refuse is reported");
    if !lockout.is_clean() {
        return None;
    }
    let (on, failures, is_fixed, is_provisional) = (on?, failures?, is_fixed?, is_provisional?);
    let (threshold, window, max_keys, outcome) = (threshold?, window?, max_keys?, outcome?);
    check_window(lockout, "window", window, is_fixed)?;
    check_numbers(lockout, threshold, max_keys)?;
    check_trigger(lockout, on)?;
    if on == On::Request {
        check_outcomes(lockout, &outcome, is_provisional)?;
    }
    let read = Lockout {
        name: name?.into(),
        scope: Scope { when: when?.unwrap_or_default(), key: key? },
        on: if on == On::Request { Trigger::Request } else { Trigger::FailedToken(failures) },
        threshold: u32::try_from(threshold).unwrap_or(u32::MAX),
        window,
        is_fixed,
        max_keys: usize::try_from(max_keys).unwrap_or(usize::MAX),
        is_provisional,
        outcome,
        mode: mode?,
    };
    let name_span = lockout.find_known("name").map_or(lockout.span(), |(_, node)| node.span);
    Some(PlacedLockout { lockout: read, span: lockout.span(), name_span, is_enabled: is_enabled? })
}

fn outcome(outcome: &mut Section<'_, '_>) -> Option<OutcomeRules> {
    let mut read =
        |key, example, about| outcome.optional(key, example, &OUTCOMES, about).map(Option::unwrap_or_default);
    let count = read("count", "[401]", "what stays counted");
    let cancel = read("cancel", "[\"5xx\"]", "what is taken back; a lockout is lifted by the attempt that engaged it");
    let reset = read("reset", "[\"2xx\"]", "what makes all attempts of the key forgotten, its lockout included");
    let rules = OutcomeRules { count: count?, cancel: cancel?, reset: reset? };
    let lists = [("count", &rules.count), ("cancel", &rules.cancel), ("reset", &rules.reset)];
    for (at, (key, list)) in lists.iter().enumerate() {
        let before = |one| lists[..at].iter().find(|(_, list)| list.iter().any(|other| other.covers(one)));
        if let Some((first, _)) = list.iter().find_map(before) {
            let cause = format!("an outcome of this list never comes to it, since `{first}` has it and goes first");
            return outcome.clash(&[key], cause, "keep it in one of them");
        }
    }
    Some(rules)
}

fn check_numbers(lockout: &mut Section<'_, '_>, threshold: u64, max_keys: u64) -> Option<()> {
    if threshold > MOST_STRIKES {
        let cause = format!("a threshold is at most {MOST_STRIKES}, and this is {threshold}");
        return lockout.clash(&["threshold"], cause, "write a lower one; for high rates there are limits");
    }
    if max_keys > MOST_KEYS {
        let cause = format!("a lockout knows at most {MOST_KEYS} keys, and this is {max_keys}");
        return lockout.clash(&["max_keys"], cause, "write fewer: each key takes about 180 bytes");
    }
    Some(())
}

/// Notes what is said of outcomes where none is waited for, and of failures where none is counted.
fn check_trigger(lockout: &mut Section<'_, '_>, on: On) -> Option<()> {
    match on {
        On::Request if lockout.has("failures") => {
            let cause = "`failures` is about tokens, and this lockout counts requests".to_owned();
            lockout.clash(&["failures"], cause, "remove it, or write `on: failed_token`")
        }
        On::FailedToken if lockout.has("outcome") || lockout.has("count") => {
            let cause = "a failed token is refused here, so that no outcome is waited for".to_owned();
            lockout.clash(&["outcome", "count"], cause, "remove it, or write `on: request`")
        }
        _ => Some(()),
    }
}

fn check_outcomes(lockout: &mut Section<'_, '_>, outcome: &OutcomeRules, is_provisional: bool) -> Option<()> {
    match (is_provisional, outcome) {
        (true, OutcomeRules { count, .. }) if count.is_empty() => {
            let cause = "no outcome counts, so this lockout would never lock anything".to_owned();
            lockout.clash(&["count"], cause, "add `outcome: { count: [401] }` with the outcomes that count")
        }
        (false, _) if lockout.find_known("outcome").is_some_and(|(_, node)| is_empty(&node.tree)) => {
            let hint = "write `outcome: { reset: [\"2xx\"] }`, or remove `outcome`";
            lockout.clash(&["outcome"], "no outcome does anything here".to_owned(), hint)
        }
        (false, OutcomeRules { count, cancel, reset })
            if !count.is_empty() && cancel.is_empty() && reset.is_empty() =>
        {
            let cause = "every outcome counts, since none is named that does not".to_owned();
            lockout.clash(&["outcome"], cause, "write `count: outcome`, or remove `outcome`")
        }
        _ => Some(()),
    }
}

fn is_empty(section: &Tree) -> bool {
    match section {
        Tree::Map(entries) => entries.is_empty(),
        tree => matches!(tree, Tree::Null),
    }
}

/// Notes lockouts that nothing can get to. `without_token`: requests without a token get past identity.
pub fn check_reach(section: &mut Section<'_, '_>, lockouts: &[PlacedLockout], without_token: bool) {
    for PlacedLockout { lockout, span, is_enabled, .. } in lockouts {
        let when = &lockout.scope.when;
        match lockout.on {
            Trigger::FailedToken(_) if !may_meet(when, Presence::Failed) => {
                let cause = "no failed token can meet this: only a verified one has a principal and claims".to_owned();
                section.reject::<()>(*span, cause, "ask for what every request has: a path, a client".into());
            }
            Trigger::FailedToken(_) if lockout.scope.key.iter().any(|part| part.first_of.iter().all(is_of_token)) => {
                let cause = "a failed token has no principal and no claims to count by".to_owned();
                section.reject::<()>(*span, cause, "count by `client.network`".into());
            }
            Trigger::Request if *is_enabled && !may_pass(when, without_token) => {
                let cause =
                    "no request can reach this lockout: those that it is for are refused for their token before";
                section.warn(*span, cause.into(), "write `on: failed_token`, or let them in by `token.missing`");
            }
            _ => {}
        }
    }
}

/// Warns of lockouts on accounts with nothing before them that holds a client to something: whoever knows a name could
/// lock its account, and try one password on every name.
pub fn warn_of_accounts(
    section: &mut Section<'_, '_>,
    limits: &[super::limits::PlacedLimit],
    lockouts: &[PlacedLockout],
) {
    let counts_clients = |scope: &Scope| !scope.key.is_empty() && scope.is_for_preflights();
    let is_limited = |scope: &Scope| {
        limits.iter().any(|placed| {
            let Limit { mode, charge, .. } = &placed.limit;
            let holds = placed.is_enabled && *mode == Mode::Enforce && !matches!(charge, ChargeAt::Outcome(_));
            holds && counts_clients(&placed.limit.scope) && !are_disjoint(&placed.limit.scope.when, &scope.when)
        })
    };
    for (at, placed) in lockouts.iter().enumerate().filter(|(_, placed)| placed.is_enabled) {
        let is_on_accounts = placed.lockout.scope.key.iter().any(|part| part.first_of.iter().any(names_an_account));
        let comes_after = lockouts[..at].iter().any(|before| {
            let Lockout { on, mode, scope, .. } = &before.lockout;
            let holds = before.is_enabled && *on == Trigger::Request && *mode == Mode::Enforce;
            holds && counts_clients(scope) && !are_disjoint(&scope.when, &placed.lockout.scope.when)
        });
        if placed.lockout.on == Trigger::Request && is_on_accounts && !is_limited(&placed.lockout.scope) && !comes_after
        {
            let cause = "this lockout counts by account, and nothing holds a client to anything before it: whoever knows a \
                         name can lock it, and one client can try every name";
            let hint = "add a limit or a lockout before it with `key: client.network`";
            section.warn(placed.span, cause.into(), hint);
        }
    }
}

fn is_of_token(source: &Source) -> bool {
    matches!(source, Source::Field(Field::Principal | Field::Claim(_)))
}

fn names_an_account(source: &Source) -> bool {
    match source {
        Source::BodyJson(_) | Source::BodyForm(_) => true,
        Source::Field(field) => matches!(field, Field::Principal | Field::Claim(_) | Field::Header(_)),
        Source::ClientAddress | Source::ClientNetwork => false,
    }
}
