//! Reads outcomes: how requests end.

use super::kinds::Kind;
use super::node::{Tree, quoted};
use super::response::is_header_name;
use super::suggest::suggest;
use super::value::Value;
use crate::policy::outcomes::OutcomeMatcher;

pub const OUTCOMES: Kind<Vec<OutcomeMatcher>> = Kind::Is(
    "an outcome or a list of outcomes",
    r#"{"oneOf": [
        {"type": ["string", "integer"]},
        {"type": "array", "items": {"type": ["string", "integer"]}, "minItems": 1}
    ]}"#,
    |value| value.list_or_one(outcome),
);

/// The gRPC statuses, each at the place of its number.
const GRPC: [&str; 17] = [
    "ok",
    "cancelled",
    "unknown",
    "invalid_argument",
    "deadline_exceeded",
    "not_found",
    "already_exists",
    "permission_denied",
    "resource_exhausted",
    "failed_precondition",
    "aborted",
    "out_of_range",
    "unimplemented",
    "internal",
    "unavailable",
    "data_loss",
    "unauthenticated",
];

const WAYS: &str = "outcomes are a status such as 401, a class such as \"5xx\", aborted, grpc.NAME such as \
                    grpc.unauthenticated, and header.NAME for an answer with that header";

fn outcome(value: &mut Value<'_, '_>) -> Option<OutcomeMatcher> {
    let text = match &value.node().tree {
        Tree::Number(number) | Tree::Text(number) => number.as_str(),
        _ => return value.wrong(WAYS),
    };
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return match text.parse() {
            Ok(status @ (101 | 200..600)) if text.len() == 3 => Some(OutcomeMatcher::Status(status)),
            _ => no_status(value, text),
        };
    }
    match (text, text.strip_suffix("xx"), text.split_once('.')) {
        ("aborted", ..) => Some(OutcomeMatcher::Aborted),
        (_, Some(class @ ("2" | "3" | "4" | "5")), _) => class.parse().ok().map(OutcomeMatcher::Class),
        (_, Some(_), _) => no_status(value, text),
        (_, _, Some(("grpc", name))) => grpc(value, name),
        (_, _, Some(("header", name))) if is_header_name(name) => {
            Some(OutcomeMatcher::Header(name.to_ascii_lowercase().into()))
        }
        _ => value.reject(&format!("{} is no outcome", quoted(text)), WAYS),
    }
}

fn no_status<T>(value: &mut Value<'_, '_>, text: &str) -> Option<T> {
    let cause = format!("{} is no status that ends a request", quoted(text));
    value.reject(&cause, "write 101, one from 200 to 599, or a class: \"2xx\", \"3xx\", \"4xx\" or \"5xx\"")
}

fn grpc(value: &mut Value<'_, '_>, name: &str) -> Option<OutcomeMatcher> {
    if let Some(status) = (0..).zip(GRPC).find_map(|(status, known)| (known == name).then_some(status)) {
        return Some(OutcomeMatcher::Grpc(status));
    }
    let hint = match suggest(&name.to_ascii_lowercase(), GRPC) {
        Some(near) => format!("did you mean `grpc.{near}`?"),
        None => format!("gRPC statuses are {}", GRPC.join(", ")),
    };
    value.reject(&format!("{} is no gRPC status", quoted(name)), &hint)
}
