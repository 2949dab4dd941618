//! The field table: every key of the configuration file, its default, its kind and what it is.

use super::costs::{self, cost_rule};
use super::kinds::{DELAY, DURATION, DURATION_OR_OFF, Kind, SWITCH, TEXT, TEXT_OR_TEXTS};
use super::listen::{ADDRESS, Listen, UntrustedNetwork};
use super::matchers::when;
use super::node::quoted;
use super::reach::needs_token;
use super::response::{HEADER, METADATA_KEY, REALM};
use super::rules::{self, Placed, caller_rule};
use super::section::Section;
use super::token::{CLAIMS, PREFIXES, SOURCES};
use super::{Config, LogFormat, LogLevel, LogPrincipal, LogRules, Shutdown};
use crate::answer::{BodyFormat, DecisionMetadata, ResponseRules};
use crate::capability::Prefixes;
use crate::path::EncodedSlash;
use crate::policy::callers::CallerRules;
use crate::policy::costs::Costs;
use crate::policy::counts::Counts;
use crate::policy::{ClientAddress, ClientRules, MissingClient, MissingToken, Mode, Policy};
use crate::rate::format_duration;
use crate::resolver::{DefaultResolver, MalformedRule, WindowBounds};
use crate::token::TokenRules;
use std::sync::Arc;
use std::time::Duration;

const MISSING: Kind<MissingToken> = Kind::Word(&[("deny", MissingToken::Deny), ("allow", MissingToken::Allow)]);

/// Whether preflights are skipped.
const PREFLIGHT: Kind<bool> = Kind::Word(&[("skip", true), ("check", false)]);

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

pub const MODE: Kind<Mode> = Kind::Word(&[("enforce", Mode::Enforce), ("observe", Mode::Observe)]);

const METADATA: Kind<DecisionMetadata> = Kind::Word(&[
    ("refused", DecisionMetadata::Refused),
    ("all", DecisionMetadata::All),
    ("off", DecisionMetadata::Off),
]);

const ENCODED_SLASH: Kind<EncodedSlash> =
    Kind::Word(&[("refuse", EncodedSlash::Refuse), ("literal", EncodedSlash::Literal)]);

const ON_MISSING: Kind<MissingClient> = Kind::Word(&[("refuse", MissingClient::Refuse), ("peer", MissingClient::Peer)]);

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
    let client = file.section("client", "where the address of a client is read", client);
    let response = file.section("response", "how answers look", response);
    let paths = file.section("paths", "what paths are matched", paths);
    let shutdown = file.section("shutdown", "how the process stops", shutdown);
    let log = file.section("log", "how the log looks", log);
    if let (Some(token), Some(callers)) = (&token, &callers) {
        rules::check_reach(file, &callers.rules, token.missing == MissingToken::Deny);
    }
    if let (Some(costs), Some(callers)) = (&costs, &callers) {
        costs::check(file, costs, &callers.rules);
    }
    let (token, callers, mode, paths) = (token?, callers?, mode?, paths?);
    let policy = Policy {
        mode,
        missing: token.missing,
        skips_preflights: token.skips_preflights,
        callers: Arc::new(CallerRules::new(
            callers.base,
            callers.rules.into_iter().map(|placed| placed.rule).collect(),
        )),
        costs: Costs::new(costs?.into_iter().map(|placed| placed.rule).collect()),
        client: client?,
        encoded_slash: paths,
        counts: Counts::default(),
    };
    let response = response?.in_mode(mode);
    let (listen, shutdown, log) = (listen?, shutdown?, log?);
    Some(Config {
        listen,
        token: token.rules,
        prefixes: token.prefixes,
        policy,
        response,
        shutdown,
        log,
        warnings: None,
    })
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

struct Token {
    rules: TokenRules,
    prefixes: Prefixes,
    missing: MissingToken,
    skips_preflights: bool,
}

fn token(token: &mut Section<'_, '_>) -> Option<Token> {
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
    let missing = token.section_or(
        "missing",
        "deny",
        &MISSING,
        "what a request without a token may do: deny is a 401, the default",
        allow_when,
    );
    let preflight = token.field(
        "preflight",
        "skip",
        &PREFLIGHT,
        "skip: a browser's preflight (OPTIONS, Origin, Access-Control-Request-Method) is let through; check: it is a request",
    );
    source?;
    let Metadata { namespace, payload, failure } = metadata?;
    let (principal, capabilities, missing, preflight) = (principal?, capabilities?, missing?, preflight?);
    let rules = TokenRules { namespace, payload, failure, principal, capabilities };
    Some(Token {
        rules,
        prefixes: prefixes?,
        missing: missing.unwrap_or(MissingToken::Deny),
        skips_preflights: preflight,
    })
}

fn allow_when(missing: &mut Section<'_, '_>) -> Option<MissingToken> {
    let when = missing.shared("allow_when", "matchers", "the requests that need no token", when)?;
    let hint = "write `deny`, `allow`, or `allow_when:` and matchers below it";
    let Some(when) = when else { return missing.clash(&[], "`token.missing` says nothing".into(), hint) };
    match when.0.iter().find_map(needs_token) {
        Some(asks) => {
            let cause = format!("a request without a token never has {asks}");
            missing.clash(&["allow_when"], cause, "ask for what it has: a path, a method, a host, a client, a header")
        }
        None => Some(MissingToken::AllowWhen(when)),
    }
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

struct Callers {
    base: DefaultResolver,
    rules: Vec<Placed>,
}

fn callers(callers: &mut Section<'_, '_>) -> Option<Callers> {
    let window_bounds = callers.section_or(
        "window_bounds",
        "off",
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
    let base = DefaultResolver::default().with_window_bounds(window_bounds?.unwrap_or_default());
    Some(Callers { base: base.with_malformed(malformed?), rules: rules? })
}

const OFF: Kind<WindowBounds> = Kind::Word(&[("off", WindowBounds::OFF)]);

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

fn client(client: &mut Section<'_, '_>) -> Option<ClientRules> {
    let address = client.section_or("address", "peer", &PEER, "where the address of a client stands", rpc_metadata);
    let on_missing = client.field(
        "on_missing",
        "refuse",
        &ON_MISSING,
        "where a rule asks for the address and it is missing or unreadable: refuse with 503, or take the peer",
    );
    let address = address?.unwrap_or_else(|| ClientAddress::RpcMetadata("x-client-ip".into()));
    Some(ClientRules { address, on_missing: on_missing? })
}

const PEER: Kind<ClientAddress> = Kind::Word(&[("peer", ClientAddress::Peer)]);

fn rpc_metadata(address: &mut Section<'_, '_>) -> Option<ClientAddress> {
    let key = "rpc_metadata";
    let about = "the key of the gRPC metadata in which Envoy sends it";
    address.field(key, "x-client-ip", &METADATA_KEY, about).map(ClientAddress::RpcMetadata)
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
    let decision_metadata = response.field(
        "decision_metadata",
        "refused",
        &METADATA,
        "the decisions that Envoy is told of as dynamic metadata, for its access log",
    );
    let (header, warnings, decision_metadata) = (header?, warnings?, decision_metadata?);
    Some(ResponseRules { warning_header: warnings.then_some(header), body: body?, realm: realm?, decision_metadata })
}

fn log(log: &mut Section<'_, '_>) -> Option<LogRules> {
    let format = log.field("format", "json", &FORMAT, "the form of a log line");
    let level = log.field("level", "info", &LEVEL, "the lowest level that is written");
    let principal = log.field("principal", "plain", &PRINCIPAL, "how principals are written");
    Some(LogRules { format: format?, level: level?, principal: principal? })
}
