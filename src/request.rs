//! The facts of one request, borrowed from the message that brought them.

use crate::claims::Claims;

/// What Envoy says of one request. Texts are bytes as they came: nothing is decoded, normalised or trusted yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request<'r> {
    /// The method.
    pub method: &'r [u8],
    /// The path with its query, as the client sent it unless Envoy normalises paths.
    pub path: &'r [u8],
    /// The authority.
    pub host: &'r [u8],
    /// The header lines, names in lower case. Repeats are lines of their own or joined by commas, as Envoy sent them.
    pub headers: Vec<(&'r [u8], &'r [u8])>,
    /// The address at the other end of Envoy's connection; empty if it is no IP address.
    pub peer: &'r [u8],
    /// The address of the client as Envoy sees it, from the gRPC metadata of the Check; empty if it does not say.
    pub client: &'r [u8],
    /// The route's `context_extensions`.
    pub context: Vec<(&'r [u8], &'r [u8])>,
    /// The body, or the start of it, as far as Envoy sends it.
    pub body: &'r [u8],
    /// The metadata namespaces and what they hold.
    pub metadata: Claims<'r>,
}

/// The protocol that a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Any HTTP but gRPC.
    Http,
    /// gRPC, which has a status and a message in place of a body.
    Grpc,
}

impl<'r> Request<'r> {
    /// The first line of the header `name`, which is in lower case.
    pub fn header(&self, name: &str) -> Option<&'r [u8]> {
        self.lines(name).next()
    }

    /// The lines of the header `name`, which is in lower case.
    pub fn lines(&self, name: &str) -> impl DoubleEndedIterator<Item = &'r [u8]> {
        self.headers.iter().filter(move |(key, _)| *key == name.as_bytes()).map(|(_, value)| *value)
    }

    /// The protocol by Envoy's rule: what it takes for gRPC, it answers as gRPC.
    pub fn protocol(&self) -> Protocol {
        let rest = self.header("content-type").and_then(|value| value.strip_prefix(b"application/grpc"));
        if matches!(rest, Some([] | [b'+', ..])) { Protocol::Grpc } else { Protocol::Http }
    }

    /// Whether an application might take the request for gRPC, by whatever spelling of the content type: gRPC-Web and
    /// parameters included.
    pub fn may_be_grpc(&self) -> bool {
        const GRPC: &[u8] = b"application/grpc";
        let mut types = self.lines("content-type").flat_map(|line| line.split(|&byte| byte == b','));
        types.any(|of| of.trim_ascii_start().get(..GRPC.len()).is_some_and(|start| start.eq_ignore_ascii_case(GRPC)))
    }

    /// Whether the client sent a bearer token, verified or not.
    pub fn has_bearer(&self) -> bool {
        let scheme = self.header("authorization").and_then(|value| value.split(|&byte| byte == b' ').next());
        scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer"))
    }

    /// Whether a browser asks here whether it may make another request: RFC 9110 OPTIONS with the headers that the
    /// Fetch standard gives a preflight.
    pub fn is_preflight(&self) -> bool {
        let has = |name| self.header(name).is_some_and(|value| !value.is_empty());
        self.method == b"OPTIONS" && has("origin") && has("access-control-request-method")
    }

    /// The path without its query, in which a client may have put a credential.
    pub fn path_without_query(&self) -> &'r [u8] {
        self.path.split(|byte| matches!(byte, b'?' | b'#')).next().unwrap_or_default()
    }
}
