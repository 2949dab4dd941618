//! A line that `replay` reads: a request, and who makes it; or how an earlier one ended.

use crate::claims::{Claim, Claims, DEPTH};
use crate::policy::outcomes::Outcome;
use crate::rate::parse_duration;
use crate::request::Request;
use crate::token::{Caller, FailedToken, Identity, TokenRules};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// One request, as typed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    pub at: At,
    principal: Option<String>,
    capabilities: Option<Vec<String>>,
    claims: Option<Map<String, Value>>,
    token: Option<Token>,
    /// Why a token failed, as a code of Envoy's JWT library.
    code: Option<u32>,
    #[serde(default)]
    method: String,
    #[serde(default)]
    path: String,
    #[serde(default)]
    host: String,
    #[serde(default, deserialize_with = "lower_case_names")]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    client: String,
    #[serde(default)]
    context: BTreeMap<String, String>,
    #[serde(default)]
    body: String,
    /// What the request costs, whatever the policy says.
    pub cost: Option<u64>,
}

/// How the request of an earlier line ended.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ending {
    pub at: At,
    outcome: Status,
    grpc_status: Option<u32>,
    #[serde(default, deserialize_with = "lower_case_names")]
    headers: BTreeMap<String, String>,
    /// The number of that line.
    pub of: u64,
}

/// The status of an answer.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "`outcome` must be an HTTP status, 101 or 200 to 599, or \"aborted\"")]
enum Status {
    #[serde(deserialize_with = "last_status")]
    Answered(u16),
    Aborted(Aborted),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Aborted {
    Aborted,
}

/// A status that a request ends with.
fn last_status<'de, D: Deserializer<'de>>(status: D) -> Result<u16, D::Error> {
    match u16::deserialize(status)? {
        status @ (101 | 200..600) => Ok(status),
        _ => Err(serde::de::Error::custom("no last status")),
    }
}

impl Ending {
    /// Reads a line that is an outcome; `None` if it is a request.
    pub fn parse(line: &[u8]) -> Option<Result<Self, String>> {
        #[derive(Deserialize)]
        struct HasOutcome {
            #[serde(rename = "outcome")]
            _outcome: serde::de::IgnoredAny,
        }
        serde_json::from_slice::<HasOutcome>(line).ok().map(|_| read(line))
    }

    /// The outcome.
    pub fn outcome(&self) -> Outcome<'_> {
        let status = match self.outcome {
            Status::Answered(status) => status,
            Status::Aborted(Aborted::Aborted) => 0,
        };
        let headers = self.headers.keys().map(String::as_str).collect();
        Outcome { status, grpc_status: self.grpc_status, headers }
    }
}

/// Reads a line.
fn read<'de, T: Deserialize<'de>>(line: &'de [u8]) -> Result<T, String> {
    // The line's own number is said elsewhere; to the parser every line is line 1.
    serde_json::from_slice(line).map_err(|error| error.to_string().replace(" at line 1 column ", " at column "))
}

/// The time since the start.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "`at` must be a duration text or a number of nanoseconds")]
pub enum At {
    Nanos(u64),
    Duration(String),
}

/// A token that gives no identity.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Token {
    Missing,
    Failed,
}

impl At {
    /// The time in nanoseconds.
    pub fn nanos(&self) -> Result<u64, String> {
        match self {
            Self::Nanos(nanos) if i64::try_from(*nanos).is_ok() => Ok(*nanos),
            Self::Nanos(nanos) => Err(format!("`at` is {nanos} ns; the last moment is 2^63-1 ns")),
            Self::Duration(text) => parse_duration(text.as_bytes())
                .ok_or_else(|| format!("`at` is {text:?}, which is no duration such as 1m30s, 1.5h or 100ms")),
        }
    }
}

impl Line {
    /// Reads a line, which is a JSON object.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        if !line.trim_ascii_start().starts_with(b"{") {
            return Err("want a JSON object".to_owned());
        }
        read(line)
    }

    /// The facts of the request. Claims stand where `token` looks for them.
    pub fn request<'r>(&'r self, token: &'r TokenRules) -> Request<'r> {
        let key = token.payload.first().map_or("", String::as_str);
        let namespace = |claims| [(key, Claim::Object(object(claims, DEPTH)))].into_iter().collect();
        let metadata = self.claims.as_ref().map(|claims| (&*token.namespace, Claim::Object(namespace(claims))));
        Request {
            method: self.method.as_bytes(),
            path: self.path.as_bytes(),
            host: self.host.as_bytes(),
            headers: pairs(&self.headers),
            peer: self.client.as_bytes(),
            client: self.client.as_bytes(),
            context: pairs(&self.context),
            body: self.body.as_bytes(),
            metadata: metadata.into_iter().collect(),
        }
    }

    /// Who makes the request, where the line says so itself; `None` if its claims do.
    pub fn given_identity(&self) -> Result<Option<Identity<'_>>, String> {
        match (&self.principal, &self.capabilities, &self.claims, self.token) {
            (.., token) if self.code.is_some() && !matches!(token, Some(Token::Failed)) => {
                Err("`code` says why a token failed: it goes with `token`: \"failed\"".to_owned())
            }
            (Some(principal), capabilities, None, None) => Ok(Some(Identity::Caller(Caller {
                principal: principal.into(),
                capabilities: capabilities.iter().flatten().map(String::as_str).collect(),
                claims: None,
            }))),
            (None, None, Some(_), None) => Ok(None),
            (None, None, None, Some(Token::Missing)) => Ok(Some(Identity::Missing)),
            (None, None, None, Some(Token::Failed)) => {
                Ok(Some(Identity::Failed(FailedToken { code: self.code, message: "failed, as the line says" })))
            }
            _ => Err("want one of: `principal` (with `capabilities`), `claims`, `token`".to_owned()),
        }
    }
}

/// Envoy sends header names in lower case, and so they are looked for.
fn lower_case_names<'de, D: Deserializer<'de>>(headers: D) -> Result<BTreeMap<String, String>, D::Error> {
    let headers = BTreeMap::<String, String>::deserialize(headers)?;
    Ok(headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect())
}

fn pairs(map: &BTreeMap<String, String>) -> Vec<(&[u8], &[u8])> {
    map.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
}

fn object(members: &Map<String, Value>, depth: usize) -> Claims<'_> {
    members.iter().map(|(name, value)| (&**name, claim(value, depth))).collect()
}

fn claim(value: &Value, depth: usize) -> Claim<'_> {
    let Some(depth) = depth.checked_sub(1) else { return Claim::TooDeep };
    match value {
        Value::Null => Claim::Null,
        Value::Bool(value) => Claim::Bool(*value),
        Value::Number(number) => Claim::Number(number.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => Claim::Text(text),
        Value::Array(items) => Claim::List(items.iter().map(|item| claim(item, depth)).collect()),
        Value::Object(members) => Claim::Object(object(members, depth)),
    }
}
