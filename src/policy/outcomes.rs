//! What became of a request after it was let through, and what a rule makes of that.

/// How a request ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome<'r> {
    /// The HTTP status of the answer; 0 if the client left before there was one.
    pub status: u16,
    /// The gRPC status, where the answer has one.
    pub grpc_status: Option<u32>,
    /// The names of response headers, in lower case, as far as Envoy reports them.
    pub headers: Vec<&'r str>,
}

/// A way in which requests end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutcomeMatcher {
    /// With this HTTP status.
    Status(u16),
    /// With an HTTP status of this class: 2 for 200 to 299.
    Class(u16),
    /// Without an answer, because the client left.
    Aborted,
    /// With this gRPC status.
    Grpc(u32),
    /// With an answer that has this header; its name is in lower case.
    Header(Box<str>),
}

/// What an outcome does to the attempt that it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It stays counted.
    Count,
    /// It is taken back.
    Cancel,
    /// All attempts of its key are forgotten, a lockout included.
    Reset,
}

/// What outcomes do to attempts. Where several apply, counting comes first and forgetting last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutcomeRules {
    /// What stays counted.
    pub count: Vec<OutcomeMatcher>,
    /// What is taken back.
    pub cancel: Vec<OutcomeMatcher>,
    /// What makes all attempts of the key forgotten.
    pub reset: Vec<OutcomeMatcher>,
}

impl Outcome<'_> {
    /// Whether it is known how the request ended. That of what may be a gRPC call is not, where Envoy does not log a gRPC
    /// status: then it counts, may be charged, and frees nobody. (A client may claim that any request is a gRPC call.)
    fn is_told(&self, is_grpc: bool) -> bool {
        self.grpc_status.is_some() || !is_grpc || self.status != 200
    }
}

impl OutcomeRules {
    /// Whether no outcome is asked for.
    pub fn is_empty(&self) -> bool {
        self.count.is_empty() && self.cancel.is_empty() && self.reset.is_empty()
    }

    /// What `outcome` does, `other` if no rule names it. `is_grpc`: the request may be a gRPC call.
    pub fn effect(&self, outcome: &Outcome<'_>, is_grpc: bool, other: Effect) -> Effect {
        let named = |matchers: &[OutcomeMatcher]| matchers.iter().any(|matcher| matcher.matches(outcome));
        match outcome.is_told(is_grpc) {
            _ if named(&self.count) => Effect::Count,
            true if named(&self.cancel) => Effect::Cancel,
            true if named(&self.reset) => Effect::Reset,
            true => other,
            false => Effect::Count,
        }
    }
}

impl OutcomeMatcher {
    /// Whether each outcome that `other` is for is one that this is for.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Class(class), Self::Status(status)) => *class == status / 100,
            _ => self == other,
        }
    }

    /// Whether a request ended so. A gRPC call that is refused has the HTTP status 200 as well, which counts for nothing then.
    pub fn matches(&self, outcome: &Outcome<'_>) -> bool {
        let is_refused_by_grpc = outcome.status == 200 && outcome.grpc_status.is_some_and(|status| status != 0);
        match self {
            Self::Status(status) => !is_refused_by_grpc && *status == outcome.status,
            Self::Class(class) => !is_refused_by_grpc && *class == outcome.status / 100,
            Self::Aborted => outcome.status == 0,
            Self::Grpc(status) => outcome.grpc_status == Some(*status),
            Self::Header(name) => outcome.headers.contains(&&**name),
        }
    }
}
