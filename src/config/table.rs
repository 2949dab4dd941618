//! The field table: every key of the configuration file, its default, its kind and what it is.

use super::callers::callers;
use super::client::client;
use super::costs::{self, cost_rule};
use super::identity::token;
use super::kinds::{DELAY, DURATION, DURATION_OR_OFF, Kind, RATE_OR_OFF, SWITCH, duration_text};
use super::limits::{self, limit};
use super::listen::{ADDRESS, Listen, UntrustedNetwork};
use super::lockouts::{self, lockout};
use super::response::response;
use super::rules;
use super::scopes;
use super::section::Section;
use super::store::store;
use super::{Config, LogFormat, LogLevel, LogPrincipal, LogRules, Shutdown};
use crate::answer::QuotaHeaders;
use crate::path::EncodedSlash;
use crate::policy::callers::CallerRules;
use crate::policy::costs::Costs;
use crate::policy::{MissingToken, Mode, Policy};
use std::sync::Arc;
use std::time::Duration;

const FORMAT: Kind<LogFormat> = Kind::Word(&[("json", LogFormat::Json), ("text", LogFormat::Text)]);

const LEVEL: Kind<LogLevel> = Kind::Word(&[
    ("error", LogLevel::Error),
    ("warn", LogLevel::Warn),
    ("info", LogLevel::Info),
    ("debug", LogLevel::Debug),
    ("trace", LogLevel::Trace),
]);

const PRINCIPAL: Kind<LogPrincipal> =
    Kind::Word(&[("plain", LogPrincipal::Plain), ("hash", LogPrincipal::Hash), ("off", LogPrincipal::Off)]);

pub const MODE: Kind<Mode> = Kind::Word(&[("enforce", Mode::Enforce), ("observe", Mode::Observe)]);

const ENCODED_SLASH: Kind<EncodedSlash> =
    Kind::Word(&[("refuse", EncodedSlash::Refuse), ("literal", EncodedSlash::Literal)]);

/// The longest time that an outcome may be waited for.
const LONGEST_OUTCOME: Duration = Duration::from_secs(60 * 60);

/// The shortest; Envoy tells within milliseconds of the end.
const SHORTEST_OUTCOME: Duration = Duration::from_secs(1);

/// The lowest age at which a connection may be asked to end.
const SHORTEST_AGE: Duration = Duration::from_millis(10);

/// The whole file.
pub fn document(file: &mut Section<'_, '_>) -> Option<Config> {
    let listen = file.section("listen", "where Tollgate listens", listen);
    let mode = file.field(
        "mode",
        "enforce",
        &MODE,
        "observe: decide and report, and let every request through but one of a bad identity",
    );
    let token = file.section("token", "where the identity of a request comes from", token);
    let callers = file.section("callers", "what the rates of a token mean, and rules about callers", callers);
    let costs =
        file.list("costs", "what requests cost; the first that applies counts, and without one it is 1", cost_rule);
    let limits = file.list("limits", "rates on keys of the deployment's choice, in order", limit);
    let lockouts = file.list(
        "lockouts",
        "attempts counted on keys of the deployment's choice, which lock them, in order",
        lockout,
    );
    let outcome_timeout = outcome_timeout(file);
    let client = file.section("client", "where the address of a client is read", client);
    let response = file.section("response", "how answers look", response);
    let store = file.section("store", "where state lives", store);
    let paths = file.section("paths", "what paths are matched", paths);
    let shutdown = file.section("shutdown", "how the process stops", shutdown);
    let log = file.section("log", "how the log looks", log);
    #[cfg(feature = "otlp")]
    let otlp = file.section("traces", "where traces go", traces);
    if paths == Some(EncodedSlash::Refuse) {
        file.notes.mistakes.refuse_encoded_slashes();
    }
    let counting = scopes::rules(&limits.read, &lockouts.read);
    scopes::check_names(file, &counting);
    if client.as_ref().is_some_and(|client| !client.says_where) {
        scopes::warn_of_clients(file, &counting);
    }
    lockouts::warn_of_accounts(file, &limits.read, &lockouts.read);
    if let (Some(token), Some(callers)) = (&token, &callers) {
        let without_token = token.missing != MissingToken::Deny;
        rules::check(file, &callers.rules.read, without_token);
        limits::warn_of_unreachable(file, &limits.read, without_token);
        lockouts::check_reach(file, &lockouts.read, without_token);
        costs::check(file, &costs.read, &callers.rules.read, &limits.read, without_token);
        if token.rules.principal.len() > 1 {
            rules::refuse_principals(file, &callers.rules.read);
            costs::refuse_principals(file, &costs.read);
            scopes::refuse_principals(file, &counting);
        }
    }
    let (token, callers, mode, paths) = (token?, callers?, mode?, paths?);
    let response = response?.in_mode(mode);
    let rules = callers.rules.whole()?.into_iter().map(|placed| placed.rule);
    let policy = Policy {
        mode,
        missing: token.missing,
        skips_preflights: token.skips_preflights,
        callers: Arc::new(CallerRules::new(callers.base?, rules.collect())),
        costs: Costs::new(costs.whole()?.into_iter().map(|placed| placed.rule).collect()),
        client: client?.rules,
        encoded_slash: paths,
        limits: limits.whole()?.into_iter().filter(|placed| placed.is_enabled).map(|placed| placed.limit).collect(),
        lockouts: lockouts
            .whole()?
            .into_iter()
            .filter(|placed| placed.is_enabled)
            .map(|placed| placed.lockout)
            .collect(),
        outcome_timeout: outcome_timeout?,
        tells_quotas: response.quota_headers != QuotaHeaders::Off,
        counts: Arc::default(),
        crowd: Arc::default(),
    };
    let (listen, snapshot, shutdown, log) = (listen?, store?, shutdown?, log?);
    Some(Config {
        listen,
        token: token.rules,
        prefixes: token.prefixes,
        policy,
        response,
        snapshot,
        shutdown,
        log,
        #[cfg(feature = "otlp")]
        otlp: otlp?,
        warnings: None,
    })
}

fn listen(listen: &mut Section<'_, '_>) -> Option<Listen> {
    let grpc = listen.field("grpc", "127.0.0.1:10003", &ADDRESS, "the address that Envoy calls");
    let metrics = listen.optional(
        "metrics",
        "127.0.0.1:10005",
        &ADDRESS,
        "the address of /metrics, /livez and /readyz over HTTP, which name no caller and change nothing",
    );
    let trusted_network =
        listen.field("trusted_network", "false", &SWITCH, "whether whoever can reach a plain-text listener is trusted");
    let max_connection_age = listen.field(
        "max_connection_age",
        "10m",
        &DURATION_OR_OFF,
        "when Envoy is asked to open another connection, so that it finds new instances",
    );
    let (grpc, metrics, trusted_network) = (grpc?, metrics?, trusted_network?);
    let rules = Listen { grpc, metrics, trusted_network, max_connection_age: max_connection_age? };
    if rules.max_connection_age.is_some_and(|age| age < SHORTEST_AGE) {
        let cause = "with so short an age, connections would do nothing but end".to_owned();
        return listen.clash(&["max_connection_age"], cause, "write at least `10ms`; some minutes are usual");
    }
    match rules.check_trust() {
        Ok(()) => Some(rules),
        Err(error) => listen.clash(&["grpc"], error.to_string(), UntrustedNetwork::HINT),
    }
}

fn paths(paths: &mut Section<'_, '_>) -> Option<EncodedSlash> {
    paths.field(
        "encoded_slash",
        "refuse",
        &ENCODED_SLASH,
        "what `%2F` in a path means where a rule asks for paths: a 400, or the three characters",
    )
}

fn shutdown(shutdown: &mut Section<'_, '_>) -> Option<Shutdown> {
    let delay = shutdown.field(
        "delay",
        "5s",
        &DELAY,
        "from SIGTERM, when the health turns NOT_SERVING, until no new connection is taken",
    );
    let timeout = shutdown.field(
        "timeout",
        "30s",
        &DURATION,
        "from the signal until requests in flight are cut off, at the latest",
    );
    let (delay, timeout) = (delay?, timeout?);
    if delay < timeout {
        return Some(Shutdown { delay, timeout });
    }
    let cause =
        format!("the delay, {}, leaves nothing of the timeout, {}", duration_text(delay), duration_text(timeout));
    shutdown.clash(&["delay", "timeout"], cause, "write a `delay` that is shorter than `timeout`")
}

fn log(log: &mut Section<'_, '_>) -> Option<LogRules> {
    let format = log.field("format", "json", &FORMAT, "the form of a log line");
    let level = log.field("level", "info", &LEVEL, "the lowest level that is written");
    let principal = log.field("principal", "plain", &PRINCIPAL, "how principals are written");
    let refusals = log.field(
        "refusals",
        "100/1s",
        &RATE_OR_OFF,
        "lines that a rule may write about what it refuses; the rest are counted. off: all are written",
    );
    Some(LogRules { format: format?, level: level?, principal: principal?, refusals: refusals? })
}

#[cfg(feature = "otlp")]
fn traces(traces: &mut Section<'_, '_>) -> Option<Option<String>> {
    let about = "the collector that takes a span for each Check that Envoy traces, over gRPC in the clear";
    let endpoint = traces.optional("otlp", "http://127.0.0.1:4317", &super::kinds::TEXT, about)?;
    match endpoint {
        Some(endpoint) if !endpoint.starts_with("http://") => traces.clash(
            &["otlp"],
            "a collector is named by its http URL".into(),
            "write `otlp: http://127.0.0.1:4317`",
        ),
        endpoint => Some(endpoint),
    }
}

fn outcome_timeout(file: &mut Section<'_, '_>) -> Option<Duration> {
    let timeout = file.field(
        "outcome_timeout",
        "1m",
        &DURATION,
        "how long the outcome of a request is waited for; one that never comes leaves its attempt counted",
    )?;
    let (cause, hint) = if timeout < SHORTEST_OUTCOME {
        ("no outcome is told in so short a time", "write at least `1s`; a minute is usual")
    } else if timeout > LONGEST_OUTCOME {
        (
            "an hour is the most that an outcome may be waited for",
            "write a shorter time; Envoy tells within milliseconds of the end",
        )
    } else {
        return Some(timeout);
    };
    file.clash(&["outcome_timeout"], cause.to_owned(), hint)
}
