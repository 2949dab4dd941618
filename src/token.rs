//! From the verified claims of a request to an identity: a caller with its capabilities, or why there is none.

/// Where the identity of a request is read from, and what a request without one may do.
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
    /// What a request without a token may do.
    pub missing: MissingToken,
}

/// The way to a claim: the names of the objects it lies in, and its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimPath(pub Vec<String>);

/// What a request without a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingToken {
    /// It is refused with 401.
    Deny,
    /// It goes on, held to no rate.
    Allow,
}
