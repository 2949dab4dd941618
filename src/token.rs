//! From the verified claims of a request to an identity: a caller with its capabilities, or why there is none.

use crate::claims::{Claim, Claims, NoObject};
use crate::request::Request;
use smallvec::SmallVec;
use std::borrow::Cow;

/// Where the identity of a request is read from.
#[derive(Clone, Debug)]
pub struct TokenRules {
    /// The metadata namespace that Envoy's jwt_authn filter writes.
    pub namespace: String,
    /// The keys under which the claims may stand (`payload_in_metadata`); the first that is there counts.
    pub payload: Vec<String>,
    /// The key under which a failure stands (`failed_status_in_metadata`).
    pub failure: String,
    /// The claims that together are the principal.
    pub principal: Vec<ClaimPath>,
    /// The claims that hold capabilities.
    pub capabilities: Vec<ClaimPath>,
}

/// The way to a claim: the names of the objects it lies in, and its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClaimPath(pub Vec<String>);

/// Who makes a request, as far as its token tells.
#[derive(Clone, Debug, PartialEq)]
pub enum Identity<'r> {
    /// A verified caller.
    Caller(Caller<'r>),
    /// The request presents no token.
    Missing,
    /// The request presents a token that failed verification.
    Failed(FailedToken<'r>),
    /// The request presents a bearer token, yet neither claims nor a failure came with it. Nobody says that it was
    /// verified, so it counts as failed.
    Unverified,
    /// The token is verified, but its claims cannot be used.
    Unusable(UnusableToken<'r>),
}

/// A verified caller.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Caller<'r> {
    /// The principal. One of several claims is each of them behind its length, so that no two lists are alike.
    pub principal: Cow<'r, str>,
    /// The capabilities, in token order.
    pub capabilities: Capabilities<'r>,
    /// All claims of the token, where it is known.
    pub claims: Option<&'r Claims<'r>>,
}

/// What Envoy says of a token that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedToken<'r> {
    /// The code of Envoy's JWT library, if it is one.
    pub code: Option<u32>,
    /// Its message.
    pub message: &'r str,
}

/// How a token failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Its time has not come.
    NotYetValid,
    /// Its time is over.
    Expired,
    /// It is no JWT, or one whose parts or claims are of the wrong kind.
    Malformed,
    /// Nobody knows its issuer.
    Issuer,
    /// It is for others.
    Audience,
    /// Its signature is wrong.
    Signature,
    /// It is signed by a key that is not in the key set.
    UnknownKey,
    /// There is no usable key set, which is not the client's fault.
    KeySet,
    /// Envoy says nothing of it, or what is not known here.
    Unknown,
}

impl Failure {
    /// By the code of Envoy's JWT library (`source/common/jwt/status.h`).
    fn of(code: Option<u32>) -> Self {
        match code {
            Some(2) => Self::NotYetValid,
            Some(3) => Self::Expired,
            Some(4..=23 | 27) => Self::Malformed,
            Some(24) => Self::Issuer,
            Some(25) => Self::Audience,
            Some(26) => Self::Signature,
            Some(32) => Self::UnknownKey,
            Some(28..) => Self::KeySet,
            Some(0 | 1) | None => Self::Unknown,
        }
    }
}

impl Failure {
    /// All kinds.
    pub const ALL: [Self; 9] = [
        Self::NotYetValid,
        Self::Expired,
        Self::Malformed,
        Self::Issuer,
        Self::Audience,
        Self::Signature,
        Self::UnknownKey,
        Self::KeySet,
        Self::Unknown,
    ];

    /// The kind in one word, as the configuration and metrics write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotYetValid => "not_yet_valid",
            Self::Expired => "expired",
            Self::Malformed => "malformed",
            Self::Issuer => "issuer",
            Self::Audience => "audience",
            Self::Signature => "signature",
            Self::UnknownKey => "unknown_key",
            Self::KeySet => "key_set",
            Self::Unknown => "unknown",
        }
    }
}

impl Identity<'_> {
    /// How the token failed, if it did.
    pub fn failure(&self) -> Option<Failure> {
        match self {
            Self::Failed(failed) => Some(Failure::of(failed.code)),
            Self::Unverified => Some(Failure::Unknown),
            Self::Caller(_) | Self::Missing | Self::Unusable(_) => None,
        }
    }
}

/// A verified token whose claims cannot be used.
#[derive(Clone, Debug, PartialEq)]
pub struct UnusableToken<'r> {
    /// Why.
    pub reason: UnusableClaims,
    /// The capabilities that could be read, for warnings.
    pub capabilities: Capabilities<'r>,
}

/// The capabilities of a token, in token order.
pub type Capabilities<'r> = SmallVec<[&'r str; 8]>;

/// Why the claims of a verified token cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum UnusableClaims {
    /// What stands under a payload key is no object.
    #[error("the payload under {key:?} is {kind}, not an object of claims")]
    Payload {
        /// The payload key.
        key: String,
        /// What stands there.
        kind: &'static str,
    },
    /// A claim of the principal is absent.
    #[error("the principal claim {0} is absent")]
    NoPrincipal(ClaimPath),
    /// A claim of the principal is neither a non-empty string nor an integer that a double holds exactly.
    #[error("the principal claim {path} is {kind}; want a non-empty string, or an integer from 0 to 2^53-1")]
    Principal {
        /// The claim.
        path: ClaimPath,
        /// What it is.
        kind: &'static str,
    },
    /// A capabilities claim is neither a list of strings nor a string.
    #[error("the capabilities claim {path} is {kind}; want a list of strings, or one space-separated string")]
    Capabilities {
        /// The claim.
        path: ClaimPath,
        /// What it is.
        kind: &'static str,
    },
}

impl TokenRules {
    /// Reads who makes `request`. A payload decides even beside a failure; a failure is never a payload.
    pub fn identify<'r>(&self, request: &'r Request<'r>) -> Identity<'r> {
        let namespace = request.metadata.get(&self.namespace).and_then(Claim::object);
        let payload = self.payload.iter().find_map(|key| Some((key, namespace?.get(key)?)));
        match (payload, namespace.and_then(|namespace| namespace.get(&self.failure))) {
            (Some((key, payload)), _) => self.caller(key, payload),
            (None, Some(status)) => failure(status),
            (None, None) if request.has_bearer() => Identity::Unverified,
            (None, None) => Identity::Missing,
        }
    }

    fn caller<'r>(&self, key: &str, payload: &'r Claim<'r>) -> Identity<'r> {
        let mut capabilities = Capabilities::new();
        let principal = match payload {
            Claim::Object(claims) => self.read(claims, &mut capabilities),
            other => Err(UnusableClaims::Payload { key: key.to_owned(), kind: other.kind() }),
        };
        match principal {
            Ok(principal) => Identity::Caller(Caller { principal, capabilities, claims: payload.object() }),
            Err(reason) => Identity::Unusable(UnusableToken { reason, capabilities }),
        }
    }

    /// Reads the capabilities first, so that warnings about them do not depend on the principal.
    fn read<'r>(
        &self,
        claims: &'r Claims<'r>,
        capabilities: &mut Capabilities<'r>,
    ) -> Result<Cow<'r, str>, UnusableClaims> {
        for path in &self.capabilities {
            read_capabilities(path, claims, capabilities)?;
        }
        self.principal(claims)
    }

    fn principal<'r>(&self, claims: &'r Claims<'r>) -> Result<Cow<'r, str>, UnusableClaims> {
        if let [path] = &*self.principal {
            return principal_part(path, claims);
        }
        let mut whole = String::new();
        for path in &self.principal {
            let part = principal_part(path, claims)?;
            whole.push_str(&format!("{}:{part}", part.len()));
        }
        Ok(whole.into())
    }
}

/// What a claim is whose path leads through something else than objects.
const BELOW_NO_OBJECT: &str = "below something that is no object";

/// Envoy reports a token that is not there as the failure with code 1.
fn failure<'r>(failure: &'r Claim<'r>) -> Identity<'r> {
    const JWT_MISSING: f64 = 1.0;
    let member = |name| failure.object().and_then(|status| status.get(name));
    let message = if let Some(Claim::Text(message)) = member("message") { message } else { "" };
    match member("code") {
        Some(Claim::Number(JWT_MISSING)) => Identity::Missing,
        Some(Claim::Number(code)) if code.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(code) => {
            Identity::Failed(FailedToken { code: Some(*code as u32), message })
        }
        _ => Identity::Failed(FailedToken { code: None, message }),
    }
}

fn principal_part<'r>(path: &ClaimPath, claims: &'r Claims<'r>) -> Result<Cow<'r, str>, UnusableClaims> {
    /// The largest integer up to which every integer is a double of its own, 2^53 - 1.
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    let kind = match claims.at(&path.0) {
        Ok(None) => return Err(UnusableClaims::NoPrincipal(path.clone())),
        Err(NoObject) => BELOW_NO_OBJECT,
        Ok(Some(Claim::Text(""))) => "empty",
        Ok(Some(Claim::Text(text))) => return Ok((*text).into()),
        Ok(Some(Claim::Number(n))) if n.fract() == 0.0 && (0.0..=LARGEST).contains(n) => {
            return Ok((*n as u64).to_string().into());
        }
        Ok(Some(Claim::Number(_))) => "another number",
        Ok(Some(other)) => other.kind(),
    };
    Err(UnusableClaims::Principal { path: path.clone(), kind })
}

fn read_capabilities<'r>(
    path: &ClaimPath,
    claims: &'r Claims<'r>,
    capabilities: &mut Capabilities<'r>,
) -> Result<(), UnusableClaims> {
    let unusable = |kind| Err(UnusableClaims::Capabilities { path: path.clone(), kind });
    match claims.at(&path.0) {
        Ok(None) => {}
        Err(NoObject) => return unusable(BELOW_NO_OBJECT),
        Ok(Some(Claim::Text(text))) => capabilities.extend(text.split(' ').filter(|capability| !capability.is_empty())),
        Ok(Some(Claim::List(list))) => {
            for item in list {
                let Claim::Text(capability) = item else { return unusable("a list that holds something else") };
                capabilities.push(capability);
            }
        }
        Ok(Some(other)) => return unusable(other.kind()),
    }
    Ok(())
}

/// The dotted form, as the configuration writes it.
impl std::fmt::Display for ClaimPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("."))
    }
}
