//! The field table: every key of the configuration file, its default, its kind and what it is.

use super::kinds::{DELAY, DURATION, DURATION_OR_OFF, Kind, SWITCH, TEXT, TEXT_OR_TEXTS};
use super::listen::{ADDRESS, Listen, UntrustedNetwork};
use super::node::quoted;
use super::response::{HEADER, REALM};
use super::section::Section;
use super::token::{CLAIMS, PREFIXES, SOURCES};
use super::{Config, LogFormat, LogLevel, LogPrincipal, LogRules, Shutdown};
use crate::answer::{BodyFormat, ResponseRules};
use crate::capability::Prefixes;
use crate::rate::format_duration;
use crate::resolver::{DefaultResolver, MalformedRule, WindowBounds};
use crate::token::{MissingToken, TokenRules};
use std::time::Duration;

const MISSING: Kind<MissingToken> = Kind::Word(&[("deny", MissingToken::Deny), ("allow", MissingToken::Allow)]);

const MALFORMED: Kind<MalformedRule> =
    Kind::Word(&[("ignore_beside_valid", MalformedRule::IgnoreBesideValid), ("keep", MalformedRule::Keep)]);

const BODY: Kind<BodyFormat> = Kind::Word(&[
    ("problem", BodyFormat::Problem),
    ("json", BodyFormat::Json),
    ("text", BodyFormat::Text),
    ("none", BodyFormat::None),
]);

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

/// The whole file.
pub fn document(file: &mut Section<'_, '_>) -> Option<Config> {
    let listen = file.section("listen", "where Tollgate listens", listen);
    let token = file.section("token", "where the identity of a request comes from", token);
    let callers = file.section("callers", "what the rates of a token mean", callers);
    let response = file.section("response", "how answers look", response);
    let shutdown = file.section("shutdown", "how the process stops", shutdown);
    let log = file.section("log", "how the log looks", log);
    let (token, prefixes) = token?;
    let (callers, response, shutdown) = (callers?, response?, shutdown?);
    Some(Config { listen: listen?, token, prefixes, callers, response, shutdown, log: log? })
}

fn listen(listen: &mut Section<'_, '_>) -> Option<Listen> {
    let grpc = listen.field("grpc", "127.0.0.1:10003", &ADDRESS, "the address that Envoy calls");
    let trusted_network =
        listen.field("trusted_network", "false", &SWITCH, "whether whoever can reach a plain-text listener is trusted");
    let max_connection_age = listen.field(
        "max_connection_age",
        "10m",
        &DURATION_OR_OFF,
        "when Envoy is asked to open another connection, so that it finds new instances",
    );
    let (grpc, trusted_network) = (grpc?, trusted_network?);
    let rules = Listen { grpc, trusted_network, max_connection_age: max_connection_age? };
    match rules.check_trust() {
        Ok(()) => Some(rules),
        Err(error) => listen.clash(&["grpc"], error.to_string(), UntrustedNetwork::HINT),
    }
}

fn token(token: &mut Section<'_, '_>) -> Option<(TokenRules, Prefixes)> {
    let source = token.field("source", "[metadata]", &SOURCES, "where a token is looked for, in order");
    let metadata = token.section("metadata", "what Envoy's jwt_authn filter is told to write", metadata);
    let principal = token.field("principal", "sub", &CLAIMS, "the claim, or the claims, that name the caller");
    let capabilities = token.field("capabilities", "[capabilities]", &CLAIMS, "the claims that hold capabilities");
    let prefixes = token.required(
        "prefixes",
        "[\"prefix:rate:\"]",
        &PREFIXES,
        "what rate capabilities start with; the first that fits counts",
    );
    let missing = token.field("missing", "deny", &MISSING, "what a request without a token may do");
    source?;
    let Metadata { namespace, payload, failure } = metadata?;
    let (principal, capabilities, missing) = (principal?, capabilities?, missing?);
    Some((TokenRules { namespace, payload, failure, principal, capabilities, missing }, prefixes?))
}

struct Metadata {
    namespace: String,
    payload: Vec<String>,
    failure: String,
}

fn metadata(metadata: &mut Section<'_, '_>) -> Option<Metadata> {
    let namespace = metadata.field(
        "namespace",
        "envoy.filters.http.jwt_authn",
        &TEXT,
        "the metadata namespace of Envoy's jwt_authn filter",
    );
    let payload = metadata.field(
        "payload",
        "[payload, jwt_payload]",
        &TEXT_OR_TEXTS,
        "the payload_in_metadata of the jwt_authn provider",
    );
    let failure =
        metadata.field("failure", "jwt_failure", &TEXT, "the failed_status_in_metadata of the jwt_authn provider");
    let (namespace, payload, failure) = (namespace?, payload?, failure?);
    if payload.contains(&failure) {
        let cause = format!("{} is the key of the payload and of the failure", quoted(&failure));
        let hint = "give each its own key, or a failed token would be read as claims";
        return metadata.clash(&["failure", "payload"], cause, hint);
    }
    Some(Metadata { namespace, payload, failure })
}

fn callers(callers: &mut Section<'_, '_>) -> Option<DefaultResolver> {
    let window_bounds = callers.section_or(
        "window_bounds",
        ("off", WindowBounds::OFF),
        "the windows that a token's rate may have; others are rescaled",
        window_bounds,
    );
    let malformed = callers.field(
        "malformed",
        "ignore_beside_valid",
        &MALFORMED,
        "what a malformed capability means beside a valid one",
    );
    Some(DefaultResolver::default().with_window_bounds(window_bounds?).with_malformed(malformed?))
}

fn window_bounds(bounds: &mut Section<'_, '_>) -> Option<WindowBounds> {
    let min = bounds.field("min", "1m", &DURATION, "the shortest window that a token's rate may have");
    let max = bounds.field("max", "24h", &DURATION, "the longest window that a token's rate may have");
    let (min, max) = (min?, max?);
    WindowBounds::within(min, max).map_or_else(
        |_| {
            let cause =
                format!("the shortest window, {}, is longer than the longest, {}", duration(min), duration(max));
            bounds.clash(&["min", "max"], cause, "write a `min` that is at most `max`")
        },
        Some,
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
    let cause = format!("the delay, {}, leaves nothing of the timeout, {}", duration(delay), duration(timeout));
    shutdown.clash(&["delay", "timeout"], cause, "write a `delay` that is shorter than `timeout`")
}

fn duration(duration: Duration) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail; what was read from a duration text has no more nanoseconds.
    let _ = format_duration(&mut text, u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    text
}

fn response(response: &mut Section<'_, '_>) -> Option<ResponseRules> {
    let header = response.field(
        "warning_header",
        "X-Webpa-Capability-Warning",
        &HEADER,
        "the header that tells a caller of its malformed capabilities",
    );
    let warnings =
        response.field("warnings", "true", &SWITCH, "whether a caller is told of its malformed capabilities");
    let body = response.field("body", "problem", &BODY, "the form of a refusal's body");
    let realm = response.field("realm", "tollgate", &REALM, "the realm of a Bearer challenge");
    let (header, warnings) = (header?, warnings?);
    Some(ResponseRules { warning_header: warnings.then_some(header), body: body?, realm: realm? })
}

fn log(log: &mut Section<'_, '_>) -> Option<LogRules> {
    let format = log.field("format", "json", &FORMAT, "the form of a log line");
    let level = log.field("level", "info", &LEVEL, "the lowest level that is written");
    let principal = log.field("principal", "plain", &PRINCIPAL, "how principals are written");
    Some(LogRules { format: format?, level: level?, principal: principal? })
}
